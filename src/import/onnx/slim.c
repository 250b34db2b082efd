/* Walks the wire format of a ModelProto: https://protobuf.dev/programming-guides/encoding, and the field numbers of onnx-ml.proto. */
#include "import/onnx/slim.h"

/* A graph in a graph is three messages deeper; types nest by two. */
enum { DEPTH_LIMIT = 64, LENGTH_BYTES = 5 };
enum { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_BYTES = 2, WIRE_FIXED32 = 5 };

typedef enum kind {
  LEAF,
  MODEL,
  GRAPH,
  NODE,
  ATTRIBUTE,
  FUNCTION,
  TENSOR,
  SPARSE,
  VALUE_INFO,
  TYPE,
  ELEMENT_TYPE,
  MAP_TYPE,
  BULK,
  DROPPED
} kind;

/* Fields that hold messages which nest or hold bulk; all others are copied as they are. */
static const struct {
  kind of;
  uint32_t field;
  kind child;
} children[] = {
    {MODEL, 7, GRAPH},       {MODEL, 25, FUNCTION},     {MODEL, 20, DROPPED}, /* training_info */
    {GRAPH, 1, NODE},        {GRAPH, 5, TENSOR},        {GRAPH, 11, VALUE_INFO},    {GRAPH, 12, VALUE_INFO}, {GRAPH, 13, VALUE_INFO},
    {GRAPH, 15, SPARSE},     {NODE, 5, ATTRIBUTE},      {ATTRIBUTE, 5, TENSOR},     {ATTRIBUTE, 6, GRAPH},   {ATTRIBUTE, 10, TENSOR},
    {ATTRIBUTE, 11, GRAPH},  {ATTRIBUTE, 14, TYPE},     {ATTRIBUTE, 15, TYPE},      {ATTRIBUTE, 22, SPARSE}, {ATTRIBUTE, 23, SPARSE},
    {FUNCTION, 7, NODE},     {FUNCTION, 11, ATTRIBUTE}, {FUNCTION, 12, VALUE_INFO}, {TENSOR, 9, BULK},       {SPARSE, 1, TENSOR},
    {SPARSE, 2, TENSOR},     {VALUE_INFO, 2, TYPE},     {TYPE, 4, ELEMENT_TYPE},    {TYPE, 9, ELEMENT_TYPE}, {TYPE, 5, MAP_TYPE},
    {ELEMENT_TYPE, 1, TYPE}, {MAP_TYPE, 2, TYPE},
};

static kind child_of(kind of, uint32_t field) {
  for (size_t i = 0; i < AIT_COUNT(children); ++i)
    if (children[i].of == of && children[i].field == field) return children[i].child;
  return LEAF;
}

typedef struct walk {
  ox_slim *out;
  const uint8_t *start, *p, *end; /* of the whole file; what is left of it */
} walk;

static ait_status damaged(const walk *w, const char *what) {
  return ait_error_hint(ait_error(AIT_CODE_INVALID_MODEL, "not a whole ONNX file: %s at byte %zu", what, (size_t)(w->p - w->start)),
                        "the file may be truncated, or no ONNX file; export it again");
}

static ait_status read_varint(walk *w, const uint8_t *end, uint64_t *out) {
  *out = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    if (w->p == end) return damaged(w, "a number ends early");
    uint8_t byte = *w->p++;
    *out |= (uint64_t)(byte & 0x7f) << shift;
    if (!(byte & 0x80)) return AIT_OK;
  }
  return damaged(w, "a number is too long");
}

static ait_status put(ox_slim *s, const void *data, size_t size) {
  void *grown = s->data;
  if (size == 0) return AIT_OK;
  ait_status status = ait_grow(s->allocator, &grown, &s->capacity, s->size + size, 1);
  s->data = grown;
  AIT_TRY(status);
  memcpy(s->data + s->size, data, size);
  s->size += size;
  return AIT_OK;
}

static ait_status put_bulk(ox_slim *s, const uint8_t *tag, size_t tag_size, const uint8_t *data, size_t size) {
  void *grown = s->bulks;
  uint8_t field[9] = {8};
  for (int i = 0; i < 8; ++i) field[1 + i] = (uint8_t)((uint64_t)s->bulk_count >> 8 * i);
  ait_status status = ait_grow(s->allocator, &grown, &s->bulk_capacity, s->bulk_count + 1, sizeof *s->bulks);
  s->bulks = grown;
  AIT_TRY(status);
  s->bulks[s->bulk_count++] = (ox_bytes){data, size};
  AIT_TRY(put(s, tag, tag_size));
  return put(s, field, sizeof field);
}

static ait_status walk_message(walk *w, kind of, const uint8_t *end, int depth);

/* A nested message under a length that is filled in afterwards, always in five bytes. */
static ait_status walk_child(walk *w, kind of, const uint8_t *tag, size_t tag_size, const uint8_t *end, int depth) {
  ox_slim *s = w->out;
  static const uint8_t blank[LENGTH_BYTES];
  AIT_TRY(put(s, tag, tag_size));
  size_t at = s->size;
  AIT_TRY(put(s, blank, LENGTH_BYTES));
  AIT_TRY(walk_message(w, of, end, depth - 1));
  size_t size = s->size - at - LENGTH_BYTES;
  for (int i = 0; i < LENGTH_BYTES; ++i) s->data[at + (size_t)i] = (uint8_t)((size >> 7 * i & 0x7f) | (i < LENGTH_BYTES - 1 ? 0x80 : 0));
  return AIT_OK;
}

static ait_status walk_field(walk *w, kind of, const uint8_t *end, int depth) {
  const uint8_t *tag = w->p;
  uint64_t key, size = 0;
  AIT_TRY(read_varint(w, end, &key));
  size_t tag_size = (size_t)(w->p - tag);
  if (key >> 3 == 0 || key > UINT32_MAX) return damaged(w, "a field has no valid number");
  switch (key & 7) {
    case WIRE_VARINT: AIT_TRY(read_varint(w, end, &size)); return put(w->out, tag, (size_t)(w->p - tag));
    case WIRE_FIXED64: size = 8; break;
    case WIRE_FIXED32: size = 4; break;
    case WIRE_BYTES: AIT_TRY(read_varint(w, end, &size)); break;
    default: return damaged(w, "a field of no known wire type");
  }
  if (size > (size_t)(end - w->p)) return damaged(w, "a field is longer than what holds it");
  const uint8_t *field_end = w->p + size;
  kind child = (key & 7) == WIRE_BYTES ? child_of(of, (uint32_t)(key >> 3)) : LEAF;
  if (child != LEAF && child != BULK && child != DROPPED) return walk_child(w, child, tag, tag_size, field_end, depth);
  const uint8_t *data = w->p;
  w->p = field_end;
  if (child == DROPPED) return AIT_OK;
  if (child == BULK) return put_bulk(w->out, tag, tag_size, data, (size_t)size);
  return put(w->out, tag, (size_t)(field_end - tag));
}

static ait_status walk_message(walk *w, kind of, const uint8_t *end, int depth) {
  if (depth == 0) return ait_error(AIT_CODE_LIMIT, "messages nest deeper than %d at byte %zu", DEPTH_LIMIT, (size_t)(w->p - w->start));
  while (w->p < end) AIT_TRY(walk_field(w, of, end, depth));
  return AIT_OK;
}

ait_status ox_slim_model(ait_allocator a, const uint8_t *data, size_t size, ox_slim *out) {
  *out = (ox_slim){.allocator = a};
  walk w = {.out = out, .start = data, .p = data, .end = data + size};
  return walk_message(&w, MODEL, w.end, DEPTH_LIMIT);
}

void ox_slim_deinit(ox_slim *slim) {
  ait_free(slim->allocator, slim->data, slim->capacity);
  ait_free(slim->allocator, slim->bulks, slim->bulk_capacity * sizeof *slim->bulks);
  *slim = (ox_slim){0};
}
