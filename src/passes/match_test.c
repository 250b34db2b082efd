/* Every row of patterns.inc: its spelling is recognised and gives the same answers; near misses are left alone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "passes/testing.h"

/* A graph is written as nested calls, as in patterns.inc: the test turns them into nodes. Variables: ?x [s0, 3, 8] user, ?w and ?b [8], ?m
 * [8, 8], ?n [3] parameters, ?o [s0, 3, 1] user; numbers, [dims], true, none as they are. */
typedef struct writer {
  ait_text *text;
  const char *p, *dtype;
  int next;
} writer;

static void write_node(writer *w, char out[64]) {
  while (*w->p == ' ') ++w->p;
  size_t n = strcspn(w->p, "(,)");
  if (w->p[0] == '[') n = strcspn(w->p, "]") + 1;
  if (w->p[n] != '(') { /* a leaf */
    if (*w->p == '?') snprintf(out, 64, "%%%.*s", (int)n - 1, w->p + 1);
    else snprintf(out, 64, "%.*s", (int)n, w->p);
    w->p += n;
    return;
  }
  char name[32], args[8][64];
  int count = 0;
  snprintf(name, sizeof name, "%.*s", (int)n, w->p);
  for (w->p += n + 1; *w->p != ')'; w->p += *w->p == ',') write_node(w, args[count++]);
  ++w->p;
  snprintf(out, 64, "%%t%d", w->next++);
  ait_text_printf(w->text, "%s: %s[...] = %s(", out, w->dtype, name);
  for (int i = 0; i < count; ++i) ait_text_printf(w->text, "%s%s", i ? ", " : "", args[i]);
  ait_text_printf(w->text, ")\n");
}

/* Shapes of the nodes' results are left open in the text: inference fills them in. */
static void infer_shapes(ait_graph *g) {
  for (ait_node *n = g->first; n; n = n->next) {
    ait_value_info info[4];
    pt_ok(ait_infer(g, n->op, n->args, n->arg_count, info, n->result_count), n->op_name);
    for (uint32_t i = 0; i < n->result_count; ++i) pt_ok(ait_graph_set_metadata(g, n->results[i], &info[i]), "metadata");
  }
}

static ait_graph *expression(const char *text, const char *dtype) {
  ait_text t;
  char result[64];
  ait_text_init(&t, ait_allocator_default());
  ait_text_printf(
      &t, "graph \"m\" core\nsymbol s0 [2, 64] hint 4 backed\ninput %%x: %s[s0, 3, 8] user 0 \"x\"\ninput %%o: %s[s0, 3, 1] user 1 \"o\"\n",
      dtype, dtype);
  ait_text_printf(&t, "input %%w: %s[8] parameter -1 \"w\"\ninput %%b: %s[8] parameter -1 \"b\"\ninput %%m: %s[8, 8] parameter -1 \"m\"\n",
                  dtype, dtype, dtype);
  ait_text_printf(&t,
                  "input %%n: %s[3] parameter -1 \"n\"\ninput %%k: %s[1, 8] parameter -1 \"k\"\ninput %%d: float64[8] parameter -1 \"d\"\n",
                  dtype, dtype);
  writer w = {.text = &t, .p = text, .dtype = dtype};
  write_node(&w, result);
  ait_text_printf(&t, "output user 0 \"y\" = %s\n", result);
  ait_graph *g;
  pt_ok(ait_graph_parse(ait_allocator_default(), t.data, t.length, &g), t.data);
  infer_shapes(g);
  pt_ok(ait_graph_verify(g), t.data);
  ait_text_deinit(&t);
  pt_random_weights(g, 3);
  return g;
}

typedef struct row {
  const char *name, *pattern, *replacement;
} row;
static const row rows[] = {
#define AIT_PATTERN(name, pattern, replacement) {name, pattern, replacement},
#include "passes/patterns.inc"
#undef AIT_PATTERN
};

/* The pattern's text as an expression: suffixes go, ?e becomes a number. */
static void spelled(const char *pattern, char out[512]) {
  size_t n = 0;
  for (const char *p = pattern; *p;) {
    if (!strncmp(p, "?e:number", 9) || !strncmp(p, "?e", 2)) {
      n += (size_t)snprintf(out + n, 512 - n, "1e-05");
      p += !strncmp(p, "?e:number", 9) ? 9 : 2;
    } else if (*p == ':') {
      while (*p && *p != ',' && *p != ')') ++p;
    } else {
      out[n++] = *p++;
    }
  }
  out[n] = 0;
}

static void name_of(const char *call, char out[32]) { snprintf(out, 32, "%.*s", (int)strcspn(call, "("), call); }

/* The expression is left as it is by the pass. */
static void check_left(const char *text, const char *dtype, const char *op) {
  pt_notes notes;
  ait_graph *g = expression(text, dtype);
  size_t before = pt_count(g, op);
  g = pt_transformed(g, "cse,match,dce", 1e-5, &notes);
  if (pt_count(g, op) != before) fail_msg("became %s: %s", op, text);
  ait_graph_destroy(g);
}

static void every_pattern_is_recognised(void **state) {
  AIT_UNUSED(state);
  for (size_t i = 0; i < AIT_COUNT(rows); ++i) {
    char text[512], op[32];
    pt_notes notes;
    spelled(rows[i].pattern, text);
    name_of(rows[i].replacement, op);
    for (int merged = 0; merged < 2; ++merged) { /* before and after equal nodes have become one */
      ait_graph *g = pt_transformed(expression(text, "float32"), merged ? "cse,match,dce" : "match,dce", 1e-5, &notes);
      assert_true(pt_noted(&notes, "matched"));
      if (pt_count(g, op) != 1 || g->node_count != 1) fail_msg("%s: not one %s node is left of %s", rows[i].name, op, text);
      ait_graph_destroy(g);
    }
  }
}

/* Each number of a pattern, changed; each dim, changed; another dtype; each second use of ?x, another value. */
static void replace_at(const char *text, const char *at, size_t length, const char *with, char out[600]) {
  snprintf(out, 600, "%.*s%s%s", (int)(at - text), text, with, at + length);
}

static void near_misses_are_left(void **state) {
  AIT_UNUSED(state);
  for (size_t i = 0; i < AIT_COUNT(rows); ++i) {
    char text[512], near[600], op[32], with[32];
    spelled(rows[i].pattern, text);
    name_of(rows[i].replacement, op);
    bool in_place = strstr(rows[i].pattern, op) == rows[i].pattern; /* "add(layer_norm(…" has the operator already */
    for (const char *p = text; *p; ++p) {
      bool dims = *p == '[', number = (p[-(p > text)] == ' ' || p[-(p > text)] == '(') && *p >= '0' && *p <= '9';
      if (dims) {
        replace_at(text, p, strcspn(p, "]") + 1, "[-2]", near);
        char *more = near;
        while ((more = strstr(more + 1, "[-1]"))) memcpy(more, "[-2]", 4); /* everywhere: else shapes may not fit */
        if (strstr(near, "[-1]") || in_place) continue;
        check_left(near, "float32", op);
      } else if (number && strncmp(p, "1e-05", 5) && !strstr(text, "layer_norm(") && !strstr(text, "rms_norm(")) {
        size_t length = strspn(p, "0123456789.");
        snprintf(with, sizeof with, "%.9g", atof(p) * 1.001 + (atof(p) == 0 ? 1 : 0));
        replace_at(text, p, length, with, near);
        check_left(near, "float32", op);
      }
    }
  }
}

/* Spelled over integers the same words mean something else, or nothing. */
static void integers_are_left(void **state) {
  AIT_UNUSED(state);
  ait_graph *g = expression("clamp(?x, 0, none)", "int64");
  g = pt_transformed(g, "match", 0, NULL);
  assert_int_equal(pt_count(g, "relu"), 0);
  ait_graph_destroy(g);
}

static void wrong_operands_are_left(void **state) {
  AIT_UNUSED(state);
  check_left("mul(?x, sigmoid(?o))", "float32", "silu");
  check_left("mul(?x, sigmoid(mul(?x, 1.702)))", "float32", "silu");
  check_left("mul(?x, tanh(softplus(?x, 2.0)))", "float32", "mish");
  check_left("mul(mul(?x, 0.5), add(erf(div(?o, 1.4142135)), 1))", "float32", "gelu");
  check_left("mul(mul(?x, 0.5), sub(erf(div(?x, 1.4142135)), -1))", "float32", "gelu");
  check_left("div(exp(sub(?x, amax(?x, [-1], true))), sum(exp(sub(?x, amax(?x, [-1], true))), [1], true))", "float32", "softmax");
  check_left("div(exp(sub(?x, amax(?x, [-2], true))), sum(exp(sub(?x, amax(?x, [-2], true))), [-2], true))", "float32", "softmax");
  check_left("mul(sub(?x, mean(?x, [-1], true)), rsqrt(add(var(?x, [-1], 1, true), 1e-05)))", "float32", "layer_norm");
  check_left("mul(?x, rsqrt(add(mean(mul(?x, ?x), [-1, -2], true), 1e-05)))", "float32", "rms_norm");
  check_left("mul(?x, rsqrt(add(mean(mul(?x, ?o), [-1], true), 1e-05)))", "float32", "rms_norm");
  check_left("mul(?x, rsqrt(add(mean(mul(?x, ?x), [-1], true), ?w)))", "float32", "rms_norm");
  check_left("clamp(?x, 0, 5)", "float32", "relu");
  check_left("clamp(?x, none, 0)", "float32", "relu");
}

/* The vector fits the result, but the result is wider than what is normalised: the fused operator would not take it. */
static void broadcast_results_are_left(void **state) {
  AIT_UNUSED(state);
  static const char *const texts[] = {
      "mul(layer_norm(?o, 1, none, none, 1e-05), ?w)",
      "add(layer_norm(?o, 1, none, none, 1e-05), ?w)",
      "mul(rms_norm(?o, 1, none, 1e-05), ?w)",
      "add(linear(?x, ?k, none), ?b)",
  };
  for (size_t i = 0; i < AIT_COUNT(texts); ++i) {
    ait_graph *g = pt_transformed(expression(texts[i], "float32"), "match", 1e-5, NULL);
    assert_int_equal(g->node_count, 2);
    ait_graph_destroy(g);
  }
  check_left("add(linear(?x, ?m, ?b), ?w)", "float32", "linear");
  ait_graph *g = pt_transformed(expression("add(linear(?x, ?m, none), ?x)", "float32"), "match", 1e-5, NULL);
  assert_int_equal(g->node_count, 2);
  ait_graph_destroy(g);
}

/* A number may come as a constant tensor of one element, with the same meaning. */
static void numbers_as_constants(void **state) {
  AIT_UNUSED(state);
  static const char text[] =
      "graph \"m\" core\ninput %x: float32[2, 8] user 0 \"x\"\ninput %h: float32[] constant -1 \"half\"\ninput %r: float32[RANK] constant "
      "-1 \"root\"\n"
      "%a: float32[2, 8] = mul(%x, %h)\n%d: float32[2, 8] = div(%x, %r)\n%e: float32[2, 8] = erf(%d)\n%o: float32[2, 8] = add(%e, 1)\n"
      "%y: float32[2, 8] = mul(%a, %o)\noutput user 0 \"y\" = %y\n";
  for (int right = 0; right < 2; ++right) {
    char buffer[800];
    const char *at = strstr(text, "RANK");
    snprintf(buffer, sizeof buffer, "%.*s1%s", (int)(at - text), text, at + 4);
    ait_graph *g = pt_parse_only(buffer);
    pt_weight_number(g, "half", 0.5, 0);
    pt_weight_number(g, "root", right ? 1.41421356 : 1.5, 1);
    g = pt_transformed(g, "match,dce", 1e-5, NULL);
    assert_int_equal(pt_count(g, "gelu"), right);
    ait_graph_destroy(g);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_pattern_is_recognised), cmocka_unit_test(near_misses_are_left),       cmocka_unit_test(integers_are_left),
      cmocka_unit_test(wrong_operands_are_left),     cmocka_unit_test(broadcast_results_are_left), cmocka_unit_test(numbers_as_constants),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
