/* Arrays of other libraries as tensors, without a copy: DLPack's exchange table, the buffer protocol, DLPack capsules, and NumPy's array
 * interface for dtypes that buffers cannot say. How a type is read is decided when the first object of it comes. */
#include "core.h"

#include <string.h>

/* ---- dtypes ------------------------------------------------------------------------------------------------------------------------*/
static ait_dtype from_dlpack(dl_dtype t) {
  static const struct {
    uint8_t code, bits;
    ait_dtype dtype;
  } table[] = {
      {DL_FLOAT, 32, AIT_F32},
      {DL_FLOAT, 64, AIT_F64},
      {DL_FLOAT, 16, AIT_F16},
      {DL_BFLOAT, 16, AIT_BF16},
      {DL_INT, 64, AIT_I64},
      {DL_INT, 32, AIT_I32},
      {DL_INT, 16, AIT_I16},
      {DL_INT, 8, AIT_I8},
      {DL_UINT, 8, AIT_U8},
      {DL_UINT, 16, AIT_U16},
      {DL_UINT, 32, AIT_U32},
      {DL_UINT, 64, AIT_U64},
      {DL_BOOL, 8, AIT_BOOL},
      {DL_COMPLEX, 32, AIT_C32},
      {DL_COMPLEX, 64, AIT_C64},
      {DL_COMPLEX, 128, AIT_C128},
      {DL_F8E4M3FN, 8, AIT_F8E4M3FN},
      {DL_F8E5M2, 8, AIT_F8E5M2},
      {DL_F8E4M3FNUZ, 8, AIT_F8E4M3FNUZ},
      {DL_F8E5M2FNUZ, 8, AIT_F8E5M2FNUZ},
      {DL_F8E8M0FNU, 8, AIT_F8E8M0FNU},
  };
  for (size_t i = 0; t.lanes == 1 && i < sizeof table / sizeof *table; ++i)
    if (table[i].code == t.code && table[i].bits == t.bits) return table[i].dtype;
  return AIT_DTYPE_NONE;
}

static ait_dtype integer_of(bool is_signed, Py_ssize_t size) {
  switch (size) {
    case 1: return is_signed ? AIT_I8 : AIT_U8;
    case 2: return is_signed ? AIT_I16 : AIT_U16;
    case 4: return is_signed ? AIT_I32 : AIT_U32;
    case 8: return is_signed ? AIT_I64 : AIT_U64;
    default: return AIT_DTYPE_NONE;
  }
}

/* A format of the struct module, with NumPy's complex types. */
static ait_dtype from_format(const char *format, Py_ssize_t size) {
  if (!format) return size == 1 ? AIT_U8 : AIT_DTYPE_NONE;
  if (*format == '>' && size > 1) return AIT_DTYPE_NONE;
  if (*format && strchr("@=<>!|", *format)) ++format;
  bool complex = *format == 'Z';
  if (complex) ++format;
  if (!*format || format[1]) return AIT_DTYPE_NONE;
  switch (*format) {
    case 'e': return complex ? AIT_C32 : AIT_F16;
    case 'f': return complex ? AIT_C64 : AIT_F32;
    case 'd': return complex ? AIT_C128 : AIT_F64;
    case 'F': return AIT_C64;
    case 'D': return AIT_C128;
    case '?': return AIT_BOOL;
    case 'c': return AIT_U8;
    default: break;
  }
  if (strchr("bhilqn", *format)) return integer_of(true, size);
  return strchr("BHILQN", *format) ? integer_of(false, size) : AIT_DTYPE_NONE;
}

/* ---- how a type is read --------------------------------------------------------------------------------------------------------------*/
typedef enum reader {
  READ_NOTHING = 0, /* no array */
  READ_OWN,
  READ_EXCHANGE,
  READ_BUFFER,
  READ_NUMPY, /* a buffer where that works, else the array interface */
  READ_DLPACK,
} reader;

typedef struct known_type {
  PyTypeObject *type; /* one reference, so that the address stays this type's */
  reader how;
  core_kind kind;
  const dl_exchange *exchange;
} known_type;

enum { KNOWN_TYPES = 16 };
static known_type known[KNOWN_TYPES];
static unsigned known_count, known_next;

/* module.name if the module is loaded; NULL without an exception else. */
static PyObject *loaded_attribute(const char *module, const char *name) {
  PyObject *modules = PyImport_GetModuleDict(); /* borrowed */
  PyObject *m = modules ? PyDict_GetItemString(modules, module) : NULL, *found = NULL;
  if (m) found = PyObject_GetAttrString(m, name);
  PyErr_Clear();
  return found;
}

static bool subclass_of(PyTypeObject *type, const char *module, const char *name) {
  PyObject *parent = loaded_attribute(module, name);
  int is = parent ? PyObject_IsSubclass((PyObject *)type, parent) : 0;
  Py_XDECREF(parent);
  PyErr_Clear();
  return is > 0;
}

static bool has_attribute(PyTypeObject *type, const char *name) {
  PyObject *found = PyObject_GetAttrString((PyObject *)type, name);
  PyErr_Clear();
  Py_XDECREF(found);
  return found != NULL;
}

/* The table is for the type that states it; of those that inherit it torch's Parameter is known to have the same memory. */
static const dl_exchange *exchange_of(PyTypeObject *type) {
  PyObject *parameter = loaded_attribute("torch.nn", "Parameter");
  bool own = (PyObject *)type == parameter;
  Py_XDECREF(parameter);
  if (!own) {
    PyObject *dict = PyObject_GetAttrString((PyObject *)type, "__dict__"), *key = PyUnicode_FromString("__dlpack_c_exchange_api__");
    own = dict && key && PySequence_Contains(dict, key) == 1;
    Py_XDECREF(dict);
    Py_XDECREF(key);
    PyErr_Clear();
  }
  PyObject *capsule = own ? PyObject_GetAttrString((PyObject *)type, "__dlpack_c_exchange_api__") : NULL;
  const dl_exchange *table = capsule ? PyCapsule_GetPointer(capsule, "dlpack_exchange_api") : NULL;
  PyErr_Clear();
  Py_XDECREF(capsule); /* the table is static in the library that made it */
  return table && table->header.version.major == 1 && table->view_of_object && table->object_from_managed ? table : NULL;
}

static void decide(PyTypeObject *type, PyObject *obj, known_type *out) {
  *out = (known_type){.type = type};
  if (type == core_tensor_type) {
    out->how = READ_OWN;
  } else if (subclass_of(type, "torch", "Tensor")) {
    out->kind = CORE_KIND_TORCH;
    out->exchange = exchange_of(type);
    out->how = out->exchange ? READ_EXCHANGE : READ_DLPACK;
  } else if (subclass_of(type, "numpy", "ndarray") || subclass_of(type, "numpy", "generic")) {
    out->kind = CORE_KIND_NUMPY;
    out->how = READ_NUMPY;
  } else if ((out->exchange = exchange_of(type))) {
    out->how = READ_EXCHANGE;
  } else if (has_attribute(type, "__dlpack__")) {
    out->how = READ_DLPACK;
  } else if (PyObject_CheckBuffer(obj)) {
    out->how = READ_BUFFER;
  }
}

static const known_type *know(PyObject *obj) {
  PyTypeObject *type = Py_TYPE(obj);
  for (unsigned i = 0; i < known_count; ++i)
    if (known[i].type == type) return &known[i];
  known_type fresh;
  decide(type, obj, &fresh);
  unsigned at = known_count < KNOWN_TYPES ? known_count++ : known_next++ % KNOWN_TYPES;
  Py_XDECREF(known[at].type);
  Py_INCREF(type);
  known[at] = fresh;
  return &known[at];
}

bool core_is_array(PyObject *obj) { return know(obj)->how != READ_NOTHING; }

const dl_exchange *core_torch_exchange(void) {
  for (unsigned i = 0; i < known_count; ++i)
    if (known[i].kind == CORE_KIND_TORCH && known[i].exchange) return known[i].exchange;
  return NULL;
}

/* ---- reading -----------------------------------------------------------------------------------------------------------------------*/
/* The pending Python exception as a status. */
static ait_status from_exception(ait_code code, const char *what) {
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  PyObject *text = value ? PyObject_Str(value) : NULL;
  const char *bytes = text ? PyUnicode_AsUTF8AndSize(text, NULL) : NULL;
  ait_status status = ait_error(code, "%s: %s", what, bytes ? bytes : "unknown error");
  PyErr_Clear();
  Py_XDECREF(text);
  Py_XDECREF(type);
  Py_XDECREF(value);
  Py_XDECREF(trace);
  return status;
}

static ait_status read_only(void) {
  return ait_error_hint(ait_error(AIT_CODE_INVALID_ARGUMENT, "the memory is read only, and the model writes into this input"),
                        "pass a copy");
}

static ait_status wrong_dtype(const char *text) {
  return ait_error_hint(ait_error(AIT_CODE_UNSUPPORTED, "elements of type '%s' are not supported", text),
                        "pass numbers in the machine's byte order, like float32 or int64");
}

static ait_status from_dl_tensor(const dl_tensor *t, ait_tensor *out) {
  if (t->device.type != DL_CPU && t->device.type != DL_CUDA_HOST && t->device.type != DL_ROCM_HOST)
    return ait_error_hint(
        ait_error(AIT_CODE_INVALID_ARGUMENT, "the array is not in the CPU's memory (DLPack device type %d)", (int)t->device.type),
        "copy it to the CPU first, for PyTorch with .cpu()");
  if (t->ndim < 0 || t->ndim > AIT_MAX_RANK)
    return ait_error(AIT_CODE_INVALID_ARGUMENT, "%d dimensions, at most %d are allowed", (int)t->ndim, AIT_MAX_RANK);
  *out = (ait_tensor){.data = (char *)t->data + t->byte_offset, .dtype = from_dlpack(t->dtype), .rank = t->ndim};
  if (out->dtype == AIT_DTYPE_NONE) {
    return ait_error(AIT_CODE_UNSUPPORTED, "DLPack elements of code %d, %d bits, %d lanes are not supported", (int)t->dtype.code,
                     (int)t->dtype.bits, (int)t->dtype.lanes);
  }
  int64_t stride = 1;
  for (int32_t d = t->ndim; d-- > 0;) {
    out->shape[d] = t->shape[d];
    out->strides[d] = t->strides ? t->strides[d] : stride;
    stride *= t->shape[d] > 0 ? t->shape[d] : 1;
  }
  return AIT_OK;
}

static ait_status read_capsule(PyObject *capsule, bool writable, ait_tensor *out) {
  dl_managed_versioned *versioned = PyCapsule_GetPointer(capsule, "dltensor_versioned");
  if (versioned) {
    if (versioned->version.major != 1)
      return ait_error(AIT_CODE_UNSUPPORTED, "DLPack %u.%u is not supported", versioned->version.major, versioned->version.minor);
    if (writable && (versioned->flags & DL_READ_ONLY)) return read_only();
    return from_dl_tensor(&versioned->tensor, out);
  }
  PyErr_Clear();
  dl_managed *managed = PyCapsule_GetPointer(capsule, "dltensor");
  if (managed) return from_dl_tensor(&managed->tensor, out);
  return from_exception(AIT_CODE_INVALID_ARGUMENT, "__dlpack__ gave no DLPack capsule");
}

/* The capsule stays unconsumed: its destructor gives the memory back when the call is over. */
static ait_status read_dlpack(PyObject *obj, bool writable, ait_tensor *out, core_hold *hold) {
  static PyObject *keywords, *none;
  if (!keywords) {
    keywords = Py_BuildValue("{s:(ii)}", "max_version", 1, 3);
    none = PyTuple_New(0);
    if (!keywords || !none) return from_exception(AIT_CODE_OUT_OF_MEMORY, "DLPack");
  }
  PyObject *method = PyObject_GetAttrString(obj, "__dlpack__");
  PyObject *capsule = method ? PyObject_Call(method, none, keywords) : NULL;
  if (method && !capsule && PyErr_ExceptionMatches(PyExc_TypeError)) { /* a producer from before DLPack 1.0 */
    PyErr_Clear();
    capsule = PyObject_CallNoArgs(method);
  }
  Py_XDECREF(method);
  if (!capsule) return from_exception(AIT_CODE_INVALID_ARGUMENT, "the array cannot be read");
  hold->object = capsule;
  return read_capsule(capsule, writable, out);
}

/* Subclasses, and versions of torch without an exchange table: __dlpack__ refuses tensors that want a gradient. */
static ait_status read_torch(PyObject *obj, bool writable, ait_tensor *out, core_hold *hold) {
  PyObject *bare = PyObject_CallMethod(obj, "detach", NULL);
  if (!bare) return from_exception(AIT_CODE_INVALID_ARGUMENT, "the array cannot be read");
  ait_status status = read_dlpack(bare, writable, out, hold);
  Py_DECREF(bare);
  return status;
}

static ait_status from_buffer(const Py_buffer *b, bool writable, ait_tensor *out) {
  *out = (ait_tensor){.data = b->buf, .dtype = from_format(b->format, b->itemsize), .rank = b->ndim};
  if (out->dtype == AIT_DTYPE_NONE || (Py_ssize_t)ait_dtype_size(out->dtype) != b->itemsize)
    return wrong_dtype(b->format ? b->format : "?");
  if (writable && b->readonly) return read_only();
  if (b->ndim > AIT_MAX_RANK) return ait_error(AIT_CODE_INVALID_ARGUMENT, "%d dimensions, at most %d are allowed", b->ndim, AIT_MAX_RANK);
  for (int d = 0; d < b->ndim; ++d) {
    out->shape[d] = b->shape[d];
    if (b->strides[d] % b->itemsize)
      return ait_error_hint(ait_error(AIT_CODE_UNSUPPORTED, "strides of the array are no multiples of its element size"), "pass a copy");
    out->strides[d] = b->strides[d] / b->itemsize;
  }
  return AIT_OK;
}

static ait_status read_buffer(PyObject *obj, bool writable, ait_tensor *out, core_hold *hold) {
  if (PyObject_GetBuffer(obj, &hold->buffer, PyBUF_RECORDS_RO))
    return from_exception(AIT_CODE_INVALID_ARGUMENT, "the array cannot be read");
  hold->buffered = true;
  return from_buffer(&hold->buffer, writable, out);
}

static int64_t integer_at(PyObject *tuple, Py_ssize_t index) {
  PyObject *item = PySequence_GetItem(tuple, index);
  int64_t value = item ? PyLong_AsLongLong(item) : -1;
  Py_XDECREF(item);
  return value;
}

/* {'shape', 'strides', 'data': (pointer, read only)} of a dtype that only its name tells. */
static ait_status read_interface(PyObject *interface, ait_dtype dtype, bool writable, ait_tensor *out) {
  PyObject *shape = PyMapping_GetItemString(interface, "shape"), *data = PyMapping_GetItemString(interface, "data");
  PyObject *strides = PyMapping_GetItemString(interface, "strides"), *pointer = data ? PySequence_GetItem(data, 0) : NULL;
  PyObject *locked = data ? PySequence_GetItem(data, 1) : NULL;
  Py_ssize_t rank = shape ? PySequence_Size(shape) : -1;
  ait_status status = AIT_OK;
  if (!strides) PyErr_Clear();
  if (rank >= 0 && rank <= AIT_MAX_RANK && pointer && locked) {
    *out = (ait_tensor){.data = PyLong_AsVoidPtr(pointer), .dtype = dtype, .rank = (int32_t)rank};
    int64_t stride = 1, size = (int64_t)ait_dtype_size(dtype);
    for (Py_ssize_t d = rank; d-- > 0;) {
      out->shape[d] = integer_at(shape, d);
      int64_t bytes = strides && strides != Py_None ? integer_at(strides, d) : stride * size;
      if (bytes % size)
        status =
            ait_error_hint(ait_error(AIT_CODE_UNSUPPORTED, "strides of the array are no multiples of its element size"), "pass a copy");
      if (status) break;
      out->strides[d] = bytes / size;
      stride *= out->shape[d] > 0 ? out->shape[d] : 1;
    }
    if (!status && writable && PyObject_IsTrue(locked) == 1) status = read_only();
  } else {
    status = ait_error(AIT_CODE_INVALID_ARGUMENT, "the array cannot be read");
  }
  if (PyErr_Occurred()) {
    ait_status_free(status);
    status = from_exception(AIT_CODE_INVALID_ARGUMENT, "the array cannot be read");
  }
  Py_XDECREF(shape);
  Py_XDECREF(data);
  Py_XDECREF(strides);
  Py_XDECREF(pointer);
  Py_XDECREF(locked);
  return status;
}

static ait_status read_named_dtype(PyObject *obj, bool writable, ait_tensor *out, core_hold *hold) {
  PyObject *type = PyObject_GetAttrString(obj, "dtype"), *name = type ? PyObject_GetAttrString(type, "name") : NULL;
  const char *text = name ? PyUnicode_AsUTF8AndSize(name, NULL) : NULL;
  ait_dtype dtype = text ? ait_dtype_from_name(text) : AIT_DTYPE_NONE;
  ait_status status = AIT_OK;
  if (dtype == AIT_DTYPE_NONE) {
    PyErr_Clear();
    status = wrong_dtype(text ? text : "?");
  }
  Py_XDECREF(name);
  Py_XDECREF(type);
  if (status) return status;
  PyObject *interface = PyObject_GetAttrString(obj, "__array_interface__");
  if (!interface) return from_exception(AIT_CODE_INVALID_ARGUMENT, "the array cannot be read");
  status = read_interface(interface, dtype, writable, out);
  Py_DECREF(interface);
  Py_INCREF(obj);
  hold->object = obj;
  return status;
}

/* A buffer where that works. The dtypes of ml_dtypes have no format, and their arrays refuse. */
static ait_status read_numpy(PyObject *obj, bool writable, ait_tensor *out, core_hold *hold) {
  if (PyObject_GetBuffer(obj, &hold->buffer, PyBUF_RECORDS_RO)) {
    PyErr_Clear();
    return read_named_dtype(obj, writable, out, hold);
  }
  hold->buffered = true;
  return from_buffer(&hold->buffer, writable, out);
}

static bool flag_of(PyObject *obj, PyObject **interned, const char *method) {
  if (!*interned) *interned = PyUnicode_InternFromString(method);
  PyObject *answer = *interned ? PyObject_CallMethodObjArgs(obj, *interned, NULL) : NULL;
  bool is = answer && PyObject_IsTrue(answer) == 1;
  Py_XDECREF(answer);
  PyErr_Clear();
  return is;
}

/* A tensor that is only marked as conjugated or negated has other values than its memory. */
static ait_status read_exchange(const known_type *type, PyObject *obj, ait_tensor *out) {
  static PyObject *is_conj, *is_neg;
  dl_tensor view;
  if (type->exchange->view_of_object(obj, &view)) return from_exception(AIT_CODE_INVALID_ARGUMENT, "the array cannot be read");
  if (type->kind == CORE_KIND_TORCH && ((view.dtype.code == DL_COMPLEX && flag_of(obj, &is_conj, "is_conj")) ||
                                        (view.dtype.code >= DL_FLOAT && flag_of(obj, &is_neg, "is_neg"))))
    return ait_error_hint(ait_error(AIT_CODE_INVALID_ARGUMENT, "the tensor is a lazy conjugate or negative view"),
                          "pass x.resolve_conj().resolve_neg()");
  return from_dl_tensor(&view, out);
}

/* ---- memory that is not aligned to its elements --------------------------------------------------------------------------------------*/
static bool is_aligned(const ait_tensor *t) {
  size_t size = ait_dtype_size(t->dtype);
  return size <= 1 || (uintptr_t)t->data % (size > 8 ? 8 : size) == 0;
}

static void copy_elements(char *to, const ait_tensor *from) {
  size_t size = ait_dtype_size(from->dtype);
  int64_t at[AIT_MAX_RANK] = {0}, offset = 0, count = ait_tensor_count(from);
  for (int64_t i = 0; i < count; ++i, to += size) {
    memcpy(to, (const char *)from->data + offset * (int64_t)size, size);
    for (int32_t d = from->rank; d-- > 0;) {
      offset += from->strides[d];
      if (++at[d] < from->shape[d]) break;
      offset -= at[d] * from->strides[d];
      at[d] = 0;
    }
  }
}

static ait_status align(bool writable, ait_tensor *t, core_hold *hold) {
  ait_tensor copy;
  if (writable)
    return ait_error_hint(
        ait_error(AIT_CODE_INVALID_ARGUMENT, "the memory is not aligned to its elements, and the model writes into this input"),
        "pass a copy");
  ait_status status = ait_tensor_create(ait_allocator_default(), t->dtype, t->rank, t->shape, &copy);
  if (status) return status;
  copy_elements(copy.data, t);
  hold->copy = copy.storage;
  *t = copy;
  t->storage = NULL;
  return AIT_OK;
}

/* ---- all -----------------------------------------------------------------------------------------------------------------------------*/
void core_hold_release(core_hold *hold) {
  if (hold->buffered) {
    PyBuffer_Release(&hold->buffer);
    hold->buffered = false;
  }
  Py_CLEAR(hold->object);
  if (hold->copy) {
    ait_tensor owner = {.storage = hold->copy};
    ait_tensor_release(&owner);
    hold->copy = NULL;
  }
}

ait_status core_tensor_from_object(PyObject *obj, bool writable, ait_tensor *out, core_hold *hold, core_kind *kind) {
  const known_type type = *know(obj); /* a copy: reading may run Python code that meets other types */
  ait_status status = AIT_OK;
  if (type.kind > *kind) *kind = type.kind;
  switch (type.how) {
    case READ_OWN:
      *out = ((core_tensor *)obj)->tensor;
      out->storage = NULL;
      break;
    case READ_EXCHANGE: status = read_exchange(&type, obj, out); break;
    case READ_BUFFER: status = read_buffer(obj, writable, out, hold); break;
    case READ_NUMPY: status = read_numpy(obj, writable, out, hold); break;
    case READ_DLPACK:
      status = type.kind == CORE_KIND_TORCH ? read_torch(obj, writable, out, hold) : read_dlpack(obj, writable, out, hold);
      break;
    case READ_NOTHING: {
      PyObject *name = PyObject_GetAttrString((PyObject *)Py_TYPE(obj), "__name__");
      const char *text = name ? PyUnicode_AsUTF8AndSize(name, NULL) : NULL;
      status = ait_error_hint(ait_error(AIT_CODE_INVALID_ARGUMENT, "is %s, must be an array", text ? text : "an object"),
                              "pass a NumPy array, a torch tensor, or anything with __dlpack__ or a buffer");
      PyErr_Clear();
      Py_XDECREF(name);
      break;
    }
  }
  if (!status && !is_aligned(out)) status = align(writable, out, hold);
  return status;
}
