/* The buffer protocol for extensions of the limited API of CPython 3.10.
 *
 * CPython declares it for the limited API from 3.11 on. The struct has been the same since 3.3 and 3.10 exports the functions, so an
 * extension that declares them itself runs on all of them; 3.10 itself changes no more. (PEP 688, "What's new in 3.11": C API.) */
#ifndef AIT_PYTHON_COMPAT_H
#define AIT_PYTHON_COMPAT_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#if defined(Py_LIMITED_API) && Py_LIMITED_API + 0 < 0x030b0000
typedef struct Py_buffer {
  void *buf;
  PyObject *obj;
  Py_ssize_t len, itemsize;
  int readonly, ndim;
  char *format;
  Py_ssize_t *shape, *strides, *suboffsets;
  void *internal;
} Py_buffer;
PyAPI_FUNC(int) PyObject_CheckBuffer(PyObject *);
PyAPI_FUNC(int) PyObject_GetBuffer(PyObject *, Py_buffer *, int);
PyAPI_FUNC(void) PyBuffer_Release(Py_buffer *);
#define PyBUF_FORMAT 0x4
#define PyBUF_ND 0x8
#define PyBUF_STRIDES (0x10 | PyBUF_ND)
#define PyBUF_RECORDS_RO (PyBUF_STRIDES | PyBUF_FORMAT)
#define PyBUF_WRITABLE 0x1 /* of a consumer's request */
#undef Py_bf_getbuffer
#define Py_bf_getbuffer 1
#endif

#endif
