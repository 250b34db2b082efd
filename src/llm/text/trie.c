/* A byte trie from sorted keys, level by level, so that the children of a node lie side by side. */
#include "llm/text/tokenizer.h"
#include <stdlib.h>

static int by_text(const void *x, const void *y) {
  const ait_trie_key *a = x, *b = y;
  int order = memcmp(a->text, b->text, a->size < b->size ? a->size : b->size);
  if (order) return order;
  if (a->size != b->size) return a->size < b->size ? -1 : 1;
  return a->value < b->value ? -1 : a->value > b->value;
}

/* Keys [first, last) share the node's path of `depth` bytes. */
typedef struct key_range {
  uint32_t first, last;
} key_range;

static uint32_t fill_children(const ait_trie_key *keys, key_range range, uint32_t depth, ait_trie_node *nodes, key_range *ranges,
                              uint32_t node, uint32_t count) {
  uint32_t i = range.first;
  while (i < range.last && keys[i].size == depth) nodes[node].value = keys[i++].value;
  nodes[node].first = count;
  while (i < range.last) {
    uint32_t begin = i;
    uint8_t byte = (uint8_t)keys[i].text[depth];
    while (i < range.last && (uint8_t)keys[i].text[depth] == byte) ++i;
    nodes[count] = (ait_trie_node){.byte = byte, .value = -1};
    ranges[count] = (key_range){begin, i};
    ++count;
  }
  nodes[node].count = (uint16_t)(count - nodes[node].first);
  return count;
}

/* Nodes: the root, and one for each byte of a key that is not shared with the key before. */
static uint64_t count_nodes(const ait_trie_key *keys, size_t count) {
  uint64_t nodes = 1;
  for (size_t i = 0; i < count; ++i) {
    uint32_t shared = 0, limit = i == 0 ? 0 : keys[i - 1].size < keys[i].size ? keys[i - 1].size : keys[i].size;
    while (shared < limit && keys[i].text[shared] == keys[i - 1].text[shared]) ++shared;
    nodes += keys[i].size - shared;
  }
  return nodes;
}

ait_status ait_trie_build(ait_arena *arena, ait_trie_key *keys, size_t count, ait_trie *out) {
  *out = (ait_trie){0};
  if (count == 0) return AIT_OK;
  qsort(keys, count, sizeof *keys, by_text);
  uint64_t total = count_nodes(keys, count);
  if (total >= UINT32_MAX / 2) return ait_error(AIT_CODE_LIMIT, "vocabulary is too large");
  ait_trie_node *nodes = AIT_ARENA_ARRAY(arena, ait_trie_node, total);
  key_range *ranges = ait_alloc(arena->allocator, total * sizeof *ranges, _Alignof(key_range));
  if (!nodes || !ranges) {
    ait_free(arena->allocator, ranges, total * sizeof *ranges);
    return AIT_OOM();
  }
  uint32_t used = 1, depth = 0;
  nodes[0] = (ait_trie_node){.value = -1};
  ranges[0] = (key_range){0, (uint32_t)count};
  for (uint32_t begin = 0, end = 1; begin < end; ++depth) {
    for (uint32_t node = begin; node < end; ++node) used = fill_children(keys, ranges[node], depth, nodes, ranges, node, used);
    begin = end;
    end = used;
  }
  ait_free(arena->allocator, ranges, total * sizeof *ranges);
  *out = (ait_trie){nodes, used};
  return AIT_OK;
}
