/* Running a model.
 *
 * A session is one timeline: its buffers (state), its planned memory, its threads. It is used by one thread at a time; make one per
 * thread, or take turns. Sessions of one model share code and weights. */
#ifndef AIT_SESSION_H
#define AIT_SESSION_H

#include <ait/model.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ait_session ait_session;

typedef struct ait_session_options {
  uint32_t struct_size;
  ait_allocator allocator;
  int32_t threads; /* threads that compute, the caller's included; 0: what the plan was tuned for (1 when untuned) */
  bool profile;    /* keep per-step times */
} ait_session_options;
AIT_API void ait_session_options_init(ait_session_options *options);

AIT_API AIT_MUST_USE ait_status ait_session_create(ait_model *model, const ait_session_options *options, ait_session **out);
AIT_API void ait_session_destroy(ait_session *session);

/* One call. inputs[i] is input i of the model (borrowed; tensors may have any strides; a model that changes its inputs in place writes
 * into the caller's memory). outputs[i] is, on entry, AIT_VALUE_NONE, or a contiguous tensor of the right dtype and shape to be filled;
 * what the last run left there counts as NONE, so one array serves many runs. On return each is the result; where no memory was given, it
 * belongs to the session and is valid until its next run, reset or destruction (take a copy, or ait_tensor_retain it when it has storage;
 * it may be an input of that next run). Result tensors are contiguous. On error outputs[] and state are as before the call; memory given
 * for outputs, and inputs that the model changes in place, may be partly written.
 * Errors: invalid-argument names the input, the dimension, its value and the range; unsupported; out-of-memory. */
AIT_API AIT_MUST_USE ait_status ait_session_run(ait_session *session, const ait_value *inputs, size_t input_count, ait_value *outputs,
                                                size_t output_count);
/* State back to what the file holds. */
AIT_API AIT_MUST_USE ait_status ait_session_reset(ait_session *session);
/* A view of the current contents of the named buffer or parameter; valid until the next run. Errors: not-found. */
AIT_API AIT_MUST_USE ait_status ait_session_state(ait_session *session, const char *name, ait_tensor *out);
/* Per-step times since creation, sessions with profile only. Returns the number of steps; fills up to capacity. */
AIT_API size_t ait_session_profile(ait_session *session, ait_step_time *out, size_t capacity);
/* Sizes: a plan may have buckets, ranges of the model's symbols that were measured, each with steps of its own where those are faster. Item
 * 0 is the plan for all sizes: its runs are those of sizes that nobody measured (all runs, where the plan has no buckets). Returns the
 * number of items; fills up to capacity. Texts live as long as the model. */
typedef struct ait_bucket_info {
  const char *sizes;   /* "s0 1 to 8, s1 16"; "" for item 0 */
  const char *backend; /* that runs there */
  const char *why_not; /* why the bucket's own steps do not run here, and those of item 0 do; "" */
  int32_t threads;     /* that compute there */
  bool own_plan;       /* runs on steps of its own, not on those of item 0 */
  uint64_t runs;       /* that succeeded, of this session */
} ait_bucket_info;
AIT_API size_t ait_session_buckets(const ait_session *session, ait_bucket_info *out, size_t capacity);
/* Name of the backend(s) that run this session, "native" or "native+reference". */
AIT_API const char *ait_session_backend(const ait_session *session);
/* Bytes of planned memory the session holds now, weights not counted. */
AIT_API size_t ait_session_bytes(const ait_session *session);

#ifdef __cplusplus
}
#endif
#endif
