/* Whether a module is still what it was when it was tuned: asked before each call of a tuned function, so it must cost next to nothing. */
#include "core.h"

#include <string.h>

enum { SAME, VALUES, HOOKS, MEMORY }; /* answers of `unchanged` */

/* A checksum of pieces of memory: (address, bytes) as 64-bit numbers in native order. Who calls it keeps the memory. */
static uint64_t sum_of(const char *spans, Py_ssize_t bytes) {
  uint64_t h = 0x9e3779b97f4a7c15u;
  for (Py_ssize_t at = 0; at + 16 <= bytes; at += 16) {
    uint64_t span[2], word;
    memcpy(span, spans + at, sizeof span);
    const unsigned char *from = (const unsigned char *)(uintptr_t)span[0];
    for (uint64_t left = span[1]; left; left -= left < 8 ? left : 8, from += 8) {
      word = 0;
      memcpy(&word, from, left < 8 ? (size_t)left : 8);
      h = (h ^ word) * 0xff51afd7ed558ccdu;
      h ^= h >> 29;
    }
  }
  return h;
}

static PyObject *memory_sum(PyObject *module, PyObject *spans) {
  (void)module;
  char *data;
  Py_ssize_t bytes;
  if (PyBytes_AsStringAndSize(spans, &data, &bytes)) return NULL;
  return PyLong_FromUnsignedLongLong(sum_of(data, bytes));
}

/* 1: the values of all dicts, in order, are those objects; 0: not; -1: an exception. */
static int values_same(PyObject *dicts, PyObject *values) {
  Py_ssize_t count = PyList_Size(values), seen = 0, number = PyList_Size(dicts);
  for (Py_ssize_t i = 0; i < number; ++i) {
    PyObject *dict = PyList_GetItem(dicts, i), *value;
    if (!PyDict_Check(dict)) return PyErr_SetString(PyExc_TypeError, "containers must hold dicts"), -1;
    Py_ssize_t at = 0;
    while (PyDict_Next(dict, &at, NULL, &value))
      if (seen >= count || PyList_GetItem(values, seen++) != value) return 0;
  }
  return seen == count;
}

/* The same for some keys of each dict, and for how many keys it has: names are tuples (size, key, value, key, value ...). */
static int attributes_same(PyObject *dicts, PyObject *names) {
  Py_ssize_t number = PyList_Size(dicts);
  if (number != PyList_Size(names)) return PyErr_SetString(PyExc_TypeError, "a tuple of names for each dict"), -1;
  for (Py_ssize_t i = 0; i < number; ++i) {
    PyObject *dict = PyList_GetItem(dicts, i), *row = PyList_GetItem(names, i);
    Py_ssize_t count = PyTuple_Size(row);
    if (count < 1 || !PyDict_Check(dict)) return PyErr_Occurred() ? -1 : (PyErr_SetString(PyExc_TypeError, "dicts and tuples"), -1);
    if (PyDict_Size(dict) != PyLong_AsSsize_t(PyTuple_GetItem(row, 0))) return 0;
    for (Py_ssize_t k = 1; k + 1 < count; k += 2)
      if (PyDict_GetItemWithError(dict, PyTuple_GetItem(row, k)) != PyTuple_GetItem(row, k + 1)) return PyErr_Occurred() ? -1 : 0;
  }
  return 1;
}

/* The sum of an integer attribute, or of a method's integer results, of all objects. -1 with an exception. */
static int sum_up(PyObject *objects, PyObject *name, bool call, unsigned long long *sum) {
  *sum = 0;
  for (Py_ssize_t i = 0, n = PyList_Size(objects); i < n; ++i) {
    PyObject *object = PyList_GetItem(objects, i);
    PyObject *number = call ? PyObject_CallMethodObjArgs(object, name, NULL) : PyObject_GetAttr(object, name);
    if (!number) return -1;
    *sum += PyLong_AsUnsignedLongLongMask(number);
    Py_DECREF(number);
    if (PyErr_Occurred()) return -1;
  }
  return 0;
}

/* Sums of the versions of some tensors and of the addresses of others. */
static int numbers_of(PyObject *versioned, PyObject *located, unsigned long long *versions, unsigned long long *addresses) {
  static PyObject *version, *data_ptr; /* guarded by the GIL */
  if (!version && !(version = PyUnicode_InternFromString("_version"))) return -1;
  if (!data_ptr && !(data_ptr = PyUnicode_InternFromString("data_ptr"))) return -1;
  return sum_up(versioned, version, false, versions) || sum_up(located, data_ptr, true, addresses) ? -1 : 0;
}

static PyObject *tensor_numbers(PyObject *module, PyObject *args) {
  (void)module;
  PyObject *versioned, *located;
  unsigned long long versions, addresses;
  if (!PyArg_ParseTuple(args, "O!O!:tensor_numbers", &PyList_Type, &versioned, &PyList_Type, &located)) return NULL;
  if (numbers_of(versioned, located, &versions, &addresses)) return NULL;
  return Py_BuildValue("KK", versions, addresses);
}

static PyObject *unchanged(PyObject *module, PyObject *args) {
  (void)module;
  PyObject *versioned, *located, *dicts, *names, *containers, *values, *hooks;
  Py_ssize_t hook_count, bytes, found = 0;
  const char *spans;
  unsigned long long sum, versions, addresses, versions_now, addresses_now;
  if (!PyArg_ParseTuple(args, "O!O!KKO!O!O!O!O!ny#K:unchanged", &PyList_Type, &versioned, &PyList_Type, &located, &versions, &addresses,
                        &PyList_Type, &dicts, &PyList_Type, &names, &PyList_Type, &containers, &PyList_Type, &values, &PyList_Type, &hooks,
                        &hook_count, &spans, &bytes, &sum))
    return NULL;
  if (numbers_of(versioned, located, &versions_now, &addresses_now)) return NULL;
  if (versions_now != versions || addresses_now != addresses) return PyLong_FromLong(MEMORY);
  int same = values_same(containers, values);
  if (same > 0) same = attributes_same(dicts, names);
  if (same < 0) return NULL;
  if (!same) return PyLong_FromLong(VALUES);
  for (Py_ssize_t i = 0, n = PyList_Size(hooks); i < n; ++i) {
    Py_ssize_t size = PyDict_Size(PyList_GetItem(hooks, i));
    if (size < 0) return NULL;
    found += size;
  }
  if (found != hook_count) return PyLong_FromLong(HOOKS);
  return PyLong_FromLong(sum_of(spans, bytes) == sum ? SAME : MEMORY);
}

static PyMethodDef functions[] = {
    {"memory_sum", memory_sum, METH_O, "memory_sum(spans) -> checksum of (address, bytes) pairs, 64-bit numbers in native order"},
    {"tensor_numbers", tensor_numbers, METH_VARARGS, "tensor_numbers(versioned, located) -> (sum of versions, sum of addresses)"},
    {"unchanged", unchanged, METH_VARARGS,
     "unchanged(versioned, located, versions, addresses, dicts, names, containers, values, hooks, hook_count, spans, sum) -> 0: nothing "
     "has changed; "
     "1: values; 2: hooks; 3: tensors"},
    {0},
};

int core_add_watch(PyObject *module) { return PyModule_AddFunctions(module, functions); }
