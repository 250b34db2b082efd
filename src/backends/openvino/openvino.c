/* OpenVINO as a guest, on its CPU device: its C library is opened where a Python package or the system has it.
 *
 * By itself OpenVINO computes float32 models in bfloat16 where the CPU has it, 64-bit integers in 32 bits and doubles in single precision,
 * and pins the caller's thread. So precision, mode, pinning and threads are always stated, and a region whose numbers it would change is
 * refused. */
#include "backends/guest/guest.h"
#include "backends/openvino/openvino_api.h"
#include <dlfcn.h>
#include <stdio.h>

extern const ait_backend ait_backend_openvino;

/* ---- the library ------------------------------------------------------------------------------------------------------------------- */
static guest_library library = {.lock = PTHREAD_MUTEX_INITIALIZER};
static ov_api api;
static ov_core *core;   /* one per process; made with the first session, never released */
static int type_offset; /* what its numbers of element types are larger by */

static const char *bind_functions(void *handle) {
#define OV_BIND(result, name, arguments)      \
  *(void **)&api.name = dlsym(handle, #name); \
  if (!*(void **)&api.name) return #name;
  OV_FUNCTIONS(OV_BIND)
#undef OV_BIND
  *(void **)&api.ov_util_set_log_callback = dlsym(handle, "ov_util_set_log_callback");
  return NULL;
}

static void quiet(const char *message) { (void)message; }

/* Up to 2025.0 the list of element types began with one more entry. Number 5 is f64 in the new list and f32 in the old one: its size tells.
 */
static bool calibrate(void) {
  double host[1] = {0};
  int64_t dims[1] = {1};
  size_t bytes = 0;
  ov_tensor *t = NULL;
  if (api.ov_tensor_create_from_host_ptr(5, (ov_shape){1, dims}, host, &t) != 0) return false;
  bool known = api.ov_tensor_get_byte_size(t, &bytes) == 0 && (bytes == 8 || bytes == 4);
  type_offset = bytes == 4;
  api.ov_tensor_free(t);
  return known;
}

static void open_library(guest_library *l) {
  ov_version version = {0};
  guest_library_open("openvino/libs/libopenvino_c.so*", "ov_core_create_with_config", l);
  if (!l->handle) return;
  const char *missing = bind_functions(l->handle);
  if (missing) {
    snprintf(l->reason, sizeof l->reason, "the library has no '%s'", missing);
    return;
  }
  if (api.ov_get_openvino_version(&version) == 0) {
    snprintf(l->version, sizeof l->version, "%.*s", (int)strcspn(version.build, "-"), version.build);
    api.ov_version_free(&version);
  }
  if (api.ov_util_set_log_callback) api.ov_util_set_log_callback(quiet);
  l->usable = calibrate();
  if (!l->usable) snprintf(l->reason, sizeof l->reason, "the numbers of its element types are unknown");
}

/* The text has several lines; the last one that says something is the cause. */
static ait_status check(int code, const char *what) {
  if (code == 0) return AIT_OK;
  const char *text = api.ov_get_last_err_msg();
  char line[256] = "";
  for (const char *at = text ? text : ""; *at;) {
    size_t n = strcspn(at, "\n");
    if (n > strspn(at, " \t\r")) snprintf(line, sizeof line, "%.*s", (int)(n < 250 ? n : 250), at);
    at += n + (at[n] == '\n');
  }
  ait_status status = ait_error(AIT_CODE_UNSUPPORTED, "openvino cannot %s: %s (status %d)", what, line, code);
  if (text) api.ov_free(text);
  return status;
}

static ait_status need_core(void) {
  pthread_mutex_lock(&library.lock);
  ait_status status = core ? AIT_OK : check(api.ov_core_create_with_config("", &core), "start");
  pthread_mutex_unlock(&library.lock);
  return status;
}

/* ---- element types ----------------------------------------------------------------------------------------------------------- */
static const struct {
  ait_dtype dtype;
  int number;
} types[] = {{AIT_BOOL, 1}, {AIT_BF16, 2}, {AIT_F16, 3}, {AIT_F32, 4},  {AIT_F64, 5},  {AIT_I8, 7},  {AIT_I16, 8},
             {AIT_I32, 9},  {AIT_I64, 10}, {AIT_U8, 16}, {AIT_U16, 17}, {AIT_U32, 18}, {AIT_U64, 19}};

static int type_number(ait_dtype dtype) {
  for (size_t i = 0; i < AIT_COUNT(types); ++i)
    if (types[i].dtype == dtype) return types[i].number + type_offset;
  return -1;
}

/* 64-bit integers are sizes and positions in real models; arithmetic on the user's own numbers is what 32 bits would change. */
static bool is_wide(const ait_region *r, uint32_t value) {
  const ait_region_value *v = &r->values[value];
  return v->type == AIT_TYPE_TENSOR && (v->dtype == AIT_I64 || v->dtype == AIT_U64);
}
static const char *refuses(const ait_region *r) {
  for (uint32_t i = 0; i < r->node_count; ++i)
    for (uint32_t k = 0; k < r->nodes[i].result_count; ++k)
      if (guest_is_tensor_of(r, r->nodes[i].results[k], AIT_F64)) return "openvino computes float64 in float32";
  for (uint32_t i = 0; i < r->output_count; ++i)
    if (r->outputs[i].arg.kind == AIT_ARG_VALUE && is_wide(r, r->outputs[i].arg.as.value))
      return "openvino computes 64-bit integers in 32 bits, and one is an output";
  return NULL;
}

/* ---- sessions ---------------------------------------------------------------------------------------------------------------- */
static void session_destroy(void *session) {
  if (session) api.ov_compiled_model_free(session);
}

static ait_status compile_model(const guest_model *m, const ov_model *model, int32_t threads, ov_compiled **out) {
  char count[16];
  snprintf(count, sizeof count, "%d", threads);
  const char *precision = guest_option(m, "precision", "f32");
  const char *mode = strcmp(precision, "f32") == 0 ? "ACCURACY" : "PERFORMANCE";
  return check(api.ov_core_compile_model(core, model, "CPU", 14, out, "INFERENCE_PRECISION_HINT", precision, "EXECUTION_MODE_HINT", mode,
                                         "INFERENCE_NUM_THREADS", count, "NUM_STREAMS", "1", "ENABLE_CPU_PINNING", "NO",
                                         "ENABLE_HYPER_THREADING", "YES", "PERFORMANCE_HINT", "LATENCY"),
               "compile the model");
}

static ait_status count_ports(const guest_model *m, const ov_compiled *compiled) {
  size_t in, out;
  AIT_TRY(check(api.ov_compiled_model_inputs_size(compiled, &in), "count inputs"));
  AIT_TRY(check(api.ov_compiled_model_outputs_size(compiled, &out), "count outputs"));
  if (in == m->in_count && out == m->out_count) return AIT_OK;
  return ait_error(AIT_CODE_UNSUPPORTED, "openvino's model has %zu inputs and %zu outputs, not %u and %u", in, out, m->in_count,
                   m->out_count);
}

static ait_status session_create(const guest_model *m, int32_t threads, void **out) {
  ov_model *model;
  ov_compiled *compiled = NULL;
  AIT_TRY(need_core());
  AIT_TRY(check(api.ov_core_read_model_from_memory_buffer(core, m->onnx, m->onnx_size, NULL, &model), "take the model"));
  ait_status status = compile_model(m, model, threads, &compiled);
  api.ov_model_free(model);
  if (status == AIT_OK) status = count_ports(m, compiled);
  if (status != AIT_OK) session_destroy(compiled);
  else *out = compiled;
  return status;
}

/* ---- runs -------------------------------------------------------------------------------------------------------------------- */
typedef struct ov_run {
  ait_allocator allocator;
  ov_request *request;
  guest_wraps wraps; /* of ov_tensor */
} ov_run;

static void release_tensor(void *tensor) { api.ov_tensor_free(tensor); }

static void request_destroy(void *request) {
  ov_run *r = request;
  if (!r) return;
  guest_wraps_deinit(&r->wraps);
  if (r->request) api.ov_infer_request_free(r->request);
  ait_free(r->allocator, r, sizeof *r);
}

static ait_status request_create(void *session, const guest_model *m, void **out) {
  ov_run *r = ait_alloc_zero(m->allocator, sizeof *r, _Alignof(ov_run));
  if (!r) return AIT_OOM();
  r->allocator = m->allocator;
  ait_status status = guest_wraps_init(&r->wraps, m, release_tensor);
  if (status == AIT_OK) status = check(api.ov_compiled_model_create_infer_request(session, &r->request), "make a request");
  if (status != AIT_OK) request_destroy(r);
  else *out = r;
  return status;
}

/* *out_new: it must be set in the request. */
static ait_status wrap(ov_run *r, size_t i, const ait_tensor *t, bool *out_new) {
  *out_new = !guest_wraps_keep(&r->wraps, i, t);
  if (!*out_new) return AIT_OK;
  int64_t dims[AIT_MAX_RANK + 1];
  memcpy(dims, t->shape, (size_t)t->rank * sizeof *dims);
  return check(api.ov_tensor_create_from_host_ptr(type_number(t->dtype), (ov_shape){t->rank, dims}, guest_data(t),
                                                  (ov_tensor **)&r->wraps.handles[i]),
               "wrap a tensor");
}

static ait_status take(ov_run *r, size_t index, ait_tensor *out) {
  ov_tensor *t;
  ov_shape shape;
  int type = 0;
  void *data;
  AIT_TRY(check(api.ov_infer_request_get_output_tensor_by_index(r->request, index, &t), "give an output"));
  ait_status status = check(api.ov_tensor_get_shape(t, &shape), "describe an output");
  if (status == AIT_OK) {
    if (shape.rank > AIT_MAX_RANK) status = ait_error(AIT_CODE_LIMIT, "an output of rank %lld", (long long)shape.rank);
    if (status == AIT_OK) status = check(api.ov_tensor_get_element_type(t, &type), "describe an output");
    if (status == AIT_OK && type != type_number(out->dtype))
      status = ait_error(AIT_CODE_UNSUPPORTED, "openvino's output has another dtype than declared");
    if (status == AIT_OK) status = check(api.ov_tensor_data(t, &data), "read an output");
    if (status == AIT_OK) status = ait_tensor_create(r->allocator, out->dtype, (int32_t)shape.rank, shape.dims, out);
    if (status == AIT_OK && ait_tensor_bytes(out) > 0) memcpy(out->data, data, ait_tensor_bytes(out));
    ait_status freed = check(api.ov_shape_free(&shape), "free a shape");
    ait_status_ignore(freed);
  }
  api.ov_tensor_free(t);
  return status;
}

/* The memory is the caller's: a shape that came out larger than planned would have been an error, a smaller one shows here. */
static ait_status check_shape(ov_run *r, size_t index, const ait_tensor *want) {
  ov_tensor *t;
  ov_shape shape;
  AIT_TRY(check(api.ov_infer_request_get_output_tensor_by_index(r->request, index, &t), "give an output"));
  ait_status status = check(api.ov_tensor_get_shape(t, &shape), "describe an output");
  if (status == AIT_OK) {
    bool same = shape.rank == want->rank && memcmp(shape.dims, want->shape, (size_t)want->rank * sizeof *want->shape) == 0;
    if (!same) status = ait_error(AIT_CODE_UNSUPPORTED, "openvino's output %zu has another shape than the model declares", index);
    ait_status freed = check(api.ov_shape_free(&shape), "free a shape");
    ait_status_ignore(freed);
  }
  api.ov_tensor_free(t);
  return status;
}

static ait_status run(void *request, const guest_model *m, const ait_tensor *in, ait_tensor *out) {
  ov_run *r = request;
  bool fresh, any = false;
  for (uint32_t i = 0; i < m->in_count; ++i) {
    AIT_TRY(wrap(r, i, &in[i], &fresh));
    if (fresh) AIT_TRY(check(api.ov_infer_request_set_input_tensor_by_index(r->request, i, r->wraps.handles[i]), "take an input"));
    any |= fresh;
  }
  for (uint32_t i = 0; i < m->out_count; ++i) {
    if (out[i].rank < 0) continue;
    AIT_TRY(wrap(r, m->in_count + i, &out[i], &fresh));
    if (fresh)
      AIT_TRY(check(api.ov_infer_request_set_output_tensor_by_index(r->request, i, r->wraps.handles[m->in_count + i]), "take an output"));
    any |= fresh;
  }
  AIT_TRY(check(api.ov_infer_request_infer(r->request), "run"));
  for (uint32_t i = 0; i < m->out_count; ++i) {
    if (out[i].rank < 0) AIT_TRY(take(r, i, &out[i]));
    else if (any) AIT_TRY(check_shape(r, i, &out[i]));
  }
  return AIT_OK;
}

static const guest_engine engine = {
    .name = "openvino",
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
static const char *const precisions[] = {"f32", "bf16", "f16", NULL};
static const ait_knob knobs[] = {
    {"precision", "bf16 and f16 compute in halves where the CPU can: the accuracy gate decides", "f32", precisions},
    {0},
};

GUEST_BACKEND(openvino, engine, "OpenVINO's C library on its CPU device, fed with an ONNX export; found at run time, never linked", knobs);
