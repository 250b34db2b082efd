/* Texts and token ids of the command line. */
#include "cli/texts.h"
#include <limits.h>
#include <stdlib.h>
#include <string.h>

static ait_status add(cli_texts *t, const char *text, size_t size) {
  const char **items = realloc(t->items, (t->count + 1) * sizeof *items);
  if (items) t->items = items;
  size_t *sizes = realloc(t->sizes, (t->count + 1) * sizeof *sizes);
  if (sizes) t->sizes = sizes;
  if (!items || !sizes) return ait_error(AIT_CODE_OUT_OF_MEMORY, "out of memory");
  t->items[t->count] = text;
  t->sizes[t->count++] = size;
  return AIT_OK;
}

static ait_status add_lines(cli_texts *t, const char *text, size_t size) {
  for (const char *at = text, *end = text + size; at < end;) {
    const char *stop = memchr(at, '\n', (size_t)(end - at)), *next = stop ? stop + 1 : end;
    size_t length = (size_t)((stop ? stop : end) - at);
    if (length && at[length - 1] == '\r') --length;
    ait_status status = add(t, at, length);
    if (status != AIT_OK) return status;
    at = next;
  }
  return AIT_OK;
}

static ait_status read_file(cli_texts *t, const char *path, bool lines) {
  bool standard = !strcmp(path, "-");
  FILE *f = standard ? stdin : fopen(path, "rb");
  size_t size = 0;
  if (!f) return ait_error(AIT_CODE_IO, "cannot open '%s'", path);
  ait_status status = cli_read_all(f, path, "texts", (size_t)1 << 30, &t->file, &size);
  bool failed = ferror(f) != 0;
  if (!standard) fclose(f);
  if (status == AIT_OK && failed) status = ait_error(AIT_CODE_IO, "cannot read '%s'", path);
  if (status != AIT_OK) return status;
  return lines ? add_lines(t, t->file, size) : add(t, t->file, size);
}

int cli_texts_read(const cli_args *args, bool lines, cli_texts *out) {
  const char *text, *file = cli_option(args, "file");
  ait_status status = AIT_OK;
  *out = (cli_texts){0};
  for (int k = 0; status == AIT_OK && (text = cli_option_at(args, "text", k)); ++k) status = add(out, text, strlen(text));
  if (status == AIT_OK && file) status = read_file(out, file, lines);
  if (status != AIT_OK) return cli_fail(status);
  if (out->count == 0 && file) return cli_fail(ait_error(AIT_CODE_INVALID_ARGUMENT, "'%s' holds no text", file));
  return CLI_DONE;
}

void cli_texts_deinit(cli_texts *t) {
  free(t->items);
  free(t->sizes);
  free(t->file);
}

ait_status cli_ids_parse(const char *text, ait_token_list *out, const char **out_bad) {
  *out_bad = NULL;
  for (const char *at = text; *at;) {
    char *end;
    long id = strtol(at, &end, 10);
    if (end == at || (*end && *end != ',') || id < 0 || id > INT32_MAX) return *out_bad = at, AIT_OK;
    int32_t narrow = (int32_t)id;
    ait_status status = ait_token_list_append(out, &narrow, 1);
    if (status != AIT_OK) return status;
    at = *end ? end + 1 : end;
  }
  return AIT_OK;
}

struct json_object *cli_ids_json(const int32_t *ids, size_t count) {
  struct json_object *list = json_object_new_array();
  for (size_t i = 0; i < count; ++i) json_object_array_add(list, json_object_new_int(ids[i]));
  return list;
}
