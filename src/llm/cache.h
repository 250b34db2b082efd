/* Who owns which page and slot: free lists, the tree of kept prefixes, and the chains of running sequences. Only numbers: the memory is
 * the context's (step.h).
 *
 * A block is `block` tokens (a page of each page group). Blocks whose tokens are all computed hang in a tree, each under the block before
 * it, so that a path from the root is a prefix; another sequence that starts with the same tokens shares them. A page of a block may be
 * missing: behind a window, or taken away when pages ran out. `needs` counts the chains that read the page; a page with no needs stays
 * until somebody else wants it. Slot snapshots hang at blocks: the state after the block's last token.
 *
 * One thread. Nothing allocates after lm_cache_create. */
#ifndef AIT_SRC_LLM_CACHE_H
#define AIT_SRC_LLM_CACHE_H

#include "llm/step.h"

typedef struct lm_cache_shape {
  uint32_t groups;                   /* of pages; group ids 0 .. groups-1 */
  int64_t window[AIT_LM_MAX_GROUPS]; /* 0: all */
  int32_t pages[AIT_LM_MAX_GROUPS];
  int32_t block;      /* tokens */
  int32_t slots;      /* 0: the model has none */
  int32_t max_blocks; /* of a chain */
  bool keeps;         /* prefixes are kept and shared */
} lm_cache_shape;

typedef struct lm_block {
  struct lm_block *parent, *next; /* next: in its bucket, or in the free list */
  int32_t *tokens;
  uint64_t hash;
  uint64_t used; /* when a chain last let it go */
  int32_t pages[AIT_LM_MAX_GROUPS];
  int32_t needs[AIT_LM_MAX_GROUPS];
  int32_t snapshot; /* slot, or -1 */
  int32_t users;    /* chains that go through it */
  int32_t children;
  int32_t depth;
} lm_block;

/* A sequence's way through the cache. blocks[i] NULL: pages of block i are the chain's own. */
typedef struct lm_chain {
  lm_block **blocks;
  int32_t *pages[AIT_LM_MAX_GROUPS]; /* -1: not there (any more) */
  int32_t count;                     /* blocks that it has pages for */
  int32_t shared;                    /* of these, the first so many are in the tree */
  int32_t first[AIT_LM_MAX_GROUPS];  /* pages before it are behind the window */
  bool is_long;                      /* of a sequence beyond ait_lm_info.switch_at: has a tree of its own. Set while it is empty */
} lm_chain;

typedef struct lm_cache {
  ait_allocator allocator;
  lm_cache_shape shape;
  lm_block *blocks, *free_blocks, roots[2]; /* of short and of long sequences */
  int32_t block_count;
  int32_t *tokens;
  lm_block **buckets;
  uint32_t bucket_mask;
  int32_t *free_pages[AIT_LM_MAX_GROUPS], free_count[AIT_LM_MAX_GROUPS];
  int32_t idle[AIT_LM_MAX_GROUPS]; /* pages in the tree that nobody needs: as good as free */
  int32_t *free_slots, free_slot_count;
  uint64_t clock;
} lm_cache;

ait_status lm_cache_create(ait_allocator a, const lm_cache_shape *shape, lm_cache *out) AIT_MUST_USE;
void lm_cache_destroy(lm_cache *cache);
size_t lm_cache_bytes(const lm_cache *cache);

ait_status lm_chain_create(const lm_cache *cache, lm_chain *out) AIT_MUST_USE;
void lm_chain_destroy(const lm_cache *cache, lm_chain *chain);

/* An empty chain takes the longest kept prefix of tokens[0 .. count-1) (at least one token is left to compute). Returns its length;
 * *out_snapshot: the slot with the state after it, or -1 where the model has no slots. */
int32_t lm_chain_match(lm_cache *cache, lm_chain *chain, const int32_t *tokens, int32_t count, int32_t *out_snapshot);
/* Pages for positions [0, end). false: not enough, even when all that nobody needs is taken; the chain is as it was. */
bool lm_chain_reserve(lm_cache *cache, lm_chain *chain, int32_t end);
/* tokens[0 .. past) are computed: whole blocks go into the tree, pages behind windows are let go. */
void lm_chain_commit(lm_cache *cache, lm_chain *chain, const int32_t *tokens, int32_t past);
/* Where the state after tokens[0 .. past), past at a block's end, may be copied to; -1: nowhere, or it is there already. */
int32_t lm_chain_snapshot(lm_cache *cache, lm_chain *chain, int32_t past);
/* Everything is given back; kept prefixes stay. */
void lm_chain_release(lm_cache *cache, lm_chain *chain);

/* -1: none left. Snapshots that nobody uses give way. */
int32_t lm_slot_take(lm_cache *cache);
void lm_slot_give(lm_cache *cache, int32_t slot);
/* Pages of the group that could be had now. */
int32_t lm_cache_available(const lm_cache *cache, uint32_t group);

#endif
