/* ONNX Runtime as a guest: its C library is opened where a Python package or the system has it. */
#include "backends/guest/guest.h"
#include "backends/onnxruntime/ort_api.h"
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

extern const ait_backend ait_backend_onnxruntime;

/* ---- the library ------------------------------------------------------------------------------------------------------------------- */
static guest_library library = {.lock = PTHREAD_MUTEX_INITIALIZER};
static ort_api api;
static ort_env *env; /* one per process; made with the first session, never released: its threads end with the process */

/* Versions from 1.29 on start a thread that reports usage, writes files in the home folder and opens connections, unless
 * ORT_DISABLE_TELEMETRY=1 stands in the environment before the first use. The library does not touch the environment: its caller says. */
static bool reports_usage(const char *version) {
  char *end;
  long major = strtol(version, &end, 10), minor = *end == '.' ? strtol(end + 1, NULL, 10) : 0;
  return major > 1 || (major == 1 && minor >= 29);
}

static void open_library(guest_library *l) {
  guest_library_open("onnxruntime/capi/libonnxruntime.so*", "OrtGetApiBase", l);
  if (!l->handle) return;
  const ort_api_base *(*get)(void);
  *(void **)&get = dlsym(l->handle, "OrtGetApiBase");
  const ort_api_base *base = get();
  const void *table = base ? base->GetApi(ORT_API_VERSION) : NULL;
  snprintf(l->version, sizeof l->version, "%.31s", base ? base->GetVersionString() : "");
  if (!table) {
    snprintf(l->reason, sizeof l->reason, "version %.30s has no API %d", l->version, ORT_API_VERSION);
    return;
  }
  ort_api_bind(&api, table);
  l->usable = !reports_usage(l->version) || guest_reporting_settled();
  if (!l->usable)
    snprintf(l->reason, sizeof l->reason,
             "version %.30s reports usage over the network unless ORT_DISABLE_TELEMETRY=1 is set; say with ait_guests_configure that this "
             "is settled",
             l->version);
}

static ait_status check(ort_status *s, const char *what) {
  if (!s) return AIT_OK;
  ait_code code = api.GetErrorCode(s) == ORT_INVALID_ARGUMENT ? AIT_CODE_INVALID_ARGUMENT : AIT_CODE_UNSUPPORTED;
  ait_status status = ait_error(code, "onnxruntime cannot %s: %s", what, api.GetErrorMessage(s));
  api.ReleaseStatus(s);
  return status;
}

/* Its log: errors come back as statuses, too. */
static void quiet(void *ctx, int severity, const char *category, const char *id, const char *place, const char *message) {
  (void)ctx, (void)severity, (void)category, (void)id, (void)place, (void)message;
}

static ait_status need_env(void) {
  pthread_mutex_lock(&library.lock);
  ait_status status = env ? AIT_OK : check(api.CreateEnvWithCustomLogger(quiet, NULL, ORT_ERROR, "ait", &env), "start");
  pthread_mutex_unlock(&library.lock);
  return status;
}

/* ---- element types: those of the ONNX file ----------------------------------------------------------------------------------- */
static const struct {
  ait_dtype dtype;
  int number;
} types[] = {{AIT_F32, 1}, {AIT_U8, 2},   {AIT_I8, 3},   {AIT_U16, 4},  {AIT_I16, 5},  {AIT_I32, 6},
             {AIT_I64, 7}, {AIT_BOOL, 9}, {AIT_F16, 10}, {AIT_F64, 11}, {AIT_U32, 12}, {AIT_U64, 13}};

static int type_number(ait_dtype dtype) {
  for (size_t i = 0; i < AIT_COUNT(types); ++i)
    if (types[i].dtype == dtype) return types[i].number;
  return 0;
}

/* bfloat16 has kernels for two operators only. */
static const char *refuses(const ait_region *r) {
  for (uint32_t i = 0; i < r->node_count; ++i)
    for (uint32_t k = 0; k < r->nodes[i].result_count; ++k) {
      uint32_t v = r->nodes[i].results[k];
      if (v != AIT_NO_INDEX && r->values[v].type == AIT_TYPE_TENSOR && !type_number(r->values[v].dtype))
        return "a tensor of a dtype that onnxruntime has no kernels for on CPUs";
    }
  return NULL;
}

/* ---- sessions ---- */
typedef struct ort_model {
  ait_allocator allocator;
  ait_arena arena; /* the names */
  ort_session *session;
  ort_memory_info *memory;
  size_t in_count, out_count;
  const char **in, **out;
} ort_model;

static void session_destroy(void *session) {
  ort_model *s = session;
  if (!s) return;
  if (s->session) api.ReleaseSession(s->session);
  if (s->memory) api.ReleaseMemoryInfo(s->memory);
  ait_arena_deinit(&s->arena);
  ait_free(s->allocator, s, sizeof *s);
}

static ait_status set_options(const guest_model *m, int32_t threads, ort_session_options *o) {
  AIT_TRY(check(api.SetIntraOpNumThreads(o, threads), "set threads"));
  AIT_TRY(check(api.SetInterOpNumThreads(o, 1), "set threads"));
  AIT_TRY(check(api.SetSessionLogSeverityLevel(o, ORT_ERROR), "set its log"));
  const char *level = guest_option(m, "level", "all");
  AIT_TRY(check(api.SetSessionGraphOptimizationLevel(o, strcmp(level, "extended") == 0 ? 2 : ORT_OPTIMIZE_ALL), "set its level"));
  /* Workers that go on polling after a run would take the CPU from everything else in the process. */
  AIT_TRY(check(api.AddSessionConfigEntry(o, "session.force_spinning_stop", "1"), "set spinning"));
  const char *spin = strcmp(guest_option(m, "spinning", "run"), "off") == 0 ? "0" : "1";
  return check(api.AddSessionConfigEntry(o, "session.intra_op.allow_spinning", spin), "set spinning");
}

static ait_status names_of(ort_model *s, bool inputs, size_t count, const char ***out) {
  ort_allocator *a;
  AIT_TRY(check(api.GetAllocatorWithDefaultOptions(&a), "find its allocator"));
  *out = AIT_ARENA_ARRAY(&s->arena, const char *, count + 1);
  if (!*out) return AIT_OOM();
  for (size_t i = 0; i < count; ++i) {
    char *name;
    AIT_TRY(check(inputs ? api.SessionGetInputName(s->session, i, a, &name) : api.SessionGetOutputName(s->session, i, a, &name), "name"));
    (*out)[i] = ait_arena_strdup(&s->arena, name, strlen(name));
    AIT_TRY(check(api.AllocatorFree(a, name), "free a name"));
    if (!(*out)[i]) return AIT_OOM();
  }
  return AIT_OK;
}

static ait_status open_session(const guest_model *m, int32_t threads, ort_model *s) {
  ort_session_options *o;
  AIT_TRY(need_env());
  AIT_TRY(check(api.CreateCpuMemoryInfo(ORT_ALLOCATOR_DEVICE, ORT_MEMORY_DEFAULT, &s->memory), "describe memory"));
  AIT_TRY(check(api.CreateSessionOptions(&o), "make options"));
  ait_status status = set_options(m, threads, o);
  if (status == AIT_OK) status = check(api.CreateSessionFromArray(env, m->onnx, m->onnx_size, o, &s->session), "take the model");
  api.ReleaseSessionOptions(o);
  if (status != AIT_OK) return status;
  AIT_TRY(check(api.SessionGetInputCount(s->session, &s->in_count), "count inputs"));
  AIT_TRY(check(api.SessionGetOutputCount(s->session, &s->out_count), "count outputs"));
  if (s->in_count != m->in_count || s->out_count != m->out_count)
    return ait_error(AIT_CODE_INVALID_MODEL, "the exported model has %zu inputs and %zu outputs, not %u and %u", s->in_count, s->out_count,
                     m->in_count, m->out_count);
  AIT_TRY(names_of(s, true, s->in_count, &s->in));
  return names_of(s, false, s->out_count, &s->out);
}

static ait_status session_create(const guest_model *m, int32_t threads, void **out) {
  ort_model *s = ait_alloc_zero(m->allocator, sizeof *s, _Alignof(ort_model));
  if (!s) return AIT_OOM();
  s->allocator = m->allocator;
  ait_arena_init(&s->arena, m->allocator);
  ait_status status = open_session(m, threads, s);
  if (status != AIT_OK) session_destroy(s);
  else *out = s;
  return status;
}

/* ---- runs: values wrap the tensors' memory and are made again when it moved -------------------------------------------------- */
typedef struct ort_request {
  ort_model *s;
  ait_allocator allocator;
  guest_wraps wraps; /* of ort_value */
} ort_request;

static void release_value(void *value) { api.ReleaseValue(value); }

static void request_destroy(void *request) {
  ort_request *r = request;
  if (!r) return;
  guest_wraps_deinit(&r->wraps);
  ait_free(r->allocator, r, sizeof *r);
}

static ait_status request_create(void *session, const guest_model *m, void **out) {
  ort_request *r = ait_alloc_zero(m->allocator, sizeof *r, _Alignof(ort_request));
  if (!r) return AIT_OOM();
  r->s = session;
  r->allocator = m->allocator;
  ait_status status = guest_wraps_init(&r->wraps, m, release_value);
  if (status != AIT_OK) request_destroy(r);
  else *out = r;
  return status;
}

static ait_status wrap(ort_request *r, size_t i, const ait_tensor *t) {
  if (guest_wraps_keep(&r->wraps, i, t)) return AIT_OK;
  return check(api.CreateTensorWithDataAsOrtValue(r->s->memory, guest_data(t), ait_tensor_bytes(t), t->shape, (size_t)t->rank,
                                                  type_number(t->dtype), (ort_value **)&r->wraps.handles[i]),
               "wrap a tensor");
}

/* An output that onnxruntime made: copied to a tensor of ours. */
static ait_status take(ort_request *r, size_t i, ait_tensor *out) {
  ort_tensor_info *info;
  int64_t shape[AIT_MAX_RANK];
  size_t rank = 0;
  int type = 0;
  void *data;
  AIT_TRY(check(api.GetTensorTypeAndShape(r->wraps.handles[i], &info), "describe an output"));
  ait_status status = check(api.GetDimensionsCount(info, &rank), "describe an output");
  if (status == AIT_OK && rank > AIT_MAX_RANK) status = ait_error(AIT_CODE_LIMIT, "an output of rank %zu", rank);
  if (status == AIT_OK) status = check(api.GetDimensions(info, shape, rank), "describe an output");
  if (status == AIT_OK) status = check(api.GetTensorElementType(info, &type), "describe an output");
  api.ReleaseTensorTypeAndShapeInfo(info);
  if (status == AIT_OK && type != type_number(out->dtype))
    status = ait_error(AIT_CODE_INVALID_MODEL, "an output has another dtype than declared");
  if (status == AIT_OK) status = check(api.GetTensorMutableData(r->wraps.handles[i], &data), "read an output");
  if (status == AIT_OK) status = ait_tensor_create(r->allocator, out->dtype, (int32_t)rank, shape, out);
  if (status == AIT_OK && ait_tensor_bytes(out) > 0) memcpy(out->data, data, ait_tensor_bytes(out));
  api.ReleaseValue(r->wraps.handles[i]);
  r->wraps.handles[i] = NULL;
  return status;
}

static ait_status run(void *request, const guest_model *m, const ait_tensor *in, ait_tensor *out) {
  ort_request *r = request;
  ort_value **values = (ort_value **)r->wraps.handles;
  for (uint32_t i = 0; i < m->in_count; ++i) AIT_TRY(wrap(r, i, &in[i]));
  for (uint32_t i = 0; i < m->out_count; ++i)
    if (out[i].rank >= 0) AIT_TRY(wrap(r, m->in_count + i, &out[i]));
  AIT_TRY(check(
      api.Run(r->s->session, NULL, r->s->in, (const ort_value *const *)values, m->in_count, r->s->out, m->out_count, values + m->in_count),
      "run"));
  for (uint32_t i = 0; i < m->out_count; ++i)
    if (out[i].rank < 0) AIT_TRY(take(r, m->in_count + i, &out[i]));
  return AIT_OK;
}

static const guest_engine engine = {
    .name = "onnxruntime",
    .library = &library,
    .open = open_library,
    .refuses = refuses,
    .session_create = session_create,
    .session_destroy = session_destroy,
    .request_create = request_create,
    .request_destroy = request_destroy,
    .run = run,
};

/* ---- the table ---------------------------------------------------------------------------------------------------------------------- */
static const char *const spinning[] = {"run", "off", NULL};
static const char *const levels[] = {"all", "extended", NULL};
static const ait_knob knobs[] = {
    {"spinning", "its idle workers poll for work during a run: faster calls for more CPU time", "run", spinning},
    {"level", "graph optimisations: all changes the layout of images, extended does not", "all", levels},
    {0},
};

GUEST_BACKEND(onnxruntime, engine, "ONNX Runtime's C library, fed with an ONNX export; found at run time, never linked", knobs);
