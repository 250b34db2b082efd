/* Between the files of the extension module ait._core: everything over the public C API (include/ait) only.
 *
 * Unless it says otherwise, a function needs the GIL, and -1 or NULL means that a Python exception is set. */
#ifndef AIT_PYTHON_CORE_H
#define AIT_PYTHON_CORE_H

#include "compat.h"
#include "dlpack.h"
#include <ait/data.h>
#include <ait/custom_op.h>
#include <ait/session.h>
#include <ait/tools.h>

/* The package that the module is in: full, or run only (python/rt). */
#ifdef AIT_PYTHON_RT
#define CORE_PACKAGE "ait_rt"
#else
#define CORE_PACKAGE "ait"
#endif

/* ---- errors.c ----------------------------------------------------------------------------------------------------------------------*/
/* Makes ait.Error and one subclass for each code of status.inc, and puts them into the module. */
int core_add_errors(PyObject *module);
/* Raises the exception of the status's code and frees the status. Returns NULL. */
void *core_raise(ait_status status);
/* core_raise of a new error; hint may be NULL. */
void *core_fail(ait_code code, const char *hint, const char *format, ...) AIT_PRINTF(3, 4);

/* ---- object.c: types and objects ---------------------------------------------------------------------------------------------------*/
/* Puts a type into the module. It lives as long as the process. */
PyTypeObject *core_add_type(PyObject *module, const char *name, PyType_Spec *spec);
/* Zeroed memory of an object; and, last in its dealloc, given back. */
PyObject *core_object_new(PyTypeObject *type);
void core_object_free(PyObject *object);

/* ---- array.c: other libraries' arrays as tensors -----------------------------------------------------------------------------------*/
typedef enum core_kind { CORE_KIND_AIT = 0, CORE_KIND_NUMPY, CORE_KIND_TORCH } core_kind; /* a larger one wins for the outputs */

/* What keeps the memory of a borrowed tensor alive. Zeroed: nothing. */
typedef struct core_hold {
  bool buffered;
  Py_buffer buffer;
  PyObject *object;
  ait_storage *copy; /* of memory that is not aligned to its elements */
} core_hold;

void core_hold_release(core_hold *hold);
/* A view of obj's memory. writable: refuses memory that is read only. Errors (the caller adds which input it is): invalid-argument,
 * unsupported. *kind is raised to the kind of obj. */
ait_status core_tensor_from_object(PyObject *obj, bool writable, ait_tensor *out, core_hold *hold, core_kind *kind);
/* true: obj is an array of some library (a cheap question after the first of its type). */
bool core_is_array(PyObject *obj);
/* What torch gives for making tensors without a Python call, once a tensor of torch was seen; else NULL. */
const dl_exchange *core_torch_exchange(void);

/* ---- tensor.c: ait.Tensor, and results as arrays ---------------------------------------------------------------------------------*/
typedef struct core_tensor {
  PyObject_HEAD ait_tensor tensor;                     /* with storage; never written by ait once the object is out */
  Py_ssize_t sizes[AIT_MAX_RANK], steps[AIT_MAX_RANK]; /* for buffers: bytes */
} core_tensor;
extern PyTypeObject *core_tensor_type;
int core_add_tensor(PyObject *module);
/* A Tensor that takes over the reference of a tensor with storage. On failure the reference is given back. */
PyObject *core_tensor_new(ait_tensor *tensor);

/* Memory for a result that the model fills: an object of the caller's kind and a view of its memory. */
typedef struct core_room {
  PyObject *object;  /* NUMPY: an array */
  Py_buffer buffer;  /* of that array */
  ait_tensor tensor; /* TORCH, AIT: own storage */
} core_room;
/* shape: a tuple of the sizes. false with a Python exception; nothing to release then. */
bool core_room_make(core_kind kind, ait_dtype dtype, int32_t rank, const int64_t *sizes, PyObject *shape, core_room *out, ait_tensor *view);
/* The object, when the model has filled it. The room is empty after. */
PyObject *core_room_take(core_kind kind, core_room *room);
void core_room_drop(core_room *room);
/* An own copy of a tensor as an object of that kind. */
PyObject *core_copy_out(core_kind kind, const ait_tensor *tensor);
PyObject *core_shape_tuple(const ait_tensor *tensor);

/* ---- runner.c: a pool of sessions behind a callable --------------------------------------------------------------------------------*/
typedef struct core_port {
  PyObject *name; /* interned */
  ait_port port;
  bool written;     /* input: the model writes into it */
  bool predictable; /* output: a tensor whose sizes follow from those of the inputs */
  ait_value fixed;  /* input that may be left out: its value; kind NONE with has_fixed for a None */
  bool has_fixed;
} core_port;

/* What a model takes and gives; lives as long as the model object. */
typedef struct core_signature {
  size_t input_count, output_count;
  core_port *inputs, *outputs;
} core_signature;

typedef struct core_slot core_slot;
typedef struct core_runner {
  ait_model *model; /* one reference */
  core_signature *signature;
  ait_session_options options;
  core_slot *idle; /* guarded by the GIL, as all counters here */
  int32_t made, limit, waiting;
  void *gate; /* where callers wait for an idle session */
  unsigned fork_number;
  int returns; /* -1: as the inputs are; else a core_kind */
} core_runner;

core_signature *core_signature_new(ait_model *model);
void core_signature_free(core_signature *signature);
/* limit 0: as many sessions as have processors to run on; 1 where the model has state. Takes its own reference on the model. */
int core_runner_init(core_runner *runner, ait_model *model, core_signature *signature, const ait_session_options *options, int32_t limit);
void core_runner_deinit(core_runner *runner);
PyObject *core_runner_call(core_runner *runner, PyObject *args, PyObject *kwargs);
/* A session of the pool for something else than a call: give it back. */
core_slot *core_runner_take(core_runner *runner);
void core_runner_give(core_runner *runner, core_slot *slot);
ait_session *core_slot_session(core_slot *slot);
/* One value by the port's kind; what as in "input 'x'". 0 or -1. */
int core_value_from_object(const core_port *port, PyObject *obj, ait_value *out, core_hold *hold, core_kind *kind);
PyObject *core_object_from_value(const ait_value *value, core_kind kind);
/* Arguments to one borrowed object for each input, NULL where it was left out. */
int core_bind(const core_signature *signature, PyObject *args, PyObject *kwargs, PyObject **out);

/* ---- model.c -------------------------------------------------------------------------------------------------------------------------*/
typedef struct core_model {
  PyObject_HEAD core_runner runner; /* runner.model is the model */
  core_signature *signature;
  PyObject *path;
} core_model;
extern PyTypeObject *core_model_type;
int core_add_model(PyObject *module);
int core_add_session(PyObject *module);
/* A model of whatever the package reads: .ait, and where there is all of ait also .pt2 and .onnx. Needs no GIL. */
ait_status core_open_file(const char *path, const ait_load_options *options, ait_model **out) AIT_MUST_USE;
PyObject *core_profile_list(ait_session *session);

/* ---- options.c: keyword arguments as the structs of the C API -----------------------------------------------------------------------*/
/* Load options and what they point to. */
typedef struct core_load {
  ait_load_options options;
  ait_keys *keys;
  PyObject *held; /* list of the Python objects that texts belong to */
} core_load;
/* Takes what it knows out of the dict `rest` (may be NULL); -1: an error. */
int core_load_from(PyObject *rest, core_load *out);
void core_load_deinit(core_load *load);
/* NULL text for None or absent: removes name from the dict. The text belongs to held. */
int core_take_text(PyObject *rest, const char *name, PyObject *held, const char **out);
int core_take_bool(PyObject *rest, const char *name, bool *out);
int core_take_int(PyObject *rest, const char *name, int64_t least, int64_t most, int64_t *out);
int core_take_float(PyObject *rest, const char *name, double *out);
/* A NULL-terminated array of the texts of a sequence, or NULL when absent; to be freed with PyMem_Free. */
int core_take_texts(PyObject *rest, const char *name, PyObject *held, const char ***out);
/* -1 and a TypeError when something is left. */
int core_nothing_left(PyObject *rest, const char *function);
/* A path as UTF-8/file-system text that belongs to held. */
int core_path_text(PyObject *path, PyObject *held, const char **out);

int core_add_data(PyObject *module);
/* llm.c: language models. */
int core_add_llm(PyObject *module);
/* embed.c: embeddings of texts. */
int core_add_embed(PyObject *module);
#ifndef AIT_PYTHON_RT
int core_add_tools(PyObject *module);
int core_add_watch(PyObject *module);
#endif

#endif
