/* The trace event format: one object for each span, times in microseconds. The session gives each step's time and not its beginning; steps
 * run one after the other, so they are laid end to end from the call's beginning, and what is left at its end is the time between them. */
#include "cli/trace.h"
#include <stdlib.h>
#include <string.h>

enum { KEPT_CALLS = 100, DEEPEST_MODULE = 32 };

struct cli_trace {
  ait_session *session;
  struct json_object *events;
  ait_step_time *steps;
  double *before; /* seconds of each step up to the last call */
  size_t count, calls;
  double origin;
};

cli_trace *cli_trace_create(ait_session *session) {
  cli_trace *t = calloc(1, sizeof *t);
  if (!t) return NULL;
  t->session = session;
  t->events = json_object_new_array();
  return t;
}

void cli_trace_destroy(cli_trace *t) {
  if (!t) return;
  json_object_put(t->events);
  free(t->steps);
  free(t->before);
  free(t);
}

static struct json_object *span(cli_trace *t, const char *category, const char *name, double start, double seconds) {
  struct json_object *e = json_object_new_object(), *args = json_object_new_object();
  json_object_object_add(e, "name", json_object_new_string(name));
  json_object_object_add(e, "cat", json_object_new_string(category));
  json_object_object_add(e, "ph", json_object_new_string("X"));
  json_object_object_add(e, "ts", json_object_new_double(1e6 * (start - t->origin)));
  json_object_object_add(e, "dur", json_object_new_double(1e6 * seconds));
  json_object_object_add(e, "pid", json_object_new_int(1));
  json_object_object_add(e, "tid", json_object_new_int(1));
  json_object_object_add(e, "args", args);
  json_object_array_add(t->events, e);
  return args;
}

/* Length of the first `depth` parts of a module path; 0: it has fewer. */
static size_t part(const char *path, int depth) {
  size_t n = 0;
  for (int d = 0; d < depth; ++d) {
    if (!path[n]) return 0;
    n += d > 0;
    n += strcspn(path + n, ".");
  }
  return n;
}

static const char *module_of(const ait_step_time *s) { return s->module ? s->module : ""; }

/* The modules that begin with step i: each as long as the steps that follow are in it, too. */
static void open_modules(cli_trace *t, const double *took, size_t i, double start) {
  const char *path = module_of(&t->steps[i]), *before = i ? module_of(&t->steps[i - 1]) : "";
  for (int depth = 1; depth < DEEPEST_MODULE; ++depth) {
    size_t n = part(path, depth), m = part(before, depth);
    double seconds = 0;
    if (n == 0) return;
    if (i && m == n && !memcmp(path, before, n)) continue; /* goes on */
    for (size_t k = i; k < t->count && part(module_of(&t->steps[k]), depth) == n && !memcmp(module_of(&t->steps[k]), path, n); ++k)
      seconds += took[k];
    char name[512];
    snprintf(name, sizeof name, "%.*s", n < sizeof name ? (int)n : (int)sizeof name - 1, path);
    if (seconds > 0) span(t, "module", name, start, seconds);
  }
}

static void put_steps(cli_trace *t, const double *took, double start) {
  for (size_t i = 0; i < t->count; ++i) {
    const ait_step_time *s = &t->steps[i];
    open_modules(t, took, i, start);
    if (took[i] <= 0) continue;
    struct json_object *args = span(t, "step", s->op ? s->op : "step", start, took[i]);
    json_object_object_add(args, "kernel", json_object_new_string(s->kernel ? s->kernel : ""));
    json_object_object_add(args, "module", json_object_new_string(module_of(s)));
    json_object_object_add(args, "node", json_object_new_string(s->name ? s->name : ""));
    if (s->portable) json_object_object_add(args, "portable", json_object_new_boolean(true));
    start += took[i];
  }
}

void cli_trace_call(cli_trace *t, double start, double seconds) {
  size_t n = ait_session_profile(t->session, NULL, 0);
  if (!t->steps) {
    t->steps = calloc(n + 1, sizeof *t->steps);
    t->before = calloc(n + 1, sizeof *t->before);
    t->origin = start;
    t->count = n;
  }
  double *took = calloc(n + 1, sizeof *took);
  if (t->steps && t->before && took && n == t->count && t->calls < KEPT_CALLS) {
    char name[32];
    ait_session_profile(t->session, t->steps, n);
    for (size_t i = 0; i < n; ++i) {
      took[i] = t->steps[i].seconds - t->before[i];
      t->before[i] = t->steps[i].seconds;
    }
    snprintf(name, sizeof name, "call %zu", ++t->calls);
    span(t, "call", name, start, seconds);
    put_steps(t, took, start);
  }
  free(took);
}

int cli_trace_write(cli_trace *t, const char *path) {
  struct json_object *o = json_object_new_object();
  json_object_object_add(o, "displayTimeUnit", json_object_new_string("ns"));
  json_object_object_add(o, "traceEvents", json_object_get(t->events));
  int code = cli_write_file(path, json_object_to_json_string_ext(o, JSON_C_TO_STRING_NOSLASHESCAPE));
  json_object_put(o);
  return code;
}
