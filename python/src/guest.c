/* The table of guests, their blobs, and runs in place. */
#include "guest.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static guest_row rows[GUEST_ROWS];
static int row_count;
static pid_t home;           /* the process whose interpreter may be used */
static PyObject *here_maker; /* make(name, options, payload, weights) -> callable(list of inputs) -> list of outputs */

enum { BLOB_VERSION = 1 };
static const char blob_magic[8] = "AITPYGU";

static ait_status out_of_memory(void) { return ait_error(AIT_CODE_OUT_OF_MEMORY, "out of memory"); }
static ait_status damaged(const char *what) { return ait_error(AIT_CODE_INVALID_MODEL, "blob is damaged: %s", what); }

/* ---- which regions
 * ---------------------------------------------------------------------------------------------------------------------*/
static void refuse(ait_support *out, const char *code, const char *reason) {
  out->supported = false;
  if (out->note_count == out->note_capacity) return;
  ait_support_note *n = &out->notes[out->note_count++];
  *n = (ait_support_note){.node = AIT_NO_INDEX, .code = code};
  snprintf(n->reason, sizeof n->reason, "%s", reason);
}

static ait_status row_supports(const guest_row *row, const ait_region *r, ait_support *out) {
  out->supported = true;
  out->note_count = 0;
  if (!row->version) refuse(out, "not-here", row->reason);
  else if (!r->program) refuse(out, "program", "it takes a whole exported program (.pt2) as torch.export made it, and no parts of one");
  for (uint32_t i = 0; i < r->input_count; ++i) {
    const ait_region_input *in = &r->inputs[i];
    if (in->kind == AIT_INPUT_TOKEN) refuse(out, "effects", "the model orders effects by tokens");
    else if (in->mutated) refuse(out, "state", "the model changes a buffer or an input: a guest keeps no state for a session");
  }
  for (uint32_t i = 0; i < r->output_count; ++i)
    if (r->outputs[i].kind != AIT_OUTPUT_USER) refuse(out, "state", "the model keeps state over calls: a guest does not");
  return AIT_OK;
}

/* ---- options as text
 * -------------------------------------------------------------------------------------------------------------------*/
static char *options_text(const ait_option *options, uint32_t count) {
  size_t size = 1;
  for (uint32_t i = 0; i < count; ++i) size += strlen(options[i].key) + strlen(options[i].value) + 2;
  char *text = malloc(size), *p = text;
  if (!text) return NULL;
  *p = 0;
  for (uint32_t i = 0; i < count; ++i) p += sprintf(p, "%s%s=%s", i ? "," : "", options[i].key, options[i].value);
  return text;
}

/* ---- compile
 * ---------------------------------------------------------------------------------------------------------------------------*/
static char *weight_names(const ait_region *r, size_t *out_size, uint32_t *out_count) {
  size_t size = 0;
  uint32_t count = 0;
  for (uint32_t i = 0; i < r->input_count; ++i)
    if (r->inputs[i].kind != AIT_INPUT_USER && r->inputs[i].name) size += strlen(r->inputs[i].name) + 1, ++count;
  char *names = malloc(size + 1), *p = names;
  for (uint32_t i = 0; names && i < r->input_count; ++i) {
    if (r->inputs[i].kind == AIT_INPUT_USER || !r->inputs[i].name) continue;
    size_t n = strlen(r->inputs[i].name) + 1;
    memcpy(p, r->inputs[i].name, n);
    p += n;
  }
  *out_size = size;
  *out_count = count;
  return names;
}

static ait_status write_blob(ait_allocator a, const ait_region *r, guest_header h, const char *names, const void *payload, ait_blob *out) {
  size_t size = sizeof h + r->input_count * sizeof(int32_t) + h.names_size + h.payload_size;
  char *data = a.alloc(a.ctx, size, 64), *p = data;
  if (!data) return out_of_memory();
  memcpy(h.magic, blob_magic, sizeof h.magic);
  h.version = BLOB_VERSION;
  h.input_count = r->input_count;
  h.output_count = r->output_count;
  memcpy(p, &h, sizeof h);
  p += sizeof h;
  for (uint32_t i = 0; i < r->input_count; ++i, p += sizeof(int32_t)) {
    int32_t place = r->inputs[i].kind == AIT_INPUT_USER ? r->inputs[i].user_index : -1;
    memcpy(p, &place, sizeof place);
  }
  memcpy(p, names, h.names_size);
  memcpy(p + h.names_size, payload, h.payload_size);
  *out = (ait_blob){data, size};
  return AIT_OK;
}

static ait_status row_compile(const guest_row *row, const ait_region *r, const ait_compile_options *o, ait_blob *out) {
  if (!row->version) return ait_error(AIT_CODE_UNAVAILABLE, "%s", row->reason);
  if (!r->program) return ait_error(AIT_CODE_UNSUPPORTED, "'%s' takes whole exported programs only", row->table.name);
  void *payload = NULL;
  size_t payload_size = 0, names_size = 0;
  uint32_t count = 0;
  bool weights = false;
  char *names = weight_names(r, &names_size, &count), *options = options_text(o->options, o->option_count);
  ait_status status = names && options ? AIT_OK : out_of_memory();
  if (!status) status = guest_worker_compile(row, options, r->program, names, names_size, &payload, &payload_size, &weights);
  guest_header h = {.weight_count = weights ? count : 0, .names_size = weights ? names_size : 0, .payload_size = payload_size};
  if (!status) status = write_blob(o->allocator, r, h, names, payload, out);
  free(payload);
  free(options);
  free(names);
  return status;
}

/* ---- load
 * ------------------------------------------------------------------------------------------------------------------------------*/
static void unload(void *loaded) {
  guest_loaded *l = loaded;
  if (!l) return;
  if (l->here && getpid() == home) {
    PyGILState_STATE state = PyGILState_Ensure();
    Py_CLEAR(l->here);
    PyGILState_Release(state);
  }
  for (uint32_t i = 0; l->weights && i < l->weight_count; ++i) ait_tensor_release(&l->weights[i]);
  free(l->weights);
  free(l->names);
  free(l->options);
  free(l);
}

static ait_status find_weights(guest_loaded *l, const char *names, size_t size, const ait_weights *from) {
  l->names = calloc(l->weight_count + 1, sizeof *l->names);
  l->weights = calloc(l->weight_count + 1, sizeof *l->weights);
  if (!l->names || !l->weights) return out_of_memory();
  const char *p = names, *end = names + size;
  for (uint32_t i = 0; i < l->weight_count; ++i) {
    const char *stop = p < end ? memchr(p, 0, (size_t)(end - p)) : NULL;
    if (!stop) return damaged("names of weights");
    l->names[i] = p;
    p = stop + 1;
    ait_status status = from->get(from->ctx, l->names[i], &l->weights[i]);
    if (status) return status;
  }
  return AIT_OK;
}

static ait_status read_blob(guest_loaded *l, const ait_load_context *c) {
  guest_header h;
  if (c->blob_size < sizeof h) return damaged("too short");
  memcpy(&h, c->blob, sizeof h);
  if (memcmp(h.magic, blob_magic, sizeof h.magic) != 0) return damaged("no blob of a guest in Python");
  if (h.version != BLOB_VERSION) return ait_error(AIT_CODE_INCOMPATIBLE, "blob has version %u, this ait reads %d", h.version, BLOB_VERSION);
  size_t rest = c->blob_size - sizeof h;
  if (h.input_count > rest / sizeof(int32_t) || h.output_count > GUEST_VALUES) return damaged("sizes of its parts");
  rest -= h.input_count * sizeof(int32_t);
  if (h.names_size > rest || h.payload_size != rest - h.names_size || h.weight_count > h.names_size) return damaged("sizes of its parts");
  l->places = (const int32_t *)(const void *)((const char *)c->blob + sizeof h);
  l->input_count = h.input_count;
  l->output_count = h.output_count;
  for (uint32_t i = 0; i < h.input_count; ++i) l->user_count += l->places[i] >= 0;
  for (uint32_t i = 0; i < h.input_count; ++i)
    if (l->places[i] >= (int32_t)l->user_count) return damaged("the order of its inputs");
  if (l->user_count > GUEST_VALUES) return damaged("the number of its inputs");
  const char *names = (const char *)(l->places + h.input_count);
  l->payload = names + h.names_size;
  l->payload_size = (size_t)h.payload_size;
  l->weight_count = h.weight_count;
  return find_weights(l, names, (size_t)h.names_size, &c->weights);
}

static ait_status row_load(const guest_row *row, const ait_load_context *c, void **out) {
  if (!row->version) return ait_error(AIT_CODE_UNAVAILABLE, "%s", row->reason);
  guest_loaded *l = calloc(1, sizeof *l);
  if (!l) return out_of_memory();
  l->row = row;
  l->allocator = c->allocator;
  l->options = options_text(c->options, c->option_count);
  ait_status status = l->options ? read_blob(l, c) : out_of_memory();
  if (status) unload(l);
  else *out = l;
  return status;
}

/* ---- instances
 * -------------------------------------------------------------------------------------------------------------------------*/
typedef struct guest_instance {
  guest_loaded *loaded;
  guest_worker *worker; /* NULL: none yet, or in place */
  int32_t threads;      /* that the worker has */
  PyObject *kept;       /* in place: owner of the last outputs */
  double transport;
  ait_tensor *copies; /* contiguous inputs; with storage */
  uint32_t copy_count;
} guest_instance;

static void instance_destroy(void *instance) {
  guest_instance *g = instance;
  if (!g) return;
  guest_worker_stop(g->worker);
  if (g->kept && getpid() == home) {
    PyGILState_STATE state = PyGILState_Ensure();
    Py_CLEAR(g->kept);
    PyGILState_Release(state);
  }
  for (uint32_t i = 0; i < g->copy_count; ++i) ait_tensor_release(&g->copies[i]);
  free(g->copies);
  free(g);
}

static ait_status instance_create(void *loaded, ait_allocator allocator, void **out) {
  (void)allocator; /* what Python makes is Python's */
  guest_instance *g = calloc(1, sizeof *g);
  if (!g) return out_of_memory();
  g->loaded = loaded;
  *out = g;
  return AIT_OK;
}

static double transport_seconds(const void *instance) { return ((const guest_instance *)instance)->transport; }

/* ---- inputs and outputs
 * ----------------------------------------------------------------------------------------------------------------*/
static void copy_strided(const ait_tensor *t, size_t item, char *to) {
  int64_t at[AIT_MAX_RANK] = {0}, n = ait_tensor_count(t);
  const char *from = t->data;
  for (int64_t k = 0; k < n; ++k) {
    memcpy(to, from, item);
    to += item;
    for (int32_t d = t->rank; d-- > 0;) {
      from += t->strides[d] * (int64_t)item;
      if (++at[d] < t->shape[d]) break;
      from -= t->strides[d] * t->shape[d] * (int64_t)item;
      at[d] = 0;
    }
  }
}

static bool same_shape(const ait_tensor *a, const ait_tensor *b) {
  return a->dtype == b->dtype && a->rank == b->rank && memcmp(a->shape, b->shape, (size_t)a->rank * sizeof *a->shape) == 0;
}

/* A contiguous view of input i in *out. */
static ait_status take_input(guest_instance *g, uint32_t i, const ait_value *v, ait_value *out) {
  *out = *v;
  if (v->kind != AIT_VALUE_TENSOR || ait_tensor_is_contiguous(&v->as.tensor)) return AIT_OK;
  const ait_tensor *t = &v->as.tensor;
  if (i >= g->copy_count) {
    ait_tensor *more = realloc(g->copies, (i + 1) * sizeof *more);
    if (!more) return out_of_memory();
    memset(more + g->copy_count, 0, (i + 1 - g->copy_count) * sizeof *more);
    g->copies = more;
    g->copy_count = i + 1;
  }
  ait_tensor *c = &g->copies[i];
  if (!c->data || !same_shape(c, t)) {
    ait_tensor_release(c);
    ait_status status = ait_tensor_create(g->loaded->allocator, t->dtype, t->rank, t->shape, c);
    if (status) return status;
  }
  copy_strided(t, ait_dtype_size(t->dtype), c->data);
  out->as.tensor = *c;
  out->as.tensor.storage = NULL;
  return AIT_OK;
}

/* Into the caller's memory where there is some. */
static ait_status give_output(const guest_loaded *l, uint32_t i, const ait_value *made, ait_value *out) {
  bool room = out->kind == AIT_VALUE_TENSOR && out->as.tensor.data;
  if (!room) {
    *out = *made;
    return AIT_OK;
  }
  if (made->kind != AIT_VALUE_TENSOR || !same_shape(&made->as.tensor, &out->as.tensor))
    return ait_error(AIT_CODE_UNSUPPORTED, "output %u of '%s' has another shape or dtype than the model declares", i, l->row->table.name);
  size_t bytes = (size_t)ait_tensor_count(&made->as.tensor) * ait_dtype_size(made->as.tensor.dtype);
  if (bytes) memcpy(out->as.tensor.data, made->as.tensor.data, bytes);
  return AIT_OK;
}

/* ---- runs in place: with the GIL
 * ---------------------------------------------------------------------------------------------------------*/
static ait_status python_error(const guest_loaded *l) {
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  PyErr_NormalizeException(&type, &value, &trace);
  PyObject *name = type ? PyObject_GetAttrString(type, "__name__") : NULL, *text = value ? PyObject_Str(value) : NULL;
  PyObject *bytes = text ? PyUnicode_AsUTF8String(text) : NULL, *name_bytes = name ? PyUnicode_AsUTF8String(name) : NULL;
  const char *what = bytes ? PyBytes_AsString(bytes) : "?", *of = name_bytes ? PyBytes_AsString(name_bytes) : "error";
  ait_status status = ait_error(AIT_CODE_INTERNAL, "guest '%s': %s: %.400s", l->row->table.name, of, what ? what : "?");
  Py_XDECREF(name), Py_XDECREF(text), Py_XDECREF(bytes), Py_XDECREF(name_bytes);
  Py_XDECREF(type), Py_XDECREF(value), Py_XDECREF(trace);
  PyErr_Clear();
  return status;
}

static PyObject *sizes_tuple(const int64_t *sizes, int32_t rank) {
  PyObject *tuple = PyTuple_New(rank);
  for (int32_t d = 0; tuple && d < rank; ++d) PyTuple_SetItem(tuple, d, PyLong_FromLongLong(sizes[d]));
  return tuple;
}

/* (memory, dtype, sizes, strides) */
static PyObject *tensor_tuple(const ait_tensor *t, bool strided) {
  static char nothing[8];
  int64_t last = 0, count = ait_tensor_count(t);
  for (int32_t d = 0; strided && d < t->rank; ++d) last += (t->shape[d] - 1) * t->strides[d];
  size_t bytes = (size_t)(count == 0 ? 0 : strided ? last + 1 : count) * ait_dtype_size(t->dtype);
  PyObject *memory = PyMemoryView_FromMemory(bytes ? t->data : nothing, (Py_ssize_t)bytes, 0x200 /* PyBUF_WRITE */);
  PyObject *sizes = sizes_tuple(t->shape, t->rank), *strides = sizes_tuple(t->strides, t->rank);
  PyObject *out = memory && sizes && strides ? Py_BuildValue("(OsOO)", memory, ait_dtype_name(t->dtype), sizes, strides) : NULL;
  Py_XDECREF(memory), Py_XDECREF(sizes), Py_XDECREF(strides);
  return out;
}

static PyObject *value_object(const ait_value *v) {
  switch (v->kind) {
    case AIT_VALUE_TENSOR: return tensor_tuple(&v->as.tensor, false);
    case AIT_VALUE_INT: return PyLong_FromLongLong(v->as.i);
    case AIT_VALUE_FLOAT: return PyFloat_FromDouble(v->as.f);
    case AIT_VALUE_BOOL: return PyBool_FromLong(v->as.b);
    case AIT_VALUE_STRING: return PyUnicode_FromString(v->as.s);
    default: Py_RETURN_NONE;
  }
}

static bool make_here(guest_loaded *l) {
  if (l->here) return true;
  PyObject *weights = PyList_New(0), *payload = PyMemoryView_FromMemory((char *)(uintptr_t)l->payload, (Py_ssize_t)l->payload_size, 0x100);
  bool good = weights && payload;
  for (uint32_t i = 0; good && i < l->weight_count; ++i) {
    PyObject *t = tensor_tuple(&l->weights[i], true), *pair = t ? Py_BuildValue("(sO)", l->names[i], t) : NULL;
    good = pair && PyList_Append(weights, pair) == 0;
    Py_XDECREF(t), Py_XDECREF(pair);
  }
  if (good) l->here = PyObject_CallFunction(here_maker, "ssOO", l->row->table.name, l->options, payload, weights);
  Py_XDECREF(weights), Py_XDECREF(payload);
  return l->here != NULL;
}

/* (address, dtype, sizes) or a number */
static bool take_object(PyObject *object, ait_value *out) {
  if (object == Py_None) *out = (ait_value){0};
  else if (PyBool_Check(object)) *out = (ait_value){.kind = AIT_VALUE_BOOL, .as.b = object == Py_True};
  else if (PyLong_Check(object)) *out = (ait_value){.kind = AIT_VALUE_INT, .as.i = PyLong_AsLongLong(object)};
  else if (PyFloat_Check(object)) *out = (ait_value){.kind = AIT_VALUE_FLOAT, .as.f = PyFloat_AsDouble(object)};
  else {
    unsigned long long address;
    const char *dtype;
    PyObject *sizes;
    int64_t shape[AIT_MAX_RANK];
    if (!PyArg_ParseTuple(object, "KsO!", &address, &dtype, &PyTuple_Type, &sizes)) return false;
    Py_ssize_t rank = PyTuple_Size(sizes);
    if (rank > AIT_MAX_RANK) return PyErr_SetString(PyExc_ValueError, "a result of too many dimensions"), false;
    for (Py_ssize_t d = 0; d < rank; ++d) shape[d] = PyLong_AsLongLong(PyTuple_GetItem(sizes, d));
    *out = ait_value_tensor(ait_tensor_borrow((void *)(uintptr_t)address, ait_dtype_from_name(dtype), (int32_t)rank, shape));
  }
  return !PyErr_Occurred();
}

/* The callable gives (list of results, what owns their memory). */
static bool call_here(guest_instance *g, const ait_value *inputs, uint32_t input_count, ait_value *outputs, uint32_t output_count) {
  if (!make_here(g->loaded)) return false;
  PyObject *list = PyList_New(0), *result = NULL, *values = NULL, *owner = NULL;
  bool good = list != NULL;
  for (uint32_t i = 0; good && i < input_count; ++i) {
    PyObject *o = value_object(&inputs[i]);
    good = o && PyList_Append(list, o) == 0;
    Py_XDECREF(o);
  }
  if (good) result = PyObject_CallFunctionObjArgs(g->loaded->here, list, NULL);
  good = result && PyArg_ParseTuple(result, "O!O", &PyList_Type, &values, &owner);
  if (good && PyList_Size(values) != (Py_ssize_t)output_count) {
    PyErr_Format(PyExc_ValueError, "%zd results, not %u", PyList_Size(values), output_count);
    good = false;
  }
  for (uint32_t i = 0; good && i < output_count; ++i) good = take_object(PyList_GetItem(values, i), &outputs[i]);
  if (good) {
    PyObject *before = g->kept;
    Py_INCREF(owner);
    g->kept = owner;
    Py_XDECREF(before);
  }
  Py_XDECREF(list), Py_XDECREF(result);
  return good;
}

static ait_status run_here(guest_instance *g, const ait_value *inputs, uint32_t input_count, ait_value *outputs, uint32_t output_count) {
  PyGILState_STATE state = PyGILState_Ensure();
  ait_status status = call_here(g, inputs, input_count, outputs, output_count) ? AIT_OK : python_error(g->loaded);
  PyGILState_Release(state);
  return status;
}

/* ---- a run
 * -------------------------------------------------------------------------------------------------------------------------------*/
static ait_status run_there(guest_instance *g, int32_t threads, const ait_value *inputs, ait_value *outputs) {
  const guest_loaded *l = g->loaded;
  double transport = 0;
  ait_status status = AIT_OK;
  if (g->worker && g->threads != threads) {
    guest_worker_stop(g->worker);
    g->worker = NULL;
  }
  if (!g->worker) status = guest_worker_start(l, threads, &g->worker);
  if (!status) g->threads = threads;
  if (!status) status = guest_worker_run(g->worker, inputs, l->user_count, outputs, l->output_count, &transport);
  g->transport += transport;
  return status;
}

static ait_status run_with(guest_instance *g, const ait_run_context *c, ait_value *inputs, ait_value *outputs) {
  const guest_loaded *l = g->loaded;
  ait_status status = AIT_OK;
  for (uint32_t i = 0; !status && i < l->input_count; ++i)
    if (l->places[i] >= 0) status = take_input(g, (uint32_t)l->places[i], &c->inputs[i], &inputs[l->places[i]]);
  if (status) return status;
  if (getpid() == home) status = run_here(g, inputs, l->user_count, outputs, l->output_count);
  else status = run_there(g, ait_pool_threads(c->pool), inputs, outputs);
  for (uint32_t i = 0; !status && i < l->output_count; ++i) status = give_output(l, i, &outputs[i], &c->outputs[i]);
  return status;
}

static ait_status run(void *instance, const ait_run_context *c) {
  guest_instance *g = instance;
  ait_value *values = calloc((size_t)g->loaded->user_count + g->loaded->output_count + 1, sizeof *values);
  if (!values) return out_of_memory();
  ait_status status = run_with(g, c, values, values + g->loaded->user_count);
  free(values);
  return status;
}

/* ---- the table: a row has functions of its own, since those of a backend get no row
 * -----------------------------------------------------*/
#define EACH_ROW(X) \
  X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13) X(14) X(15) X(16) X(17) X(18) X(19) X(20) X(21) X(22) X(23)
#define ROW_FUNCTIONS(n)                                                                                           \
  static void probe_##n(ait_probe *out) { row_probe(&rows[n], out); }                                              \
  static ait_status supports_##n(const ait_region *r, ait_support *out) { return row_supports(&rows[n], r, out); } \
  static ait_status compile_##n(const ait_region *r, const ait_compile_options *o, ait_blob *out) {                \
    return row_compile(&rows[n], r, o, out);                                                                       \
  }                                                                                                                \
  static ait_status load_##n(const ait_load_context *c, void **out) { return row_load(&rows[n], c, out); }
#define ROW_TABLE(n) {.probe = probe_##n, .supports = supports_##n, .compile = compile_##n, .load = load_##n},

static void row_probe(const guest_row *row, ait_probe *out) {
  *out = (ait_probe){.available = row->version != NULL};
  snprintf(out->version, sizeof out->version, "%s", row->version ? row->version : "");
  snprintf(out->detail, sizeof out->detail, "%s", row->reason);
}

EACH_ROW(ROW_FUNCTIONS)
static const ait_backend templates[GUEST_ROWS] = {EACH_ROW(ROW_TABLE)};

/* ---- registering: called with the GIL
 * ---------------------------------------------------------------------------------------------------*/
static char *copy_of(const char *text) {
  char *copy = text ? malloc(strlen(text) + 1) : NULL;
  if (copy) strcpy(copy, text);
  return copy;
}

/* [(name, help, default, (values...))...]: everything lives as long as the process. */
static const ait_knob *make_knobs(PyObject *list) {
  Py_ssize_t n = PyList_Size(list);
  ait_knob *knobs = calloc((size_t)n + 1, sizeof *knobs);
  for (Py_ssize_t i = 0; knobs && i < n; ++i) {
    const char *name, *help, *usual;
    PyObject *values;
    if (!PyArg_ParseTuple(PyList_GetItem(list, i), "sssO!", &name, &help, &usual, &PyTuple_Type, &values)) return NULL;
    Py_ssize_t count = PyTuple_Size(values);
    const char **texts = calloc((size_t)count + 1, sizeof *texts);
    for (Py_ssize_t k = 0; texts && k < count; ++k) {
      PyObject *bytes = PyUnicode_AsUTF8String(PyTuple_GetItem(values, k));
      if (!bytes) return NULL;
      texts[k] = copy_of(PyBytes_AsString(bytes));
      Py_DECREF(bytes);
    }
    knobs[i] = (ait_knob){copy_of(name), copy_of(help), copy_of(usual), texts};
  }
  return knobs;
}

static guest_row *find_row(const char *name) {
  for (int i = 0; i < row_count; ++i)
    if (!strcmp(rows[i].table.name, name)) return &rows[i];
  return NULL;
}

static guest_row *new_row(const char *name, const char *summary, const char *needs, int code, PyObject *knobs) {
  if (row_count == GUEST_ROWS) return core_fail(AIT_CODE_LIMIT, NULL, "more than %d backends in Python", GUEST_ROWS);
  guest_row *row = &rows[row_count];
  const ait_knob *list = make_knobs(knobs);
  if (!list) return PyErr_Occurred() ? NULL : (guest_row *)PyErr_NoMemory();
  row->table = templates[row_count];
  row->table.struct_size = sizeof row->table;
  row->table.abi_version = AIT_BACKEND_ABI;
  row->table.name = copy_of(name);
  row->table.summary = copy_of(summary);
  row->table.needs = copy_of(needs);
  row->table.knobs = list;
  row->table.accepts_raw = true;
  row->table.blob_is_code = code != 0;
  row->table.instance_create = instance_create;
  row->table.instance_destroy = instance_destroy;
  row->table.run = run;
  row->table.unload = unload;
  row->table.transport_seconds = transport_seconds;
  return row;
}

/* A name that is there gets the new version, reason and spec. What stood there before is not freed: a trial may be reading it. */
static PyObject *guest_add(PyObject *module, PyObject *args) {
  (void)module;
  const char *name, *summary, *version, *reason, *needs, *spec;
  int code;
  PyObject *knobs;
  if (!PyArg_ParseTuple(args, "sszsssiO!", &name, &summary, &version, &reason, &needs, &spec, &code, &PyList_Type, &knobs)) return NULL;
  guest_row *row = find_row(name);
  bool fresh = row == NULL;
  if (fresh) row = new_row(name, summary, needs, code, knobs);
  if (!row) return NULL;
  row->spec = copy_of(spec);
  row->reason = copy_of(reason);
  row->version = copy_of(version);
  if (!row->spec || !row->reason || (version && !row->version) || !row->table.name) return PyErr_NoMemory();
  ait_status status = fresh ? ait_backend_add(&row->table) : AIT_OK;
  if (status) return core_raise(status);
  row_count += fresh;
  Py_RETURN_NONE;
}

/* guest_setup(argv, make): how a worker is started; what makes the callable of a guest in this process. */
static PyObject *guest_setup(PyObject *module, PyObject *args) {
  (void)module;
  PyObject *list, *make;
  if (!PyArg_ParseTuple(args, "O!O", &PyList_Type, &list, &make)) return NULL;
  Py_ssize_t n = PyList_Size(list);
  char **argv = calloc((size_t)n + 1, sizeof *argv);
  for (Py_ssize_t i = 0; argv && i < n; ++i) {
    PyObject *bytes = PyUnicode_EncodeFSDefault(PyList_GetItem(list, i));
    if (!bytes) return NULL;
    argv[i] = copy_of(PyBytes_AsString(bytes));
    Py_DECREF(bytes);
  }
  if (!argv) return PyErr_NoMemory();
  guest_worker_command(argv);
  PyObject *before = here_maker;
  Py_INCREF(make);
  here_maker = make;
  Py_XDECREF(before);
  home = getpid();
  Py_RETURN_NONE;
}

int core_add_guests(PyObject *module) {
  static PyMethodDef methods[] = {
      {"guest_add", guest_add, METH_VARARGS, "guest_add(name, summary, version, reason, needs, spec, code, knobs)"},
      {"guest_setup", guest_setup, METH_VARARGS, "guest_setup(argv, make)"},
      {NULL, NULL, 0, NULL},
  };
  return PyModule_AddFunctions(module, methods);
}
