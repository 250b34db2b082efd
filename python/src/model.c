/* _core.Model: a loaded model as a callable, and what it says about itself. */
#include "core.h"

#include <limits.h>
#include <string.h>

PyTypeObject *core_model_type;

static core_model *of(PyObject *self) { return (core_model *)self; }

/* ---- loading
 * ---------------------------------------------------------------------------------------------------------------------------*/
ait_status core_open_file(const char *path, const ait_load_options *options, ait_model **out) {
#ifdef AIT_PYTHON_RT
  return ait_model_load(path, options, out);
#else
  return ait_model_import(path, options, out);
#endif
}

static int returns_from(PyObject *rest, PyObject *held, int *out) {
  const char *text = NULL;
  *out = -1;
  if (core_take_text(rest, "returns", held, &text)) return -1;
  if (!text) return 0;
  static const char *const names[] = {[CORE_KIND_AIT] = "ait", [CORE_KIND_NUMPY] = "numpy", [CORE_KIND_TORCH] = "torch"};
  for (int k = 0; k < 3; ++k)
    if (strcmp(text, names[k]) == 0) *out = k;
  if (*out >= 0) return 0;
  PyErr_Format(PyExc_ValueError, "returns must be 'ait', 'numpy' or 'torch', not '%s'", text);
  return -1;
}

static int session_options_from(PyObject *rest, ait_session_options *out) {
  int64_t threads = 0;
  ait_session_options_init(out);
  if (core_take_int(rest, "threads", 0, 1024, &threads) || core_take_bool(rest, "profile", &out->profile)) return -1;
  out->threads = (int32_t)threads;
  return 0;
}

static int open_model(core_model *self, PyObject *path, PyObject *rest) {
  core_load load;
  ait_session_options session;
  ait_model *model = NULL;
  const char *file;
  int64_t sessions = 0;
  int returns, result = -1;
  if (core_load_from(rest, &load)) return -1;
  if (core_path_text(path, load.held, &file) || session_options_from(rest, &session) || returns_from(rest, load.held, &returns) ||
      core_take_int(rest, "sessions", 0, INT_MAX, &sessions) || core_nothing_left(rest, "load"))
    goto done;
  ait_status status;
  Py_BEGIN_ALLOW_THREADS;
  status = core_open_file(file, &load.options, &model);
  Py_END_ALLOW_THREADS;
  if (status) {
    core_raise(status);
    goto done;
  }
  self->signature = core_signature_new(model);
  if (!self->signature || core_runner_init(&self->runner, model, self->signature, &session, (int32_t)sessions)) goto done;
  self->runner.returns = returns;
  Py_INCREF(path);
  self->path = path;
  result = 0;
done:
  ait_model_release(model); /* the runner has its own reference */
  core_load_deinit(&load);
  return result;
}

static PyObject *model_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
  PyObject *path;
  if (!PyArg_ParseTuple(args, "O:load", &path)) return NULL;
  PyObject *rest = kwargs ? PyDict_Copy(kwargs) : PyDict_New();
  PyObject *self = rest ? core_object_new(type) : NULL;
  if (self && open_model(of(self), path, rest)) Py_CLEAR(self);
  Py_XDECREF(rest);
  return self;
}

static void model_dealloc(PyObject *self) {
  core_model *m = of(self);
  if (PyType_GetFlags(Py_TYPE(self)) & Py_TPFLAGS_HAVE_GC) PyObject_GC_UnTrack(self);
  if (m->runner.model) core_runner_deinit(&m->runner);
  core_signature_free(m->signature);
  Py_CLEAR(m->path);
  core_object_free(self);
}

static PyObject *model_call(PyObject *self, PyObject *args, PyObject *kwargs) { return core_runner_call(&of(self)->runner, args, kwargs); }

/* ---- ports
 * -------------------------------------------------------------------------------------------------------------------------------*/
static const char *kind_name(ait_value_kind kind) {
  static const char *const names[] = {[AIT_VALUE_NONE] = "none",   [AIT_VALUE_TENSOR] = "tensor", [AIT_VALUE_INT] = "int",
                                      [AIT_VALUE_FLOAT] = "float", [AIT_VALUE_BOOL] = "bool",     [AIT_VALUE_STRING] = "str"};
  return names[kind];
}

static PyObject *dim_object(const ait_dim_info *d) {
  PyObject *most = d->max == INT64_MAX ? (Py_INCREF(Py_None), Py_None) : PyLong_FromLongLong(d->max);
  return most ? Py_BuildValue("(sLN)", d->text, (long long)d->min, most) : NULL;
}

static PyObject *shape_object(const ait_port *p) {
  if (p->kind != AIT_VALUE_TENSOR || p->rank < 0) Py_RETURN_NONE;
  PyObject *shape = PyTuple_New(p->rank);
  for (int32_t d = 0; shape && d < p->rank; ++d) {
    PyObject *dim = dim_object(&p->shape[d]);
    if (!dim) Py_CLEAR(shape);
    else PyTuple_SetItem(shape, d, dim);
  }
  return shape;
}

/* (name, kind, dtype or None, ((text, min, max or None), ...) or None, baked, the value that stands for a missing one, written) */
static PyObject *port_object(const core_port *port) {
  const ait_port *p = &port->port;
  PyObject *shape = shape_object(p), *fixed = core_object_from_value(&port->fixed, CORE_KIND_AIT);
  if (!shape || !fixed) {
    Py_XDECREF(shape);
    Py_XDECREF(fixed);
    return NULL;
  }
  return Py_BuildValue("(OszNNNN)", port->name, kind_name(p->kind), p->kind == AIT_VALUE_TENSOR ? ait_dtype_name(p->dtype) : NULL, shape,
                       PyBool_FromLong(p->baked), fixed, PyBool_FromLong(port->written));
}

static PyObject *port_list(const core_port *ports, size_t count) {
  PyObject *list = PyTuple_New((Py_ssize_t)count);
  for (size_t i = 0; list && i < count; ++i) {
    PyObject *port = port_object(&ports[i]);
    if (!port) Py_CLEAR(list);
    else PyTuple_SetItem(list, (Py_ssize_t)i, port);
  }
  return list;
}

static PyObject *get_inputs(PyObject *self, void *unused) {
  (void)unused;
  return port_list(of(self)->signature->inputs, of(self)->signature->input_count);
}
static PyObject *get_outputs(PyObject *self, void *unused) {
  (void)unused;
  return port_list(of(self)->signature->outputs, of(self)->signature->output_count);
}

/* ---- texts
 * -------------------------------------------------------------------------------------------------------------------------------*/
static PyObject *text(const char *s) { return PyUnicode_DecodeUTF8(s, (Py_ssize_t)strlen(s), "backslashreplace"); }

static PyObject *get_manifest(PyObject *self, void *unused) {
  (void)unused;
  return text(ait_model_manifest(of(self)->runner.model));
}
static PyObject *get_reason(PyObject *self, void *unused) {
  (void)unused;
  return text(ait_model_reason(of(self)->runner.model));
}
static PyObject *get_target(PyObject *self, void *unused) {
  (void)unused;
  return text(ait_model_target(of(self)->runner.model));
}
static PyObject *get_path(PyObject *self, void *unused) {
  (void)unused;
  Py_INCREF(of(self)->path);
  return of(self)->path;
}

static PyObject *get_states(PyObject *self, void *unused) {
  (void)unused;
  PyObject *list = PyList_New(0);
  const char *name;
  for (size_t i = 0; list && (name = ait_model_state_name(of(self)->runner.model, i)); ++i) {
    PyObject *one = text(name);
    if (!one || PyList_Append(list, one)) Py_CLEAR(list);
    Py_XDECREF(one);
  }
  PyObject *tuple = list ? PyList_AsTuple(list) : NULL;
  Py_XDECREF(list);
  return tuple;
}

static PyObject *get_signature(PyObject *self, void *unused) {
  (void)unused;
  ait_signature s = ait_model_signature(of(self)->runner.model);
  return Py_BuildValue("(sss)", ait_signature_state_name(s.state), s.key_name, s.fingerprint);
}

static PyObject *plan_object(const ait_plan_info *p) {
  return Py_BuildValue("{s:s,s:s,s:s,s:s,s:i,s:N,s:N,s:z#}", "target", p->target, "machine", p->machine, "cpu", p->cpu, "why_not",
                       p->why_not, "threads", (int)p->threads, "runs", PyBool_FromLong(p->runs), "made_here", PyBool_FromLong(p->made_here),
                       "report", p->report, (Py_ssize_t)p->report_size);
}

static PyObject *get_plans(PyObject *self, void *unused) {
  (void)unused;
  PyObject *list = PyList_New(0);
  ait_plan_info plan;
  for (size_t i = 0; list && ait_model_plan(of(self)->runner.model, i, &plan); ++i) {
    PyObject *one = plan_object(&plan);
    if (!one || PyList_Append(list, one)) Py_CLEAR(list);
    Py_XDECREF(one);
  }
  return list;
}

static PyObject *get_limit(PyObject *self, void *unused) {
  (void)unused;
  return PyLong_FromLong(of(self)->runner.limit);
}

/* Name of the backends and bytes of a session: one of the pool is asked. */
static PyObject *get_backend(PyObject *self, void *unused) {
  (void)unused;
  core_slot *slot = core_runner_take(&of(self)->runner);
  if (!slot) return NULL;
  PyObject *name = text(ait_session_backend(core_slot_session(slot)));
  core_runner_give(&of(self)->runner, slot);
  return name;
}

static PyObject *model_bind(PyObject *self, PyObject *args, PyObject *kwargs) {
  const core_signature *s = of(self)->signature;
  PyObject **objects = PyMem_Calloc(s->input_count + 1, sizeof *objects), *list = NULL;
  if (!objects) return PyErr_NoMemory();
  if (core_bind(s, args, kwargs, objects) == 0) list = PyList_New((Py_ssize_t)s->input_count);
  for (size_t i = 0; list && i < s->input_count; ++i) {
    PyObject *one = objects[i];
    if (one) Py_INCREF(one);
    else one = core_object_from_value(&s->inputs[i].fixed, CORE_KIND_AIT);
    if (!one) Py_CLEAR(list);
    else PyList_SetItem(list, (Py_ssize_t)i, one);
  }
  PyMem_Free(objects);
  return list;
}

static PyMethodDef methods[] = {
    {"_bind", (PyCFunction)(uintptr_t)model_bind, METH_VARARGS | METH_KEYWORDS,
     "The arguments of a call as a list in the order of the inputs."},
    {0},
};
static PyGetSetDef getters[] = {
    {"_inputs", get_inputs, NULL, NULL, NULL},
    {"_outputs", get_outputs, NULL, NULL, NULL},
    {"_manifest", get_manifest, NULL, NULL, NULL},
    {"_plans", get_plans, NULL, NULL, NULL},
    {"_signed", get_signature, NULL, NULL, NULL},
    {"path", get_path, NULL, "The file, as it was given.", NULL},
    {"reason", get_reason, NULL, "Why the model does not run on the best plan of its file; '' when it does.", NULL},
    {"target", get_target, NULL, "Target of the plan that runs: 'x86-64-avx2', or 'portable'.", NULL},
    {"backend", get_backend, NULL, "Name of the backends that run: 'native', 'native+reference'.", NULL},
    {"states", get_states, NULL, "Names of the buffers that calls change.", NULL},
    {"sessions", get_limit, NULL, "How many calls run at once; more wait for their turn.", NULL},
    {0},
};
static PyType_Slot slots[] = {
    {Py_tp_doc, "A loaded model."},
    {Py_tp_new, model_new},
    {Py_tp_dealloc, model_dealloc},
    {Py_tp_call, model_call},
    {Py_tp_methods, methods},
    {Py_tp_getset, getters},
    {0, NULL},
};
static PyType_Spec spec = {.name = CORE_PACKAGE "._core.Model",
                           .basicsize = sizeof(core_model),
                           .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
                           .slots = slots};

int core_add_model(PyObject *module) {
  core_model_type = core_add_type(module, "Model", &spec);
  return core_model_type ? 0 : -1;
}
