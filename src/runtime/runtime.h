/* Front door of the runtime room: models and sessions (the public functions of model.h and session.h live here), built from plans. */
#ifndef AIT_SRC_RUNTIME_H
#define AIT_SRC_RUNTIME_H

#include "artifact/artifact.h"
#include <ait/model.h>
#include <ait/session.h>

/* What a model is made of. The parts stay in memory as long as the model: `owner` keeps them, and is released with owner_release when
 * the model goes. On error the caller still owns it. */
typedef struct ait_model_parts {
  ait_allocator allocator;
  const ait_region *portable;
  ait_weights weights;
  ait_weights sizes;     /* the same when only dtypes and shapes are looked at; get NULL: `weights` */
  const ait_plan *plans; /* tried in this order; the first that this CPU and its backends can take is run */
  size_t plan_count;     /* 0: the portable region runs on the reference backend */
  bool plans_only;       /* a model that none of its plans can run is an error: no falling back to the portable region */
  uint64_t cpu_mask;     /* features that may be used */
  bool code_allowed;     /* blobs that hold native code may run: made in this process, or signed by a trusted key */
  ait_signature signature;
  const char *manifest; /* JSON text, or NULL */
  void *owner;
  void (*owner_release)(void *owner); /* may be NULL */
  /* What else the file holds, by entry name; NULL: nothing. */
  const void *(*entry)(void *owner, const char *name, size_t *out_size);
  /* A model that is an entry of the file; NULL: there is none. */
  ait_status (*inside)(void *owner, const char *name, const ait_load_options *options, ait_model **out);
} ait_model_parts;
ait_status ait_model_build(const ait_model_parts *parts, ait_model **out) AIT_MUST_USE;

/* A whole .ait within the file that the model is of, by entry name. options: as for ait_model_load; keys and require_signature are not
 * looked at, since the outer file's signature holds for it. Errors: not-found, and those of ait_model_load. */
ait_status ait_model_load_inside(const ait_model *model, const char *entry, const ait_load_options *options, ait_model **out) AIT_MUST_USE;

/* The same with at most one plan, which must run, and every CPU feature. The importer, the tuner and the tests make models this way. */
ait_status ait_model_create(ait_allocator a, const ait_region *portable, ait_weights weights, const ait_plan *plan, void *owner,
                            void (*owner_release)(void *owner), ait_model **out) AIT_MUST_USE;

/* A plan of one step: the whole region compiled for one backend. options: "key=value,key=value", or NULL. Errors: not-found (no such
 * backend), invalid-argument (options), and whatever the backend's compile says. plan.c */
ait_status ait_plan_compile(ait_allocator a, const char *backend, const char *options, const ait_region *region, ait_weights weights,
                            uint64_t cpu_mask, const char *target, ait_plan *out) AIT_MUST_USE;

/* The same of a blob that compile made of the region before; it is read, not taken, as long as the plan lives. */
ait_status ait_plan_of_blob(ait_allocator a, const char *backend, const ait_region *region, const void *data, size_t size,
                            const char *target, ait_plan *out) AIT_MUST_USE;

/* A plan of several steps, one for each part, in their order. inputs, outputs, value_count, results: as ait_plan has them. */
typedef struct ait_plan_part {
  const char *backend, *options;
  const ait_region *region;
  const uint32_t *inputs, *outputs;
} ait_plan_part;
ait_status ait_plan_compile_parts(ait_allocator a, const ait_plan_part *parts, uint32_t count, uint32_t value_count,
                                  const uint32_t *results, uint32_t result_count, ait_weights weights, uint64_t cpu_mask,
                                  const char *target, ait_plan *out) AIT_MUST_USE;
/* From now on each run adds the seconds that each step took to seconds[step]; NULL: no more. */
void ait_session_time_steps(ait_session *session, double *seconds);
/* Seconds that all runs so far spent on taking tensors to other processes (ait_backend.transport_seconds). */
double ait_session_transport_seconds(const ait_session *session);

/* "key=value,key=value" taken apart; everything in the arena. options.c */
ait_status ait_options_parse(ait_arena *arena, const char *text, ait_option **out, uint32_t *out_count) AIT_MUST_USE;

/* Checks user inputs against the region's declared kinds, dtypes, ranks, fixed sizes, symbol ranges, baked values and guards, and binds the
 * symbols. symbol_values: region->symbol_count, INT64_MIN where unbound. Errors name input, dimension, value and range. No allocation
 * unless something is wrong. bind.c */
ait_status ait_bind_inputs(const ait_region *region, const ait_value *inputs, size_t input_count, int64_t *symbol_values) AIT_MUST_USE;

#endif
