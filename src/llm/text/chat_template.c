/* Chat templates: finding one in a model's folder, its variables, one rendering. */
#include "llm/text/jinja.h"

struct ait_chat_template {
  ait_allocator allocator;
  ait_arena arena;
  ait_jn *first;
  char *special[16][2]; /* name, token */
  size_t special_count;
};

ait_status ait_chat_template_parse(ait_allocator a, const char *source, size_t size, ait_chat_template **out) {
  ait_chat_template *t = ait_alloc_zero(a, sizeof *t, _Alignof(ait_chat_template));
  if (!t) return AIT_OOM();
  t->allocator = a;
  ait_arena_init(&t->arena, a);
  t->arena.limit_bytes = (size_t)1 << 30;
  ait_status status = size > 16 << 20 ? ait_error(AIT_CODE_LIMIT, "more than 16 MiB") : ait_jinja_parse(&t->arena, source, size, &t->first);
  if (status) ait_chat_template_destroy(t);
  else *out = t;
  return ait_error_context(status, "chat template");
}

void ait_chat_template_destroy(ait_chat_template *t) {
  if (!t) return;
  ait_arena_deinit(&t->arena);
  ait_free(t->allocator, t, sizeof *t);
}

/* ---- a model's folder
 * --------------------------------------------------------------------------------------------------------------------*/
/* *text NULL: there is no such file. */
static ait_status read_file(ait_allocator a, const char *folder, const char *name, char **text, size_t *size) {
  ait_text path;
  *text = NULL;
  ait_text_init(&path, a);
  ait_text_printf(&path, "%s/%s", folder, name);
  ait_status status = path.failed ? AIT_OOM() : ait_file_read(a, path.data, (size_t)256 << 20, text, size);
  ait_text_deinit(&path);
  if (ait_status_code(status) != AIT_CODE_NOT_FOUND) return status;
  ait_status_free(status);
  return AIT_OK;
}

/* A string, or one of [{"name": …, "template": …}]. */
static const ait_json *choose(const ait_json *config, const char *name) {
  const ait_json *list = ait_json_get(config, "chat_template");
  if (!list || list->kind == AIT_JSON_STRING) return list;
  for (uint32_t i = 0; list->kind == AIT_JSON_ARRAY && i < list->count; ++i) {
    const char *called = ait_json_get_string(&list->as.items[i], "name");
    if (called && strcmp(called, name ? name : "default") == 0) return ait_json_get_kind(&list->as.items[i], "template", AIT_JSON_STRING);
  }
  return NULL;
}

/* "bos_token": "<s>" or {"content": "<s>"} */
static ait_status read_special(ait_chat_template *t, const ait_json *config) {
  for (uint32_t i = 0; config && config->kind == AIT_JSON_OBJECT && i < config->count && t->special_count < AIT_COUNT(t->special); ++i) {
    const ait_json *m = &config->as.items[i], *text = m->kind == AIT_JSON_OBJECT ? ait_json_get(m, "content") : m;
    if (!ait_ends_with(m->key, "_token") || !text || text->kind != AIT_JSON_STRING) continue;
    char **pair = t->special[t->special_count++];
    pair[0] = ait_arena_strdup(&t->arena, m->key, m->key_size);
    pair[1] = ait_arena_strdup(&t->arena, text->as.string, text->count);
    if (!pair[0] || !pair[1]) return AIT_OOM();
  }
  return AIT_OK;
}

ait_status ait_chat_template_make(ait_allocator a, const char *source, size_t source_size, const char *config_text, size_t config_size,
                                  const char *name, ait_chat_template **out) {
  const ait_json *config = NULL, *chosen = NULL;
  ait_chat_template *t = NULL;
  ait_status status = AIT_OK;
  ait_arena arena;
  ait_arena_init(&arena, a);
  if (config_text) status = ait_json_parse_with(&arena, config_text, config_size, AIT_JSON_NUL | AIT_JSON_LARGE, &config);
  if (!status && !source) chosen = choose(config, name);
  if (!status && !source && !chosen)
    status = ait_error(AIT_CODE_NOT_FOUND, "there is no chat template%s%s", name ? " named " : "", name ? name : "");
  if (!status)
    status =
        source ? ait_chat_template_parse(a, source, source_size, &t) : ait_chat_template_parse(a, chosen->as.string, chosen->count, &t);
  if (!status) status = read_special(t, config);
  ait_arena_deinit(&arena);
  if (status) ait_chat_template_destroy(t);
  else *out = t;
  return status;
}

ait_status ait_chat_template_load(ait_allocator a, const char *folder, const char *name, ait_chat_template **out) {
  char *source = NULL, *config_text = NULL;
  size_t source_size = 0, config_size = 0;
  ait_status status = read_file(a, folder, "chat_template.jinja", &source, &source_size);
  if (!status) status = read_file(a, folder, "tokenizer_config.json", &config_text, &config_size);
  if (!status) status = ait_chat_template_make(a, source, source_size, config_text, config_size, name, out);
  ait_free(a, source, source_size + 1);
  ait_free(a, config_text, config_size + 1);
  return status ? ait_error_context(status, "'%s'", folder) : AIT_OK;
}

/* ---- variables
 * ---------------------------------------------------------------------------------------------------------------------------*/
static ait_status set(ait_jrun *r, ait_jdict *d, const char *name, ait_jv value) {
  return ait_jdict_set(r, d, ait_jv_span(name, strlen(name)), value);
}

/* A message without its null members; reasoning under both of the names that templates read. */
static ait_status clean_message(ait_jrun *r, const ait_jv *message, ait_jv *out) {
  static const char *const names[] = {"reasoning_content", "thinking", "reasoning"};
  const ait_jdict *d = message->as.dict;
  const ait_jv *reasoning = NULL;
  if (message->kind != AIT_JV_DICT) return ait_error(AIT_CODE_INVALID_ARGUMENT, "\"messages\" must be a list of objects");
  for (size_t i = 0; i < AIT_COUNT(names) && !reasoning; ++i) {
    reasoning = ait_jdict_find(d, names[i], strlen(names[i]));
    if (reasoning && reasoning->kind == AIT_JV_NONE) reasoning = NULL;
  }
  AIT_TRY(ait_jdict_new(r, out));
  if (reasoning) AIT_TRY(set(r, out->as.dict, "thinking", *reasoning));
  for (uint32_t i = 0; i < d->count; ++i) {
    if (d->values[i].kind != AIT_JV_NONE) AIT_TRY(ait_jdict_set(r, out->as.dict, d->keys[i], d->values[i]));
  }
  return reasoning ? set(r, out->as.dict, "reasoning_content", *reasoning) : AIT_OK;
}

static ait_status clean_messages(ait_jrun *r, ait_jdict *globals) {
  const ait_jv *messages = ait_jdict_find(globals, "messages", 8);
  if (!messages) return AIT_OK;
  if (messages->kind != AIT_JV_LIST) return ait_error(AIT_CODE_INVALID_ARGUMENT, "\"messages\" must be a list of objects");
  ait_jlist *list = messages->as.list;
  for (uint32_t i = 0; i < list->count; ++i) {
    ait_jv clean;
    AIT_TRY(clean_message(r, &list->items[i], &clean));
    list->items[i] = clean;
  }
  return AIT_OK;
}

static ait_status set_variables(ait_jrun *r, const ait_chat_template *t, const ait_json *json) {
  ait_jdict *globals = &r->globals->names;
  ait_jv all;
  if (json->kind != AIT_JSON_OBJECT) return ait_error(AIT_CODE_INVALID_ARGUMENT, "variables must be a JSON object");
  AIT_TRY(set(r, globals, "tools", ait_jv_none()));
  AIT_TRY(set(r, globals, "documents", ait_jv_none()));
  AIT_TRY(set(r, globals, "add_generation_prompt", ait_jv_bool(false)));
  for (size_t i = 0; i < t->special_count; ++i)
    AIT_TRY(set(r, globals, t->special[i][0], ait_jv_span(t->special[i][1], strlen(t->special[i][1]))));
  AIT_TRY(ait_jv_from_json(r, json, &all, 0));
  for (uint32_t i = 0; i < all.as.dict->count; ++i) AIT_TRY(ait_jdict_set(r, globals, all.as.dict->keys[i], all.as.dict->values[i]));
  return clean_messages(r, globals);
}

/* ---- rendering
 * -----------------------------------------------------------------------------------------------------------------------------*/
static ait_status render(ait_jrun *r, const ait_chat_template *t, const char *variables, size_t size, ait_text *text) {
  const ait_json *json;
  ait_jscope globals = {0}, top = {.parent = &globals};
  ait_status status = ait_json_parse_with(&r->arena, variables, size, AIT_JSON_NUL, &json);
  if (status) { /* the caller's text, no model's */
    ait_status wrong = ait_error(ait_status_code(status) == AIT_CODE_OUT_OF_MEMORY ? AIT_CODE_OUT_OF_MEMORY : AIT_CODE_INVALID_ARGUMENT,
                                 "variables: %s", ait_status_message(status));
    ait_status_free(status);
    return wrong;
  }
  r->globals = &globals;
  r->scope = &top;
  r->out = text;
  AIT_TRY(set_variables(r, t, json));
  AIT_TRY(ait_jinja_run(r, t->first));
  return text->failed ? AIT_OOM() : AIT_OK;
}

ait_status ait_chat_template_render(const ait_chat_template *t, const char *variables, size_t size, const ait_chat_options *options,
                                    ait_allocator a, char **out, size_t *out_size) {
  static const ait_chat_options none = {0};
  const ait_chat_options *o = options ? options : &none;
  ait_text text;
  ait_jrun r = {.now = o->now, .line = 1};
  r.step_limit = o->max_steps ? o->max_steps : 20000000;
  r.out_limit = o->max_output ? o->max_output : (size_t)64 << 20;
  ait_arena_init(&r.arena, a);
  r.arena.limit_bytes = o->max_memory ? o->max_memory : (size_t)256 << 20;
  ait_text_init(&text, a);
  ait_status status = render(&r, t, variables, size, &text);
  char *copy = status ? NULL : ait_alloc(a, text.length + 1, 1);
  if (!status && !copy) status = AIT_OOM();
  if (copy) {
    if (text.length) memcpy(copy, text.data, text.length);
    copy[text.length] = 0;
    *out = copy;
    *out_size = text.length;
  }
  ait_text_deinit(&text);
  ait_arena_deinit(&r.arena);
  return ait_error_context(status, "chat template");
}
