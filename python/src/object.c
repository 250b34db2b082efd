/* Types and objects of the module. */
#include "core.h"

PyTypeObject *core_add_type(PyObject *module, const char *name, PyType_Spec *spec) {
  PyObject *type = PyType_FromSpec(spec);
  if (type && PyModule_AddObjectRef(module, name, type) == 0) return (PyTypeObject *)type;
  Py_XDECREF(type);
  return NULL;
}

PyObject *core_object_new(PyTypeObject *type) {
  allocfunc allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
  return allocate(type, 0);
}

void core_object_free(PyObject *object) {
  PyTypeObject *type = Py_TYPE(object);
  freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
  release(object);
  Py_DECREF(type);
}
