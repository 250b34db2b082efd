#include "llm/cache.h"

/* ---- memory ------------------------------------------------------------------------------------------------------------------------*/
static void *array(ait_allocator a, int64_t count, size_t size) { return ait_alloc_zero(a, (size_t)(count > 0 ? count : 1) * size, 16); }
static void drop(ait_allocator a, void *p, int64_t count, size_t size) { ait_free(a, p, (size_t)(count > 0 ? count : 1) * size); }

/* A block that nobody uses holds a page or a snapshot; without page groups those in use hold nothing. */
static int32_t most_blocks(const lm_cache_shape *s) {
  int64_t most = s->slots;
  for (uint32_t g = 0; g < s->groups; ++g) most += s->pages[g];
  if (s->groups == 0) most += (int64_t)s->slots * s->max_blocks;
  return most < 1 << 22 ? (int32_t)most : 1 << 22;
}

ait_status lm_cache_create(ait_allocator a, const lm_cache_shape *shape, lm_cache *out) {
  *out = (lm_cache){.allocator = a, .shape = *shape, .block_count = most_blocks(shape)};
  uint32_t buckets = 16;
  while (buckets < (uint32_t)out->block_count && buckets < 1u << 30) buckets *= 2;
  out->bucket_mask = buckets - 1;
  out->blocks = array(a, out->block_count, sizeof *out->blocks);
  out->tokens = array(a, (int64_t)out->block_count * shape->block, sizeof *out->tokens);
  out->buckets = array(a, buckets, sizeof *out->buckets);
  out->free_slots = array(a, shape->slots, sizeof *out->free_slots);
  bool good = out->blocks && out->tokens && out->buckets && out->free_slots;
  for (uint32_t g = 0; g < shape->groups; ++g) good &= (out->free_pages[g] = array(a, shape->pages[g], sizeof(int32_t))) != NULL;
  if (!good) return lm_cache_destroy(out), AIT_OOM();
  for (int32_t i = out->block_count; i-- > 0;) {
    out->blocks[i].tokens = out->tokens + (int64_t)i * shape->block;
    out->blocks[i].next = out->free_blocks;
    out->free_blocks = &out->blocks[i];
  }
  for (uint32_t g = 0; g < shape->groups; ++g)
    for (int32_t i = shape->pages[g]; i-- > 0;) out->free_pages[g][out->free_count[g]++] = i;
  for (int32_t i = shape->slots; i-- > 0;) out->free_slots[out->free_slot_count++] = i;
  return AIT_OK;
}

void lm_cache_destroy(lm_cache *c) {
  ait_allocator a = c->allocator;
  drop(a, c->blocks, c->block_count, sizeof *c->blocks);
  drop(a, c->tokens, (int64_t)c->block_count * c->shape.block, sizeof *c->tokens);
  drop(a, c->buckets, (int64_t)c->bucket_mask + 1, sizeof *c->buckets);
  drop(a, c->free_slots, c->shape.slots, sizeof *c->free_slots);
  for (uint32_t g = 0; g < c->shape.groups; ++g) drop(a, c->free_pages[g], c->shape.pages[g], sizeof(int32_t));
}

size_t lm_cache_bytes(const lm_cache *c) {
  size_t pages = 0;
  for (uint32_t g = 0; g < c->shape.groups; ++g) pages += (size_t)c->shape.pages[g];
  return (size_t)c->block_count * (sizeof(lm_block) + (size_t)c->shape.block * sizeof(int32_t)) +
         (c->bucket_mask + 1) * sizeof(lm_block *) + (pages + (size_t)c->shape.slots) * sizeof(int32_t);
}

ait_status lm_chain_create(const lm_cache *c, lm_chain *out) {
  *out = (lm_chain){0};
  bool good = (out->blocks = array(c->allocator, c->shape.max_blocks, sizeof *out->blocks)) != NULL;
  for (uint32_t g = 0; g < c->shape.groups; ++g)
    good &= (out->pages[g] = array(c->allocator, c->shape.max_blocks, sizeof(int32_t))) != NULL;
  if (!good) return lm_chain_destroy(c, out), AIT_OOM();
  return AIT_OK;
}

void lm_chain_destroy(const lm_cache *c, lm_chain *chain) {
  drop(c->allocator, chain->blocks, c->shape.max_blocks, sizeof *chain->blocks);
  for (uint32_t g = 0; g < c->shape.groups; ++g) drop(c->allocator, chain->pages[g], c->shape.max_blocks, sizeof(int32_t));
}

/* ---- blocks ------------------------------------------------------------------------------------------------------------------------*/
static uint64_t block_hash(const lm_cache *c, const lm_block *parent, const int32_t *tokens) {
  return ait_hash(tokens, (size_t)c->shape.block * sizeof *tokens, parent->hash ^ (uint64_t)(uintptr_t)parent);
}

static lm_block *find_child(const lm_cache *c, const lm_block *parent, const int32_t *tokens) {
  uint64_t hash = block_hash(c, parent, tokens);
  for (lm_block *b = c->buckets[hash & c->bucket_mask]; b; b = b->next)
    if (b->hash == hash && b->parent == parent && !memcmp(b->tokens, tokens, (size_t)c->shape.block * sizeof *tokens)) return b;
  return NULL;
}

static lm_block *add_child(lm_cache *c, lm_block *parent, const int32_t *tokens) {
  lm_block *b = c->free_blocks;
  if (!b) return NULL;
  c->free_blocks = b->next;
  int32_t *own = b->tokens;
  *b = (lm_block){.parent = parent, .tokens = own, .hash = block_hash(c, parent, tokens), .snapshot = -1, .depth = parent->depth + 1};
  memcpy(own, tokens, (size_t)c->shape.block * sizeof *tokens);
  for (int g = 0; g < AIT_LM_MAX_GROUPS; ++g) b->pages[g] = -1;
  b->next = c->buckets[b->hash & c->bucket_mask];
  c->buckets[b->hash & c->bucket_mask] = b;
  parent->children++;
  return b;
}

static bool is_empty(const lm_cache *c, const lm_block *b) {
  for (uint32_t g = 0; g < c->shape.groups; ++g)
    if (b->pages[g] >= 0) return false;
  return b->users == 0 && b->children == 0 && b->snapshot < 0;
}

/* A block that holds nothing goes, and then perhaps its parent. */
static void prune(lm_cache *c, lm_block *b) {
  while (b->parent && is_empty(c, b)) {
    lm_block *parent = b->parent, **at = &c->buckets[b->hash & c->bucket_mask];
    while (*at != b) at = &(*at)->next;
    *at = b->next;
    b->next = c->free_blocks;
    c->free_blocks = b;
    parent->children--;
    b = parent;
  }
}

/* ---- pages -------------------------------------------------------------------------------------------------------------------------*/
/* The idle page that was let go longest ago, the deepest of equals: what hangs below a missing page is lost, too. */
static lm_block *oldest_idle(const lm_cache *c, uint32_t g) {
  lm_block *best = NULL;
  for (int32_t i = 0; i < c->block_count; ++i) {
    lm_block *b = &c->blocks[i];
    if (!b->parent || b->pages[g] < 0 || b->needs[g] > 0) continue;
    if (!best || b->used < best->used || (b->used == best->used && b->depth > best->depth)) best = b;
  }
  return best;
}

static int32_t take_page(lm_cache *c, uint32_t g) {
  if (c->free_count[g] > 0) return c->free_pages[g][--c->free_count[g]];
  lm_block *b = c->idle[g] > 0 ? oldest_idle(c, g) : NULL;
  if (!b) return -1;
  int32_t page = b->pages[g];
  b->pages[g] = -1;
  c->idle[g]--;
  prune(c, b);
  return page;
}

static void give_page(lm_cache *c, uint32_t g, int32_t page) {
  if (page >= 0) c->free_pages[g][c->free_count[g]++] = page;
}

static void need(lm_cache *c, lm_block *b, uint32_t g) {
  if (b->needs[g]++ == 0 && b->pages[g] >= 0) c->idle[g]--;
}

static void unneed(lm_cache *c, lm_block *b, uint32_t g) {
  if (--b->needs[g] > 0 || b->pages[g] < 0) return;
  c->idle[g]++;
}

int32_t lm_cache_available(const lm_cache *c, uint32_t g) { return c->free_count[g] + c->idle[g]; }

/* The first block that a row at position `past` or later reads in group g. */
static int32_t first_needed(const lm_cache *c, uint32_t g, int32_t past) {
  int64_t window = c->shape.window[g], begin = window > 0 ? past - window + 1 : 0;
  return begin > 0 ? (int32_t)(begin / c->shape.block) : 0;
}

/* ---- slots -------------------------------------------------------------------------------------------------------------------------*/
int32_t lm_slot_take(lm_cache *c) {
  if (c->free_slot_count > 0) return c->free_slots[--c->free_slot_count];
  lm_block *best = NULL;
  for (int32_t i = 0; i < c->block_count; ++i) {
    lm_block *b = &c->blocks[i];
    if (b->parent && b->snapshot >= 0 && (!best || b->used < best->used)) best = b;
  }
  if (!best) return -1;
  int32_t slot = best->snapshot;
  best->snapshot = -1;
  prune(c, best);
  return slot;
}

void lm_slot_give(lm_cache *c, int32_t slot) {
  if (slot >= 0) c->free_slots[c->free_slot_count++] = slot;
}

/* ---- chains ------------------------------------------------------------------------------------------------------------------------*/
/* Blocks [0, length) of the path, given deepest first in chain->blocks, can be read by what comes after them. */
static bool is_usable(const lm_cache *c, const lm_chain *chain, int32_t length) {
  for (uint32_t g = 0; g < c->shape.groups; ++g)
    for (int32_t i = first_needed(c, g, length * c->shape.block); i < length; ++i)
      if (chain->blocks[i]->pages[g] < 0) return false;
  return c->shape.slots == 0 || chain->blocks[length - 1]->snapshot >= 0;
}

static void join_block(lm_cache *c, lm_chain *chain, int32_t i, lm_block *b) {
  b->users++;
  chain->blocks[i] = b;
  for (uint32_t g = 0; g < c->shape.groups; ++g) {
    bool reads = i >= chain->first[g];
    chain->pages[g][i] = reads ? b->pages[g] : -1;
    if (reads) need(c, b, g);
  }
}

int32_t lm_chain_match(lm_cache *c, lm_chain *chain, const int32_t *tokens, int32_t count, int32_t *out_snapshot) {
  lm_block *at = &c->roots[chain->is_long];
  int32_t length = 0, limit = (count - 1) / c->shape.block;
  *out_snapshot = -1;
  if (!c->shape.keeps) return 0;
  while (length < limit && (at = find_child(c, at, tokens + (int64_t)length * c->shape.block)) != NULL) chain->blocks[length++] = at;
  while (length > 0 && !is_usable(c, chain, length)) --length;
  if (length == 0) return 0;
  for (uint32_t g = 0; g < c->shape.groups; ++g) chain->first[g] = first_needed(c, g, length * c->shape.block);
  for (int32_t i = 0; i < length; ++i) join_block(c, chain, i, chain->blocks[i]);
  chain->count = chain->shared = length;
  if (c->shape.slots > 0) *out_snapshot = chain->blocks[length - 1]->snapshot;
  return length * c->shape.block;
}

bool lm_chain_reserve(lm_cache *c, lm_chain *chain, int32_t end) {
  int32_t want = (end + c->shape.block - 1) / c->shape.block;
  if (want <= chain->count) return true;
  if (want > c->shape.max_blocks) return false;
  for (uint32_t g = 0; g < c->shape.groups; ++g)
    if (lm_cache_available(c, g) < want - chain->count) return false;
  for (; chain->count < want; ++chain->count) {
    chain->blocks[chain->count] = NULL;
    for (uint32_t g = 0; g < c->shape.groups; ++g) chain->pages[g][chain->count] = take_page(c, g);
  }
  return true;
}

/* The block's pages move into the tree; where the tree has them already, ours go back. */
static void share_block(lm_cache *c, lm_chain *chain, int32_t i, lm_block *b) {
  for (uint32_t g = 0; g < c->shape.groups; ++g) {
    int32_t own = chain->pages[g][i];
    if (own < 0) continue; /* behind the window: the tree's may be there, but we do not read it */
    if (b->pages[g] < 0) b->pages[g] = own, c->idle[g] += b->needs[g] == 0;
    else give_page(c, g, own);
  }
  join_block(c, chain, i, b);
}

static void leave_windows(lm_cache *c, lm_chain *chain, int32_t past) {
  for (uint32_t g = 0; g < c->shape.groups; ++g) {
    int32_t first = first_needed(c, g, past);
    for (; chain->first[g] < first && chain->first[g] < chain->count; ++chain->first[g]) {
      int32_t i = chain->first[g];
      if (i < chain->shared) chain->blocks[i]->used = ++c->clock, unneed(c, chain->blocks[i], g);
      else give_page(c, g, chain->pages[g][i]);
      chain->pages[g][i] = -1;
    }
  }
}

void lm_chain_commit(lm_cache *c, lm_chain *chain, const int32_t *tokens, int32_t past) {
  while (c->shape.keeps && chain->shared < chain->count && (chain->shared + 1) * c->shape.block <= past) {
    int32_t i = chain->shared;
    const int32_t *own = tokens + (int64_t)i * c->shape.block;
    lm_block *parent = i > 0 ? chain->blocks[i - 1] : &c->roots[chain->is_long], *b = find_child(c, parent, own);
    if (!b && !(b = add_child(c, parent, own))) break; /* no block left: the chain's pages stay its own */
    share_block(c, chain, i, b);
    chain->shared++;
  }
  leave_windows(c, chain, past);
}

int32_t lm_chain_snapshot(lm_cache *c, lm_chain *chain, int32_t past) {
  int32_t i = past / c->shape.block - 1;
  if (!c->shape.keeps || past % c->shape.block || i < 0 || i >= chain->shared || chain->blocks[i]->snapshot >= 0) return -1;
  chain->blocks[i]->used = ++c->clock;
  return chain->blocks[i]->snapshot = lm_slot_take(c);
}

void lm_chain_release(lm_cache *c, lm_chain *chain) {
  uint64_t now = ++c->clock;
  for (int32_t i = chain->count; i-- > 0;) {
    bool shared = i < chain->shared;
    for (uint32_t g = 0; g < c->shape.groups; ++g) {
      if (i < chain->first[g]) continue;
      if (shared) unneed(c, chain->blocks[i], g);
      else give_page(c, g, chain->pages[g][i]);
    }
    if (!shared) continue;
    chain->blocks[i]->users--;
    chain->blocks[i]->used = now;
    prune(c, chain->blocks[i]);
  }
  chain->count = chain->shared = 0;
  memset(chain->first, 0, sizeof chain->first);
}
