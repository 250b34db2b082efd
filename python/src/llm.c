/* _core.Llm and _core.Engine: language models (ait/llm.h). The Python side (ait/llm.py) shares an engine among threads; here it is one
 * thread's at a time, as in C, and a second thread that steps at the same moment is refused. */
#define _GNU_SOURCE
#include "core.h"

#ifndef AIT_PYTHON_RT
#include <ait/deploy.h>
#include <ait/tune.h>
#endif
#include <ait/llm.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- the model -----------------------------------------------------------------------------------------------------------------------*/
typedef struct core_llm {
  PyObject_HEAD ait_llm *llm;
  ait_chat_template *chat; /* made when it is first asked for */
} core_llm;
static PyTypeObject *llm_type;

static core_llm *llm_of(PyObject *self) { return (core_llm *)self; }

static PyObject *llm_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
  PyObject *path, *rest = kwargs ? PyDict_Copy(kwargs) : PyDict_New();
  core_load load;
  const char *file;
  ait_llm *llm = NULL;
  if (!rest || !PyArg_ParseTuple(args, "O:Llm", &path) || core_load_from(rest, &load)) {
    Py_XDECREF(rest);
    return NULL;
  }
  int failed = core_path_text(path, load.held, &file) || core_nothing_left(rest, "load");
  if (!failed) {
    ait_status status;
    Py_BEGIN_ALLOW_THREADS;
    status = ait_llm_load(file, &load.options, &llm);
    Py_END_ALLOW_THREADS;
    if (status) core_raise(status), failed = 1;
  }
  core_load_deinit(&load);
  Py_DECREF(rest);
  PyObject *self = failed ? NULL : core_object_new(type);
  if (self) llm_of(self)->llm = llm;
  else ait_llm_release(llm);
  return self;
}

static void llm_dealloc(PyObject *object) {
  ait_chat_template_destroy(llm_of(object)->chat);
  ait_llm_release(llm_of(object)->llm);
  core_object_free(object);
}

/* ---- text ----------------------------------------------------------------------------------------------------------------------------*/
static const ait_tokenizer *tokenizer_of(PyObject *self) {
  const ait_tokenizer *t = ait_llm_tokenizer(llm_of(self)->llm);
  if (!t) core_fail(AIT_CODE_NOT_FOUND, "give token ids, or deploy a folder that holds tokenizer.json", "the file holds no tokenizer");
  return t;
}

/* Ids of any sequence of whole numbers; freed with PyMem_Free. */
static int32_t *ids_from(PyObject *sequence, size_t *count) {
  PyObject *list = PySequence_List(sequence);
  if (!list) return NULL;
  Py_ssize_t n = PyList_Size(list);
  int32_t *ids = PyMem_Calloc((size_t)n + 1, sizeof *ids);
  if (!ids) PyErr_NoMemory();
  for (Py_ssize_t i = 0; ids && i < n; ++i) {
    PyObject *number = PyNumber_Index(PyList_GetItem(list, i));
    long long id = number ? PyLong_AsLongLong(number) : -1;
    Py_XDECREF(number);
    if (!PyErr_Occurred() && (id < INT32_MIN || id > INT32_MAX))
      core_fail(AIT_CODE_INVALID_ARGUMENT, NULL, "token %zd is %lld: ids are 32-bit numbers", i, id);
    if (PyErr_Occurred()) {
      PyMem_Free(ids);
      ids = NULL;
    } else {
      ids[i] = (int32_t)id;
    }
  }
  Py_DECREF(list);
  *count = (size_t)n;
  return ids;
}

static PyObject *list_of_ids(const int32_t *ids, size_t count) {
  PyObject *list = PyList_New((Py_ssize_t)count);
  for (size_t i = 0; list && i < count; ++i) {
    PyObject *id = PyLong_FromLong(ids[i]);
    if (!id || PyList_SetItem(list, (Py_ssize_t)i, id)) Py_CLEAR(list);
  }
  return list;
}

static PyObject *llm_encode(PyObject *self, PyObject *args) {
  const char *text;
  Py_ssize_t size;
  int special = 1, as_text = 0;
  if (!PyArg_ParseTuple(args, "s#|pp:encode", &text, &size, &special, &as_text)) return NULL;
  const ait_tokenizer *t = tokenizer_of(self);
  if (!t) return NULL;
  ait_token_list list = {.allocator = ait_allocator_default()};
  ait_status status;
  Py_BEGIN_ALLOW_THREADS;
  status = ait_tokenizer_encode(t, text, (size_t)size, (special ? AIT_ENCODE_SPECIAL : 0) | (as_text ? AIT_ENCODE_AS_TEXT : 0), &list);
  Py_END_ALLOW_THREADS;
  PyObject *result = status ? core_raise(status) : list_of_ids(list.ids, list.count);
  ait_token_list_deinit(&list);
  return result;
}

static PyObject *llm_decode(PyObject *self, PyObject *args) {
  PyObject *sequence;
  int skip = 1, clean = 0;
  size_t count = 0, size = 0;
  if (!PyArg_ParseTuple(args, "O|pp:decode", &sequence, &skip, &clean)) return NULL;
  const ait_tokenizer *t = tokenizer_of(self);
  int32_t *ids = t ? ids_from(sequence, &count) : NULL;
  if (!ids) return NULL;
  ait_allocator allocator = ait_allocator_default();
  char *text = NULL;
  ait_status status;
  Py_BEGIN_ALLOW_THREADS;
  status = ait_tokenizer_decode(t, ids, count, (skip ? AIT_DECODE_SKIP_SPECIAL : 0) | (clean ? AIT_DECODE_CLEAN_UP : 0), allocator, &text,
                                &size);
  Py_END_ALLOW_THREADS;
  PyMem_Free(ids);
  if (status) return core_raise(status);
  PyObject *result = PyUnicode_DecodeUTF8(text, (Py_ssize_t)size, "replace");
  ait_text_free(allocator, text, size);
  return result;
}

static PyObject *llm_token(PyObject *self, PyObject *number) {
  long id = PyLong_AsLong(number);
  const ait_tokenizer *t = PyErr_Occurred() ? NULL : tokenizer_of(self);
  size_t size = 0;
  if (!t) return NULL;
  const char *text = id < 0 || id > INT32_MAX ? NULL : ait_tokenizer_token(t, (int32_t)id, &size);
  if (!text) Py_RETURN_NONE;
  return PyUnicode_DecodeUTF8(text, (Py_ssize_t)size, "replace");
}

static PyObject *llm_token_id(PyObject *self, PyObject *text) {
  Py_ssize_t size;
  const char *bytes = PyUnicode_AsUTF8AndSize(text, &size);
  const ait_tokenizer *t = bytes ? tokenizer_of(self) : NULL;
  if (!t) return NULL;
  int32_t id = ait_tokenizer_id(t, bytes, (size_t)size);
  if (id < 0) Py_RETURN_NONE;
  return PyLong_FromLong(id);
}

static PyObject *llm_is_special(PyObject *self, PyObject *number) {
  long id = PyLong_AsLong(number);
  const ait_tokenizer *t = PyErr_Occurred() ? NULL : tokenizer_of(self);
  if (!t) return NULL;
  return PyBool_FromLong(id >= 0 && id <= INT32_MAX && ait_tokenizer_is_special(t, (int32_t)id));
}

static PyObject *llm_render(PyObject *self, PyObject *args) {
  const char *variables;
  Py_ssize_t size;
  long long now = 0;
  if (!PyArg_ParseTuple(args, "s#|L:render", &variables, &size, &now)) return NULL;
  core_llm *m = llm_of(self);
  if (!m->chat) {
    ait_status status = ait_llm_chat_template(m->llm, &m->chat);
    if (status) return core_raise(status);
  }
  ait_allocator allocator = ait_allocator_default();
  ait_chat_options options = {.now = now};
  char *text = NULL;
  size_t length = 0;
  ait_status status;
  Py_BEGIN_ALLOW_THREADS;
  status = ait_chat_template_render(m->chat, variables, (size_t)size, &options, allocator, &text, &length);
  Py_END_ALLOW_THREADS;
  if (status) return core_raise(status);
  PyObject *result = PyUnicode_DecodeUTF8(text, (Py_ssize_t)length, "replace");
  ait_text_free(allocator, text, length);
  return result;
}

static PyObject *llm_entry(PyObject *self, PyObject *name) {
  const char *text = PyUnicode_AsUTF8AndSize(name, NULL);
  size_t size = 0;
  const char *bytes = text ? ait_llm_entry(llm_of(self)->llm, text, &size) : NULL;
  if (!text) return NULL;
  if (!bytes) Py_RETURN_NONE;
  return PyBytes_FromStringAndSize(bytes, (Py_ssize_t)size);
}

static PyObject *llm_perplexity(PyObject *self, PyObject *args) {
  const char *text;
  Py_ssize_t size;
  long long window = 0;
  int threads = 0;
  if (!PyArg_ParseTuple(args, "s#|Li:perplexity", &text, &size, &window, &threads)) return NULL;
  ait_perplexity p;
  ait_status status;
  Py_BEGIN_ALLOW_THREADS;
  status = ait_llm_perplexity(llm_of(self)->llm, text, (size_t)size, window, threads, NULL, NULL, &p);
  Py_END_ALLOW_THREADS;
  if (status) return core_raise(status);
  return Py_BuildValue("{s:d,s:d,s:d,s:L,s:L,s:d}", "nll", p.nll, "perplexity", p.perplexity, "bits_per_byte", p.bits_per_byte, "tokens",
                       (long long)p.tokens, "windows", (long long)p.windows, "seconds", p.seconds);
}

/* None: there is no encoder. Sizes -1: 1 to max_source. */
static PyObject *source_shape(const ait_llm_info *i) {
  if (!i->encoder) Py_RETURN_NONE;
  PyObject *shape = PyTuple_New(i->source_rank);
  for (int32_t d = 0; shape && d < i->source_rank; ++d) {
    PyObject *size = PyLong_FromLongLong((long long)i->source_shape[d]);
    if (!size) Py_CLEAR(shape);
    else PyTuple_SetItem(shape, d, size);
  }
  return shape;
}

static PyObject *llm_info(PyObject *self, void *unused) {
  (void)unused;
  ait_llm_info i = ait_llm_describe(llm_of(self)->llm);
  const ait_tokenizer *t = ait_llm_tokenizer(llm_of(self)->llm);
  return Py_BuildValue("{s:L,s:L,s:L,s:n,s:n,s:N,s:i,s:L,s:N,s:L,s:L}", "vocab", (long long)i.vocab, "max_seq", (long long)i.max_seq,
                       "page_size", (long long)i.page_size, "token_bytes", (Py_ssize_t)i.token_bytes, "slot_bytes",
                       (Py_ssize_t)i.slot_bytes, "cached", PyBool_FromLong(i.cached), "tokenizer_size",
                       t ? (int)ait_tokenizer_vocab_size(t) : -1, "tokenizer_max_length", (long long)(t ? ait_tokenizer_max_length(t) : 0),
                       "source_shape", source_shape(&i), "source_vocab", (long long)i.source_vocab, "max_source", (long long)i.max_source);
}

static PyMethodDef llm_methods[] = {
    {"encode", llm_encode, METH_VARARGS, "encode(text, special=True, as_text=False) -> ids"},
    {"decode", llm_decode, METH_VARARGS, "decode(ids, skip_special=True, clean_up=False) -> text"},
    {"token", llm_token, METH_O, "token(id): as the tokenizer's file spells it; None: no such id"},
    {"token_id", llm_token_id, METH_O, "token_id(text): the id of a token; None: there is none"},
    {"is_special", llm_is_special, METH_O, "is_special(id)"},
    {"render", llm_render, METH_VARARGS, "render(variables, now=0): the chat template's text; variables: JSON"},
    {"entry", llm_entry, METH_O, "entry(name): bytes of an entry of the file; None: it is not there"},
    {"perplexity", llm_perplexity, METH_VARARGS, "perplexity(text, window=0, threads=0) -> dict"},
    {0},
};
static PyGetSetDef llm_getters[] = {{"info", llm_info, NULL, "What the file says of the model.", NULL}, {0}};
static PyType_Slot llm_slots[] = {
    {Py_tp_doc, "Llm(path, **options): a deployed language model."},
    {Py_tp_new, llm_new},
    {Py_tp_dealloc, llm_dealloc},
    {Py_tp_methods, llm_methods},
    {Py_tp_getset, llm_getters},
    {0, NULL},
};
static PyType_Spec llm_spec = {
    .name = CORE_PACKAGE "._core.Llm", .basicsize = sizeof(core_llm), .flags = Py_TPFLAGS_DEFAULT, .slots = llm_slots};

/* ---- what happened in a step, kept until the GIL is held again -----------------------------------------------------------------------*/
typedef struct engine_event {
  struct engine_event *next;
  ait_generation said; /* text, top and error point behind the struct */
} engine_event;

typedef struct core_engine {
  PyObject_HEAD ait_engine *engine;
  PyObject *llm, *draft;
  engine_event *first, **last; /* written by the thread that steps */
  bool lost;                   /* there was no memory for an event */
  bool busy;                   /* a thread is in a step; guarded by the GIL */
  pid_t process;
} core_engine;

static core_engine *engine_of(PyObject *self) { return (core_engine *)self; }

static void keep_event(void *ctx, const ait_generation *g) {
  core_engine *e = ctx;
  size_t top = g->top_count * sizeof *g->top, text = g->text_size, error = g->error ? strlen(g->error) + 1 : 0;
  engine_event *event = malloc(sizeof *event + top + text + error + 1);
  if (!event) {
    e->lost = true;
    return;
  }
  char *rest = (char *)(event + 1);
  *event = (engine_event){.said = *g};
  if (top) memcpy(rest, g->top, top);
  event->said.top = (const ait_token_logprob *)(const void *)rest;
  if (text) memcpy(rest + top, g->text, text);
  event->said.text = rest + top;
  if (error) memcpy(rest + top + text, g->error, error);
  event->said.error = error ? rest + top + text : NULL;
  *e->last = event;
  e->last = &event->next;
}

static void drop_events(core_engine *e) {
  for (engine_event *event = e->first, *next; event; event = next) {
    next = event->next;
    free(event);
  }
  e->first = NULL;
  e->last = &e->first;
}

static PyObject *top_list(const ait_generation *g) {
  PyObject *list = PyList_New(0);
  for (uint32_t i = 0; list && i < g->top_count && g->top[i].token >= 0; ++i) {
    PyObject *pair = Py_BuildValue("(id)", (int)g->top[i].token, (double)g->top[i].logprob);
    if (!pair || PyList_Append(list, pair)) Py_CLEAR(list);
    Py_XDECREF(pair);
  }
  return list;
}

/* (request, choice, token, text, logprob, top, finish, error, prompt_tokens, reused_tokens) */
static PyObject *event_tuple(const ait_generation *g) {
  PyObject *text = PyUnicode_DecodeUTF8(g->text, (Py_ssize_t)g->text_size, "replace");
  PyObject *top = text ? top_list(g) : NULL;
  if (!top) {
    Py_XDECREF(text);
    return NULL;
  }
  const char *finish = g->finish == AIT_FINISH_NONE ? NULL : ait_finish_text(g->finish);
  return Py_BuildValue("(KIiNdNzzII)", (unsigned long long)g->request, (unsigned)g->choice, (int)g->token, text, (double)g->logprob, top,
                       finish, g->error, (unsigned)g->prompt_tokens, (unsigned)g->reused_tokens);
}

static PyObject *take_events(core_engine *e) {
  PyObject *list = PyList_New(0);
  for (const engine_event *event = e->first; list && event; event = event->next) {
    PyObject *one = event_tuple(&event->said);
    if (!one || PyList_Append(list, one)) Py_CLEAR(list);
    Py_XDECREF(one);
  }
  drop_events(e);
  return list;
}

/* ---- the engine ----------------------------------------------------------------------------------------------------------------------*/
static int take_int32(PyObject *rest, const char *name, int64_t most, int32_t *out) {
  int64_t value = *out;
  if (core_take_int(rest, name, 0, most, &value)) return -1;
  *out = (int32_t)value;
  return 0;
}

/* brings: the model's file holds a draft model. draft: borrowed from rest until the engine holds it. */
static int engine_options_from(PyObject *rest, PyObject *held, bool brings, ait_engine_options *o, PyObject **draft) {
  const char *speculate = NULL;
  bool reuse = true, overlap = true;
  int64_t bytes = 0;
  ait_engine_options_init(o);
  *draft = PyDict_GetItemString(rest, "draft");
  if (*draft == Py_None) *draft = NULL;
  if (*draft && !PyObject_TypeCheck(*draft, llm_type)) return PyErr_SetString(PyExc_TypeError, "draft must be a language model"), -1;
  if (*draft && PyList_Append(held, *draft)) return -1;
  if (PyDict_GetItemString(rest, "draft") && PyDict_DelItemString(rest, "draft")) return -1;
  if (core_take_text(rest, "speculate", held, &speculate) || take_int32(rest, "threads", 4096, &o->threads) ||
      take_int32(rest, "step_tokens", 1 << 20, &o->max_tokens) || take_int32(rest, "max_sequences", 256, &o->max_sequences) ||
      take_int32(rest, "draft_tokens", 16, &o->draft_tokens) || core_take_int(rest, "max_seq", 0, 1 << 24, &o->max_seq) ||
      core_take_int(rest, "cache_bytes", 0, INT64_MAX, &bytes) || core_take_bool(rest, "prefix_reuse", &reuse) ||
      core_take_bool(rest, "overlap", &overlap) || core_take_bool(rest, "warm", &o->warm) || core_nothing_left(rest, "Engine"))
    return -1;
  o->cache_bytes = (size_t)bytes;
  o->no_prefix_reuse = !reuse;
  o->no_overlap = !overlap;
  o->draft = *draft ? llm_of(*draft)->llm : NULL;
  if (!speculate) speculate = *draft || brings ? "draft" : "none";
  if (strcmp(speculate, "ngram") == 0) o->speculation = AIT_SPECULATE_NGRAM;
  else if (strcmp(speculate, "draft") == 0) o->speculation = AIT_SPECULATE_DRAFT;
  else if (strcmp(speculate, "none") != 0)
    return PyErr_Format(PyExc_ValueError, "speculate is '%s'; it can be 'ngram', 'draft' or 'none'", speculate), -1;
  if (o->speculation == AIT_SPECULATE_DRAFT && !*draft && !brings)
    return PyErr_SetString(PyExc_ValueError, "speculate='draft' needs draft=, or a file that was deployed with a draft model"), -1;
  return 0;
}

static PyObject *engine_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
  PyObject *llm, *draft = NULL, *self = NULL, *rest = kwargs ? PyDict_Copy(kwargs) : PyDict_New(), *held = PyList_New(0);
  ait_engine_options options;
  ait_engine *engine = NULL;
  if (rest && held && PyArg_ParseTuple(args, "O!:Engine", llm_type, &llm) &&
      engine_options_from(rest, held, ait_llm_draft(llm_of(llm)->llm) != NULL, &options, &draft) == 0) {
    ait_status status;
    Py_BEGIN_ALLOW_THREADS;
    status = ait_engine_create(llm_of(llm)->llm, &options, &engine);
    Py_END_ALLOW_THREADS;
    if (status) core_raise(status);
    else self = core_object_new(type);
  }
  if (self) {
    core_engine *e = engine_of(self);
    e->engine = engine;
    e->last = &e->first;
    e->process = getpid();
    Py_INCREF(llm);
    e->llm = llm;
    Py_XINCREF(draft);
    e->draft = draft;
  } else {
    ait_engine_destroy(engine);
  }
  Py_XDECREF(rest);
  Py_XDECREF(held);
  return self;
}

static void engine_dealloc(PyObject *object) {
  core_engine *e = engine_of(object);
  if (e->process == getpid()) ait_engine_destroy(e->engine); /* a forked child has none of its threads */
  drop_events(e);
  Py_CLEAR(e->llm);
  Py_CLEAR(e->draft);
  core_object_free(object);
}

static int usable(const core_engine *e) {
  if (e->process == getpid()) return 0;
  core_fail(AIT_CODE_UNAVAILABLE, "make an engine after the fork", "this engine belongs to the process that made it");
  return -1;
}

/* Values of one request. Everything that the request points to lives until `request_end`. */
typedef struct request_call {
  ait_request request;
  PyObject *rest, *held;
  int32_t *ids, *stop_ids, *bias_ids;
  float *bias;
  const char **stops;
  ait_tensor source;
  core_hold source_hold;
  int32_t *source_ids;
} request_call;

static void request_end(request_call *c) {
  PyMem_Free(c->ids);
  PyMem_Free(c->stop_ids);
  PyMem_Free(c->bias_ids);
  PyMem_Free(c->bias);
  PyMem_Free(c->stops);
  PyMem_Free(c->source_ids);
  core_hold_release(&c->source_hold);
  Py_XDECREF(c->rest);
  Py_XDECREF(c->held);
}

static int take_f32(PyObject *rest, const char *name, float *out) {
  double value = (double)*out;
  if (core_take_float(rest, name, &value)) return -1;
  *out = (float)value;
  return 0;
}

static int take_stop_tokens(request_call *c) {
  PyObject *value = PyDict_GetItemString(c->rest, "stop_tokens");
  if (!value) return 0;
  size_t count = 0;
  if (value != Py_None) c->stop_ids = ids_from(value, &count);
  if (value != Py_None && !c->stop_ids) return -1;
  c->request.stop_tokens = c->stop_ids;
  c->request.stop_token_count = count;
  return PyDict_DelItemString(c->rest, "stop_tokens");
}

static int take_bias(request_call *c) {
  PyObject *value = PyDict_GetItemString(c->rest, "logit_bias"), *key, *number;
  if (!value || value == Py_None) return value ? PyDict_DelItemString(c->rest, "logit_bias") : 0;
  if (!PyDict_Check(value)) return PyErr_SetString(PyExc_TypeError, "logit_bias must be a dict of token ids"), -1;
  size_t count = (size_t)PyDict_Size(value), i = 0;
  c->bias_ids = PyMem_Calloc(count + 1, sizeof *c->bias_ids);
  c->bias = PyMem_Calloc(count + 1, sizeof *c->bias);
  if (!c->bias_ids || !c->bias) return PyErr_NoMemory(), -1;
  for (Py_ssize_t at = 0; PyDict_Next(value, &at, &key, &number); ++i) {
    long id = PyLong_AsLong(key);
    if (!PyErr_Occurred() && (id < 0 || id > INT32_MAX)) core_fail(AIT_CODE_INVALID_ARGUMENT, NULL, "logit_bias has token %ld", id);
    if (PyErr_Occurred()) return -1;
    c->bias_ids[i] = (int32_t)id;
    c->bias[i] = (float)PyFloat_AsDouble(number);
    if (PyErr_Occurred()) return -1;
  }
  c->request.sampling.bias_tokens = c->bias_ids;
  c->request.sampling.bias = c->bias;
  c->request.sampling.bias_count = count;
  return PyDict_DelItemString(c->rest, "logit_bias");
}

/* What an encoder reads: a list of token ids, or any array. */
static int take_source(request_call *c) {
  PyObject *value = PyDict_GetItemString(c->rest, "source");
  if (!value || value == Py_None) return value ? PyDict_DelItemString(c->rest, "source") : 0;
  if (core_is_array(value)) {
    core_kind kind = CORE_KIND_AIT;
    ait_status status = core_tensor_from_object(value, false, &c->source, &c->source_hold, &kind);
    if (status) return core_raise(ait_error_context(status, "what the encoder reads")), -1;
  } else {
    size_t count = 0;
    c->source_ids = ids_from(value, &count);
    if (!c->source_ids) return -1;
    c->source = ait_tensor_borrow(c->source_ids, AIT_I32, 1, (int64_t[]){(int64_t)count});
  }
  c->request.source = &c->source;
  return PyDict_DelItemString(c->rest, "source");
}

static int request_from(PyObject *tokens, PyObject *kwargs, request_call *c) {
  int64_t max_tokens = 256, n = 1, logprobs = -1, top_k = 0, seed = 0;
  *c = (request_call){.rest = kwargs ? PyDict_Copy(kwargs) : PyDict_New(), .held = PyList_New(0)};
  ait_request *r = &c->request;
  ait_request_init(r);
  if (!c->rest || !c->held) return -1;
  c->ids = ids_from(tokens, &r->token_count);
  if (!c->ids) return -1;
  r->tokens = c->ids;
  ait_sampling *s = &r->sampling;
  if (core_take_int(c->rest, "max_tokens", 0, 1 << 24, &max_tokens) || core_take_int(c->rest, "n", 1, 1024, &n) ||
      core_take_int(c->rest, "logprobs", -1, 20, &logprobs) || core_take_int(c->rest, "top_k", 0, INT32_MAX, &top_k) ||
      core_take_int(c->rest, "seed", 0, INT64_MAX, &seed) || take_f32(c->rest, "temperature", &s->temperature) ||
      take_f32(c->rest, "top_p", &s->top_p) || take_f32(c->rest, "min_p", &s->min_p) ||
      take_f32(c->rest, "repetition_penalty", &s->repetition_penalty) || take_f32(c->rest, "presence_penalty", &s->presence_penalty) ||
      take_f32(c->rest, "frequency_penalty", &s->frequency_penalty) || core_take_bool(c->rest, "ignore_stop", &r->ignore_stop_tokens) ||
      core_take_texts(c->rest, "stop", c->held, &c->stops) || take_stop_tokens(c) || take_bias(c) || take_source(c) ||
      core_nothing_left(c->rest, "generate"))
    return -1;
  r->max_tokens = (uint32_t)max_tokens;
  r->n = (uint32_t)n;
  r->logprobs = (int32_t)logprobs;
  s->top_k = (int32_t)top_k;
  s->seed = (uint64_t)seed;
  r->stops = c->stops;
  for (r->stop_count = 0; c->stops && c->stops[r->stop_count];) ++r->stop_count;
  return 0;
}

static PyObject *engine_submit(PyObject *self, PyObject *args, PyObject *kwargs) {
  PyObject *tokens;
  request_call c;
  uint64_t id = 0;
  core_engine *e = engine_of(self);
  if (!PyArg_ParseTuple(args, "O:submit", &tokens) || usable(e)) return NULL;
  int failed = request_from(tokens, kwargs, &c);
  if (!failed) {
    c.request.on_event = keep_event;
    c.request.ctx = e;
    ait_status status;
    Py_BEGIN_ALLOW_THREADS;
    status = ait_engine_submit(e->engine, &c.request, &id);
    Py_END_ALLOW_THREADS;
    if (status) core_raise(status), failed = 1;
  }
  request_end(&c);
  return failed ? NULL : PyLong_FromUnsignedLongLong(id);
}

static PyObject *engine_cancel(PyObject *self, PyObject *number) {
  unsigned long long id = PyLong_AsUnsignedLongLong(number);
  if (PyErr_Occurred() || usable(engine_of(self))) return NULL;
  Py_BEGIN_ALLOW_THREADS;
  ait_engine_cancel(engine_of(self)->engine, id);
  Py_END_ALLOW_THREADS;
  Py_RETURN_NONE;
}

static int enter(core_engine *e) {
  if (usable(e)) return -1;
  if (e->busy)
    return core_fail(AIT_CODE_INVALID_ARGUMENT, "use ait.llm.Engine, which threads share", "another thread steps this engine"), -1;
  e->busy = true;
  return 0;
}

static PyObject *engine_step(PyObject *self, PyObject *unused) {
  (void)unused;
  core_engine *e = engine_of(self);
  bool busy = false;
  ait_status status;
  if (enter(e)) return NULL;
  Py_BEGIN_ALLOW_THREADS;
  status = ait_engine_step(e->engine, &busy);
  Py_END_ALLOW_THREADS;
  PyObject *events = take_events(e);
  bool lost = e->lost;
  e->lost = e->busy = false;
  if (events && lost) {
    Py_DECREF(events);
    ait_status_free(status);
    return PyErr_NoMemory();
  }
  if (!events) return ait_status_free(status), NULL;
  if (!status) return Py_BuildValue("(NNO)", PyBool_FromLong(busy), events, Py_None);
  core_raise(status); /* all requests have ended, and the events say so: who waits for them must hear it, too */
  PyObject *type, *error, *trace;
  PyErr_Fetch(&type, &error, &trace);
  PyErr_NormalizeException(&type, &error, &trace);
  Py_XDECREF(type);
  Py_XDECREF(trace);
  return Py_BuildValue("(NNN)", PyBool_FromLong(busy), events, error);
}

static PyObject *engine_stats(PyObject *self, PyObject *unused) {
  (void)unused;
  core_engine *e = engine_of(self);
  if (enter(e)) return NULL;
  ait_engine_stats s = ait_engine_statistics(e->engine);
  e->busy = false;
  return Py_BuildValue("{s:K,s:K,s:K,s:K,s:K,s:K,s:K,s:K,s:d,s:d,s:n,s:I,s:I,s:I,s:I}", "steps", (unsigned long long)s.steps, "step_tokens",
                       (unsigned long long)s.step_tokens, "prompt_tokens", (unsigned long long)s.prompt_tokens, "reused_tokens",
                       (unsigned long long)s.reused_tokens, "answer_tokens", (unsigned long long)s.answer_tokens, "preemptions",
                       (unsigned long long)s.preemptions, "drafted", (unsigned long long)s.drafted, "accepted",
                       (unsigned long long)s.accepted, "step_seconds", s.step_seconds, "model_seconds", s.model_seconds, "bytes",
                       (Py_ssize_t)s.bytes, "running", (unsigned)s.running, "waiting", (unsigned)s.waiting, "pages", (unsigned)s.pages,
                       "free_pages", (unsigned)s.free_pages);
}

static PyMethodDef engine_methods[] = {
    {"submit", (PyCFunction)(void (*)(void))engine_submit, METH_VARARGS | METH_KEYWORDS, "submit(tokens, **request) -> id. Any thread."},
    {"cancel", engine_cancel, METH_O, "cancel(id). Any thread."},
    {"step", engine_step, METH_NOARGS,
     "step() -> (busy, events, error). An event: (request, choice, token, text, logprob, top, finish, error, prompt_tokens, "
     "reused_tokens)."},
    {"stats", engine_stats, METH_NOARGS, "Counters, as ait_engine_stats."},
    {0},
};
static PyType_Slot engine_slots[] = {
    {Py_tp_doc, "Engine(llm, **options): many requests at once. ait.llm.Engine shares one among threads."},
    {Py_tp_new, engine_new},
    {Py_tp_dealloc, engine_dealloc},
    {Py_tp_methods, engine_methods},
    {0, NULL},
};
static PyType_Spec engine_spec = {
    .name = CORE_PACKAGE "._core.Engine", .basicsize = sizeof(core_engine), .flags = Py_TPFLAGS_DEFAULT, .slots = engine_slots};

#ifndef AIT_PYTHON_RT
/* ---- deploying -----------------------------------------------------------------------------------------------------------------------*/
/* What the callback raised is raised when the deployment has ended. */
typedef struct noting {
  PyObject *callback; /* or NULL */
  PyObject *type, *value, *trace;
} noting;

static void pass_note(void *ctx, const char *line) {
  noting *n = ctx;
  PyGILState_STATE state = PyGILState_Ensure();
  if (n->callback && !n->type) {
    PyObject *done = PyObject_CallFunction(n->callback, "s", line);
    if (!done) PyErr_Fetch(&n->type, &n->value, &n->trace);
    Py_XDECREF(done);
  }
  PyGILState_Release(state);
}

static int deploy_options_from(PyObject *rest, PyObject *held, ait_deploy_options *o, noting *n) {
  PyObject *note = PyDict_GetItemString(rest, "note");
  ait_deploy_options_init(o);
  if (note && note != Py_None) {
    if (PyList_Append(held, note)) return -1;
    n->callback = note; /* held keeps it */
    o->note = pass_note;
    o->note_ctx = n;
  }
  if (note && PyDict_DelItemString(rest, "note")) return -1;
  const struct {
    const char *key;
    const char **to;
  } paths[] = {{"weights", &o->weights}, {"draft", &o->draft}};
  for (int i = 0; i < 2; ++i) {
    PyObject *path = PyDict_GetItemString(rest, paths[i].key);
    if (path && path != Py_None && core_path_text(path, held, paths[i].to)) return -1;
    if (path && PyDict_DelItemString(rest, paths[i].key)) return -1;
  }
  if (core_take_text(rest, "quantize", held, &o->quantize) || core_take_text(rest, "kv_dtype", held, &o->kv_dtype) ||
      core_take_text(rest, "embedding", held, &o->embedding) || core_take_text(rest, "head", held, &o->head) ||
      core_take_text(rest, "backend", held, &o->backend) || core_take_text(rest, "eval_text", held, &o->eval_text) ||
      core_take_int(rest, "max_seq", 0, 1 << 24, &o->max_seq) || core_take_int(rest, "page_size", 0, 1024, &o->page_size) ||
      core_take_int(rest, "group", 0, 1024, &o->group) || core_take_bool(rest, "allow_unmatched", &o->allow_unmatched) ||
      core_take_bool(rest, "skip_proof", &o->skip_proof) || core_nothing_left(rest, "deploy"))
    return -1;
  o->eval_size = o->eval_text ? strlen(o->eval_text) : 0;
  return 0;
}

static PyObject *deploy(PyObject *module, PyObject *args, PyObject *kwargs) {
  (void)module;
  PyObject *paths[2], *result = NULL, *rest = kwargs ? PyDict_Copy(kwargs) : PyDict_New(), *held = PyList_New(0);
  const char *source, *out;
  ait_deploy_options options;
  noting n = {0};
  if (rest && held && PyArg_ParseTuple(args, "OO:deploy", &paths[0], &paths[1]) && core_path_text(paths[0], held, &source) == 0 &&
      core_path_text(paths[1], held, &out) == 0 && deploy_options_from(rest, held, &options, &n) == 0) {
    char *json = NULL;
    ait_status status;
    Py_BEGIN_ALLOW_THREADS;
    status = ait_deploy(source, out, &options, &json);
    Py_END_ALLOW_THREADS;
    if (status) core_raise(status);
    else result = PyUnicode_DecodeUTF8(json, (Py_ssize_t)strlen(json), "replace");
    ait_string_free(json);
    if (n.type) {
      PyErr_Clear();
      Py_CLEAR(result);
      PyErr_Restore(n.type, n.value, n.trace);
    }
  }
  Py_XDECREF(rest);
  Py_XDECREF(held);
  return result;
}

static PyMethodDef functions[] = {
    {"deploy", (PyCFunction)(void (*)(void))deploy, METH_VARARGS | METH_KEYWORDS, "deploy(source, out, *, note=None, ...) -> JSON"},
    {0},
};
static int add_functions(PyObject *module) { return PyModule_AddFunctions(module, functions); }
#else
static int add_functions(PyObject *module) { return (void)module, 0; }
#endif

int core_add_llm(PyObject *module) {
  llm_type = core_add_type(module, "Llm", &llm_spec);
  return llm_type && core_add_type(module, "Engine", &engine_spec) ? add_functions(module) : -1;
}
