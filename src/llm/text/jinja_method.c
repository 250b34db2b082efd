/* Methods of strings, dictionaries and lists that templates call, as Python has them; those that change their object are refused. */
#include "llm/text/jinja.h"
#include "llm/text/unicode.h"
#include <utf8proc.h>

#define FN(name) static ait_status name(ait_jrun *r, const ait_jv *self, const ait_jv *slots, const ait_jargs *args, ait_jv *out)
#define UNUSED_ARGS (void)r, (void)self, (void)slots, (void)args, (void)out

static bool given(const ait_jv *v) { return v->kind != AIT_JV_UNSET && v->kind != AIT_JV_NONE; }

static ait_status need_string(ait_jrun *r, const ait_jv *v) {
  return v->kind == AIT_JV_STRING ? AIT_OK : ait_jfail(r, AIT_CODE_INVALID_MODEL, "a string expected, not %s", ait_jv_type(v));
}

static ait_status count_slot(ait_jrun *r, const ait_jv *v, int64_t *out) {
  *out = -1;
  if (!given(v)) return AIT_OK;
  if (v->kind != AIT_JV_INT) return ait_jfail(r, AIT_CODE_INVALID_MODEL, "an integer expected, not %s", ait_jv_type(v));
  *out = v->as.i;
  return AIT_OK;
}

/* ---- strings
 * ---------------------------------------------------------------------------------------------------------------------------*/
FN(s_strip) {
  UNUSED_ARGS;
  *out = ait_jv_strip(self, &slots[0], true, true);
  return AIT_OK;
}
FN(s_lstrip) {
  UNUSED_ARGS;
  *out = ait_jv_strip(self, &slots[0], true, false);
  return AIT_OK;
}
FN(s_rstrip) {
  UNUSED_ARGS;
  *out = ait_jv_strip(self, &slots[0], false, true);
  return AIT_OK;
}
FN(s_upper) {
  UNUSED_ARGS;
  return ait_jv_case(r, self, AIT_JCASE_UPPER, out);
}
FN(s_lower) {
  UNUSED_ARGS;
  return ait_jv_case(r, self, AIT_JCASE_LOWER, out);
}
FN(s_title) {
  UNUSED_ARGS;
  return ait_jv_case(r, self, AIT_JCASE_TITLE, out);
}
FN(s_capitalize) {
  UNUSED_ARGS;
  return ait_jv_case(r, self, AIT_JCASE_CAPITALIZE, out);
}
FN(s_swapcase) {
  UNUSED_ARGS;
  return ait_jv_case(r, self, AIT_JCASE_SWAP, out);
}

static bool has_affix(const ait_jv *s, const ait_jv *affix, bool end) {
  return affix->kind == AIT_JV_STRING && affix->size <= s->size &&
         memcmp(s->as.s + (end ? s->size - affix->size : 0), affix->as.s, affix->size) == 0;
}

static ait_status affixes(ait_jrun *r, const ait_jv *self, const ait_jv *slot, bool end, ait_jv *out) {
  bool yes = false;
  if (slot->kind == AIT_JV_LIST && slot->as.list->type == AIT_JL_TUPLE) {
    for (uint32_t i = 0; i < slot->as.list->count; ++i) yes |= has_affix(self, &slot->as.list->items[i], end);
  } else {
    AIT_TRY(need_string(r, slot));
    yes = has_affix(self, slot, end);
  }
  *out = ait_jv_bool(yes);
  return AIT_OK;
}
FN(s_startswith) {
  UNUSED_ARGS;
  return affixes(r, self, &slots[0], false, out);
}
FN(s_endswith) {
  UNUSED_ARGS;
  return affixes(r, self, &slots[0], true, out);
}

FN(s_removeprefix) {
  UNUSED_ARGS;
  AIT_TRY(need_string(r, &slots[0]));
  bool has = has_affix(self, &slots[0], false);
  *out = ait_jv_span(self->as.s + (has ? slots[0].size : 0), self->size - (has ? slots[0].size : 0));
  return AIT_OK;
}
FN(s_removesuffix) {
  UNUSED_ARGS;
  AIT_TRY(need_string(r, &slots[0]));
  *out = ait_jv_span(self->as.s, self->size - (has_affix(self, &slots[0], true) ? slots[0].size : 0));
  return AIT_OK;
}

FN(s_replace) {
  UNUSED_ARGS;
  int64_t count;
  AIT_TRY(need_string(r, &slots[0]));
  AIT_TRY(need_string(r, &slots[1]));
  AIT_TRY(count_slot(r, &slots[2], &count));
  return ait_jv_replace(r, self, &slots[0], &slots[1], count, out);
}

/* At white space: runs of it separate, and none stands at the ends. */
static ait_status split_space(ait_jrun *r, const ait_jv *self, int64_t limit, ait_jlist *list) {
  ait_jv none = {0}, left = ait_jv_strip(self, &none, true, false);
  while (left.size) {
    uint32_t end = 0, code;
    bool last = limit >= 0 && (int64_t)list->count == limit;
    while (!last && end < left.size) {
      uint32_t n = ait_utf8_read(left.as.s + end, &code);
      if (ait_char_is_space(code) || (code >= 0x1C && code <= 0x1F)) break;
      end += n;
    }
    ait_jv rest = left;
    if (last) return ait_jlist_add(r, list, rest);
    AIT_TRY(ait_jlist_add(r, list, ait_jv_span(left.as.s, end)));
    rest = ait_jv_span(left.as.s + end, left.size - end);
    left = ait_jv_strip(&rest, &none, true, false);
  }
  return AIT_OK;
}

FN(s_split) {
  UNUSED_ARGS;
  int64_t limit;
  AIT_TRY(count_slot(r, &slots[1], &limit));
  AIT_TRY(ait_jlist_new(r, AIT_JL_LIST, 0, out));
  if (!given(&slots[0])) return split_space(r, self, limit, out->as.list);
  AIT_TRY(need_string(r, &slots[0]));
  if (!slots[0].size) return ait_jfail(r, AIT_CODE_INVALID_MODEL, "empty separator");
  uint32_t at = 0;
  for (const char *hit; limit != 0 && (hit = memmem(self->as.s + at, self->size - at, slots[0].as.s, slots[0].size)); --limit) {
    uint32_t end = (uint32_t)(hit - self->as.s);
    AIT_TRY(ait_jlist_add(r, out->as.list, ait_jv_span(self->as.s + at, end - at)));
    at = end + slots[0].size;
  }
  return ait_jlist_add(r, out->as.list, ait_jv_span(self->as.s + at, self->size - at));
}

static int64_t find_last(const ait_jv *s, uint32_t end, const ait_jv *what) {
  for (int64_t at = (int64_t)end - what->size; at >= 0; --at) {
    if (memcmp(s->as.s + at, what->as.s, what->size) == 0) return at;
  }
  return -1;
}

FN(s_rsplit) {
  UNUSED_ARGS;
  int64_t limit, hit;
  ait_jv parts;
  AIT_TRY(count_slot(r, &slots[1], &limit));
  if (!given(&slots[0]) && limit < 0) return s_split(r, self, slots, args, out);
  if (!given(&slots[0])) return ait_jfail(r, AIT_CODE_UNSUPPORTED, "rsplit at white space with a limit");
  AIT_TRY(need_string(r, &slots[0]));
  if (!slots[0].size) return ait_jfail(r, AIT_CODE_INVALID_MODEL, "empty separator");
  AIT_TRY(ait_jlist_new(r, AIT_JL_LIST, 0, &parts));
  uint32_t end = self->size;
  for (; limit != 0 && (hit = find_last(self, end, &slots[0])) >= 0; --limit) {
    AIT_TRY(ait_jlist_add(r, parts.as.list, ait_jv_span(self->as.s + hit + slots[0].size, end - (uint32_t)hit - slots[0].size)));
    end = (uint32_t)hit;
  }
  AIT_TRY(ait_jlist_add(r, parts.as.list, ait_jv_span(self->as.s, end)));
  AIT_TRY(ait_jlist_new(r, AIT_JL_LIST, parts.as.list->count, out));
  for (uint32_t i = parts.as.list->count; i-- > 0;) AIT_TRY(ait_jlist_add(r, out->as.list, parts.as.list->items[i]));
  return AIT_OK;
}

/* Python's line ends: \n \r \r\n \v \f \x1c-\x1e \x85 \u2028 \u2029. */
FN(s_splitlines) {
  UNUSED_ARGS;
  bool keep = given(&slots[0]) && ait_jv_truth(&slots[0]);
  uint32_t begin = 0, code;
  AIT_TRY(ait_jlist_new(r, AIT_JL_LIST, 0, out));
  for (uint32_t i = 0; i < self->size;) {
    uint32_t end = i;
    i += ait_utf8_read(self->as.s + i, &code);
    if (!ait_char_ends_line(code)) continue;
    if (code == '\r' && i < self->size && self->as.s[i] == '\n') ++i;
    AIT_TRY(ait_jlist_add(r, out->as.list, ait_jv_span(self->as.s + begin, (keep ? i : end) - begin)));
    begin = i;
  }
  return begin < self->size ? ait_jlist_add(r, out->as.list, ait_jv_span(self->as.s + begin, self->size - begin)) : AIT_OK;
}

FN(s_join) {
  UNUSED_ARGS;
  ait_jv *items;
  uint32_t count;
  ait_text text;
  AIT_TRY(ait_jv_items(r, &slots[0], &items, &count));
  for (uint32_t i = 0; i < count; ++i) AIT_TRY(need_string(r, &items[i]));
  ait_text_init(&text, r->arena.allocator);
  for (uint32_t i = 0; i < count && text.length <= r->out_limit; ++i) {
    if (i) ait_text_append(&text, self->as.s, self->size);
    ait_text_append(&text, items[i].as.s, items[i].size);
  }
  return ait_jv_copy_text(r, &text, out);
}

static ait_status find(ait_jrun *r, const ait_jv *self, const ait_jv *what, bool last, ait_jv *out) {
  AIT_TRY(need_string(r, what));
  const char *hit = what->size ? memmem(self->as.s, self->size, what->as.s, what->size) : self->as.s;
  int64_t at = last ? find_last(self, self->size, what) : hit ? hit - self->as.s : -1;
  *out = ait_jv_int(at < 0 ? -1 : (int64_t)ait_utf8_count(self->as.s, (size_t)at));
  return ait_jinja_step(r, 1 + self->size / 64);
}
FN(s_find) {
  UNUSED_ARGS;
  return find(r, self, &slots[0], false, out);
}
FN(s_rfind) {
  UNUSED_ARGS;
  return find(r, self, &slots[0], true, out);
}
FN(s_index) {
  UNUSED_ARGS;
  AIT_TRY(find(r, self, &slots[0], false, out));
  return out->as.i < 0 ? ait_jfail(r, AIT_CODE_INVALID_MODEL, "substring not found") : AIT_OK;
}

FN(s_count) {
  UNUSED_ARGS;
  int64_t n = 0;
  AIT_TRY(need_string(r, &slots[0]));
  if (!slots[0].size) return *out = ait_jv_int((int64_t)ait_utf8_count(self->as.s, self->size) + 1), AIT_OK;
  for (const char *p = self->as.s, *end = p + self->size; (p = memmem(p, (size_t)(end - p), slots[0].as.s, slots[0].size));
       p += slots[0].size)
    ++n;
  *out = ait_jv_int(n);
  return AIT_OK;
}

/* Does every character belong to the class, and is there one? */
static ait_status all_of(const ait_jv *s, bool (*is)(uint32_t), ait_jv *out) {
  bool yes = s->size > 0;
  uint32_t code;
  for (uint32_t i = 0; i < s->size && yes;) {
    i += ait_utf8_read(s->as.s + i, &code);
    yes = is(code);
  }
  *out = ait_jv_bool(yes);
  return AIT_OK;
}

static bool is_alpha(uint32_t c) {
  utf8proc_category_t k = utf8proc_category((utf8proc_int32_t)c);
  return k >= UTF8PROC_CATEGORY_LU && k <= UTF8PROC_CATEGORY_LO;
}
static bool is_digit(uint32_t c) { return utf8proc_category((utf8proc_int32_t)c) == UTF8PROC_CATEGORY_ND; }
static bool is_alnum(uint32_t c) { return is_alpha(c) || ait_char_is_numeric(c); }
static bool is_space(uint32_t c) { return ait_char_is_space(c) || (c >= 0x1C && c <= 0x1F); }
FN(s_isalpha) {
  UNUSED_ARGS;
  return all_of(self, is_alpha, out);
}
FN(s_isdigit) {
  UNUSED_ARGS;
  return all_of(self, is_digit, out);
}
FN(s_isnumeric) {
  UNUSED_ARGS;
  return all_of(self, ait_char_is_numeric, out);
}
FN(s_isalnum) {
  UNUSED_ARGS;
  return all_of(self, is_alnum, out);
}
FN(s_isspace) {
  UNUSED_ARGS;
  return all_of(self, is_space, out);
}
FN(s_isupper) {
  UNUSED_ARGS;
  bool yes;
  AIT_TRY(ait_jinja_test(r, "upper", self, &(ait_jargs){0}, &yes));
  *out = ait_jv_bool(yes);
  return AIT_OK;
}
FN(s_islower) {
  UNUSED_ARGS;
  bool yes;
  AIT_TRY(ait_jinja_test(r, "lower", self, &(ait_jargs){0}, &yes));
  *out = ait_jv_bool(yes);
  return AIT_OK;
}

/* Text and fill around it: left and right of the text. */
static ait_status pad(ait_jrun *r, const ait_jv *self, const ait_jv *slots, bool left, bool right, ait_jv *out) {
  int64_t width, have = (int64_t)ait_utf8_count(self->as.s, self->size);
  ait_jv fill = given(&slots[1]) ? slots[1] : ait_jv_span(" ", 1);
  AIT_TRY(count_slot(r, &slots[0], &width));
  AIT_TRY(need_string(r, &fill));
  int64_t more = width > have ? width - have : 0, before = left && right ? more / 2 + (more & width & 1) : left ? more : 0;
  if (more > (int64_t)r->out_limit) return ait_jfail(r, AIT_CODE_LIMIT, "a text of more than %zu MB", r->out_limit >> 20);
  ait_text text;
  ait_text_init(&text, r->arena.allocator);
  for (int64_t i = 0; i < before; ++i) ait_text_append(&text, fill.as.s, fill.size);
  ait_text_append(&text, self->as.s, self->size);
  for (int64_t i = before; i < more; ++i) ait_text_append(&text, fill.as.s, fill.size);
  return ait_jv_copy_text(r, &text, out);
}
FN(s_ljust) {
  UNUSED_ARGS;
  return pad(r, self, slots, false, true, out);
}
FN(s_rjust) {
  UNUSED_ARGS;
  return pad(r, self, slots, true, false, out);
}
FN(s_center) {
  UNUSED_ARGS;
  return pad(r, self, slots, true, true, out);
}

FN(s_partition) {
  UNUSED_ARGS;
  AIT_TRY(need_string(r, &slots[0]));
  if (!slots[0].size) return ait_jfail(r, AIT_CODE_INVALID_MODEL, "empty separator");
  const char *hit = memmem(self->as.s, self->size, slots[0].as.s, slots[0].size);
  uint32_t at = hit ? (uint32_t)(hit - self->as.s) : self->size, behind = hit ? at + slots[0].size : self->size;
  AIT_TRY(ait_jlist_new(r, AIT_JL_TUPLE, 3, out));
  AIT_TRY(ait_jlist_add(r, out->as.list, ait_jv_span(self->as.s, at)));
  AIT_TRY(ait_jlist_add(r, out->as.list, ait_jv_span(self->as.s + at, behind - at)));
  return ait_jlist_add(r, out->as.list, ait_jv_span(self->as.s + behind, self->size - behind));
}

/* {} {0} {name}; no format specifications. */
FN(s_format) {
  UNUSED_ARGS;
  uint32_t next = 0;
  ait_status status = AIT_OK;
  ait_text text;
  ait_text_init(&text, r->arena.allocator);
  for (const char *p = self->as.s, *end = p + self->size; p < end && !status;) {
    const ait_jv *value = NULL;
    const char *close = *p == '{' ? memchr(p, '}', (size_t)(end - p)) : NULL;
    if ((*p == '{' || *p == '}') && p + 1 < end && p[1] == *p) {
      ait_text_append(&text, p, 1);
      p += 2;
    } else if (*p != '{') {
      ait_text_append(&text, p++, 1);
    } else {
      size_t size = close ? (size_t)(close - p - 1) : 0;
      uint32_t index = size == 1 && p[1] >= '0' && p[1] <= '9' ? (uint32_t)(p[1] - '0') : size == 0 ? next++ : UINT32_MAX;
      if (close && index < args->positional) value = &args->values[index];
      for (uint32_t k = args->positional; k < args->positional + args->keywords; ++k) {
        if (close && strlen(args->names[k]) == size && memcmp(args->names[k], p + 1, size) == 0) value = &args->values[k];
      }
      status = value ? ait_jv_str(r, value, &text)
                     : ait_jfail(r, AIT_CODE_UNSUPPORTED, "a format field that is not {}, {0} or {name} of an argument");
      p = close ? close + 1 : end;
    }
  }
  if (status) ait_text_deinit(&text);
  return status ? status : ait_jv_copy_text(r, &text, out);
}

/* ---- dictionaries and lists
 * --------------------------------------------------------------------------------------------------------------*/
FN(d_get) {
  UNUSED_ARGS;
  const ait_jv *found = ait_jdict_get(self->as.dict, &slots[0]);
  *out = found ? *found : slots[1].kind == AIT_JV_UNSET ? ait_jv_none() : slots[1];
  return ait_jinja_step(r, 1 + self->as.dict->count / 16);
}

static ait_status view(ait_jrun *r, const ait_jdict *d, bool keys, bool values, ait_jv *out) {
  AIT_TRY(ait_jlist_new(r, AIT_JL_VIEW, d->count, out));
  for (uint32_t i = 0; i < d->count; ++i) {
    ait_jv item = keys ? d->keys[i] : d->values[i];
    if (keys && values) {
      AIT_TRY(ait_jlist_new(r, AIT_JL_TUPLE, 2, &item));
      AIT_TRY(ait_jlist_add(r, item.as.list, d->keys[i]));
      AIT_TRY(ait_jlist_add(r, item.as.list, d->values[i]));
    }
    AIT_TRY(ait_jlist_add(r, out->as.list, item));
  }
  return AIT_OK;
}
FN(d_keys) {
  UNUSED_ARGS;
  return view(r, self->as.dict, true, false, out);
}
FN(d_values) {
  UNUSED_ARGS;
  return view(r, self->as.dict, false, true, out);
}
FN(d_items) {
  UNUSED_ARGS;
  return view(r, self->as.dict, true, true, out);
}
FN(d_copy) {
  UNUSED_ARGS;
  AIT_TRY(ait_jdict_new(r, out));
  for (uint32_t i = 0; i < self->as.dict->count; ++i)
    AIT_TRY(ait_jdict_set(r, out->as.dict, self->as.dict->keys[i], self->as.dict->values[i]));
  return AIT_OK;
}

FN(l_index) {
  UNUSED_ARGS;
  for (uint32_t i = 0; i < self->as.list->count; ++i) {
    if (ait_jv_equal(&self->as.list->items[i], &slots[0], 0)) return *out = ait_jv_int(i), AIT_OK;
  }
  return ait_jfail(r, AIT_CODE_INVALID_MODEL, "the value is not in the list");
}
FN(l_count) {
  UNUSED_ARGS;
  int64_t n = 0;
  for (uint32_t i = 0; i < self->as.list->count; ++i) n += ait_jv_equal(&self->as.list->items[i], &slots[0], 0);
  *out = ait_jv_int(n);
  return AIT_OK;
}

/* ---- loops
 * -----------------------------------------------------------------------------------------------------------------------------*/
FN(o_cycle) {
  UNUSED_ARGS;
  if (!args->positional) return ait_jfail(r, AIT_CODE_INVALID_MODEL, "no items for cycling given");
  *out = args->values[self->as.loop->index % args->positional];
  return AIT_OK;
}
FN(o_changed) {
  UNUSED_ARGS;
  ait_jv now;
  AIT_TRY(ait_jlist_new(r, AIT_JL_TUPLE, 0, &now));
  for (uint32_t i = 0; i < args->positional; ++i) AIT_TRY(ait_jlist_add(r, now.as.list, args->values[i]));
  *out = ait_jv_bool(self->as.loop->changed.kind == AIT_JV_UNSET || !ait_jv_equal(&now, &self->as.loop->changed, 0));
  self->as.loop->changed = now;
  return AIT_OK;
}

static const ait_jdef string_methods[] = {{"strip", "chars", s_strip, 0},
                                          {"lstrip", "chars", s_lstrip, 0},
                                          {"rstrip", "chars", s_rstrip, 0},
                                          {"upper", "", s_upper, 0},
                                          {"lower", "", s_lower, 0},
                                          {"title", "", s_title, 0},
                                          {"capitalize", "", s_capitalize, 0},
                                          {"swapcase", "", s_swapcase, 0},
                                          {"casefold", "", s_lower, 0},
                                          {"startswith", "prefix", s_startswith, 1},
                                          {"endswith", "suffix", s_endswith, 1},
                                          {"removeprefix", "prefix", s_removeprefix, 1},
                                          {"removesuffix", "suffix", s_removesuffix, 1},
                                          {"replace", "old,new,count", s_replace, 2},
                                          {"split", "sep,maxsplit", s_split, 0},
                                          {"rsplit", "sep,maxsplit", s_rsplit, 0},
                                          {"splitlines", "keepends", s_splitlines, 0},
                                          {"join", "iterable", s_join, 1},
                                          {"find", "sub", s_find, 1},
                                          {"rfind", "sub", s_rfind, 1},
                                          {"index", "sub", s_index, 1},
                                          {"count", "sub", s_count, 1},
                                          {"isalpha", "", s_isalpha, 0},
                                          {"isdigit", "", s_isdigit, 0},
                                          {"isdecimal", "", s_isdigit, 0},
                                          {"isnumeric", "", s_isnumeric, 0},
                                          {"isalnum", "", s_isalnum, 0},
                                          {"isspace", "", s_isspace, 0},
                                          {"isupper", "", s_isupper, 0},
                                          {"islower", "", s_islower, 0},
                                          {"ljust", "width,fillchar", s_ljust, 1},
                                          {"rjust", "width,fillchar", s_rjust, 1},
                                          {"center", "width,fillchar", s_center, 1},
                                          {"partition", "sep", s_partition, 1},
                                          {"format", NULL, s_format, 0},
                                          {NULL, NULL, NULL, 0}};
static const ait_jdef dict_methods[] = {{"get", "key,default", d_get, 1}, {"keys", "", d_keys, 0}, {"values", "", d_values, 0},
                                        {"items", "", d_items, 0},        {"copy", "", d_copy, 0}, {NULL, NULL, NULL, 0}};
static const ait_jdef list_methods[] = {{"index", "value", l_index, 1}, {"count", "value", l_count, 1}, {NULL, NULL, NULL, 0}};
static const ait_jdef loop_methods[] = {{"cycle", NULL, o_cycle, 0}, {"changed", NULL, o_changed, 0}, {NULL, NULL, NULL, 0}};

const ait_jdef *ait_jinja_method(const ait_jv *self, const char *name, size_t size) {
  const ait_jdef *d = self->kind == AIT_JV_STRING ? string_methods
                      : self->kind == AIT_JV_DICT ? dict_methods
                      : self->kind == AIT_JV_LIST ? list_methods
                      : self->kind == AIT_JV_LOOP ? loop_methods
                                                  : NULL;
  for (; d && d->name; ++d) {
    if (strlen(d->name) == size && memcmp(d->name, name, size) == 0) return d;
  }
  return NULL;
}

bool ait_jinja_method_unsafe(const ait_jv *self, const char *name, size_t size) {
  static const char *const of_dict[] = {"clear", "pop", "popitem", "setdefault", "update"};
  static const char *const of_list[] = {"append", "clear", "pop", "reverse", "insert", "sort", "extend", "remove"};
  bool dict = self->kind == AIT_JV_DICT, list = self->kind == AIT_JV_LIST && self->as.list->type == AIT_JL_LIST;
  for (size_t i = 0; dict && i < AIT_COUNT(of_dict); ++i) {
    if (strlen(of_dict[i]) == size && memcmp(of_dict[i], name, size) == 0) return true;
  }
  for (size_t i = 0; list && i < AIT_COUNT(of_list); ++i) {
    if (strlen(of_list[i]) == size && memcmp(of_list[i], name, size) == 0) return true;
  }
  return false;
}
