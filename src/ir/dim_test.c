#include "ir/ir.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static ait_graph *new_graph(void) {
  ait_graph *g;
  assert_null(ait_graph_create(ait_allocator_default(), AIT_DIALECT_CORE, &g));
  return g;
}

static void declare(ait_graph *g, const char *name, int64_t min, int64_t max) {
  ait_dim d;
  assert_null(ait_dim_symbol(g, name, &d));
  ait_symbol *s = ait_graph_symbol(g, name);
  s->min = min;
  s->max = max;
  s->backed = true;
}

static ait_dim parse(ait_graph *g, const char *text) {
  ait_dim d;
  ait_status status = ait_dim_parse(g, text, strlen(text), &d);
  if (status) fail_msg("%s: %s", text, ait_status_message(status));
  return d;
}

static void check_text(ait_graph *g, ait_dim d, const char *want) {
  ait_text text;
  ait_text_init(&text, ait_allocator_default());
  ait_dim_text(g, d, &text);
  assert_string_equal(text.data, want);
  ait_text_deinit(&text);
}

static const struct {
  const char *text, *canonical;
} equalities[] = {
    {"1 + s0*2", "2*s0 + 1"},
    {"2*s0 + 1", "2*s0 + 1"},
    {"s0 + s0 + 1 - 3", "2*s0 - 2"},
    {"s0 - s0", "0"},
    {"0*s0", "0"},
    {"(s0 + 1)*(s1 + 2) - s1 - 2", "s0*s1 + 2*s0"},
    {"s1*s0 - s0*s1", "0"},
    {"3 - s0", "-s0 + 3"},
    {"-2*s0", "-2*s0"},
    {"(4*s0)//2", "2*s0"},
    {"(4*s0 + 3)//2", "2*s0 + 1"},
    {"(6*s0 + 4)//4", "s0 + s0//2 + 1"},
    {"(s0//2)//3", "s0//6"},
    {"(s0//2 + 5)//3", "(s0 + 4)//6 + 1"},
    {"(4*s0) % 2", "0"},
    {"(4*s0 + 3) % 2", "1"},
    {"(s0 % 4) % 2", "s0 % 2"},
    {"s0 % 200", "s0"},
    {"s0//200", "0"},
    {"(2*s0 + 2) % 4", "2*((s0 + 1) % 2)"},
    {"(s0*s1)//s1", "s0"},
    {"(s0*s1 + s0)//(s1 + 1)", "s0"},
    {"(s0*s1) % s0", "0"},
    {"ceildiv(s0, 2)", "(s0 + 1)//2"},
    {"min(s0, s0 + 1)", "s0"},
    {"max(s0, s0 + 1)", "s0 + 1"},
    {"max(s0, 1)", "s0"},
    {"min(s0, 1000)", "s0"},
    {"max(s1, s0)", "max(s0, s1)"},
    {"Max(s0, Max(s0, s1))", "max(s0, s1)"},
    {"s0**2", "s0*s0"},
    {"2**10", "1024"},
    {"FloorDiv(s0, 2) + Mod(s0, 3)", "s0//2 + s0 % 3"},
    {"7//2", "3"},
    {"-7//2", "-4"},
    {"-7 % 3", "2"},
    {"(3 - s0)//2", "-s0 + (s0 + 1)//2 + 1"},
    {"u0//u0", "u0//u0"},
    {"9223372036854775807 + 1", "9223372036854775807 + 1"},
    {"-9223372036854775808", "-9223372036854775808"},
    {"?7 + 1", "?7 + 1"},
    {"(s0 + 6 - 3)//2 + 1", "(s0 + 1)//2 + 2"},
};

static void canonical_forms(void **state) {
  AIT_UNUSED(state);
  ait_graph *g = new_graph();
  declare(g, "s0", 2, 128);
  declare(g, "s1", 2, INT64_MAX);
  declare(g, "u0", 0, INT64_MAX);
  for (size_t i = 0; i < AIT_COUNT(equalities); ++i) {
    ait_dim d = parse(g, equalities[i].text);
    check_text(g, d, equalities[i].canonical);
    assert_int_equal(parse(g, equalities[i].canonical), d);
  }
  ait_graph_destroy(g);
}

static void ranges(void **state) {
  AIT_UNUSED(state);
  ait_graph *g = new_graph();
  declare(g, "s0", 2, 128);
  declare(g, "s1", 0, INT64_MAX);
  static const struct {
    const char *text;
    int64_t min, max;
  } cases[] = {
      {"2*s0 + 1", 5, 257},
      {"s0 - s1", INT64_MIN, 128},
      {"s0//3", 0, 42},
      {"s1 % 7", 0, 6},
      {"max(s1, 5)", 5, INT64_MAX},
      {"min(s1, s0)", 0, 128},
      {"s0*s1", 0, INT64_MAX},
      {"-s0", -128, -2},
      {"s0**5", 32, 34359738368},
      {"?1", INT64_MIN, INT64_MAX},
      {"s1//s1", INT64_MIN, INT64_MAX},
  };
  for (size_t i = 0; i < AIT_COUNT(cases); ++i) {
    int64_t min, max;
    ait_dim_range(g, parse(g, cases[i].text), &min, &max);
    assert_true(min == cases[i].min && max == cases[i].max);
  }
  ait_dim d = parse(g, "2*s0 + 1");
  ait_graph_symbol(g, "s0")->max = 10; /* seen by the next question */
  int64_t min, max;
  ait_dim_range(g, d, &min, &max);
  assert_int_equal(max, 21);
  assert_true(ait_dim_is_known(g, d));
  ait_graph_symbol(g, "s0")->backed = false;
  assert_false(ait_dim_is_known(g, d));
  ait_graph_destroy(g);
}

/* ---- property: simplified equals unsimplified
 * ------------------------------------------------------------------------------------------*/

enum { SYMBOLS = 3, ROUNDS = 3000, SIZE = 24, TRIALS = 6 };

static uint64_t random_state = 12345;
static uint32_t next_random(uint32_t n) {
  random_state = random_state * 6364136223846793005u + 1442695040888963407u;
  return (uint32_t)(random_state >> 33) % n;
}

/* A straight-line program: plain[i] says what made[i] was asked to be. */
typedef struct program {
  ait_dim_expr plain[SIZE];
  ait_dim made[SIZE];
  int count;
} program;

static const ait_dim_op operators[] = {AIT_DIM_ADD, AIT_DIM_SUB, AIT_DIM_MUL, AIT_DIM_FLOORDIV, AIT_DIM_CEILDIV, AIT_DIM_MOD,
                                       AIT_DIM_MIN, AIT_DIM_MAX, AIT_DIM_ADD, AIT_DIM_FLOORDIV, AIT_DIM_MOD,     AIT_DIM_SUB};

static void make_program(ait_graph *g, program *p) {
  static const char *const names[SYMBOLS] = {"s0", "s1", "s2"};
  p->count = 0;
  for (uint32_t i = 0; i < SYMBOLS; ++i) {
    p->plain[p->count] = (ait_dim_expr){.op = AIT_DIM_SYMBOL, .a = i};
    assert_null(ait_dim_symbol(g, names[i], &p->made[p->count++]));
  }
  for (int i = 0; i < 4; ++i) {
    int64_t value = (int64_t)next_random(17) - 6;
    p->plain[p->count] = (ait_dim_expr){.op = AIT_DIM_CONST, .value = value};
    assert_null(ait_dim_const(g, value, &p->made[p->count++]));
  }
  for (int tries = 0; p->count < SIZE && tries < 60; ++tries) {
    uint32_t a = next_random((uint32_t)p->count), b = next_random((uint32_t)p->count);
    ait_dim_op op = operators[next_random(AIT_COUNT(operators))];
    ait_status status = ait_dim_make(g, op, p->made[a], p->made[b], &p->made[p->count]);
    if (status == AIT_OK) p->plain[p->count++] = (ait_dim_expr){.op = op, .a = a, .b = b};
    else ait_status_ignore(status); /* grew too large */
  }
}

static void check_program(ait_graph *g, const program *p) {
  for (int trial = 0; trial < TRIALS; ++trial) {
    int64_t values[SYMBOLS];
    for (int i = 0; i < SYMBOLS; ++i) {
      const ait_symbol *s = &g->symbols[i];
      values[i] = s->min + next_random((uint32_t)(s->max - s->min + 1));
    }
    for (int i = 0; i < p->count; ++i) {
      int64_t want, got, min, max;
      if (!ait_dim_eval(p->plain, values, (ait_dim)i, &want) || want > 1 << 30 || want < -(1 << 30)) continue;
      if (!ait_dim_eval(g->dims, values, p->made[i], &got)) continue; /* an intermediate overflowed */
      ait_dim_range(g, p->made[i], &min, &max);
      if (got == want && got >= min && got <= max) continue;
      ait_text text;
      ait_text_init(&text, ait_allocator_default());
      ait_dim_text(g, p->made[i], &text);
      fail_msg("%s = %lld [%lld, %lld], want %lld for s0 %lld s1 %lld s2 %lld", text.data, (long long)got, (long long)min, (long long)max,
               (long long)want, (long long)values[0], (long long)values[1], (long long)values[2]);
    }
  }
}

/* Text read again is the same expression. */
static void check_texts(ait_graph *g, const program *p) {
  for (int i = 0; i < p->count; ++i) {
    ait_text text;
    ait_text_init(&text, ait_allocator_default());
    ait_dim_text(g, p->made[i], &text);
    if (parse(g, text.data) != p->made[i]) fail_msg("'%s' reads as something else", text.data);
    ait_text_deinit(&text);
  }
}

static void simplification_keeps_values(void **state) {
  AIT_UNUSED(state);
  for (int round = 0; round < ROUNDS; ++round) {
    ait_graph *g = new_graph();
    declare(g, "s0", 1, 1 + next_random(40));
    declare(g, "s1", 2, 20);
    declare(g, "s2", -5, 9);
    program p;
    make_program(g, &p);
    check_program(g, &p);
    check_texts(g, &p);
    ait_graph_destroy(g);
  }
}

static void hostile_expressions_end(void **state) {
  AIT_UNUSED(state);
  ait_graph *g = new_graph();
  declare(g, "s0", 0, INT64_MAX);
  ait_dim d, s0;
  assert_null(ait_dim_symbol(g, "s0", &s0));
  d = s0;
  ait_status status = AIT_OK;
  for (int i = 0; i < 10000 && status == AIT_OK; ++i) {
    ait_dim half;
    status = ait_dim_make(g, AIT_DIM_FLOORDIV, d, s0, &half);
    if (status == AIT_OK) status = ait_dim_make(g, AIT_DIM_MAX, half, d, &d);
  }
  assert_int_equal(ait_status_code(status), AIT_CODE_LIMIT);
  ait_status_free(status);
  static const char *const bad[] = {"", "s0 +", "(s0", "foo(s0, 1)", "s0 s0", "1.5", "min(s0)", "?", "\"a"};
  for (size_t i = 0; i < AIT_COUNT(bad); ++i) {
    status = ait_dim_parse(g, bad[i], strlen(bad[i]), &d);
    assert_int_equal(ait_status_code(status), AIT_CODE_INVALID_MODEL);
    ait_status_free(status);
  }
  char deep[3000];
  memset(deep, '(', sizeof deep);
  status = ait_dim_parse(g, deep, sizeof deep, &d);
  assert_non_null(status);
  ait_status_free(status);
  memset(deep, '-', sizeof deep);
  status = ait_dim_parse(g, deep, sizeof deep, &d);
  assert_non_null(status);
  ait_status_free(status);
  ait_graph_destroy(g);
}

static void unknowns_differ(void **state) {
  AIT_UNUSED(state);
  ait_graph *g = new_graph();
  ait_dim a, b, quotient;
  assert_null(ait_dim_unknown(g, &a));
  assert_null(ait_dim_unknown(g, &b));
  assert_int_not_equal(a, b);
  assert_false(ait_dim_is_known(g, a));
  assert_true(ait_dim_divides(g, parse(g, "6*u1*u2"), parse(g, "2*u2"), &quotient));
  check_text(g, quotient, "3*u1");
  assert_false(ait_dim_divides(g, parse(g, "6*u1"), parse(g, "4*u1"), &quotient));
  ait_graph_destroy(g);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(canonical_forms),         cmocka_unit_test(ranges),          cmocka_unit_test(simplification_keeps_values),
      cmocka_unit_test(hostile_expressions_end), cmocka_unit_test(unknowns_differ),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
