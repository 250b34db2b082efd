/* Error objects of the library as exceptions: one class for each code of status.inc. */
#include "core.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Python's own exceptions that say the same: `except FileNotFoundError` works, too. */
typedef struct natural {
  ait_code code;
  const char *name; /* NULL: the code's text in camel case */
  PyObject **bases[2];
} natural;
static const natural naturals[] = {
    {AIT_CODE_INVALID_ARGUMENT, NULL, {&PyExc_ValueError, &PyExc_TypeError}},
    {AIT_CODE_INVALID_MODEL, NULL, {&PyExc_ValueError}},
    {AIT_CODE_UNSUPPORTED, NULL, {&PyExc_NotImplementedError}},
    {AIT_CODE_NOT_FOUND, NULL, {&PyExc_FileNotFoundError, &PyExc_LookupError}},
    {AIT_CODE_IO, "IoError", {&PyExc_OSError}},
    {AIT_CODE_OUT_OF_MEMORY, NULL, {&PyExc_MemoryError}},
    {AIT_CODE_LIMIT, NULL, {&PyExc_ValueError}},
    {AIT_CODE_TIMEOUT, NULL, {&PyExc_TimeoutError}},
};

static const struct {
  ait_code code;
  const char *text;
} codes[] = {
#define AIT_STATUS(name, number, text, exit_code) {AIT_CODE_##name, text},
#include <ait/status.inc>
#undef AIT_STATUS
};
enum { CODE_COUNT = sizeof codes / sizeof *codes };

static const char hint_mark[] = "\n  hint: "; /* in the exception's text, before the hint */
static PyObject *base_class, *classes[CODE_COUNT];

/* "out-of-memory" to "OutOfMemory". */
static void camel_case(const char *text, char *out, size_t size) {
  size_t n = 0;
  for (bool upper = true; *text && n + 1 < size; ++text) {
    if (*text != '-') out[n++] = upper ? (char)toupper((unsigned char)*text) : *text;
    upper = *text == '-';
  }
  out[n] = 0;
}

static const natural *natural_of(ait_code code) {
  for (size_t i = 0; i < sizeof naturals / sizeof *naturals; ++i)
    if (naturals[i].code == code) return &naturals[i];
  return NULL;
}

static PyObject *bases_of(const natural *n) {
  Py_ssize_t count = 1 + (n && n->bases[0]) + (n && n->bases[0] && n->bases[1]);
  PyObject *bases = PyTuple_New(count);
  for (Py_ssize_t i = 0; bases && i < count; ++i) {
    PyObject *base = i == 0 ? base_class : *n->bases[i - 1];
    Py_INCREF(base);
    PyTuple_SetItem(bases, i, base);
  }
  return bases;
}

static PyObject *class_dict(const char *text, ait_code code) {
  PyObject *dict = PyDict_New(), *number = PyLong_FromLong(code), *exit_code = PyLong_FromLong(ait_code_exit(code));
  PyObject *name = PyUnicode_FromString(text);
  bool ok = dict && number && exit_code && name && PyDict_SetItemString(dict, "code", name) == 0 &&
            PyDict_SetItemString(dict, "number", number) == 0 && PyDict_SetItemString(dict, "exit_code", exit_code) == 0;
  Py_XDECREF(number);
  Py_XDECREF(exit_code);
  Py_XDECREF(name);
  if (!ok) Py_CLEAR(dict);
  return dict;
}

static PyObject *make_class(size_t index) {
  char name[64], full[80], doc[96];
  const natural *n = natural_of(codes[index].code);
  camel_case(codes[index].text, name, sizeof name);
  snprintf(full, sizeof full, CORE_PACKAGE ".%s", n && n->name ? n->name : name);
  snprintf(doc, sizeof doc, "An error of code '%s'.", codes[index].text);
  PyObject *bases = bases_of(n), *dict = class_dict(codes[index].text, codes[index].code);
  PyObject *made = bases && dict ? PyErr_NewExceptionWithDoc(full, doc, bases, dict) : NULL;
  Py_XDECREF(bases);
  Py_XDECREF(dict);
  return made;
}

static int add_class(PyObject *module, PyObject *class) {
  PyObject *name = PyObject_GetAttrString(class, "__name__");
  int result = name ? PyObject_SetAttr(module, name, class) : -1;
  Py_XDECREF(name);
  return result;
}

/* ---- message and hint: of the exception's text, so that `raise ait.Unsupported("…")` and unpickled ones have them, too
 * ------------------*/
/* The text, or NULL with an exception; owner keeps it alive. */
static const char *text_of(PyObject *self, PyObject **owner) {
  PyObject *args = PyObject_GetAttrString(self, "args");
  PyObject *first = args && PyTuple_Size(args) > 0 ? PyTuple_GetItem(args, 0) : NULL;
  *owner = first ? PyObject_Str(first) : args ? PyUnicode_FromString("") : NULL;
  Py_XDECREF(args);
  return *owner ? PyUnicode_AsUTF8AndSize(*owner, NULL) : NULL;
}

static PyObject *get_message(PyObject *self, void *unused) {
  (void)unused;
  PyObject *owner, *result = NULL;
  const char *text = text_of(self, &owner);
  if (text) {
    const char *mark = strstr(text, hint_mark);
    result = PyUnicode_FromStringAndSize(text, mark ? mark - text : (Py_ssize_t)strlen(text));
  }
  Py_XDECREF(owner);
  return result;
}

static PyObject *get_hint(PyObject *self, void *unused) {
  (void)unused;
  PyObject *owner, *result = NULL;
  const char *text = text_of(self, &owner);
  if (text) {
    const char *mark = strstr(text, hint_mark);
    result = mark ? PyUnicode_FromString(mark + sizeof hint_mark - 1) : (Py_INCREF(Py_None), Py_None);
  }
  Py_XDECREF(owner);
  return result;
}

static int add_getters(void) {
  static PyGetSetDef getters[] = {{"message", get_message, NULL, "One sentence.", NULL},
                                  {"hint", get_hint, NULL, "What to do, or None.", NULL}};
  for (size_t i = 0; i < sizeof getters / sizeof *getters; ++i) {
    PyObject *descriptor = PyDescr_NewGetSet((PyTypeObject *)base_class, &getters[i]);
    int failed = !descriptor || PyObject_SetAttrString(base_class, getters[i].name, descriptor);
    Py_XDECREF(descriptor);
    if (failed) return -1;
  }
  return 0;
}

int core_add_errors(PyObject *module) {
  PyObject *dict = class_dict("internal", AIT_CODE_INTERNAL);
  base_class = dict ? PyErr_NewExceptionWithDoc(CORE_PACKAGE ".Error",
                                                "What went wrong: `code` (a short name), `message` (one sentence), `hint` (what to do, or "
                                                "None), `number` (of the C API), `exit_code` (of the command line).",
                                                PyExc_Exception, dict)
                    : NULL;
  Py_XDECREF(dict);
  if (!base_class || add_getters() || add_class(module, base_class)) return -1;
  for (size_t i = 0; i < CODE_COUNT; ++i) {
    if (codes[i].code == AIT_CODE_OK) continue;
    classes[i] = make_class(i);
    if (!classes[i] || add_class(module, classes[i])) return -1;
  }
  return 0;
}

static PyObject *class_of(ait_code code) {
  for (size_t i = 0; i < CODE_COUNT; ++i)
    if (codes[i].code == code && classes[i]) return classes[i];
  return base_class;
}

/* Names of files and of other people's models may be no UTF-8. */
static PyObject *text_object(const char *text) { return PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "backslashreplace"); }

void *core_raise(ait_status status) {
  const char *hint = ait_status_hint(status);
  PyObject *class = class_of(ait_status_code(status)), *exception = NULL;
  PyObject *message = text_object(ait_status_message(status)), *advice = hint ? text_object(hint) : NULL;
  PyObject *text = !message ? NULL : hint && advice ? PyUnicode_FromFormat("%U%s%U", message, hint_mark, advice) : message;
  if (text == message) Py_XINCREF(text);
  if (text) exception = PyObject_CallFunctionObjArgs(class, text, NULL);
  if (exception) PyErr_SetObject(class, exception);
  Py_XDECREF(exception);
  Py_XDECREF(text);
  Py_XDECREF(advice);
  Py_XDECREF(message);
  ait_status_free(status);
  return NULL;
}

void *core_fail(ait_code code, const char *hint, const char *format, ...) {
  char text[512];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  ait_status status = ait_error(code, "%s", text);
  if (hint) status = ait_error_hint(status, "%s", hint);
  return core_raise(status);
}
