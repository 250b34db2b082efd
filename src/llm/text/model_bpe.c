/* Byte pair encoding of one word: characters, then merges by rank, leftmost first (Sennrich, Haddow, Birch 2016). */
#include "llm/text/tokenizer.h"

static const ait_merge *merge_of(const ait_token_model *m, int32_t left, int32_t right) {
  uint64_t pair = (uint64_t)(uint32_t)left << 32 | (uint32_t)right, slot = pair * 0x9E3779B97F4A7C15u >> 20 & m->merge_mask;
  while (m->merges[slot].pair != pair) {
    if (m->merges[slot].pair == UINT64_MAX) return NULL;
    slot = (slot + 1) & m->merge_mask;
  }
  return &m->merges[slot];
}

/* ---- characters ----------------------------------------------------------------------------------------------------------------------*/
static ait_status add_symbol(ait_scratch *s, size_t *count, int32_t id, uint32_t size) {
  AIT_TRY(ait_grow(s->allocator, (void **)&s->symbols, &s->symbol_capacity, *count + 1, sizeof *s->symbols));
  int32_t n = (int32_t)*count;
  if (n) s->symbols[n - 1].next = n;
  s->symbols[n] = (ait_symbol){id, n - 1, -1, size};
  ++*count;
  return AIT_OK;
}

/* The id of a character with the prefix or suffix of its place. */
static ait_status char_id(const ait_token_model *m, ait_scratch *s, const char *c, uint32_t size, bool first, bool last, int32_t *out,
                          const char **spelled, uint32_t *spelled_size) {
  bool prefix = m->has_prefix && !first, suffix = m->has_suffix && last;
  *spelled = c, *spelled_size = size;
  if (m->char_ids) {
    uint32_t code;
    ait_utf8_read(c, &code);
    if (code < AIT_CHAR_IDS) return *out = m->char_ids[code], AIT_OK;
  }
  if (prefix || suffix) {
    size_t total = (prefix ? m->prefix.size : 0) + size + (suffix ? m->suffix.size : 0), at = 0;
    AIT_TRY(ait_grow(s->allocator, (void **)&s->word, &s->word_capacity, total, 1));
    if (prefix) memcpy(s->word, m->prefix.data, at = m->prefix.size);
    memcpy(s->word + at, c, size);
    if (suffix) memcpy(s->word + at + size, m->suffix.data, m->suffix.size);
    *spelled = s->word, *spelled_size = (uint32_t)total;
  }
  *out = ait_vocab_find(&m->vocab, *spelled, *spelled_size);
  return AIT_OK;
}

static bool all_bytes_known(const ait_token_model *m, const char *text, uint32_t size) {
  for (uint32_t i = 0; i < size; ++i) {
    if (m->byte_ids[(uint8_t)text[i]] < 0) return false;
  }
  return true;
}

static ait_status word_symbols(const ait_token_model *m, ait_scratch *s, const char *word, size_t size, size_t *count) {
  uint32_t unknown = 0; /* bytes of the unknown token that is not written yet */
  for (size_t i = 0, n; i < size; i += n) {
    uint32_t code, spelled_size;
    const char *spelled;
    int32_t id;
    n = ait_utf8_read(word + i, &code);
    AIT_TRY(char_id(m, s, word + i, (uint32_t)n, i == 0, i + n == size, &id, &spelled, &spelled_size));
    if (id >= 0) {
      if (unknown) AIT_TRY(add_symbol(s, count, m->unk_id, unknown));
      unknown = 0;
      AIT_TRY(add_symbol(s, count, id, (uint32_t)n));
    } else if (m->byte_fallback && all_bytes_known(m, spelled, spelled_size)) {
      for (uint32_t b = 0; b < spelled_size; ++b) AIT_TRY(add_symbol(s, count, m->byte_ids[(uint8_t)spelled[b]], 1));
    } else if (m->has_unk) { /* without one, the character is left out */
      if (m->unk_id < 0) return ait_token_model_unknown(m);
      if (unknown && !m->fuse_unk) {
        AIT_TRY(add_symbol(s, count, m->unk_id, unknown));
        unknown = 0;
      }
      unknown += (uint32_t)n;
    }
  }
  return unknown ? add_symbol(s, count, m->unk_id, unknown) : AIT_OK;
}

/* ---- merging -------------------------------------------------------------------------------------------------------------------------*/
static bool before(ait_heap_item a, ait_heap_item b) { return a.rank != b.rank ? a.rank < b.rank : a.pos < b.pos; }

static ait_status heap_push(ait_scratch *s, ait_heap_item item) {
  AIT_TRY(ait_grow(s->allocator, (void **)&s->heap, &s->heap_capacity, s->heap_count + 1, sizeof *s->heap));
  size_t i = s->heap_count++;
  while (i && before(item, s->heap[(i - 1) / 2])) {
    s->heap[i] = s->heap[(i - 1) / 2];
    i = (i - 1) / 2;
  }
  s->heap[i] = item;
  return AIT_OK;
}

static ait_heap_item heap_pop(ait_scratch *s) {
  ait_heap_item top = s->heap[0], item = s->heap[--s->heap_count];
  size_t i = 0;
  while (true) {
    size_t child = 2 * i + 1;
    if (child >= s->heap_count) break;
    if (child + 1 < s->heap_count && before(s->heap[child + 1], s->heap[child])) ++child;
    if (!before(s->heap[child], item)) break;
    s->heap[i] = s->heap[child];
    i = child;
  }
  s->heap[i] = item;
  return top;
}

static ait_status offer(const ait_token_model *m, ait_scratch *s, int32_t left) {
  int32_t right = left < 0 ? -1 : s->symbols[left].next;
  const ait_merge *merge = right < 0 ? NULL : merge_of(m, s->symbols[left].id, s->symbols[right].id);
  return merge ? heap_push(s, (ait_heap_item){merge->rank, (uint32_t)left, merge->id}) : AIT_OK;
}

static ait_status merge_symbols(const ait_token_model *m, ait_scratch *s, size_t count) {
  s->heap_count = 0;
  for (size_t i = 0; i + 1 < count; ++i) AIT_TRY(offer(m, s, (int32_t)i));
  while (s->heap_count) {
    ait_heap_item top = heap_pop(s);
    ait_symbol *left = &s->symbols[top.pos];
    if (left->size == 0 || left->next < 0) continue;
    ait_symbol *right = &s->symbols[left->next];
    const ait_merge *now = merge_of(m, left->id, right->id);
    if (!now || now->id != top.id) continue; /* the entry is old */
    left->id = top.id;
    left->size += right->size;
    left->next = right->next;
    right->size = 0;
    if (right->next >= 0) s->symbols[right->next].prev = (int32_t)top.pos;
    AIT_TRY(offer(m, s, left->prev));
    AIT_TRY(offer(m, s, (int32_t)top.pos));
  }
  return AIT_OK;
}

/* ---- words that came before
 * ------------------------------------------------------------------------------------------------------------*/
static void cache_clear(ait_scratch *s) {
  memset(s->cache, 0, AIT_CACHE_SLOTS * sizeof *s->cache);
  s->cache_count = 0;
  s->cache_text_length = s->cache_id_count = 0;
}

static ait_cached_word *cache_slot(ait_scratch *s, const char *word, size_t size, uint64_t hash) {
  size_t slot = hash & (AIT_CACHE_SLOTS - 1);
  while (s->cache[slot].size) {
    const ait_cached_word *w = &s->cache[slot];
    if (w->hash == hash && w->size == size && memcmp(s->cache_text + w->text, word, size) == 0) break;
    slot = (slot + 1) & (AIT_CACHE_SLOTS - 1);
  }
  return &s->cache[slot];
}

static ait_status cache_add(ait_scratch *s, const char *word, size_t size, uint64_t hash, const int32_t *ids, size_t count) {
  if (s->cache_count >= AIT_CACHE_SLOTS / 2) cache_clear(s);
  AIT_TRY(ait_grow(s->allocator, (void **)&s->cache_text, &s->cache_text_capacity, s->cache_text_length + size, 1));
  AIT_TRY(ait_grow(s->allocator, (void **)&s->cache_ids, &s->cache_id_capacity, s->cache_id_count + count, sizeof *s->cache_ids));
  memcpy(s->cache_text + s->cache_text_length, word, size);
  if (count) memcpy(s->cache_ids + s->cache_id_count, ids, count * sizeof *ids);
  *cache_slot(s, word, size, hash) =
      (ait_cached_word){hash, (uint32_t)s->cache_text_length, (uint32_t)size, (uint32_t)s->cache_id_count, (uint32_t)count};
  s->cache_text_length += size;
  s->cache_id_count += count;
  ++s->cache_count;
  return AIT_OK;
}

ait_status ait_bpe_word(const ait_token_model *m, ait_scratch *s, const char *word, size_t size, ait_token_list *out) {
  if (m->ignore_merges) {
    int32_t id = ait_vocab_find(&m->vocab, word, size);
    if (id >= 0) return ait_token_list_append(out, &id, 1);
  }
  uint64_t hash = 0;
  if (size < AIT_CACHE_WORD) {
    hash = ait_hash(word, size, 3);
    const ait_cached_word *known = cache_slot(s, word, size, hash);
    if (known->size) return known->count ? ait_token_list_append(out, s->cache_ids + known->ids, known->count) : AIT_OK;
  }
  size_t count = 0, before_count = out->count;
  AIT_TRY(word_symbols(m, s, word, size, &count));
  AIT_TRY(merge_symbols(m, s, count));
  for (size_t i = 0; i < count; ++i) {
    if (s->symbols[i].size) AIT_TRY(ait_token_list_append(out, &s->symbols[i].id, 1));
  }
  if (size < AIT_CACHE_WORD) return cache_add(s, word, size, hash, out->ids ? out->ids + before_count : NULL, out->count - before_count);
  return AIT_OK;
}
