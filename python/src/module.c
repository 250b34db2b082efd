/* The module: what is in it, from the other files. */
#include "core.h"
#include "guest.h"

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "_core",
    .m_doc = "ait over its C API. Use the package around it.",
    .m_size = -1,
};

PyMODINIT_FUNC PyInit__core(void);
PyMODINIT_FUNC PyInit__core(void) {
  PyObject *module = PyModule_Create(&definition);
  if (!module) return NULL;
  if (core_add_errors(module) || core_add_tensor(module) || core_add_model(module) || core_add_session(module) || core_add_data(module) ||
      core_add_llm(module) || core_add_embed(module) ||
#ifndef AIT_PYTHON_RT
      core_add_tools(module) || core_add_watch(module) || core_add_guests(module) ||
#endif
      PyModule_AddStringConstant(module, "__version__", ait_version())) {
    Py_DECREF(module);
    return NULL;
  }
  return module;
}
