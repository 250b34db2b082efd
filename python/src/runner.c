/* A pool of sessions behind a callable.
 *
 * A call takes an idle session (or makes one, up to a limit, or waits for one), points it at the arguments' memory, gives it memory of the
 * results' own, and runs without the GIL. All fields of the pool are guarded by the GIL; only waiting callers use a lock, and nobody takes
 * the GIL while holding it.
 *
 * The sizes of results are known beforehand where they follow from those of the inputs and these were seen before: then the model writes
 * straight into the object that the caller gets. Else results are copied out of the session. */
#define _GNU_SOURCE
#include "core.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SHAPE_SETS = 4 };

/* Results' sizes for one set of input sizes. */
typedef struct shape_set {
  bool used;
  int64_t *key; /* for each input: rank, sizes; ints: the value */
  size_t key_length;
  PyObject **shapes;   /* by output; NULL: not predictable */
  ait_tensor *tensors; /* dtype, rank and shape */
} shape_set;

struct core_slot {
  core_slot *next;
  ait_session *session;
  ait_value *inputs, *outputs;
  core_hold *holds;
  core_room *rooms;
  PyObject **objects; /* arguments by input, borrowed */
  int64_t *key;
  shape_set sets[SHAPE_SETS];
  unsigned next_set;
};

/* ---- forks: a child has none of the sessions' threads ---------------------------------------------------------------------------------*/
static unsigned fork_number;
static void on_fork(void) { ++fork_number; }
static void watch_forks(void) {
  static bool watching;
  if (!watching) pthread_atfork(NULL, NULL, on_fork);
  watching = true;
}

/* ---- what a model takes and gives ----------------------------------------------------------------------------------------------------*/
static bool dim_follows(const ait_region *r, ait_dim d) {
  const ait_dim_expr *e = &r->dims[d];
  switch (e->op) {
    case AIT_DIM_CONST: return true;
    case AIT_DIM_SYMBOL: return r->symbols[e->a].backed;
    case AIT_DIM_UNKNOWN: return false;
    default: break;
  }
  /* Children have smaller indices, and an expression of torch is a few levels deep. */
  return dim_follows(r, e->a) && dim_follows(r, e->b);
}

static void describe_regions(const ait_region *r, core_signature *s) {
  for (uint32_t i = 0; i < r->input_count; ++i) {
    const ait_region_input *in = &r->inputs[i];
    if (in->kind != AIT_INPUT_USER || in->user_index < 0 || (size_t)in->user_index >= s->input_count) continue;
    core_port *port = &s->inputs[in->user_index];
    port->written |= in->mutated;
    if (in->value != AIT_NO_INDEX) continue;
    port->has_fixed = true;
    port->fixed = (ait_value){.kind = port->port.kind};
    switch (in->baked.kind) {
      case AIT_ARG_INT: port->fixed.as.i = in->baked.as.i; break;
      case AIT_ARG_FLOAT: port->fixed.as.f = in->baked.as.f; break;
      case AIT_ARG_BOOL: port->fixed.as.b = in->baked.as.b; break;
      case AIT_ARG_STRING: port->fixed.as.s = in->baked.as.string; break;
      default: break;
    }
  }
  size_t k = 0;
  for (uint32_t i = 0; i < r->output_count; ++i) {
    const ait_region_output *out = &r->outputs[i];
    if (out->kind == AIT_OUTPUT_INPUT && out->user_index >= 0 && (size_t)out->user_index < s->input_count)
      s->inputs[out->user_index].written = true;
    if (out->kind != AIT_OUTPUT_USER || k >= s->output_count) continue;
    core_port *port = &s->outputs[k++];
    if (out->arg.kind != AIT_ARG_VALUE || port->port.kind != AIT_VALUE_TENSOR || port->port.rank < 0) continue;
    const ait_region_value *v = &r->values[out->arg.as.value];
    port->predictable = true;
    for (int32_t d = 0; d < v->rank; ++d) port->predictable &= dim_follows(r, v->shape[d]);
  }
}

static ait_status fill_ports(ait_model *model, core_signature *s) {
  for (size_t i = 0; i < s->input_count; ++i) {
    ait_status status = ait_model_input(model, i, &s->inputs[i].port);
    if (status) return status;
    s->inputs[i].has_fixed = s->inputs[i].port.kind == AIT_VALUE_NONE;
  }
  for (size_t i = 0; i < s->output_count; ++i) {
    ait_status status = ait_model_output(model, i, &s->outputs[i].port);
    if (status) return status;
  }
  describe_regions(ait_model_region(model), s);
  return AIT_OK;
}

static bool intern_names(core_port *ports, size_t count) {
  for (size_t i = 0; i < count; ++i)
    if (!(ports[i].name = PyUnicode_InternFromString(ports[i].port.name))) return false;
  return true;
}

core_signature *core_signature_new(ait_model *model) {
  core_signature *s = calloc(1, sizeof *s);
  if (!s) return (core_signature *)PyErr_NoMemory();
  s->input_count = ait_model_input_count(model);
  s->output_count = ait_model_output_count(model);
  s->inputs = calloc(s->input_count + 1, sizeof *s->inputs);
  s->outputs = calloc(s->output_count + 1, sizeof *s->outputs);
  if (!s->inputs || !s->outputs) {
    PyErr_NoMemory();
  } else {
    ait_status status = fill_ports(model, s);
    if (status) core_raise(status);
    else if (intern_names(s->inputs, s->input_count) && intern_names(s->outputs, s->output_count)) return s;
  }
  core_signature_free(s);
  return NULL;
}

void core_signature_free(core_signature *s) {
  if (!s) return;
  for (size_t i = 0; s->inputs && i < s->input_count; ++i) Py_XDECREF(s->inputs[i].name);
  for (size_t i = 0; s->outputs && i < s->output_count; ++i) Py_XDECREF(s->outputs[i].name);
  free(s->inputs);
  free(s->outputs);
  free(s);
}

/* ---- arguments -----------------------------------------------------------------------------------------------------------------------*/
static const char *text_of(PyObject *name) {
  const char *text = PyUnicode_AsUTF8AndSize(name, NULL);
  if (!text) PyErr_Clear();
  return text ? text : "?";
}

static Py_ssize_t find_input(const core_signature *s, PyObject *key) {
  for (size_t i = 0; i < s->input_count; ++i)
    if (s->inputs[i].name == key) return (Py_ssize_t)i;
  for (size_t i = 0; i < s->input_count; ++i)
    if (PyUnicode_Compare(s->inputs[i].name, key) == 0) return (Py_ssize_t)i;
  return -1;
}

static int unknown_input(const core_signature *s, PyObject *key) {
  char names[400] = "it takes ";
  size_t n = strlen(names);
  for (size_t i = 0; i < s->input_count && n < 300; ++i)
    n += (size_t)PyOS_snprintf(names + n, sizeof names - n, "%s%.60s", i ? ", " : "", s->inputs[i].port.name);
  core_fail(AIT_CODE_INVALID_ARGUMENT, s->input_count ? names : "it takes no inputs", "the model has no input '%s'", text_of(key));
  return -1;
}

static int bind_keywords(const core_signature *s, PyObject *kwargs, PyObject **out) {
  PyObject *key, *value;
  for (Py_ssize_t at = 0; PyDict_Next(kwargs, &at, &key, &value);) {
    Py_ssize_t i = find_input(s, key);
    if (i < 0) return unknown_input(s, key);
    if (out[i]) return core_fail(AIT_CODE_INVALID_ARGUMENT, NULL, "input '%s' is given by position and by name", text_of(key)), -1;
    out[i] = value;
  }
  return 0;
}

int core_bind(const core_signature *s, PyObject *args, PyObject *kwargs, PyObject **out) {
  Py_ssize_t given = PyTuple_Size(args);
  if ((size_t)given > s->input_count) {
    core_fail(AIT_CODE_INVALID_ARGUMENT, NULL, "%zd inputs given, the model takes %zu", given, s->input_count);
    return -1;
  }
  for (size_t i = 0; i < s->input_count; ++i) out[i] = (Py_ssize_t)i < given ? PyTuple_GetItem(args, (Py_ssize_t)i) : NULL;
  if (kwargs && bind_keywords(s, kwargs, out)) return -1;
  for (size_t i = 0; i < s->input_count; ++i) {
    if (out[i] || s->inputs[i].has_fixed) continue;
    core_fail(AIT_CODE_INVALID_ARGUMENT, NULL, "input '%s' (position %zu) is missing", s->inputs[i].port.name, i);
    return -1;
  }
  return 0;
}

static int wrong_kind(const core_port *port, PyObject *obj, const char *must) {
  PyObject *name = PyObject_GetAttrString((PyObject *)Py_TYPE(obj), "__name__");
  core_fail(AIT_CODE_INVALID_ARGUMENT, NULL, "input '%s' is %s, must be %s", port->port.name, name ? text_of(name) : "?", must);
  Py_XDECREF(name);
  return -1;
}

static int int_from_object(const core_port *port, PyObject *obj, ait_value *out) {
  PyObject *number = PyNumber_Index(obj); /* ints, NumPy's integers, tensors of one integer */
  if (!number) {
    PyErr_Clear();
    return wrong_kind(port, obj, "an int");
  }
  out->as.i = PyLong_AsLongLong(number);
  Py_DECREF(number);
  if (!PyErr_Occurred()) return 0;
  PyErr_Clear();
  core_fail(AIT_CODE_INVALID_ARGUMENT, NULL, "input '%s' does not fit into 64 bits", port->port.name);
  return -1;
}

static int scalar_from_object(const core_port *port, PyObject *obj, ait_value *out) {
  switch (port->port.kind) {
    case AIT_VALUE_INT: return PyBool_Check(obj) ? wrong_kind(port, obj, "an int") : int_from_object(port, obj, out);
    case AIT_VALUE_FLOAT:
      if (PyBool_Check(obj) || PyUnicode_Check(obj)) return wrong_kind(port, obj, "a float");
      out->as.f = PyFloat_AsDouble(obj);
      if (!PyErr_Occurred()) return 0;
      PyErr_Clear();
      return wrong_kind(port, obj, "a float");
    case AIT_VALUE_BOOL:
      if (!PyBool_Check(obj)) return wrong_kind(port, obj, "a bool");
      out->as.b = obj == Py_True;
      return 0;
    case AIT_VALUE_STRING:
      if (!PyUnicode_Check(obj)) return wrong_kind(port, obj, "a str");
      out->as.s = PyUnicode_AsUTF8AndSize(obj, NULL); /* lives as long as obj, which the caller's arguments hold */
      return out->as.s ? 0 : -1;
    default: return obj == Py_None ? 0 : wrong_kind(port, obj, "None");
  }
}

int core_value_from_object(const core_port *port, PyObject *obj, ait_value *out, core_hold *hold, core_kind *kind) {
  if (!obj) {
    *out = port->fixed;
    return 0;
  }
  *out = (ait_value){.kind = port->port.kind};
  if (port->port.kind != AIT_VALUE_TENSOR) return scalar_from_object(port, obj, out);
  ait_status status = core_tensor_from_object(obj, port->written, &out->as.tensor, hold, kind);
  if (!status) return 0;
  bool bare = strncmp(ait_status_message(status), "is ", 3) == 0;
  if (bare) { /* "input 'x' is list, must be an array" */
    const char *hint = ait_status_hint(status);
    ait_status whole = ait_error_hint(ait_error(ait_status_code(status), "input '%s' %s", port->port.name, ait_status_message(status)),
                                      "%s", hint ? hint : "");
    ait_status_free(status);
    status = whole;
  } else {
    status = ait_error_context(status, "input '%s'", port->port.name);
  }
  core_raise(status);
  return -1;
}

PyObject *core_object_from_value(const ait_value *v, core_kind kind) {
  switch (v->kind) {
    case AIT_VALUE_TENSOR: return core_copy_out(kind, &v->as.tensor);
    case AIT_VALUE_INT: return PyLong_FromLongLong(v->as.i);
    case AIT_VALUE_FLOAT: return PyFloat_FromDouble(v->as.f);
    case AIT_VALUE_BOOL: return PyBool_FromLong(v->as.b);
    case AIT_VALUE_STRING: return PyUnicode_FromString(v->as.s);
    case AIT_VALUE_NONE: break;
  }
  Py_INCREF(Py_None);
  return Py_None;
}

/* ---- slots ---------------------------------------------------------------------------------------------------------------------------*/
static void shape_set_clear(shape_set *set, size_t outputs) {
  for (size_t i = 0; set->shapes && i < outputs; ++i) Py_CLEAR(set->shapes[i]);
  set->used = false;
}

static void slot_free(const core_runner *r, core_slot *slot) {
  if (!slot) return;
  ait_session_destroy(slot->session);
  for (int i = 0; i < SHAPE_SETS; ++i) {
    shape_set_clear(&slot->sets[i], r->signature->output_count);
    free(slot->sets[i].key);
    free(slot->sets[i].shapes);
    free(slot->sets[i].tensors);
  }
  free(slot->inputs);
  free(slot->outputs);
  free(slot->holds);
  free(slot->rooms);
  free(slot->objects);
  free(slot->key);
  free(slot);
}

static size_t key_capacity(const core_signature *s) { return s->input_count * (AIT_MAX_RANK + 1) + 1; }

static core_slot *slot_new(const core_runner *r) {
  const core_signature *s = r->signature;
  core_slot *slot = calloc(1, sizeof *slot);
  if (!slot) return (core_slot *)PyErr_NoMemory();
  slot->inputs = calloc(s->input_count + 1, sizeof *slot->inputs);
  slot->outputs = calloc(s->output_count + 1, sizeof *slot->outputs);
  slot->holds = calloc(s->input_count + 1, sizeof *slot->holds);
  slot->rooms = calloc(s->output_count + 1, sizeof *slot->rooms);
  slot->objects = calloc(s->input_count + 1, sizeof *slot->objects);
  slot->key = calloc(key_capacity(s), sizeof *slot->key);
  bool ok = slot->inputs && slot->outputs && slot->holds && slot->rooms && slot->objects && slot->key;
  for (int i = 0; ok && i < SHAPE_SETS; ++i) {
    shape_set *set = &slot->sets[i];
    set->key = calloc(key_capacity(s), sizeof *set->key);
    set->shapes = calloc(s->output_count + 1, sizeof *set->shapes);
    set->tensors = calloc(s->output_count + 1, sizeof *set->tensors);
    ok = set->key && set->shapes && set->tensors;
  }
  if (!ok) {
    slot_free(r, slot);
    return (core_slot *)PyErr_NoMemory();
  }
  ait_status status;
  Py_BEGIN_ALLOW_THREADS;
  status = ait_session_create(r->model, &r->options, &slot->session);
  Py_END_ALLOW_THREADS;
  if (!status) return slot;
  slot_free(r, slot);
  return core_raise(status);
}

ait_session *core_slot_session(core_slot *slot) { return slot->session; }

/* ---- the pool ------------------------------------------------------------------------------------------------------------------------*/
typedef struct gate {
  pthread_mutex_t mutex;
  pthread_cond_t opened;
  int permits; /* sessions given back for callers that wait */
} gate;

static gate *gate_new(void) { /* NULL: the error is set */
  gate *g = calloc(1, sizeof *g);
  if (!g) {
    PyErr_NoMemory();
    return NULL;
  }
  pthread_mutex_init(&g->mutex, NULL);
  pthread_cond_init(&g->opened, NULL);
  return g;
}

static int processors(void) {
  cpu_set_t set;
  int count = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
  return count > 0 ? count : 1;
}

static int32_t session_threads(const ait_model *model, const ait_session_options *options) {
  if (options->threads > 0) return options->threads;
  ait_plan_info plan;
  for (size_t i = 0; ait_model_plan(model, i, &plan); ++i)
    if (plan.runs && plan.threads > 0) return plan.threads;
  return 1;
}

int core_runner_init(core_runner *r, ait_model *model, core_signature *signature, const ait_session_options *options, int32_t limit) {
  *r = (core_runner){.signature = signature, .options = *options, .returns = -1};
  if (!(r->gate = gate_new())) return -1;
  r->model = ait_model_retain(model);
  watch_forks();
  r->fork_number = fork_number;
  int32_t fit = processors() / session_threads(model, options);
  r->limit = limit > 0 ? limit : fit > 1 ? fit : 1;
  if (ait_model_state_name(model, 0)) r->limit = 1; /* one timeline, calls in turn */
  return 0;
}

void core_runner_deinit(core_runner *r) {
  bool ours = r->fork_number == fork_number; /* sessions of before a fork have threads that are not here: they are left alone */
  while (ours && r->idle) {
    core_slot *slot = r->idle;
    r->idle = slot->next;
    slot_free(r, slot);
  }
  if (ours && r->gate) {
    gate *g = r->gate;
    pthread_cond_destroy(&g->opened);
    pthread_mutex_destroy(&g->mutex);
    free(g);
  }
  r->gate = NULL;
  ait_model_release(r->model);
  r->model = NULL;
}

/* In the child of a fork: a fresh pool. What the parent's threads held can never be given back. */
static int after_fork(core_runner *r) {
  if (!(r->gate = gate_new())) return -1;
  r->idle = NULL;
  r->made = r->waiting = 0;
  r->fork_number = fork_number;
  return 0;
}

/* Until somebody gives a session back; wakes up now and then, so that Ctrl-C works. -1: interrupted. */
static int wait_for_idle(core_runner *r) {
  gate *g = r->gate;
  ++r->waiting;
  Py_BEGIN_ALLOW_THREADS;
  struct timespec end;
  clock_gettime(CLOCK_REALTIME, &end);
  end.tv_nsec += 100 * 1000000;
  if (end.tv_nsec >= 1000000000) end.tv_sec += 1, end.tv_nsec -= 1000000000;
  pthread_mutex_lock(&g->mutex);
  for (int error = 0; g->permits == 0 && error != ETIMEDOUT;) error = pthread_cond_timedwait(&g->opened, &g->mutex, &end);
  if (g->permits > 0) --g->permits;
  pthread_mutex_unlock(&g->mutex);
  Py_END_ALLOW_THREADS;
  --r->waiting;
  return PyErr_CheckSignals();
}

core_slot *core_runner_take(core_runner *r) {
  if (r->fork_number != fork_number && after_fork(r)) return NULL;
  for (;;) {
    core_slot *slot = r->idle;
    if (slot) {
      r->idle = slot->next;
      return slot;
    }
    if (r->made < r->limit) {
      ++r->made;
      slot = slot_new(r);
      if (!slot) --r->made;
      return slot;
    }
    if (wait_for_idle(r)) return NULL;
  }
}

void core_runner_give(core_runner *r, core_slot *slot) {
  slot->next = r->idle;
  r->idle = slot;
  if (r->waiting == 0) return;
  gate *g = r->gate;
  pthread_mutex_lock(&g->mutex);
  if (g->permits < r->waiting) ++g->permits;
  pthread_cond_signal(&g->opened);
  pthread_mutex_unlock(&g->mutex);
}

/* ---- sizes of results -----------------------------------------------------------------------------------------------------------------*/
static size_t make_key(const core_signature *s, core_slot *slot) {
  size_t n = 0;
  for (size_t i = 0; i < s->input_count; ++i) {
    const ait_value *v = &slot->inputs[i];
    if (v->kind == AIT_VALUE_INT) slot->key[n++] = v->as.i;
    if (v->kind != AIT_VALUE_TENSOR) continue;
    slot->key[n++] = v->as.tensor.rank;
    for (int32_t d = 0; d < v->as.tensor.rank; ++d) slot->key[n++] = v->as.tensor.shape[d];
  }
  return n;
}

static shape_set *find_set(core_slot *slot, size_t length) {
  for (int i = 0; i < SHAPE_SETS; ++i) {
    shape_set *set = &slot->sets[i];
    if (set->used && set->key_length == length && memcmp(set->key, slot->key, length * sizeof *slot->key) == 0) return set;
  }
  return NULL;
}

/* After a run that succeeded; a failure to remember costs a copy, no more. */
static void remember(const core_signature *s, core_slot *slot, size_t length) {
  shape_set *set = &slot->sets[slot->next_set++ % SHAPE_SETS];
  shape_set_clear(set, s->output_count);
  memcpy(set->key, slot->key, length * sizeof *slot->key);
  set->key_length = length;
  for (size_t i = 0; i < s->output_count; ++i) {
    if (!s->outputs[i].predictable || slot->outputs[i].kind != AIT_VALUE_TENSOR) continue;
    set->tensors[i] = slot->outputs[i].as.tensor;
    set->tensors[i].storage = NULL;
    set->shapes[i] = core_shape_tuple(&set->tensors[i]);
    if (!set->shapes[i]) {
      PyErr_Clear();
      return;
    }
  }
  set->used = true;
}

/* ---- calls ---------------------------------------------------------------------------------------------------------------------------*/
static int place_arguments(const core_runner *r, core_slot *slot, core_kind *kind) {
  const core_signature *s = r->signature;
  for (size_t i = 0; i < s->input_count; ++i)
    if (core_value_from_object(&s->inputs[i], slot->objects[i], &slot->inputs[i], &slot->holds[i], kind)) return -1;
  if (r->returns >= 0) *kind = (core_kind)r->returns;
  return 0;
}

static bool make_rooms(const core_signature *s, core_slot *slot, const shape_set *set, core_kind kind) {
  for (size_t i = 0; i < s->output_count; ++i) {
    slot->outputs[i] = (ait_value){.kind = AIT_VALUE_NONE};
    if (!set || !set->shapes[i]) continue;
    const ait_tensor *t = &set->tensors[i];
    ait_tensor view;
    if (!core_room_make(kind, t->dtype, t->rank, t->shape, set->shapes[i], &slot->rooms[i], &view)) return false;
    slot->outputs[i] = (ait_value){.kind = AIT_VALUE_TENSOR, .as.tensor = view};
  }
  return true;
}

static bool has_room(const core_room *room) { return room->object || room->tensor.storage; }

static PyObject *take_result(core_slot *slot, size_t i, core_kind kind) {
  if (has_room(&slot->rooms[i])) return core_room_take(kind, &slot->rooms[i]);
  return core_object_from_value(&slot->outputs[i], kind);
}

static PyObject *take_results(const core_signature *s, core_slot *slot, core_kind kind) {
  if (s->output_count == 1) return take_result(slot, 0, kind);
  PyObject *all = PyTuple_New((Py_ssize_t)s->output_count);
  for (size_t i = 0; all && i < s->output_count; ++i) {
    PyObject *one = take_result(slot, i, kind);
    if (!one) Py_CLEAR(all);
    else PyTuple_SetItem(all, (Py_ssize_t)i, one);
  }
  return all;
}

static PyObject *run(core_runner *r, core_slot *slot) {
  const core_signature *s = r->signature;
  core_kind kind = CORE_KIND_AIT;
  if (place_arguments(r, slot, &kind)) return NULL;
  size_t length = make_key(s, slot);
  shape_set *set = find_set(slot, length);
  if (!make_rooms(s, slot, set, kind)) return NULL;
  ait_status status;
  Py_BEGIN_ALLOW_THREADS;
  status = ait_session_run(slot->session, slot->inputs, s->input_count, slot->outputs, s->output_count);
  Py_END_ALLOW_THREADS;
  if (status) return core_raise(status);
  if (!set) remember(s, slot, length);
  return take_results(s, slot, kind);
}

static void clear_slot(const core_signature *s, core_slot *slot) {
  for (size_t i = 0; i < s->input_count; ++i) core_hold_release(&slot->holds[i]);
  for (size_t i = 0; i < s->output_count; ++i) core_room_drop(&slot->rooms[i]);
}

PyObject *core_runner_call(core_runner *r, PyObject *args, PyObject *kwargs) {
  core_slot *slot = core_runner_take(r);
  if (!slot) return NULL;
  PyObject *result = core_bind(r->signature, args, kwargs, slot->objects) ? NULL : run(r, slot);
  clear_slot(r->signature, slot);
  core_runner_give(r, slot);
  return result;
}
