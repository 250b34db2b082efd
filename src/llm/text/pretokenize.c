/* Pre-tokenizers: cut pieces of text into smaller ones, some change the text. Meaning of patterns and behaviours: the library tokenizers.
 */
#include "llm/text/tokenizer.h"

/* ---- finding -----------------------------------------------------------------------------------------------------------------------*/
static ait_status add_match(ait_scratch *s, size_t begin, size_t end, bool match) {
  AIT_TRY(ait_grow(s->allocator, (void **)&s->matches, &s->match_capacity, s->match_count + 1, sizeof *s->matches));
  s->matches[s->match_count++] = (ait_match){(uint32_t)begin, (uint32_t)end, match};
  return AIT_OK;
}

static ait_status add_found(ait_scratch *s, size_t *previous, size_t begin, size_t end) {
  if (*previous != begin) AIT_TRY(add_match(s, *previous, begin, false));
  *previous = end;
  return add_match(s, begin, end, true);
}

static ait_status literal_matches(ait_scratch *s, ait_span literal, const char *data, size_t size, size_t *previous) {
  size_t from = 0;
  while (size - from >= literal.size) {
    const char *hit = literal.size == 1 ? memchr(data + from, literal.data[0], size - from)
                                        : memmem(data + from, size - from, literal.data, literal.size);
    if (!hit) break;
    size_t begin = (size_t)(hit - data);
    from = begin + literal.size;
    AIT_TRY(add_found(s, previous, begin, from));
  }
  return AIT_OK;
}

/* An empty match right behind the last one is skipped, as Oniguruma's iterator does. */
static ait_status regex_matches(ait_scratch *s, const ait_regex *regex, const char *data, size_t size, size_t *previous) {
  size_t from = 0, last = SIZE_MAX, begin, end;
  while (from <= size) {
    bool found;
    AIT_TRY(ait_regex_find(regex, s->matcher, data, size, from, &found, &begin, &end));
    if (!found) break;
    if (begin == end && end == last) {
      uint32_t code;
      from = end < size ? end + ait_utf8_read(data + end, &code) : size + 1;
      continue;
    }
    from = last = end;
    AIT_TRY(add_found(s, previous, begin, end));
  }
  return AIT_OK;
}

ait_status ait_pattern_matches(ait_scratch *s, const ait_pattern *pattern, const char *data, size_t size, bool invert) {
  size_t previous = 0;
  s->match_count = 0;
  if (size == 0) return add_match(s, 0, 0, invert);
  if (pattern->regex) AIT_TRY(regex_matches(s, pattern->regex, data, size, &previous));
  else AIT_TRY(literal_matches(s, pattern->literal, data, size, &previous));
  if (previous != size) AIT_TRY(add_match(s, previous, size, false));
  for (size_t i = 0; invert && i < s->match_count; ++i) s->matches[i].match = !s->matches[i].match;
  return AIT_OK;
}

static ait_status class_matches(ait_scratch *s, bool (*is)(uint32_t), const char *data, size_t size) {
  size_t previous = 0;
  uint32_t code;
  s->match_count = 0;
  for (size_t i = 0, n; i < size; i += n) {
    n = ait_utf8_read(data + i, &code);
    if (is(code)) AIT_TRY(add_found(s, &previous, i, i + n));
  }
  return previous != size ? add_match(s, previous, size, false) : AIT_OK;
}

/* ---- behaviours: s->matches become the parts to keep ---------------------------------------------------------------------------------*/
static size_t merge_forward(ait_match *m, size_t count, ait_behavior behavior) {
  size_t out = 0;
  bool previous = false;
  for (size_t i = 0; i < count; ++i) {
    bool match = m[i].match, join = behavior == AIT_CONTIGUOUS ? match == previous : match && !previous;
    if (join && out) m[out - 1].end = m[i].end;
    else m[out++] = (ait_match){m[i].begin, m[i].end, false};
    previous = match;
  }
  return out;
}

static void merge_backward(ait_match *m, size_t *count) {
  size_t out = *count;
  bool previous = false;
  for (size_t i = *count; i-- > 0;) {
    bool match = m[i].match;
    if (match && !previous && out < *count) m[out].begin = m[i].begin;
    else m[--out] = (ait_match){m[i].begin, m[i].end, false};
    previous = match;
  }
  memmove(m, m + out, (*count - out) * sizeof *m);
  *count -= out;
}

static ait_status keep_parts(ait_scratch *s, const ait_piece *piece, ait_behavior behavior) {
  if (behavior == AIT_MERGED_NEXT) merge_backward(s->matches, &s->match_count);
  else if (behavior == AIT_CONTIGUOUS || behavior == AIT_MERGED_PREVIOUS)
    s->match_count = merge_forward(s->matches, s->match_count, behavior);
  for (size_t i = 0; i < s->match_count; ++i) {
    const ait_match *m = &s->matches[i];
    if (m->begin == m->end || (behavior == AIT_REMOVED && m->match)) continue;
    uint32_t begin = piece->begin + m->begin;
    AIT_TRY(ait_pieces_add(s, &s->next, (ait_piece){begin, m->end - m->begin, s->text.origin ? s->text.origin[begin] : 0, -1}));
  }
  return AIT_OK;
}

/* ---- one piece -----------------------------------------------------------------------------------------------------------------------*/
static ait_status split_fixed(ait_scratch *s, const ait_piece *piece, int64_t length) {
  const char *data = s->text.data + piece->begin;
  size_t begin = 0;
  int64_t in_part = 0;
  uint32_t code;
  s->match_count = 0;
  for (size_t i = 0; i < piece->size;) {
    i += ait_utf8_read(data + i, &code);
    if (++in_part < length && i < piece->size) continue;
    AIT_TRY(add_match(s, begin, i, true));
    begin = i;
    in_part = 0;
  }
  return keep_parts(s, piece, AIT_ISOLATED);
}

static ait_status split_piece(ait_scratch *s, const ait_part *part, const ait_piece *piece) {
  const char *data = s->text.data + piece->begin;
  switch ((ait_pre_kind)part->kind) {
    case AIT_PRE_SPLIT: AIT_TRY(ait_pattern_matches(s, &part->pattern, data, piece->size, part->invert)); break;
    case AIT_PRE_SPACE: AIT_TRY(class_matches(s, ait_char_is_space, data, piece->size)); break;
    case AIT_PRE_PUNCTUATION: AIT_TRY(class_matches(s, ait_char_is_punctuation, data, piece->size)); break;
    case AIT_PRE_NUMERIC: AIT_TRY(class_matches(s, ait_char_is_numeric, data, piece->size)); break;
    default: return split_fixed(s, piece, part->start);
  }
  return keep_parts(s, piece, part->behavior);
}

static ait_status split_all(ait_scratch *s, const ait_part *part) {
  s->next.count = 0;
  for (size_t i = 0; i < s->pieces.count; ++i) {
    ait_piece piece = s->pieces.items[i];
    if (piece.id >= 0) AIT_TRY(ait_pieces_add(s, &s->next, piece));
    else AIT_TRY(split_piece(s, part, &piece));
  }
  ait_pieces swap = s->pieces;
  s->pieces = s->next;
  s->next = swap;
  return AIT_OK;
}

/* ---- parts that change the text: every piece is written anew
 * ---------------------------------------------------------------------------*/
static void put_byte_text(ait_scratch *s, const char *data, uint32_t from, uint32_t size) {
  ait_buffer *o = &s->other;
  for (uint32_t i = 0; i < size; ++i) {
    uint32_t n = ait_byte_char_write(o->data + o->length, (uint8_t)data[i]);
    if (s->text.origin) o->origin[o->length] = o->origin[o->length + n - 1] = s->text.origin[from + i];
    o->length += n;
  }
}

static void put_bytes(ait_scratch *s, const char *data, uint32_t size, uint32_t origin) {
  memcpy(s->other.data + s->other.length, data, size);
  for (uint32_t i = 0; s->text.origin && i < size; ++i) s->other.origin[s->other.length + i] = origin;
  s->other.length += size;
}

static bool begins(const char *data, uint32_t size, ait_span with) { return size >= with.size && memcmp(data, with.data, with.size) == 0; }

static ait_status metaspace_piece(ait_scratch *s, const ait_part *part, ait_piece *piece) {
  const char *data = s->text.data + piece->begin;
  const uint32_t *origin = s->text.origin ? s->text.origin + piece->begin : NULL;
  size_t worst;
  if (ait_mul_overflows((size_t)piece->size + 1, (size_t)part->text.size, &worst)) return AIT_OOM();
  AIT_TRY(ait_buffer_reserve(s, &s->other, worst, origin != NULL));
  uint32_t begin = (uint32_t)s->other.length;
  bool marked = data[0] == ' ' || begins(data, piece->size, part->text);
  bool wanted = part->prepend == AIT_PREPEND_ALWAYS || (part->prepend == AIT_PREPEND_FIRST && piece->start == 0);
  if (wanted && !marked) put_bytes(s, part->text.data, part->text.size, origin ? origin[0] : 0);
  for (uint32_t i = 0; i < piece->size; ++i) {
    if (data[i] == ' ') put_bytes(s, part->text.data, part->text.size, origin ? origin[i] : 0);
    else put_bytes(s, data + i, 1, origin ? origin[i] : 0);
  }
  piece->begin = begin;
  piece->size = (uint32_t)s->other.length - begin;
  return AIT_OK;
}

static ait_status byte_level_piece(ait_scratch *s, ait_piece *piece) {
  AIT_TRY(ait_buffer_reserve(s, &s->other, 2 * (size_t)piece->size, s->text.origin != NULL));
  uint32_t begin = (uint32_t)s->other.length;
  put_byte_text(s, s->text.data + piece->begin, piece->begin, piece->size);
  piece->begin = begin;
  piece->size = (uint32_t)s->other.length - begin;
  return AIT_OK;
}

static ait_status prefix_piece(ait_scratch *s, ait_piece *piece) {
  const char *data = s->text.data + piece->begin;
  const uint32_t *origin = s->text.origin ? s->text.origin + piece->begin : NULL;
  AIT_TRY(ait_buffer_reserve(s, &s->other, (size_t)piece->size + 1, origin != NULL));
  uint32_t begin = (uint32_t)s->other.length;
  if (data[0] != ' ') put_bytes(s, " ", 1, origin ? origin[0] : 0);
  memcpy(s->other.data + s->other.length, data, piece->size);
  if (origin) memcpy(s->other.origin + s->other.length, origin, piece->size * sizeof *origin);
  s->other.length += piece->size;
  piece->begin = begin;
  piece->size = (uint32_t)s->other.length - begin;
  return AIT_OK;
}

typedef enum rewrite { REWRITE_METASPACE, REWRITE_BYTES, REWRITE_PREFIX } rewrite;

static ait_status rewrite_all(ait_scratch *s, const ait_part *part, rewrite how) {
  s->other.length = 0;
  for (size_t i = 0; i < s->pieces.count; ++i) {
    ait_piece *piece = &s->pieces.items[i];
    if (piece->id >= 0) continue;
    if (how == REWRITE_METASPACE) AIT_TRY(metaspace_piece(s, part, piece));
    else if (how == REWRITE_BYTES) AIT_TRY(byte_level_piece(s, piece));
    else AIT_TRY(prefix_piece(s, piece));
  }
  ait_buffer swap = s->text;
  s->text = s->other;
  s->other = swap;
  return AIT_OK;
}

ait_status ait_pretokenize(const ait_tokenizer *t, ait_scratch *s) {
  for (size_t i = 0; i < t->pre_tokenizer.count; ++i) {
    const ait_part *part = &t->pre_tokenizer.items[i];
    if (part->kind == AIT_PRE_BYTE_LEVEL) {
      ait_part words = {.kind = AIT_PRE_SPLIT, .pattern.regex = t->byte_level_regex, .behavior = AIT_ISOLATED};
      if (part->prefix_space) AIT_TRY(rewrite_all(s, part, REWRITE_PREFIX));
      if (part->use_regex) AIT_TRY(split_all(s, &words));
      AIT_TRY(rewrite_all(s, part, REWRITE_BYTES));
    } else if (part->kind == AIT_PRE_METASPACE) {
      ait_part marks = {.kind = AIT_PRE_SPLIT, .pattern.literal = part->text, .behavior = AIT_MERGED_NEXT};
      AIT_TRY(rewrite_all(s, part, REWRITE_METASPACE));
      if (part->split) AIT_TRY(split_all(s, &marks));
    } else {
      AIT_TRY(split_all(s, part));
    }
  }
  return AIT_OK;
}
