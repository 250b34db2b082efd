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
  if (count < 0 || number < 0) return -1;
  for (Py_ssize_t i = 0; i < number; ++i) {
    PyObject *dict = PyList_GetItem(dicts, i), *value;
    if (!PyDict_Check(dict)) return PyErr_SetString(PyExc_TypeError, "dicts must hold dicts"), -1;
    Py_ssize_t at = 0;
    while (PyDict_Next(dict, &at, NULL, &value))
      if (seen >= count || PyList_GetItem(values, seen++) != value) return 0;
  }
  return seen == count;
}

static PyObject *unchanged(PyObject *module, PyObject *args) {
  (void)module;
  PyObject *dicts, *values, *hooks;
  Py_ssize_t hook_count, bytes, found = 0;
  const char *spans;
  unsigned long long sum;
  if (!PyArg_ParseTuple(args, "O!O!O!ny#K:unchanged", &PyList_Type, &dicts, &PyList_Type, &values, &PyList_Type, &hooks, &hook_count, &spans, &bytes,
                        &sum))
    return NULL;
  int same = values_same(dicts, values);
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
    {"unchanged", unchanged, METH_VARARGS, "unchanged(dicts, values, hooks, hook_count, spans, sum) -> 0, or 1: values, 2: hooks, 3: memory"},
    {0},
};

int core_add_watch(PyObject *module) { return PyModule_AddFunctions(module, functions); }
