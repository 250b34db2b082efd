/* The part of Jinja that published chat templates use, as transformers sets it up: trim_blocks, lstrip_blocks, loopcontrols, no autoescape,
 * an immutable sandbox. A template is parsed once into a tree (in an arena); a run walks it with its own arena, bounded in steps, memory,
 * output and depth. Values and operators mean what they mean in Python. */
#ifndef AIT_SRC_LLM_TEXT_JINJA_H
#define AIT_SRC_LLM_TEXT_JINJA_H

#include "base/json.h"
#include <ait/text.h>

/* ---- values --------------------------------------------------------------------------------------------------------------------------*/
typedef enum ait_jv_kind {
  AIT_JV_UNSET, /* an argument that was not given */
  AIT_JV_UNDEFINED,
  AIT_JV_NONE,
  AIT_JV_BOOL,
  AIT_JV_INT,
  AIT_JV_FLOAT,
  AIT_JV_STRING,
  AIT_JV_LIST,
  AIT_JV_DICT,
  AIT_JV_NAMESPACE,
  AIT_JV_MACRO,
  AIT_JV_FUNCTION, /* global functions and bound methods */
  AIT_JV_LOOP,
} ait_jv_kind;

typedef struct ait_jv {
  ait_jv_kind kind;
  uint32_t size; /* bytes of a string */
  union {
    bool b;
    int64_t i;
    double f;
    const char *s; /* NUL behind it is not promised; of UNDEFINED: the name, or NULL */
    struct ait_jlist *list;
    struct ait_jdict *dict; /* and NAMESPACE */
    struct ait_jmacro *macro;
    struct ait_jbound *bound;
    struct ait_jloop *loop;
  } as;
} ait_jv;

typedef enum ait_jlist_type { AIT_JL_LIST, AIT_JL_TUPLE, AIT_JL_VIEW, AIT_JL_GENERATOR } ait_jlist_type;
typedef struct ait_jlist {
  ait_jv *items;
  uint32_t count, capacity, taken; /* taken: what a generator has given already */
  ait_jlist_type type;
} ait_jlist;

typedef struct ait_jdict {
  ait_jv *keys, *values;
  uint32_t count, capacity;
} ait_jdict;

/* ---- tree ----------------------------------------------------------------------------------------------------------------------------*/
typedef enum ait_jn_kind {
  AIT_JN_CONST,
  AIT_JN_NAME,
  AIT_JN_LIST, /* items: list */
  AIT_JN_TUPLE,
  AIT_JN_DICT,   /* items: key, value, key, value … */
  AIT_JN_ATTR,   /* a.text */
  AIT_JN_ITEM,   /* a[b] */
  AIT_JN_SLICE,  /* a:b:c, any NULL; as b of ITEM */
  AIT_JN_CALL,   /* a(list) */
  AIT_JN_FILTER, /* a|text(list); a NULL: the body of a block */
  AIT_JN_TEST,   /* a is text(list) */
  AIT_JN_NEGATE,
  AIT_JN_PLUS,
  AIT_JN_NOT,
  AIT_JN_BINARY,  /* op */
  AIT_JN_COMPARE, /* a, then list of operands with op */
  AIT_JN_AND,
  AIT_JN_OR,
  AIT_JN_COND, /* a if b else c */
  /* statements: linked by next */
  AIT_JN_TEXT,
  AIT_JN_OUTPUT,
  AIT_JN_IF,           /* a: test, list: body, b: else (an IF of its own for elif, or a BODY) */
  AIT_JN_FOR,          /* a: target, b: iterable, c: filter, list: body, other: else */
  AIT_JN_SET,          /* a: target, b: value */
  AIT_JN_SET_BLOCK,    /* a: target, b: filters, list: body */
  AIT_JN_MACRO,        /* text: name, other: parameters (NAME, a: default), list: body */
  AIT_JN_CALL_BLOCK,   /* a: call, other: parameters, list: body */
  AIT_JN_FILTER_BLOCK, /* b: filters, list: body */
  AIT_JN_WITH,         /* other: SET…, list: body */
  AIT_JN_BODY,         /* list: body in a scope of its own */
  AIT_JN_BREAK,
  AIT_JN_CONTINUE,
} ait_jn_kind;

typedef enum ait_jop {
  AIT_JOP_NONE,
  AIT_JOP_ADD,
  AIT_JOP_SUB,
  AIT_JOP_MUL,
  AIT_JOP_DIV,
  AIT_JOP_FLOORDIV,
  AIT_JOP_MOD,
  AIT_JOP_POW,
  AIT_JOP_CONCAT,
  AIT_JOP_EQ,
  AIT_JOP_NE,
  AIT_JOP_LT,
  AIT_JOP_LE,
  AIT_JOP_GT,
  AIT_JOP_GE,
  AIT_JOP_IN,
  AIT_JOP_NOT_IN,
} ait_jop;

typedef struct ait_jn {
  ait_jn_kind kind;
  int line;
  ait_jop op;
  char spread;      /* of an argument: '*', '2' (**), or 0 */
  const char *text; /* names, NUL-terminated; a keyword of an argument */
  ait_jv value;
  struct ait_jn *a, *b, *c, *list, *other, *next;
} ait_jn;

enum { AIT_JINJA_NESTING = 100, AIT_JINJA_DEPTH = 600 };

/* *out is the first statement; it lies in the arena and points into nothing else. Errors (invalid-model, unsupported) name the line. */
ait_status ait_jinja_parse(ait_arena *arena, const char *source, size_t size, ait_jn **out) AIT_MUST_USE;

/* ---- lexer: jinja_lex.c
 * ----------------------------------------------------------------------------------------------------------------*/
typedef enum ait_jtok_kind {
  AIT_JT_END,
  AIT_JT_TEXT,
  AIT_JT_BLOCK,
  AIT_JT_BLOCK_END,
  AIT_JT_VARIABLE,
  AIT_JT_VARIABLE_END,
  AIT_JT_NAME,
  AIT_JT_INT,
  AIT_JT_FLOAT,
  AIT_JT_STRING,
  AIT_JT_OP
} ait_jtok_kind;
typedef struct ait_jtok {
  ait_jtok_kind kind;
  int line;
  char op[3];       /* "==", "(" … */
  const char *text; /* NUL-terminated copy of names, decoded strings, text */
  uint32_t size;
  int64_t i;
  double f;
} ait_jtok;
ait_status ait_jinja_lex(ait_arena *arena, const char *source, size_t size, ait_jtok **out, size_t *out_count) AIT_MUST_USE;

/* ---- running
 * ---------------------------------------------------------------------------------------------------------------------------*/
typedef struct ait_jscope {
  struct ait_jscope *parent;
  ait_jdict names;
} ait_jscope;

typedef struct ait_jmacro {
  const char *name; /* NULL: a caller */
  const ait_jn *node;
  ait_jscope *scope; /* where it was defined */
} ait_jmacro;

typedef struct ait_jloop {
  uint32_t index, count;
  const ait_jv *items;
  ait_jv changed;
  int depth;
} ait_jloop;

typedef struct ait_jargs {
  ait_jv *values; /* positional ones, then keywords */
  const char **names;
  uint32_t positional, keywords;
  const ait_jv *caller; /* of a call block */
} ait_jargs;

typedef struct ait_jrun {
  ait_arena arena;
  ait_text *out;
  size_t out_limit;
  uint64_t steps, step_limit;
  int depth, line, loop_depth;
  int64_t now; /* seconds since 1970 in local time */
  ait_jscope *scope, *globals;
  enum { AIT_JFLOW_NEXT, AIT_JFLOW_BREAK, AIT_JFLOW_CONTINUE } flow;
} ait_jrun;

/* A function, filter, test or method by name. `parameters`: "a,b,c", bound to slots (UNSET where not given); NULL: gets its arguments raw.
 */
typedef ait_status (*ait_jfn)(ait_jrun *r, const ait_jv *self, const ait_jv *slots, const ait_jargs *args, ait_jv *out);
typedef struct ait_jdef {
  const char *name, *parameters;
  ait_jfn fn;
  int required;
} ait_jdef;
typedef struct ait_jbound {
  ait_jv self;
  const ait_jdef *def;
} ait_jbound;
enum { AIT_JINJA_SLOTS = 6 };

ait_status ait_jfail(ait_jrun *r, ait_code code, const char *format, ...) AIT_PRINTF(3, 4) AIT_MUST_USE; /* "line N: …" */
ait_status ait_jinja_run(ait_jrun *r, const ait_jn *first) AIT_MUST_USE;
ait_status ait_jinja_step(ait_jrun *r, uint64_t steps) AIT_MUST_USE;
ait_status ait_jinja_call_def(ait_jrun *r, const ait_jdef *def, const ait_jv *self, const ait_jargs *args, ait_jv *out) AIT_MUST_USE;
ait_status ait_jinja_filter(ait_jrun *r, const char *name, const ait_jv *self, const ait_jargs *args, ait_jv *out) AIT_MUST_USE;
ait_status ait_jinja_test(ait_jrun *r, const char *name, const ait_jv *self, const ait_jargs *args, bool *out) AIT_MUST_USE;
const ait_jdef *ait_jinja_method(const ait_jv *self, const char *name, size_t size); /* NULL: none */
bool ait_jinja_method_unsafe(const ait_jv *self, const char *name, size_t size);     /* changes its object: the sandbox refuses */
extern const ait_jdef ait_jinja_functions[];

/* ---- values: jinja_value.c -----------------------------------------------------------------------------------------------------------*/
static inline ait_jv ait_jv_bool(bool b) { return (ait_jv){.kind = AIT_JV_BOOL, .as.b = b}; }
static inline ait_jv ait_jv_int(int64_t i) { return (ait_jv){.kind = AIT_JV_INT, .as.i = i}; }
static inline ait_jv ait_jv_float(double f) { return (ait_jv){.kind = AIT_JV_FLOAT, .as.f = f}; }
static inline ait_jv ait_jv_none(void) { return (ait_jv){.kind = AIT_JV_NONE}; }
static inline ait_jv ait_jv_span(const char *s, size_t size) { return (ait_jv){.kind = AIT_JV_STRING, .size = (uint32_t)size, .as.s = s}; }
static inline ait_jv ait_jv_undefined(const char *name) { return (ait_jv){.kind = AIT_JV_UNDEFINED, .as.s = name}; }
static inline bool ait_jv_is_string(const ait_jv *v) { return v->kind == AIT_JV_STRING; }
ait_status ait_jv_copy_text(ait_jrun *r, const ait_text *text, ait_jv *out) AIT_MUST_USE; /* and deinits the text */
ait_status ait_jlist_new(ait_jrun *r, ait_jlist_type type, uint32_t capacity, ait_jv *out) AIT_MUST_USE;
ait_status ait_jlist_add(ait_jrun *r, ait_jlist *list, ait_jv item) AIT_MUST_USE;
ait_status ait_jdict_new(ait_jrun *r, ait_jv *out) AIT_MUST_USE;
ait_status ait_jdict_set(ait_jrun *r, ait_jdict *dict, ait_jv key, ait_jv value) AIT_MUST_USE;
const ait_jv *ait_jdict_get(const ait_jdict *dict, const ait_jv *key); /* NULL: none */
const ait_jv *ait_jdict_find(const ait_jdict *dict, const char *key, size_t size);
bool ait_jv_truth(const ait_jv *v);
bool ait_jv_equal(const ait_jv *a, const ait_jv *b, int depth);
ait_status ait_jv_compare(ait_jrun *r, const ait_jv *a, const ait_jv *b, int *out) AIT_MUST_USE; /* <0, 0, >0; 2: unordered (NaN) */
const char *ait_jv_type(const ait_jv *v);                                                        /* "str", "NoneType" … */
ait_status ait_jv_str(ait_jrun *r, const ait_jv *v, ait_text *out) AIT_MUST_USE;
ait_status ait_jv_repr(ait_jrun *r, const ait_jv *v, ait_text *out, int depth) AIT_MUST_USE;
ait_status ait_jv_as_string(ait_jrun *r, const ait_jv *v, ait_jv *out) AIT_MUST_USE; /* str(v) as a value */
void ait_jv_float_repr(ait_text *out, double f);
typedef struct ait_json_style {
  bool ascii, sort, has_indent;
  ait_jv indent, item_separator, key_separator;
} ait_json_style;
ait_status ait_jv_json(ait_jrun *r, const ait_jv *v, const ait_json_style *style, ait_text *out, int depth) AIT_MUST_USE;
ait_status ait_jv_from_json(ait_jrun *r, const ait_json *json, ait_jv *out, int depth) AIT_MUST_USE;
/* What iterating gives; strings by character, dicts by key. A generator is empty afterwards. */
ait_status ait_jv_items(ait_jrun *r, const ait_jv *v, ait_jv **items, uint32_t *count) AIT_MUST_USE;
ait_status ait_jv_length(ait_jrun *r, const ait_jv *v, int64_t *out) AIT_MUST_USE;
ait_status ait_jv_contains(ait_jrun *r, const ait_jv *container, const ait_jv *item, bool *out) AIT_MUST_USE;
ait_status ait_jv_binary(ait_jrun *r, ait_jop op, const ait_jv *a, const ait_jv *b, ait_jv *out) AIT_MUST_USE;
ait_status ait_jv_item(ait_jrun *r, const ait_jv *v, const ait_jv *key, ait_jv *out) AIT_MUST_USE;             /* v[key], jinja's way */
ait_status ait_jv_attr(ait_jrun *r, const ait_jv *v, const char *name, size_t size, ait_jv *out) AIT_MUST_USE; /* v.name */
ait_status ait_jv_slice(ait_jrun *r, const ait_jv *v, const ait_jv *start, const ait_jv *stop, const ait_jv *step,
                        ait_jv *out) AIT_MUST_USE;
ait_status ait_jv_percent(ait_jrun *r, const ait_jv *format, const ait_jv *values, ait_jv *out) AIT_MUST_USE; /* "%s" % values */
/* Lower and upper case, characters reversed … as values in the arena. */
typedef enum ait_jcase { AIT_JCASE_LOWER, AIT_JCASE_UPPER, AIT_JCASE_CAPITALIZE, AIT_JCASE_TITLE, AIT_JCASE_SWAP } ait_jcase;
ait_status ait_jv_case(ait_jrun *r, const ait_jv *v, ait_jcase how, ait_jv *out) AIT_MUST_USE;
ait_jv ait_jv_strip(const ait_jv *v, const ait_jv *chars, bool left, bool right); /* chars UNSET or NONE: white space */
ait_status ait_jv_replace(ait_jrun *r, const ait_jv *v, const ait_jv *from, const ait_jv *to, int64_t count, ait_jv *out) AIT_MUST_USE;

#endif
