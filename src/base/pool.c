/* Worker threads that wait for work by spinning briefly, then sleeping on a futex.
 *
 * A run publishes function, context and count, then stores a ticket: a run number in the upper half, the number of items not yet taken
 * in the lower half. Whoever takes an item (one compare-and-swap) holds the run open until it counts the item as finished, so that what
 * was published cannot change under it; and a worker that comes late, or never, holds up nobody: the run ends when all items are
 * finished, not when all workers have reported. The run number makes a stale compare-and-swap fail. */
#include "base/base.h"
#include <ait/backend.h>

#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Long enough to bridge a single-threaded step between two parallel ones, short enough that an idle pool costs nothing noticeable. */
static const double SPIN_SECONDS = 200e-6;
enum { PAUSES_PER_CLOCK = 32, CACHE_LINE = 64, MAX_THREADS = 1024 };

struct ait_pool {
  ait_allocator allocator;
  int32_t threads; /* with the caller */
  bool spin;       /* false when there are more threads than processors: spinning would take time from a thread with work */
  /* published by run */
  ait_pool_fn fn;
  void *ctx;
  int32_t count;
  _Alignas(CACHE_LINE) _Atomic uint64_t ticket;
  _Alignas(CACHE_LINE) _Atomic uint32_t unfinished; /* items of this run; futex of the caller */
  _Atomic uint32_t caller_sleeps;
  _Alignas(CACHE_LINE) _Atomic uint32_t wake_count; /* futex of the workers: changes with every run, and at the end */
  _Atomic uint32_t sleepers;
  _Atomic bool stop;
  _Alignas(CACHE_LINE) _Atomic bool busy; /* a run is on: a second one (nested, or from another thread) runs in its own thread */
  pthread_t handles[];
};

static void futex_wait(_Atomic uint32_t *word, uint32_t expected) { syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, expected, NULL, NULL, 0); }
static void futex_wake(_Atomic uint32_t *word, int32_t count) { syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, count, NULL, NULL, 0); }

static inline void cpu_pause(void) {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("isb" ::: "memory");
#endif
}

static bool has_work(const ait_pool *pool) { return (uint32_t)atomic_load_explicit(&pool->ticket, memory_order_acquire) != 0; }
static bool all_finished(const ait_pool *pool) { return atomic_load_explicit(&pool->unfinished, memory_order_acquire) == 0; }

/* Waits for `ready` for the spin time; false when it did not come. The limit is in time: a count lasts from 3 us to 500 us on the CPUs
 * of today. */
static bool spin_for(const ait_pool *pool, bool (*ready)(const ait_pool *)) {
  if (ready(pool)) return true;
  if (!pool->spin) return false;
  double end = ait_clock_seconds() + SPIN_SECONDS;
  do {
    for (int i = 0; i < PAUSES_PER_CLOCK; i++) {
      cpu_pause();
      if (ready(pool)) return true;
    }
  } while (ait_clock_seconds() < end);
  return false;
}

/* One item of the current run; false when none is left. */
static bool take(ait_pool *pool, int32_t *out_index) {
  uint64_t ticket = atomic_load_explicit(&pool->ticket, memory_order_acquire);
  while ((uint32_t)ticket != 0) {
    if (atomic_compare_exchange_weak_explicit(&pool->ticket, &ticket, ticket - 1, memory_order_acq_rel, memory_order_acquire)) {
      *out_index = pool->count - (int32_t)(uint32_t)ticket;
      return true;
    }
  }
  return false;
}

/* Takes part in the current run, if any, until no item is left. */
static void work(ait_pool *pool) {
  uint32_t finished = 0;
  for (int32_t index; take(pool, &index); finished++) pool->fn(pool->ctx, index);
  if (finished == 0) return;
  uint32_t before = atomic_fetch_sub_explicit(&pool->unfinished, finished, memory_order_seq_cst);
  if (before == finished && atomic_load_explicit(&pool->caller_sleeps, memory_order_seq_cst)) futex_wake(&pool->unfinished, 1);
}

static bool stopping(const ait_pool *pool) { return atomic_load_explicit(&pool->stop, memory_order_acquire); }
static bool worker_ready(const ait_pool *pool) { return has_work(pool) || stopping(pool); }

/* A run raises wake_count after its ticket is out, and looks for sleepers after that; a worker counts itself a sleeper, then sleeps only if
 * wake_count is still what it saw before it looked for work. So one of the two sees the other. */
static void worker_sleep(ait_pool *pool) {
  uint32_t seen = atomic_load_explicit(&pool->wake_count, memory_order_seq_cst);
  atomic_fetch_add_explicit(&pool->sleepers, 1, memory_order_seq_cst);
  if (!worker_ready(pool)) futex_wait(&pool->wake_count, seen);
  atomic_fetch_sub_explicit(&pool->sleepers, 1, memory_order_seq_cst);
}

static void *worker_main(void *arg) {
  ait_pool *pool = arg;
  while (!stopping(pool)) {
    work(pool);
    if (!spin_for(pool, worker_ready)) worker_sleep(pool);
  }
  return NULL;
}

static size_t pool_bytes(int32_t threads) { return sizeof(ait_pool) + (size_t)threads * sizeof(pthread_t); }

/* Signals are the host's affair: they go to its own threads. */
static int start_worker(ait_pool *pool, pthread_t *handle) {
  sigset_t all, old;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, &old);
  int error = pthread_create(handle, NULL, worker_main, pool);
  pthread_sigmask(SIG_SETMASK, &old, NULL);
  return error;
}

ait_status ait_pool_create(ait_allocator a, int32_t threads, ait_pool **out) {
  if (threads < 1 || threads > MAX_THREADS) {
    return ait_error(AIT_CODE_INVALID_ARGUMENT, "cannot make a pool of %d threads (1 to %d)", threads, MAX_THREADS);
  }
  ait_pool *pool = ait_alloc_zero(a, pool_bytes(threads), CACHE_LINE);
  if (!pool) return AIT_OOM();
  pool->allocator = a;
  pool->threads = 1;
  pool->spin = threads <= ait_cpu_count();
  for (int32_t i = 1; i < threads; i++) {
    int error = start_worker(pool, &pool->handles[pool->threads]);
    if (error) {
      int32_t got = pool->threads;
      pool->threads = threads; /* the size that was allocated */
      atomic_store(&pool->stop, true);
      atomic_fetch_add(&pool->wake_count, 1);
      futex_wake(&pool->wake_count, INT32_MAX);
      for (int32_t j = 1; j < got; j++) pthread_join(pool->handles[j], NULL);
      ait_free(a, pool, pool_bytes(threads));
      return ait_error(AIT_CODE_UNAVAILABLE, "cannot start thread %d of %d: %s", i + 1, threads, strerrordesc_np(error));
    }
    pool->threads++;
  }
  *out = pool;
  return AIT_OK;
}

void ait_pool_destroy(ait_pool *pool) {
  if (!pool) return;
  atomic_store(&pool->stop, true);
  atomic_fetch_add(&pool->wake_count, 1);
  futex_wake(&pool->wake_count, INT32_MAX);
  for (int32_t i = 1; i < pool->threads; i++) pthread_join(pool->handles[i], NULL);
  ait_free(pool->allocator, pool, pool_bytes(pool->threads));
}

int32_t ait_pool_threads(const ait_pool *pool) { return pool ? pool->threads : 1; }

static void wait_finished(ait_pool *pool) {
  while (!spin_for(pool, all_finished)) {
    atomic_store_explicit(&pool->caller_sleeps, 1, memory_order_seq_cst);
    uint32_t left = atomic_load_explicit(&pool->unfinished, memory_order_seq_cst);
    if (left) futex_wait(&pool->unfinished, left);
    atomic_store_explicit(&pool->caller_sleeps, 0, memory_order_seq_cst);
  }
}

void ait_pool_run(ait_pool *pool, ait_pool_fn fn, void *ctx, int32_t count) {
  if (count <= 0) return;
  if (!pool || pool->threads == 1 || count == 1 || atomic_exchange_explicit(&pool->busy, true, memory_order_acquire)) {
    for (int32_t i = 0; i < count; i++) fn(ctx, i);
    return;
  }
  pool->fn = fn;
  pool->ctx = ctx;
  pool->count = count;
  atomic_store_explicit(&pool->unfinished, (uint32_t)count, memory_order_relaxed);
  uint64_t run = (atomic_load_explicit(&pool->ticket, memory_order_relaxed) >> 32) + 1;
  atomic_store_explicit(&pool->ticket, run << 32 | (uint32_t)count, memory_order_seq_cst);
  atomic_fetch_add_explicit(&pool->wake_count, 1, memory_order_seq_cst);
  uint32_t sleepers = atomic_load_explicit(&pool->sleepers, memory_order_seq_cst);
  if (sleepers) futex_wake(&pool->wake_count, sleepers < (uint32_t)count ? (int32_t)sleepers : count - 1);
  work(pool);
  wait_finished(pool);
  atomic_store_explicit(&pool->busy, false, memory_order_release);
}
