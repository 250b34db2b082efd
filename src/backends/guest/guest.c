/* The blob of guests, and a run of one. */
#include "backends/guest/guest.h"
#include "backends/dims.h"
#include "backends/region_codec.h"
#include <ait/data.h>
#include <stdatomic.h>
#include <stdio.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

static _Atomic(const ait_onnx_bridge *) bridge;
void ait_onnx_bridge_install(const ait_onnx_bridge *b) { atomic_store(&bridge, b); }

/* ---- what can be taken --------------------------------------------------------------------------------------------------------------- */
static void refuse(ait_support *out, uint32_t node, const char *code, const char *format, const char *text) {
  out->supported = false;
  if (out->note_count == out->note_capacity) return;
  ait_support_note *n = &out->notes[out->note_count++];
  *n = (ait_support_note){.node = node, .code = code};
  snprintf(n->reason, sizeof n->reason, format, text);
}

bool guest_is_tensor_of(const ait_region *r, uint32_t value, ait_dtype dtype) {
  return value != AIT_NO_INDEX && r->values[value].type == AIT_TYPE_TENSOR && r->values[value].dtype == dtype;
}

static bool is_state(const ait_region_input *in) { return in->kind != AIT_INPUT_USER && in->kind != AIT_INPUT_TOKEN && in->mutated; }
static bool is_fed(const ait_region_input *in) { return in->kind == AIT_INPUT_USER && in->value != AIT_NO_INDEX; }

static bool is_plain_tensor(const ait_region *r, uint32_t value) {
  const ait_region_value *v = &r->values[value];
  return v->type == AIT_TYPE_TENSOR && v->rank >= 0 && ait_dtype_size(v->dtype) > 0 && !ait_dtype_is_complex(v->dtype);
}

static void check_ports(const ait_region *r, ait_support *out) {
  for (uint32_t i = 0; i < r->input_count; ++i) {
    const ait_region_input *in = &r->inputs[i];
    const char *name = in->name ? in->name : "";
    if (is_state(in) || (is_fed(in) && in->mutated))
      refuse(out, AIT_NO_INDEX, "state", "'%.150s' is written: a session of this engine keeps no state", name);
    else if (is_fed(in) && !is_plain_tensor(r, in->value))
      refuse(out, AIT_NO_INDEX, "input-kind", "input '%.150s' is no tensor of numbers", name);
  }
  for (uint32_t i = 0; i < r->output_count; ++i) {
    const ait_region_output *o = &r->outputs[i];
    bool value = o->kind == AIT_OUTPUT_USER && o->arg.kind == AIT_ARG_VALUE && is_plain_tensor(r, o->arg.as.value);
    if (!value) refuse(out, AIT_NO_INDEX, "output-kind", "output '%.150s' is no tensor of numbers", o->name ? o->name : "");
  }
}

ait_status guest_supports(const guest_engine *engine, const ait_region *region, ait_support *out) {
  const ait_onnx_bridge *b = atomic_load(&bridge);
  out->supported = true;
  out->note_count = 0;
  if (!b) refuse(out, AIT_NO_INDEX, "run-only", "%s", "this library runs what was compiled, it cannot export to ONNX");
  for (uint32_t i = 0; b && i < region->node_count; ++i)
    if (!b->takes(region->nodes[i].op)) refuse(out, i, "op-not-in-onnx", "'%.150s' has no ONNX form", region->nodes[i].op);
  check_ports(region, out);
  const char *why = engine->refuses ? engine->refuses(region) : NULL;
  if (why) refuse(out, AIT_NO_INDEX, "engine", "%s", why);
  return AIT_OK;
}

/* ---- compile ---------------------------------------------------------------------------------------------------------------------------
 */
typedef struct guest_header {
  char magic[8];
  uint32_t version, reserved;
  uint64_t region_size, onnx_offset, onnx_size;
} guest_header;
enum { BLOB_VERSION = 1 };
static const char blob_magic[8] = "AITGUES";

static ait_status write_blob(const ait_compile_options *o, const ait_text *ports, const ait_blob *onnx, ait_blob *out) {
  guest_header h = {.version = BLOB_VERSION, .region_size = ports->length, .onnx_size = onnx->size};
  memcpy(h.magic, blob_magic, sizeof h.magic);
  h.onnx_offset = (sizeof h + ports->length + 63) / 64 * 64;
  size_t size;
  if (ait_add_overflows((size_t)h.onnx_offset, onnx->size, &size)) return ait_error(AIT_CODE_LIMIT, "the model is too large");
  char *data = ait_alloc_zero(o->allocator, size, 64);
  if (!data) return AIT_OOM();
  memcpy(data, &h, sizeof h);
  memcpy(data + sizeof h, ports->data, ports->length);
  memcpy(data + h.onnx_offset, onnx->data, onnx->size);
  *out = (ait_blob){data, size};
  return AIT_OK;
}

ait_status guest_compile(const guest_engine *engine, const ait_region *region, const ait_compile_options *options, ait_blob *out) {
  const ait_onnx_bridge *b = atomic_load(&bridge);
  if (!b) return ait_error(AIT_CODE_UNAVAILABLE, "this library cannot export to ONNX, which '%s' is fed with", engine->name);
  ait_region ports = *region;
  ports.node_count = 0;
  ait_text text;
  ait_blob onnx = {0};
  ait_text_init(&text, options->allocator);
  ait_status status = ait_region_encode(&ports, &text);
  if (status == AIT_OK) status = b->write(options->allocator, region, options->weights, &onnx);
  if (status == AIT_OK) status = write_blob(options, &text, &onnx, out);
  ait_free(options->allocator, onnx.data, onnx.size);
  ait_text_deinit(&text);
  return status;
}

/* ---- load ------------------------------------------------------------------------------------------------------------------------------
 */
typedef struct guest_session {
  int32_t threads;
  void *session;
  struct guest_session *next;
} guest_session;

static ait_status damaged(const char *what) { return ait_error(AIT_CODE_INVALID_MODEL, "blob is damaged: %s", what); }

const char *guest_option(const guest_model *m, const char *key, const char *missing) {
  for (uint32_t i = 0; i < m->option_count; ++i)
    if (!strcmp(m->options[i].key, key)) return m->options[i].value;
  return missing;
}

static ait_status keep_options(guest_model *m, const ait_load_context *c) {
  m->options = AIT_ARENA_ARRAY(&m->arena, ait_option, c->option_count + 1);
  if (!m->options) return AIT_OOM();
  for (uint32_t i = 0; i < c->option_count; ++i) {
    m->options[i].key = ait_arena_strdup(&m->arena, c->options[i].key, strlen(c->options[i].key));
    m->options[i].value = ait_arena_strdup(&m->arena, c->options[i].value, strlen(c->options[i].value));
    if (!m->options[i].key || !m->options[i].value) return AIT_OOM();
  }
  m->option_count = c->option_count;
  return AIT_OK;
}

static ait_status find_ports(guest_model *m) {
  const ait_region *r = m->region;
  m->in = AIT_ARENA_ARRAY(&m->arena, guest_port, r->input_count + 1);
  m->out = AIT_ARENA_ARRAY(&m->arena, guest_port, r->output_count + 1);
  if (!m->in || !m->out) return AIT_OOM();
  if (!ait_dims_valid(r->dims, r->dim_count, r->symbol_count)) return damaged("sizes");
  for (uint32_t i = 0; i < r->input_count; ++i) {
    if (!is_fed(&r->inputs[i])) continue;
    if (!is_plain_tensor(r, r->inputs[i].value)) return damaged("an input");
    const ait_region_value *v = &r->values[r->inputs[i].value];
    m->in[m->in_count++] = (guest_port){i, v->dtype, v->rank, v->shape};
  }
  for (uint32_t i = 0; i < r->output_count; ++i) {
    if (r->outputs[i].arg.kind != AIT_ARG_VALUE || !is_plain_tensor(r, r->outputs[i].arg.as.value)) return damaged("an output");
    const ait_region_value *v = &r->values[r->outputs[i].arg.as.value];
    m->out[m->out_count++] = (guest_port){i, v->dtype, v->rank, v->shape};
  }
  return AIT_OK;
}

static ait_status read_blob(guest_model *m, const ait_load_context *c) {
  guest_header h;
  if (c->blob_size < sizeof h) return damaged("too short");
  memcpy(&h, c->blob, sizeof h);
  if (memcmp(h.magic, blob_magic, sizeof h.magic) != 0) return damaged("no blob of an ONNX engine");
  if (h.version != BLOB_VERSION) return ait_error(AIT_CODE_INCOMPATIBLE, "blob has version %u, this ait reads %d", h.version, BLOB_VERSION);
  bool fits = h.region_size <= c->blob_size - sizeof h && h.onnx_offset <= c->blob_size && h.onnx_size == c->blob_size - h.onnx_offset &&
              h.onnx_offset >= sizeof h + h.region_size;
  if (!fits) return damaged("sizes of its parts");
  AIT_TRY(ait_region_decode(c->allocator, (const char *)c->blob + sizeof h, (size_t)h.region_size, &m->region));
  m->onnx = (const char *)c->blob + h.onnx_offset;
  m->onnx_size = (size_t)h.onnx_size;
  return find_ports(m);
}

ait_status guest_load(const guest_engine *engine, const ait_load_context *context, void **out_loaded) {
  if (!guest_is_here(engine)) return guest_unavailable(engine);
  guest_model *m = ait_alloc_zero(context->allocator, sizeof *m, _Alignof(guest_model));
  if (!m) return AIT_OOM();
  m->allocator = context->allocator;
  m->engine = engine;
  pthread_mutex_init(&m->lock, NULL);
  ait_arena_init(&m->arena, m->allocator);
  ait_status status = keep_options(m, context);
  if (status == AIT_OK) status = read_blob(m, context);
  if (status != AIT_OK) {
    guest_unload(m);
    return status;
  }
  *out_loaded = m;
  return AIT_OK;
}

void guest_unload(void *loaded) {
  guest_model *m = loaded;
  if (!m) return;
  for (guest_session *s = m->sessions; s; s = s->next) m->engine->session_destroy(s->session);
  ait_region_destroy(m->region);
  ait_arena_deinit(&m->arena);
  pthread_mutex_destroy(&m->lock);
  ait_free(m->allocator, m, sizeof *m);
}

/* ---- calls into the engine: the FPU's modes are the caller's ---------------------------------------------------------------------------
 */
static unsigned modes(void) {
#if defined(__x86_64__)
  return _mm_getcsr();
#else
  return 0;
#endif
}
static void restore_modes(unsigned saved) {
#if defined(__x86_64__)
  _mm_setcsr(saved);
#else
  (void)saved;
#endif
}

static ait_status find_session(guest_model *m, int32_t threads, void **out) {
  ait_status status = AIT_OK;
  pthread_mutex_lock(&m->lock);
  guest_session *s = m->sessions;
  while (s && s->threads != threads) s = s->next;
  if (!s) {
    s = AIT_ARENA_ARRAY(&m->arena, guest_session, 1);
    void *session = NULL;
    status = s ? m->engine->session_create(m, threads, &session) : AIT_OOM();
    if (status == AIT_OK) {
      *s = (guest_session){threads, session, m->sessions};
      m->sessions = s;
    }
  }
  if (status == AIT_OK) *out = s->session;
  pthread_mutex_unlock(&m->lock);
  return status;
}

/* ---- wraps ------------------------------------------------------------------------------------------------------------------------ */
ait_status guest_wraps_init(guest_wraps *w, const guest_model *m, void (*release)(void *handle)) {
  *w = (guest_wraps){.allocator = m->allocator, .release = release, .count = (size_t)m->in_count + m->out_count};
  w->handles = ait_alloc_zero(w->allocator, (w->count + 1) * sizeof *w->handles, _Alignof(void *));
  w->seen = ait_alloc_zero(w->allocator, (w->count + 1) * sizeof *w->seen, _Alignof(ait_tensor));
  return w->handles && w->seen ? AIT_OK : AIT_OOM();
}

void guest_wraps_deinit(guest_wraps *w) {
  for (size_t i = 0; w->handles && i < w->count; ++i)
    if (w->handles[i]) w->release(w->handles[i]);
  ait_free(w->allocator, w->handles, (w->count + 1) * sizeof *w->handles);
  ait_free(w->allocator, w->seen, (w->count + 1) * sizeof *w->seen);
}

bool guest_wraps_keep(guest_wraps *w, size_t i, const ait_tensor *t) {
  const ait_tensor *seen = &w->seen[i];
  if (w->handles[i] && seen->data == t->data && ait_tensor_same_shape(seen, t)) return true;
  if (w->handles[i]) w->release(w->handles[i]);
  w->handles[i] = NULL;
  w->seen[i] = *t;
  return false;
}

void *guest_data(const ait_tensor *t) {
  static char nothing;
  return t->data ? t->data : &nothing;
}

/* ---- instances -------------------------------------------------------------------------------------------------------------------------
 */
typedef struct guest_instance {
  guest_model *model;
  ait_allocator allocator;
  int32_t threads; /* that the request was made for; 0: none yet */
  void *request;
  int64_t *symbols;
  ait_tensor *in, *out;      /* what the engine gets: the caller's memory, or one of the following */
  bool *known;               /* per output: its size follows from the inputs' */
  ait_tensor *copies, *held; /* contiguous copies of inputs; outputs for which the caller gave no memory, valid until the next run */
} guest_instance;

void guest_instance_destroy(void *instance) {
  guest_instance *s = instance;
  if (!s) return;
  const guest_model *m = s->model;
  ait_allocator a = s->allocator;
  if (s->request) m->engine->request_destroy(s->request);
  for (uint32_t i = 0; s->copies && i < m->in_count; ++i) ait_tensor_release(&s->copies[i]);
  for (uint32_t i = 0; s->held && i < m->out_count; ++i) ait_tensor_release(&s->held[i]);
  ait_free(a, s->in, (m->in_count + 1) * sizeof *s->in);
  ait_free(a, s->copies, (m->in_count + 1) * sizeof *s->copies);
  ait_free(a, s->out, (m->out_count + 1) * sizeof *s->out);
  ait_free(a, s->held, (m->out_count + 1) * sizeof *s->held);
  ait_free(a, s->known, m->out_count + 1);
  ait_free(a, s->symbols, (m->region->symbol_count + 1) * sizeof *s->symbols);
  ait_free(a, s, sizeof *s);
}

ait_status guest_instance_create(void *loaded, ait_allocator allocator, void **out_instance) {
  guest_model *m = loaded;
  guest_instance *s = ait_alloc_zero(allocator, sizeof *s, _Alignof(guest_instance));
  if (!s) return AIT_OOM();
  s->model = m;
  s->allocator = allocator;
  s->in = ait_alloc_zero(allocator, (m->in_count + 1) * sizeof *s->in, _Alignof(ait_tensor));
  s->copies = ait_alloc_zero(allocator, (m->in_count + 1) * sizeof *s->copies, _Alignof(ait_tensor));
  s->out = ait_alloc_zero(allocator, (m->out_count + 1) * sizeof *s->out, _Alignof(ait_tensor));
  s->held = ait_alloc_zero(allocator, (m->out_count + 1) * sizeof *s->held, _Alignof(ait_tensor));
  s->known = ait_alloc_zero(allocator, m->out_count + 1, 1);
  s->symbols = ait_alloc_zero(allocator, (m->region->symbol_count + 1) * sizeof *s->symbols, _Alignof(int64_t));
  if (!s->in || !s->copies || !s->out || !s->held || !s->known || !s->symbols) {
    guest_instance_destroy(s);
    return AIT_OOM();
  }
  *out_instance = s;
  return AIT_OK;
}

static bool same_shape(const ait_tensor *t, ait_dtype dtype, int32_t rank, const int64_t *shape) {
  return t->data && t->dtype == dtype && t->rank == rank && memcmp(t->shape, shape, (size_t)rank * sizeof *shape) == 0;
}

static ait_status bind_sizes(guest_instance *s, uint32_t i, const ait_value *given) {
  const guest_port *p = &s->model->in[i];
  if (given->kind != AIT_VALUE_TENSOR || given->as.tensor.rank != p->rank || given->as.tensor.dtype != p->dtype)
    return ait_error(AIT_CODE_INVALID_ARGUMENT, "input %u is not the tensor that the model declares", p->index);
  for (int32_t d = 0; d < p->rank; ++d) ait_dim_bind(s->model->region->dims, s->symbols, p->shape[d], given->as.tensor.shape[d]);
  return AIT_OK;
}

static ait_status take_input(guest_instance *s, uint32_t i, const ait_tensor *t) {
  s->in[i] = *t;
  if (ait_tensor_is_contiguous(t)) return AIT_OK;
  if (!same_shape(&s->copies[i], t->dtype, t->rank, t->shape)) {
    ait_tensor_release(&s->copies[i]);
    AIT_TRY(ait_tensor_create(s->allocator, t->dtype, t->rank, t->shape, &s->copies[i]));
  }
  s->in[i] = s->copies[i];
  return ait_tensor_copy(&s->copies[i], t);
}

/* Memory for an output: the caller's where it fits, else the instance's. Without data where the size depends on values. */
static ait_status place_output(guest_instance *s, uint32_t i, const ait_value *given) {
  const guest_port *p = &s->model->out[i];
  int64_t shape[AIT_MAX_RANK];
  s->known[i] = true;
  for (int32_t d = 0; d < p->rank; ++d)
    s->known[i] = s->known[i] && ait_dim_eval(s->model->region->dims, s->symbols, p->shape[d], &shape[d]);
  s->out[i] = (ait_tensor){.dtype = p->dtype, .rank = -1};
  if (!s->known[i]) return AIT_OK;
  if (given->kind == AIT_VALUE_TENSOR && same_shape(&given->as.tensor, p->dtype, p->rank, shape) &&
      ait_tensor_is_contiguous(&given->as.tensor)) {
    s->out[i] = given->as.tensor;
    return AIT_OK;
  }
  if (!same_shape(&s->held[i], p->dtype, p->rank, shape)) {
    ait_tensor_release(&s->held[i]);
    AIT_TRY(ait_tensor_create(s->allocator, p->dtype, p->rank, shape, &s->held[i]));
  }
  s->out[i] = s->held[i];
  return AIT_OK;
}

static ait_status give_output(guest_instance *s, uint32_t i, ait_value *out) {
  if (out->kind == AIT_VALUE_TENSOR && out->as.tensor.data == s->out[i].data) return AIT_OK; /* written in place */
  if (out->kind == AIT_VALUE_TENSOR) {
    bool fits = same_shape(&out->as.tensor, s->out[i].dtype, s->out[i].rank, s->out[i].shape);
    ait_status status =
        fits ? ait_tensor_copy(&out->as.tensor, &s->out[i])
             : ait_error(AIT_CODE_INVALID_ARGUMENT, "the memory for output %u has another shape or dtype", s->model->out[i].index);
    if (!s->known[i]) ait_tensor_release(&s->out[i]);
    return status;
  }
  *out = ait_value_tensor(s->out[i]);
  if (s->known[i]) out->as.tensor.storage = NULL; /* the instance's; one that the engine made is the caller's from now on */
  return AIT_OK;
}

static ait_status need_request(guest_instance *s, int32_t threads) {
  if (s->threads == threads) return AIT_OK;
  void *session;
  if (s->request) s->model->engine->request_destroy(s->request);
  s->request = NULL;
  s->threads = 0;
  AIT_TRY(find_session(s->model, threads, &session));
  AIT_TRY(s->model->engine->request_create(session, s->model, &s->request));
  s->threads = threads;
  return AIT_OK;
}

static ait_status run(guest_instance *s, const ait_run_context *c) {
  const guest_model *m = s->model;
  for (uint32_t i = 0; i < m->region->symbol_count; ++i) s->symbols[i] = INT64_MIN;
  for (int pass = 0; pass < 2; ++pass) /* twice: 2*s0 binds once s0 + s1 is known */
    for (uint32_t i = 0; i < m->in_count; ++i) AIT_TRY(bind_sizes(s, i, &c->inputs[m->in[i].index]));
  for (uint32_t i = 0; i < m->in_count; ++i) AIT_TRY(take_input(s, i, &c->inputs[m->in[i].index].as.tensor));
  for (uint32_t i = 0; i < m->out_count; ++i) AIT_TRY(place_output(s, i, &c->outputs[m->out[i].index]));
  AIT_TRY(need_request(s, ait_pool_threads(c->pool)));
  AIT_TRY(m->engine->run(s->request, m, s->in, s->out));
  for (uint32_t i = 0; i < m->out_count; ++i) AIT_TRY(give_output(s, i, &c->outputs[m->out[i].index]));
  return AIT_OK;
}

ait_status guest_run(void *instance, const ait_run_context *context) {
  unsigned saved = modes();
  ait_status status = run(instance, context);
  restore_modes(saved);
  return status;
}
