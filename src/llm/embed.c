/* Sentence embeddings: texts to ids with padding, one call of the model for several texts of like length, vectors out. */
#include "base/json.h"
#include "llm/text/unicode.h"
#include "runtime/runtime.h"
#include <ait/embed.h>
#include <ait/session.h>
#include <math.h>
#include <stdlib.h>

enum { MAX_PORTS = 8, DEFAULT_BATCH = 32, MAX_BATCH = 4096, PLAIN_MAX_LENGTH = 512 };

typedef enum role { ROLE_IDS, ROLE_MASK, ROLE_TYPES } role;

struct ait_embedder {
  ait_allocator allocator;
  ait_arena arena;
  ait_model *model;
  ait_session *session;
  const ait_tokenizer *tokenizer;
  ait_tokenizer *own; /* the file's; NULL: borrowed */
  ait_embedder_info info;
  role roles[MAX_PORTS];
  ait_dtype dtypes[MAX_PORTS];
  size_t inputs, outputs;
  int32_t batch;
  int64_t pad;
  bool masked, strip, lowercase, divides; /* masked: the model is told what is padding. divides: normalised here */
  void *rows[MAX_PORTS];                  /* room for one call */
  size_t room;                            /* elements of each */
  ait_value *results;
};

static const char *const pooling_names[] = {
    [AIT_POOL_DEFAULT] = "default", [AIT_POOL_CLS] = "cls",       [AIT_POOL_MEAN] = "mean", [AIT_POOL_MEAN_SQRT_LEN] = "mean_sqrt_len",
    [AIT_POOL_MAX] = "max",         [AIT_POOL_LAST] = "lasttoken"};
const char *ait_pooling_name(ait_pooling p) { return (unsigned)p < AIT_COUNT(pooling_names) ? pooling_names[p] : NULL; }

void ait_embedder_options_init(ait_embedder_options *o) {
  *o = (ait_embedder_options){.struct_size = sizeof *o, .allocator = ait_allocator_default(), .normalize = -1};
}

ait_embedder_info ait_embedder_describe(const ait_embedder *e) { return e->info; }

/* ---- what the model takes and gives --------------------------------------------------------------------------------------------------*/
static ait_status read_inputs(ait_embedder *e) {
  static const char *const names[] = {[ROLE_IDS] = "input_ids", [ROLE_MASK] = "attention_mask", [ROLE_TYPES] = "token_type_ids"};
  bool ids = false;
  e->inputs = ait_model_input_count(e->model);
  e->outputs = ait_model_output_count(e->model);
  if (e->inputs > MAX_PORTS || e->outputs < 1)
    return ait_error(AIT_CODE_UNSUPPORTED, "a model of %zu inputs and %zu outputs gives no embeddings", e->inputs, e->outputs);
  for (size_t i = 0; i < e->inputs; ++i) {
    ait_port port;
    size_t k = 0;
    AIT_TRY(ait_model_input(e->model, i, &port));
    while (k < AIT_COUNT(names) && strcmp(port.name, names[k])) ++k;
    bool fits = port.kind == AIT_VALUE_TENSOR && port.rank == 2 && (port.dtype == AIT_I64 || port.dtype == AIT_I32);
    if (k == AIT_COUNT(names) || !fits)
      return ait_error_hint(ait_error(AIT_CODE_UNSUPPORTED, "input '%s' is none that an encoder of texts has", port.name),
                            "input_ids, attention_mask and token_type_ids, integers [batch, length]");
    e->roles[i] = (role)k;
    e->dtypes[i] = port.dtype;
    ids |= k == ROLE_IDS;
    e->masked |= k == ROLE_MASK;
    e->info.token_types |= k == ROLE_TYPES;
  }
  return ids ? AIT_OK : ait_error(AIT_CODE_UNSUPPORTED, "no input is named 'input_ids'");
}

static ait_status read_output(ait_embedder *e, ait_pooling pooling) {
  ait_port port;
  AIT_TRY(ait_model_output(e->model, 0, &port));
  if (port.kind != AIT_VALUE_TENSOR || port.dtype != AIT_F32 || port.rank < 2 || port.rank > 3 ||
      port.shape[port.rank - 1].min != port.shape[port.rank - 1].max)
    return ait_error_hint(ait_error(AIT_CODE_UNSUPPORTED, "output '%s' holds no embeddings", port.name ? port.name : "0"),
                          "float32 [batch, size] or [batch, length, size], with a fixed size");
  e->info.size = port.shape[port.rank - 1].min;
  if (port.rank == 2 && pooling)
    return ait_error_hint(ait_error(AIT_CODE_INVALID_ARGUMENT, "pooling '%s': the graph pools itself", pooling_names[pooling]),
                          "export it with --pooling %s", pooling_names[pooling]);
  if (port.rank == 3) e->info.pooling = pooling ? pooling : AIT_POOL_MEAN;
  return AIT_OK;
}

/* ---- embed.json ----------------------------------------------------------------------------------------------------------------------*/
static bool flag(const ait_json *o, const char *key) {
  const ait_json *v = ait_json_get_kind(o, key, AIT_JSON_BOOL);
  return v && v->as.b;
}

static ait_status read_prompt(ait_embedder *e, const ait_json *root, const ait_embedder_options *o) {
  const ait_json *prompts = ait_json_get_kind(root, "prompts", AIT_JSON_OBJECT);
  const char *name = o->prompt_name ? o->prompt_name : ait_json_get_string(root, "default_prompt"), *text = o->prompt;
  if (!text && name && *name) {
    text = ait_json_get_string(prompts, name);
    if (!text) return ait_error(AIT_CODE_INVALID_ARGUMENT, "the file has no prompt '%s'", name);
  }
  const ait_json *include = ait_json_get_kind(root, "include_prompt", AIT_JSON_BOOL);
  if (text && *text && include && !include->as.b)
    return ait_error(AIT_CODE_UNSUPPORTED, "this model's pooling leaves the prompt out, which is not supported: no prompt can be used");
  e->info.prompt = ait_arena_strdup(&e->arena, text ? text : "", text ? strlen(text) : 0);
  return e->info.prompt ? AIT_OK : AIT_OOM();
}

static ait_status read_section(ait_embedder *e, const ait_embedder_options *o) {
  size_t size;
  int64_t format = 1;
  const ait_json *root = NULL;
  const char *text = ait_model_entry(e->model, "embed.json", &size);
  if (text) AIT_TRY(ait_error_context(ait_json_parse(&e->arena, text, size, &root), "embed.json"));
  if (root && (!ait_json_get_int(root, "format", &format) || format != 1))
    return ait_error(AIT_CODE_INCOMPATIBLE, "the file's embed.json has format %lld, this ait reads 1", (long long)format);
  (void)ait_json_get_int(root, "max_length", &e->info.max_length);
  (void)ait_json_get_int(root, "pad", &e->pad);
  if (e->info.max_length < 0 || e->pad < 0 || e->pad > INT32_MAX) return ait_error(AIT_CODE_INVALID_MODEL, "embed.json: sizes");
  e->strip = flag(root, "strip");
  e->lowercase = flag(root, "lowercase");
  e->info.normalized = flag(root, "normalize");
  return read_prompt(e, root, o);
}

static ait_status settle(ait_embedder *e, const ait_embedder_options *o) {
  size_t size;
  if (o->batch < 0 || o->batch > MAX_BATCH) return ait_error(AIT_CODE_INVALID_ARGUMENT, "batches of %d texts", (int)o->batch);
  if (o->max_length < 0) return ait_error(AIT_CODE_INVALID_ARGUMENT, "%lld tokens at most", (long long)o->max_length);
  if ((unsigned)o->pooling >= AIT_COUNT(pooling_names)) return ait_error(AIT_CODE_INVALID_ARGUMENT, "pooling %d", (int)o->pooling);
  AIT_TRY(read_inputs(e));
  AIT_TRY(read_output(e, o->pooling));
  AIT_TRY(read_section(e, o));
  e->batch = o->batch ? o->batch : DEFAULT_BATCH;
  e->tokenizer = o->tokenizer;
  if (!e->tokenizer) {
    const char *json = ait_model_entry(e->model, "tokenizer.json", &size);
    if (!json)
      return ait_error_hint(ait_error(AIT_CODE_INVALID_ARGUMENT, "the file has no tokenizer"), "--tokenizer FOLDER, or ait deploy FOLDER");
    AIT_TRY(ait_tokenizer_parse(e->allocator, json, size, &e->own));
    e->tokenizer = e->own;
  }
  if (o->max_length && e->info.max_length && o->max_length > e->info.max_length)
    return ait_error(AIT_CODE_INVALID_ARGUMENT, "texts of %lld tokens: the model takes %lld", (long long)o->max_length,
                     (long long)e->info.max_length);
  if (o->max_length) e->info.max_length = o->max_length;
  if (!e->info.max_length) e->info.max_length = ait_tokenizer_max_length(e->tokenizer);
  if (!e->info.max_length) e->info.max_length = PLAIN_MAX_LENGTH;
  /* The graph divides where it pools; --normalize of a file that does not say so is done here. */
  e->divides = o->normalize == 1 || (o->normalize != 0 && e->info.normalized && e->info.pooling);
  if (o->normalize == 0 && e->info.pooling) e->info.normalized = false;
  e->info.normalized |= e->divides;
  return AIT_OK;
}

ait_status ait_embedder_create(ait_model *model, const ait_embedder_options *options, ait_embedder **out) {
  ait_embedder_options o;
  ait_embedder_options_init(&o);
  if (options) memcpy(&o, options, options->struct_size < sizeof o ? options->struct_size : sizeof o);
  ait_embedder *e = ait_alloc_zero(o.allocator, sizeof *e, _Alignof(ait_embedder));
  if (!e) return AIT_OOM();
  e->allocator = o.allocator;
  e->model = ait_model_retain(model);
  ait_arena_init(&e->arena, e->allocator);
  ait_session_options so;
  ait_session_options_init(&so);
  so.allocator = e->allocator;
  so.threads = o.threads;
  ait_status status = settle(e, &o);
  if (!status) e->results = ait_alloc_zero(e->allocator, e->outputs * sizeof *e->results, _Alignof(ait_value));
  if (!status && !e->results) status = AIT_OOM();
  if (!status) status = ait_session_create(model, &so, &e->session);
  if (status) ait_embedder_destroy(e);
  else *out = e;
  return status;
}

void ait_embedder_destroy(ait_embedder *e) {
  if (!e) return;
  ait_session_destroy(e->session);
  for (size_t i = 0; i < e->inputs && i < MAX_PORTS; ++i) ait_free(e->allocator, e->rows[i], e->room * sizeof(int64_t));
  ait_free(e->allocator, e->results, e->outputs * sizeof *e->results);
  ait_tokenizer_destroy(e->own);
  ait_model_release(e->model);
  ait_arena_deinit(&e->arena);
  ait_free(e->allocator, e, sizeof *e);
}

/* ---- texts to ids --------------------------------------------------------------------------------------------------------------------*/
typedef struct item {
  size_t text, begin, count; /* which text; its tokens in the lists */
} item;

typedef struct work {
  ait_embedder *e;
  ait_token_list ids, types;
  ait_text text;
  item *items;
  size_t count;
} work;

/* Python's str.isspace: four separators more than Unicode's white space. */
static bool is_space(uint32_t c) { return ait_char_is_space(c) || (c >= 0x1C && c <= 0x1F); }

/* Text without space around it, in lower case, as the model wants it; into w->text. Bytes that are no UTF-8 stay as they are. */
static void prepare(work *w, const char *text, size_t size) {
  const ait_embedder *e = w->e;
  size_t begin = SIZE_MAX, end = 0;
  ait_text raw;
  ait_text_init(&raw, e->allocator);
  ait_text_append(&raw, e->info.prompt, strlen(e->info.prompt));
  ait_text_append(&raw, text, size);
  w->text.length = 0;
  for (size_t i = 0; !raw.failed && i < raw.length;) {
    uint32_t code = 0, lower[2];
    int n = ait_utf8_step(raw.data + i, raw.length - i, &code);
    size_t step = n > 0 ? (size_t)n : n < 0 ? (size_t)-n : raw.length - i;
    bool space = n > 0 && e->strip && is_space(code);
    if (!space && begin == SIZE_MAX) begin = w->text.length;
    if (space && begin == SIZE_MAX) {
      i += step;
      continue;
    }
    if (n > 0 && e->lowercase)
      for (int k = 0, m = ait_char_lower(code, lower); k < m; ++k) {
        char utf8[4];
        ait_text_append(&w->text, utf8, ait_utf8_write(utf8, lower[k]));
      }
    else ait_text_append(&w->text, raw.data + i, step);
    if (!space) end = w->text.length;
    i += step;
  }
  w->text.length = end;
  w->text.failed |= raw.failed;
  ait_text_deinit(&raw);
}

static ait_status tokenize(work *w, const char *const *texts, const size_t *sizes, int64_t *token_counts) {
  const ait_embedder *e = w->e;
  ait_encode_options o;
  ait_encode_options_init(&o);
  o.max_length = e->info.max_length;
  for (size_t i = 0; i < w->count; ++i) {
    size_t begin = w->ids.count;
    prepare(w, texts[i], sizes[i]);
    if (w->text.failed) return AIT_OOM();
    ait_status status = ait_tokenizer_encode_with(e->tokenizer, w->text.data ? w->text.data : "", w->text.length, NULL, 0, &o, &w->ids,
                                                  e->info.token_types ? &w->types : NULL);
    if (!status && w->ids.count == begin) status = ait_error(AIT_CODE_INVALID_ARGUMENT, "no token is left of it");
    AIT_TRY(ait_error_context(status, "text %zu", i + 1));
    w->items[i] = (item){i, begin, w->ids.count - begin};
    if (token_counts) token_counts[i] = (int64_t)w->items[i].count;
  }
  return AIT_OK;
}

static int by_length(const void *a, const void *b) {
  const item *x = a, *y = b;
  if (x->count != y->count) return x->count < y->count ? 1 : -1;
  return x->text < y->text ? -1 : x->text > y->text;
}

/* ---- one call ------------------------------------------------------------------------------------------------------------------------*/
/* Few lengths, so that plans for them are found again. */
static int64_t round_length(const ait_embedder *e, int64_t n) {
  int64_t step = !e->masked ? 1 : n <= 64 ? 8 : n <= 256 ? 16 : 32, up = (n + step - 1) / step * step;
  return up > e->info.max_length ? n > e->info.max_length ? n : e->info.max_length : up;
}

static ait_status make_room(ait_embedder *e, size_t elements) {
  if (elements <= e->room) return AIT_OK;
  for (size_t i = 0; i < e->inputs; ++i) {
    ait_free(e->allocator, e->rows[i], e->room * sizeof(int64_t));
    e->rows[i] = NULL;
  }
  e->room = elements;
  for (size_t i = 0; i < e->inputs; ++i)
    if (!(e->rows[i] = ait_alloc(e->allocator, elements * sizeof(int64_t), 64))) return AIT_OOM();
  return AIT_OK;
}

static void put(void *rows, ait_dtype dtype, int64_t at, int64_t value) {
  if (dtype == AIT_I32) ((int32_t *)rows)[at] = (int32_t)value;
  else ((int64_t *)rows)[at] = value;
}

static void fill(const work *w, const item *items, int64_t count, int64_t length, ait_value inputs[MAX_PORTS]) {
  const ait_embedder *e = w->e;
  const int64_t shape[2] = {count, length};
  for (size_t p = 0; p < e->inputs; ++p) {
    for (int64_t r = 0; r < count; ++r)
      for (int64_t c = 0; c < length; ++c) {
        bool real = (size_t)c < items[r].count;
        size_t at = items[r].begin + (size_t)c;
        int64_t v = e->roles[p] == ROLE_MASK  ? real
                    : e->roles[p] == ROLE_IDS ? (real ? w->ids.ids[at] : e->pad)
                    : real                    ? w->types.ids[at]
                                              : 0;
        put(e->rows[p], e->dtypes[p], r * length + c, v);
      }
    inputs[p] = ait_value_tensor(ait_tensor_borrow(e->rows[p], e->dtypes[p], 2, shape));
  }
}

/* hidden: [length, size] of one text, the first `count` of which are its tokens. */
static void pool(const ait_embedder *e, const float *hidden, int64_t count, float *out) {
  int64_t size = e->info.size;
  double by = e->info.pooling == AIT_POOL_MEAN_SQRT_LEN ? sqrt((double)count) : (double)count;
  for (int64_t d = 0; d < size; ++d) {
    double sum = 0, most = -INFINITY;
    switch (e->info.pooling) {
      case AIT_POOL_CLS: out[d] = hidden[d]; break;
      case AIT_POOL_LAST: out[d] = hidden[(count - 1) * size + d]; break;
      case AIT_POOL_MAX:
        for (int64_t t = 0; t < count; ++t) most = fmax(most, (double)hidden[t * size + d]);
        out[d] = (float)most;
        break;
      default:
        for (int64_t t = 0; t < count; ++t) sum += (double)hidden[t * size + d];
        out[d] = (float)(sum / by);
    }
  }
}

/* As torch.nn.functional.normalize: lengths below 1e-12 count as that. */
static void divide(float *x, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += (double)x[i] * (double)x[i];
  double length = fmax(sqrt(sum), 1e-12);
  for (int64_t i = 0; i < n; ++i) x[i] = (float)((double)x[i] / length);
}

static ait_status run_batch(const work *w, const item *items, int64_t count, float *out) {
  ait_embedder *e = w->e;
  ait_value inputs[MAX_PORTS];
  int64_t length = round_length(e, (int64_t)items[0].count), size = e->info.size;
  AIT_TRY(make_room(e, (size_t)count * (size_t)length));
  fill(w, items, count, length, inputs);
  for (size_t i = 0; i < e->outputs; ++i) e->results[i] = (ait_value){.kind = AIT_VALUE_NONE};
  AIT_TRY(ait_session_run(e->session, inputs, e->inputs, e->results, e->outputs));
  const ait_tensor *t = &e->results[0].as.tensor;
  int64_t each = e->info.pooling ? length * size : size;
  if (ait_tensor_count(t) != count * each) return ait_error(AIT_CODE_INVALID_MODEL, "the model's output does not have a row for each text");
  for (int64_t r = 0; r < count; ++r) {
    const float *row = (const float *)t->data + r * each;
    float *to = out + (int64_t)items[r].text * size;
    if (e->info.pooling) pool(e, row, (int64_t)items[r].count, to);
    else memcpy(to, row, (size_t)size * sizeof *to);
    if (e->divides) divide(to, size);
  }
  return AIT_OK;
}

ait_status ait_embedder_run(ait_embedder *e, const char *const *texts, const size_t *sizes, size_t count, float *out,
                            int64_t *token_counts) {
  work w = {.e = e, .ids.allocator = e->allocator, .types.allocator = e->allocator, .count = count};
  size_t bytes;
  ait_text_init(&w.text, e->allocator);
  if (ait_mul_overflows(count + 1, sizeof *w.items, &bytes)) return AIT_OOM();
  w.items = ait_alloc(e->allocator, bytes, _Alignof(item));
  ait_status status = w.items ? tokenize(&w, texts, sizes, token_counts) : AIT_OOM();
  if (!status && count) qsort(w.items, count, sizeof *w.items, by_length);
  for (size_t at = 0, n; at < count && !status; at += n) {
    for (n = 1; n < (size_t)e->batch && at + n < count && (e->masked || w.items[at + n].count == w.items[at].count);) ++n;
    status = run_batch(&w, w.items + at, (int64_t)n, out);
  }
  ait_free(e->allocator, w.items, bytes);
  ait_token_list_deinit(&w.ids);
  ait_token_list_deinit(&w.types);
  ait_text_deinit(&w.text);
  return status;
}
