/* Binding: from a program and concrete sizes to a plan, a straight list of kernel calls with all pointers in place.
 *
 * bind.c walks the steps once in order. Each step's prepare function reads where its operands lie (nat_view: shape, strides, root),
 * decides where its results lie, and emits calls. A value is a view of a root: a piece of the arena, an input, an output of the caller, a
 * weight. Lifetimes follow from the pointers that calls hold; when all steps are prepared the roots get their offsets in the arena. */
#ifndef AIT_SRC_BACKENDS_NATIVE_BIND_H
#define AIT_SRC_BACKENDS_NATIVE_BIND_H

#include "backends/native/program.h"
#include "base/base.h"
#include "kernels/kernels.h"

/* ---- plan --------------------------------------------------------------------------------------------------------------------------*/
typedef struct nat_call {
  ait_kernel_fn fn; /* over [0, units), in `tasks` parts */
  const void *args;
  int64_t units;
  char *scratch; /* tasks pieces */
  size_t scratch_stride;
  int32_t tasks;
  uint32_t step;
  const char *kernel;
} nat_call;

typedef struct nat_reloc { /* *where = base of slot + offset */
  void **where;
  int64_t offset;
} nat_reloc;

typedef struct nat_slot { /* memory whose address may differ between runs */
  uint32_t reloc_begin, reloc_count;
  const char *base; /* for which the relocs hold now */
} nat_slot;

enum { NAT_SLOT_ARENA = 0 }; /* then one per region input, then one per region output */

typedef struct nat_result { /* how an output reaches the caller */
  ait_tensor tensor;        /* data filled in at run time */
  uint32_t slot;
  int64_t offset;
} nat_result;

/* State of the instance's current run, for calls that can fail or allocate (portable steps). */
typedef struct nat_run_state {
  const ait_run_context *context;
  ait_status status;
} nat_run_state;

typedef struct nat_plan {
  ait_allocator allocator;
  ait_arena memory; /* all below */
  int64_t *key;     /* what it was bound for; see instance.c */
  uint32_t key_count;
  uint64_t last_use;
  nat_call *calls;
  uint32_t call_count;
  nat_slot *slots;
  uint32_t slot_count;
  nat_reloc *relocs;
  nat_result *results; /* per region output */
  int64_t *symbols;    /* values of the region's symbols */
  size_t arena_bytes;
  char *statics; /* results of the steps that depend on sizes and weights only */
  size_t statics_bytes;
  bool fallible;                /* some call may set state->status */
  struct ait_ref_value *values; /* operands of portable steps, and tensor lists between them; NULL: there are none */
  uint32_t value_count;
  ait_allocator list_allocator;
} nat_plan;

/* ---- binding -----------------------------------------------------------------------------------------------------------------------*/
#define NAT_FOREVER (NAT_NONE - 1) /* a root's last call: read by every run */
typedef enum nat_root_kind { NAT_ROOT_ARENA = 0, NAT_ROOT_STATIC, NAT_ROOT_INPUT, NAT_ROOT_OUTPUT, NAT_ROOT_CONST } nat_root_kind;

typedef struct nat_root {
  nat_root_kind kind;
  uint32_t index;      /* region input or output */
  const void *pointer; /* CONST */
  size_t bytes;
  uint32_t first_call, last_call; /* lifetime in calls of its kind (static roots: static calls) */
  uint32_t last_step;             /* last step that may read any view of it, as known so far */
  size_t offset;
} nat_root;

typedef struct nat_view {
  bool bound;
  ait_dtype dtype;
  int32_t rank;
  uint32_t root;
  int64_t offset;                                     /* bytes from the root */
  int64_t shape[AIT_MAX_RANK], strides[AIT_MAX_RANK]; /* elements */
} nat_view;

typedef struct nat_pending { /* a reloc before slots are sorted */
  void **where;
  uint32_t root;
  int64_t offset;
} nat_pending;

typedef struct nat_bind {
  const nat_program *program;
  const ait_region *region;
  ait_allocator allocator;
  nat_plan *plan;
  nat_run_state *state; /* of the instance */
  const ait_value *inputs, *outputs;
  bool *direct; /* per region output: the caller's memory may be written at any time during the run */
  int32_t threads;
  const ait_kernels *kernels;
  nat_view *views;  /* per value */
  nat_view *placed; /* per value: where its consumer wants it (bound == false: anywhere) */
  nat_root *roots;
  size_t root_count, root_capacity;
  nat_call *calls[2]; /* [1]: static */
  size_t call_count[2], call_capacity[2];
  nat_pending *pending;
  size_t pending_count, pending_capacity;
  uint32_t step; /* being prepared */
  const nat_step *now;
  bool is_static;
} nat_bind;

ait_status nat_bind_plan(nat_bind *b) AIT_MUST_USE; /* bind.c */

/* ---- for prepare functions. Errors name the node ------------------------------------------------------------------------------------*/
typedef ait_status (*nat_prepare_fn)(nat_bind *b, const nat_step *s);
#define NAT_STEP(name, text, prepare) ait_status prepare(nat_bind *b, const nat_step *s);
#include "backends/native/steps.inc"
#undef NAT_STEP

/* invalid-model "node 'x' (op): …" */
ait_status nat_error(const nat_bind *b, ait_code code, const char *format, ...) AIT_PRINTF(3, 4) AIT_MUST_USE;
/* Operand i of the step. Error when there is none, or it is not made yet. */
ait_status nat_in(nat_bind *b, const nat_step *s, uint32_t i, nat_view *out) AIT_MUST_USE;
bool nat_has_in(const nat_bind *b, const nat_step *s, uint32_t i);
/* As nat_in, float32, else error. */
ait_status nat_in_f32(nat_bind *b, const nat_step *s, uint32_t i, nat_view *out) AIT_MUST_USE;
/* Declared dtype and shape of result i, not placed yet (root and strides undefined). */
ait_status nat_out_shape(nat_bind *b, const nat_step *s, uint32_t i, nat_view *out) AIT_MUST_USE;

/* Places result i. `order`: dims from outermost to innermost in memory. When the consumer asked for a place (an output of the caller, a
 * piece of a concatenation) and the strides fit (`any_strides`, or equal to what `order` gives), it is taken; otherwise a fresh root, and
 * the driver appends a copy. */
ait_status nat_out(nat_bind *b, const nat_step *s, uint32_t i, const int32_t *order, bool any_strides, nat_view *out) AIT_MUST_USE;
/* As nat_out with row-major order. */
ait_status nat_out_plain(nat_bind *b, const nat_step *s, uint32_t i, nat_view *out) AIT_MUST_USE;
/* Result i is `view` of an operand's root: nothing is computed. */
ait_status nat_out_view(nat_bind *b, const nat_step *s, uint32_t i, const nat_view *view) AIT_MUST_USE;
/* Operand `view` is read for the last time by this step and owns its whole root, so a result of the same layout may overwrite it. */
bool nat_dies_here(const nat_bind *b, const nat_step *s, uint32_t i, const nat_view *view);

/* Fresh memory that lives while calls hold pointers into it. */
ait_status nat_temp(nat_bind *b, ait_dtype dtype, int32_t rank, const int64_t *shape, const int32_t *order, nat_view *out) AIT_MUST_USE;
ait_status nat_scratch(nat_bind *b, size_t bytes, nat_view *out) AIT_MUST_USE;
/* A root for memory that stays (a packed weight, a table made by nat_keep). */
ait_status nat_const(nat_bind *b, const void *pointer, size_t bytes, uint32_t *out_root) AIT_MUST_USE;
/* Memory that lives as long as the plan. NULL when out of memory. */
void *nat_keep(nat_bind *b, size_t bytes);

/* What to call. */
typedef struct nat_work {
  ait_kernel_fn fn;
  const char *kernel; /* static text for profiles */
  int64_t units;      /* 0: nothing to do, but the call's pointers still count as uses */
  double nanoseconds; /* rough, on one thread: decides whether it is split over threads */
  size_t scratch;     /* bytes for each thread */
} nat_work;
/* Appends a call on a copy of `args`; the copy (*out_args, stays) has its pointers set through nat_pointer before the next emit. */
ait_status nat_emit(nat_bind *b, const nat_work *work, const void *args, size_t args_bytes, void *out_args) AIT_MUST_USE;
/* *where (a field of the newest call's args, or of memory of nat_keep that it reads) will hold the address of the view's first element. */
ait_status nat_pointer(nat_bind *b, void **where, const nat_view *view) AIT_MUST_USE;
#define NAT_POINTER(b, field, view) nat_pointer((b), (void **)(void *)&(field), (view))

/* Strided copy from src to dst: same shape, same dtype. */
ait_status nat_copy(nat_bind *b, const nat_view *dst, const nat_view *src) AIT_MUST_USE;
/* `view` itself when its strides are `order`'s, else a copy of it that has them. */
ait_status nat_dense(nat_bind *b, const nat_view *view, const int32_t *order, nat_view *out) AIT_MUST_USE;
/* `view` when its innermost dim has stride 1 (or one element) and the others are not negative; else a row-major copy. */
ait_status nat_rows(nat_bind *b, const nat_view *view, nat_view *out) AIT_MUST_USE;

/* ---- arguments of the step's node --------------------------------------------------------------------------------------------------*/
ait_status nat_arg_int(const nat_bind *b, const nat_step *s, uint32_t arg, int64_t when_none, int64_t *out) AIT_MUST_USE;
ait_status nat_arg_float(const nat_bind *b, const nat_step *s, uint32_t arg, double when_none, double *out) AIT_MUST_USE;
ait_status nat_arg_bool(const nat_bind *b, const nat_step *s, uint32_t arg, bool when_none, bool *out) AIT_MUST_USE;
/* A list of at most AIT_MAX_RANK ints (a single int counts as one; none gives count 0). */
ait_status nat_arg_ints(const nat_bind *b, const nat_step *s, uint32_t arg, int64_t out[AIT_MAX_RANK], int32_t *out_count) AIT_MUST_USE;
const char *nat_arg_string(const nat_bind *b, const nat_step *s, uint32_t arg); /* NULL when none */
/* A dim argument, wrapped; error when outside [-rank, rank). */
ait_status nat_arg_dim(const nat_bind *b, const nat_step *s, uint32_t arg, int32_t rank, int32_t *out) AIT_MUST_USE;

/* ---- views ------------------------------------------------------------------------------------------------------------------------*/
int64_t nat_count(const nat_view *v);
size_t nat_size(const nat_view *v); /* bytes of its elements */
void nat_order_row_major(int32_t rank, int32_t order[AIT_MAX_RANK]);
void nat_order_channels_last(int32_t rank, int32_t order[AIT_MAX_RANK]); /* 0, 2, 3, …, 1 */
void nat_order_strides(int32_t rank, const int64_t *shape, const int32_t *order, int64_t *strides);
/* Equal where it matters: dims of size 1 and empty views have no stride. */
bool nat_has_order(const nat_view *v, const int32_t *order);
bool nat_same_shape(const nat_view *a, const nat_view *b);
/* Dims sorted by falling stride: the order in which v lies in memory. */
void nat_order_of(const nat_view *v, int32_t order[AIT_MAX_RANK]);
/* Strides that read v as `shape` (same count) without a copy; false when there are none. */
bool nat_reshape_strides(const nat_view *v, int32_t rank, const int64_t *shape, int64_t *strides);
/* v seen with the shape of a broadcast: stride 0 where a dim is expanded; false when it does not fit. */
bool nat_broadcast(const nat_view *v, int32_t rank, const int64_t *shape, nat_view *out);

#endif
