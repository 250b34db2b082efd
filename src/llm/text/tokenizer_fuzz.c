/* Any bytes as tokenizer.json and, behind the first NUL, as text: read, encode, decode. Streams give what decoding gives. */
#include <ait/text.h>
#include <string.h>

/* A pair, cut: never more than was allowed, and a type for each id. */
static void pair(const ait_tokenizer *t, const char *text, size_t size) {
  ait_token_list ids = {.allocator = ait_allocator_default()}, types = {.allocator = ids.allocator};
  ait_encode_options o;
  ait_encode_options_init(&o);
  o.max_length = 9;
  ait_status status = ait_tokenizer_encode_with(t, text, size / 2, text + size / 2, size - size / 2, &o, &ids, &types);
  if (ids.count != types.count) __builtin_trap();
  ait_status_free(status);
  ait_token_list_deinit(&ids);
  ait_token_list_deinit(&types);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void decode(const ait_tokenizer *t, const ait_token_list *list, int flags) {
  ait_allocator a = ait_allocator_default();
  ait_text_stream *stream;
  const char *piece;
  char *text;
  size_t size, n, at = 0;
  ait_status status = ait_tokenizer_decode(t, list->ids, list->count, flags, a, &text, &size);
  if (status) {
    ait_status_free(status);
    return;
  }
  if (ait_text_stream_create(t, flags, a, &stream)) __builtin_trap();
  for (size_t i = 0; i <= list->count; ++i) {
    if (i < list->count ? ait_text_stream_push(stream, list->ids[i], &piece, &n) : ait_text_stream_finish(stream, &piece, &n))
      __builtin_trap();
    if (n > size - at || memcmp(piece, text + at, n) != 0) __builtin_trap();
    at += n;
  }
  if (at != size) __builtin_trap();
  ait_text_stream_destroy(stream);
  ait_text_free(a, text, size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const uint8_t *nul = size ? memchr(data, 0, size) : NULL;
  size_t json = nul ? (size_t)(nul - data) : size, skip = nul ? json + 1 : size;
  ait_tokenizer *t = NULL;
  ait_status status = ait_tokenizer_parse(ait_allocator_default(), (const char *)data, json, &t);
  if (!status) {
    ait_token_list list = {.allocator = ait_allocator_default()};
    status = ait_tokenizer_encode(t, (const char *)data + skip, size - skip, AIT_ENCODE_SPECIAL, &list);
    if (!status) pair(t, (const char *)data + skip, size - skip);
    if (!status) decode(t, &list, AIT_DECODE_CLEAN_UP);
    if (!status) decode(t, &list, AIT_DECODE_SKIP_SPECIAL);
    ait_token_list_deinit(&list);
  }
  ait_status_free(status);
  ait_tokenizer_destroy(t);
  return 0;
}
