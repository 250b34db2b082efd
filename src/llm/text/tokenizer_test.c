/* Tokenizers against stored answers of the library `tokenizers` (tests/data/tokenizers), and what stored answers cannot show. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "base/test_support.h"
#include "llm/text/tokenizer.h"
#include <pthread.h>

static const char *const names[] = {"bpe-o200k",   "bpe-added", "llama2-first",          "roberta",   "bert-uncased",
                                    "unigram-nmt", "bpe-words", "byte-level-normalizer", "word-level"};

static ait_tokenizer *load(const char *name) {
  char path[512];
  ait_tokenizer *t = NULL;
  snprintf(path, sizeof path, AIT_TEST_DATA "/tokenizers/%s.json", name);
  ait_status status = ait_tokenizer_load(ait_allocator_default(), path, &t);
  if (status) fail_msg("%s", ait_status_message(status));
  return t;
}

static ait_token_list encode(const ait_tokenizer *t, const char *text, size_t size, int flags) {
  ait_token_list list = {.allocator = ait_allocator_default()};
  assert_null(ait_tokenizer_encode(t, text, size, flags, &list));
  return list;
}

static void check_ids(const ait_tokenizer *t, const ait_json *text, const ait_json *want, int flags, const char *name) {
  ait_token_list list = encode(t, text->as.string, text->count, flags);
  bool same = list.count == want->count;
  for (size_t i = 0; same && i < list.count; ++i) same = list.ids[i] == want->as.items[i].as.i;
  if (!same) fail_msg("%s: '%s'", name, text->as.string);
  ait_token_list_deinit(&list);
}

static void check_text(const ait_tokenizer *t, const ait_json *ids, const ait_json *want, int flags) {
  ait_allocator a = ait_allocator_default();
  ait_token_list list = {.allocator = a};
  ait_text_stream *stream;
  ait_text pieces;
  const char *piece;
  char *text;
  size_t size;
  for (uint32_t i = 0; i < ids->count; ++i) assert_null(ait_token_list_append(&list, &(int32_t){(int32_t)ids->as.items[i].as.i}, 1));
  assert_null(ait_tokenizer_decode(t, list.ids, list.count, flags, a, &text, &size));
  assert_int_equal(size, want->count);
  assert_memory_equal(text, want->as.string, size);
  ait_text_init(&pieces, a);
  assert_null(ait_text_stream_create(t, flags, a, &stream));
  for (size_t i = 0; i <= list.count; ++i) {
    size_t n;
    if (i < list.count) assert_null(ait_text_stream_push(stream, list.ids[i], &piece, &n));
    else assert_null(ait_text_stream_finish(stream, &piece, &n));
    assert_true(ait_utf8_valid(piece, n)); /* never half a character */
    ait_text_append(&pieces, piece, n);
  }
  assert_int_equal(pieces.length, size);
  if (size) assert_memory_equal(pieces.data, text, size);
  ait_text_stream_destroy(stream);
  ait_text_deinit(&pieces);
  ait_text_free(a, text, size);
  ait_token_list_deinit(&list);
}

static void golden(void **state) {
  AIT_UNUSED(state);
  for (size_t k = 0; k < AIT_COUNT(names); ++k) {
    ait_tokenizer *t = load(names[k]);
    char path[512], *json_text;
    size_t size;
    ait_arena arena;
    const ait_json *rows;
    snprintf(path, sizeof path, AIT_TEST_DATA "/tokenizers/%s.golden.json", names[k]);
    assert_null(ait_file_read(ait_allocator_default(), path, 1 << 24, &json_text, &size));
    ait_arena_init(&arena, ait_allocator_default());
    assert_null(ait_json_parse_with(&arena, json_text, size, AIT_JSON_NUL, &rows));
    assert_true(rows->count > 50);
    for (uint32_t i = 0; i < rows->count; ++i) {
      const ait_json *row = &rows->as.items[i], *text = ait_json_get(row, "text"), *special = ait_json_get(row, "special");
      check_ids(t, text, ait_json_get(row, "ids"), 0, names[k]);
      check_ids(t, text, special, AIT_ENCODE_SPECIAL, names[k]);
      check_text(t, special, ait_json_get(row, "decoded"), 0);
      check_text(t, special, ait_json_get(row, "skipped"), AIT_DECODE_SKIP_SPECIAL);
    }
    ait_arena_deinit(&arena);
    ait_free(ait_allocator_default(), json_text, size + 1);
    ait_tokenizer_destroy(t);
  }
}

/* A small byte-level BPE: letters, their pairs, one special token. */
static const char small[] =
    "{\"added_tokens\":[{\"id\":5,\"content\":\"<s>\",\"special\":true,\"normalized\":false}],"
    "\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"use_regex\":true},\"decoder\":{\"type\":\"ByteLevel\"},"
    "\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1,\"ab\":2,\"\xC3\xB0\":3,\"\xC5\x81\":4,\"<s>\":5,\"aa\":6,\"aaaa\":7},"
    "\"merges\":[\"a b\",\"a a\",\"aa aa\"]}}";

static ait_tokenizer *parse(const char *text) {
  ait_tokenizer *t = NULL;
  ait_status status = ait_tokenizer_parse(ait_allocator_default(), text, strlen(text), &t);
  if (status) fail_msg("%s", ait_status_message(status));
  return t;
}

static void special_tokens_in_text(void **state) {
  AIT_UNUSED(state);
  ait_tokenizer *t = parse(small);
  ait_token_list list = encode(t, "ab<s>ab", 7, 0);
  assert_int_equal(list.count, 3);
  assert_int_equal(list.ids[1], 5);
  ait_token_list_deinit(&list);
  list = encode(t, "ab<s>ab", 7, AIT_ENCODE_AS_TEXT); /* '<', 's' and '>' are not in this vocabulary */
  assert_int_equal(list.count, 2);
  ait_token_list_deinit(&list);
  assert_int_equal(ait_tokenizer_id(t, "<s>", 3), 5);
  assert_true(ait_tokenizer_is_special(t, 5) && !ait_tokenizer_is_special(t, 2) && !ait_tokenizer_is_special(t, -1));
  assert_int_equal(ait_tokenizer_vocab_size(t), 8);
  ait_tokenizer_destroy(t);
}

/* Merging costs n log n: 400 kB of one letter. */
static void long_word(void **state) {
  AIT_UNUSED(state);
  enum { SIZE = 400000 };
  ait_tokenizer *t = parse(small);
  char *text = malloc(SIZE);
  assert_non_null(text);
  memset(text, 'a', SIZE);
  double begin = ait_clock_thread_seconds();
  ait_token_list list = encode(t, text, SIZE, 0);
  assert_true(ait_clock_thread_seconds() - begin < 10);
  assert_int_equal(list.count, SIZE / 4);
  for (size_t i = 0; i < list.count; ++i) assert_int_equal(list.ids[i], 7);
  ait_token_list_deinit(&list);
  free(text);
  ait_tokenizer_destroy(t);
}

static void errors_name_the_field(void **state) {
  AIT_UNUSED(state);
  static const struct {
    const char *json, *message;
    ait_code code;
  } cases[] = {
      {"[]", "an object expected", AIT_CODE_INVALID_MODEL},
      {"{}", "model: an object expected", AIT_CODE_INVALID_MODEL},
      {"{\"version\":\"2.0\"}", "version: '2.0'", AIT_CODE_UNSUPPORTED},
      {"{\"model\":{\"type\":\"Foo\"}}", "model.type: 'Foo'", AIT_CODE_UNSUPPORTED},
      {"{\"normalizer\":{\"type\":\"Bar\"}}", "normalizer: type 'Bar'", AIT_CODE_UNSUPPORTED},
      {"{\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"Baz\"}]}}", "pre_tokenizer: type 'Baz'",
       AIT_CODE_UNSUPPORTED},
      {"{\"decoder\":{\"type\":\"Strip\",\"content\":\"ab\",\"start\":0,\"stop\":0}}", "decoder.content: one character",
       AIT_CODE_INVALID_MODEL},
      {"{\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{\"Regex\":\"a(b\"},\"behavior\":\"Isolated\",\"invert\":false}}",
       "pre_tokenizer.pattern: ", AIT_CODE_UNSUPPORTED},
      {"{\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{\"Regex\":\"(?~a)\"},\"behavior\":\"Isolated\",\"invert\":false}}",
       "this kind of group", AIT_CODE_UNSUPPORTED},
      {"{\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{\"String\":\"a\"},\"behavior\":\"Often\",\"invert\":false}}",
       "behavior: 'Often'", AIT_CODE_INVALID_MODEL},
      {"{\"model\":{\"type\":\"BPE\",\"dropout\":0.1,\"vocab\":{},\"merges\":[]}}", "model.dropout", AIT_CODE_UNSUPPORTED},
      {"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[\"a b\"]}}", "model.merges[0]: 'b'", AIT_CODE_INVALID_MODEL},
      {"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":-1},\"merges\":[]}}", "model.vocab: id -1", AIT_CODE_LIMIT},
      {"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":200000000},\"merges\":[]}}", "model.vocab: vocabulary of 1 tokens has id 200000000",
       AIT_CODE_LIMIT},
      {"{\"model\":{\"type\":\"Unigram\",\"unk_id\":3,\"vocab\":[[\"a\",-1]]}}", "model.unk_id", AIT_CODE_INVALID_MODEL},
      {"{\"post_processor\":{\"type\":\"TemplateProcessing\",\"single\":[{\"SpecialToken\":{\"id\":\"<s>\",\"type_id\":0}}],\"pair\":[],"
       "\"special_tokens\":{}}}",
       "post_processor.special_tokens: '<s>'", AIT_CODE_INVALID_MODEL},
      {"{\"normalizer\":{\"type\":\"Precompiled\",\"precompiled_charsmap\":\"AAAA\"}}", "precompiled_charsmap: damaged",
       AIT_CODE_INVALID_MODEL},
  };
  for (size_t i = 0; i < AIT_COUNT(cases); ++i) {
    ait_tokenizer *t = NULL;
    ait_status status = ait_tokenizer_parse(ait_allocator_default(), cases[i].json, strlen(cases[i].json), &t);
    if (!status || !strstr(ait_status_message(status), cases[i].message)) fail_msg("%s: %s", cases[i].json, ait_status_message(status));
    assert_int_equal(ait_status_code(status), cases[i].code);
    ait_status_free(status);
  }
  ait_tokenizer *t = parse("{\"model\":{\"type\":\"WordLevel\",\"vocab\":{\"a\":0},\"unk_token\":\"?\"}}");
  ait_token_list list = {.allocator = ait_allocator_default()};
  ait_status status = ait_tokenizer_encode(t, "b", 1, 0, &list);
  assert_int_equal(ait_status_code(status), AIT_CODE_INVALID_MODEL);
  assert_int_equal(list.count, 0);
  ait_status_free(status);
  ait_tokenizer_destroy(t);
}

/* A pattern that backtracks without end is given up, not run for ever. */
static void endless_pattern(void **state) {
  AIT_UNUSED(state);
  ait_tokenizer *t =
      parse("{\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{\"Regex\":\"(?:(?:a|a)+)+b\"},\"behavior\":\"Isolated\",\"invert\":false},"
            "\"model\":{\"type\":\"WordLevel\",\"vocab\":{\"a\":0},\"unk_token\":\"a\"}}");
  ait_token_list list = {.allocator = ait_allocator_default()};
  ait_status status = ait_tokenizer_encode(t, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaacb", 42, 0, &list);
  assert_int_equal(ait_status_code(status), AIT_CODE_LIMIT);
  ait_status_free(status);
  ait_token_list_deinit(&list);
  ait_tokenizer_destroy(t);
}

static void *encode_often(void *argument) {
  const ait_tokenizer *t = argument;
  for (int i = 0; i < 200; ++i) {
    ait_token_list list = encode(t, "abaabaaaa ab<s>", 15, 0);
    if (list.count != 6) return argument;
    ait_token_list_deinit(&list);
  }
  return NULL;
}

static void threads_share(void **state) {
  AIT_UNUSED(state);
  ait_tokenizer *t = parse(small);
  pthread_t threads[4];
  for (int i = 0; i < 4; ++i) assert_int_equal(pthread_create(&threads[i], NULL, encode_often, t), 0);
  for (int i = 0; i < 4; ++i) {
    void *result;
    pthread_join(threads[i], &result);
    assert_null(result);
  }
  ait_tokenizer_destroy(t);
}

static ait_status use(ait_allocator a, void *ctx) {
  ait_tokenizer *t = NULL;
  ait_token_list list = {.allocator = a};
  char *text = NULL;
  size_t size = 0;
  ait_status status = ait_tokenizer_parse(a, ctx, strlen(ctx), &t);
  if (!status) status = ait_tokenizer_encode(t, "ab <s>aab", 9, AIT_ENCODE_SPECIAL, &list);
  if (!status) status = ait_tokenizer_decode(t, list.ids, list.count, AIT_DECODE_CLEAN_UP, a, &text, &size);
  if (text) ait_text_free(a, text, size);
  ait_token_list_deinit(&list);
  ait_tokenizer_destroy(t);
  return status;
}

static void every_allocation(void **state) {
  AIT_UNUSED(state);
  static const char unigram[] =
      "{\"normalizer\":{\"type\":\"NFKC\"},\"pre_tokenizer\":{\"type\":\"Metaspace\",\"replacement\":\"_\",\"prepend_scheme\":\"first\"},"
      "\"decoder\":{\"type\":\"WordPiece\",\"prefix\":\"##\",\"cleanup\":true},"
      "\"model\":{\"type\":\"Unigram\",\"unk_id\":0,\"vocab\":[[\"?\",0],[\"a\",-1.5],[\"_ab\",-2]]}}";
  test_every_allocation_fails(use, (void *)small);
  test_every_allocation_fails(use, (void *)unigram);
}

/* ids and types of a text or a pair, cut to max_length; the number of tokens, or -1 for an error. */
static int encode_with(const ait_tokenizer *t, const char *a, const char *b, int64_t max_length, bool left, int32_t ids[32],
                       int32_t types[32]) {
  ait_token_list list = {.allocator = ait_allocator_default()}, kinds = {.allocator = list.allocator};
  ait_encode_options o;
  ait_encode_options_init(&o);
  o.max_length = max_length;
  o.truncate_left = left;
  ait_status status = ait_tokenizer_encode_with(t, a, strlen(a), b, b ? strlen(b) : 0, &o, &list, &kinds);
  assert_int_equal(list.count, kinds.count);
  assert_in_range(list.count, 0, 32);
  for (size_t i = 0; i < list.count; ++i) ids[i] = list.ids[i], types[i] = kinds.ids[i];
  int count = status ? -1 : (int)list.count;
  if (status) assert_int_equal(list.count, 0);
  ait_status_free(status);
  ait_token_list_deinit(&list);
  ait_token_list_deinit(&kinds);
  return count;
}

static void types_and_truncation(void **state) {
  AIT_UNUSED(state);
  static const char *const which[] = {"bert-uncased", "roberta"};
  for (size_t k = 0; k < AIT_COUNT(which); ++k) {
    ait_tokenizer *t = load(which[k]);
    int32_t whole[32], ids[32], types[32];
    ait_token_list pair = {.allocator = ait_allocator_default()};
    assert_null(ait_tokenizer_encode_pair(t, "a b c", 5, "d e", 3, AIT_ENCODE_SPECIAL, &pair));
    int n = encode_with(t, "a b c", "d e", 0, false, ids, types);
    assert_int_equal(n, pair.count);
    assert_memory_equal(ids, pair.ids, pair.count * sizeof *ids);
    assert_int_equal(types[0], 0);
    assert_int_equal(types[n - 1], k == 0); /* RoBERTa has one type for all */
    ait_token_list_deinit(&pair);
    n = encode_with(t, "a b c d e f", NULL, 0, false, whole, types);
    assert_int_equal(encode_with(t, "a b c d e f", NULL, 5, false, ids, types), 5);
    assert_memory_equal(ids, whole, 4 * sizeof *ids);
    assert_int_equal(ids[4], whole[n - 1]);
    assert_int_equal(encode_with(t, "a b c d e f", NULL, 5, true, ids, types), 5);
    assert_memory_equal(ids + 1, whole + n - 4, 4 * sizeof *ids);
    assert_int_equal(encode_with(t, "a", NULL, 2, false, ids, types), 2); /* nothing but what is added */
    assert_int_equal(encode_with(t, "a", NULL, 1, false, ids, types), -1);
    assert_int_equal(encode_with(t, "a b c d e f g", "h", 8 + (int)k, false, ids, types), 8 + (int)k);
    assert_int_equal(encode_with(t, "", "", 0, false, ids, types), k == 0 ? 3 : 4);
    ait_tokenizer_destroy(t);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(golden),           cmocka_unit_test(special_tokens_in_text), cmocka_unit_test(long_word),
      cmocka_unit_test(endless_pattern),  cmocka_unit_test(errors_name_the_field),  cmocka_unit_test(threads_share),
      cmocka_unit_test(every_allocation), cmocka_unit_test(types_and_truncation)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
