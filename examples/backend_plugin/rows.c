/* A backend as a plugin: chains of `x * w`, `x + w` and `relu` over the rows of one float32 input, w a weight as long as a row.
 *
 *   cc -O3 -shared -fPIC rows.c -o rows.so $(pkg-config --cflags ait-rt)
 *   ait tune model.pt2 --data samples.npz --plugin ./rows.so -o model.ait
 *
 * It includes the public headers only, and each function of the table stands in the order in which it is called. */
#include <ait/backend.h>
#include <stdio.h>
#include <string.h>

/* begin blob */
/* What compile() makes and load() reads. Little-endian, no pointers; a version of its own, since files outlive plugins. */
enum { ROWS_VERSION = 1, MAX_OPS = 512 };
typedef enum rows_kind { ROWS_MUL, ROWS_ADD, ROWS_RELU } rows_kind;

typedef struct rows_header {
  char magic[8]; /* "aitrows" */
  uint32_t version, op_count;
  uint32_t input, zero; /* which of the region's inputs is x */
  int64_t width;        /* of a row */
  uint32_t kinds[MAX_OPS];
} rows_header; /* then op_count rows of `width` floats: the weights, zeros for relu */
/* end blob */

/* begin supports */
static ait_status decline(ait_support *out, uint32_t node, const char *code, const char *reason) {
  out->supported = false;
  if (out->note_count == out->note_capacity) return AIT_OK;
  ait_support_note *note = &out->notes[out->note_count++];
  *note = (ait_support_note){.node = node, .code = code};
  snprintf(note->reason, sizeof note->reason, "%s", reason);
  return AIT_OK;
}

/* What a plugin gives as `version` is part of what a trial is recorded under: raise it with every change. */
static void rows_probe(ait_probe *out) {
  out->available = true;
  snprintf(out->version, sizeof out->version, "1");
  snprintf(out->detail, sizeof out->detail, "an example");
}

static bool is_value(const ait_arg *arg, uint32_t value) { return arg->kind == AIT_ARG_VALUE && arg->as.value == value; }

static const ait_region_input *input_of(const ait_region *r, uint32_t value) {
  for (uint32_t i = 0; i < r->input_count; ++i)
    if (r->inputs[i].value == value) return &r->inputs[i];
  return NULL;
}

/* The weight among a node's operands when the other one is `value`; NULL: it is no such node. */
static const ait_region_input *weight_of(const ait_region *r, const ait_region_node *n, uint32_t value) {
  for (uint32_t k = 0; k < 2 && n->arg_count >= 2; ++k) {
    const ait_arg *other = &n->args[1 - k];
    if (!is_value(&n->args[k], value) || other->kind != AIT_ARG_VALUE) continue;
    const ait_region_input *in = input_of(r, other->as.value);
    if (in && in->kind != AIT_INPUT_USER && !in->mutated) return in;
  }
  return NULL;
}

/* The chain's operators, and the weight of each. Errors of the region are reasons in out_why, never failures. */
typedef struct chain {
  uint32_t count, input;
  rows_kind kinds[MAX_OPS];
  const ait_region_input *weights[MAX_OPS];
  int64_t width;
} chain;

static const char *find_chain(const ait_region *r, chain *out, uint32_t *out_node) {
  const ait_region_input *x = NULL;
  *out_node = AIT_NO_INDEX;
  out->count = 0;
  for (uint32_t i = 0; i < r->input_count; ++i) {
    if (r->inputs[i].kind != AIT_INPUT_USER) continue;
    if (x || r->inputs[i].mutated) return "takes one input, and does not change it";
    x = &r->inputs[i];
    out->input = i;
  }
  if (!x || x->value == AIT_NO_INDEX || r->output_count != 1 || r->outputs[0].kind != AIT_OUTPUT_USER)
    return "takes one input, gives one output";
  const ait_region_value *v = &r->values[x->value];
  if (v->type != AIT_TYPE_TENSOR || v->dtype != AIT_F32 || v->rank < 1) return "takes float32 only";
  const ait_dim_expr *last = &r->dims[v->shape[v->rank - 1]];
  if (last->op != AIT_DIM_CONST || last->value < 1) return "the length of a row must be known";
  out->width = last->value;
  uint32_t value = x->value;
  for (uint32_t i = 0; i < r->node_count; ++i) {
    const ait_region_node *n = &r->nodes[i];
    *out_node = i;
    if (out->count == MAX_OPS || n->result_count != 1) return "has no room for so many operators";
    bool mul = strcmp(n->op, "mul") == 0, add = strcmp(n->op, "add") == 0,
         relu = strcmp(n->op, "relu") == 0 && is_value(&n->args[0], value);
    const ait_region_input *w = mul || add ? weight_of(r, n, value) : NULL;
    if (w && (r->values[w->value].dtype != AIT_F32 || r->values[w->value].rank != 1 ||
              r->dims[r->values[w->value].shape[0]].op != AIT_DIM_CONST || r->dims[r->values[w->value].shape[0]].value != out->width))
      w = NULL;
    if (!relu && !w) return "has mul and add with a weight as long as a row, and relu";
    out->kinds[out->count] = mul ? ROWS_MUL : add ? ROWS_ADD : ROWS_RELU;
    out->weights[out->count++] = w;
    value = n->results[0];
  }
  *out_node = AIT_NO_INDEX;
  if (!is_value(&r->outputs[0].arg, value)) return "gives the last result of the chain only";
  return NULL;
}

static ait_status rows_supports(const ait_region *region, ait_support *out) {
  chain c;
  uint32_t node;
  const char *why = find_chain(region, &c, &node);
  out->supported = true;
  return why ? decline(out, node, node == AIT_NO_INDEX ? "no-chain-of-rows" : "op-not-in-rows", why) : AIT_OK;
}
/* end supports */

/* begin compile */
static ait_status copy_weight(const ait_weights *weights, const char *name, int64_t width, float *out) {
  ait_tensor t;
  ait_status status = weights->get(weights->ctx, name, &t);
  if (status) return status;
  if (t.dtype != AIT_F32 || t.rank != 1 || t.shape[0] != width)
    return ait_error(AIT_CODE_INVALID_MODEL, "weight '%s' has another form", name);
  for (int64_t i = 0; i < width; ++i) out[i] = ((const float *)t.data)[i * t.strides[0]];
  return NULL;
}

static ait_status rows_compile(const ait_region *region, const ait_compile_options *options, ait_blob *out) {
  chain c;
  uint32_t node;
  const char *why = find_chain(region, &c, &node);
  if (why) return ait_error(AIT_CODE_UNSUPPORTED, "%s", why);
  if (c.width > (1 << 24)) return ait_error(AIT_CODE_LIMIT, "rows of %lld numbers", (long long)c.width);
  size_t size = sizeof(rows_header) + c.count * (size_t)c.width * sizeof(float);
  char *data = options->allocator.alloc(options->allocator.ctx, size, 64);
  if (!data) return ait_error(AIT_CODE_OUT_OF_MEMORY, "out of memory");
  memset(data, 0, size);
  rows_header *h = (rows_header *)data;
  *h = (rows_header){.magic = "aitrows", .version = ROWS_VERSION, .op_count = c.count, .input = c.input, .width = c.width};
  ait_status status = NULL;
  for (uint32_t i = 0; !status && i < c.count; ++i) {
    h->kinds[i] = c.kinds[i];
    if (c.weights[i]) status = copy_weight(&options->weights, c.weights[i]->name, c.width, (float *)(h + 1) + i * c.width);
  }
  if (status) options->allocator.free(options->allocator.ctx, data, size);
  else *out = (ait_blob){.data = data, .size = size};
  return status;
}
/* end compile */

/* begin load */
typedef struct rows_loaded {
  ait_allocator allocator;
  const rows_header *h; /* in the blob, which outlives this */
} rows_loaded;

/* The bytes may come from anywhere: everything that run() goes by is checked here. */
static ait_status rows_load(const ait_load_context *context, void **out_loaded) {
  const rows_header *h = context->blob;
  if (context->blob_size < sizeof *h || memcmp(h->magic, "aitrows", 8) != 0) return ait_error(AIT_CODE_INVALID_MODEL, "no blob of rows");
  if (h->version != ROWS_VERSION) return ait_error(AIT_CODE_INCOMPATIBLE, "blob of version %u", h->version);
  bool good = h->op_count <= MAX_OPS && h->width >= 1 && h->width <= (1 << 24);
  for (uint32_t i = 0; good && i < h->op_count; ++i) good = h->kinds[i] <= ROWS_RELU;
  if (!good || context->blob_size != sizeof *h + h->op_count * (size_t)h->width * sizeof(float))
    return ait_error(AIT_CODE_INVALID_MODEL, "blob of rows is damaged");
  rows_loaded *l = context->allocator.alloc(context->allocator.ctx, sizeof *l, _Alignof(rows_loaded));
  if (!l) return ait_error(AIT_CODE_OUT_OF_MEMORY, "out of memory");
  *l = (rows_loaded){context->allocator, h};
  *out_loaded = l;
  return NULL;
}

static void rows_unload(void *loaded) {
  rows_loaded *l = loaded;
  if (l) l->allocator.free(l->allocator.ctx, l, sizeof *l);
}

/* One session's memory: here nothing but the result, kept until the next run. */
typedef struct rows_instance {
  const rows_loaded *loaded;
  ait_allocator allocator;
  float *result;
  size_t result_bytes;
} rows_instance;

static ait_status rows_instance_create(void *loaded, ait_allocator allocator, void **out_instance) {
  rows_instance *in = allocator.alloc(allocator.ctx, sizeof *in, _Alignof(rows_instance));
  if (!in) return ait_error(AIT_CODE_OUT_OF_MEMORY, "out of memory");
  *in = (rows_instance){.loaded = loaded, .allocator = allocator};
  *out_instance = in;
  return NULL;
}

static void rows_instance_destroy(void *instance) {
  rows_instance *in = instance;
  if (!in) return;
  if (in->result) in->allocator.free(in->allocator.ctx, in->result, in->result_bytes);
  in->allocator.free(in->allocator.ctx, in, sizeof *in);
}

static size_t rows_instance_bytes(const void *instance) { return ((const rows_instance *)instance)->result_bytes; }
/* end load */

/* begin run */
static void one_row(const rows_header *h, const float *x, int64_t stride, float *restrict y) {
  for (int64_t i = 0; i < h->width; ++i) y[i] = x[i * stride];
  for (uint32_t k = 0; k < h->op_count; ++k) {
    const float *restrict w = (const float *)(h + 1) + k * h->width;
    switch ((rows_kind)h->kinds[k]) {
      case ROWS_MUL:
        for (int64_t i = 0; i < h->width; ++i) y[i] *= w[i];
        break;
      case ROWS_ADD:
        for (int64_t i = 0; i < h->width; ++i) y[i] += w[i];
        break;
      case ROWS_RELU:
        for (int64_t i = 0; i < h->width; ++i) y[i] = y[i] < 0 ? 0 : y[i]; /* NaN stays */
        break;
    }
  }
}

/* Memory for the result: the caller's when it gave some, else the instance's own, which only grows. */
static ait_status make_room(rows_instance *in, const ait_tensor *x, size_t bytes, ait_value *out) {
  if (out->kind == AIT_VALUE_TENSOR) return NULL;
  if (bytes > in->result_bytes) {
    float *fresh = in->allocator.alloc(in->allocator.ctx, bytes, 64);
    if (!fresh) return ait_error(AIT_CODE_OUT_OF_MEMORY, "out of memory");
    if (in->result) in->allocator.free(in->allocator.ctx, in->result, in->result_bytes);
    in->result = fresh;
    in->result_bytes = bytes;
  }
  *out = (ait_value){.kind = AIT_VALUE_TENSOR, .as.tensor = ait_tensor_borrow(in->result, AIT_F32, x->rank, x->shape)};
  return NULL;
}

/* The tensor's rows one after the other, whatever its strides are. */
static ait_status rows_run(void *instance, const ait_run_context *context) {
  rows_instance *in = instance;
  const rows_header *h = in->loaded->h;
  const ait_tensor *x = &context->inputs[h->input].as.tensor;
  if (x->rank < 1 || x->shape[x->rank - 1] != h->width) return ait_error(AIT_CODE_INVALID_ARGUMENT, "rows of another length");
  int64_t rows = 1, index[AIT_MAX_RANK] = {0};
  for (int32_t d = 0; d + 1 < x->rank; ++d) rows *= x->shape[d];
  ait_status status = make_room(in, x, (size_t)(rows * h->width) * sizeof(float), &context->outputs[0]);
  if (status) return status;
  float *y = context->outputs[0].as.tensor.data;
  for (int64_t r = 0; r < rows; ++r, y += h->width) {
    int64_t offset = 0;
    for (int32_t d = 0; d + 1 < x->rank; ++d) offset += index[d] * x->strides[d];
    one_row(h, (const float *)x->data + offset, x->strides[x->rank - 1], y);
    for (int32_t d = x->rank - 2; d >= 0 && ++index[d] == x->shape[d]; --d) index[d] = 0;
  }
  return NULL;
}
/* end run */

/* begin table */
static const ait_knob rows_knobs[] = {{0}};

static const ait_backend rows = {
    .struct_size = sizeof(ait_backend),
    .abi_version = AIT_BACKEND_ABI,
    .name = "rows",
    .summary = "an example: mul, add and relu over rows",
    .knobs = rows_knobs,
    .probe = rows_probe,
    .supports = rows_supports,
    .compile = rows_compile,
    .load = rows_load,
    .instance_create = rows_instance_create,
    .run = rows_run,
    .instance_destroy = rows_instance_destroy,
    .unload = rows_unload,
    .instance_bytes = rows_instance_bytes,
};

AIT_API const ait_backend *ait_backend_query(uint32_t abi_version);
const ait_backend *ait_backend_query(uint32_t abi_version) { return abi_version == AIT_BACKEND_ABI ? &rows : NULL; }
/* end table */
