/* Normalizers. Each reads one buffer and writes another; every written byte knows where in the input it came from. */
#include "llm/text/tokenizer.h"

const uint16_t ait_byte_chars[256] = {
#define ROW(b) b, b + 1, b + 2, b + 3, b + 4, b + 5, b + 6, b + 7, b + 8, b + 9, b + 10, b + 11, b + 12, b + 13, b + 14, b + 15
    /* bytes that are no printable Latin-1 character take the next free one from U+0100 on */
    ROW(256), ROW(272), 288,     33,      34,       35,       36,       37,       38,       39,      40,  41,  42,  43,  44,  45,  46,
    47,       ROW(48),  ROW(64), ROW(80), ROW(96),  112,      113,      114,      115,      116,     117, 118, 119, 120, 121, 122, 123,
    124,      125,      126,     289,     ROW(290), ROW(306), 322,      161,      162,      163,     164, 165, 166, 167, 168, 169, 170,
    171,      172,      323,     174,     175,      ROW(176), ROW(192), ROW(208), ROW(224), ROW(240)
#undef ROW
};

uint32_t ait_byte_char_write(char out[2], uint8_t byte) {
  uint16_t c = ait_byte_chars[byte];
  if (c < 0x80) return out[0] = (char)c, 1;
  out[0] = (char)(0xC0 | c >> 6);
  out[1] = (char)(0x80 | (c & 63));
  return 2;
}

ait_status ait_buffer_reserve(ait_scratch *s, ait_buffer *b, size_t more, bool origin) {
  size_t needed;
  if (ait_add_overflows(b->length, more, &needed) || needed >= UINT32_MAX)
    return ait_error(AIT_CODE_LIMIT, "text to encode grows beyond 4 GiB");
  AIT_TRY(ait_grow(s->allocator, (void **)&b->data, &b->capacity, needed, 1));
  if (origin) AIT_TRY(ait_grow(s->allocator, (void **)&b->origin, &b->origin_capacity, needed, sizeof *b->origin));
  return AIT_OK;
}

/* One step over a text. */
typedef struct norm_run {
  ait_scratch *s;
  const char *data;
  const uint32_t *origin; /* NULL: not tracked */
  size_t size;
  ait_buffer *out;
} norm_run;

static ait_status put(norm_run *r, const char *data, size_t size, size_t from) {
  if (!size) return AIT_OK;
  AIT_TRY(ait_buffer_reserve(r->s, r->out, size, r->origin != NULL));
  memcpy(r->out->data + r->out->length, data, size);
  if (r->origin) {
    uint32_t origin = from < r->size ? r->origin[from] : r->size ? r->origin[r->size - 1] : 0;
    for (size_t i = 0; i < size; ++i) r->out->origin[r->out->length + i] = origin;
  }
  r->out->length += size;
  return AIT_OK;
}

/* Bytes as they are. */
static ait_status copy(norm_run *r, size_t from, size_t size) {
  if (!size) return AIT_OK;
  AIT_TRY(ait_buffer_reserve(r->s, r->out, size, r->origin != NULL));
  memcpy(r->out->data + r->out->length, r->data + from, size);
  if (r->origin) memcpy(r->out->origin + r->out->length, r->origin + from, size * sizeof *r->origin);
  r->out->length += size;
  return AIT_OK;
}

static ait_status put_code(norm_run *r, uint32_t code, size_t from) {
  char bytes[4];
  return put(r, bytes, ait_utf8_write(bytes, code), from);
}

/* ---- normal forms ----------------------------------------------------------------------------------------------------------------*/
/* A stretch from a character that a later one may change up to the next that nothing changes. */
static ait_status norm_stretch(norm_run *r, ait_normal_form form, size_t from, size_t end) {
  size_t count;
  AIT_TRY(ait_normalize(r->s->allocator, r->data + from, end - from, form, &r->s->codes, &r->s->code_capacity, &count));
  size_t at = from; /* the i-th result is taken to come from the i-th character */
  for (size_t i = 0; i < count; ++i) {
    AIT_TRY(put_code(r, (uint32_t)r->s->codes[i], at));
    uint32_t code;
    if (at < end) {
      size_t next = at + ait_utf8_read(r->data + at, &code);
      if (next < end) at = next;
    }
  }
  return AIT_OK;
}

static bool settled(uint32_t code, uint32_t safe) { return code < safe || ait_normal_unknown(code); }

static ait_status norm_form(norm_run *r, ait_normal_form form) {
  uint32_t safe = ait_normal_safe_below(form), code;
  size_t begin = 0, previous = 0, i = 0; /* begin: not yet written; previous: the last character that a later one may change */
  while (i < r->size) {
    uint32_t n = ait_utf8_read(r->data + i, &code);
    if (settled(code, safe)) {
      previous = code < safe ? i : i + n;
      i += n;
      continue;
    }
    size_t from = i > begin ? previous : i;
    AIT_TRY(copy(r, begin, from - begin));
    while (i < r->size && (ait_utf8_read(r->data + i, &code), !settled(code, safe))) i += ait_utf8_read(r->data + i, &code);
    AIT_TRY(norm_stretch(r, form, from, i));
    begin = previous = i;
  }
  return copy(r, begin, r->size - begin);
}

/* ---- character by character --------------------------------------------------------------------------------------------------------*/
static bool dropped(ait_norm_kind kind, uint32_t c) {
  switch (kind) {
    case AIT_NORM_STRIP_ACCENTS: return ait_char_is_mark(c);
    case AIT_NORM_BERT_ACCENTS: return ait_char_is_mark_nonspacing(c);
    case AIT_NORM_BERT_CLEAN: return c == 0 || c == 0xFFFD || (c != '\t' && c != '\n' && c != '\r' && ait_char_is_other(c));
    case AIT_NORM_NMT: return (c >= 1 && c <= 8) || c == 0xB || (c >= 0xE && c <= 0x1F) || c == 0x7F || c == 0x8F || c == 0x9F;
    default: return false;
  }
}

static bool blanked(ait_norm_kind kind, uint32_t c) {
  if (kind == AIT_NORM_BERT_CLEAN) return ait_char_is_space(c);
  return kind == AIT_NORM_NMT && (c == 9 || c == 0xA || c == 0xC || c == 0xD || c == 0x1680 || (c >= 0x200B && c <= 0x200F) ||
                                  c == 0x2028 || c == 0x2029 || c == 0x2581 || c == 0xFEFF || c == 0xFFFD);
}

static ait_status norm_chars(norm_run *r, ait_norm_kind kind) {
  uint32_t code, lower[2];
  for (size_t i = 0, n; i < r->size; i += n) {
    n = ait_utf8_read(r->data + i, &code);
    if (kind == AIT_NORM_LOWERCASE) {
      int count = ait_char_lower(code, lower);
      for (int k = 0; k < count; ++k) AIT_TRY(put_code(r, lower[k], i));
    } else if (kind == AIT_NORM_BERT_CJK) {
      bool cjk = ait_char_is_cjk(code);
      if (cjk) AIT_TRY(put(r, " ", 1, i));
      AIT_TRY(copy(r, i, n));
      if (cjk) AIT_TRY(put(r, " ", 1, i));
    } else if (dropped(kind, code)) {
      continue;
    } else if (blanked(kind, code)) {
      AIT_TRY(put(r, " ", 1, i));
    } else {
      AIT_TRY(copy(r, i, n));
    }
  }
  return AIT_OK;
}

static ait_status norm_strip(norm_run *r, bool left, bool right) {
  size_t begin = 0, end = r->size;
  uint32_t code;
  while (left && begin < end) {
    uint32_t n = ait_utf8_read(r->data + begin, &code);
    if (!ait_char_is_space(code)) break;
    begin += n;
  }
  while (right && end > begin) {
    size_t last = end - 1;
    while (last > begin && ((unsigned char)r->data[last] & 0xC0) == 0x80) --last;
    ait_utf8_read(r->data + last, &code);
    if (!ait_char_is_space(code)) break;
    end = last;
  }
  return copy(r, begin, end - begin);
}

/* ---- others ------------------------------------------------------------------------------------------------------------------------*/
static ait_status norm_replace(norm_run *r, const ait_part *part) {
  AIT_TRY(ait_pattern_matches(r->s, &part->pattern, r->data, r->size, false));
  for (size_t i = 0; i < r->s->match_count; ++i) {
    ait_match m = r->s->matches[i];
    if (m.match) AIT_TRY(put(r, part->text.data, part->text.size, m.end ? m.end - 1 : 0));
    else AIT_TRY(copy(r, m.begin, m.end - m.begin));
  }
  return AIT_OK;
}

static ait_status norm_byte_level(norm_run *r) {
  char bytes[2];
  AIT_TRY(ait_buffer_reserve(r->s, r->out, 2 * r->size, r->origin != NULL));
  for (size_t i = 0; i < r->size; ++i) AIT_TRY(put(r, bytes, ait_byte_char_write(bytes, (uint8_t)r->data[i]), i));
  return AIT_OK;
}

/* The shortest key that begins the text, as sentencepiece's normaliser looks it up; its replacement. */
ait_span ait_charsmap_find(const ait_charsmap *map, const char *text, size_t size, bool *found) {
  uint64_t node = 0;
  *found = false;
  if (!map->unit_count) return (ait_span){0};
  uint32_t unit = map->units[0];
  node ^= (uint64_t)(unit >> 10) << ((unit & 512) >> 6);
  for (size_t i = 0; i < size && text[i]; ++i) {
    node ^= (uint8_t)text[i];
    if (node >= map->unit_count) return (ait_span){0};
    unit = map->units[node];
    if ((unit & 0x800000FF) != (uint8_t)text[i]) return (ait_span){0};
    node ^= (uint64_t)(unit >> 10) << ((unit & 512) >> 6);
    if (!(unit >> 8 & 1)) continue;
    if (node >= map->unit_count) return (ait_span){0};
    uint32_t value = map->units[node] & 0x7FFFFFFF;
    if (value >= map->blob_size) return (ait_span){0};
    *found = true;
    return (ait_span){map->blob + value, (uint32_t)strnlen(map->blob + value, map->blob_size - value)};
  }
  return (ait_span){0};
}

/* One grapheme: whole when it is short and known, else character by character. */
static ait_status norm_grapheme(norm_run *r, const ait_charsmap *map, size_t from, size_t end) {
  bool found = false;
  if (end - from < 6) {
    ait_span text = ait_charsmap_find(map, r->data + from, end - from, &found);
    if (found) return put(r, text.data, text.size, from);
  }
  uint32_t code;
  for (size_t i = from, n; i < end; i += n) {
    n = ait_utf8_read(r->data + i, &code);
    ait_span text = ait_charsmap_find(map, r->data + i, n, &found);
    if (found) AIT_TRY(put(r, text.data, text.size, i));
    else AIT_TRY(copy(r, i, n));
  }
  return AIT_OK;
}

static ait_status norm_precompiled(norm_run *r, const ait_charsmap *map) {
  size_t from = 0;
  uint32_t code, previous = 0;
  int32_t state = 0;
  for (size_t i = 0, n; i < r->size; i += n) {
    n = ait_utf8_read(r->data + i, &code);
    if (i && ait_grapheme_break(previous, code, &state)) {
      AIT_TRY(norm_grapheme(r, map, from, i));
      from = i;
    }
    previous = code;
  }
  return r->size ? norm_grapheme(r, map, from, r->size) : AIT_OK;
}

static ait_status run_part(norm_run *r, const ait_part *part) {
  switch ((ait_norm_kind)part->kind) {
    case AIT_NORM_FORM: return norm_form(r, part->form);
    case AIT_NORM_STRIP: return norm_strip(r, part->left, part->right);
    case AIT_NORM_REPLACE: return norm_replace(r, part);
    case AIT_NORM_PREPEND:
      if (r->size) AIT_TRY(put(r, part->text.data, part->text.size, 0));
      return copy(r, 0, r->size);
    case AIT_NORM_PRECOMPILED: return norm_precompiled(r, &part->charsmap);
    case AIT_NORM_BYTE_LEVEL: return norm_byte_level(r);
    default: return norm_chars(r, (ait_norm_kind)part->kind);
  }
}

/* Two scratch buffers in turn behind the one that is read; the last one is appended to out. */
ait_status ait_normalize_piece(const ait_tokenizer *t, ait_scratch *s, const ait_piece *piece, const char *data, const uint32_t *origin,
                               ait_buffer *out) {
  ait_buffer turn[2] = {0};
  ait_status status = AIT_OK;
  norm_run r = {.s = s, .data = data + piece->begin, .origin = origin ? origin + piece->begin : NULL, .size = piece->size};
  for (size_t i = 0; i < t->normalizer.count && !status; ++i) {
    bool last = i + 1 == t->normalizer.count;
    r.out = last ? out : &turn[i % 2];
    if (!last) r.out->length = 0;
    status = run_part(&r, &t->normalizer.items[i]);
    r.data = r.out->data, r.size = r.out->length;
    r.origin = r.origin ? r.out->origin : NULL;
  }
  if (t->normalizer.count == 0) {
    r.out = out;
    status = copy(&r, 0, r.size);
  }
  for (int i = 0; i < 2; ++i) {
    ait_free(s->allocator, turn[i].data, turn[i].capacity);
    ait_free(s->allocator, turn[i].origin, turn[i].origin_capacity * sizeof *turn[i].origin);
  }
  return status;
}
