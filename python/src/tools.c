/* Functions on files, of tools.h, tune.h and keys.h: paths and options in, JSON or text out. The Python side parses the JSON. */
#include "core.h"

#include <ait/tools.h>
#include <ait/tune.h>
#include <limits.h>
#include <string.h>

/* ---- one path and load options
 * ------------------------------------------------------------------------------------------------------------*/
typedef struct file_call {
  const char *path;
  const char *extra[2]; /* further positional texts, NULL where left out */
  core_load load;
  PyObject *rest;
} file_call;

static void call_end(file_call *c) {
  core_load_deinit(&c->load);
  Py_CLEAR(c->rest);
}

/* Positional: a path, then up to two texts or None. Keywords: load options; the caller takes its own out of rest first. */
static int call_begin(PyObject *args, PyObject *kwargs, const char *name, file_call *c) {
  PyObject *path, *extra[2] = {NULL, NULL};
  *c = (file_call){0};
  char format[64];
  PyOS_snprintf(format, sizeof format, "O|OO:%s", name);
  if (!PyArg_ParseTuple(args, format, &path, &extra[0], &extra[1])) return -1;
  c->rest = kwargs ? PyDict_Copy(kwargs) : PyDict_New();
  if (!c->rest || core_load_from(c->rest, &c->load)) {
    call_end(c);
    return -1;
  }
  int failed = core_path_text(path, c->load.held, &c->path);
  for (int i = 0; i < 2 && !failed; ++i)
    if (extra[i] && extra[i] != Py_None) failed = core_path_text(extra[i], c->load.held, &c->extra[i]);
  if (failed) call_end(c);
  return failed;
}

/* The document as a str, or the exception; the document is freed. */
static PyObject *document(ait_status status, char *text) {
  PyObject *result = NULL;
  if (status) core_raise(status);
  else if (text) result = PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "backslashreplace");
  else result = (Py_INCREF(Py_None), Py_None);
  ait_string_free(text);
  return result;
}

/* Defines a function of one file: `expression` is a status, may write to `out` (char *), and runs without the GIL. */
#define FILE_FUNCTION(name, expression)                                       \
  static PyObject *name(PyObject *module, PyObject *args, PyObject *kwargs) { \
    (void)module;                                                             \
    file_call c;                                                              \
    char *out = NULL;                                                         \
    if (call_begin(args, kwargs, #name, &c)) return NULL;                     \
    if (core_nothing_left(c.rest, #name)) return call_end(&c), NULL;          \
    ait_status status;                                                        \
    Py_BEGIN_ALLOW_THREADS;                                                   \
    status = (expression);                                                    \
    Py_END_ALLOW_THREADS;                                                     \
    call_end(&c);                                                             \
    return document(status, out);                                             \
  }

FILE_FUNCTION(explain, ait_explain(c.path, c.extra[0], &c.load.options, &out))
FILE_FUNCTION(opt, ait_opt(c.path, c.extra[0], c.extra[1], &c.load.options, &out))
FILE_FUNCTION(ops_missing, ait_ops_missing(c.path, &c.load.options, &out))
FILE_FUNCTION(record_export, ait_record_export(c.path, c.extra[0] ? c.extra[0] : "", &out))

#define LIST_FUNCTION(name, expression)                       \
  static PyObject *name(PyObject *module, PyObject *unused) { \
    (void)module, (void)unused;                               \
    char *out = NULL;                                         \
    ait_status status;                                        \
    Py_BEGIN_ALLOW_THREADS;                                   \
    status = (expression);                                    \
    Py_END_ALLOW_THREADS;                                     \
    return document(status, out);                             \
  }

LIST_FUNCTION(ops, ait_ops(&out))
LIST_FUNCTION(passes, ait_passes(&out))
LIST_FUNCTION(backends, ait_backends(&out))
LIST_FUNCTION(machine, ait_machine(&out))

/* ---- values of a call
 * --------------------------------------------------------------------------------------------------------------------*/
/* The arguments of one call, in the order of a model's inputs. */
typedef struct call_values {
  size_t count;
  ait_value *values;
  core_hold *holds;
} call_values;

static void values_end(call_values *v) {
  for (size_t i = 0; v->holds && i < v->count; ++i) core_hold_release(&v->holds[i]);
  PyMem_Free(v->values);
  PyMem_Free(v->holds);
  *v = (call_values){0};
}

/* A sequence of one object for each input of `ports`, a Model. The objects must outlive the values. */
static int values_begin(PyObject *sequence, const core_model *ports, call_values *out) {
  const core_signature *s = ports->signature;
  *out = (call_values){0};
  Py_ssize_t count = PySequence_Size(sequence);
  if (count < 0) return -1;
  if ((size_t)count != s->input_count)
    return core_fail(AIT_CODE_INVALID_ARGUMENT, NULL, "%zd inputs given, the model takes %zu", count, s->input_count), -1;
  out->values = PyMem_Calloc((size_t)count + 1, sizeof *out->values);
  out->holds = PyMem_Calloc((size_t)count + 1, sizeof *out->holds);
  int failed = !out->values || !out->holds;
  if (failed) PyErr_NoMemory();
  for (Py_ssize_t i = 0; i < count && !failed; ++i) {
    core_kind kind = CORE_KIND_AIT;
    PyObject *obj = PySequence_GetItem(sequence, i); /* the sequence keeps it alive */
    out->count = (size_t)i + 1;
    failed = !obj || core_value_from_object(&s->inputs[i], obj, &out->values[i], &out->holds[i], &kind);
    Py_XDECREF(obj);
  }
  if (failed) values_end(out);
  return failed ? -1 : 0;
}

/* The Model under "ports", removed from the dict and kept by held; NULL with an exception. */
static const core_model *take_ports(PyObject *rest, PyObject *held) {
  PyObject *ports = PyDict_GetItemString(rest, "ports");
  if (!ports || PyObject_IsInstance(ports, (PyObject *)core_model_type) != 1)
    return (core_model *)PyErr_Format(PyExc_TypeError, "ports= must be a Model, which names the inputs");
  if (PyList_Append(held, ports)) return NULL;
  PyDict_DelItemString(rest, "ports");
  return (core_model *)ports;
}

/* "inputs" of one call, removed from the dict. Absent or None: no values. */
static int take_inputs(file_call *c, call_values *out) {
  PyObject *inputs = PyDict_GetItemString(c->rest, "inputs");
  if (!inputs) return 0;
  if (PyList_Append(c->load.held, inputs)) return -1;
  PyDict_DelItemString(c->rest, "inputs");
  if (inputs == Py_None) return PyDict_GetItemString(c->rest, "ports") ? PyDict_DelItemString(c->rest, "ports") : 0;
  const core_model *ports = take_ports(c->rest, c->load.held);
  return ports ? values_begin(inputs, ports, out) : -1;
}

/* ---- inspect, debug
 * -------------------------------------------------------------------------------------------------------------------------*/
static PyObject *inspect(PyObject *module, PyObject *args, PyObject *kwargs) {
  (void)module;
  file_call c;
  call_values v = {0};
  ait_inspect_options o;
  char *out = NULL;
  int64_t threads = 0;
  ait_status status = AIT_OK;
  ait_inspect_options_init(&o);
  if (call_begin(args, kwargs, "inspect", &c)) return NULL;
  if (take_inputs(&c, &v)) return call_end(&c), NULL;
  if (core_take_text(c.rest, "roofline", c.load.held, &o.roofline_json) || core_take_int(c.rest, "threads", 0, 1024, &threads) ||
      core_nothing_left(c.rest, "inspect"))
    return values_end(&v), call_end(&c), NULL;
  o.threads = (int32_t)threads;
  o.inputs = v.values;
  o.input_count = v.count;
  Py_BEGIN_ALLOW_THREADS;
  status = ait_inspect_with(c.path, &c.load.options, &o, &out);
  Py_END_ALLOW_THREADS;
  values_end(&v);
  call_end(&c);
  return document(status, out);
}

static PyObject *debug(PyObject *module, PyObject *args, PyObject *kwargs) {
  (void)module;
  file_call c;
  call_values v = {0};
  ait_debug_options o;
  char *out = NULL;
  ait_status status = AIT_OK;
  ait_debug_options_init(&o);
  if (call_begin(args, kwargs, "debug", &c)) return NULL;
  if (take_inputs(&c, &v)) return call_end(&c), NULL;
  if (!v.values) return call_end(&c), PyErr_Format(PyExc_TypeError, "debug() needs inputs=");
  if (core_take_float(c.rest, "rtol", &o.rtol) || core_take_float(c.rest, "atol", &o.atol) || core_nothing_left(c.rest, "debug"))
    return values_end(&v), call_end(&c), NULL;
  o.output = c.extra[0];
  Py_BEGIN_ALLOW_THREADS;
  status = ait_debug(c.path, &c.load.options, v.values, v.count, &o, &out);
  Py_END_ALLOW_THREADS;
  values_end(&v);
  call_end(&c);
  return document(status, out);
}

/* ---- export, unpack, sign
 * --------------------------------------------------------------------------------------------------------------------*/
static PyObject *export_onnx(PyObject *module, PyObject *args, PyObject *kwargs) {
  (void)module;
  file_call c;
  ait_export_options o = {.struct_size = sizeof o};
  int64_t opset = 0;
  if (call_begin(args, kwargs, "export_onnx", &c)) return NULL;
  if (core_take_int(c.rest, "opset", 0, 1000, &opset) || core_take_bool(c.rest, "external_data", &o.external_data) ||
      core_nothing_left(c.rest, "export_onnx"))
    return call_end(&c), NULL;
  if (!c.extra[0]) return call_end(&c), PyErr_Format(PyExc_TypeError, "export_onnx() needs the path to write");
  o.opset = (int32_t)opset;
  ait_status status;
  Py_BEGIN_ALLOW_THREADS;
  status = ait_export(c.path, c.extra[0], &c.load.options, &o);
  Py_END_ALLOW_THREADS;
  call_end(&c);
  return document(status, NULL);
}

static PyObject *unpack(PyObject *module, PyObject *args, PyObject *kwargs) {
  (void)module;
  file_call c;
  ait_unpack_options o;
  char *out = NULL;
  ait_unpack_options_init(&o);
  if (call_begin(args, kwargs, "unpack", &c)) return NULL;
  if (core_take_bool(c.rest, "npz", &o.npz) || core_nothing_left(c.rest, "unpack")) return call_end(&c), NULL;
  o.keys = c.load.keys;
  o.require_signature = c.load.options.require_signature;
  ait_status status;
  Py_BEGIN_ALLOW_THREADS;
  status = ait_unpack(c.path, c.extra[0], &o, &out);
  Py_END_ALLOW_THREADS;
  call_end(&c);
  return document(status, out);
}

static PyObject *sign(PyObject *module, PyObject *args, PyObject *kwargs) {
  (void)module;
  file_call c;
  const char *key = NULL;
  if (call_begin(args, kwargs, "sign", &c)) return NULL;
  if (core_take_text(c.rest, "key", c.load.held, &key) || core_nothing_left(c.rest, "sign")) return call_end(&c), NULL;
  if (!key || !c.load.keys) return call_end(&c), PyErr_Format(PyExc_TypeError, "sign() needs key= and keys=, the folder of keys");
  ait_status status;
  Py_BEGIN_ALLOW_THREADS;
  status = ait_sign(c.path, c.extra[0] ? c.extra[0] : c.path, c.load.keys, key);
  Py_END_ALLOW_THREADS;
  call_end(&c);
  return document(status, NULL);
}

/* key_new(folder, name), key_trust(folder, text), key_revoke(folder, name), keys(folder): a list of tuples after the change. */
static PyObject *key_list(const ait_keys *keys) {
  PyObject *list = PyList_New(0);
  ait_key_info k;
  for (size_t i = 0; list && ait_keys_at(keys, i, &k); ++i) {
    PyObject *one = Py_BuildValue("{s:s,s:s,s:s,s:N,s:N}", "name", k.name, "text", k.text, "fingerprint", k.fingerprint, "revoked",
                                  PyBool_FromLong(k.revoked), "own", PyBool_FromLong(k.own));
    if (!one || PyList_Append(list, one)) Py_CLEAR(list);
    Py_XDECREF(one);
  }
  return list;
}

static PyObject *keys(PyObject *module, PyObject *args) {
  (void)module;
  PyObject *folder = NULL;
  const char *action = NULL, *text = NULL, *name = NULL;
  if (!PyArg_ParseTuple(args, "O&|szz:keys", PyUnicode_FSConverter, &folder, &action, &text, &name)) return NULL;
  ait_keys *store = NULL;
  ait_status status = ait_keys_open(ait_allocator_default(), PyBytes_AsString(folder), &store);
  Py_DECREF(folder);
  if (!status && action) {
    if (!text) status = ait_error(AIT_CODE_INVALID_ARGUMENT, "keys: '%s' needs a name or a text", action);
    else if (!strcmp(action, "new")) status = ait_keys_new(store, text);
    else if (!strcmp(action, "trust")) status = ait_keys_trust(store, text, name, NULL);
    else if (!strcmp(action, "revoke")) status = ait_keys_revoke(store, text);
    else status = ait_error(AIT_CODE_INVALID_ARGUMENT, "keys: '%s' is not new, trust or revoke", action);
  }
  PyObject *list = status ? core_raise(status) : key_list(store);
  ait_keys_destroy(store);
  return list;
}

/* ---- texts from reports
 * -----------------------------------------------------------------------------------------------------------------------*/
static PyObject *report_with(PyObject *report, ait_status (*make)(const char *, char **)) {
  const char *json = PyUnicode_AsUTF8AndSize(report, NULL);
  char *out = NULL;
  if (!json) return NULL;
  ait_status status = make(json, &out);
  return document(status, out);
}
static PyObject *report_text(PyObject *module, PyObject *report) {
  (void)module;
  return report_with(report, ait_report_text);
}
static PyObject *report_html(PyObject *module, PyObject *report) {
  (void)module;
  return report_with(report, ait_report_html);
}

static PyObject *compare_reports(PyObject *module, PyObject *args) {
  (void)module;
  const char *a, *b;
  ait_compare_options o;
  unsigned long long a_bytes = 0, b_bytes = 0;
  char *out = NULL;
  ait_compare_options_init(&o);
  if (!PyArg_ParseTuple(args, "ss|dKK:compare_reports", &a, &b, &o.threshold, &a_bytes, &b_bytes)) return NULL;
  o.a_file_bytes = a_bytes;
  o.b_file_bytes = b_bytes;
  ait_status status = ait_compare_reports(a, b, &o, &out);
  return document(status, out);
}

static PyObject *roofline(PyObject *module, PyObject *args) {
  (void)module;
  int threads = 0;
  double seconds = 0;
  char *out = NULL;
  ait_status status;
  if (!PyArg_ParseTuple(args, "|id:roofline", &threads, &seconds)) return NULL;
  Py_BEGIN_ALLOW_THREADS;
  status = ait_roofline_json(threads, seconds, &out);
  Py_END_ALLOW_THREADS;
  return document(status, out);
}

/* ---- records
 * ---------------------------------------------------------------------------------------------------------------------------------*/
static PyObject *record_merge(PyObject *module, PyObject *args, PyObject *kwargs) {
  (void)module;
  file_call c;
  const char **from = NULL;
  char *out = NULL;
  size_t count = 0;
  if (call_begin(args, kwargs, "record_merge", &c)) return NULL;
  if (core_take_texts(c.rest, "sources", c.load.held, &from) || core_nothing_left(c.rest, "record_merge"))
    return PyMem_Free(from), call_end(&c), NULL;
  while (from && from[count]) ++count;
  ait_status status;
  Py_BEGIN_ALLOW_THREADS;
  status = ait_record_merge(c.path, from, count, &out);
  Py_END_ALLOW_THREADS;
  PyMem_Free(from);
  call_end(&c);
  return document(status, out);
}

static PyObject *record_prune(PyObject *module, PyObject *args, PyObject *kwargs) {
  (void)module;
  file_call c;
  ait_record_prune_options o = {0};
  char *out = NULL;
  if (call_begin(args, kwargs, "record_prune", &c)) return NULL;
  if (core_take_float(c.rest, "older_seconds", &o.older_seconds) || core_take_bool(c.rest, "other_builds", &o.other_builds) ||
      core_nothing_left(c.rest, "record_prune"))
    return call_end(&c), NULL;
  ait_status status;
  Py_BEGIN_ALLOW_THREADS;
  status = ait_record_prune(c.path, &o, &out);
  Py_END_ALLOW_THREADS;
  call_end(&c);
  return document(status, out);
}

/* ---- tuning
 * ----------------------------------------------------------------------------------------------------------------------------------*/
/* The progress callback runs in the tuning thread: it takes the GIL for it. What Python raised there is raised when tuning has stopped. */
typedef struct tuning {
  PyObject *callback; /* or NULL */
  volatile bool cancel;
  PyObject *type, *value, *trace;
} tuning;

static void keep_exception(tuning *t) {
  if (t->type) PyErr_Clear();
  else PyErr_Fetch(&t->type, &t->value, &t->trace);
  t->cancel = true;
}

static void on_progress(void *ctx, const ait_tune_progress *p) {
  tuning *t = ctx;
  PyGILState_STATE state = PyGILState_Ensure();
  if (PyErr_CheckSignals()) keep_exception(t);
  if (t->callback && !t->cancel) {
    PyObject *done = PyObject_CallFunction(t->callback, "ssIIddz", p->phase ? p->phase : "", p->candidate ? p->candidate : "", p->done,
                                           p->total, p->seconds, p->budget_seconds, p->line);
    if (!done) keep_exception(t);
    Py_XDECREF(done);
  }
  PyGILState_Release(state);
}

typedef struct tune_call {
  file_call file;
  ait_tune_options options;
  const char **backends, **modules, **buckets, **strategies;
  call_values *values;
  ait_sample *samples;
  size_t count;
  tuning state;
} tune_call;

static int take_samples(tune_call *t) {
  const core_model *ports = take_ports(t->file.rest, t->file.load.held);
  if (!ports) return -1;
  PyObject *given = PyDict_GetItemString(t->file.rest, "samples");
  PyObject *list = given ? PySequence_List(given) : (PyErr_SetString(PyExc_TypeError, "tune() needs samples="), NULL);
  if (!list || PyList_Append(t->file.load.held, list)) return Py_XDECREF(list), -1;
  Py_DECREF(list);
  PyDict_DelItemString(t->file.rest, "samples");
  size_t count = (size_t)PyList_Size(list);
  t->values = PyMem_Calloc(count + 1, sizeof *t->values);
  t->samples = PyMem_Calloc(count + 1, sizeof *t->samples);
  if (!t->values || !t->samples) return PyErr_NoMemory(), -1;
  for (size_t i = 0; i < count; ++i) {
    if (values_begin(PyList_GetItem(list, (Py_ssize_t)i), ports, &t->values[i])) return -1;
    t->samples[i] = (ait_sample){t->values[i].values, t->values[i].count};
    t->count = i + 1;
  }
  return 0;
}

static int take_options(tune_call *t) {
  PyObject *rest = t->file.rest, *held = t->file.load.held;
  ait_tune_options *o = &t->options;
  int64_t threads = 0, bytes = 0, memory = 0, seed = 0;
  PyObject *callback = PyDict_GetItemString(rest, "progress");
  if (callback) {
    if (callback != Py_None) {
      t->state.callback = callback;
      if (PyList_Append(held, callback)) return -1;
    }
    PyDict_DelItemString(rest, "progress");
  }
  if (take_samples(t) || core_take_text(rest, "strategy", held, &o->strategy) || core_take_texts(rest, "backends", held, &t->backends) ||
      core_take_texts(rest, "module_backends", held, &t->modules) || core_take_int(rest, "threads", 0, 1024, &threads) ||
      core_take_float(rest, "budget", &o->budget_seconds) || core_take_float(rest, "rtol", &o->rtol) ||
      core_take_float(rest, "atol", &o->atol) || core_take_text(rest, "record", held, &o->record_path) ||
      core_take_float(rest, "trial_seconds", &o->trial_seconds) || core_take_int(rest, "trial_bytes", 0, INT64_MAX, &bytes) ||
      core_take_text(rest, "regions", held, &o->regions) || core_take_bool(rest, "append", &o->append) ||
      core_take_bool(rest, "embed_samples", &o->embed_samples) || core_take_text(rest, "sign", held, &o->sign_key) ||
      core_take_text(rest, "call", held, &o->call_json) || core_take_bool(rest, "from_record", &o->from_record) ||
      core_take_int(rest, "seed", 0, INT64_MAX, &seed) || core_take_texts(rest, "buckets", held, &t->buckets) ||
      core_take_text(rest, "batch_sizes", held, &o->batch_sizes) || core_take_int(rest, "memory_bytes", 0, INT64_MAX, &memory) ||
      core_take_texts(rest, "module_strategies", held, &t->strategies) || core_take_bool(rest, "reference_last", &o->reference_last) ||
      core_nothing_left(rest, "tune"))
    return -1;
  o->threads = (int32_t)threads;
  o->trial_bytes = (uint64_t)bytes;
  o->backends = t->backends;
  o->module_backends = t->modules;
  o->buckets = t->buckets;
  o->module_strategies = t->strategies;
  o->memory_bytes = (uint64_t)memory;
  o->seed = (uint64_t)seed;
  const ait_load_options *load = &t->file.load.options;
  if (load->cpu_mask != UINT64_MAX) o->cpu_mask = load->cpu_mask;
  o->model_name = load->model_name;
  o->weights = load->weights;
  o->keys = load->keys;
  o->progress = on_progress;
  o->progress_ctx = &t->state;
  o->cancel = &t->state.cancel;
  return 0;
}

static void tune_end(tune_call *t) {
  for (size_t i = 0; i < t->count; ++i) values_end(&t->values[i]);
  PyMem_Free(t->values);
  PyMem_Free(t->samples);
  PyMem_Free(t->backends);
  PyMem_Free(t->modules);
  PyMem_Free(t->buckets);
  PyMem_Free(t->strategies);
  call_end(&t->file);
}

/* (report or None, error or None): a report comes with "nothing valid was found", too. */
static PyObject *tune_result(tune_call *t, ait_status status, char *report) {
  if (t->state.type) { /* what the callback or Ctrl-C raised */
    ait_status_free(status);
    ait_string_free(report);
    PyErr_Restore(t->state.type, t->state.value, t->state.trace);
    return NULL;
  }
  if (status && (!report || ait_status_code(status) != AIT_CODE_MISMATCH)) {
    ait_string_free(report);
    return core_raise(status);
  }
  PyObject *text = document(AIT_OK, report);
  if (!status || !text) return ait_status_free(status), text;
  core_raise(status);
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  PyErr_NormalizeException(&type, &value, &trace);
  if (value) PyObject_SetAttrString(value, "report", text);
  Py_DECREF(text);
  PyErr_Restore(type, value, trace);
  return NULL;
}

static PyObject *tune(PyObject *module, PyObject *args, PyObject *kwargs) {
  (void)module;
  tune_call t = {0};
  char *report = NULL;
  ait_tune_options_init(&t.options);
  if (call_begin(args, kwargs, "tune", &t.file)) return NULL;
  if (!t.file.extra[0]) PyErr_SetString(PyExc_TypeError, "tune() needs the path to write");
  if (!t.file.extra[0] || take_options(&t)) return tune_end(&t), NULL;
  ait_status status;
  Py_BEGIN_ALLOW_THREADS;
  status = ait_tune(t.file.path, t.file.extra[0], t.samples, t.count, &t.options, &report);
  Py_END_ALLOW_THREADS;
  PyObject *result = tune_result(&t, status, report);
  tune_end(&t);
  return result;
}

/* ---- bench
 * ------------------------------------------------------------------------------------------------------------------------------------*/
/* bench([(label, session, [inputs], load seconds)], min_seconds) -> JSON. */
typedef struct bench_call {
  size_t count;
  ait_bench_entry *entries;
  call_values *values;
  ait_session **sessions;
} bench_call;

static void bench_end(bench_call *b) {
  for (size_t i = 0; i < b->count; ++i) {
    values_end(&b->values[i]);
    ait_session_destroy(b->sessions[i]);
  }
  PyMem_Free(b->entries);
  PyMem_Free(b->values);
  PyMem_Free(b->sessions);
}

static int bench_entry(PyObject *item, bench_call *b, size_t i) {
  const char *label;
  PyObject *model, *inputs;
  double load_seconds;
  int threads;
  if (!PyArg_ParseTuple(item, "sO!Odi:bench", &label, core_model_type, &model, &inputs, &load_seconds, &threads)) return -1;
  const core_model *m = (core_model *)model;
  if (values_begin(inputs, m, &b->values[i])) return -1;
  b->count = i + 1;
  ait_session_options options = m->runner.options;
  if (threads) options.threads = threads;
  ait_status status = ait_session_create(m->runner.model, &options, &b->sessions[i]);
  if (status) return core_raise(status), -1;
  b->entries[i] = (ait_bench_entry){.label = label,
                                    .session = b->sessions[i],
                                    .inputs = b->values[i].values,
                                    .input_count = b->values[i].count,
                                    .output_count = m->signature->output_count,
                                    .load_seconds = load_seconds};
  return 0;
}

static PyObject *bench(PyObject *module, PyObject *args) {
  (void)module;
  PyObject *list;
  double seconds;
  char *out = NULL;
  if (!PyArg_ParseTuple(args, "Od:bench", &list, &seconds)) return NULL;
  Py_ssize_t count = PySequence_Size(list);
  if (count < 0) return NULL;
  bench_call b = {.entries = PyMem_Calloc((size_t)count + 1, sizeof *b.entries),
                  .values = PyMem_Calloc((size_t)count + 1, sizeof *b.values),
                  .sessions = PyMem_Calloc((size_t)count + 1, sizeof *b.sessions)};
  int failed = !b.entries || !b.values || !b.sessions;
  for (Py_ssize_t i = 0; i < count && !failed; ++i) {
    PyObject *item = PySequence_GetItem(list, i);
    failed = !item || bench_entry(item, &b, (size_t)i);
    Py_XDECREF(item);
  }
  ait_status status = AIT_OK;
  if (!failed) {
    Py_BEGIN_ALLOW_THREADS;
    status = ait_bench(b.entries, b.count, seconds, &out);
    Py_END_ALLOW_THREADS;
  }
  bench_end(&b);
  return failed ? NULL : document(status, out);
}

/* ---- traffic --------------------------------------------------------------------------------------------------------------------------*/
/* trace_append(path, model, inputs, arrival) */
static PyObject *trace_append(PyObject *module, PyObject *args) {
  (void)module;
  PyObject *path = NULL, *model, *inputs, *result = NULL;
  double arrival;
  call_values v;
  if (!PyArg_ParseTuple(args, "O&O!Od:trace_append", PyUnicode_FSConverter, &path, core_model_type, &model, &inputs, &arrival)) return NULL;
  const core_model *m = (core_model *)model;
  if (values_begin(inputs, m, &v) == 0) {
    result = document(ait_trace_append(PyBytes_AsString(path), m->runner.model, v.values, v.count, arrival), NULL);
    values_end(&v);
  }
  Py_DECREF(path);
  return result;
}

/* replay(model, path, inputs, threads, seconds, limit) -> JSON */
static PyObject *replay(PyObject *module, PyObject *args) {
  (void)module;
  PyObject *path = NULL, *model, *inputs, *result = NULL;
  ait_replay_options o;
  int threads;
  call_values v;
  char *out = NULL;
  ait_replay_options_init(&o);
  if (!PyArg_ParseTuple(args, "O!O&Oidd:replay", core_model_type, &model, PyUnicode_FSConverter, &path, &inputs, &threads, &o.seconds,
                        &o.limit_seconds))
    return NULL;
  const core_model *m = (core_model *)model;
  o.threads = threads;
  if (values_begin(inputs, m, &v) == 0) {
    ait_status status;
    Py_BEGIN_ALLOW_THREADS;
    status = ait_replay(m->runner.model, PyBytes_AsString(path), v.values, v.count, &o, &out);
    Py_END_ALLOW_THREADS;
    result = document(status, out);
    values_end(&v);
  }
  Py_DECREF(path);
  return result;
}

/* ---- all
 * -------------------------------------------------------------------------------------------------------------------------------------*/
#define KEYWORDS(name, doc) \
  { #name, (PyCFunction)(uintptr_t)name, METH_VARARGS | METH_KEYWORDS, doc }
static PyMethodDef functions[] = {
    KEYWORDS(tune, "tune(model, out, *, samples, ports, progress=None, strategy=None, ...) -> report as JSON"),
    KEYWORDS(inspect, "inspect(model, *, inputs=None, ports=None, roofline=None, threads=0, ...) -> JSON"),
    KEYWORDS(explain, "explain(model, filter=None, ...) -> JSON"),
    KEYWORDS(opt, "opt(model, passes=None, print_after=None, ...) -> text"),
    KEYWORDS(ops_missing, "ops_missing(model, ...) -> JSON"),
    KEYWORDS(debug, "debug(model, output=None, *, inputs, ports, backend, rtol=0, atol=0, ...) -> JSON"),
    KEYWORDS(export_onnx, "export_onnx(model, out, *, opset=0, external_data=False, ...)"),
    KEYWORDS(unpack, "unpack(file, folder=None, *, npz=False, ...) -> JSON"),
    KEYWORDS(sign, "sign(file, out=None, *, keys, key)"),
    KEYWORDS(record_export, "record_export(record, out) -> JSON"),
    KEYWORDS(record_merge, "record_merge(record, *, sources) -> JSON"),
    KEYWORDS(record_prune, "record_prune(record, *, older_seconds=0, other_builds=False) -> JSON"),
    {"keys", keys, METH_VARARGS, "keys(folder, action=None, text=None, name=None) -> list of keys; action: new, trust, revoke"},
    {"report_text", report_text, METH_O, "report_text(json) -> text for a terminal"},
    {"report_html", report_html, METH_O, "report_html(json) -> page"},
    {"compare_reports", compare_reports, METH_VARARGS, "compare_reports(a, b, threshold=0.05, a_bytes=0, b_bytes=0) -> JSON"},
    {"bench", bench, METH_VARARGS, "bench([(label, model, inputs, load seconds, threads)], min_seconds) -> JSON"},
    {"trace_append", trace_append, METH_VARARGS, "trace_append(path, model, inputs, arrival)"},
    {"replay", replay, METH_VARARGS, "replay(model, path, inputs, threads, seconds, limit) -> JSON"},
    {"roofline", roofline, METH_VARARGS, "roofline(threads=0, seconds=0) -> JSON"},
    {"ops", ops, METH_NOARGS, "ops() -> JSON"},
    {"passes", passes, METH_NOARGS, "passes() -> JSON"},
    {"backends", backends, METH_NOARGS, "backends() -> JSON"},
    {"machine", machine, METH_NOARGS, "machine() -> JSON"},
    {0},
};

int core_add_tools(PyObject *module) { return PyModule_AddFunctions(module, functions); }
