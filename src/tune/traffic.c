#include "tune/traffic.h"
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
