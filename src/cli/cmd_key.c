/* ait key and ait sign; and what every command that loads a file does with keys. */
#include "cli/cli.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- the store ---------------------------------------------------------------------------------------------------------------------*/
/* --keys, else $XDG_CONFIG_HOME/ait/keys, else ~/.config/ait/keys; false: nowhere. */
static bool keys_folder(const cli_args *args, char *out, size_t size) {
  const char *given = cli_option(args, "keys"), *config = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
  if (given) snprintf(out, size, "%s", given);
  else if (config && *config) snprintf(out, size, "%s/ait/keys", config);
  else if (home && *home) snprintf(out, size, "%s/.config/ait/keys", home);
  else return false;
  return true;
}

ait_status cli_keys_open(const cli_args *args, ait_keys **out) {
  char folder[4096];
  *out = NULL;
  return keys_folder(args, folder, sizeof folder) ? ait_keys_open(ait_allocator_default(), folder, out) : AIT_OK;
}

ait_status cli_keys_need(const cli_args *args, ait_keys *keys, const char *key) {
  ait_key_info info;
  if (!keys && !strchr(key, '/')) return ait_error_hint(ait_error(AIT_CODE_UNAVAILABLE, "there is no folder for keys"), "use --keys DIR");
  if (strcmp(key, CLI_OWN_KEY) != 0 || ait_keys_find(keys, key, &info)) return AIT_OK;
  ait_status status = ait_keys_new(keys, key);
  if (status == AIT_OK && !cli_flag(args, "quiet") && ait_keys_find(keys, key, &info))
    fprintf(stderr, "note: made key '%s', fingerprint %s\n", key, info.fingerprint);
  return status;
}

ait_status cli_load_open(const cli_args *args, cli_load *out) {
  const char *isa = cli_option(args, "isa");
  out->keys = NULL;
  ait_load_options_init(&out->options);
  ait_status status = isa ? ait_cpu_mask(isa, &out->options.cpu_mask) : AIT_OK;
  if (status == AIT_OK) status = cli_keys_open(args, &out->keys);
  out->options.keys = out->keys;
  out->options.model_name = cli_option(args, "model-name");
  out->options.weights = cli_option(args, "weights");
  out->options.require_signature = cli_flag(args, "require-signature");
  return status;
}

void cli_load_close(cli_load *load) { ait_keys_destroy(load->keys); }

void cli_signature_text(const char *state, const char *key, const char *fingerprint, char out[192]) {
  if (!strcmp(state, "trusted")) snprintf(out, 192, "signed by '%s' (%s)", key, fingerprint);
  else if (!strcmp(state, "revoked")) snprintf(out, 192, "signed by '%s' (%s), a key that was REVOKED", key, fingerprint);
  else if (!strcmp(state, "unknown")) snprintf(out, 192, "signed by a key that is not trusted here (%s)", fingerprint);
  else snprintf(out, 192, "not signed");
}

/* ---- ait key -----------------------------------------------------------------------------------------------------------------------*/
static struct json_object *key_json(const ait_key_info *k) {
  struct json_object *o = json_object_new_object();
  json_object_object_add(o, "name", json_object_new_string(k->name));
  json_object_object_add(o, "state", json_object_new_string(k->revoked ? "revoked" : "trusted"));
  json_object_object_add(o, "own", json_object_new_boolean(k->own));
  json_object_object_add(o, "fingerprint", json_object_new_string(k->fingerprint));
  json_object_object_add(o, "text", json_object_new_string(k->text));
  return o;
}

static int list_keys(const cli_args *args, const ait_keys *keys) {
  ait_key_info k;
  size_t n = keys ? ait_keys_count(keys) : 0;
  if (cli_wants_json(args)) {
    struct json_object *o = json_object_new_object(), *list = json_object_new_array();
    for (size_t i = 0; i < n && ait_keys_at(keys, i, &k); ++i) json_object_array_add(list, key_json(&k));
    json_object_object_add(o, "keys", list);
    return cli_json(args, o);
  }
  cli_table table;
  cli_table_init(&table, 4, "LLLL");
  if (n) cli_table_row(&table, "key", "state", "whose", "fingerprint");
  for (size_t i = 0; i < n && ait_keys_at(keys, i, &k); ++i)
    cli_table_row(&table, k.name, k.revoked ? "revoked" : "trusted", k.own ? "own" : "", k.fingerprint);
  cli_table_print(&table, stdout);
  cli_table_deinit(&table);
  if (!n) printf("no keys\n");
  return CLI_DONE;
}

static int show_key(const cli_args *args, const ait_keys *keys, const char *name) {
  ait_key_info k;
  if (!ait_keys_find(keys, name, &k))
    return cli_fail(ait_error_hint(ait_error(AIT_CODE_NOT_FOUND, "there is no key '%s'", name), "'ait key list' lists them"));
  if (cli_wants_json(args)) return cli_json(args, key_json(&k));
  printf("%s\n", k.text);
  return CLI_DONE;
}

/* The text itself, or a file that holds it. */
static ait_status key_text(const char *argument, char out[512]) {
  if (!strncmp(argument, "ait-ed25519 ", 12)) return snprintf(out, 512, "%s", argument), AIT_OK;
  FILE *f = fopen(argument, "r");
  if (!f) return ait_error(AIT_CODE_NOT_FOUND, "cannot open '%s': %s", argument, strerror(errno));
  size_t n = fread(out, 1, 511, f);
  fclose(f);
  out[n] = 0;
  return AIT_OK;
}

static ait_status trust_key(const cli_args *args, ait_keys *keys, const char *argument, const char **out_name) {
  char text[512];
  ait_status status = key_text(argument, text);
  if (status == AIT_OK) status = ait_keys_trust(keys, text, cli_option(args, "name"), out_name);
  return ait_error_context(status, "cannot trust '%s'", argument);
}

static int said(const cli_args *args, const ait_keys *keys, const char *what, const char *name) {
  ait_key_info k;
  if (!ait_keys_find(keys, name, &k)) return CLI_DONE;
  if (cli_wants_json(args)) return cli_json(args, key_json(&k));
  printf("%s '%s', fingerprint %s\n", what, k.name, k.fingerprint);
  if (k.own && !k.revoked && !strcmp(what, "made")) printf("%s\n", k.text);
  return CLI_DONE;
}

static int change_key(const cli_args *args, ait_keys *keys, const char *verb, const char *argument) {
  const char *what = "made", *name = argument;
  ait_status status;
  if (!strcmp(verb, "new")) {
    status = ait_keys_new(keys, argument);
  } else if (!strcmp(verb, "trust")) {
    status = trust_key(args, keys, argument, &name), what = "trusts";
  } else {
    status = ait_keys_revoke(keys, argument), what = "revoked";
  }
  return status == AIT_OK ? said(args, keys, what, name) : cli_fail(status);
}

int cli_cmd_key(const cli_args *args) {
  static const char *const verbs[] = {"new", "list", "show", "trust", "revoke"};
  const char *verb = args->positional[0], *argument = args->positional_count > 1 ? args->positional[1] : NULL;
  size_t known = 0;
  while (known < sizeof verbs / sizeof verbs[0] && strcmp(verbs[known], verb) != 0) ++known;
  if (known == sizeof verbs / sizeof verbs[0]) return cli_usage("'ait key %s': it is new, list, show, trust or revoke", verb);
  bool list = !strcmp(verb, "list");
  if (list && argument) return cli_usage("'ait key list' takes no name");
  if (!argument && (!strcmp(verb, "new") || !strcmp(verb, "show"))) argument = CLI_OWN_KEY;
  if (!list && !argument)
    return cli_usage("'ait key %s' needs %s", verb, !strcmp(verb, "trust") ? "a key's text, or a file with it" : "a name");
  if (cli_flag(args, "name") && strcmp(verb, "trust") != 0) return cli_usage("option '--name' is for 'ait key trust'");
  ait_keys *keys = NULL;
  ait_status status = cli_keys_open(args, &keys);
  if (status == AIT_OK && !keys) status = ait_error_hint(ait_error(AIT_CODE_UNAVAILABLE, "there is no folder for keys"), "use --keys DIR");
  int code;
  if (status != AIT_OK) code = cli_fail(status);
  else if (list) code = list_keys(args, keys);
  else if (!strcmp(verb, "show")) code = show_key(args, keys, argument);
  else code = change_key(args, keys, verb, argument);
  ait_keys_destroy(keys);
  return code;
}

/* ---- ait sign ----------------------------------------------------------------------------------------------------------------------*/
int cli_cmd_sign(const cli_args *args) {
  const char *path = args->positional[0], *out = cli_option(args, "output"), *key = cli_option(args, "key");
  ait_keys *keys = NULL;
  if (!out) out = path;
  if (!key) key = CLI_OWN_KEY;
  ait_status status = cli_keys_open(args, &keys);
  if (status == AIT_OK) status = cli_keys_need(args, keys, key);
  if (status == AIT_OK) status = ait_sign(path, out, keys, key);
  ait_keys_destroy(keys);
  if (status != AIT_OK) return cli_fail(status);
  if (cli_wants_json(args)) {
    struct json_object *o = json_object_new_object();
    json_object_object_add(o, "file", json_object_new_string(out));
    json_object_object_add(o, "key", json_object_new_string(key));
    return cli_json(args, o);
  }
  if (!cli_flag(args, "quiet")) printf("signed %s with '%s'\n", out, key);
  return CLI_DONE;
}
