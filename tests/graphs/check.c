/* The checks: the graph after each pass, on each backend, with threads and instruction sets, against the graph itself on the reference.
 *
 * Tolerance: ten times what rounding does, as in the tuner's gate, and at least FLOOR of the largest value, or of 1. Rounding is measured
 * twice: the reference in single precision against double, and in double with inputs and weights moved by one unit in the last place, which
 * shows sums that nearly cancel. Integers and truth values must be equal, unless rounding alone changes them. */
#include "graph_fuzz.h"
#include "tune/mix.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

const gf_check gf_checks[] = {
    {"core", "core", "reference", NULL, NULL, 1, false, NULL, 0, false},
    {"eager passes", "eager", "reference", NULL, NULL, 1, false, NULL, 0, false},
    {"views+functionalise+lower+simplify+cse+dce", "inline,views,functionalise,lower,simplify,cse,dce", "reference", NULL, NULL, 1, false,
     NULL, 0, false},
    {"eager", NULL, "eager", NULL, NULL, 1, false, NULL, 0, false},
    {"native", NULL, "native", NULL, NULL, 1, false, NULL, 0, false},
    {"native threads=2", NULL, "native", NULL, NULL, 2, false, NULL, 0, false},
    {"native, whatever the threads", NULL, "native", NULL, NULL, 3, false, NULL, 1, false},
    {"native avx2", NULL, "native", NULL, "avx2", 1, false, NULL, 0, false},
    {"native scalar", NULL, "native", NULL, "scalar", 2, false, NULL, 0, false},
    {"native, passes of eager", "eager", "native", NULL, NULL, 1, false, NULL, 0, false},
    {"parts, native first", NULL, "native", NULL, NULL, 1, false, NULL, 0, true},
    {"parts, reference first", NULL, "reference", NULL, NULL, 2, false, NULL, 0, true},
    {NULL, NULL, NULL, NULL, NULL, 0, false, NULL, 0, false},
};

/* Every value of every knob that native has, but for the defaults. */
enum { MAX_KNOBS = 32 };
static char knob_names[MAX_KNOBS][64], knob_options[MAX_KNOBS][48];

static size_t knob_check_count(void) {
  static size_t count;
  if (count) return count;
  for (const ait_knob *k = ait_backend_find("native")->knobs; k && k->name; ++k)
    for (const char *const *v = k->values; v && *v && count < MAX_KNOBS; ++v) {
      if (!strcmp(*v, k->default_value)) continue;
      snprintf(knob_options[count], sizeof knob_options[count], "%s=%s", k->name, *v);
      snprintf(knob_names[count], sizeof knob_names[count], "native %s=%s", k->name, *v);
      ++count;
    }
  return count;
}

/* Passes that are asked to lose something have tests of their own (quantise_test.c). */
static const ait_pass *lossless_pass(size_t i) {
  for (size_t k = 0; k < ait_pass_count(); ++k)
    if (!ait_pass_at(k)->lossy && i-- == 0) return ait_pass_at(k);
  return NULL;
}

static size_t pass_count(void) {
  size_t n = 0;
  while (lossless_pass(n)) ++n;
  return n;
}

size_t gf_check_count(void) { return pass_count() + AIT_COUNT(gf_checks) - 1 + knob_check_count(); }

gf_check gf_check_at(size_t i) {
  size_t fixed = pass_count() + AIT_COUNT(gf_checks) - 1;
  if (i >= fixed)
    return (gf_check){
        .name = knob_names[i - fixed], .backend = "native", .knobs = knob_options[i - fixed], .threads = 1 + (int32_t)(i & 1)};
  if (i >= pass_count()) return gf_checks[i - pass_count()];
  const ait_pass *pass = lossless_pass(i);
  return (gf_check){.name = pass->name, .passes = pass->name, .backend = "reference", .threads = 1, .equal = !pass->changes_numbers};
}

/* ---- deliberate faults ---------------------------------------------------------------------------------------------------------------*/
static bool exchange_operands(ait_graph *g) { /* "a - b is b - a" */
  bool found = false;
  for (ait_node *n = g->first; n; n = n->next) {
    if (strcmp(n->op->name, "sub")) continue;
    ait_arg first = n->args[0];
    n->args[0] = n->args[1];
    n->args[1] = first;
    found = true;
  }
  return found;
}

static bool forget_mask(ait_graph *g) { /* "a mask changes little" */
  bool found = false;
  for (ait_node *n = g->first; n; n = n->next) {
    if (strcmp(n->op->name, "attention") || n->args[3].kind == AIT_ARG_NONE) continue;
    n->args[3] = ait_arg_none();
    found = true;
  }
  return found;
}

static bool crash_on_sort(ait_graph *g) {
  for (ait_node *n = g->first; n; n = n->next)
    if (!strcmp(n->op->name, "sort")) raise(SIGSEGV);
  return false;
}

const gf_check gf_broken_checks[] = {
    {"broken: sub", "core", "native", NULL, NULL, 1, false, exchange_operands, 0, false},
    {"broken: mask", "core", "native", NULL, NULL, 1, false, forget_mask, 0, false},
    {"broken: crash", "core", "native", NULL, NULL, 1, false, crash_on_sort, 0, false},
    {NULL, NULL, NULL, NULL, NULL, 0, false, NULL, 0, false},
};

/* ---- running -------------------------------------------------------------------------------------------------------------------------*/
/* The oracle in single precision rounds once for each operator; kernels round inside of them, too, and what they round may cancel behind
 * them: the mean of a normalised row is nothing but rounding, a group of two nearly equal numbers shows 1e-5. Values are around 1 by
 * construction, and wrong answers are wrong by much more. (The tuner's graphs are larger and average that: its floor is 1e-6.) */
#define FLOOR 2e-5

enum { CALLS = 5 }; /* each setting of the symbols, then the first again */

typedef struct answers {
  ait_status failed[CALLS]; /* per call */
  bool possible[CALLS];
  ait_value outputs[CALLS][GF_MAX_VALUES], inputs[CALLS][GF_MAX_INPUTS]; /* after the call: programs write into them */
  size_t output_count, input_count;
} answers;

typedef struct machine {
  ait_graph *owned; /* a copy with its own weights, or NULL */
  ait_region *region;
  ait_plan plan;
  ait_weight_store *weights;
  ait_model *model;
  ait_session *session;
} machine;

static void close_machine(machine *m) {
  ait_session_destroy(m->session);
  ait_model_release(m->model);
  ait_weight_store_release(m->weights);
  if (m->plan.steps) ait_plan_deinit(&m->plan);
  ait_graph_region_destroy(ait_allocator_default(), m->region);
  ait_graph_destroy(m->owned);
}

/* The graph with the deliberate fault in it, after the passes. */
static ait_status sabotaged(const ait_graph *g, const gf_check *c, machine *m, bool *out_broken) {
  ait_pass_context context = {.allocator = ait_allocator_default()};
  m->owned = gf_clone(g);
  AIT_TRY(ait_passes_run(m->owned, c->passes, &context, NULL, NULL));
  *out_broken = c->sabotage(m->owned);
  return AIT_OK;
}

/* Where to cut follows from the number of nodes. */
static ait_status build_parts(const ait_graph *g, const ait_build_request *request, machine *m) {
  ait_mix mix = {.engine_count = 2, .part_count = 1};
  ait_build_request lowered = *request;
  ait_graph *core;
  lowered.pipeline = "core";
  mix.engines[0].backend = request->backend;
  mix.engines[1].backend = ait_backend_find(strcmp(request->backend->name, "native") ? "native" : "reference");
  AIT_TRY(ait_plan_lower(g, &lowered, &core));
  uint32_t nodes = (uint32_t)core->node_count, pieces = nodes < 4 ? nodes : 4;
  ait_graph_destroy(core);
  if (pieces < 2) return ait_error(AIT_CODE_UNSUPPORTED, "nothing to cut");
  for (uint32_t p = 1; p < pieces; ++p) {
    mix.cuts[p - 1] = nodes * p / pieces;
    mix.engine[p] = p % 2;
    mix.alone[p] = true;
  }
  mix.part_count = pieces;
  return ait_mix_build(g, request, &mix, &m->plan, &m->weights);
}

static ait_status open_machine(const ait_graph *g, const gf_check *c, machine *m) {
  uint64_t mask = UINT64_MAX;
  if (c->cpu) AIT_TRY(ait_cpu_mask_parse(c->cpu, &mask));
  ait_build_request request = {.allocator = ait_allocator_default(),
                               .backend = ait_backend_find(c->backend),
                               .options = c->knobs,
                               .pipeline = c->passes,
                               .cpu_mask = mask};
  AIT_TRY(ait_graph_region(g, ait_allocator_default(), &m->region));
  const ait_graph *from = g;
  if (c->sabotage) {
    bool broken = false;
    AIT_TRY(sabotaged(g, c, m, &broken));
    if (!broken) return ait_error(AIT_CODE_UNSUPPORTED, "nothing to break");
    from = m->owned;
    request.pipeline = "dce";
  }
  if (c->parts) AIT_TRY(build_parts(from, &request, m));
  else AIT_TRY(ait_plan_build(from, &request, NULL, &m->plan, &m->weights));
  ait_model_parts parts = {.allocator = ait_allocator_default(),
                           .portable = m->region,
                           .weights = ait_weight_store_provider(m->weights),
                           .plans = &m->plan,
                           .plan_count = 1,
                           .plans_only = true,
                           .cpu_mask = mask};
  AIT_TRY(ait_model_build(&parts, &m->model));
  ait_session_options so;
  ait_session_options_init(&so);
  so.threads = c->threads;
  return ait_session_create(m->model, &so, &m->session);
}

static void copy_value(const ait_value *v, ait_value *out) {
  *out = *v;
  if (v->kind != AIT_VALUE_TENSOR) return;
  ait_tensor t;
  gf_must(ait_tensor_cast(ait_allocator_default(), &v->as.tensor, v->as.tensor.dtype, &t), "copy");
  *out = ait_value_tensor(t);
}

static void call_all(machine *m, bool nudge, answers *out) {
  out->output_count = ait_model_output_count(m->model);
  for (int i = 0; i < CALLS; ++i) {
    ait_value results[GF_MAX_VALUES] = {{0}}; /* the session's */
    out->possible[i] = gf_inputs(m->region, i % GF_SETTINGS, nudge, out->inputs[i], &out->input_count);
    if (!out->possible[i]) continue;
    out->failed[i] = ait_session_run(m->session, out->inputs[i], out->input_count, results, out->output_count);
    for (size_t k = 0; out->failed[i] == AIT_OK && k < out->output_count; ++k) copy_value(&results[k], &out->outputs[i][k]);
    for (size_t k = 0; k < out->input_count; ++k) {
      ait_value changed = out->inputs[i][k];
      copy_value(&changed, &out->inputs[i][k]);
      ait_value_release(&changed);
    }
  }
}

static void release_answers(answers *a) {
  for (int i = 0; i < CALLS; ++i) {
    ait_status_free(a->failed[i]);
    for (size_t k = 0; k < GF_MAX_VALUES; ++k) ait_value_release(&a->outputs[i][k]);
    for (size_t k = 0; k < GF_MAX_INPUTS; ++k) ait_value_release(&a->inputs[i][k]);
  }
  free(a);
}

/* NULL with *error set: it was refused as a whole. */
static answers *run_graph(const ait_graph *g, const gf_check *c, bool nudge, ait_status *error) {
  machine m = {0};
  answers *a = calloc(1, sizeof *a);
  if (!a) gf_must(AIT_OOM(), "answers");
  *error = open_machine(g, c, &m);
  if (*error == AIT_OK) call_all(&m, nudge, a);
  close_machine(&m);
  if (*error == AIT_OK) return a;
  free(a);
  return NULL;
}

/* ---- comparing -----------------------------------------------------------------------------------------------------------------------*/
typedef struct oracle {
  answers *own, *exact, *nudged; /* in the graph's precision; in double; in double with nudged inputs */
  bool wild;
} oracle;

static double at(const ait_tensor *t, int64_t i) { /* contiguous: they are copies */
  if (t->dtype == AIT_F32) return (double)((const float *)t->data)[i];
  if (t->dtype == AIT_F64) return ((const double *)t->data)[i];
  const char *p = (const char *)t->data + i * (int64_t)ait_dtype_size(t->dtype);
  return ait_dtype_is_integer(t->dtype) ? (double)ait_element_i64(p, t->dtype) : ait_element_f64(p, t->dtype);
}

static bool alike(double a, double b) { return isnan(a) ? isnan(b) : isinf(a) ? a == b : isfinite(b); }

static double noise_of(const ait_tensor *own, const ait_tensor *exact, const ait_tensor *nudged, double *out_largest) {
  double noise = 0, largest = 0;
  for (int64_t i = 0, n = ait_tensor_count(own); i < n; ++i) {
    double e = at(exact, i), o = at(own, i), j = at(nudged, i);
    if (!isfinite(e) || !isfinite(o) || !isfinite(j)) continue;
    largest = fmax(largest, fabs(e));
  }
  for (int64_t i = 0, n = ait_tensor_count(own); i < n; ++i) {
    double e = at(exact, i), o = at(own, i), j = at(nudged, i);
    if (!isfinite(e) || !isfinite(o) || !isfinite(j)) continue;
    bool jumped = fabs(j - e) > 1e-2 * largest; /* an operator that jumps stands behind it: that is not rounding */
    noise = fmax(noise, fmax(fabs(o - e), jumped ? 0 : fabs(j - e)));
  }
  *out_largest = largest;
  return noise;
}

static bool same_elements(const ait_tensor *a, const ait_tensor *b) {
  for (int64_t i = 0, n = ait_tensor_count(a); i < n; ++i)
    if (at(a, i) != at(b, i)) return false;
  return true;
}

static bool compare_tensor(const oracle *o, const char *what, const ait_tensor *got, const ait_tensor *own, const ait_tensor *exact,
                           const ait_tensor *nudged, bool equal, gf_result *r) {
  char shape[2][96];
  ait_tensor_shape_text(got, shape[0], sizeof shape[0]);
  ait_tensor_shape_text(own, shape[1], sizeof shape[1]);
  if (got->dtype != own->dtype || !ait_tensor_same_shape(got, own)) {
    snprintf(r->reason, sizeof r->reason, "%s is %s %s, want %s %s", what, ait_dtype_name(got->dtype), shape[0], ait_dtype_name(own->dtype),
             shape[1]);
    return false;
  }
  bool whole = ait_dtype_is_integer(own->dtype);
  double largest, noise = noise_of(own, exact, nudged, &largest), atol = fmax(fmax(10 * noise, FLOOR * fmax(largest, 1)), 1e-30);
  if (whole && !equal && !same_elements(own, exact)) return true; /* rounding alone changes it */
  for (int64_t i = 0, n = ait_tensor_count(own); i < n; ++i) {
    double g = at(got, i), w = at(own, i), e = at(exact, i);
    bool same = (isnan(g) && isnan(w)) || g == w;
    if (same) continue;
    bool fine = false;
    if (!equal && !whole) {
      if (!alike(w, e) || !alike(at(nudged, i), e)) fine = true;
      else if (!isfinite(e)) fine = alike(e, g);
      else fine = isfinite(g) && fabs(g - e) <= atol + (o->wild ? 1e-3 * (1 + fabs(e)) : 0);
    }
    if (fine) continue;
    snprintf(r->reason, sizeof r->reason, "%s %s at %lld: %.9g, want %.9g (tolerance %.3g, noise %.3g)", what, shape[0], (long long)i, g,
             equal ? w : e, equal ? 0 : atol, noise);
    return false;
  }
  return true;
}

static bool compare_value(const oracle *o, const char *what, const ait_value *got, const ait_value *own, const ait_value *exact,
                          const ait_value *nudged, bool equal, gf_result *r) {
  if (own->kind != AIT_VALUE_TENSOR || exact->kind != AIT_VALUE_TENSOR || nudged->kind != AIT_VALUE_TENSOR) return true;
  if (got->kind == AIT_VALUE_TENSOR)
    return compare_tensor(o, what, &got->as.tensor, &own->as.tensor, &exact->as.tensor, &nudged->as.tensor, equal, r);
  snprintf(r->reason, sizeof r->reason, "%s is no tensor", what);
  return false;
}

static bool compare_call(const oracle *o, int i, const answers *got, bool equal, gf_result *r) {
  char what[64];
  if (!o->own->possible[i]) return true;
  if (o->own->failed[i] || o->exact->failed[i] || o->nudged->failed[i]) {
    if (got->failed[i] || !o->own->failed[i]) return true;
    snprintf(r->reason, sizeof r->reason, "call %d runs, but the reference says: %s", i, ait_status_message(o->own->failed[i]));
    return false;
  }
  if (got->failed[i]) {
    snprintf(r->reason, sizeof r->reason, "call %d: error: %s", i, ait_status_message(got->failed[i]));
    return false;
  }
  for (size_t k = 0; k < got->output_count; ++k) {
    snprintf(what, sizeof what, "call %d output %zu", i, k);
    if (!compare_value(o, what, &got->outputs[i][k], &o->own->outputs[i][k], &o->exact->outputs[i][k], &o->nudged->outputs[i][k], equal, r))
      return false;
  }
  for (size_t k = 0; k < got->input_count; ++k) {
    snprintf(what, sizeof what, "call %d input %zu after it", i, k);
    if (!compare_value(o, what, &got->inputs[i][k], &o->own->inputs[i][k], &o->exact->inputs[i][k], &o->nudged->inputs[i][k], equal, r))
      return false;
  }
  return true;
}

static bool unsupported(ait_status status) { return ait_status_code(status) == AIT_CODE_UNSUPPORTED; }

/* The first setting comes twice: without state the same call has the same bits. */
static bool compare_repeat(const ait_graph *g, const answers *got, gf_result *r) {
  char what[64];
  for (size_t i = 0; i < g->input_count; ++i)
    if (g->inputs[i].mutated) return true;
  if (!got->possible[0] || got->failed[0] || got->failed[CALLS - 1]) return true;
  for (size_t k = 0; k < got->output_count; ++k) {
    const ait_value *first = &got->outputs[0][k], *again = &got->outputs[CALLS - 1][k];
    oracle unused = {0};
    snprintf(what, sizeof what, "the same call again, output %zu", k);
    if (!compare_value(&unused, what, again, first, first, first, true, r)) return false;
  }
  return true;
}

/* The same plan with another number of threads. */
static bool compare_threads(const ait_graph *g, const gf_check *c, const answers *got, gf_result *r) {
  gf_check other = *c;
  ait_status error;
  other.threads = c->other_threads;
  answers *a = run_graph(g, &other, false, &error);
  if (!a) {
    snprintf(r->reason, sizeof r->reason, "with %d threads: %s", (int)other.threads, ait_status_message(error));
    ait_status_free(error);
    return false;
  }
  oracle same = {.own = a, .exact = a, .nudged = a};
  bool equal = true;
  for (int i = 0; i < CALLS && equal; ++i) equal = compare_call(&same, i, got, true, r);
  release_answers(a);
  return equal;
}

static gf_result run_check(const ait_graph *g, const oracle *o, const gf_check *c) {
  gf_result r = {.verdict = GF_PASS};
  ait_status error;
  snprintf(r.check, sizeof r.check, "%s", c->name);
  answers *got = run_graph(g, c, false, &error);
  if (!got) {
    r.verdict = unsupported(error) ? GF_DECLINED : GF_FAILED;
    snprintf(r.reason, sizeof r.reason, "%s", ait_status_message(error));
    ait_status_free(error);
    return r;
  }
  for (int i = 0; i < CALLS && r.verdict == GF_PASS; ++i)
    if (!compare_call(o, i, got, c->equal, &r)) r.verdict = GF_FAILED;
  if (r.verdict == GF_PASS && !compare_repeat(g, got, &r)) r.verdict = GF_FAILED;
  if (r.verdict == GF_PASS && c->other_threads && !compare_threads(g, c, got, &r)) r.verdict = GF_FAILED;
  release_answers(got);
  return r;
}

/* ---- text ----------------------------------------------------------------------------------------------------------------------------*/
static gf_result check_text(const ait_graph *g) {
  gf_result r = {.verdict = GF_PASS, .check = "text"};
  ait_text first, second;
  ait_graph *back = NULL;
  ait_text_init(&first, ait_allocator_default());
  ait_text_init(&second, ait_allocator_default());
  ait_status status = ait_graph_print(g, &first);
  if (status == AIT_OK) status = ait_graph_parse(ait_allocator_default(), first.data, first.length, &back);
  if (status == AIT_OK) status = ait_graph_verify(back);
  if (status == AIT_OK) status = ait_graph_print(back, &second);
  if (status != AIT_OK || strcmp(first.data, second.data) != 0) {
    r.verdict = GF_FAILED;
    snprintf(r.reason, sizeof r.reason, "%s", status ? ait_status_message(status) : "printed again it is other text");
  }
  ait_status_free(status);
  ait_graph_destroy(back);
  ait_text_deinit(&first);
  ait_text_deinit(&second);
  return r;
}

/* ---- all of them ---------------------------------------------------------------------------------------------------------------------*/
static const gf_check own_precision = {.name = "reference", .backend = "reference", .threads = 1};
static const gf_check in_double = {.name = "reference fp64", .backend = "reference", .knobs = "precision=fp64", .threads = 1};

static gf_result invalid(ait_status error, const char *what) {
  gf_result r = {.verdict = GF_INVALID};
  snprintf(r.check, sizeof r.check, "%s", what);
  snprintf(r.reason, sizeof r.reason, "%s", error ? ait_status_message(error) : "no call is possible");
  ait_status_free(error);
  return r;
}

static gf_result make_oracle(const ait_graph *g, oracle *o) {
  gf_result r = {.verdict = GF_PASS};
  ait_status error = ait_graph_verify(g);
  o->wild = g->name && strstr(g->name, "wild") != NULL;
  if (error != AIT_OK) return invalid(error, "verifier");
  if (!(o->own = run_graph(g, &own_precision, false, &error))) return invalid(error, "reference");
  if (!(o->exact = run_graph(g, &in_double, false, &error))) return invalid(error, "reference fp64");
  ait_graph *nudged = gf_clone(g);
  gf_fill_weights(nudged, true);
  o->nudged = run_graph(nudged, &in_double, true, &error);
  ait_graph_destroy(nudged);
  if (!o->nudged) return invalid(error, "reference nudged");
  for (int i = 0; i < CALLS; ++i)
    if (o->own->possible[i] && !o->own->failed[i]) return r;
  for (int i = 0; i < CALLS; ++i)
    if (o->own->failed[i]) {
      r = invalid(NULL, "reference");
      snprintf(r.reason, sizeof r.reason, "%s", ait_status_message(o->own->failed[i]));
      return r;
    }
  return invalid(NULL, "reference");
}

gf_result gf_examine(const ait_graph *g, const char *only, const gf_check *broken, gf_report_fn report, void *ctx) {
  oracle o = {0};
  gf_result r = make_oracle(g, &o);
  if (r.verdict == GF_PASS && (!only || !strcmp(only, "text"))) r = check_text(g);
  for (size_t i = 0; (r.verdict == GF_PASS || r.verdict == GF_DECLINED) && !broken && i < gf_check_count(); ++i) {
    gf_check c = gf_check_at(i);
    if (only && strcmp(only, c.name)) continue;
    r = run_check(g, &o, &c);
    if (report) report(ctx, &c, &r);
  }
  if (r.verdict == GF_PASS && broken) r = run_check(g, &o, broken);
  if (o.own) release_answers(o.own);
  if (o.exact) release_answers(o.exact);
  if (o.nudged) release_answers(o.nudged);
  return r;
}

/* ---- apart ---------------------------------------------------------------------------------------------------------------------------*/
enum { SECONDS_LIMIT = 60 };

gf_result gf_examine_apart(const ait_graph *g, const char *only, const gf_check *broken) {
  gf_result r = {.verdict = GF_CRASHED};
  int pipes[2], state = 0;
  if (pipe(pipes)) gf_must(ait_error(AIT_CODE_IO, "no pipe"), "child");
  fflush(stdout);
  fflush(stderr);
  pid_t child = fork();
  if (child == 0) {
    static const int signals[] = {SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGILL}; /* not to a test framework's handlers */
    for (size_t i = 0; i < AIT_COUNT(signals); ++i) signal(signals[i], SIG_DFL);
    close(pipes[0]);
    alarm(SECONDS_LIMIT);
    r = gf_examine(g, only, broken, NULL, NULL);
    ssize_t wrote = write(pipes[1], &r, sizeof r);
    _exit(wrote == sizeof r ? 0 : 1);
  }
  close(pipes[1]);
  gf_result from_child;
  bool whole = child > 0 && read(pipes[0], &from_child, sizeof from_child) == (ssize_t)sizeof from_child;
  close(pipes[0]);
  if (child > 0) waitpid(child, &state, 0);
  if (whole) return from_child;
  snprintf(r.check, sizeof r.check, "%s", only ? only : broken ? broken->name : "?");
  if (WIFSIGNALED(state))
    snprintf(r.reason, sizeof r.reason, "%s", WTERMSIG(state) == SIGALRM ? "takes too long" : strsignal(WTERMSIG(state)));
  else snprintf(r.reason, sizeof r.reason, "ended with %d", WEXITSTATUS(state));
  return r;
}
