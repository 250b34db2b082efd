/* Oniguruma's Ruby syntax as PCRE2 syntax. What differs and is rewritten:
 *   \s \S \w \W \d \D \h \H \b \B   classes by Unicode properties (PCRE2's \s has U+180E, its \w lacks marks, its \h is another class)
 *   (?m)            "dot takes newlines": (?s)
 *   X{n,m}+ X{n}?   not possessive, not lazy: (?:X{n,m})+ and (?:X{n})?
 *   X{,n}           X{0,n}
 *   [a[bc]&&[^d]]   nested classes and intersections, as groups with lookahead
 *   \uHHHH          \x{HHHH}
 * The pattern's own nesting is limited. */
#include "llm/text/regex.h"

enum { MAX_NESTING = 50 };
/* Its table for Latin-1 counts superscript digits and fractions as word characters. */
#define ONIG_WORD AIT_RX_WORD "\\x{B2}\\x{B3}\\x{B9}\\x{BC}-\\x{BE}"

typedef struct translator {
  const char *p, *end, *begin;
  ait_text *out;
  size_t atom; /* where in out the last atom begins; SIZE_MAX: none to repeat */
  int depth;
} translator;

static ait_status refuse(const translator *t, const char *what) {
  return ait_error(AIT_CODE_UNSUPPORTED, "regular expression: %s at byte %zu of '%.*s'", what, (size_t)(t->p - t->begin),
                   (int)(t->end - t->begin > 200 ? 200 : t->end - t->begin), t->begin);
}

static void put(translator *t, const char *text) { ait_text_append(t->out, text, strlen(text)); }

static bool at(const translator *t, const char *text) {
  size_t n = strlen(text);
  return (size_t)(t->end - t->p) >= n && memcmp(t->p, text, n) == 0;
}

static bool is_hex(char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }

/* What \X means inside a class, without brackets; NULL: nothing special. *negated: it is the complement of that. */
static const char *class_escape(char c, bool *negated) {
  *negated = c == 'S' || c == 'W' || c == 'D' || c == 'H';
  switch (c) {
    case 's':
    case 'S': return AIT_RX_SPACE;
    case 'w':
    case 'W': return ONIG_WORD;
    case 'd':
    case 'D': return "\\p{Nd}";
    case 'h':
    case 'H': return "0-9a-fA-F";
    default: return NULL;
  }
}

/* Names of properties that PCRE2 spells otherwise; what is in no list is a script, and \p{Han} is Script there, Script_Extensions here. */
static const char *property_name(const char *name, size_t size, bool *script) {
  static const char *const categories =
      " any l l& lc lu ll lt lm lo m mn mc me n nd nl no p pc pd ps pe pi pf po s sm sc sk so z zs zl zp c cc cf cs co cn "
      "alphabetic uppercase lowercase whitespace emoji emojipresentation emojimodifier emojimodifierbase emojicomponent "
      "extendedpictographic ideographic unifiedideograph idstart idcontinue xidstart xidcontinue math hexdigit asciihexdigit "
      "ascii dash diacritic extender quotationmark terminalpunctuation variationselector joincontrol cased caseignorable ";
  static const char *const other[][2] = {{"letter", "L"},
                                         {"uppercaseletter", "Lu"},
                                         {"lowercaseletter", "Ll"},
                                         {"titlecaseletter", "Lt"},
                                         {"casedletter", "L&"},
                                         {"modifierletter", "Lm"},
                                         {"otherletter", "Lo"},
                                         {"mark", "M"},
                                         {"combiningmark", "M"},
                                         {"nonspacingmark", "Mn"},
                                         {"spacingmark", "Mc"},
                                         {"enclosingmark", "Me"},
                                         {"number", "N"},
                                         {"decimalnumber", "Nd"},
                                         {"digit", "Nd"},
                                         {"letternumber", "Nl"},
                                         {"othernumber", "No"},
                                         {"punctuation", "P"},
                                         {"punct", "P"},
                                         {"connectorpunctuation", "Pc"},
                                         {"dashpunctuation", "Pd"},
                                         {"openpunctuation", "Ps"},
                                         {"closepunctuation", "Pe"},
                                         {"initialpunctuation", "Pi"},
                                         {"finalpunctuation", "Pf"},
                                         {"otherpunctuation", "Po"},
                                         {"symbol", "S"},
                                         {"mathsymbol", "Sm"},
                                         {"currencysymbol", "Sc"},
                                         {"modifiersymbol", "Sk"},
                                         {"othersymbol", "So"},
                                         {"separator", "Z"},
                                         {"spaceseparator", "Zs"},
                                         {"lineseparator", "Zl"},
                                         {"paragraphseparator", "Zp"},
                                         {"other", "C"},
                                         {"control", "Cc"},
                                         {"cntrl", "Cc"},
                                         {"format", "Cf"},
                                         {"surrogate", "Cs"},
                                         {"privateuse", "Co"},
                                         {"unassigned", "Cn"},
                                         {"alpha", "Alphabetic"},
                                         {"upper", "Uppercase"},
                                         {"lower", "Lowercase"},
                                         {"space", "White_Space"}};
  char key[40] = " ";
  size_t n = 1;
  *script = false;
  for (size_t i = 0; i < size && n < sizeof key - 2; ++i) { /* case, spaces, '_' and '-' do not count */
    char c = name[i];
    if (c != ' ' && c != '_' && c != '-') key[n++] = c >= 'A' && c <= 'Z' ? (char)(c + 32) : c;
  }
  for (size_t i = 0; i < AIT_COUNT(other); ++i) {
    if (strlen(other[i][0]) == n - 1 && memcmp(other[i][0], key + 1, n - 1) == 0) return other[i][1];
  }
  key[n] = ' ', key[n + 1] = 0;
  *script = strstr(categories, key) == NULL;
  return NULL;
}

/* \p{Name}, \p{^Name}, \P{Name}. */
static ait_status property(translator *t) {
  const char *close = memchr(t->p, '}', (size_t)(t->end - t->p));
  if (t->end - t->p < 4 || t->p[2] != '{' || !close) return refuse(t, "\\p without {name}");
  const char *name = t->p + 3;
  bool caret = *name == '^', script;
  name += caret;
  const char *known = property_name(name, (size_t)(close - name), &script);
  put(t, (t->p[1] == 'P') != caret ? "\\P{" : "\\p{");
  if (script) put(t, "sc:");
  if (known) put(t, known);
  else ait_text_append(t->out, name, (size_t)(close - name));
  put(t, "}");
  t->p = close + 1;
  return AIT_OK;
}

/* \p{…}, \P{…}, \x…, \u…, control and literal escapes: the same in and out of classes. p stands at the backslash. */
static ait_status plain_escape(translator *t) {
  char c = t->p[1];
  if (c == 'p' || c == 'P') return property(t);
  if (c == 'u') {
    if (t->end - t->p < 6 || !is_hex(t->p[2]) || !is_hex(t->p[3]) || !is_hex(t->p[4]) || !is_hex(t->p[5]))
      return refuse(t, "\\u without four digits");
    put(t, "\\x{");
    ait_text_append(t->out, t->p + 2, 4);
    put(t, "}");
    t->p += 6;
    return AIT_OK;
  }
  if (c == 'x') {
    const char *close = t->end - t->p > 2 && t->p[2] == '{' ? memchr(t->p, '}', (size_t)(t->end - t->p)) : NULL;
    size_t n = close ? (size_t)(close + 1 - t->p) : 2;
    if (!close) {
      while (n < 4 && t->p + n < t->end && is_hex(t->p[n])) ++n;
    }
    ait_text_append(t->out, t->p, n);
    t->p += n;
    return AIT_OK;
  }
  if (c == 'v') put(t, "\\x{B}"); /* a vertical tab, no class */
  else if (strchr("ntrfae", c)) ait_text_append(t->out, t->p, 2);
  else if ((c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) return refuse(t, "an escape that is not known");
  else if ((unsigned char)c < 0x80) ait_text_append(t->out, t->p, 2);
  else ait_text_append(t->out, t->p + 1, 1); /* an escaped character is itself; its other bytes follow */
  t->p += 2;
  return AIT_OK;
}

/* ---- classes ---------------------------------------------------------------------------------------------------------------------*/
static ait_status read_class(translator *t);

typedef struct class_parts {
  ait_text items, groups; /* "a-z\p{L}" and "|(…)|(…)" */
} class_parts;

/* [:alpha:] by Unicode properties. */
static ait_status posix_item(translator *t) {
  static const struct {
    const char *name, *plain, *negated;
  } known[] = {{"alpha", "\\p{Alphabetic}", "\\P{Alphabetic}"},
               {"digit", "\\p{Nd}", "\\P{Nd}"},
               {"lower", "\\p{Lowercase}", "\\P{Lowercase}"},
               {"upper", "\\p{Uppercase}", "\\P{Uppercase}"},
               {"xdigit", "0-9a-fA-F", NULL},
               {"space", AIT_RX_SPACE, NULL},
               {"word", ONIG_WORD, NULL},
               {"alnum", "\\p{Alphabetic}\\p{Nd}", NULL},
               {"cntrl", "\\p{Cc}", "\\P{Cc}"},
               {"blank", "\\t\\p{Zs}", NULL},
               {"ascii", "\\x{0}-\\x{7F}", NULL},
               {"punct", "\\p{P}\\p{S}", NULL}};
  const char *name = t->p + 2;
  bool negated = name < t->end && *name == '^';
  name += negated;
  for (size_t i = 0; i < AIT_COUNT(known); ++i) {
    size_t n = strlen(known[i].name);
    if ((size_t)(t->end - name) < n + 2 || memcmp(name, known[i].name, n) != 0 || name[n] != ':' || name[n + 1] != ']') continue;
    const char *text = negated ? known[i].negated : known[i].plain;
    if (!text) return refuse(t, "a negated [:…:] that is not known");
    put(t, text);
    t->p = name + n + 2;
    return AIT_OK;
  }
  return refuse(t, "a [:…:] that is not known");
}

/* One item of a class; what cannot stand between brackets goes to groups. */
static ait_status class_item(translator *t, class_parts *parts) {
  bool negated;
  const char *set = *t->p == '\\' && t->end - t->p > 1 ? class_escape(t->p[1], &negated) : NULL;
  t->out = &parts->items;
  if (set && !negated) {
    put(t, set);
    t->p += 2;
  } else if (set) {
    t->out = &parts->groups;
    put(t, "|[^");
    put(t, set);
    put(t, "]");
    t->p += 2;
  } else if (*t->p == '\\') {
    if (t->end - t->p < 2) return refuse(t, "a backslash at the end");
    if (t->p[1] == 'b') {
      put(t, "\\x{8}");
      t->p += 2;
    } else {
      return plain_escape(t);
    }
  } else if (at(t, "[:")) {
    return posix_item(t);
  } else if (*t->p == '[') {
    t->out = &parts->groups;
    put(t, "|");
    return read_class(t);
  } else {
    if (strchr("^$.|?*+()#{}", *t->p)) put(t, "\\");
    ait_text_append(t->out, t->p++, 1);
  }
  return AIT_OK;
}

/* [items|groups] as one thing that takes one character. */
static void put_parts(translator *t, const class_parts *parts, bool negated) {
  bool items = parts->items.length > 0, groups = parts->groups.length > 0;
  if (negated && groups) put(t, "(?:(?!");
  if (!groups) put(t, negated ? "[^" : "[");
  else put(t, items ? "(?:[" : "(?:");
  if (items) ait_text_append(t->out, parts->items.data, parts->items.length);
  if (!groups) put(t, items ? "]" : "^\\x{0}-\\x{10FFFF}]");
  else if (items) put(t, "]");
  if (groups) {
    ait_text_append(t->out, parts->groups.data + !items, parts->groups.length - !items);
    put(t, ")");
  }
  if (negated && groups) put(t, ")(?s:.))");
}

static ait_status read_operand(translator *t, class_parts *parts, const char *class_begin) {
  while (t->p < t->end && !at(t, "&&")) {
    if (*t->p == ']' && t->p != class_begin) return AIT_OK;
    if (*t->p == ']') { /* first in a class it is a character */
      ait_text_append(&parts->items, "\\]", 2);
      ++t->p;
      continue;
    }
    AIT_TRY(class_item(t, parts));
  }
  return AIT_OK;
}

/* The class at '[': its translation is appended. a&&b&&c: all but the last become lookaheads. */
static ait_status read_class(translator *t) {
  ait_text *out = t->out;
  if (++t->depth > MAX_NESTING) return refuse(t, "classes nested too deeply");
  ++t->p;
  bool negated = t->p < t->end && *t->p == '^';
  t->p += negated;
  const char *begin = t->p;
  bool intersect = false;
  ait_status status = AIT_OK;
  while (!status) {
    class_parts parts;
    ait_text_init(&parts.items, out->allocator);
    ait_text_init(&parts.groups, out->allocator);
    status = read_operand(t, &parts, begin);
    t->out = out;
    bool more = !status && at(t, "&&");
    if (more && !intersect) put(t, negated ? "(?:(?!" : "(?:");
    intersect |= more;
    if (more) put(t, "(?=");
    if (!status) put_parts(t, &parts, negated && !intersect);
    if (more) put(t, ")");
    ait_text_deinit(&parts.items);
    ait_text_deinit(&parts.groups);
    if (parts.items.failed || parts.groups.failed) status = ait_status_join(status, AIT_OOM());
    if (!more) break;
    t->p += 2;
    begin = NULL;
  }
  AIT_TRY(status);
  if (t->p >= t->end) return refuse(t, "a class without its ']'");
  ++t->p;
  if (intersect) put(t, negated ? ")(?s:.))" : ")");
  --t->depth;
  return AIT_OK;
}

/* ---- outside classes ---------------------------------------------------------------------------------------------------------------*/
static ait_status read_escape(translator *t) {
  if (t->end - t->p < 2) return refuse(t, "a backslash at the end");
  char c = t->p[1];
  bool negated;
  const char *set = class_escape(c, &negated);
  size_t atom = t->out->length;
  if (set) {
    put(t, negated ? "[^" : "[");
    put(t, set);
    put(t, "]");
    t->p += 2;
  } else if (c == 'b' || c == 'B') {
    put(t, c == 'b' ? "(?:(?<=[" ONIG_WORD "])(?![" ONIG_WORD "])|(?<![" ONIG_WORD "])(?=[" ONIG_WORD "]))"
                    : "(?:(?<=[" ONIG_WORD "])(?=[" ONIG_WORD "])|(?<![" ONIG_WORD "])(?![" ONIG_WORD "]))");
    t->p += 2;
  } else if (strchr("AzZGRX", c) || (c >= '1' && c <= '9')) {
    ait_text_append(t->out, t->p, 2);
    t->p += 2;
  } else {
    AIT_TRY(plain_escape(t));
  }
  t->atom = atom;
  return AIT_OK;
}

/* After '{': n, n,m or ,m and '}'; false: a literal brace. */
static bool read_interval(const translator *t, size_t *length, bool *no_minimum, bool *exact) {
  const char *s = t->p + 1;
  const char *first = s;
  while (s < t->end && *s >= '0' && *s <= '9') ++s;
  *no_minimum = s == first;
  *exact = true;
  if (s < t->end && *s == ',') {
    const char *second = ++s;
    *exact = false;
    while (s < t->end && *s >= '0' && *s <= '9') ++s;
    if (*no_minimum && s == second) return false;
  } else if (*no_minimum) {
    return false;
  }
  *length = (size_t)(s + 1 - t->p);
  return s < t->end && *s == '}';
}

static void insert_group(translator *t) {
  size_t tail = t->out->length - t->atom;
  put(t, "(?:"); /* grown by three; the tail moves */
  if (t->out->failed) return;
  memmove(t->out->data + t->atom + 3, t->out->data + t->atom, tail);
  memcpy(t->out->data + t->atom, "(?:", 3);
}

static ait_status read_repeat(translator *t) {
  size_t length;
  bool no_minimum, exact;
  if (t->atom == SIZE_MAX) return refuse(t, "nothing to repeat");
  if (*t->p != '{') {
    ait_text_append(t->out, t->p++, 1);
    if (t->p < t->end && (*t->p == '?' || *t->p == '+')) ait_text_append(t->out, t->p++, 1);
    return AIT_OK;
  }
  if (!read_interval(t, &length, &no_minimum, &exact)) {
    t->atom = t->out->length;
    put(t, "\\{");
    ++t->p;
    return AIT_OK;
  }
  const char *next = t->p + length;
  bool again = next < t->end && (*next == '+' || (*next == '?' && exact));
  if (again) insert_group(t);
  put(t, no_minimum ? "{0" : "{");
  ait_text_append(t->out, t->p + 1, length - 1);
  t->p = next;
  if (again) {
    put(t, ")");
    ait_text_append(t->out, t->p++, 1);
  } else if (t->p < t->end && *t->p == '?') {
    ait_text_append(t->out, t->p++, 1);
  }
  return AIT_OK;
}

/* "(" and what follows it up to the group's contents. */
static ait_status read_open(translator *t) {
  if (!at(t, "(?")) {
    put(t, "(");
    ++t->p;
    return AIT_OK;
  }
  if (at(t, "(?#") || at(t, "(?~") || at(t, "(?(")) return refuse(t, "this kind of group");
  put(t, "(?");
  t->p += 2;
  if (t->p < t->end && (*t->p == '<' || *t->p == '\'')) { /* lookbehind or a name */
    bool look = t->end - t->p > 1 && (t->p[1] == '=' || t->p[1] == '!');
    ait_text_append(t->out, t->p, look ? 2 : 1);
    t->p += look ? 2 : 1;
    return AIT_OK;
  }
  bool minus = false;
  for (; t->p < t->end; ++t->p) {
    char c = *t->p;
    if (c == 'x') return refuse(t, "(?x)");
    if (c == 'm') put(t, "s");
    else if (c == 'i' || c == '-') ait_text_append(t->out, &c, 1);
    else break;
    minus |= c == '-';
  }
  if (t->p < t->end && strchr(":=!>)", *t->p) && !(minus && strchr("=!>", *t->p))) {
    if (*t->p != ')') ait_text_append(t->out, t->p++, 1);
    return AIT_OK;
  }
  return refuse(t, "this kind of group");
}

ait_status ait_regex_translate(const char *pattern, size_t size, ait_text *out) {
  translator t = {.p = pattern, .begin = pattern, .end = pattern + size, .out = out, .atom = SIZE_MAX};
  size_t opens[MAX_NESTING];
  int open_count = 0;
  while (t.p < t.end) {
    size_t here = out->length;
    switch (*t.p) {
      case '\\': AIT_TRY(read_escape(&t)); break;
      case '[':
        AIT_TRY(read_class(&t));
        t.atom = here;
        break;
      case '(':
        if (open_count == MAX_NESTING) return refuse(&t, "groups nested too deeply");
        opens[open_count++] = here;
        AIT_TRY(read_open(&t));
        t.atom = SIZE_MAX;
        break;
      case ')':
        if (open_count == 0) return refuse(&t, "a ')' without its '('");
        put(&t, ")");
        ++t.p;
        t.atom = opens[--open_count];
        break;
      case '*':
      case '+':
      case '?':
      case '{': AIT_TRY(read_repeat(&t)); break;
      case '|':
        put(&t, "|");
        ++t.p;
        t.atom = SIZE_MAX;
        break;
      default: {
        size_t n = 1;
        while (t.p + n < t.end && ((unsigned char)t.p[n] & 0xC0) == 0x80) ++n;
        if (*t.p == '#' || *t.p == ']' || *t.p == '}') put(&t, "\\");
        ait_text_append(out, t.p, n);
        t.p += n;
        t.atom = here;
      }
    }
  }
  return open_count ? refuse(&t, "a group without its ')'") : AIT_OK;
}
