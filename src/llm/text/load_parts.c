/* Normalizers, pre-tokenizers, decoders and post-processors of tokenizer.json. One function for each section, one case for each type. */
#include "llm/text/tokenizer.h"

static ait_status unknown_type(const char *where, const char *type) {
  return ait_error(AIT_CODE_UNSUPPORTED, "%s: type '%.100s' is not known", where, type);
}

static bool is(const char *type, const char *name) { return strcmp(type, name) == 0; }

/* ---- normalizers
 * -----------------------------------------------------------------------------------------------------------------------*/
static int base64_value(char c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  if (c >= '0' && c <= '9') return c - '0' + 52;
  return c == '+' ? 62 : c == '/' ? 63 : -1;
}

static ait_status read_base64(ait_tokenizer *t, const ait_json *json, uint8_t **out, size_t *out_size) {
  size_t n = json->count, size = 0;
  uint32_t bits = 0;
  uint8_t *data = ait_arena_alloc(&t->arena, n + 8, 8);
  if (!data) return AIT_OOM();
  while (n && json->as.string[n - 1] == '=') --n;
  for (size_t i = 0; i < n; ++i) {
    int value = base64_value(json->as.string[i]);
    if (value < 0) return ait_error(AIT_CODE_INVALID_MODEL, "normalizer.precompiled_charsmap: no base64");
    bits = bits << 6 | (uint32_t)value;
    if (i % 4) data[size++] = (uint8_t)(bits >> (6 - 2 * (i % 4)));
  }
  *out = data;
  *out_size = size;
  return AIT_OK;
}

/* 32-bit size of the trie, the trie, the replacements: little-endian, as sentencepiece writes it. */
static ait_status read_charsmap(ait_tokenizer *t, const ait_json *json, ait_charsmap *out) {
  const ait_json *m = ait_json_get_kind(json, "precompiled_charsmap", AIT_JSON_STRING);
  uint8_t *data;
  size_t size;
  uint32_t trie;
  if (!m) return ait_error(AIT_CODE_INVALID_MODEL, "normalizer.precompiled_charsmap: a string expected");
  AIT_TRY(read_base64(t, m, &data, &size));
  if (size >= 4) memcpy(&trie, data, 4);
  if (size < 4 || trie > size - 4 || trie % 4) return ait_error(AIT_CODE_INVALID_MODEL, "normalizer.precompiled_charsmap: damaged");
  *out = (ait_charsmap){(const uint32_t *)(data + 4), trie / 4, (uint32_t)(size - 4 - trie), (const char *)data + 4 + trie};
  return ait_utf8_valid(out->blob, out->blob_size)
             ? AIT_OK
             : ait_error(AIT_CODE_INVALID_MODEL, "normalizer.precompiled_charsmap: replacements are not UTF-8");
}

static ait_status add_bert(ait_tokenizer *t, const ait_json *json) {
  static const char where[] = "normalizer";
  bool clean = true, cjk = true, lower = true;
  AIT_TRY(ait_field_bool(json, where, "clean_text", &clean));
  AIT_TRY(ait_field_bool(json, where, "handle_chinese_chars", &cjk));
  AIT_TRY(ait_field_bool(json, where, "lowercase", &lower));
  bool accents = lower;
  AIT_TRY(ait_field_bool(json, where, "strip_accents", &accents));
  if (clean) AIT_TRY(ait_part_list_add(t, &t->normalizer, (ait_part){.kind = AIT_NORM_BERT_CLEAN}));
  if (cjk) AIT_TRY(ait_part_list_add(t, &t->normalizer, (ait_part){.kind = AIT_NORM_BERT_CJK}));
  if (accents) AIT_TRY(ait_part_list_add(t, &t->normalizer, (ait_part){.kind = AIT_NORM_FORM, .form = AIT_NFD}));
  if (accents) AIT_TRY(ait_part_list_add(t, &t->normalizer, (ait_part){.kind = AIT_NORM_BERT_ACCENTS}));
  return lower ? ait_part_list_add(t, &t->normalizer, (ait_part){.kind = AIT_NORM_LOWERCASE}) : AIT_OK;
}

static ait_status read_normalizer(ait_tokenizer *t, const ait_json *json, const char *type) {
  static const char where[] = "normalizer";
  static const struct {
    const char *name;
    ait_part part;
  } plain[] = {{"NFC", {.kind = AIT_NORM_FORM, .form = AIT_NFC}},
               {"NFD", {.kind = AIT_NORM_FORM, .form = AIT_NFD}},
               {"NFKC", {.kind = AIT_NORM_FORM, .form = AIT_NFKC}},
               {"NFKD", {.kind = AIT_NORM_FORM, .form = AIT_NFKD}},
               {"Lowercase", {.kind = AIT_NORM_LOWERCASE}},
               {"StripAccents", {.kind = AIT_NORM_STRIP_ACCENTS}},
               {"Nmt", {.kind = AIT_NORM_NMT}},
               {"ByteLevel", {.kind = AIT_NORM_BYTE_LEVEL}}};
  for (size_t i = 0; i < AIT_COUNT(plain); ++i) {
    if (is(type, plain[i].name)) return ait_part_list_add(t, &t->normalizer, plain[i].part);
  }
  ait_part p = {0};
  if (is(type, "BertNormalizer")) return add_bert(t, json);
  if (is(type, "Strip")) {
    p.kind = AIT_NORM_STRIP;
    p.left = p.right = true;
    AIT_TRY(ait_field_bool(json, where, "strip_left", &p.left));
    AIT_TRY(ait_field_bool(json, where, "strip_right", &p.right));
  } else if (is(type, "Prepend")) {
    p.kind = AIT_NORM_PREPEND;
    AIT_TRY(ait_field_string(t, json, where, "prepend", true, &p.text));
  } else if (is(type, "Precompiled")) {
    p.kind = AIT_NORM_PRECOMPILED;
    AIT_TRY(read_charsmap(t, json, &p.charsmap));
  } else if (is(type, "Replace")) {
    p.kind = AIT_NORM_REPLACE;
    AIT_TRY(ait_field_string(t, json, where, "content", true, &p.text));
    AIT_TRY(ait_field_pattern(t, json, where, &p.pattern));
  } else {
    return unknown_type(where, type);
  }
  return ait_part_list_add(t, &t->normalizer, p);
}

ait_status ait_load_normalizer(ait_tokenizer *t, const ait_json *json) {
  return ait_walk_parts(t, json, "normalizer", "normalizers", read_normalizer);
}

/* ---- pre-tokenizers
 * ----------------------------------------------------------------------------------------------------------------------*/
static ait_status read_behavior(const ait_json *json, bool required, ait_behavior *out) {
  static const char *const names[] = {"Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous"};
  const char *text = ait_json_get_string(json, "behavior");
  if (!text && !required) return AIT_OK;
  for (int i = 0; text && i < (int)AIT_COUNT(names); ++i) {
    if (is(text, names[i])) return *out = (ait_behavior)i, AIT_OK;
  }
  return ait_error(AIT_CODE_INVALID_MODEL, "pre_tokenizer.behavior: '%.100s' is not known", text ? text : "");
}

static ait_status read_metaspace(ait_tokenizer *t, const ait_json *json, const char *where, ait_part *p) {
  static const char *const names[] = {"first", "never", "always"};
  const char *scheme = ait_json_get_string(json, "prepend_scheme");
  int found = scheme ? -1 : AIT_PREPEND_ALWAYS;
  bool prefix = true;
  AIT_TRY(ait_field_char(json, where, "replacement", &p->code));
  AIT_TRY(ait_field_string(t, json, where, "replacement", true, &p->text));
  for (int i = 0; scheme && i < (int)AIT_COUNT(names); ++i) {
    if (is(scheme, names[i])) found = i;
  }
  if (found < 0) return ait_error(AIT_CODE_INVALID_MODEL, "%s.prepend_scheme: '%.100s' is not known", where, scheme);
  p->prepend = (ait_prepend)found;
  AIT_TRY(ait_field_bool(json, where, "add_prefix_space", &prefix));
  if (!prefix && scheme && p->prepend != AIT_PREPEND_NEVER)
    return ait_error(AIT_CODE_INVALID_MODEL, "%s.add_prefix_space does not agree with prepend_scheme", where);
  if (!prefix) p->prepend = AIT_PREPEND_NEVER;
  p->split = true;
  return ait_field_bool(json, where, "split", &p->split);
}

static ait_status read_byte_level(ait_tokenizer *t, const ait_json *json, ait_part *p) {
  static const char gpt2[] = "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^" AIT_RX_SPACE "\\p{L}\\p{N}]+|[" AIT_RX_SPACE
                             "]+(?![^" AIT_RX_SPACE "])|[" AIT_RX_SPACE "]+";
  p->prefix_space = p->use_regex = true;
  AIT_TRY(ait_field_bool(json, "pre_tokenizer", "add_prefix_space", &p->prefix_space));
  AIT_TRY(ait_field_bool(json, "pre_tokenizer", "use_regex", &p->use_regex));
  if (p->use_regex && !t->byte_level_regex) return ait_regex_compile(t->allocator, gpt2, sizeof gpt2 - 1, &t->byte_level_regex);
  return AIT_OK;
}

static const char *const scripts[] = {
#include "llm/text/scripts.inc"
};

/* Runs of one script. Kana count as Han; a space and characters without a script belong to what is before them, and to
 * nothing at the start. */
static ait_status compile_scripts(ait_tokenizer *t, ait_regex **out) {
  ait_text text;
  ait_text_init(&text, t->allocator);
  ait_text_printf(&text, "(?(DEFINE)(?<any>[ \\p{sc:Unknown}");
  ait_young_class(&text);
  ait_text_printf(&text, "]))(?!(?&any))(?:[\\p{sc:Han}\\p{sc:Hiragana}\\p{sc:Katakana}\\x{30FC}]"
                         "(?:(?&any)|[\\p{sc:Han}\\p{sc:Hiragana}\\p{sc:Katakana}\\x{30FC}])*+");
  for (size_t i = 0; i < AIT_COUNT(scripts); ++i)
    ait_text_printf(&text, "|\\p{sc:%s}(?:(?&any)|(?!\\x{30FC})\\p{sc:%s})*+", scripts[i], scripts[i]);
  ait_text_printf(&text, ")");
  ait_status status = text.failed ? AIT_OOM() : ait_regex_compile(t->allocator, text.data, text.length, out);
  ait_text_deinit(&text);
  return status;
}

static ait_status read_split(ait_tokenizer *t, const ait_json *json, ait_part *p) {
  AIT_TRY(read_behavior(json, true, &p->behavior));
  AIT_TRY(ait_field_bool(json, "pre_tokenizer", "invert", &p->invert));
  return ait_field_pattern(t, json, "pre_tokenizer", &p->pattern);
}

static ait_status read_pre_tokenizer(ait_tokenizer *t, const ait_json *json, const char *type) {
  static const char where[] = "pre_tokenizer";
  static const char words[] = "[" AIT_RX_WORD "\\x{200C}\\x{200D}]+|[^" AIT_RX_WORD "\\x{200C}\\x{200D}" AIT_RX_SPACE "]+";
  ait_part p = {.behavior = AIT_REMOVED};
  if (is(type, "BertPreTokenizer")) {
    AIT_TRY(ait_part_list_add(t, &t->pre_tokenizer, (ait_part){.kind = AIT_PRE_SPACE, .behavior = AIT_REMOVED}));
    p = (ait_part){.kind = AIT_PRE_PUNCTUATION, .behavior = AIT_ISOLATED};
  } else if (is(type, "ByteLevel")) {
    p.kind = AIT_PRE_BYTE_LEVEL;
    AIT_TRY(read_byte_level(t, json, &p));
  } else if (is(type, "Metaspace")) {
    p.kind = AIT_PRE_METASPACE;
    AIT_TRY(read_metaspace(t, json, where, &p));
    t->track_origin |= p.prepend == AIT_PREPEND_FIRST;
  } else if (is(type, "WhitespaceSplit")) {
    p.kind = AIT_PRE_SPACE;
  } else if (is(type, "Whitespace")) {
    p.invert = true;
    AIT_TRY(ait_regex_compile(t->allocator, words, sizeof words - 1, &p.pattern.regex));
  } else if (is(type, "Split")) {
    AIT_TRY(read_split(t, json, &p));
  } else if (is(type, "Punctuation")) {
    p.kind = AIT_PRE_PUNCTUATION;
    p.behavior = AIT_ISOLATED;
    AIT_TRY(read_behavior(json, false, &p.behavior));
  } else if (is(type, "Digits")) {
    bool individual = false;
    p.kind = AIT_PRE_NUMERIC;
    AIT_TRY(ait_field_bool(json, where, "individual_digits", &individual));
    p.behavior = individual ? AIT_ISOLATED : AIT_CONTIGUOUS;
  } else if (is(type, "CharDelimiterSplit")) {
    AIT_TRY(ait_field_char(json, where, "delimiter", &p.code));
    AIT_TRY(ait_field_string(t, json, where, "delimiter", true, &p.pattern.literal));
  } else if (is(type, "UnicodeScripts")) {
    p.invert = true;
    AIT_TRY(compile_scripts(t, &p.pattern.regex));
  } else if (is(type, "FixedLength")) {
    p.kind = AIT_PRE_FIXED_LENGTH;
    p.start = 5;
    AIT_TRY(ait_field_int(json, where, "length", false, 1, &p.start));
  } else {
    return unknown_type(where, type);
  }
  return ait_part_list_add(t, &t->pre_tokenizer, p);
}

ait_status ait_load_pre_tokenizer(ait_tokenizer *t, const ait_json *json) {
  return ait_walk_parts(t, json, "pre_tokenizer", "pretokenizers", read_pre_tokenizer);
}

/* ---- decoders
 * ----------------------------------------------------------------------------------------------------------------------------*/
static ait_status not_empty(const ait_span *text, const char *name) {
  return text->size ? AIT_OK : ait_error(AIT_CODE_UNSUPPORTED, "decoder.%s: an empty string", name);
}

static ait_status read_decoder(ait_tokenizer *t, const ait_json *json, const char *type) {
  static const char where[] = "decoder";
  ait_part p = {0};
  if (is(type, "ByteLevel")) {
    p.kind = AIT_DEC_BYTE_LEVEL;
  } else if (is(type, "ByteFallback")) {
    p.kind = AIT_DEC_BYTE_FALLBACK;
  } else if (is(type, "Fuse")) {
    p.kind = AIT_DEC_FUSE;
  } else if (is(type, "Metaspace")) {
    p.kind = AIT_DEC_METASPACE;
    AIT_TRY(read_metaspace(t, json, where, &p));
  } else if (is(type, "BPEDecoder")) {
    p.kind = AIT_DEC_BPE;
    AIT_TRY(ait_field_string(t, json, where, "suffix", true, &p.text));
    AIT_TRY(not_empty(&p.text, "suffix"));
  } else if (is(type, "WordPiece")) {
    p.kind = AIT_DEC_WORDPIECE;
    p.cleanup = true;
    AIT_TRY(ait_field_string(t, json, where, "prefix", true, &p.text));
    AIT_TRY(ait_field_bool(json, where, "cleanup", &p.cleanup));
  } else if (is(type, "CTC")) {
    p.kind = AIT_DEC_CTC;
    p.cleanup = true;
    AIT_TRY(ait_field_string(t, json, where, "pad_token", true, &p.text));
    AIT_TRY(ait_field_string(t, json, where, "word_delimiter_token", true, &p.text2));
    AIT_TRY(ait_field_bool(json, where, "cleanup", &p.cleanup));
    AIT_TRY(not_empty(&p.text, "pad_token"));
    AIT_TRY(not_empty(&p.text2, "word_delimiter_token"));
  } else if (is(type, "Strip")) {
    p.kind = AIT_DEC_STRIP;
    AIT_TRY(ait_field_char(json, where, "content", &p.code));
    AIT_TRY(ait_field_int(json, where, "start", true, 0, &p.start));
    AIT_TRY(ait_field_int(json, where, "stop", true, 0, &p.stop));
  } else if (is(type, "Replace")) {
    p.kind = AIT_DEC_REPLACE;
    AIT_TRY(ait_field_string(t, json, where, "content", true, &p.text));
    AIT_TRY(ait_field_pattern(t, json, where, &p.pattern));
  } else {
    return unknown_type(where, type);
  }
  return ait_part_list_add(t, &t->decoder, p);
}

ait_status ait_load_decoder(ait_tokenizer *t, const ait_json *json) {
  t->has_decoder = json != NULL;
  return ait_walk_parts(t, json, "decoder", "decoders", read_decoder);
}

/* ---- post-processors
 * -----------------------------------------------------------------------------------------------------------------------*/
static ait_status add_post(ait_tokenizer *t, ait_post post) {
  enum { MAX_POSTS = 16 };
  if (!t->posts) t->posts = AIT_ARENA_ARRAY(&t->arena, ait_post, MAX_POSTS);
  if (!t->posts) return AIT_OOM();
  if (t->post_count == MAX_POSTS) return ait_error(AIT_CODE_LIMIT, "post_processor: more than %d", MAX_POSTS);
  t->posts[t->post_count++] = post;
  return AIT_OK;
}

static ait_status read_ids(ait_tokenizer *t, const ait_json *list, ait_post_piece *out) {
  int32_t *ids = AIT_ARENA_ARRAY(&t->arena, int32_t, (size_t)list->count + 1);
  if (!ids) return AIT_OOM();
  for (uint32_t i = 0; i < list->count; ++i) {
    const ait_json *id = &list->as.items[i];
    if (id->kind != AIT_JSON_INT || id->as.i < 0 || id->as.i > INT32_MAX)
      return ait_error(AIT_CODE_INVALID_MODEL, "post_processor: an id is out of range");
    ids[i] = (int32_t)id->as.i;
  }
  *out = (ait_post_piece){.sequence = -1, .ids = ids, .count = list->count, .type = out->type};
  return AIT_OK;
}

static ait_status read_piece(ait_tokenizer *t, const ait_json *json, const ait_json *specials, ait_post_piece *out) {
  const ait_json *sequence = ait_json_get_kind(json, "Sequence", AIT_JSON_OBJECT),
                 *special = ait_json_get_kind(json, "SpecialToken", AIT_JSON_OBJECT);
  const char *name = ait_json_get_string(sequence ? sequence : special, "id");
  int64_t type = 0;
  if (!name) return ait_error(AIT_CODE_INVALID_MODEL, "post_processor: a piece of the template has no id");
  AIT_TRY(ait_field_int(sequence ? sequence : special, "post_processor", "type_id", false, 0, &type));
  out->type = (int32_t)type;
  if (sequence) {
    if (!is(name, "A") && !is(name, "B")) return ait_error(AIT_CODE_INVALID_MODEL, "post_processor: sequence '%.100s' is not A or B", name);
    *out = (ait_post_piece){.sequence = name[0] == 'B', .type = (int32_t)type};
    return AIT_OK;
  }
  const ait_json *ids = ait_json_get_kind(ait_json_get_kind(specials, name, AIT_JSON_OBJECT), "ids", AIT_JSON_ARRAY);
  if (!ids) return ait_error(AIT_CODE_INVALID_MODEL, "post_processor.special_tokens: '%.100s' is missing", name);
  return read_ids(t, ids, out);
}

static ait_status read_template(ait_tokenizer *t, const ait_json *json, const char *name, ait_post *post, size_t which) {
  const ait_json *list = ait_json_get_kind(json, name, AIT_JSON_ARRAY),
                 *specials = ait_json_get_kind(json, "special_tokens", AIT_JSON_OBJECT);
  if (!list) return ait_error(AIT_CODE_INVALID_MODEL, "post_processor.%s: a list expected", name);
  post->pieces[which] = AIT_ARENA_ARRAY(&t->arena, ait_post_piece, (size_t)list->count + 1);
  if (!post->pieces[which]) return AIT_OOM();
  memset(post->pieces[which], 0, ((size_t)list->count + 1) * sizeof *post->pieces[which]);
  post->counts[which] = list->count;
  for (uint32_t i = 0; i < list->count; ++i) AIT_TRY(read_piece(t, &list->as.items[i], specials, &post->pieces[which][i]));
  return AIT_OK;
}

/* "cls": ["[CLS]", 101] */
static ait_status read_named_id(ait_tokenizer *t, const ait_json *json, const char *name, ait_post_piece *out) {
  const ait_json *pair = ait_json_get_kind(json, name, AIT_JSON_ARRAY);
  if (!pair || pair->count != 2) return ait_error(AIT_CODE_INVALID_MODEL, "post_processor.%s: [token, id] expected", name);
  ait_json list = {.kind = AIT_JSON_ARRAY, .count = 1, .as.items = &pair->as.items[1]};
  return read_ids(t, &list, out);
}

static ait_status read_post(ait_tokenizer *t, const ait_json *json, const char *type) {
  ait_post post = {.kind = AIT_POST_TEMPLATE};
  if (is(type, "ByteLevel")) return AIT_OK; /* changes offsets only */
  if (is(type, "TemplateProcessing")) {
    AIT_TRY(read_template(t, json, "single", &post, 0));
    AIT_TRY(read_template(t, json, "pair", &post, 1));
  } else if (is(type, "BertProcessing") || is(type, "RobertaProcessing")) {
    post.kind = is(type, "BertProcessing") ? AIT_POST_BERT : AIT_POST_ROBERTA;
    post.pieces[0] = AIT_ARENA_ARRAY(&t->arena, ait_post_piece, 2);
    if (!post.pieces[0]) return AIT_OOM();
    memset(post.pieces[0], 0, 2 * sizeof *post.pieces[0]);
    AIT_TRY(read_named_id(t, json, "cls", &post.pieces[0][0]));
    AIT_TRY(read_named_id(t, json, "sep", &post.pieces[0][1]));
  } else {
    return unknown_type("post_processor", type);
  }
  return add_post(t, post);
}

ait_status ait_load_post(ait_tokenizer *t, const ait_json *json) {
  return ait_walk_parts(t, json, "post_processor", "processors", read_post);
}
