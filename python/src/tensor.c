/* ait.Tensor, and results as the caller's kind of array. */
#include "core.h"

#include <stdlib.h>
#include <string.h>

PyTypeObject *core_tensor_type;

/* Names of other libraries that results need, looked up once. */
static PyObject *numpy_empty, *numpy_dtypes[AIT_C128 + 1];

PyObject *core_shape_tuple(const ait_tensor *t) {
  PyObject *shape = PyTuple_New(t->rank);
  for (int32_t d = 0; shape && d < t->rank; ++d) {
    PyObject *size = PyLong_FromLongLong(t->shape[d]);
    if (!size) Py_CLEAR(shape);
    else PyTuple_SetItem(shape, d, size);
  }
  return shape;
}

/* ---- NumPy -------------------------------------------------------------------------------------------------------------------------*/
/* What NumPy has no dtype for goes into a larger one that holds it without loss. */
static ait_dtype widened(ait_dtype dtype) {
  switch (dtype) {
    case AIT_BF16:
    case AIT_F8E4M3FN:
    case AIT_F8E5M2:
    case AIT_F8E4M3FNUZ:
    case AIT_F8E5M2FNUZ:
    case AIT_F8E8M0FNU: return AIT_F32;
    case AIT_C32: return AIT_C64;
    default: return dtype;
  }
}

static PyObject *attribute_of(const char *module, const char *name) {
  PyObject *m = PyImport_ImportModule(module), *found = m ? PyObject_GetAttrString(m, name) : NULL;
  Py_XDECREF(m);
  return found;
}

/* The NumPy dtype, of ml_dtypes where that is installed; NULL without an exception: there is none. */
static PyObject *numpy_dtype(ait_dtype dtype) {
  if (numpy_dtypes[dtype]) return numpy_dtypes[dtype] == Py_None ? NULL : numpy_dtypes[dtype];
  PyObject *make = attribute_of("numpy", "dtype"), *found = NULL;
  PyObject *argument =
      widened(dtype) == dtype ? PyUnicode_FromString(ait_dtype_name(dtype)) : attribute_of("ml_dtypes", ait_dtype_name(dtype));
  if (make && argument) found = PyObject_CallFunctionObjArgs(make, argument, NULL);
  Py_XDECREF(make);
  Py_XDECREF(argument);
  PyErr_Clear();
  if (!found) Py_INCREF(Py_None);
  numpy_dtypes[dtype] = found ? found : Py_None;
  return found;
}

static PyObject *make_numpy(ait_dtype dtype, PyObject *shape) {
  if (!numpy_empty && !(numpy_empty = attribute_of("numpy", "empty"))) return NULL;
  PyObject *type = numpy_dtype(dtype);
  return type ? PyObject_CallFunctionObjArgs(numpy_empty, shape, type, NULL) : NULL;
}

static bool numpy_room(ait_dtype dtype, PyObject *shape, core_room *out) {
  out->object = make_numpy(dtype, shape);
  if (out->object && PyObject_GetBuffer(out->object, &out->buffer, PyBUF_RECORDS_RO) == 0) return true;
  Py_CLEAR(out->object);
  return false;
}

/* ---- rooms
 * -----------------------------------------------------------------------------------------------------------------------------*/
bool core_room_make(core_kind kind, ait_dtype dtype, int32_t rank, const int64_t *sizes, PyObject *shape, core_room *out,
                    ait_tensor *view) {
  *out = (core_room){0};
  if (kind == CORE_KIND_NUMPY && widened(dtype) == dtype) {
    if (!numpy_room(dtype, shape, out)) {
      if (!PyErr_Occurred()) core_fail(AIT_CODE_UNSUPPORTED, NULL, "NumPy has no dtype for %s", ait_dtype_name(dtype));
      return false;
    }
    *view = ait_tensor_borrow(out->buffer.buf, dtype, rank, sizes);
    return true;
  }
  ait_status status = ait_tensor_create(ait_allocator_default(), dtype, rank, sizes, &out->tensor);
  if (status) return core_raise(status) != NULL;
  *view = out->tensor;
  view->storage = NULL;
  return true;
}

void core_room_drop(core_room *room) {
  if (room->object) {
    PyBuffer_Release(&room->buffer);
    Py_CLEAR(room->object);
  }
  ait_tensor_release(&room->tensor);
}

/* ---- results ------------------------------------------------------------------------------------------------------------------------*/
/* float8 and bfloat16 for NumPy: as ml_dtypes has them, else as float32. Borrows the tensor. */
static PyObject *small_float_array(const ait_tensor *t) {
  PyObject *shape = core_shape_tuple(t), *type = numpy_dtype(t->dtype), *result = NULL;
  ait_dtype stored = type ? t->dtype : widened(t->dtype);
  core_room room = {0};
  if (type && shape) { /* its bytes through an array of integers of that size, seen as the dtype */
    static PyObject *view;
    if (!view) view = PyUnicode_InternFromString("view");
    ait_tensor bits = *t, into;
    bits.dtype = ait_dtype_size(t->dtype) == 2 ? AIT_U16 : AIT_U8;
    if (core_room_make(CORE_KIND_NUMPY, bits.dtype, t->rank, t->shape, shape, &room, &into)) {
      memcpy(into.data, t->data, (size_t)ait_tensor_count(t) * ait_dtype_size(bits.dtype));
      PyObject *array = core_room_take(CORE_KIND_NUMPY, &room);
      result = array ? PyObject_CallMethodObjArgs(array, view, type, NULL) : NULL;
      Py_XDECREF(array);
    }
  } else if (shape) {
    ait_tensor into;
    if (core_room_make(CORE_KIND_NUMPY, stored, t->rank, t->shape, shape, &room, &into)) {
      ait_status status = ait_tensor_copy(&into, t);
      if (!status) result = core_room_take(CORE_KIND_NUMPY, &room);
      else core_room_drop(&room), core_raise(status);
    }
  }
  Py_XDECREF(shape);
  return result;
}

static void managed_free(dl_managed_versioned *self) {
  ait_tensor owner = {.storage = self->context};
  ait_tensor_release(&owner);
  free(self);
}

static void legacy_free(dl_managed *self) {
  ait_tensor owner = {.storage = self->context};
  ait_tensor_release(&owner);
  free(self);
}

static dl_dtype to_dlpack(ait_dtype dtype) {
  uint8_t bits = (uint8_t)(ait_dtype_size(dtype) * 8);
  switch (dtype) {
    case AIT_BOOL: return (dl_dtype){DL_BOOL, 8, 1};
    case AIT_U8:
    case AIT_U16:
    case AIT_U32:
    case AIT_U64: return (dl_dtype){DL_UINT, bits, 1};
    case AIT_I8:
    case AIT_I16:
    case AIT_I32:
    case AIT_I64: return (dl_dtype){DL_INT, bits, 1};
    case AIT_BF16: return (dl_dtype){DL_BFLOAT, 16, 1};
    case AIT_F8E4M3FN: return (dl_dtype){DL_F8E4M3FN, 8, 1};
    case AIT_F8E5M2: return (dl_dtype){DL_F8E5M2, 8, 1};
    case AIT_F8E4M3FNUZ: return (dl_dtype){DL_F8E4M3FNUZ, 8, 1};
    case AIT_F8E5M2FNUZ: return (dl_dtype){DL_F8E5M2FNUZ, 8, 1};
    case AIT_F8E8M0FNU: return (dl_dtype){DL_F8E8M0FNU, 8, 1};
    case AIT_C32:
    case AIT_C64:
    case AIT_C128: return (dl_dtype){DL_COMPLEX, bits, 1};
    default: return (dl_dtype){DL_FLOAT, bits, 1};
  }
}

/* t's sizes and strides go into `sizes`, which lives as long as *out. */
static void fill_dl(const ait_tensor *t, int64_t *sizes, dl_tensor *out) {
  *out = (dl_tensor){.data = t->data,
                     .device = {DL_CPU, 0},
                     .ndim = t->rank,
                     .dtype = to_dlpack(t->dtype),
                     .shape = sizes,
                     .strides = sizes + AIT_MAX_RANK};
  memcpy(out->shape, t->shape, sizeof t->shape);
  memcpy(out->strides, t->strides, sizeof t->strides);
}

/* Takes a reference of its own. Memory comes from malloc: it may be given back without the GIL. NULL: no memory. */
static dl_managed_versioned *managed_new(const ait_tensor *t) {
  struct {
    dl_managed_versioned managed;
    int64_t sizes[2 * AIT_MAX_RANK];
  } *block = malloc(sizeof *block);
  if (!block) return NULL;
  block->managed = (dl_managed_versioned){.version = {1, 0}, .context = ait_tensor_retain(t).storage, .deleter = managed_free};
  fill_dl(t, block->sizes, &block->managed.tensor);
  return &block->managed;
}

static dl_managed *legacy_new(const ait_tensor *t) {
  struct {
    dl_managed managed;
    int64_t sizes[2 * AIT_MAX_RANK];
  } *block = malloc(sizeof *block);
  if (!block) return NULL;
  block->managed = (dl_managed){.context = ait_tensor_retain(t).storage, .deleter = legacy_free};
  fill_dl(t, block->sizes, &block->managed.tensor);
  return &block->managed;
}

/* A torch tensor over the memory of ours. Takes the reference over. */
static PyObject *to_torch(ait_tensor *t) {
  const dl_exchange *exchange = core_torch_exchange();
  if (exchange) {
    dl_managed_versioned *managed = managed_new(t);
    ait_tensor_release(t);
    if (!managed) return PyErr_NoMemory();
    void *made = NULL;
    return exchange->object_from_managed(managed, &made) ? NULL : made;
  }
  PyObject *ours = core_tensor_new(t), *from = ours ? attribute_of("torch", "from_dlpack") : NULL;
  PyObject *made = from ? PyObject_CallFunctionObjArgs(from, ours, NULL) : NULL;
  Py_XDECREF(from);
  Py_XDECREF(ours);
  return made;
}

PyObject *core_room_take(core_kind kind, core_room *room) {
  if (room->object) {
    PyObject *made = room->object;
    PyBuffer_Release(&room->buffer);
    room->object = NULL;
    return made;
  }
  ait_tensor t = room->tensor;
  room->tensor = (ait_tensor){0};
  if (kind == CORE_KIND_TORCH) return to_torch(&t);
  if (kind == CORE_KIND_AIT) return core_tensor_new(&t);
  PyObject *made = small_float_array(&t);
  ait_tensor_release(&t);
  return made;
}

PyObject *core_copy_out(core_kind kind, const ait_tensor *t) {
  PyObject *shape = core_shape_tuple(t);
  core_room room;
  ait_tensor view;
  bool ok = shape && core_room_make(kind, t->dtype, t->rank, t->shape, shape, &room, &view);
  Py_XDECREF(shape);
  if (!ok) return NULL;
  ait_status status = ait_tensor_copy(&view, t);
  if (!status) return core_room_take(kind, &room);
  core_room_drop(&room);
  return core_raise(status);
}

/* ---- the type ------------------------------------------------------------------------------------------------------------------------*/
PyObject *core_tensor_new(ait_tensor *t) {
  core_tensor *self = PyObject_New(core_tensor, core_tensor_type);
  if (!self) {
    ait_tensor_release(t);
    return NULL;
  }
  self->tensor = *t;
  *t = (ait_tensor){0};
  Py_ssize_t size = (Py_ssize_t)ait_dtype_size(self->tensor.dtype);
  for (int32_t d = 0; d < self->tensor.rank; ++d) {
    self->sizes[d] = (Py_ssize_t)self->tensor.shape[d];
    self->steps[d] = (Py_ssize_t)self->tensor.strides[d] * size;
  }
  return (PyObject *)self;
}

static void tensor_dealloc(PyObject *object) {
  core_tensor *self = (core_tensor *)object;
  PyTypeObject *type = Py_TYPE(object);
  ait_tensor_release(&self->tensor);
  PyObject_Free(self);
  Py_DECREF(type);
}

static const ait_tensor *tensor_of(PyObject *self) { return &((core_tensor *)self)->tensor; }

static PyObject *get_shape(PyObject *self, void *unused) {
  (void)unused;
  return core_shape_tuple(tensor_of(self));
}
static PyObject *get_strides(PyObject *self, void *unused) {
  (void)unused;
  ait_tensor strides = *tensor_of(self);
  memcpy(strides.shape, strides.strides, sizeof strides.shape);
  return core_shape_tuple(&strides);
}
static PyObject *get_dtype(PyObject *self, void *unused) {
  (void)unused;
  return PyUnicode_FromString(ait_dtype_name(tensor_of(self)->dtype));
}
static PyObject *get_ndim(PyObject *self, void *unused) {
  (void)unused;
  return PyLong_FromLong(tensor_of(self)->rank);
}
static PyObject *get_size(PyObject *self, void *unused) {
  (void)unused;
  return PyLong_FromLongLong(ait_tensor_count(tensor_of(self)));
}
static PyObject *get_nbytes(PyObject *self, void *unused) {
  (void)unused;
  return PyLong_FromLongLong(ait_tensor_count(tensor_of(self)) * (int64_t)ait_dtype_size(tensor_of(self)->dtype));
}

static Py_ssize_t tensor_length(PyObject *self) {
  if (tensor_of(self)->rank > 0) return (Py_ssize_t)tensor_of(self)->shape[0];
  PyErr_SetString(PyExc_TypeError, "len() of a tensor without dimensions");
  return -1;
}

static PyObject *tensor_repr(PyObject *self) {
  PyObject *shape = core_shape_tuple(tensor_of(self));
  PyObject *text =
      shape ? PyUnicode_FromFormat(CORE_PACKAGE ".Tensor(shape=%R, dtype=%s)", shape, ait_dtype_name(tensor_of(self)->dtype)) : NULL;
  Py_XDECREF(shape);
  return text;
}

/* ---- buffer
 * ----------------------------------------------------------------------------------------------------------------------------*/
static const char *format_of(ait_dtype dtype) {
  switch (dtype) {
    case AIT_BOOL: return "?";
    case AIT_U8: return "B";
    case AIT_I8: return "b";
    case AIT_U16: return "H";
    case AIT_I16: return "h";
    case AIT_U32: return "I";
    case AIT_I32: return "i";
    case AIT_U64: return "Q";
    case AIT_I64: return "q";
    case AIT_F16: return "e";
    case AIT_F32: return "f";
    case AIT_F64: return "d";
    case AIT_C64: return "Zf";
    case AIT_C128: return "Zd";
    default: return NULL;
  }
}

static int tensor_buffer(PyObject *object, Py_buffer *out, int flags) {
  core_tensor *self = (core_tensor *)object;
  const ait_tensor *t = &self->tensor;
  const char *format = format_of(t->dtype);
  if (!format) {
    PyErr_Format(PyExc_BufferError, "buffers have no format for %s: use .numpy(), .torch() or DLPack", ait_dtype_name(t->dtype));
    return -1;
  }
  if (!ait_tensor_is_contiguous(t) && (flags & PyBUF_STRIDES) != PyBUF_STRIDES) {
    PyErr_SetString(PyExc_BufferError, "the tensor is not contiguous");
    return -1;
  }
  Py_ssize_t size = (Py_ssize_t)ait_dtype_size(t->dtype);
  *out = (Py_buffer){.buf = t->data, .obj = object, .len = (Py_ssize_t)ait_tensor_count(t) * size, .itemsize = size, .ndim = t->rank};
  if (!out->buf) out->buf = self; /* no elements: any address that is not NULL */
  out->format = (flags & PyBUF_FORMAT) ? (char *)(uintptr_t)format : NULL;
  out->shape = (flags & PyBUF_ND) ? self->sizes : NULL;
  out->strides = (flags & PyBUF_STRIDES) == PyBUF_STRIDES ? self->steps : NULL;
  Py_INCREF(object);
  return 0;
}

/* ---- DLPack
 * ----------------------------------------------------------------------------------------------------------------------------*/
static void versioned_capsule_free(PyObject *capsule) {
  dl_managed_versioned *managed = PyCapsule_GetPointer(capsule, "dltensor_versioned");
  if (managed) managed->deleter(managed);
  else PyErr_Clear(); /* a consumer renamed it: the memory is the consumer's */
}
static void legacy_capsule_free(PyObject *capsule) {
  dl_managed *managed = PyCapsule_GetPointer(capsule, "dltensor");
  if (managed) managed->deleter(managed);
  else PyErr_Clear();
}

static int wants_cpu(PyObject *device) {
  if (!device || device == Py_None) return 1;
  int64_t type = 0;
  PyObject *first = PySequence_GetItem(device, 0);
  if (first) type = PyLong_AsLongLong(first);
  Py_XDECREF(first);
  if (PyErr_Occurred()) return -1;
  return type == DL_CPU;
}

static PyObject *tensor_dlpack(PyObject *self, PyObject *args, PyObject *kwargs) {
  static const char *const names[] = {"stream", "max_version", "dl_device", "copy", NULL};
  PyObject *stream = NULL, *version = NULL, *device = NULL, *copy = NULL;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|$OOOO:__dlpack__", (char **)(uintptr_t)names, &stream, &version, &device, &copy))
    return NULL;
  int cpu = wants_cpu(device);
  if (cpu < 0) return NULL;
  if (!cpu) {
    PyErr_SetString(PyExc_BufferError, "the tensor is in the CPU's memory");
    return NULL;
  }
  ait_tensor t = *tensor_of(self), own = {0};
  if (copy == Py_True) {
    ait_status status = ait_tensor_cast(ait_allocator_default(), &t, t.dtype, &own);
    if (status) return core_raise(status);
    t = own;
  }
  int64_t major = 0;
  if (version && version != Py_None) {
    PyObject *first = PySequence_GetItem(version, 0);
    if (first) major = PyLong_AsLongLong(first);
    Py_XDECREF(first);
    if (PyErr_Occurred()) return ait_tensor_release(&own), NULL;
  }
  void *managed = major >= 1 ? (void *)managed_new(&t) : (void *)legacy_new(&t);
  ait_tensor_release(&own); /* the capsule has its own reference */
  if (!managed) return PyErr_NoMemory();
  PyObject *capsule =
      PyCapsule_New(managed, major >= 1 ? "dltensor_versioned" : "dltensor", major >= 1 ? versioned_capsule_free : legacy_capsule_free);
  if (!capsule && major >= 1) managed_free(managed);
  else if (!capsule) legacy_free(managed);
  return capsule;
}

static PyObject *tensor_device(PyObject *self, PyObject *unused) {
  (void)self, (void)unused;
  return Py_BuildValue("(ii)", DL_CPU, 0);
}

/* ---- conversions
 * ------------------------------------------------------------------------------------------------------------------------*/
static PyObject *tensor_numpy(PyObject *self, PyObject *unused) {
  (void)unused;
  if (widened(tensor_of(self)->dtype) != tensor_of(self)->dtype) return small_float_array(tensor_of(self));
  PyObject *convert = attribute_of("numpy", "asarray");
  PyObject *array = convert ? PyObject_CallFunctionObjArgs(convert, self, NULL) : NULL;
  Py_XDECREF(convert);
  return array;
}

static PyObject *tensor_torch(PyObject *self, PyObject *unused) {
  (void)unused;
  PyObject *from = attribute_of("torch", "from_dlpack");
  PyObject *made = from ? PyObject_CallFunctionObjArgs(from, self, NULL) : NULL;
  Py_XDECREF(from);
  return made;
}

/* Nested lists through a memoryview, small floats as float32. */
static PyObject *tensor_tolist(PyObject *self, PyObject *unused) {
  (void)unused;
  ait_dtype wide = widened(tensor_of(self)->dtype);
  PyObject *source = self;
  if (wide != tensor_of(self)->dtype || wide == AIT_F16) {
    ait_tensor t;
    ait_status status = ait_tensor_cast(ait_allocator_default(), tensor_of(self), wide == AIT_F16 ? AIT_F32 : wide, &t);
    if (status) return core_raise(status);
    if (!(source = core_tensor_new(&t))) return NULL;
  } else {
    Py_INCREF(source);
  }
  PyObject *memory = PyMemoryView_FromObject(source), *list = memory ? PyObject_CallMethod(memory, "tolist", NULL) : NULL;
  Py_XDECREF(memory);
  Py_DECREF(source);
  return list;
}

static PyMethodDef methods[] = {
    {"__dlpack__", (PyCFunction)(uintptr_t)tensor_dlpack, METH_VARARGS | METH_KEYWORDS, "A DLPack capsule over the tensor's memory."},
    {"__dlpack_device__", tensor_device, METH_NOARGS, "(1, 0): the CPU."},
    {"numpy", tensor_numpy, METH_NOARGS,
     "A NumPy array over the same memory. What NumPy has no dtype for comes as ml_dtypes has it (where that is installed), else as "
     "float32: a copy."},
    {"torch", tensor_torch, METH_NOARGS, "A torch tensor over the same memory."},
    {"tolist", tensor_tolist, METH_NOARGS, "Nested lists of Python numbers."},
    {0},
};
static PyGetSetDef getters[] = {
    {"shape", get_shape, NULL, "Sizes.", NULL},
    {"strides", get_strides, NULL, "In elements.", NULL},
    {"dtype", get_dtype, NULL, "torch's name: 'float32'.", NULL},
    {"ndim", get_ndim, NULL, "Number of dimensions.", NULL},
    {"size", get_size, NULL, "Number of elements.", NULL},
    {"nbytes", get_nbytes, NULL, "Bytes of the elements.", NULL},
    {0},
};
static PyType_Slot slots[] = {
    {Py_tp_doc,
     "A result of a model: memory of its own, read through DLPack (torch.from_dlpack), the buffer protocol (numpy.asarray) or .numpy() "
     "and .torch()."},
    {Py_tp_dealloc, tensor_dealloc},
    {Py_tp_repr, tensor_repr},
    {Py_tp_methods, methods},
    {Py_tp_getset, getters},
    {Py_sq_length, tensor_length},
    {Py_bf_getbuffer, tensor_buffer},
    {0, NULL},
};
static PyType_Spec spec = {.name = CORE_PACKAGE ".Tensor",
                           .basicsize = sizeof(core_tensor),
                           .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                           .slots = slots};

int core_add_tensor(PyObject *module) {
  core_tensor_type = core_add_type(module, "Tensor", &spec);
  return core_tensor_type ? 0 : -1;
}
