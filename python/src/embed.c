/* _core.Embedder: texts to vectors (ait/embed.h). As in C it is one thread's at a time; the Python side (ait/embed.py) takes turns. */
#include "core.h"

#include <ait/embed.h>
#include <string.h>

typedef struct core_embedder {
  PyObject_HEAD ait_model *model;
  ait_tokenizer *tokenizer; /* where it is not the file's own */
  ait_embedder *embedder;
  bool busy; /* guarded by the GIL */
} core_embedder;

static core_embedder *embedder_of(PyObject *self) { return (core_embedder *)self; }

/* ---- making one ----------------------------------------------------------------------------------------------------------------------*/
static int pooling_from(const char *text, ait_pooling *out) {
  const char *name;
  if (!text) return 0;
  for (int k = AIT_POOL_CLS; (name = ait_pooling_name((ait_pooling)k)); ++k)
    if (strcmp(name, text) == 0) return *out = (ait_pooling)k, 0;
  PyErr_Format(PyExc_ValueError, "pooling is '%s'; it can be 'cls', 'mean', 'mean_sqrt_len', 'max' or 'lasttoken'", text);
  return -1;
}

/* normalize: True, False, or None for what the file says. */
static int normalize_from(PyObject *rest, int *out) {
  PyObject *value = PyDict_GetItemString(rest, "normalize");
  *out = -1;
  if (value && value != Py_None && (*out = PyObject_IsTrue(value)) < 0) return -1;
  return value ? PyDict_DelItemString(rest, "normalize") : 0;
}

static int options_from(PyObject *rest, PyObject *held, ait_embedder_options *o, const char **tokenizer) {
  int64_t threads = 0, batch = 0;
  const char *pooling = NULL;
  PyObject *path = PyDict_GetItemString(rest, "tokenizer");
  ait_embedder_options_init(o);
  if (path && path != Py_None && core_path_text(path, held, tokenizer)) return -1;
  if (path && PyDict_DelItemString(rest, "tokenizer")) return -1;
  if (core_take_int(rest, "threads", 0, 4096, &threads) || core_take_int(rest, "batch", 0, 4096, &batch) ||
      core_take_int(rest, "max_length", 0, 1 << 24, &o->max_length) || core_take_text(rest, "pooling", held, &pooling) ||
      pooling_from(pooling, &o->pooling) || normalize_from(rest, &o->normalize) || core_take_text(rest, "prompt", held, &o->prompt) ||
      core_take_text(rest, "prompt_name", held, &o->prompt_name) || core_nothing_left(rest, "load"))
    return -1;
  o->threads = (int32_t)threads;
  o->batch = (int32_t)batch;
  if (!o->prompt || !o->prompt_name) return 0;
  PyErr_SetString(PyExc_TypeError, "prompt and prompt_name exclude each other");
  return -1;
}

static ait_status open_all(const char *file, const ait_load_options *load, const char *tokenizer, ait_embedder_options *o,
                           core_embedder *e) {
  ait_status status = core_open_file(file, load, &e->model);
  if (!status && tokenizer) status = ait_tokenizer_load(ait_allocator_default(), tokenizer, &e->tokenizer);
  o->tokenizer = e->tokenizer;
  return status ? status : ait_error_context(ait_embedder_create(e->model, o, &e->embedder), "'%s'", file);
}

static void close_all(core_embedder *e) {
  ait_embedder_destroy(e->embedder);
  ait_tokenizer_destroy(e->tokenizer);
  ait_model_release(e->model);
}

static PyObject *embedder_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
  PyObject *path, *self = NULL, *rest = kwargs ? PyDict_Copy(kwargs) : PyDict_New();
  core_load load;
  if (!rest || !PyArg_ParseTuple(args, "O:Embedder", &path) || core_load_from(rest, &load)) {
    Py_XDECREF(rest);
    return NULL;
  }
  const char *file, *tokenizer = NULL;
  ait_embedder_options options;
  core_embedder made = {.model = NULL};
  if (core_path_text(path, load.held, &file) == 0 && options_from(rest, load.held, &options, &tokenizer) == 0) {
    ait_status status;
    Py_BEGIN_ALLOW_THREADS;
    status = open_all(file, &load.options, tokenizer, &options, &made);
    Py_END_ALLOW_THREADS;
    if (status) core_raise(status);
    else self = core_object_new(type);
  }
  if (self) {
    embedder_of(self)->model = made.model;
    embedder_of(self)->tokenizer = made.tokenizer;
    embedder_of(self)->embedder = made.embedder;
  } else {
    close_all(&made);
  }
  core_load_deinit(&load);
  Py_DECREF(rest);
  return self;
}

static void embedder_dealloc(PyObject *object) {
  close_all(embedder_of(object));
  core_object_free(object);
}

/* ---- vectors -------------------------------------------------------------------------------------------------------------------------*/
/* Pointers into the str objects of the list. */
static int texts_of(PyObject *list, const char **texts, size_t *sizes) {
  for (Py_ssize_t i = 0; i < PyList_Size(list); ++i) {
    PyObject *text = PyList_GetItem(list, i);
    Py_ssize_t size;
    if (!PyUnicode_Check(text)) {
      PyErr_Format(PyExc_TypeError, "text %zd is no str", i);
      return -1;
    }
    texts[i] = PyUnicode_AsUTF8AndSize(text, &size);
    if (!texts[i]) return -1;
    sizes[i] = (size_t)size;
  }
  return 0;
}

static PyObject *vectors_of(core_embedder *e, const char **texts, size_t *sizes, size_t count, bool flat) {
  const int64_t shape[2] = {(int64_t)count, ait_embedder_describe(e->embedder).size};
  ait_tensor vectors, lengths;
  ait_status status = ait_tensor_create(ait_allocator_default(), AIT_F32, flat ? 1 : 2, flat ? shape + 1 : shape, &vectors);
  if (status) return core_raise(status);
  status = ait_tensor_create(ait_allocator_default(), AIT_I64, 1, shape, &lengths);
  if (!status) {
    e->busy = true;
    Py_BEGIN_ALLOW_THREADS;
    status = ait_embedder_run(e->embedder, texts, sizes, count, vectors.data, lengths.data);
    Py_END_ALLOW_THREADS;
    e->busy = false;
  }
  if (status) {
    ait_tensor_release(&vectors);
    ait_tensor_release(&lengths);
    return core_raise(status);
  }
  PyObject *rows = core_tensor_new(&vectors), *tokens = core_tensor_new(&lengths);
  if (rows && tokens) return Py_BuildValue("(NN)", rows, tokens);
  Py_XDECREF(rows);
  Py_XDECREF(tokens);
  return NULL;
}

static PyObject *embedder_run(PyObject *self, PyObject *given) {
  core_embedder *e = embedder_of(self);
  if (e->busy)
    return core_fail(AIT_CODE_INVALID_ARGUMENT, "use ait.embed.Embedder, which threads share", "another thread uses this embedder");
  bool flat = PyUnicode_Check(given);
  PyObject *list = flat ? Py_BuildValue("[O]", given) : PySequence_List(given), *result = NULL; /* keeps the texts alive */
  if (!list) return NULL;
  size_t count = (size_t)PyList_Size(list);
  const char **texts = PyMem_Calloc(count + 1, sizeof *texts);
  size_t *sizes = PyMem_Calloc(count + 1, sizeof *sizes);
  if (!texts || !sizes) PyErr_NoMemory();
  else if (texts_of(list, texts, sizes) == 0) result = vectors_of(e, texts, sizes, count, flat);
  PyMem_Free(texts);
  PyMem_Free(sizes);
  Py_DECREF(list);
  return result;
}

static PyObject *embedder_info(PyObject *self, void *unused) {
  (void)unused;
  ait_embedder_info i = ait_embedder_describe(embedder_of(self)->embedder);
  return Py_BuildValue("{s:L,s:L,s:s,s:N,s:s}", "size", (long long)i.size, "max_length", (long long)i.max_length, "pooling",
                       i.pooling == AIT_POOL_DEFAULT ? "graph" : ait_pooling_name(i.pooling), "normalized", PyBool_FromLong(i.normalized),
                       "prompt", i.prompt);
}

static PyMethodDef methods[] = {
    {"run", embedder_run, METH_O, "run(texts) -> (vectors float32 [texts, size], tokens int64 [texts]); [size] and [1] of a str"},
    {0},
};
static PyGetSetDef getters[] = {{"info", embedder_info, NULL, "size, max_length, pooling, normalized, prompt.", NULL}, {0}};
static PyType_Slot slots[] = {
    {Py_tp_doc, "Embedder(path, **options): a model that makes vectors of texts."},
    {Py_tp_new, embedder_new},
    {Py_tp_dealloc, embedder_dealloc},
    {Py_tp_methods, methods},
    {Py_tp_getset, getters},
    {0, NULL},
};
static PyType_Spec spec = {
    .name = CORE_PACKAGE "._core.Embedder", .basicsize = sizeof(core_embedder), .flags = Py_TPFLAGS_DEFAULT, .slots = slots};

int core_add_embed(PyObject *module) { return core_add_type(module, "Embedder", &spec) ? 0 : -1; }
