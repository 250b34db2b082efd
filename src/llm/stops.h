/* Stop strings in text that comes in pieces: what may still become one is held back. */
#ifndef AIT_SRC_LLM_STOPS_H
#define AIT_SRC_LLM_STOPS_H

#include "base/base.h"

typedef struct lm_stops lm_stops;
/* Copies the strings; empty ones are ignored. */
ait_status lm_stops_create(ait_allocator a, const char *const *stops, size_t count, lm_stops **out) AIT_MUST_USE;
void lm_stops_destroy(lm_stops *stops); /* takes NULL */
/* *out: text that is certain now, valid until the next call. *out_hit: a stop string begins right behind it; what follows is dropped. */
ait_status lm_stops_push(lm_stops *stops, const char *text, size_t size, const char **out, size_t *out_size, bool *out_hit) AIT_MUST_USE;
/* The end: what was held back. */
void lm_stops_finish(lm_stops *stops, const char **out, size_t *out_size);

#endif
