/* Between the files of the runtime room. */
#ifndef AIT_SRC_RUNTIME_INTERNAL_H
#define AIT_SRC_RUNTIME_INTERNAL_H

#include "runtime/runtime.h"
#include <stdatomic.h>

/* A step whose backend has taken its blob. Shared by all sessions. */
typedef struct ait_model_step {
  bool borrowed; /* `loaded` is another step's: the same blob and options */
  const ait_backend *backend;
  const ait_plan_step *plan;
  void *loaded;
  uint32_t *state_of_input;  /* per region input: index into model->states, or AIT_NO_INDEX */
  uint32_t *state_of_output; /* per region output of kind STATE, likewise */
} ait_model_step;

/* A plan of the file, and what became of it. */
typedef struct ait_plan_choice {
  const ait_plan *plan;
  const char *cpu, *why; /* features; "" when it runs */
} ait_plan_choice;

/* Which steps run for which sizes: the plan, and the buckets of it in their order. */
typedef struct ait_model_route {
  const ait_plan *plan;          /* NULL: another route's steps run */
  ait_model_step *steps;         /* plan->step_count */
  const ait_plan_bucket *bucket; /* NULL: the plan for all sizes */
  uint32_t uses;                 /* the route whose steps run; its own number when it has steps */
  const char *sizes, *backends;  /* "s0 1 to 8", "native" */
  const char *why;               /* its steps cannot run here; "" */
} ait_model_route;
/* A bucket's range of one routed symbol. */
typedef struct ait_model_range {
  int64_t min, max;
} ait_model_range;

/* A weight that runs may change. */
typedef struct ait_model_state {
  const char *name;
  ait_tensor initial; /* view of the weights */
  uint32_t group;     /* states that share memory in the file share it in a session, too */
  size_t offset;      /* bytes from the group's start to element 0 */
  bool portable;      /* the portable region declares it: listed by ait_model_state_name */
} ait_model_state;

typedef struct ait_state_group {
  const char *begin; /* of the bytes in the weights */
  size_t bytes;
} ait_state_group;

struct ait_model {
  ait_allocator allocator;
  atomic_uint references;
  ait_arena arena; /* everything below that has the model's life */
  const ait_region *region;
  ait_weights weights;
  const char *manifest, *reason, *target, *backends;
  size_t plan_count;
  ait_plan_choice *choices; /* by the order in which they were tried */
  ait_signature signature;
  bool code_allowed;
  ait_plan own_plan;    /* the portable one, when that runs */
  const ait_plan *plan; /* the one for all sizes: routes[0].plan */
  ait_model_route *routes;
  uint32_t route_count;
  uint32_t *routed; /* symbols that buckets go by */
  uint32_t routed_count;
  ait_model_range *ranges; /* of route r (from 1 on), routed symbol k: [(r - 1) * routed_count + k] */
  ait_model_state *states;
  size_t state_count;
  ait_state_group *groups;
  size_t group_count;
  ait_port *inputs, *outputs;
  uint32_t input_count, output_count;
  const ait_region_output **results; /* portable region's user outputs, output_count */
  void *owner;
  void (*owner_release)(void *owner);
  const void *(*entry)(void *owner, const char *name, size_t *out_size);
  ait_status (*inside)(void *owner, const char *name, const ait_load_options *options, ait_model **out);
};

/* route.c: the plan's own steps, then those of its buckets. Errors: those of the plan's own steps; of a bucket's steps only what nothing
 * can run with (memory, the disk): else its sizes run on the plan for all, and *reason says so. */
typedef struct ait_step_loader {
  ait_model *model;
  uint64_t cpu;
  ait_status (*load)(ait_model *model, const ait_plan_step *plan, uint64_t cpu, ait_model_step *out);
} ait_step_loader;
ait_status ait_model_load_routes(const ait_step_loader *loader, const ait_plan *plan) AIT_MUST_USE;
ait_status ait_model_name_routes(ait_model *model, ait_text *reason) AIT_MUST_USE;
void ait_model_unload_routes(ait_model *model);
/* The route for these values of the model's symbols. */
uint32_t ait_model_route_for(const ait_model *model, const int64_t *symbols);

/* ports.c: fills inputs, outputs, results from the portable region. */
ait_status ait_model_describe(ait_model *model) AIT_MUST_USE;
/* state.c: finds the states of all steps, their memory groups, and each step's table. Weights must fit what the regions declare. */
ait_status ait_model_find_states(ait_model *model) AIT_MUST_USE;
/* Declared dtype, rank and fixed sizes of every weight input against the weight that is there. */
ait_status ait_model_check_weights(const ait_region *region, const ait_weights *weights) AIT_MUST_USE;

/* Bytes that a tensor's elements reach: [*out_begin, *out_end). Empty tensors: both NULL. */
void ait_tensor_extent(const ait_tensor *t, const char **out_begin, const char **out_end);
bool ait_tensors_overlap(const ait_tensor *a, const ait_tensor *b);

/* ---- sessions (session.c, outputs.c) -------------------------------------------------------------------------------------------------*/
typedef struct ait_session_step {
  void *instance;
  ait_value *inputs, *outputs; /* as the run context wants them; outputs hold references from one run to the next */
  int64_t *symbols;            /* room for the region's symbol values */
} ait_session_step;

typedef struct ait_session_result {
  uint32_t step, output; /* what makes it; step AIT_NO_INDEX: a constant, or a user input passed through */
  bool given;            /* this run: the caller gave memory */
  bool direct;           /* this run: the backend writes into the caller's memory */
  bool copied;           /* this run: it lies in scratch */
  ait_tensor lent;       /* what the last run handed out of the session's own memory; dtype NONE: nothing. Holds no reference */
  ait_tensor scratch;    /* contiguous copy where the backend's tensor cannot be lent; has storage, reused */
} ait_session_result;

/* New contents of a state or user input, made by a step, to be written when all steps are done. */
typedef struct ait_session_commit {
  uint32_t step, output;
  const ait_tensor *target; /* set for each run */
  const ait_tensor *source; /* NULL: already in place */
  ait_tensor copy;          /* of a source that another commit would overwrite; has storage, reused */
} ait_session_commit;

/* What one plan's steps need of a session. */
typedef struct ait_session_route {
  ait_pool *pool; /* borrowed from the session's; NULL: one thread */
  ait_session_step *steps;
  ait_value *values; /* by plan value; borrowed */
  struct {
    uint32_t step, output;
  } * makers; /* of each result */
  ait_session_commit *commits;
  uint32_t commit_count;
} ait_session_route;

struct ait_session {
  ait_allocator allocator;
  ait_model *model;
  bool profile;
  double *step_seconds; /* ait_session_time_steps; NULL */
  ait_arena arena;
  ait_session_route *routes; /* by the model's routes; those without steps are empty */
  uint64_t *runs;            /* of each route */
  int64_t *routed;           /* values of the routed symbols in the last run */
  uint32_t route, uses;      /* of the last run: the bucket, and the route whose steps run */
  ait_pool **pools;          /* of different sizes, as many as routes at most */
  uint32_t pool_count;
  /* Of the route that runs, and set when it changes: */
  const ait_plan *plan;
  const ait_model_step *code;
  ait_pool *pool;
  ait_session_step *steps;
  ait_value *values;
  ait_session_commit *commits;
  uint32_t commit_count;
  /* Of all of them: */
  ait_tensor *input_copies; /* of inputs that lie in memory lent by the last run; storage reused */
  int64_t *symbols;
  ait_storage **groups;  /* memory of the states */
  ait_storage **shadows; /* its contents before the run, where a backend writes states in place; NULL: none does */
  ait_tensor *states;    /* views of the groups */
  ait_session_result *results;
};

/* An output that the region states itself. Errors: unsupported (not a constant, or a size that is not known). */
ait_status ait_session_constant(const ait_region *r, const int64_t *symbols, const ait_arg *arg, ait_value *out) AIT_MUST_USE;
/* A contiguous copy of `source` in memory that is kept from run to run. */
ait_status ait_session_copy(ait_session *s, ait_tensor *scratch, const ait_tensor *source) AIT_MUST_USE;
/* outputs.c. Before a run: the memory that the caller gave, and which of it steps may write directly. */
ait_status ait_session_check_outputs(ait_session *s, const ait_value *inputs, const ait_value *outputs) AIT_MUST_USE;
/* After the steps: results to the caller, new contents to states and inputs. Nothing the caller sees changes unless it succeeds. */
ait_status ait_session_finish(ait_session *s, const ait_value *inputs, ait_value *outputs) AIT_MUST_USE;

#endif
