/* The most probable cut of a word into pieces of the vocabulary (Kudo 2018), by Viterbi over byte positions. */
#include "llm/text/tokenizer.h"

/* A character that no single piece covers costs this much less than the rarest piece. */
#define UNKNOWN_PENALTY 10.0

static void better(ait_best *node, double score, uint32_t from, int32_t id) {
  if (node->from == UINT32_MAX || score > node->score) *node = (ait_best){score, from, id};
}

static ait_status best_paths(const ait_token_model *m, ait_scratch *s, const char *word, size_t size) {
  for (size_t i = 0; i <= size; ++i) s->best[i] = (ait_best){0, UINT32_MAX, 0};
  for (size_t at = 0, n; at < size; at += n) {
    double here = s->best[at].score;
    bool single = false;
    uint32_t code;
    n = ait_utf8_read(word + at, &code);
    const ait_trie_node *node = m->trie.nodes;
    for (size_t i = at; node && i < size; ++i) {
      node = ait_trie_child(&m->trie, node, (uint8_t)word[i]);
      if (!node || node->value < 0) continue;
      better(&s->best[i + 1], m->scores[node->value] + here, (uint32_t)at, node->value);
      single |= i + 1 - at == n;
    }
    if (single) continue;
    ait_best *target = &s->best[at + n];
    double score = m->min_score - UNKNOWN_PENALTY + here;
    if (target->from != UINT32_MAX && score <= target->score) continue;
    if (m->unk_id < 0) return ait_token_model_unknown(m);
    *target = (ait_best){score, (uint32_t)at, m->unk_id};
  }
  return AIT_OK;
}

static ait_status put_piece(const ait_token_model *m, const char *text, size_t size, ait_token_list *out) {
  int32_t id = ait_vocab_find(&m->vocab, text, size);
  if (id >= 0) return ait_token_list_append(out, &id, 1);
  bool bytes = m->byte_fallback;
  for (size_t i = 0; bytes && i < size; ++i) bytes = m->byte_ids[(uint8_t)text[i]] >= 0;
  if (!bytes) return m->unk_id < 0 ? ait_token_model_unknown(m) : ait_token_list_append(out, &m->unk_id, 1);
  for (size_t i = 0; i < size; ++i) AIT_TRY(ait_token_list_append(out, &m->byte_ids[(uint8_t)text[i]], 1));
  return AIT_OK;
}

ait_status ait_unigram_word(const ait_token_model *m, ait_scratch *s, const char *word, size_t size, ait_token_list *out) {
  AIT_TRY(ait_grow(s->allocator, (void **)&s->best, &s->best_capacity, size + 1, sizeof *s->best));
  AIT_TRY(best_paths(m, s, word, size));
  /* Backwards along the best path: each node learns where its piece ends, then forwards. Neighbouring unknowns are one piece. */
  size_t end = size, next = size;
  while (end > 0) {
    ait_best *node = &s->best[end];
    size_t from = node->from;
    s->best[from].score = (double)end; /* scores are not needed any more */
    end = from;
  }
  for (size_t at = 0; at < size; at = next) {
    next = (size_t)s->best[at].score;
    bool unknown = s->best[next].id == m->unk_id;
    while (unknown && next < size && s->best[(size_t)s->best[next].score].id == m->unk_id) next = (size_t)s->best[next].score;
    AIT_TRY(put_piece(m, word + at, next - at, out));
  }
  return AIT_OK;
}
