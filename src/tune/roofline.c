/* Three small models on the native backend: a matrix product that is bound by arithmetic, and a stream that fits in the caches or does not.
 * What ait's own kernels reach is the roof that a plan of ait can be held against; no plan is promised more than that. */
#include "tune/roofline.h"
#include "tune/put_json.h"
#include "tune/tune.h"
#include <stdio.h>

static const uint64_t smallest_stream = 32 << 20, largest_stream = 256 << 20;

typedef struct probe {
  ait_graph *graph;
  ait_region *region;
  ait_plan plan;
  ait_weight_store *weights;
  ait_model *model;
  ait_session *session;
  ait_tensor input;
} probe;

static void probe_close(probe *p) {
  ait_session_destroy(p->session);
  ait_model_release(p->model);
  if (p->plan.steps) ait_plan_deinit(&p->plan);
  ait_weight_store_release(p->weights);
  ait_graph_region_destroy(ait_allocator_default(), p->region);
  ait_graph_destroy(p->graph);
  ait_tensor_release(&p->input);
}

static void fill(ait_tensor *t) {
  float *x = t->data;
  for (int64_t i = 0, n = ait_tensor_count(t); i < n; ++i) x[i] = (float)(i % 17) * 0.0625f - 0.5f;
}

/* The weight "w" of the product. */
static ait_status add_weight(ait_graph *g, int64_t size) {
  ait_tensor t;
  ait_weight w = {.name = "w", .dtype = AIT_F32, .rank = 2, .shape = {size, size}, .strides = {size, 1}};
  AIT_TRY(ait_weight_store_create(ait_allocator_default(), &g->weights));
  AIT_TRY(ait_tensor_create(ait_allocator_default(), AIT_F32, 2, w.shape, &t));
  fill(&t);
  ait_status status = ait_weight_store_add_storage(g->weights, ait_storage_retain(t.storage), &w.storage);
  if (status == AIT_OK) status = ait_weight_store_add(g->weights, &w);
  ait_tensor_release(&t);
  return status;
}

static ait_status probe_open(const char *text, int64_t weight, int32_t threads, uint64_t cpu_mask, int32_t rank, const int64_t *shape,
                             probe *p) {
  ait_allocator a = ait_allocator_default();
  *p = (probe){0};
  AIT_TRY(ait_graph_parse(a, text, strlen(text), &p->graph));
  if (weight) AIT_TRY(add_weight(p->graph, weight));
  AIT_TRY(ait_graph_region(p->graph, a, &p->region));
  ait_build_request request = {.allocator = a, .backend = ait_backend_find("native"), .cpu_mask = cpu_mask};
  if (!request.backend) return ait_error(AIT_CODE_NOT_FOUND, "there is no backend 'native'");
  AIT_TRY(ait_plan_build(p->graph, &request, NULL, &p->plan, &p->weights));
  AIT_TRY(ait_model_create(a, p->region, p->weights ? ait_weight_store_provider(p->weights) : (ait_weights){0}, &p->plan, NULL, NULL,
                           &p->model));
  AIT_TRY(ait_tensor_create(a, AIT_F32, rank, shape, &p->input));
  fill(&p->input);
  ait_session_options so;
  ait_session_options_init(&so);
  so.threads = threads;
  return ait_session_create(p->model, &so, &p->session);
}

/* The shortest of the calls: for `seconds`, and on a busy machine longer, until half of the time has brought nothing shorter. */
static ait_status shortest(probe *p, double seconds, double *out) {
  ait_value input = {.kind = AIT_VALUE_TENSOR, .as.tensor = p->input}, output = {0};
  double begin = ait_clock_seconds(), improved = begin, now = begin;
  *out = 0;
  for (int i = 0; i < 4 || now - begin < seconds || (now - improved < (now - begin) / 2 && now - begin < 4 * seconds); ++i) {
    double start = ait_clock_seconds();
    AIT_TRY(ait_session_run(p->session, &input, 1, &output, 1));
    now = ait_clock_seconds();
    double took = now - start;
    if (i == 0 || (*out > 0 && took >= *out)) continue; /* the first call plans its memory */
    if (took < 0.98 * *out || *out == 0) improved = now;
    *out = took;
  }
  return AIT_OK;
}

/* [rows, size] times [size, size]; raises *flops_per_s. */
static ait_status measure_product(int64_t rows, int64_t size, int32_t threads, uint64_t cpu_mask, double seconds, double *flops_per_s) {
  char text[400];
  int64_t shape[2] = {rows, size};
  snprintf(text, sizeof text,
           "graph \"product\" raw\ninput %%x: float32[%lld, %lld] user 0 \"x\"\ninput %%w: float32[%lld, %lld] parameter -1 \"w\"\n"
           "%%y: float32[%lld, %lld] = aten.mm(%%x, %%w)\noutput user 0 \"y\" = %%y\n",
           (long long)rows, (long long)size, (long long)size, (long long)size, (long long)rows, (long long)size);
  probe p;
  double best = 0;
  ait_status status = probe_open(text, size, threads, cpu_mask, 2, shape, &p);
  if (status == AIT_OK) status = shortest(&p, seconds, &best);
  double reached = best > 0 ? 2.0 * (double)rows * (double)size * (double)size / best : 0;
  if (status == AIT_OK && reached > *flops_per_s) *flops_per_s = reached;
  probe_close(&p);
  return status;
}

/* `bytes` are read and written together. */
static ait_status measure_stream(uint64_t bytes, int32_t threads, uint64_t cpu_mask, double seconds, double *out_bytes_per_s) {
  char text[256];
  int64_t n = (int64_t)(bytes / 8);
  snprintf(text, sizeof text,
           "graph \"stream\" raw\ninput %%x: float32[%lld] user 0 \"x\"\n%%y: float32[%lld] = aten.neg(%%x)\noutput user 0 \"y\" = %%y\n",
           (long long)n, (long long)n);
  probe p;
  double best = 0;
  ait_status status = probe_open(text, 0, threads, cpu_mask, 1, &n, &p);
  if (status == AIT_OK) status = shortest(&p, seconds, &best);
  if (status == AIT_OK && best > 0) *out_bytes_per_s = 8.0 * (double)n / best;
  probe_close(&p);
  return status;
}

ait_status ait_roofline_measure(int32_t threads, uint64_t cpu_mask, double seconds, ait_roofline *out) {
  ait_cpu_caches caches = ait_cpu_cache_sizes();
  uint64_t stream = 4 * (uint64_t)caches.l3;
  *out = (ait_roofline){.threads = threads, .cache_bytes = caches.l2 / 2 * (uint64_t)threads};
  out->memory_bytes = stream < smallest_stream ? smallest_stream : stream > largest_stream ? largest_stream : stream;
  static const int64_t sizes[] = {192, 384, 768}; /* which of them fits the caches best, the machine knows */
  for (size_t i = 0; i < AIT_COUNT(sizes); ++i)
    AIT_TRY(measure_product(sizes[i] * threads, sizes[i], threads, cpu_mask, seconds / 6, &out->flops_per_s));
  AIT_TRY(measure_stream(out->cache_bytes, threads, cpu_mask, seconds / 4, &out->cache_bytes_per_s));
  return measure_stream(out->memory_bytes, threads, cpu_mask, seconds / 4, &out->memory_bytes_per_s);
}

void ait_roofline_put(ait_text *t, const ait_roofline *r) {
  bool first = true;
  ait_text_printf(t, "{");
  ait_put_int(t, &first, "threads", r->threads);
  ait_put_double(t, &first, "flops_per_s", r->flops_per_s);
  ait_put_double(t, &first, "cache_bytes_per_s", r->cache_bytes_per_s);
  ait_put_int(t, &first, "cache_bytes", (int64_t)r->cache_bytes);
  ait_put_double(t, &first, "memory_bytes_per_s", r->memory_bytes_per_s);
  ait_put_int(t, &first, "memory_bytes", (int64_t)r->memory_bytes);
  ait_text_printf(t, "}");
}

ait_status ait_roofline_json(int32_t threads, double seconds, char **out) {
  ait_roofline r;
  ait_text t;
  *out = NULL;
  AIT_TRY(ait_roofline_measure(threads > 0 ? threads : ait_cpu_count(), UINT64_MAX, seconds > 0 ? seconds : 0.5, &r));
  ait_text_init(&t, ait_allocator_default());
  ait_roofline_put(&t, &r);
  return ait_put_finish(&t, out);
}
