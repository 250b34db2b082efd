/* The pickle machine, protocols 0 to 4 as far as torch.save uses them (Lib/pickletools.py of CPython lists the opcodes). */
#include "import/pt2/pickle.h"
#include <stdio.h>

enum {
  OP_PROTO = 0x80,
  OP_FRAME = 0x95,
  OP_STOP = '.',
  OP_MARK = '(',
  OP_POP = '0',
  OP_POP_MARK = '1',
  OP_NONE = 'N',
  OP_TRUE = 0x88,
  OP_FALSE = 0x89,
  OP_BININT = 'J',
  OP_BININT1 = 'K',
  OP_BININT2 = 'M',
  OP_LONG1 = 0x8a,
  OP_BINFLOAT = 'G',
  OP_UNICODE = 'X',
  OP_SHORT_UNICODE = 0x8c,
  OP_BINSTRING = 'T',
  OP_SHORT_STRING = 'U',
  OP_BYTES = 'B',
  OP_SHORT_BYTES = 'C',
  OP_EMPTY_LIST = ']',
  OP_APPEND = 'a',
  OP_APPENDS = 'e',
  OP_LIST = 'l',
  OP_EMPTY_TUPLE = ')',
  OP_TUPLE = 't',
  OP_TUPLE1 = 0x85,
  OP_TUPLE2 = 0x86,
  OP_TUPLE3 = 0x87,
  OP_EMPTY_DICT = '}',
  OP_DICT = 'd',
  OP_SETITEM = 's',
  OP_SETITEMS = 'u',
  OP_GLOBAL = 'c',
  OP_STACK_GLOBAL = 0x93,
  OP_REDUCE = 'R',
  OP_NEWOBJ = 0x81,
  OP_BUILD = 'b',
  OP_PERSID = 'Q',
  OP_GET = 'h',
  OP_LONG_GET = 'j',
  OP_PUT = 'q',
  OP_LONG_PUT = 'r',
  OP_MEMOIZE = 0x94,
};

typedef struct machine {
  ait_arena *arena;
  const uint8_t *data, *at, *end;
  ait_pickle **stack, **memo;
  size_t stack_count, stack_capacity, memo_count, memo_capacity;
  size_t *marks; /* stack heights */
  size_t mark_count, mark_capacity;
} machine;

static ait_status fault(const machine *m, const char *what) {
  return ait_error(AIT_CODE_INVALID_MODEL, "pickle is malformed at byte %zu: %s", (size_t)(m->at - m->data), what);
}

static ait_status need(const machine *m, size_t bytes) { return (size_t)(m->end - m->at) < bytes ? fault(m, "it ends early") : AIT_OK; }

static ait_status read_uint(machine *m, size_t bytes, uint64_t *out) {
  AIT_TRY(need(m, bytes));
  *out = 0;
  for (size_t i = 0; i < bytes; ++i) *out |= (uint64_t)m->at[i] << 8 * i;
  m->at += bytes;
  return AIT_OK;
}

static ait_status push(machine *m, ait_pickle *value) {
  AIT_TRY(ait_grow(m->arena->allocator, (void **)&m->stack, &m->stack_capacity, m->stack_count + 1, sizeof *m->stack));
  m->stack[m->stack_count++] = value;
  return AIT_OK;
}

static ait_status push_new(machine *m, ait_pickle value) {
  ait_pickle *copy = AIT_ARENA_NEW(m->arena, ait_pickle);
  if (!copy) return AIT_OOM();
  *copy = value;
  return push(m, copy);
}

/* Values above the topmost mark are the only ones within reach. */
static size_t floor_of(const machine *m) { return m->mark_count ? m->marks[m->mark_count - 1] : 0; }

static ait_status pop(machine *m, ait_pickle **out) {
  if (m->stack_count <= floor_of(m)) return fault(m, "the stack is empty");
  *out = m->stack[--m->stack_count];
  return AIT_OK;
}

static ait_status top(const machine *m, ait_pickle **out) {
  if (m->stack_count <= floor_of(m)) return fault(m, "the stack is empty");
  *out = m->stack[m->stack_count - 1];
  return AIT_OK;
}

/* Removes the topmost mark; the values that were above it stay on the stack, *out_first is the lowest. */
static ait_status pop_mark(machine *m, size_t *out_first) {
  if (m->mark_count == 0) return fault(m, "no mark");
  *out_first = m->marks[--m->mark_count];
  return AIT_OK;
}

static ait_status add_items(machine *m, ait_pickle *to, ait_pickle *const *items, size_t count) {
  if (count > UINT32_MAX / 2 - to->count) return fault(m, "too many items");
  if (to->count + count > to->capacity) {
    size_t capacity = to->capacity ? 2 * (size_t)to->capacity : count;
    if (capacity < to->count + count) capacity = to->count + count;
    ait_pickle **larger = AIT_ARENA_ARRAY(m->arena, ait_pickle *, capacity);
    if (!larger) return AIT_OOM();
    if (to->count) memcpy(larger, to->as.items, to->count * sizeof *larger);
    to->as.items = larger;
    to->capacity = (uint32_t)capacity;
  }
  if (count) memcpy(to->as.items + to->count, items, count * sizeof *items);
  to->count += (uint32_t)count;
  return AIT_OK;
}

/* The stack from `first` on. There may be none yet: NULL plus zero is undefined in C17. */
static ait_pickle *const *stack_from(const machine *m, size_t first) { return m->stack ? m->stack + first : NULL; }

/* A new container of the values from `first` on, which leave the stack. */
static ait_status collect(machine *m, ait_pickle_kind kind, size_t first) {
  ait_pickle *value = AIT_ARENA_NEW(m->arena, ait_pickle);
  if (!value) return AIT_OOM();
  value->kind = kind;
  AIT_TRY(add_items(m, value, stack_from(m, first), m->stack_count - first));
  m->stack_count = first;
  return push(m, value);
}

static ait_status collect_last(machine *m, ait_pickle_kind kind, size_t count) {
  if (m->stack_count - floor_of(m) < count) return fault(m, "the stack is empty");
  return collect(m, kind, m->stack_count - count);
}

static ait_status collect_marked(machine *m, ait_pickle_kind kind) {
  size_t first;
  AIT_TRY(pop_mark(m, &first));
  if (kind == AIT_PICKLE_DICT && (m->stack_count - first) % 2) return fault(m, "a key without a value");
  return collect(m, kind, first);
}

/* APPENDS and SETITEMS: the marked values go into the container below the mark. Records take them and forget them. */
static ait_status extend(machine *m, ait_pickle_kind kind, size_t first) {
  ait_pickle *to;
  size_t count = m->stack_count - first;
  ait_pickle *const *items = stack_from(m, first);
  if (kind == AIT_PICKLE_DICT && count % 2) return fault(m, "a key without a value");
  m->stack_count = first;
  AIT_TRY(top(m, &to));
  if (to->kind == kind) return add_items(m, to, items, count);
  return to->kind == AIT_PICKLE_CALL
             ? AIT_OK
             : fault(m, kind == AIT_PICKLE_DICT ? "items set on something that is no dict" : "items appended to something that is no list");
}

static ait_status extend_marked(machine *m, ait_pickle_kind kind) {
  size_t first;
  AIT_TRY(pop_mark(m, &first));
  return extend(m, kind, first);
}

static ait_status extend_last(machine *m, ait_pickle_kind kind, size_t count) {
  if (m->stack_count - floor_of(m) < count) return fault(m, "the stack is empty");
  return extend(m, kind, m->stack_count - count);
}

static ait_status push_string(machine *m, size_t length_bytes, bool text) {
  uint64_t length;
  AIT_TRY(read_uint(m, length_bytes, &length));
  if (length > (uint64_t)(m->end - m->at)) return fault(m, "it ends early");
  if (text && !ait_utf8_valid((const char *)m->at, (size_t)length)) return fault(m, "a text that is not UTF-8");
  if (text && memchr(m->at, 0, (size_t)length)) return fault(m, "a text with a NUL");
  ait_pickle value = {.kind = AIT_PICKLE_STRING, .count = (uint32_t)length};
  value.as.string = ait_arena_strdup(m->arena, (const char *)m->at, (size_t)length);
  if (!value.as.string) return AIT_OOM();
  m->at += length;
  return push_new(m, value);
}

static ait_status push_long(machine *m) {
  uint64_t length, bits = 0;
  AIT_TRY(read_uint(m, 1, &length));
  if (length > 8) return fault(m, "an integer beyond 64 bits");
  AIT_TRY(read_uint(m, (size_t)length, &bits));
  if (length && length < 8 && m->at[-1] & 0x80) bits |= UINT64_MAX << 8 * length;
  ait_pickle value = {.kind = AIT_PICKLE_INT};
  value.as.i = (int64_t)bits;
  return push_new(m, value);
}

static ait_status push_int(machine *m, size_t bytes) {
  uint64_t bits;
  AIT_TRY(read_uint(m, bytes, &bits));
  ait_pickle value = {.kind = AIT_PICKLE_INT};
  value.as.i = bytes == 4 ? (int32_t)(uint32_t)bits : (int64_t)bits;
  return push_new(m, value);
}

static ait_status push_float(machine *m) {
  AIT_TRY(need(m, 8));
  uint64_t bits = 0;
  for (int i = 0; i < 8; ++i) bits = bits << 8 | *m->at++;
  ait_pickle value = {.kind = AIT_PICKLE_FLOAT};
  memcpy(&value.as.f, &bits, 8);
  return push_new(m, value);
}

static ait_status make_global(machine *m, const char *module, size_t module_length, const char *name, size_t name_length) {
  size_t length = module_length + 1 + name_length;
  if (length > 4096 || memchr(module, 0, module_length) || memchr(name, 0, name_length)) return fault(m, "a global with a strange name");
  if (!ait_utf8_valid(module, module_length) || !ait_utf8_valid(name, name_length)) return fault(m, "a global with a strange name");
  char *text = ait_arena_alloc(m->arena, length + 1, 1);
  if (!text) return AIT_OOM();
  memcpy(text, module, module_length);
  text[module_length] = ' ';
  memcpy(text + module_length + 1, name, name_length);
  text[length] = 0;
  ait_pickle value = {.kind = AIT_PICKLE_GLOBAL, .count = (uint32_t)length};
  value.as.string = text;
  return push_new(m, value);
}

static ait_status push_global(machine *m) {
  const char *module = (const char *)m->at;
  const char *module_end = memchr(module, '\n', (size_t)(m->end - m->at));
  if (!module_end) return fault(m, "it ends early");
  const char *name = module_end + 1;
  const char *name_end = memchr(name, '\n', (size_t)((const char *)m->end - name));
  if (!name_end) return fault(m, "it ends early");
  m->at = (const uint8_t *)name_end + 1;
  return make_global(m, module, (size_t)(module_end - module), name, (size_t)(name_end - name));
}

static ait_status push_stack_global(machine *m) {
  ait_pickle *name, *module;
  AIT_TRY(pop(m, &name));
  AIT_TRY(pop(m, &module));
  if (name->kind != AIT_PICKLE_STRING || module->kind != AIT_PICKLE_STRING) return fault(m, "a global without a name");
  return make_global(m, module->as.string, module->count, name->as.string, name->count);
}

/* collections.OrderedDict is a dict here; its argument, when there is one, is a list of pairs. */
static ait_status push_ordered_dict(machine *m, const ait_pickle *arguments) {
  ait_pickle *dict = AIT_ARENA_NEW(m->arena, ait_pickle);
  if (!dict) return AIT_OOM();
  dict->kind = AIT_PICKLE_DICT;
  const ait_pickle *pairs = arguments->count ? arguments->as.items[0] : NULL;
  for (uint32_t i = 0; pairs && pairs->kind == AIT_PICKLE_LIST && i < pairs->count; ++i) {
    const ait_pickle *pair = pairs->as.items[i];
    if ((pair->kind != AIT_PICKLE_TUPLE && pair->kind != AIT_PICKLE_LIST) || pair->count != 2)
      return fault(m, "a dict of something else than pairs");
    AIT_TRY(add_items(m, dict, pair->as.items, 2));
  }
  return push(m, dict);
}

static ait_status reduce(machine *m) {
  ait_pickle *arguments, *callable;
  AIT_TRY(pop(m, &arguments));
  AIT_TRY(pop(m, &callable));
  if (arguments->kind != AIT_PICKLE_TUPLE) return fault(m, "a call without an argument tuple");
  if (ait_pickle_is_global(callable, "collections OrderedDict")) return push_ordered_dict(m, arguments);
  AIT_TRY(push(m, callable));
  AIT_TRY(push(m, arguments));
  return collect_last(m, AIT_PICKLE_CALL, 2);
}

static ait_status build(machine *m) {
  ait_pickle *state, *object;
  AIT_TRY(pop(m, &state));
  AIT_TRY(top(m, &object));
  if (object->kind == AIT_PICKLE_CALL && object->count == 2) return add_items(m, object, &state, 1);
  /* An OrderedDict's attributes (state_dict's _metadata) do not matter. */
  return object->kind == AIT_PICKLE_DICT ? AIT_OK : fault(m, "a state for something that can have none");
}

static ait_status memo_put(machine *m, uint64_t index) {
  ait_pickle *value;
  AIT_TRY(top(m, &value));
  if (index >= (uint64_t)(m->end - m->data)) return fault(m, "a memo number out of all proportion");
  AIT_TRY(ait_grow(m->arena->allocator, (void **)&m->memo, &m->memo_capacity, (size_t)index + 1, sizeof *m->memo));
  while (m->memo_count <= index) m->memo[m->memo_count++] = NULL;
  m->memo[index] = value;
  return AIT_OK;
}

static ait_status memo_get(machine *m, uint64_t index) {
  if (index >= m->memo_count || !m->memo[index]) return fault(m, "a memo number that nothing was stored under");
  return push(m, m->memo[index]);
}

static ait_status memo_numbered(machine *m, size_t bytes, ait_status (*action)(machine *m, uint64_t index)) {
  uint64_t index;
  AIT_TRY(read_uint(m, bytes, &index));
  return action(m, index);
}

static ait_status push_mark(machine *m) {
  AIT_TRY(ait_grow(m->arena->allocator, (void **)&m->marks, &m->mark_capacity, m->mark_count + 1, sizeof *m->marks));
  m->marks[m->mark_count++] = m->stack_count;
  return AIT_OK;
}

static ait_status skip(machine *m, size_t bytes) {
  AIT_TRY(need(m, bytes));
  m->at += bytes;
  return AIT_OK;
}

static ait_status pop_to_mark(machine *m) {
  size_t first;
  AIT_TRY(pop_mark(m, &first));
  m->stack_count = first;
  return AIT_OK;
}

static ait_status step(machine *m, uint8_t op) {
  ait_pickle value = {.kind = AIT_PICKLE_BOOL}, *ignored;
  value.as.b = op == OP_TRUE;
  switch (op) {
    case OP_PROTO: return skip(m, 1);
    case OP_FRAME: return skip(m, 8);
    case OP_MARK: return push_mark(m);
    case OP_POP: return pop(m, &ignored);
    case OP_POP_MARK: return pop_to_mark(m);
    case OP_NONE: return push_new(m, (ait_pickle){.kind = AIT_PICKLE_NONE});
    case OP_TRUE:
    case OP_FALSE: return push_new(m, value);
    case OP_BININT: return push_int(m, 4);
    case OP_BININT1: return push_int(m, 1);
    case OP_BININT2: return push_int(m, 2);
    case OP_LONG1: return push_long(m);
    case OP_BINFLOAT: return push_float(m);
    case OP_UNICODE: return push_string(m, 4, true);
    case OP_SHORT_UNICODE: return push_string(m, 1, true);
    case OP_BINSTRING:
    case OP_BYTES: return push_string(m, 4, false);
    case OP_SHORT_STRING:
    case OP_SHORT_BYTES: return push_string(m, 1, false);
    case OP_EMPTY_LIST: return collect_last(m, AIT_PICKLE_LIST, 0);
    case OP_EMPTY_TUPLE: return collect_last(m, AIT_PICKLE_TUPLE, 0);
    case OP_EMPTY_DICT: return collect_last(m, AIT_PICKLE_DICT, 0);
    case OP_TUPLE1: return collect_last(m, AIT_PICKLE_TUPLE, 1);
    case OP_TUPLE2: return collect_last(m, AIT_PICKLE_TUPLE, 2);
    case OP_TUPLE3: return collect_last(m, AIT_PICKLE_TUPLE, 3);
    case OP_TUPLE: return collect_marked(m, AIT_PICKLE_TUPLE);
    case OP_LIST: return collect_marked(m, AIT_PICKLE_LIST);
    case OP_DICT: return collect_marked(m, AIT_PICKLE_DICT);
    case OP_APPEND: return extend_last(m, AIT_PICKLE_LIST, 1);
    case OP_APPENDS: return extend_marked(m, AIT_PICKLE_LIST);
    case OP_SETITEM: return extend_last(m, AIT_PICKLE_DICT, 2);
    case OP_SETITEMS: return extend_marked(m, AIT_PICKLE_DICT);
    case OP_GLOBAL: return push_global(m);
    case OP_STACK_GLOBAL: return push_stack_global(m);
    case OP_REDUCE:
    case OP_NEWOBJ: return reduce(m);
    case OP_BUILD: return build(m);
    case OP_PERSID: return collect_last(m, AIT_PICKLE_PERSISTENT, 1);
    case OP_GET: return memo_numbered(m, 1, memo_get);
    case OP_LONG_GET: return memo_numbered(m, 4, memo_get);
    case OP_PUT: return memo_numbered(m, 1, memo_put);
    case OP_LONG_PUT: return memo_numbered(m, 4, memo_put);
    case OP_MEMOIZE: return memo_put(m, m->memo_count);
    default:
      --m->at;
      return ait_error(AIT_CODE_UNSUPPORTED, "pickle opcode 0x%02x at byte %zu is none that torch writes", op, (size_t)(m->at - m->data));
  }
}

static ait_status run(machine *m, const ait_pickle **out) {
  enum { STACK_FIRST = 64 };
  AIT_TRY(ait_grow(m->arena->allocator, (void **)&m->stack, &m->stack_capacity, STACK_FIRST, sizeof *m->stack));
  while (true) {
    AIT_TRY(need(m, 1));
    uint8_t op = *m->at++;
    if (op == OP_STOP) break;
    AIT_TRY(step(m, op));
  }
  if (m->stack_count != 1 || m->mark_count != 0) return fault(m, "it does not end with one value");
  *out = m->stack[0];
  return AIT_OK;
}

ait_status ait_pickle_parse(ait_arena *arena, const uint8_t *data, size_t size, const ait_pickle **out) {
  machine m = {.arena = arena, .data = data, .at = data, .end = data + size};
  ait_status status = run(&m, out);
  ait_free(arena->allocator, m.stack, m.stack_capacity * sizeof *m.stack);
  ait_free(arena->allocator, m.memo, m.memo_capacity * sizeof *m.memo);
  ait_free(arena->allocator, m.marks, m.mark_capacity * sizeof *m.marks);
  return status;
}

const ait_pickle *ait_pickle_get(const ait_pickle *dict, const char *key) {
  if (!dict || dict->kind != AIT_PICKLE_DICT) return NULL;
  for (uint32_t i = dict->count; i >= 2; i -= 2) {
    const ait_pickle *k = dict->as.items[i - 2];
    if (k->kind == AIT_PICKLE_STRING && strcmp(k->as.string, key) == 0) return dict->as.items[i - 1];
  }
  return NULL;
}

bool ait_pickle_is_global(const ait_pickle *value, const char *name) {
  return value && value->kind == AIT_PICKLE_GLOBAL && strcmp(value->as.string, name) == 0;
}

const ait_pickle *ait_pickle_call(const ait_pickle *value, const char *name) {
  if (!value || value->kind != AIT_PICKLE_CALL || !ait_pickle_is_global(value->as.items[0], name)) return NULL;
  return value->as.items[1];
}

const char *ait_pickle_describe(const ait_pickle *value, char *out, size_t size) {
  static const char *const names[] = {"None",   "a bool", "an int",   "a float", "a text",         "a tuple",
                                      "a list", "a dict", "a global", "a call",  "a persistent id"};
  const ait_pickle *global = value->kind == AIT_PICKLE_CALL ? value->as.items[0] : value;
  if (global->kind == AIT_PICKLE_GLOBAL) {
    snprintf(out, size, value->kind == AIT_PICKLE_CALL ? "a call of '%.100s'" : "the global '%.100s'", global->as.string);
  } else {
    snprintf(out, size, "%s", names[value->kind]);
  }
  return out;
}
