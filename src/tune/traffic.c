#include "tune/traffic.h"
#include "artifact/region.h"
#include "base/json.h"
#include <stdio.h>
#include <stdlib.h>

static const size_t most_bytes = (size_t)1 << 28;
enum { MOST_LINE = 1 << 16, MOST_TEXT = 2 * MOST_LINE /* a kind's text is hardly longer than its line */, MOST_INPUTS = 256 };

/* ---- lines -----------------------------------------------------------------------------------------------------------------------*/
typedef struct reader {
  ait_traffic *traffic;
  const char *path;
  uint32_t line;
  ait_map kinds; /* by their text: 1 + index */
  char *text;    /* MOST_TEXT */
} reader;

static const char *base_name(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash ? slash + 1 : path;
}

static ait_status at_line(const char *path, uint32_t line, ait_status status) {
  return ait_error_context(status, "trace '%s' line %u", base_name(path), line);
}

static ait_status wrong(const char *what) { return ait_error(AIT_CODE_INVALID_ARGUMENT, "%s", what); }

static ait_status read_size(const ait_json *v, ait_traffic_size *out) {
  if (v->kind == AIT_JSON_INT) {
    out->rank = -1;
    out->dims[0] = v->as.i;
    return AIT_OK;
  }
  if (v->kind != AIT_JSON_ARRAY || v->count > AIT_MAX_RANK)
    return ait_error(AIT_CODE_INVALID_ARGUMENT, "'%s' is no shape: a list of at most %d sizes", v->key, AIT_MAX_RANK);
  out->rank = (int32_t)v->count;
  for (uint32_t d = 0; d < v->count; ++d) {
    out->dims[d] = v->as.items[d].kind == AIT_JSON_INT ? v->as.items[d].as.i : -1;
    if (out->dims[d] < 0) return ait_error(AIT_CODE_INVALID_ARGUMENT, "'%s': size %u is no whole number from 0", v->key, d);
  }
  return AIT_OK;
}

static ait_status read_sizes(reader *r, const ait_json *object, bool numbers, ait_traffic_size **out, uint32_t *out_count) {
  if (object->kind != AIT_JSON_OBJECT) return ait_error(AIT_CODE_INVALID_ARGUMENT, "'%s' is no object", object->key);
  if (object->count > MOST_INPUTS)
    return ait_error(AIT_CODE_LIMIT, "'%s' has %u members, at most %d", object->key, object->count, MOST_INPUTS);
  ait_traffic_size *sizes = ait_arena_alloc(&r->traffic->arena, (object->count + 1) * sizeof *sizes, _Alignof(ait_traffic_size));
  if (!sizes) return AIT_OOM();
  for (uint32_t i = 0; i < object->count; ++i) {
    const ait_json *m = &object->as.items[i];
    sizes[i] = (ait_traffic_size){.name = ait_arena_strdup(&r->traffic->arena, m->key, strlen(m->key))};
    if (!sizes[i].name) return AIT_OOM();
    AIT_TRY(read_size(m, &sizes[i]));
    if (numbers && sizes[i].rank >= 0) return ait_error(AIT_CODE_INVALID_ARGUMENT, "'%s' is no whole number", m->key);
  }
  *out = sizes;
  *out_count = object->count;
  return AIT_OK;
}

static ait_status read_member(reader *r, const ait_json *m, ait_traffic_kind *kind) {
  if (!strcmp(m->key, "t")) return AIT_OK;
  if (!strcmp(m->key, "inputs")) return read_sizes(r, m, false, &kind->inputs, &kind->input_count);
  if (!strcmp(m->key, "dims")) return read_sizes(r, m, true, &kind->symbols, &kind->symbol_count);
  if (!strcmp(m->key, "batch")) {
    kind->batch = m->kind == AIT_JSON_INT ? m->as.i : 0;
    return kind->batch > 0 ? AIT_OK : wrong("'batch' is no whole number from 1");
  }
  if (!strcmp(m->key, "data")) {
    kind->data = m->kind == AIT_JSON_STRING && *m->as.string ? ait_arena_strdup(&r->traffic->arena, m->as.string, m->count) : NULL;
    return kind->data ? AIT_OK : wrong("'data' is no file name");
  }
  return ait_error_hint(ait_error(AIT_CODE_INVALID_ARGUMENT, "there is no member '%s'", m->key), "t, and inputs, dims, batch or data");
}

void ait_traffic_kind_text(const ait_traffic_kind *k, char *out, size_t size) {
  size_t n = 0;
  if (size == 0) return;
  *out = 0;
#define ADD(...) n += n < size ? (size_t)snprintf(out + n, size - n, __VA_ARGS__) : 0
  if (k->data) ADD("data %s", k->data);
  if (k->batch) ADD("batch %lld", (long long)k->batch);
  for (uint32_t i = 0; i < k->symbol_count; ++i) ADD("%s%s = %lld", n ? ", " : "", k->symbols[i].name, (long long)k->symbols[i].dims[0]);
  for (uint32_t i = 0; i < k->input_count; ++i) {
    const ait_traffic_size *s = &k->inputs[i];
    ADD("%s%s ", n ? ", " : "", s->name);
    if (s->rank < 0) ADD("%lld", (long long)s->dims[0]);
    else ADD("[");
    for (int32_t d = 0; d < s->rank; ++d) ADD("%s%lld", d ? ", " : "", (long long)s->dims[d]);
    if (s->rank >= 0) ADD("]");
  }
  if (!n) ADD("as the sample");
#undef ADD
}

static ait_status kind_of(reader *r, const ait_json *object, uint32_t *out_index) {
  ait_traffic *t = r->traffic;
  ait_traffic_kind kind = {.line = r->line};
  int forms = 0;
  for (uint32_t i = 0; i < object->count; ++i) {
    AIT_TRY(read_member(r, &object->as.items[i], &kind));
    forms += strcmp(object->as.items[i].key, "t") != 0;
  }
  if (forms > 1) return wrong("only one of inputs, dims, batch and data may be given");
  void *found;
  ait_traffic_kind_text(&kind, r->text, MOST_TEXT);
  if (ait_map_get(&r->kinds, r->text, &found)) {
    *out_index = (uint32_t)(uintptr_t)found - 1;
    return AIT_OK;
  }
  if (t->kind_count == AIT_TRAFFIC_KINDS) return ait_error(AIT_CODE_LIMIT, "more than %d different sizes", AIT_TRAFFIC_KINDS);
  t->kinds[t->kind_count] = kind;
  *out_index = (uint32_t)t->kind_count++;
  return ait_map_put(&r->kinds, r->text, (void *)(uintptr_t)t->kind_count);
}

static ait_status read_line(reader *r, ait_arena *scratch, const char *line, size_t length, ait_traffic_request *out) {
  const ait_json *object, *at;
  if (length > MOST_LINE) return ait_error(AIT_CODE_LIMIT, "longer than %d bytes", MOST_LINE);
  AIT_TRY(ait_json_parse(scratch, line, length, &object));
  if (object->kind != AIT_JSON_OBJECT) return wrong("no JSON object");
  at = ait_json_get(object, "t");
  if (!at || (at->kind != AIT_JSON_INT && at->kind != AIT_JSON_FLOAT)) return wrong("no arrival time 't' in seconds");
  out->at = at->kind == AIT_JSON_INT ? (double)at->as.i : at->as.f;
  if (!(out->at >= 0 && out->at <= 1e15)) return wrong("'t' is no time in seconds from 0");
  out->line = r->line;
  return kind_of(r, object, &out->kind);
}

static int by_arrival(const void *a, const void *b) {
  const ait_traffic_request *x = a, *y = b;
  if (x->at != y->at) return x->at < y->at ? -1 : 1;
  return (x->line > y->line) - (x->line < y->line);
}

static bool is_blank(const char *text, size_t n) {
  for (size_t i = 0; i < n; ++i)
    if (text[i] != ' ' && text[i] != '\t' && text[i] != '\r') return false;
  return true;
}

static ait_status read_lines(reader *r, const char *text, size_t length) {
  ait_traffic *t = r->traffic;
  size_t lines = 1;
  for (size_t i = 0; i < length; ++i) lines += text[i] == '\n';
  t->requests = ait_arena_alloc(&t->arena, lines * sizeof *t->requests, _Alignof(ait_traffic_request));
  t->kinds =
      ait_arena_alloc(&t->arena, (lines < AIT_TRAFFIC_KINDS ? lines : AIT_TRAFFIC_KINDS) * sizeof *t->kinds, _Alignof(ait_traffic_kind));
  r->text = ait_arena_alloc(&t->arena, MOST_TEXT, 1);
  if (!t->requests || !t->kinds || !r->text) return AIT_OOM();
  for (const char *p = text, *end = text + length; p < end; ++r->line) {
    const char *stop = memchr(p, '\n', (size_t)(end - p));
    size_t n = (size_t)((stop ? stop : end) - p);
    if (!is_blank(p, n)) {
      ait_arena scratch;
      ait_arena_init(&scratch, ait_allocator_default());
      ait_status status = read_line(r, &scratch, p, n, &t->requests[t->request_count]);
      ait_arena_deinit(&scratch);
      if (status != AIT_OK) {
        if (ait_status_code(status) == AIT_CODE_INVALID_MODEL) { /* the JSON reader speaks of models */
          ait_status other = wrong(ait_status_message(status));
          ait_status_free(status);
          status = other;
        }
        return at_line(r->path, r->line, status);
      }
      ++t->kinds[t->requests[t->request_count].kind].requests;
      ++t->request_count;
    }
    p = stop ? stop + 1 : end;
  }
  return AIT_OK;
}

ait_status ait_traffic_parse(const char *path, const char *text, size_t length, ait_traffic *out) {
  *out = (ait_traffic){.hash = ait_hash(text, length, 7)};
  ait_arena_init(&out->arena, ait_allocator_default());
  snprintf(out->name, sizeof out->name, "%s", base_name(path));
  snprintf(out->folder, sizeof out->folder, "%.*s", (int)(base_name(path) - path), path);
  reader r = {.traffic = out, .path = path, .line = 1};
  ait_map_init(&r.kinds, ait_allocator_default());
  ait_status status = read_lines(&r, text, length);
  ait_map_deinit(&r.kinds);
  if (status == AIT_OK && out->request_count == 0) status = ait_error(AIT_CODE_INVALID_ARGUMENT, "trace '%s' holds no request", out->name);
  if (status != AIT_OK) return ait_traffic_deinit(out), status;
  qsort(out->requests, out->request_count, sizeof *out->requests, by_arrival);
  double first = out->requests[0].at;
  for (size_t i = 0; i < out->request_count; ++i) out->requests[i].at -= first;
  return AIT_OK;
}

ait_status ait_traffic_open(const char *path, ait_traffic *out) {
  char *text;
  size_t length;
  *out = (ait_traffic){0};
  AIT_TRY(ait_error_context(ait_file_read(ait_allocator_default(), path, most_bytes, &text, &length), "trace"));
  ait_status status = ait_traffic_parse(path, text, length, out);
  ait_free(ait_allocator_default(), text, length + 1);
  return status;
}

void ait_traffic_deinit(ait_traffic *t) {
  if (t->requests || t->hash) ait_arena_deinit(&t->arena);
  *t = (ait_traffic){0};
}

/* ---- inputs ----------------------------------------------------------------------------------------------------------------------*/
static const ait_region_value *input_value(const ait_region *region, const char *name, int32_t *out_user) {
  for (uint32_t i = 0; i < region->input_count; ++i) {
    const ait_region_input *in = &region->inputs[i];
    if (in->kind != AIT_INPUT_USER || in->value == AIT_NO_INDEX || strcmp(in->name, name)) continue;
    *out_user = in->user_index;
    return &region->values[in->value];
  }
  return NULL;
}

static ait_status no_input(const char *name) {
  return ait_error(AIT_CODE_INVALID_ARGUMENT, "the model has no input '%s' with a size", name);
}

/* Sizes that a shape says by themselves. */
static ait_status symbols_of_input(const ait_region *region, const ait_traffic_size *size, int64_t *symbols) {
  int32_t user;
  const ait_region_value *v = input_value(region, size->name, &user);
  if (!v) return no_input(size->name);
  bool number = v->type == AIT_TYPE_INT && v->shape;
  if (size->rank < 0 ? !number : v->type != AIT_TYPE_TENSOR || size->rank != v->rank)
    return ait_error(AIT_CODE_INVALID_ARGUMENT, "input '%s' is %s", size->name, number ? "a whole number" : "a tensor of another rank");
  for (int32_t d = 0; d < (number ? 1 : v->rank); ++d)
    if (region->dims[v->shape[d]].op == AIT_DIM_SYMBOL) symbols[region->dims[v->shape[d]].a] = size->dims[d];
  return AIT_OK;
}

static ait_status symbol_by_name(const ait_region *region, const ait_traffic_size *size, int64_t *symbols) {
  for (uint32_t s = 0; s < region->symbol_count; ++s) {
    if (strcmp(region->symbols[s].name, size->name)) continue;
    symbols[s] = size->dims[0];
    return AIT_OK;
  }
  return ait_error_hint(ait_error(AIT_CODE_INVALID_ARGUMENT, "the model has no size '%s'", size->name), "'ait inspect' lists the sizes");
}

/* "batch": dimension 0 of the first tensor whose dimension 0 is free. */
static ait_status symbol_of_batch(const ait_region *region, int64_t batch, int64_t *symbols) {
  for (uint32_t i = 0; i < region->input_count; ++i) {
    const ait_region_input *in = &region->inputs[i];
    if (in->kind != AIT_INPUT_USER || in->value == AIT_NO_INDEX) continue;
    const ait_region_value *v = &region->values[in->value];
    if (v->type != AIT_TYPE_TENSOR || v->rank < 1 || region->dims[v->shape[0]].op != AIT_DIM_SYMBOL) continue;
    symbols[region->dims[v->shape[0]].a] = batch;
    return AIT_OK;
  }
  return wrong("the model has no free batch size");
}

static ait_status symbols_of_kind(const ait_traffic_kind *k, const ait_region *region, int64_t *symbols) {
  for (uint32_t i = 0; i < k->input_count; ++i) AIT_TRY(symbols_of_input(region, &k->inputs[i], symbols));
  for (uint32_t i = 0; i < k->symbol_count; ++i) AIT_TRY(symbol_by_name(region, &k->symbols[i], symbols));
  return k->batch ? symbol_of_batch(region, k->batch, symbols) : AIT_OK;
}

/* A dimension that the model fixes, or that depends on another, may ask for something else than the trace does. */
static ait_status check_sizes(const ait_traffic_kind *k, const ait_region *region, const ait_tune_case *c) {
  for (uint32_t i = 0; i < k->input_count; ++i) {
    const ait_traffic_size *size = &k->inputs[i];
    int32_t user = -1;
    if (!input_value(region, size->name, &user) || size->rank < 0 || c->inputs[user].kind != AIT_VALUE_TENSOR) continue;
    for (int32_t d = 0; d < size->rank; ++d)
      if (c->inputs[user].as.tensor.shape[d] != size->dims[d])
        return ait_error(AIT_CODE_INVALID_ARGUMENT, "input '%s': dimension %d is %lld, the model wants %lld", size->name, d,
                         (long long)size->dims[d], (long long)c->inputs[user].as.tensor.shape[d]);
  }
  return AIT_OK;
}

/* Tensors of the file in place of the sample's. */
static ait_status take_data(const ait_traffic *t, const char *file, const ait_region *region, ait_tune_case *c) {
  char path[2200];
  ait_data *data;
  snprintf(path, sizeof path, "%s%s", *file == '/' ? "" : t->folder, file);
  AIT_TRY(ait_data_load(ait_allocator_default(), path, &data));
  ait_status status = AIT_OK;
  for (uint32_t i = 0; status == AIT_OK && i < region->input_count; ++i) {
    const ait_region_input *in = &region->inputs[i];
    if (in->kind != AIT_INPUT_USER || in->user_index < 0 || c->inputs[in->user_index].kind != AIT_VALUE_TENSOR) continue;
    char position[32];
    snprintf(position, sizeof position, "arr_%d", in->user_index);
    const ait_tensor *found = ait_data_find(data, in->name);
    if (!found) found = ait_data_find(data, position);
    if (!found) {
      status = ait_error(AIT_CODE_INVALID_ARGUMENT, "'%s' has no data for input '%s'", file, in->name);
      break;
    }
    ait_value_release(&c->inputs[in->user_index]);
    c->inputs[in->user_index] = (ait_value){0};
    status = ait_tensor_cast(ait_allocator_default(), found, found->dtype, &c->inputs[in->user_index].as.tensor);
    if (status == AIT_OK) c->inputs[in->user_index].kind = AIT_VALUE_TENSOR;
  }
  ait_data_destroy(data);
  return status;
}

static ait_status make_case(const ait_traffic *t, const ait_traffic_kind *k, const ait_tune_cases *cases, const ait_region *region,
                            int64_t *symbols, ait_tune_case *out) {
  bool possible;
  AIT_TRY(ait_bind_inputs(region, cases->items[0].inputs, cases->items[0].input_count, symbols));
  AIT_TRY(symbols_of_kind(k, region, symbols));
  for (uint32_t s = 0; s < region->symbol_count; ++s)
    if (symbols[s] != INT64_MIN && (symbols[s] < region->symbols[s].min || symbols[s] > region->symbols[s].max))
      return ait_error(AIT_CODE_INVALID_ARGUMENT, "size %s = %lld: the model takes %lld to %lld", region->symbols[s].name,
                       (long long)symbols[s], (long long)region->symbols[s].min, (long long)region->symbols[s].max);
  AIT_TRY(ait_tune_case_resized(cases, region, symbols, "traffic", out, &possible));
  if (!possible) return wrong("the model does not take these sizes");
  ait_status status = check_sizes(k, region, out);
  if (status == AIT_OK && k->data) status = take_data(t, k->data, region, out);
  if (status == AIT_OK && k->data) status = ait_bind_inputs(region, out->inputs, out->input_count, symbols);
  if (status != AIT_OK) ait_tune_case_release(cases, out);
  return status;
}

ait_status ait_traffic_case(const ait_traffic *t, size_t kind, const ait_tune_cases *cases, const ait_region *region, ait_tune_case *out) {
  size_t bytes = (region->symbol_count + 1) * sizeof(int64_t);
  int64_t *symbols = ait_alloc(ait_allocator_default(), bytes, _Alignof(int64_t));
  *out = (ait_tune_case){0};
  ait_status status = symbols ? make_case(t, &t->kinds[kind], cases, region, symbols, out) : AIT_OOM();
  ait_free(ait_allocator_default(), symbols, bytes);
  return status == AIT_OK ? AIT_OK : at_line(t->name, t->kinds[kind].line, status);
}
