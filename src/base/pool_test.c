#include "base/base.h"
#include <ait/backend.h>

#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/test_support.h"

#include <pthread.h>
#include <time.h>

enum { ITEMS_MAX = 1000 };

typedef struct job {
  int32_t done[ITEMS_MAX]; /* plain: each index belongs to one thread, and the run's end orders it before the caller's reading */
  ait_pool *nested;
} job;

static void mark(void *ctx, int32_t index) { ((job *)ctx)->done[index]++; }

static void check_run(ait_pool *pool, job *j, int32_t count) {
  memset(j->done, 0, sizeof j->done);
  ait_pool_run(pool, mark, j, count);
  for (int32_t i = 0; i < ITEMS_MAX; i++) assert_int_equal(j->done[i], i < count);
}

static void every_item_runs_once(void **state) {
  AIT_UNUSED(state);
  static job j;
  for (int32_t threads = 1; threads <= 5; threads++) {
    ait_pool *pool;
    assert_null(ait_pool_create(ait_allocator_default(), threads, &pool));
    assert_int_equal(ait_pool_threads(pool), threads);
    for (int32_t count = 0; count < 40; count++) check_run(pool, &j, count);
    check_run(pool, &j, ITEMS_MAX);
    ait_pool_destroy(pool);
  }
  check_run(NULL, &j, 17);
  assert_int_equal(ait_pool_threads(NULL), 1);
  ait_pool_destroy(NULL);
}

static void many_short_runs(void **state) {
  AIT_UNUSED(state);
  static job j;
  ait_pool *pool;
  assert_null(ait_pool_create(ait_allocator_default(), 3, &pool));
  memset(j.done, 0, sizeof j.done);
  for (int i = 0; i < 20000; i++) ait_pool_run(pool, mark, &j, 2 + i % 3);
  assert_int_equal(j.done[0], 20000);
  assert_int_equal(j.done[1], 20000);
  ait_pool_destroy(pool);
}

static void workers_wake_from_sleep(void **state) {
  AIT_UNUSED(state);
  static job j;
  ait_pool *pool;
  assert_null(ait_pool_create(ait_allocator_default(), 3, &pool));
  for (int i = 0; i < 20; i++) {
    nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
    check_run(pool, &j, 9);
  }
  ait_pool_destroy(pool);
}

static void slow_item(void *ctx, int32_t index) {
  if (index == 1) nanosleep(&(struct timespec){.tv_nsec = 3000000}, NULL);
  mark(ctx, index);
}

static void caller_sleeps_for_slow_workers(void **state) {
  AIT_UNUSED(state);
  static job j;
  ait_pool *pool;
  assert_null(ait_pool_create(ait_allocator_default(), 2, &pool));
  memset(j.done, 0, sizeof j.done);
  for (int i = 0; i < 10; i++) ait_pool_run(pool, slow_item, &j, 2);
  assert_int_equal(j.done[0], 10);
  assert_int_equal(j.done[1], 10);
  ait_pool_destroy(pool);
}

static void inner(void *ctx, int32_t index) { __atomic_fetch_add(&((int32_t *)ctx)[index], 1, __ATOMIC_RELAXED); }

typedef struct nest {
  ait_pool *pool;
  int32_t counts[8];
} nest;

static void outer(void *ctx, int32_t index) {
  AIT_UNUSED(index);
  nest *n = ctx;
  ait_pool_run(n->pool, inner, n->counts, 8);
}

static void nested_runs_stay_in_their_thread(void **state) {
  AIT_UNUSED(state);
  nest n = {0};
  assert_null(ait_pool_create(ait_allocator_default(), 3, &n.pool));
  for (int i = 0; i < 50; i++) ait_pool_run(n.pool, outer, &n, 5);
  for (int i = 0; i < 8; i++) assert_int_equal(n.counts[i], 250);
  ait_pool_destroy(n.pool);
}

static void *run_many(void *arg) {
  nest *n = arg;
  for (int i = 0; i < 500; i++) ait_pool_run(n->pool, inner, n->counts, 8);
  return NULL;
}

static void callers_may_share_a_pool(void **state) {
  AIT_UNUSED(state);
  nest n = {0};
  pthread_t callers[4];
  assert_null(ait_pool_create(ait_allocator_default(), 2, &n.pool));
  for (size_t i = 0; i < AIT_COUNT(callers); i++) assert_int_equal(pthread_create(&callers[i], NULL, run_many, &n), 0);
  for (size_t i = 0; i < AIT_COUNT(callers); i++) pthread_join(callers[i], NULL);
  for (int i = 0; i < 8; i++) assert_int_equal(n.counts[i], 2000);
  ait_pool_destroy(n.pool);
}

static double process_seconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void an_idle_pool_costs_nothing(void **state) {
  AIT_UNUSED(state);
  static job j;
  ait_pool *pool;
  assert_null(ait_pool_create(ait_allocator_default(), 4, &pool));
  check_run(pool, &j, 100);
  nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
  double before = process_seconds();
  nanosleep(&(struct timespec){.tv_nsec = 200000000}, NULL);
  assert_true(process_seconds() - before < 0.02 * 0.2);
  ait_pool_destroy(pool);
}

static ait_status create_pool(ait_allocator a, void *ctx) {
  AIT_UNUSED(ctx);
  ait_pool *pool;
  AIT_TRY(ait_pool_create(a, 2, &pool));
  ait_pool_destroy(pool);
  return AIT_OK;
}

static void bad_sizes_and_failures(void **state) {
  AIT_UNUSED(state);
  ait_pool *pool;
  ait_status s = ait_pool_create(ait_allocator_default(), 0, &pool);
  assert_int_equal(ait_status_code(s), AIT_CODE_INVALID_ARGUMENT);
  ait_status_free(s);
  test_every_allocation_fails(create_pool, NULL);
}

static void runs_do_not_allocate(void **state) {
  AIT_UNUSED(state);
  static job j;
  test_allocator t = {.fail_at = -1};
  ait_pool *pool;
  assert_null(ait_pool_create(test_allocator_of(&t), 2, &pool));
  long before = atomic_load(&t.calls);
  for (int i = 0; i < 100; i++) check_run(pool, &j, 10);
  assert_int_equal(atomic_load(&t.calls), before);
  ait_pool_destroy(pool);
  assert_int_equal(atomic_load(&t.live), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_item_runs_once),
      cmocka_unit_test(many_short_runs),
      cmocka_unit_test(workers_wake_from_sleep),
      cmocka_unit_test(caller_sleeps_for_slow_workers),
      cmocka_unit_test(nested_runs_stay_in_their_thread),
      cmocka_unit_test(callers_may_share_a_pool),
      cmocka_unit_test(an_idle_pool_costs_nothing),
      cmocka_unit_test(bad_sizes_and_failures),
      cmocka_unit_test(runs_do_not_allocate),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
