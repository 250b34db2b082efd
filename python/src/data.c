/* What libait-rt has beside models: arrays on disk, comparison, guests, plugins. */
#define _GNU_SOURCE
#include "core.h"

#include <dlfcn.h>
#include <string.h>

/* ---- arrays on disk
 * ---------------------------------------------------------------------------------------------------------------------------*/
static PyObject *dict_of(const ait_data *data) {
  PyObject *dict = PyDict_New();
  for (size_t i = 0; dict && i < ait_data_count(data); ++i) {
    PyObject *one = core_copy_out(CORE_KIND_AIT, ait_data_tensor(data, i));
    if (!one || PyDict_SetItemString(dict, ait_data_name(data, i), one)) Py_CLEAR(dict);
    Py_XDECREF(one);
  }
  return dict;
}

static PyObject *load_data(PyObject *module, PyObject *args) {
  (void)module;
  PyObject *path = NULL;
  if (!PyArg_ParseTuple(args, "O&:load_data", PyUnicode_FSConverter, &path)) return NULL;
  ait_data *data = NULL;
  ait_status status = ait_data_load(ait_allocator_default(), PyBytes_AsString(path), &data);
  Py_DECREF(path);
  if (status) return core_raise(status);
  PyObject *dict = dict_of(data);
  ait_data_destroy(data);
  return dict;
}

static int add_array(ait_data *data, PyObject *key, PyObject *value) {
  const char *name = PyUnicode_AsUTF8AndSize(key, NULL);
  if (!name) return -1;
  ait_tensor t;
  core_hold hold = {0};
  core_kind kind = CORE_KIND_AIT;
  ait_status status = core_tensor_from_object(value, false, &t, &hold, &kind);
  if (!status) status = ait_data_add(data, name, &t);
  core_hold_release(&hold);
  return status ? (core_raise(ait_error_context(status, "array '%s'", name)), -1) : 0;
}

static PyObject *save_data(PyObject *module, PyObject *args) {
  (void)module;
  PyObject *path = NULL, *dict, *key, *value;
  if (!PyArg_ParseTuple(args, "O&O!:save_data", PyUnicode_FSConverter, &path, &PyDict_Type, &dict)) return NULL;
  ait_data *data = NULL;
  ait_status status = ait_data_create(ait_allocator_default(), &data);
  int failed = status ? (core_raise(status), -1) : 0;
  for (Py_ssize_t at = 0; !failed && PyDict_Next(dict, &at, &key, &value);) failed = add_array(data, key, value);
  if (!failed) {
    status = ait_data_save(data, PyBytes_AsString(path));
    failed = status ? (core_raise(status), -1) : 0;
  }
  ait_data_destroy(data);
  Py_DECREF(path);
  if (failed) return NULL;
  Py_RETURN_NONE;
}

/* ---- comparing arrays
 * -------------------------------------------------------------------------------------------------------------------------*/
static PyObject *compare_object(const ait_compare_result *r) {
  return Py_BuildValue("{s:N,s:L,s:L,s:d,s:d,s:d,s:d,s:L,s:d,s:d}", "pass", PyBool_FromLong(r->pass), "count", (long long)r->count,
                       "mismatches", (long long)r->mismatches, "max_abs", r->max_abs, "max_rel", r->max_rel, "snr_db", r->snr_db, "cosine",
                       r->cosine, "worst_index", (long long)r->worst_index, "worst_got", r->worst_got, "worst_want", r->worst_want);
}

static PyObject *compare_arrays(PyObject *module, PyObject *args) {
  (void)module;
  PyObject *objects[2], *result = NULL;
  ait_compare_rule rule = {0};
  int exact = 0;
  if (!PyArg_ParseTuple(args, "OOddp:compare_arrays", &objects[0], &objects[1], &rule.rtol, &rule.atol, &exact)) return NULL;
  rule.exact = exact;
  core_hold holds[2] = {0};
  ait_tensor t[2];
  core_kind kind = CORE_KIND_AIT;
  ait_compare_result r;
  ait_status status = core_tensor_from_object(objects[0], false, &t[0], &holds[0], &kind);
  if (!status) status = core_tensor_from_object(objects[1], false, &t[1], &holds[1], &kind);
  if (!status) {
    Py_BEGIN_ALLOW_THREADS;
    status = ait_compare(&t[0], &t[1], &rule, &r);
    Py_END_ALLOW_THREADS;
  }
  result = status ? core_raise(status) : compare_object(&r);
  core_hold_release(&holds[0]);
  core_hold_release(&holds[1]);
  return result;
}

/* ---- guests, plugins
 * -------------------------------------------------------------------------------------------------------------------------*/
static PyObject *configure_guests(PyObject *module, PyObject *args) {
  (void)module;
  const char *path = NULL;
  int settled = 0;
  if (!PyArg_ParseTuple(args, "zp:configure_guests", &path, &settled)) return NULL;
  ait_guest_options o = {.struct_size = sizeof o, .search_path = path, .usage_reporting_settled = settled};
  ait_status status = ait_guests_configure(&o);
  if (status) return core_raise(status);
  Py_RETURN_NONE;
}

/* Plugins call functions of the library without being linked with it; Python loads extensions, and what they need, out of others' sight. */
static void show_library(void) {
  Dl_info info;
  if (dladdr((void *)(uintptr_t)ait_version, &info)) dlopen(info.dli_fname, RTLD_NOW | RTLD_GLOBAL | RTLD_NOLOAD);
}

static PyObject *load_plugin(PyObject *module, PyObject *args) {
  (void)module;
  PyObject *path = NULL;
  if (!PyArg_ParseTuple(args, "O&:load_plugin", PyUnicode_FSConverter, &path)) return NULL;
  show_library();
  ait_status status = ait_plugin_load(PyBytes_AsString(path));
  Py_DECREF(path);
  if (status) return core_raise(status);
  Py_RETURN_NONE;
}

/* ---- all
 * -------------------------------------------------------------------------------------------------------------------------------------*/
static PyMethodDef functions[] = {
    {"load_data", load_data, METH_VARARGS, "load_data(path) -> dict of Tensors: .npz, .npy, .safetensors"},
    {"save_data", save_data, METH_VARARGS, "save_data(path, dict of arrays): .npz"},
    {"compare_arrays", compare_arrays, METH_VARARGS, "compare_arrays(got, want, rtol, atol, exact) -> dict"},
    {"configure_guests", configure_guests, METH_VARARGS, "configure_guests(search_path, usage_reporting_settled)"},
    {"load_plugin", load_plugin, METH_VARARGS, "load_plugin(path): runs the code of that file"},
    {0},
};

int core_add_data(PyObject *module) { return PyModule_AddFunctions(module, functions); }
