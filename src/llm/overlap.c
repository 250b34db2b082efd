/* One thread beside the caller's that runs the kernels of a step, while the caller's tells what the step before gave. */
#include "llm/engine.h"

struct lm_worker {
  ait_allocator allocator;
  pthread_t thread;
  pthread_mutex_t lock;
  pthread_cond_t change;
  ait_status (*run)(void *ctx);
  void *ctx;
  ait_status status;
  enum { IDLE, WORK, DONE, END } state;
};

static void *work(void *ctx) {
  struct lm_worker *w = ctx;
  pthread_mutex_lock(&w->lock);
  for (;;) {
    while (w->state != WORK && w->state != END) pthread_cond_wait(&w->change, &w->lock);
    if (w->state == END) break;
    pthread_mutex_unlock(&w->lock);
    ait_status status = w->run(w->ctx);
    pthread_mutex_lock(&w->lock);
    w->status = status;
    w->state = DONE;
    pthread_cond_broadcast(&w->change);
  }
  pthread_mutex_unlock(&w->lock);
  return NULL;
}

ait_status lm_worker_create(ait_allocator a, struct lm_worker **out) {
  struct lm_worker *w = ait_alloc_zero(a, sizeof *w, _Alignof(struct lm_worker));
  if (!w) return AIT_OOM();
  w->allocator = a;
  pthread_mutex_init(&w->lock, NULL);
  pthread_cond_init(&w->change, NULL);
  if (pthread_create(&w->thread, NULL, work, w) == 0) return *out = w, AIT_OK;
  pthread_cond_destroy(&w->change);
  pthread_mutex_destroy(&w->lock);
  ait_free(a, w, sizeof *w);
  return ait_error(AIT_CODE_LIMIT, "no thread can be started");
}

void lm_worker_destroy(struct lm_worker *w) {
  if (!w) return;
  pthread_mutex_lock(&w->lock);
  w->state = END;
  pthread_cond_broadcast(&w->change);
  pthread_mutex_unlock(&w->lock);
  pthread_join(w->thread, NULL);
  pthread_cond_destroy(&w->change);
  pthread_mutex_destroy(&w->lock);
  ait_free(w->allocator, w, sizeof *w);
}

void lm_worker_start(struct lm_worker *w, ait_status (*run)(void *ctx), void *ctx) {
  pthread_mutex_lock(&w->lock);
  w->run = run;
  w->ctx = ctx;
  w->state = WORK;
  pthread_cond_broadcast(&w->change);
  pthread_mutex_unlock(&w->lock);
}

ait_status lm_worker_wait(struct lm_worker *w) {
  pthread_mutex_lock(&w->lock);
  while (w->state != DONE) pthread_cond_wait(&w->change, &w->lock);
  w->state = IDLE;
  ait_status status = w->status;
  pthread_mutex_unlock(&w->lock);
  return status;
}
