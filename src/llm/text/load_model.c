/* The "model" of tokenizer.json: vocabulary, merges, scores. */
#include "llm/text/tokenizer.h"
#include <stdio.h>

static ait_status bad_model(const char *name, const char *what) { return ait_error(AIT_CODE_INVALID_MODEL, "model.%s: %s", name, what); }

/* {"token": id}. The document goes away: all strings are copied, in one block. */
static ait_status read_vocab(ait_tokenizer *t, const ait_json *json) {
  const ait_json *vocab = ait_json_get_kind(json, "vocab", AIT_JSON_OBJECT);
  size_t bytes = 1;
  if (!vocab) return bad_model("vocab", "an object expected");
  for (uint32_t i = 0; i < vocab->count; ++i) bytes += vocab->as.items[i].key_size;
  char *block = ait_arena_alloc(&t->arena, bytes, 1);
  if (!block) return AIT_OOM();
  AIT_TRY(ait_vocab_init(&t->model.vocab, &t->arena, vocab->count));
  for (uint32_t i = 0; i < vocab->count; ++i) {
    const ait_json *m = &vocab->as.items[i];
    if (m->kind != AIT_JSON_INT) return bad_model("vocab", "an id is no integer");
    memcpy(block, m->key, m->key_size);
    AIT_TRY(ait_error_context(ait_vocab_add(&t->model.vocab, block, m->key_size, m->as.i), "model.vocab"));
    block += m->key_size;
  }
  return ait_error_context(ait_vocab_seal(&t->model.vocab), "model.vocab");
}

static void find_byte_ids(ait_token_model *m) {
  static const char digits[] = "0123456789ABCDEF";
  for (int b = 0; b < 256; ++b) {
    char name[7] = {'<', '0', 'x', digits[b >> 4], digits[b & 15], '>', 0};
    m->byte_ids[b] = ait_vocab_find(&m->vocab, name, 6);
  }
}

static ait_status read_unknown(ait_tokenizer *t, const ait_json *json, bool required) {
  ait_token_model *m = &t->model;
  AIT_TRY(ait_field_string(t, json, "model", "unk_token", required, &m->unk_token));
  m->has_unk = m->unk_token.data != NULL;
  m->unk_id = m->has_unk ? ait_vocab_find(&m->vocab, m->unk_token.data, m->unk_token.size) : -1;
  return AIT_OK;
}

/* ---- BPE -----------------------------------------------------------------------------------------------------------------------------*/
/* "left right" or ["left", "right"]. */
static ait_status split_merge(const ait_json *item, ait_span *left, ait_span *right) {
  if (item->kind == AIT_JSON_ARRAY && item->count == 2 && item->as.items[0].kind == AIT_JSON_STRING &&
      item->as.items[1].kind == AIT_JSON_STRING) {
    *left = (ait_span){item->as.items[0].as.string, item->as.items[0].count};
    *right = (ait_span){item->as.items[1].as.string, item->as.items[1].count};
    return AIT_OK;
  }
  const char *space = item->kind == AIT_JSON_STRING ? memchr(item->as.string, ' ', item->count) : NULL;
  const char *end = item->as.string + item->count;
  if (!space || memchr(space + 1, ' ', (size_t)(end - space - 1))) return bad_model("merges", "an entry has not two tokens");
  *left = (ait_span){item->as.string, (uint32_t)(space - item->as.string)};
  *right = (ait_span){space + 1, (uint32_t)(end - space - 1)};
  return AIT_OK;
}

static void put_merge(ait_token_model *m, int32_t left, int32_t right, uint32_t rank, int32_t id) {
  uint64_t pair = (uint64_t)(uint32_t)left << 32 | (uint32_t)right, slot = pair * 0x9E3779B97F4A7C15u >> 20 & m->merge_mask;
  while (m->merges[slot].pair != UINT64_MAX && m->merges[slot].pair != pair) slot = (slot + 1) & m->merge_mask;
  m->merges[slot] = (ait_merge){pair, rank, id}; /* of equal pairs the last one counts */
}

static int32_t token_of(const ait_vocab *v, ait_span s) { return ait_vocab_find(v, s.data, s.size); }

static ait_status read_merge(ait_tokenizer *t, const ait_json *item, uint32_t rank, ait_text *joined) {
  ait_token_model *m = &t->model;
  ait_span left, right;
  AIT_TRY(split_merge(item, &left, &right));
  size_t prefix = m->has_prefix ? m->prefix.size : 0;
  if (right.size < prefix) return bad_model("merges", "a token is shorter than continuing_subword_prefix");
  joined->length = 0;
  ait_text_append(joined, left.data, left.size);
  ait_text_append(joined, right.data + prefix, right.size - prefix);
  if (joined->failed) return AIT_OOM();
  int32_t a = token_of(&m->vocab, left), b = token_of(&m->vocab, right), c = ait_vocab_find(&m->vocab, joined->data, joined->length);
  if (a < 0 || b < 0 || c < 0)
    return ait_error(AIT_CODE_INVALID_MODEL, "model.merges[%u]: '%.*s' is not in the vocabulary", rank,
                     a < 0   ? (int)left.size
                     : b < 0 ? (int)right.size
                             : (int)joined->length,
                     a < 0   ? left.data
                     : b < 0 ? right.data
                             : joined->data);
  put_merge(m, a, b, rank, c);
  return AIT_OK;
}

static ait_status read_merges(ait_tokenizer *t, const ait_json *json) {
  ait_token_model *m = &t->model;
  const ait_json *merges = ait_json_get_kind(json, "merges", AIT_JSON_ARRAY);
  if (!merges) return bad_model("merges", "a list expected");
  size_t slots = 16;
  while (slots < (size_t)merges->count * 2) slots *= 2;
  m->merges = AIT_ARENA_ARRAY(&t->arena, ait_merge, slots);
  if (!m->merges) return AIT_OOM();
  memset(m->merges, 0xFF, slots * sizeof *m->merges);
  m->merge_mask = slots - 1;
  ait_text joined;
  ait_text_init(&joined, t->allocator);
  ait_status status = AIT_OK;
  uint32_t rank = 0;
  for (uint32_t i = 0; i < merges->count && !status; ++i) {
    const ait_json *item = &merges->as.items[i];
    if (item->kind == AIT_JSON_STRING && ait_starts_with(item->as.string, "#version")) continue;
    status = read_merge(t, item, rank++, &joined);
  }
  ait_text_deinit(&joined);
  return status;
}

static ait_status find_char_ids(ait_tokenizer *t) {
  ait_token_model *m = &t->model;
  if (m->has_prefix || m->has_suffix || m->vocab.count < 1000) return AIT_OK;
  m->char_ids = AIT_ARENA_ARRAY(&t->arena, int32_t, AIT_CHAR_IDS);
  if (!m->char_ids) return AIT_OOM();
  memset(m->char_ids, 0xFF, AIT_CHAR_IDS * sizeof *m->char_ids);
  for (uint32_t i = 0; i < m->vocab.count; ++i) {
    const ait_vocab_entry *e = &m->vocab.entries[i];
    uint32_t code;
    if (e->size && e->size < 4 && ait_utf8_step(e->text, e->size, &code) == (int)e->size) m->char_ids[code] = e->id;
  }
  return AIT_OK;
}

static ait_status load_bpe(ait_tokenizer *t, const ait_json *json) {
  ait_token_model *m = &t->model;
  const ait_json *dropout = ait_json_get(json, "dropout");
  if (dropout && !(dropout->kind == AIT_JSON_INT && dropout->as.i == 0) && !(dropout->kind == AIT_JSON_FLOAT && dropout->as.f == 0))
    return ait_error_hint(ait_error(AIT_CODE_UNSUPPORTED, "model.dropout: tokens would be drawn at random"), "set \"dropout\" to null");
  AIT_TRY(read_vocab(t, json));
  AIT_TRY(read_unknown(t, json, false));
  AIT_TRY(ait_field_string(t, json, "model", "continuing_subword_prefix", false, &m->prefix));
  AIT_TRY(ait_field_string(t, json, "model", "end_of_word_suffix", false, &m->suffix));
  m->has_prefix = m->prefix.size > 0;
  m->has_suffix = m->suffix.size > 0;
  AIT_TRY(ait_field_bool(json, "model", "fuse_unk", &m->fuse_unk));
  AIT_TRY(ait_field_bool(json, "model", "byte_fallback", &m->byte_fallback));
  AIT_TRY(ait_field_bool(json, "model", "ignore_merges", &m->ignore_merges));
  AIT_TRY(read_merges(t, json));
  return find_char_ids(t);
}

/* ---- Unigram
 * ---------------------------------------------------------------------------------------------------------------------------*/
/* The number as the library reads it: digits as a 64-bit integer (those that do not fit are dropped), then one multiplication or division
 * by a power of ten. That may be off by one in the last bit from the right value; equally good paths are told apart by such bits. */
static double score_of(const char *p) {
  uint64_t digits = 0, next;
  int64_t exponent = 0, written = 0;
  bool negative = *p == '-', point = false, full = false;
  for (p += negative; (*p >= '0' && *p <= '9') || *p == '.'; ++p) {
    if (*p == '.') {
      point = true;
      continue;
    }
    full |= ait_mul_overflows(digits, 10u, &next) || ait_add_overflows(next, (uint64_t)(*p - '0'), &next);
    if (!full) digits = next;
    exponent += full ? !point : point ? -1 : 0;
  }
  if (*p == 'e' || *p == 'E') {
    bool down = p[1] == '-';
    for (p += 1 + (p[1] == '-' || p[1] == '+'); *p >= '0' && *p <= '9' && written < 100000; ++p) written = written * 10 + (*p - '0');
    exponent += down ? -written : written;
  }
  double value = (double)digits;
  for (; exponent < -308 && value != 0; exponent += 308) value /= 1e308;
  int64_t power = exponent < 0 ? -exponent : exponent;
  char text[32];
  snprintf(text, sizeof text, "1e%d", (int)(power > 308 ? 308 : power));
  value = exponent < 0 ? value / ait_parse_double(text, NULL) : value * ait_parse_double(text, NULL);
  return negative ? -value : value;
}

static ait_status read_scored(ait_tokenizer *t, const ait_json *item, uint32_t id) {
  ait_token_model *m = &t->model;
  if (item->kind != AIT_JSON_ARRAY || item->count != 2 || item->as.items[0].kind != AIT_JSON_STRING)
    return bad_model("vocab", "[piece, score] expected");
  const ait_json *piece = &item->as.items[0], *score = &item->as.items[1];
  if (score->kind != AIT_JSON_INT && score->kind != AIT_JSON_FLOAT) return bad_model("vocab", "a score is no number");
  double value = score->kind == AIT_JSON_INT ? (double)score->as.i : score->as.f;
  if (!(value > -1e300 && value < 1e300)) return bad_model("vocab", "a score is not finite");
  m->scores[id] = score->kind == AIT_JSON_INT ? value : score_of(t->json + score->count);
  if (m->scores[id] < m->min_score) m->min_score = m->scores[id];
  const char *text = ait_arena_strdup(&t->arena, piece->as.string, piece->count);
  return text ? ait_vocab_add(&m->vocab, text, piece->count, id) : AIT_OOM();
}

/* Ids are places in the list; of equal pieces the last place counts, and each place decodes to its piece. */
static ait_status load_unigram(ait_tokenizer *t, const ait_json *json) {
  ait_token_model *m = &t->model;
  const ait_json *vocab = ait_json_get_kind(json, "vocab", AIT_JSON_ARRAY);
  int64_t unknown = -1;
  if (!vocab) return bad_model("vocab", "a list expected");
  m->scores = AIT_ARENA_ARRAY(&t->arena, double, (size_t)vocab->count + 1);
  if (!m->scores) return AIT_OOM();
  m->min_score = 1e300;
  AIT_TRY(ait_vocab_init(&m->vocab, &t->arena, vocab->count));
  for (uint32_t i = 0; i < vocab->count; ++i) AIT_TRY(read_scored(t, &vocab->as.items[i], i));
  AIT_TRY(ait_vocab_seal(&m->vocab));
  AIT_TRY(ait_field_int(json, "model", "unk_id", false, 0, &unknown));
  if (unknown >= (int64_t)vocab->count) return bad_model("unk_id", "not in the vocabulary");
  m->unk_id = (int32_t)unknown;
  AIT_TRY(ait_field_bool(json, "model", "byte_fallback", &m->byte_fallback));
  size_t bytes = m->vocab.count * sizeof(ait_trie_key), count = 0;
  ait_trie_key *keys = ait_alloc(t->allocator, bytes, _Alignof(ait_trie_key));
  if (!keys) return AIT_OOM();
  for (uint32_t i = 0; i < m->vocab.count; ++i) {
    const ait_vocab_entry *e = &m->vocab.entries[i];
    if (e->size) keys[count++] = (ait_trie_key){e->text, e->size, e->id};
  }
  ait_status status = ait_trie_build(&t->arena, keys, count, &m->trie);
  ait_free(t->allocator, keys, bytes);
  return status;
}

/* ---- words
 * -----------------------------------------------------------------------------------------------------------------------------*/
static ait_status load_words(ait_tokenizer *t, const ait_json *json) {
  ait_token_model *m = &t->model;
  AIT_TRY(read_vocab(t, json));
  AIT_TRY(read_unknown(t, json, true));
  if (m->kind == AIT_WORDLEVEL) return AIT_OK;
  m->max_chars = 100;
  AIT_TRY(ait_field_string(t, json, "model", "continuing_subword_prefix", true, &m->prefix));
  return ait_field_int(json, "model", "max_input_chars_per_word", true, 0, &m->max_chars);
}

/* Files of old releases have no type: what the members say. */
static const char *model_type(const ait_json *json) {
  const char *type = ait_json_get_string(json, "type");
  if (type) return type;
  if (ait_json_get(json, "merges")) return "BPE";
  if (ait_json_get(json, "max_input_chars_per_word")) return "WordPiece";
  return ait_json_get_kind(json, "vocab", AIT_JSON_ARRAY) ? "Unigram" : "WordLevel";
}

ait_status ait_load_model(ait_tokenizer *t, const ait_json *json) {
  static const struct {
    const char *name;
    ait_model_kind kind;
    ait_status (*load)(ait_tokenizer *, const ait_json *);
  } kinds[] = {{"BPE", AIT_BPE, load_bpe},
               {"Unigram", AIT_UNIGRAM, load_unigram},
               {"WordPiece", AIT_WORDPIECE, load_words},
               {"WordLevel", AIT_WORDLEVEL, load_words}};
  if (!json || json->kind != AIT_JSON_OBJECT) return ait_error(AIT_CODE_INVALID_MODEL, "model: an object expected");
  const char *type = model_type(json);
  for (size_t i = 0; i < AIT_COUNT(kinds); ++i) {
    if (strcmp(type, kinds[i].name) != 0) continue;
    t->model.kind = kinds[i].kind;
    t->model.unk_id = -1;
    AIT_TRY(kinds[i].load(t, json));
    find_byte_ids(&t->model);
    return AIT_OK;
  }
  return ait_error(AIT_CODE_UNSUPPORTED, "model.type: '%.100s' is not known", type);
}
