/* One model on ait and on ONNX Runtime, timed in turn in one process, on the same inputs:
 *   ort_bench MODEL.pt2|MODEL.ait MODEL.onnx INPUTS.npz LIBONNXRUNTIME.so THREADS [SECONDS]
 * Prints both medians, the ratio with its 95 % interval, and the largest difference of the first output. bench/README.md says how the ONNX
 * files are made. ONNX Runtime's functions are taken from its C table by position (the table is append-only). */
#include <ait/ait.h>
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- ONNX Runtime ----------------------------------------------------------------------------------------------------------------*/
enum { ORT_VERSION = 18, ORT_FLOAT = 1, ORT_INT64 = 7, ORT_BOOL = 9, MAX_PORTS = 16, MAX_ROUNDS = 400 };
enum {
  CREATE_ENV = 3,
  DISABLE_TELEMETRY = 6,
  CREATE_SESSION = 7,
  RUN = 9,
  CREATE_OPTIONS = 10,
  SET_INTRA_THREADS = 24,
  INPUT_COUNT = 30,
  OUTPUT_COUNT = 31,
  INPUT_NAME = 36,
  OUTPUT_NAME = 37,
  CREATE_TENSOR = 49,
  TENSOR_DATA = 51,
  CPU_MEMORY = 69,
  DEFAULT_ALLOCATOR = 78,
  RELEASE_VALUE = 96,
  ERROR_MESSAGE = 2
};

typedef struct ort {
  void *const *table;
  void *env, *session, *memory, *allocator;
  char *in_names[MAX_PORTS], *out_names[MAX_PORTS];
  void *in[MAX_PORTS], *out[MAX_PORTS];
  size_t in_count, out_count;
} ort;

static void check(const ort *o, void *status) {
  if (!status) return;
  fprintf(stderr, "ONNX Runtime: %s\n", ((const char *(*)(const void *))o->table[ERROR_MESSAGE])(status));
  exit(1);
}
#define CALL(o, position, types, ...) check((o), ((void *(*)types)(o)->table[position])(__VA_ARGS__))

static void ort_open(ort *o, const char *library, const char *model, int threads) {
  struct base {
    void *const *(*get_api)(uint32_t);
    const char *(*version)(void);
  };
  void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  if (!handle) fprintf(stderr, "%s\n", dlerror()), exit(1);
  const struct base *(*get_base)(void);
  *(void **)&get_base = dlsym(handle, "OrtGetApiBase");
  o->table = get_base()->get_api(ORT_VERSION);
  void *options;
  CALL(o, CREATE_ENV, (int, const char *, void **), 3, "bench", &o->env);
  CALL(o, DISABLE_TELEMETRY, (void *), o->env);
  CALL(o, CREATE_OPTIONS, (void **), &options);
  CALL(o, SET_INTRA_THREADS, (void *, int), options, threads);
  CALL(o, CREATE_SESSION, (void *, const char *, void *, void **), o->env, model, options, &o->session);
  CALL(o, DEFAULT_ALLOCATOR, (void **), &o->allocator);
  CALL(o, CPU_MEMORY, (int, int, void **), 0, 0, &o->memory);
  CALL(o, INPUT_COUNT, (void *, size_t *), o->session, &o->in_count);
  CALL(o, OUTPUT_COUNT, (void *, size_t *), o->session, &o->out_count);
  if (o->in_count > MAX_PORTS || o->out_count > MAX_PORTS) fprintf(stderr, "too many inputs or outputs\n"), exit(1);
  for (size_t i = 0; i < o->in_count; ++i)
    CALL(o, INPUT_NAME, (void *, size_t, void *, char **), o->session, i, o->allocator, &o->in_names[i]);
  for (size_t i = 0; i < o->out_count; ++i)
    CALL(o, OUTPUT_NAME, (void *, size_t, void *, char **), o->session, i, o->allocator, &o->out_names[i]);
  printf("ONNX Runtime %s", get_base()->version());
}

static void ort_bind(ort *o, size_t i, const ait_tensor *t) {
  int type = t->dtype == AIT_F32 ? ORT_FLOAT : t->dtype == AIT_I64 ? ORT_INT64 : ORT_BOOL;
  CALL(o, CREATE_TENSOR, (void *, void *, size_t, const int64_t *, size_t, int, void **), o->memory, t->data,
       (size_t)ait_tensor_count(t) * ait_dtype_size(t->dtype), t->shape, (size_t)t->rank, type, &o->in[i]);
}

static void ort_run(ort *o) {
  for (size_t i = 0; i < o->out_count; ++i) {
    if (o->out[i]) ((void (*)(void *))o->table[RELEASE_VALUE])(o->out[i]);
    o->out[i] = NULL;
  }
  CALL(o, RUN, (void *, void *, const char *const *, void *const *, size_t, const char *const *, size_t, void **), o->session, NULL,
       (const char *const *)o->in_names, o->in, o->in_count, (const char *const *)o->out_names, o->out_count, o->out);
}

/* ---- ait -------------------------------------------------------------------------------------------------------------------------*/
static void must(ait_status status) {
  if (status == AIT_OK) return;
  fprintf(stderr, "ait: %s\n", ait_status_message(status));
  exit(1);
}

typedef struct own {
  ait_model *model;
  ait_session *session;
  ait_value in[MAX_PORTS], out[MAX_PORTS];
  size_t in_count, out_count;
} own;

static void own_open(own *a, const char *model, const ait_data *data, int threads) {
  ait_load_options load;
  ait_session_options options;
  ait_load_options_init(&load);
  load.backend = "native";
  must(ait_model_import(model, &load, &a->model));
  ait_session_options_init(&options);
  options.threads = threads;
  must(ait_session_create(a->model, &options, &a->session));
  a->in_count = ait_model_input_count(a->model);
  a->out_count = ait_model_output_count(a->model);
  if (a->in_count > MAX_PORTS || a->out_count > MAX_PORTS) fprintf(stderr, "too many inputs or outputs\n"), exit(1);
  for (size_t i = 0; i < a->in_count; ++i) {
    ait_port port;
    must(ait_model_input(a->model, i, &port));
    const ait_tensor *t = ait_data_find(data, port.name);
    if (!t) t = ait_data_tensor(data, i);
    a->in[i] = (ait_value){.kind = AIT_VALUE_TENSOR, .as.tensor = *t};
  }
}

static void own_run(own *a) {
  for (size_t i = 0; i < a->out_count; ++i) a->out[i] = (ait_value){.kind = AIT_VALUE_NONE};
  must(ait_session_run(a->session, a->in, a->in_count, a->out, a->out_count));
}

/* ---- in turn ---------------------------------------------------------------------------------------------------------------------*/
static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}
static int ascending(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}
/* The other library's workers spin for a while after its call: they are left to go to sleep first, and an untimed call wakes one's own. */
static double time_of(void (*run)(void *), void *what, int inner) {
  struct timespec settle = {0, 30000000};
  nanosleep(&settle, NULL);
  run(what);
  double start = now();
  for (int i = 0; i < inner; ++i) run(what);
  return (now() - start) / inner;
}
static void run_own(void *a) { own_run(a); }
static void run_ort(void *o) { ort_run(o); }

int main(int argc, char **argv) {
  if (argc < 6) return fprintf(stderr, "usage: ort_bench MODEL MODEL.onnx INPUTS.npz LIBONNXRUNTIME THREADS [SECONDS]\n"), 2;
  int threads = atoi(argv[5]);
  double seconds = argc > 6 ? atof(argv[6]) : 5;
  static own a;
  static ort o;
  ait_data *data;
  must(ait_data_load(ait_allocator_default(), argv[3], &data));
  ort_open(&o, argv[4], argv[2], threads);
  own_open(&a, argv[1], data, threads);
  for (size_t i = 0; i < o.in_count; ++i) {
    const ait_tensor *t = ait_data_find(data, o.in_names[i]);
    ort_bind(&o, i, t ? t : ait_data_tensor(data, i));
  }
  double first[2] = {0};
  for (int i = 0; i < 3; ++i) first[0] = time_of(run_own, &a, 1), first[1] = time_of(run_ort, &o, 1);
  float *want;
  CALL(&o, TENSOR_DATA, (void *, void **), o.out[0], (void **)&want);
  double worst = 0;
  for (int64_t i = 0, n = ait_tensor_count(&a.out[0].as.tensor); i < n; ++i)
    worst = fmax(worst, fabs((double)((float *)a.out[0].as.tensor.data)[i] - (double)want[i]));
  int inner[2] = {first[0] < 200e-6 ? (int)(200e-6 / first[0]) + 1 : 1, first[1] < 200e-6 ? (int)(200e-6 / first[1]) + 1 : 1}, rounds = 0;
  static double t[2][MAX_ROUNDS], ratio[MAX_ROUNDS];
  for (double end = now() + seconds; rounds < MAX_ROUNDS && (now() < end || rounds < 5); ++rounds) {
    t[0][rounds] = time_of(run_own, &a, inner[0]);
    t[1][rounds] = time_of(run_ort, &o, inner[1]);
    ratio[rounds] = t[0][rounds] / t[1][rounds];
  }
  qsort(t[0], (size_t)rounds, sizeof **t, ascending);
  qsort(t[1], (size_t)rounds, sizeof **t, ascending);
  qsort(ratio, (size_t)rounds, sizeof *ratio, ascending);
  int half = (int)(0.98 * sqrt(rounds)), low = rounds / 2 - half, high = rounds / 2 + half;
  printf(", %d threads, %d rounds: ait %.4g ms (p10 %.4g), ort %.4g ms (p10 %.4g), ait/ort %.3f (%.3f-%.3f), max diff %.2g\n", threads,
         rounds, 1e3 * t[0][rounds / 2], 1e3 * t[0][rounds / 10], 1e3 * t[1][rounds / 2], 1e3 * t[1][rounds / 10], ratio[rounds / 2],
         ratio[low < 0 ? 0 : low], ratio[high >= rounds ? rounds - 1 : high], worst);
  return 0;
}
