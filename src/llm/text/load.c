/* tokenizer.json to a tokenizer: the document, fields with errors that name them, added tokens. */
#include "llm/text/tokenizer.h"

enum { MAX_PARTS = 256, MAX_SEQUENCE_DEPTH = 16 };

/* ---- fields --------------------------------------------------------------------------------------------------------------------------*/
static ait_status bad(const char *where, const char *name, const char *what) {
  return ait_error(AIT_CODE_INVALID_MODEL, "%s.%s: %s", where, name, what);
}

ait_span ait_span_copy(ait_tokenizer *t, const char *text, size_t size) {
  return (ait_span){ait_arena_strdup(&t->arena, text, size), (uint32_t)size};
}

ait_status ait_field_bool(const ait_json *json, const char *where, const char *name, bool *out) {
  const ait_json *m = ait_json_get(json, name);
  if (!m) return AIT_OK;
  if (m->kind != AIT_JSON_BOOL) return bad(where, name, "true or false expected");
  *out = m->as.b;
  return AIT_OK;
}

ait_status ait_field_string(ait_tokenizer *t, const ait_json *json, const char *where, const char *name, bool required, ait_span *out) {
  const ait_json *m = ait_json_get(json, name);
  if (!m && !required) return AIT_OK;
  if (!m || m->kind != AIT_JSON_STRING) return bad(where, name, "a string expected");
  *out = ait_span_copy(t, m->as.string, m->count);
  return out->data ? AIT_OK : AIT_OOM();
}

ait_status ait_field_int(const ait_json *json, const char *where, const char *name, bool required, int64_t low, int64_t *out) {
  const ait_json *m = ait_json_get(json, name);
  if (!m && !required) return AIT_OK;
  if (!m || m->kind != AIT_JSON_INT) return bad(where, name, "an integer expected");
  if (m->as.i < low || m->as.i > INT32_MAX) return bad(where, name, "out of range");
  *out = m->as.i;
  return AIT_OK;
}

ait_status ait_field_char(const ait_json *json, const char *where, const char *name, uint32_t *out) {
  const ait_json *m = ait_json_get_kind(json, name, AIT_JSON_STRING);
  if (!m || !m->count || ait_utf8_read(m->as.string, out) != m->count) return bad(where, name, "one character expected");
  return AIT_OK;
}

ait_status ait_field_pattern(ait_tokenizer *t, const ait_json *json, const char *where, ait_pattern *out) {
  const ait_json *m = ait_json_get_kind(json, "pattern", AIT_JSON_OBJECT);
  const ait_json *literal = ait_json_get_kind(m, "String", AIT_JSON_STRING), *regex = ait_json_get_kind(m, "Regex", AIT_JSON_STRING);
  if (!m || m->count != 1 || (!literal && !regex)) return bad(where, "pattern", "{\"String\": …} or {\"Regex\": …} expected");
  if (regex)
    return ait_error_context(ait_regex_compile_onig(t->allocator, regex->as.string, regex->count, &out->regex), "%s.pattern", where);
  if (!literal->count) return ait_regex_compile(t->allocator, "", 0, &out->regex); /* matches between all characters */
  out->literal = ait_span_copy(t, literal->as.string, literal->count);
  return out->literal.data ? AIT_OK : AIT_OOM();
}

/* ---- lists of parts ------------------------------------------------------------------------------------------------------------------*/
ait_status ait_part_list_add(ait_tokenizer *t, ait_part_list *parts, ait_part part) {
  ait_status status = AIT_OK;
  if (parts->count == MAX_PARTS) status = ait_error(AIT_CODE_LIMIT, "more than %d parts in a sequence", MAX_PARTS);
  if (!status) status = ait_grow(t->allocator, (void **)&parts->items, &parts->capacity, parts->count + 1, sizeof *parts->items);
  if (status) ait_regex_destroy(part.pattern.regex);
  else parts->items[parts->count++] = part;
  return status;
}

void ait_part_list_deinit(ait_tokenizer *t, ait_part_list *parts) {
  for (size_t i = 0; i < parts->count; ++i) ait_regex_destroy(parts->items[i].pattern.regex);
  ait_free(t->allocator, parts->items, parts->capacity * sizeof *parts->items);
}

typedef struct walk {
  ait_tokenizer *t;
  const char *where, *list;
  ait_part_reader read;
} walk;

static ait_status walk_part(const walk *w, const ait_json *json, int depth) {
  const char *type = ait_json_get_string(json, "type");
  if (!json) return AIT_OK;
  if (!type) return ait_error(AIT_CODE_INVALID_MODEL, "%s.type: a string expected", w->where);
  if (strcmp(type, "Sequence") != 0) return w->read(w->t, json, type);
  const ait_json *list = ait_json_get_kind(json, w->list, AIT_JSON_ARRAY);
  if (!list) return ait_error(AIT_CODE_INVALID_MODEL, "%s.%s: a list expected", w->where, w->list);
  if (depth == MAX_SEQUENCE_DEPTH) return ait_error(AIT_CODE_LIMIT, "%s: sequences nested too deeply", w->where);
  for (uint32_t i = 0; i < list->count; ++i) AIT_TRY(walk_part(w, &list->as.items[i], depth + 1));
  return AIT_OK;
}

ait_status ait_walk_parts(ait_tokenizer *t, const ait_json *json, const char *where, const char *list, ait_part_reader read) {
  walk w = {t, where, list, read};
  return walk_part(&w, json, 0);
}

/* ---- added tokens
 * ----------------------------------------------------------------------------------------------------------------------*/
static ait_status read_added(ait_tokenizer *t, const ait_json *json, ait_added_token *out) {
  static const char where[] = "added_tokens[]";
  AIT_TRY(ait_field_string(t, json, where, "content", true, &out->content));
  AIT_TRY(ait_field_bool(json, where, "single_word", &out->single_word));
  AIT_TRY(ait_field_bool(json, where, "lstrip", &out->lstrip));
  AIT_TRY(ait_field_bool(json, where, "rstrip", &out->rstrip));
  out->normalized = true;
  AIT_TRY(ait_field_bool(json, where, "special", &out->special));
  AIT_TRY(ait_field_bool(json, where, "normalized", &out->normalized));
  out->normalized_form = out->content;
  if (out->normalized && out->content.size) AIT_TRY(ait_normalize_whole(t, out->content.data, out->content.size, &out->normalized_form));
  return AIT_OK;
}

static ait_status build_added_trie(ait_tokenizer *t, bool normalized, ait_trie *out) {
  size_t bytes = t->added_count * sizeof(ait_trie_key), count = 0;
  ait_trie_key *keys = ait_alloc(t->allocator, bytes, _Alignof(ait_trie_key));
  if (!keys) return AIT_OOM();
  for (size_t i = 0; i < t->added_count; ++i) {
    const ait_added_token *a = &t->added[i];
    ait_span text = normalized ? a->normalized_form : a->content;
    if (a->normalized == normalized && text.size && t->added_by_id[a->id] == a)
      keys[count++] = (ait_trie_key){text.data, text.size, (int32_t)i};
  }
  ait_status status = ait_trie_build(&t->arena, keys, count, out);
  ait_free(t->allocator, keys, bytes);
  return status;
}

/* Ids as the library gives them: the vocabulary's for what is in it, else the next free ones; the file's "id" is not asked. */
static ait_status place_added(ait_tokenizer *t) {
  int64_t next = t->model.vocab.count;
  for (size_t i = 0; i < t->added_count; ++i) {
    ait_added_token *a = &t->added[i];
    if (!a->content.size) continue;
    int32_t known = ait_vocab_find(&t->added_vocab, a->content.data, a->content.size);
    if (known < 0) known = ait_vocab_find(&t->model.vocab, a->content.data, a->content.size);
    a->id = known >= 0 ? known : (int32_t)next++;
    AIT_TRY(ait_vocab_add(&t->added_vocab, a->content.data, a->content.size, a->id));
    if (a->special) AIT_TRY(ait_vocab_add(&t->specials, a->content.data, a->content.size, a->id));
  }
  return AIT_OK;
}

ait_status ait_load_added(ait_tokenizer *t, const ait_json *json) {
  if (json && json->kind != AIT_JSON_ARRAY) return ait_error(AIT_CODE_INVALID_MODEL, "added_tokens: a list expected");
  size_t count = json ? json->count : 0;
  t->added = AIT_ARENA_ARRAY(&t->arena, ait_added_token, count + 1);
  if (!t->added) return AIT_OOM();
  memset(t->added, 0, (count + 1) * sizeof *t->added);
  for (size_t i = 0; i < count; ++i) AIT_TRY(read_added(t, &json->as.items[i], &t->added[i]));
  t->added_count = count;
  AIT_TRY(ait_vocab_init(&t->added_vocab, &t->arena, count));
  AIT_TRY(ait_vocab_init(&t->specials, &t->arena, count));
  AIT_TRY(place_added(t));
  t->added_by_id = AIT_ARENA_ARRAY(&t->arena, const ait_added_token *, (size_t)t->added_vocab.id_limit + 1);
  if (!t->added_by_id) return AIT_OOM();
  memset(t->added_by_id, 0, ((size_t)t->added_vocab.id_limit + 1) * sizeof *t->added_by_id);
  for (size_t i = 0; i < count; ++i) {
    if (t->added[i].content.size) t->added_by_id[t->added[i].id] = &t->added[i];
  }
  AIT_TRY(build_added_trie(t, false, &t->added_raw));
  return build_added_trie(t, true, &t->added_normalized);
}

/* ---- the document
 * ----------------------------------------------------------------------------------------------------------------------*/
static bool any_single_word(const ait_tokenizer *t) {
  for (size_t i = 0; i < t->added_count; ++i) {
    if (t->added[i].single_word) return true;
  }
  return false;
}

static ait_status load_document(ait_tokenizer *t, const ait_json *json) {
  static const char word_start[] = "\\A[" AIT_RX_WORD "\\x{200C}\\x{200D}]";
  const char *version = ait_json_get_string(json, "version");
  if (!json || json->kind != AIT_JSON_OBJECT) return ait_error(AIT_CODE_INVALID_MODEL, "an object expected");
  if (version && strcmp(version, "1.0") != 0) return ait_error(AIT_CODE_UNSUPPORTED, "version: '%s' is not known, only '1.0'", version);
  AIT_TRY(ait_load_normalizer(t, ait_json_get(json, "normalizer")));
  AIT_TRY(ait_load_pre_tokenizer(t, ait_json_get(json, "pre_tokenizer")));
  AIT_TRY(ait_load_post(t, ait_json_get(json, "post_processor")));
  AIT_TRY(ait_load_decoder(t, ait_json_get(json, "decoder")));
  AIT_TRY(ait_load_model(t, ait_json_get(json, "model")));
  AIT_TRY(ait_load_added(t, ait_json_get(json, "added_tokens")));
  if (any_single_word(t)) AIT_TRY(ait_regex_compile(t->allocator, word_start, sizeof word_start - 1, &t->word_start));
  AIT_TRY(ait_field_int(ait_json_get_kind(json, "truncation", AIT_JSON_OBJECT), "truncation", "max_length", false, 0, &t->max_length));
  t->vocab_size = t->model.vocab.id_limit > t->added_vocab.id_limit ? t->model.vocab.id_limit : t->added_vocab.id_limit;
  return AIT_OK;
}

ait_status ait_tokenizer_parse(ait_allocator a, const char *text, size_t size, ait_tokenizer **out) {
  const ait_json *json = NULL;
  ait_arena arena;
  ait_tokenizer *t = ait_alloc_zero(a, sizeof *t, _Alignof(ait_tokenizer));
  if (!t) return AIT_OOM();
  t->allocator = a;
  ait_arena_init(&t->arena, a);
  ait_arena_init(&arena, a);
  arena.limit_bytes = size > SIZE_MAX / 64 ? SIZE_MAX : size * 32 + (1 << 20); /* a JSON value has at least two bytes */
  t->arena.limit_bytes = size > SIZE_MAX / 512 ? SIZE_MAX : size * 256 + (8 << 20);
  ait_status status =
      size > (size_t)1 << 30 ? ait_error(AIT_CODE_LIMIT, "more than 1 GiB") : ait_json_parse_with(&arena, text, size, AIT_JSON_NUL, &json);
  t->json = text;
  if (!status) status = load_document(t, json);
  t->json = NULL;
  ait_arena_deinit(&arena);
  if (status) ait_tokenizer_destroy(t);
  else *out = t;
  return ait_error_context(status, "cannot read tokenizer.json");
}

ait_status ait_tokenizer_load(ait_allocator a, const char *path, ait_tokenizer **out) {
  ait_file_map *map = NULL;
  ait_text name;
  ait_text_init(&name, a);
  ait_text_printf(&name, "%s%s", path, ait_ends_with(path, ".json") ? "" : "/tokenizer.json");
  ait_status status = name.failed ? AIT_OOM() : ait_file_map_open(a, name.data, &map);
  if (!status) {
    status = ait_tokenizer_parse(a, (const char *)ait_file_map_data(map), ait_file_map_size(map), out);
    status = ait_error_context(status, "'%s'", name.data);
    ait_file_map_release(map);
  }
  ait_text_deinit(&name);
  return status;
}

void ait_tokenizer_destroy(ait_tokenizer *t) {
  if (!t) return;
  ait_part_list_deinit(t, &t->normalizer);
  ait_part_list_deinit(t, &t->pre_tokenizer);
  ait_part_list_deinit(t, &t->decoder);
  ait_regex_destroy(t->word_start);
  ait_regex_destroy(t->byte_level_regex);
  ait_scratch_destroy(atomic_load(&t->spare));
  ait_arena_deinit(&t->arena);
  ait_free(t->allocator, t, sizeof *t);
}

/* ---- questions
 * ---------------------------------------------------------------------------------------------------------------------------*/
int32_t ait_tokenizer_vocab_size(const ait_tokenizer *t) { return t->vocab_size; }
int64_t ait_tokenizer_max_length(const ait_tokenizer *t) { return t->max_length; }

int32_t ait_tokenizer_id(const ait_tokenizer *t, const char *token, size_t size) {
  int32_t id = ait_vocab_find(&t->added_vocab, token, size);
  return id >= 0 ? id : ait_vocab_find(&t->model.vocab, token, size);
}

const char *ait_tokenizer_token(const ait_tokenizer *t, int32_t id, size_t *out_size) {
  const ait_added_token *added = id >= 0 && id < t->added_vocab.id_limit ? t->added_by_id[id] : NULL;
  const ait_vocab_entry *entry = added ? NULL : ait_vocab_at(&t->model.vocab, id);
  if (!added && !entry) return NULL;
  *out_size = added ? added->content.size : entry->size;
  return added ? added->content.data : entry->text;
}

bool ait_tokenizer_is_special(const ait_tokenizer *t, int32_t id) {
  size_t size;
  const char *text = ait_tokenizer_token(t, id, &size);
  return text && ait_vocab_find(&t->specials, text, size) >= 0;
}
