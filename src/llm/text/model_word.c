/* WordPiece (the longest piece that fits, again and again; Wu et al. 2016) and WordLevel (whole words). */
#include "llm/text/tokenizer.h"

ait_status ait_token_model_unknown(const ait_token_model *m) {
  if (!m->has_unk)
    return ait_error(AIT_CODE_INVALID_MODEL, "text has an unknown token, and the tokenizer's model has no 'unk_id' or 'unk_token'");
  return ait_error(AIT_CODE_INVALID_MODEL, "text has an unknown token, and 'unk_token' '%.*s' is not in the vocabulary",
                   (int)m->unk_token.size, m->unk_token.data);
}

static ait_status put_unknown(const ait_token_model *m, ait_token_list *out) {
  return m->unk_id < 0 ? ait_token_model_unknown(m) : ait_token_list_append(out, &m->unk_id, 1);
}

/* The longest prefix of word[from..] in the vocabulary, spelled with the continuation prefix unless it is the first. */
static ait_status longest(const ait_token_model *m, ait_scratch *s, const char *word, size_t size, size_t from, size_t *end, int32_t *id) {
  size_t prefix = from ? m->prefix.size : 0, limit = m->vocab.longest > prefix ? m->vocab.longest - prefix : 0;
  *end = size - from > limit ? from + limit : size;
  AIT_TRY(ait_grow(s->allocator, (void **)&s->word, &s->word_capacity, prefix + (*end - from) + 1, 1));
  if (prefix) memcpy(s->word, m->prefix.data, prefix);
  memcpy(s->word + prefix, word + from, *end - from);
  for (*id = -1; *end > from; --*end) {
    if (*end < size && ((unsigned char)word[*end] & 0xC0) == 0x80) continue; /* within a character */
    *id = ait_vocab_find(&m->vocab, s->word, prefix + (*end - from));
    if (*id >= 0) break;
  }
  return AIT_OK;
}

ait_status ait_wordpiece_word(const ait_token_model *m, ait_scratch *s, const char *word, size_t size, ait_token_list *out) {
  size_t before = out->count;
  if ((int64_t)ait_utf8_count(word, size) > m->max_chars) return put_unknown(m, out);
  for (size_t from = 0, end; from < size; from = end) {
    int32_t id;
    AIT_TRY(longest(m, s, word, size, from, &end, &id));
    if (id < 0) {
      out->count = before;
      return put_unknown(m, out);
    }
    AIT_TRY(ait_token_list_append(out, &id, 1));
  }
  return AIT_OK;
}

ait_status ait_wordlevel_word(const ait_token_model *m, ait_scratch *s, const char *word, size_t size, ait_token_list *out) {
  AIT_UNUSED(s);
  int32_t id = ait_vocab_find(&m->vocab, word, size);
  return id < 0 ? put_unknown(m, out) : ait_token_list_append(out, &id, 1);
}
