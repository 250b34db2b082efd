/* Keyword arguments as the option structs of the C API. Each function takes what it knows out of a dict; what is left is an error. */
#include "core.h"

#include <string.h>

/* The value under name, removed from the dict: a new reference, or NULL without an exception. None counts as absent. */
static PyObject *take(PyObject *rest, const char *name) {
  PyObject *value = rest ? PyDict_GetItemString(rest, name) : NULL;
  if (!value) return NULL;
  Py_INCREF(value);
  PyDict_DelItemString(rest, name);
  if (value == Py_None) Py_CLEAR(value);
  return value;
}

static int wrong(const char *name, const char *must) {
  PyErr_Format(PyExc_TypeError, "%s must be %s", name, must);
  return -1;
}

static int keep_text(PyObject *value, const char *name, PyObject *held, const char **out) {
  if (!PyUnicode_Check(value)) return wrong(name, "a str");
  *out = PyUnicode_AsUTF8AndSize(value, NULL);
  return *out && PyList_Append(held, value) == 0 ? 0 : -1;
}

int core_take_text(PyObject *rest, const char *name, PyObject *held, const char **out) {
  PyObject *value = take(rest, name);
  int result = value ? keep_text(value, name, held, out) : 0;
  Py_XDECREF(value);
  return result;
}

int core_take_bool(PyObject *rest, const char *name, bool *out) {
  PyObject *value = take(rest, name);
  if (!value) return 0;
  int truth = PyObject_IsTrue(value);
  Py_DECREF(value);
  if (truth < 0) return -1;
  *out = truth;
  return 0;
}

int core_take_int(PyObject *rest, const char *name, int64_t least, int64_t most, int64_t *out) {
  PyObject *value = take(rest, name);
  if (!value) return 0;
  PyObject *number = PyBool_Check(value) ? NULL : PyNumber_Index(value);
  Py_DECREF(value);
  if (!number) {
    PyErr_Clear();
    return wrong(name, "an int");
  }
  int64_t n = PyLong_AsLongLong(number);
  Py_DECREF(number);
  if (PyErr_Occurred()) return -1;
  if (n < least || n > most) {
    PyErr_Format(PyExc_ValueError, "%s must be %lld to %lld, not %lld", name, (long long)least, (long long)most, (long long)n);
    return -1;
  }
  *out = n;
  return 0;
}

int core_take_float(PyObject *rest, const char *name, double *out) {
  PyObject *value = take(rest, name);
  if (!value) return 0;
  double x = PyFloat_AsDouble(value);
  Py_DECREF(value);
  if (PyErr_Occurred()) return -1;
  *out = x;
  return 0;
}

int core_take_texts(PyObject *rest, const char *name, PyObject *held, const char ***out) {
  PyObject *value = take(rest, name);
  *out = NULL;
  if (!value) return 0;
  if (PyUnicode_Check(value)) {
    Py_DECREF(value);
    return wrong(name, "a list of str");
  }
  PyObject *list = PySequence_List(value);
  Py_DECREF(value);
  Py_ssize_t count = list ? PyList_Size(list) : -1;
  const char **texts = count >= 0 ? PyMem_Calloc((size_t)count + 1, sizeof *texts) : NULL;
  int result = texts ? 0 : -1;
  for (Py_ssize_t i = 0; !result && i < count; ++i) result = keep_text(PyList_GetItem(list, i), name, held, &texts[i]);
  Py_XDECREF(list);
  if (!result) *out = texts;
  else PyMem_Free(texts);
  return result;
}

int core_nothing_left(PyObject *rest, const char *function) {
  PyObject *key, *value;
  Py_ssize_t at = 0;
  if (!rest || !PyDict_Next(rest, &at, &key, &value)) return 0;
  PyErr_Format(PyExc_TypeError, "%s() got an unexpected keyword argument '%S'", function, key);
  return -1;
}

int core_path_text(PyObject *path, PyObject *held, const char **out) {
  PyObject *bytes = NULL;
  if (!PyUnicode_FSConverter(path, &bytes)) return -1;
  *out = PyBytes_AsString(bytes);
  int result = *out ? PyList_Append(held, bytes) : -1;
  Py_DECREF(bytes);
  return result;
}

static int take_path(PyObject *rest, const char *name, PyObject *held, const char **out) {
  PyObject *value = take(rest, name);
  int result = value ? core_path_text(value, held, out) : 0;
  Py_XDECREF(value);
  return result;
}

static int take_isa(PyObject *rest, PyObject *held, uint64_t *out) {
  const char *isa = NULL;
  if (core_take_text(rest, "isa", held, &isa)) return -1;
  if (!isa) return 0;
#ifdef AIT_PYTHON_RT
  (void)out;
  core_fail(AIT_CODE_UNSUPPORTED, "the package ait has it", "isa cannot be chosen in the run-only package");
  return -1;
#else
  ait_status status = ait_cpu_mask(isa, out);
  return status ? (core_raise(status), -1) : 0;
#endif
}

int core_load_from(PyObject *rest, core_load *out) {
  *out = (core_load){.held = PyList_New(0)};
  ait_load_options *o = &out->options;
  ait_load_options_init(o);
  int64_t threads = 0;
  const char *keys = NULL;
  if (!out->held || core_take_text(rest, "backend", out->held, &o->backend) || core_take_text(rest, "passes", out->held, &o->passes) ||
      core_take_text(rest, "knobs", out->held, &o->knobs) || core_take_text(rest, "model_name", out->held, &o->model_name) ||
      take_path(rest, "weights", out->held, &o->weights) || core_take_bool(rest, "skip_checksum", &o->skip_checksum) ||
      core_take_bool(rest, "full_checksum", &o->full_checksum) || core_take_bool(rest, "require_signature", &o->require_signature) ||
      core_take_int(rest, "check_threads", 0, 1024, &threads) || take_isa(rest, out->held, &o->cpu_mask) ||
      take_path(rest, "keys", out->held, &keys)) {
    core_load_deinit(out);
    return -1;
  }
  o->threads = (int32_t)threads;
  if (!keys) return 0;
  ait_status status = ait_keys_open(ait_allocator_default(), keys, &out->keys);
  if (status) {
    core_load_deinit(out);
    core_raise(status);
    return -1;
  }
  o->keys = out->keys;
  return 0;
}

void core_load_deinit(core_load *load) {
  ait_keys_destroy(load->keys);
  Py_XDECREF(load->held);
  *load = (core_load){0};
}
