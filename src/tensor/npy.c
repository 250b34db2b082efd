/* The .npy format (numpy/lib/format.py, versions 1.0 to 3.0): a Python dict literal that describes the array, then its elements. */
#include "tensor/npy.h"

#include <stdio.h>

static const char magic[6] = "\x93NUMPY";
enum { PREFIX = 8, HEADER_LIMIT = 1 << 16 }; /* numpy itself refuses headers beyond 10,000 bytes unless told otherwise */

/* ---- dtypes --------------------------------------------------------------------------------------------------------------------*/
static const struct {
  char text[4];
  ait_dtype dtype;
} descr_table[] = {
    {"b1", AIT_BOOL}, {"u1", AIT_U8},  {"i1", AIT_I8},  {"u2", AIT_U16}, {"i2", AIT_I16}, {"u4", AIT_U32}, {"i4", AIT_I32},
    {"u8", AIT_U64},  {"i8", AIT_I64}, {"f2", AIT_F16}, {"f4", AIT_F32}, {"f8", AIT_F64}, {"c8", AIT_C64}, {"c16", AIT_C128},
};

/* "<f4", "|b1", "=i8", ">f2". */
static ait_status parse_descr(const char *text, size_t length, ait_npy_header *out) {
  char order = length ? text[0] : '\0';
  if (length >= 3 && length <= 4 && strchr("<>|=", order)) {
    for (size_t i = 0; i < AIT_COUNT(descr_table); i++) {
      if (strlen(descr_table[i].text) != length - 1 || memcmp(descr_table[i].text, text + 1, length - 1) != 0) continue;
      out->dtype = descr_table[i].dtype;
      out->swapped = order == '>';
      return AIT_OK;
    }
  }
  return ait_error_hint(ait_error(AIT_CODE_UNSUPPORTED, "dtype '%.*s' has no meaning as a tensor", (int)(length < 40 ? length : 40), text),
                        "booleans, integers, floats of 16 to 64 bits and complex numbers are read; save anything else as one of these");
}

/* ---- header --------------------------------------------------------------------------------------------------------------------*/
typedef struct cursor {
  const char *p, *end;
} cursor;

static ait_status malformed(const char *what) { return ait_error(AIT_CODE_INVALID_MODEL, "malformed npy header: %s", what); }

static void skip_space(cursor *c) {
  while (c->p < c->end && (*c->p == ' ' || *c->p == '\n' || *c->p == '\t' || *c->p == '\r')) c->p++;
}

static bool accept(cursor *c, char wanted) {
  skip_space(c);
  if (c->p >= c->end || *c->p != wanted) return false;
  c->p++;
  return true;
}

/* A string without escapes, in either kind of quotes. */
static bool parse_string(cursor *c, const char **out, size_t *out_length) {
  skip_space(c);
  if (c->p >= c->end || (*c->p != '\'' && *c->p != '"')) return false;
  const char *start = c->p + 1, *stop = memchr(start, *c->p, (size_t)(c->end - start));
  if (!stop || memchr(start, '\\', (size_t)(stop - start))) return false;
  *out = start;
  *out_length = (size_t)(stop - start);
  c->p = stop + 1;
  return true;
}

static bool parse_word(cursor *c, const char *word) {
  size_t length = strlen(word);
  skip_space(c);
  if ((size_t)(c->end - c->p) < length || memcmp(c->p, word, length) != 0) return false;
  c->p += length;
  return true;
}

static bool parse_size(cursor *c, int64_t *out) {
  skip_space(c);
  const char *start = c->p;
  int64_t value = 0;
  for (; c->p < c->end && *c->p >= '0' && *c->p <= '9'; c->p++) {
    if (ait_mul_overflows(value, (int64_t)10, &value) || ait_add_overflows(value, (int64_t)(*c->p - '0'), &value)) return false;
  }
  if (c->p == start) return false;
  if (c->p < c->end && *c->p == 'L') c->p++; /* Python 2 */
  *out = value;
  return true;
}

static ait_status parse_shape(cursor *c, ait_npy_header *out) {
  if (!accept(c, '(')) return malformed("'shape' is not a tuple");
  while (!accept(c, ')')) {
    if (out->rank == AIT_MAX_RANK) return ait_error(AIT_CODE_UNSUPPORTED, "an array of more than %d dimensions", AIT_MAX_RANK);
    if (!parse_size(c, &out->shape[out->rank])) return malformed("'shape' holds something that is no size");
    out->rank++;
    if (accept(c, ',')) continue;
    if (!accept(c, ')')) return malformed("'shape' does not end");
    return out->rank == 1 ? malformed("'shape' is not a tuple") : AIT_OK;
  }
  return AIT_OK;
}

enum { KEY_DESCR = 1, KEY_ORDER = 2, KEY_SHAPE = 4 };

static ait_status parse_entry(cursor *c, int *seen, ait_npy_header *out) {
  const char *key, *value;
  size_t length, value_length;
  if (!parse_string(c, &key, &length) || !accept(c, ':')) return malformed("not a dict with string keys");
  int which = length == 5 && memcmp(key, "descr", 5) == 0             ? KEY_DESCR
              : length == 13 && memcmp(key, "fortran_order", 13) == 0 ? KEY_ORDER
              : length == 5 && memcmp(key, "shape", 5) == 0           ? KEY_SHAPE
                                                                      : 0;
  if (which == 0 || (*seen & which)) return malformed(which ? "a key occurs twice" : "an unknown key");
  *seen |= which;
  if (which == KEY_SHAPE) return parse_shape(c, out);
  if (which == KEY_ORDER) {
    out->fortran = parse_word(c, "True");
    return out->fortran || parse_word(c, "False") ? AIT_OK : malformed("'fortran_order' is neither True nor False");
  }
  skip_space(c);
  if (c->p < c->end && *c->p == '[') return ait_error(AIT_CODE_UNSUPPORTED, "a structured array has no meaning as a tensor");
  if (!parse_string(c, &value, &value_length)) return malformed("'descr' is not a string");
  return parse_descr(value, value_length, out);
}

static ait_status parse_dict(const char *text, size_t length, ait_npy_header *out) {
  cursor c = {text, text + length};
  int seen = 0;
  if (!accept(&c, '{')) return malformed("not a dict");
  while (!accept(&c, '}')) {
    AIT_TRY(parse_entry(&c, &seen, out));
    if (accept(&c, ',')) continue;
    if (!accept(&c, '}')) return malformed("the dict does not end");
    break;
  }
  skip_space(&c);
  if (c.p != c.end) return malformed("something follows the dict");
  return seen == (KEY_DESCR | KEY_ORDER | KEY_SHAPE) ? AIT_OK : malformed("'descr', 'fortran_order' or 'shape' is missing");
}

/* Bytes of the elements; checks that they fit into memory. */
static ait_status measure(ait_npy_header *h) {
  int64_t bytes = (int64_t)ait_dtype_size(h->dtype);
  bool empty = false;
  for (int32_t i = 0; i < h->rank; i++) {
    if (h->shape[i] == 0) empty = true;
    else if (ait_mul_overflows(bytes, h->shape[i], &bytes)) return ait_error(AIT_CODE_LIMIT, "the size of an array overflows");
  }
  h->data_bytes = empty ? 0 : (size_t)bytes;
  return AIT_OK;
}

ait_status ait_npy_header_size(const void *data, size_t size, size_t *out) {
  const uint8_t *p = data;
  if (size < AIT_NPY_PREFIX_MAX || memcmp(p, magic, sizeof magic) != 0) return malformed("it does not begin with the npy signature");
  if (p[6] < 1 || p[6] > 3 || p[7] != 0) return ait_error(AIT_CODE_UNSUPPORTED, "npy version %u.%u is not known", p[6], p[7]);
  size_t length = p[8] | (size_t)p[9] << 8;
  if (p[6] > 1) length |= (size_t)p[10] << 16 | (size_t)p[11] << 24;
  if (length > HEADER_LIMIT) return ait_error(AIT_CODE_LIMIT, "an npy header of %zu bytes is too long", length);
  *out = PREFIX + (p[6] == 1 ? 2 : 4) + length;
  return AIT_OK;
}

ait_status ait_npy_header_parse(const void *data, size_t size, ait_npy_header *out) {
  *out = (ait_npy_header){0};
  AIT_TRY(ait_npy_header_size(data, size, &out->header_bytes));
  if (out->header_bytes > size) return malformed("it is longer than the file");
  size_t prefix = PREFIX + (((const uint8_t *)data)[6] == 1 ? 2 : 4);
  AIT_TRY(parse_dict((const char *)data + prefix, out->header_bytes - prefix, out));
  return measure(out);
}

/* ---- elements ------------------------------------------------------------------------------------------------------------------*/
ait_status ait_npy_tensor_create(ait_allocator a, const ait_npy_header *h, ait_tensor *out) {
  AIT_TRY(ait_tensor_create(a, h->dtype, h->rank, h->shape, out));
  if (!h->fortran) return AIT_OK;
  int64_t stride = 1;
  for (int32_t i = 0; i < h->rank; i++) {
    out->strides[i] = stride;
    stride *= h->shape[i] > 1 ? h->shape[i] : 1;
  }
  return AIT_OK;
}

/* Big-endian elements in place; the parts of a complex number are swapped one by one. */
static void swap_elements(uint8_t *p, size_t bytes, size_t part) {
  for (size_t at = 0; at + part <= bytes; at += part) {
    for (size_t i = 0; i < part / 2; i++) {
      uint8_t t = p[at + i];
      p[at + i] = p[at + part - 1 - i];
      p[at + part - 1 - i] = t;
    }
  }
}

void ait_npy_finish(const ait_npy_header *h, ait_tensor *t) {
  uint8_t *p = t->data;
  if (h->swapped) swap_elements(p, h->data_bytes, ait_dtype_size(ait_dtype_component(h->dtype)));
  if (h->dtype != AIT_BOOL) return;
  for (size_t i = 0; i < h->data_bytes; i++) p[i] = p[i] != 0; /* any byte but 0 and 1 is undefined as a C bool */
}

ait_status ait_npy_parse(ait_allocator a, const void *data, size_t size, ait_tensor *out) {
  ait_npy_header h;
  AIT_TRY(ait_npy_header_parse(data, size, &h));
  if (h.data_bytes > size - h.header_bytes) {
    return ait_error(AIT_CODE_INVALID_MODEL, "the array needs %zu bytes, the file has %zu", h.data_bytes, size - h.header_bytes);
  }
  ait_tensor t;
  AIT_TRY(ait_npy_tensor_create(a, &h, &t));
  if (h.data_bytes) memcpy(t.data, (const char *)data + h.header_bytes, h.data_bytes);
  ait_npy_finish(&h, &t);
  *out = t;
  return AIT_OK;
}

ait_status ait_npy_read(const char *path, ait_allocator a, ait_tensor *out) {
  ait_file_map *map;
  AIT_TRY(ait_file_map_open(a, path, &map));
  ait_file_map_prefetch(map, 0, ait_file_map_size(map));
  ait_status status = ait_npy_parse(a, ait_file_map_data(map), ait_file_map_size(map), out);
  ait_file_map_release(map);
  return ait_error_context(status, "cannot read '%s'", path);
}

/* ---- writing -------------------------------------------------------------------------------------------------------------------*/
ait_dtype ait_npy_dtype(ait_dtype dtype) {
  if (dtype == AIT_C32) return AIT_C64;
  bool small = ait_dtype_is_float(dtype) && (dtype == AIT_BF16 || ait_dtype_size(dtype) == 1);
  return small ? AIT_F32 : dtype;
}

ait_status ait_npy_header_format(const ait_tensor *t, ait_text *out) {
  const char *descr = NULL;
  for (size_t i = 0; i < AIT_COUNT(descr_table); i++) {
    if (descr_table[i].dtype == t->dtype) descr = descr_table[i].text;
  }
  if (!descr) return ait_error(AIT_CODE_UNSUPPORTED, "numpy has no dtype %s", ait_dtype_name(t->dtype));
  size_t start = out->length;
  ait_text_append(out, magic, sizeof magic);
  ait_text_append(out, "\x01\x00\x00\x00", 4);
  ait_text_printf(out, "{'descr': '%c%s', 'fortran_order': False, 'shape': (", ait_dtype_size(t->dtype) == 1 ? '|' : '<', descr);
  for (int32_t i = 0; i < t->rank; i++) ait_text_printf(out, "%s%lld", i ? ", " : "", (long long)t->shape[i]);
  ait_text_printf(out, t->rank == 1 ? ",), }" : "), }");
  size_t used = out->length - start + 1; /* with the newline; the elements begin at a multiple of 64 */
  ait_text_printf(out, "%*s\n", (int)(ait_align_up(used, 64) - used), "");
  if (out->failed) return AIT_OOM();
  size_t length = out->length - start - (PREFIX + 2);
  out->data[start + 8] = (char)(length & 0xFF);
  out->data[start + 9] = (char)(length >> 8);
  return AIT_OK;
}

ait_status ait_npy_contiguous(ait_allocator a, const ait_tensor *t, ait_tensor *out) {
  ait_dtype dtype = ait_npy_dtype(t->dtype);
  if (dtype != t->dtype || !ait_tensor_is_contiguous(t)) return ait_tensor_cast(a, t, dtype, out);
  *out = ait_tensor_retain(t);
  return AIT_OK;
}

ait_status ait_npy_format(ait_allocator a, const ait_tensor *t, ait_text *out) {
  ait_tensor whole;
  AIT_TRY(ait_npy_contiguous(a, t, &whole));
  ait_status status = ait_npy_header_format(&whole, out);
  if (!status) {
    ait_text_append(out, whole.data, ait_tensor_bytes(&whole));
    if (out->failed) status = AIT_OOM();
  }
  ait_tensor_release(&whole);
  return status;
}
