/* _core.Session: one timeline of a model with its own state. Calls on it take turns. */
#include "core.h"

#include <string.h>

typedef struct core_session {
  PyObject_HEAD core_runner runner; /* of one session */
  PyObject *model;                  /* whose signature is used */
} core_session;

static core_session *of(PyObject *self) { return (core_session *)self; }

static PyObject *session_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
  static const char *const names[] = {"model", "threads", "profile", NULL};
  PyObject *model;
  int threads = 0, profile = 0;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!|ip:Session", (char **)(uintptr_t)names, core_model_type, &model, &threads, &profile))
    return NULL;
  core_session *self = (core_session *)core_object_new(type);
  if (!self) return NULL;
  const core_model *m = (core_model *)model;
  ait_session_options options = m->runner.options;
  if (threads) options.threads = threads;
  options.profile = profile;
  Py_INCREF(model);
  self->model = model;
  if (core_runner_init(&self->runner, m->runner.model, m->signature, &options, 1)) Py_CLEAR(self);
  if (!self) return NULL;
  self->runner.returns = m->runner.returns;
  core_slot *slot = core_runner_take(&self->runner); /* creation fails here, not in the first call */
  if (!slot) Py_CLEAR(self);
  else core_runner_give(&self->runner, slot);
  return (PyObject *)self;
}

static void session_dealloc(PyObject *object) {
  core_session *self = of(object);
  if (PyType_GetFlags(Py_TYPE(object)) & Py_TPFLAGS_HAVE_GC) PyObject_GC_UnTrack(object);
  if (self->runner.model) core_runner_deinit(&self->runner);
  Py_CLEAR(self->model);
  core_object_free(object);
}

static PyObject *session_call(PyObject *self, PyObject *args, PyObject *kwargs) {
  return core_runner_call(&of(self)->runner, args, kwargs);
}

static PyObject *session_reset(PyObject *self, PyObject *unused) {
  (void)unused;
  core_slot *slot = core_runner_take(&of(self)->runner);
  if (!slot) return NULL;
  ait_status status = ait_session_reset(core_slot_session(slot));
  core_runner_give(&of(self)->runner, slot);
  if (status) return core_raise(status);
  Py_RETURN_NONE;
}

static PyObject *session_state(PyObject *self, PyObject *name) {
  const char *text = PyUnicode_AsUTF8AndSize(name, NULL);
  core_slot *slot = text ? core_runner_take(&of(self)->runner) : NULL;
  if (!slot) return NULL;
  ait_tensor view;
  ait_status status = ait_session_state(core_slot_session(slot), text, &view);
  PyObject *copy = status ? core_raise(status) : core_copy_out(CORE_KIND_AIT, &view);
  core_runner_give(&of(self)->runner, slot);
  return copy;
}

static PyObject *step_object(const ait_step_time *t) {
  return Py_BuildValue("{s:z,s:z,s:z,s:z,s:d,s:K,s:N}", "node", t->name, "op", t->op, "module", t->module, "kernel", t->kernel, "seconds",
                       t->seconds, "calls", (unsigned long long)t->calls, "portable", PyBool_FromLong(t->portable));
}

PyObject *core_profile_list(ait_session *session) {
  size_t count = ait_session_profile(session, NULL, 0);
  ait_step_time *times = PyMem_Calloc(count + 1, sizeof *times);
  if (!times) return PyErr_NoMemory();
  size_t now = ait_session_profile(session, times, count);
  PyObject *list = PyList_New(0);
  for (size_t i = 0; list && i < (now < count ? now : count); ++i) {
    PyObject *step = step_object(&times[i]);
    if (!step || PyList_Append(list, step)) Py_CLEAR(list);
    Py_XDECREF(step);
  }
  PyMem_Free(times);
  return list;
}

static PyObject *session_profile(PyObject *self, PyObject *unused) {
  (void)unused;
  core_slot *slot = core_runner_take(&of(self)->runner);
  if (!slot) return NULL;
  PyObject *list = core_profile_list(core_slot_session(slot));
  core_runner_give(&of(self)->runner, slot);
  return list;
}

static PyObject *get_backend(PyObject *self, void *unused) {
  (void)unused;
  core_slot *slot = core_runner_take(&of(self)->runner);
  if (!slot) return NULL;
  PyObject *name = PyUnicode_FromString(ait_session_backend(core_slot_session(slot)));
  core_runner_give(&of(self)->runner, slot);
  return name;
}

static PyObject *get_bytes(PyObject *self, void *unused) {
  (void)unused;
  core_slot *slot = core_runner_take(&of(self)->runner);
  if (!slot) return NULL;
  PyObject *bytes = PyLong_FromSize_t(ait_session_bytes(core_slot_session(slot)));
  core_runner_give(&of(self)->runner, slot);
  return bytes;
}

static PyObject *get_model(PyObject *self, void *unused) {
  (void)unused;
  Py_INCREF(of(self)->model);
  return of(self)->model;
}

static PyMethodDef methods[] = {
    {"reset", session_reset, METH_NOARGS, "State back to what the file holds."},
    {"state", session_state, METH_O, "A copy of the named buffer or parameter as it is now."},
    {"profile", session_profile, METH_NOARGS, "Times per step since creation, for sessions made with profile=True: a list of dicts."},
    {0},
};
static PyGetSetDef getters[] = {
    {"model", get_model, NULL, "The model that it is a session of.", NULL},
    {"backend", get_backend, NULL, "Name of the backends that run.", NULL},
    {"nbytes", get_bytes, NULL, "Planned memory, weights not counted.", NULL},
    {0},
};
static PyType_Slot slots[] = {
    {Py_tp_doc, "Session(model, threads=0, profile=False): one timeline of a model, with state of its own. Calls on it take turns."},
    {Py_tp_new, session_new},
    {Py_tp_dealloc, session_dealloc},
    {Py_tp_call, session_call},
    {Py_tp_methods, methods},
    {Py_tp_getset, getters},
    {0, NULL},
};
static PyType_Spec spec = {.name = CORE_PACKAGE "._core.Session",
                           .basicsize = sizeof(core_session),
                           .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
                           .slots = slots};

int core_add_session(PyObject *module) { return core_add_type(module, "Session", &spec) ? 0 : -1; }
