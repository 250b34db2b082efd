/* Many requests through one engine: what it holds when it is idle does not grow, nor does the process; steps allocate nothing. */
#include "check.h"
#include <stdlib.h>
#include <unistd.h>

typedef struct count {
  int64_t live, calls;
} count;

static void *counted_alloc(void *ctx, size_t size, size_t alignment) {
  count *c = ctx;
  ait_allocator a = ait_allocator_default();
  void *p = a.alloc(a.ctx, size, alignment);
  if (p) c->live += (int64_t)size, c->calls++;
  return p;
}

static void counted_free(void *ctx, void *p, size_t size) {
  count *c = ctx;
  ait_allocator a = ait_allocator_default();
  if (p) c->live -= (int64_t)size;
  a.free(a.ctx, p, size);
}

static int64_t resident(void) {
  long pages = 0, unused;
  FILE *f = fopen("/proc/self/statm", "r");
  if (!f || fscanf(f, "%ld %ld", &unused, &pages) != 2) exit(2);
  fclose(f);
  return pages * sysconf(_SC_PAGESIZE);
}

enum { BATCH = 50 };

static int64_t run_batch(ait_engine *e, asked *all, int32_t vocab, dice *d, const count *c) {
  int64_t allocated = 0;
  bool busy = true;
  for (int32_t i = 0; i < BATCH; ++i) {
    ask(all, i, vocab, d);
    must(ait_engine_submit(e, &all[i].request, &all[i].id));
    if (all[i].cancel) ait_engine_cancel(e, all[i].id);
  }
  while (busy) {
    int64_t before = c->calls;
    must(ait_engine_step(e, &busy));
    allocated += c->calls - before;
  }
  return allocated;
}

int check_memory(ait_llm *llm, int32_t requests, uint64_t seed) {
  count c = {0};
  dice d = {seed};
  ait_engine_options o;
  ait_engine *e;
  ait_engine_options_init(&o);
  o.allocator = (ait_allocator){.ctx = &c, .alloc = counted_alloc, .free = counted_free};
  o.max_tokens = 512, o.max_sequences = 16, o.max_seq = CHECK_MAX_PROMPT + CHECK_MAX_TOKENS, o.warm = true, o.no_overlap = true;
  asked *all = calloc(BATCH, sizeof *all);
  must(ait_engine_create(llm, &o, &e));
  int32_t vocab = (int32_t)ait_llm_describe(llm).vocab;
  int64_t live = 0, stated = 0, rss = 0, allocated = 0;
  for (int32_t done = 0; done < requests; done += BATCH) {
    int64_t in_steps = run_batch(e, all, vocab, &d, &c);
    if (live) allocated += in_steps; /* until then buffers of text have grown to what they need */
    if (done == (requests / 4 + BATCH - 1) / BATCH * BATCH) {
      live = c.live, rss = resident(), stated = (int64_t)ait_engine_statistics(e).bytes;
      printf("  after %d requests: engine %lld bytes, of these %lld stated; process %lld\n", done + BATCH, (long long)live,
             (long long)stated, (long long)rss);
    }
  }
  int64_t last = resident(), states = (int64_t)ait_engine_statistics(e).bytes;
  printf("  after %d requests: engine %lld bytes, of these %lld stated; process %lld; allocations in steps since: %lld\n", requests,
         (long long)c.live, (long long)states, (long long)last, (long long)allocated);
  bool grew = c.live != live || states != stated || last > rss + rss / 50;
  ait_engine_destroy(e);
  free(all);
  if (grew) printf("  memory grew: FAILED\n");
  if (allocated) printf("  steps allocated: FAILED\n");
  if (c.live) printf("  %lld bytes were not given back: FAILED\n", (long long)c.live);
  return grew + (allocated > 0) + (c.live != 0);
}
