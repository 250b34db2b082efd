/* Native and eager against the reference: each kind of step, several shapes on one instance, given and planned outputs, threads. */
#include "backends/testing.h"

typedef struct op_case {
  const char *name;
  void (*build)(region_builder *r);
  int64_t sizes[5][2]; /* values of the symbols, run in this order on one instance; {-1}: end */
  int64_t int_limit;
  double tolerance;
} op_case;

#define SIZES_ONE                            \
  {                                          \
    {1, 0}, {3, 0}, {0, 0}, {5, 0}, { 3, 0 } \
  }
#define SIZES_TWO                             \
  {                                           \
    {2, 5}, {1, 1}, {3, 0}, {2, 17}, { 2, 5 } \
  }

/* ---- regions ---------------------------------------------------------------------------------------------------------------------*/
static void build_mlp(region_builder *r) {
  ait_dim n = rb_symbol(r, "n");
  uint32_t x = rb_input(r, AIT_F32, SHAPE(n, D(19)));
  uint32_t w = rb_weight(r, 0.3f, 0, SHAPE(D(33), D(19))), bias = rb_weight(r, 1, 0, SHAPE(D(33)));
  uint32_t h = rb_node(r, "linear", ARGS(rb_v(x), rb_v(w), rb_v(bias)), AIT_F32, SHAPE(n, D(33)));
  h = rb_node(r, "gelu", ARGS(rb_v(h), rb_s("none")), AIT_F32, SHAPE(n, D(33)));
  uint32_t w2 = rb_weight(r, 0.3f, 0, SHAPE(D(33), D(33)));
  uint32_t y = rb_node(r, "linear", ARGS(rb_v(h), rb_v(w2), rb_none()), AIT_F32, SHAPE(n, D(33)));
  y = rb_node(r, "add", ARGS(rb_v(y), rb_v(h)), AIT_F32, SHAPE(n, D(33)));
  y = rb_node(r, "relu", ARGS(rb_v(y)), AIT_F32, SHAPE(n, D(33)));
  rb_output(r, y);
}

static void build_conv_block(region_builder *r) {
  ait_dim n = rb_symbol(r, "n");
  uint32_t x = rb_input(r, AIT_F32, SHAPE(n, D(3), D(11), D(9)));
  uint32_t w = rb_weight(r, 0.3f, 0, SHAPE(D(20), D(3), D(3), D(3))), bias = rb_weight(r, 1, 0, SHAPE(D(20)));
  uint32_t c = rb_node(r, "conv",
                       ARGS(rb_v(x), rb_v(w), rb_v(bias), LIST(rb_i(1), rb_i(1)), LIST(rb_i(1), rb_i(1)), LIST(rb_i(1), rb_i(1)), rb_i(1),
                            rb_b(false), LIST(rb_i(0), rb_i(0))),
                       AIT_F32, SHAPE(n, D(20), D(11), D(9)));
  uint32_t w2 = rb_weight(r, 0.3f, 0, SHAPE(D(20), D(5), D(3), D(3)));
  uint32_t d = rb_node(r, "conv",
                       ARGS(rb_v(c), rb_v(w2), rb_none(), LIST(rb_i(1), rb_i(1)), LIST(rb_i(2), rb_i(2)), LIST(rb_i(2), rb_i(2)), rb_i(4),
                            rb_b(false), LIST(rb_i(0), rb_i(0))),
                       AIT_F32, SHAPE(n, D(20), D(11), D(9)));
  uint32_t m = rb_weight(r, 0.1f, 0, SHAPE(D(20))), v = rb_weight(r, 0.2f, 1, SHAPE(D(20)));
  uint32_t b =
      rb_node(r, "batch_norm", ARGS(rb_v(d), rb_v(bias), rb_none(), rb_v(m), rb_v(v), rb_f(1e-5)), AIT_F32, SHAPE(n, D(20), D(11), D(9)));
  uint32_t s = rb_node(r, "add", ARGS(rb_v(b), rb_v(c)), AIT_F32, SHAPE(n, D(20), D(11), D(9)));
  uint32_t w3 = rb_weight(r, 0.5f, 0, SHAPE(D(20), D(1), D(3), D(3)));
  uint32_t e = rb_node(r, "conv",
                       ARGS(rb_v(s), rb_v(w3), rb_v(bias), LIST(rb_i(2), rb_i(2)), LIST(rb_i(1), rb_i(1)), LIST(rb_i(1), rb_i(1)), rb_i(20),
                            rb_b(false), LIST(rb_i(0), rb_i(0))),
                       AIT_F32, SHAPE(n, D(20), D(6), D(5)));
  e = rb_node(r, "hardswish", ARGS(rb_v(e)), AIT_F32, SHAPE(n, D(20), D(6), D(5)));
  uint32_t p =
      rb_node(r, "max_pool",
              ARGS(rb_v(s), LIST(rb_i(3), rb_i(3)), LIST(rb_i(2), rb_i(2)), LIST(rb_i(1), rb_i(1)), LIST(rb_i(1), rb_i(1)), rb_b(false)),
              AIT_F32, SHAPE(n, D(20), D(6), D(5)));
  uint32_t q =
      rb_node(r, "avg_pool",
              ARGS(rb_v(s), LIST(rb_i(2), rb_i(2)), LIST(rb_i(2), rb_i(2)), LIST(rb_i(1), rb_i(1)), rb_b(false), rb_b(true), rb_none()),
              AIT_F32, SHAPE(n, D(20), D(6), D(5)));
  uint32_t cat = rb_node(r, "cat", ARGS(LIST(rb_v(e), rb_v(p), rb_v(q)), rb_i(1)), AIT_F32, SHAPE(n, D(60), D(6), D(5)));
  uint32_t wt = rb_weight(r, 0.2f, 0, SHAPE(D(60), D(7), D(3), D(2)));
  uint32_t t = rb_node(r, "conv",
                       ARGS(rb_v(cat), rb_v(wt), rb_none(), LIST(rb_i(2), rb_i(2)), LIST(rb_i(1), rb_i(0)), LIST(rb_i(1), rb_i(1)), rb_i(1),
                            rb_b(true), LIST(rb_i(1), rb_i(0))),
                       AIT_F32, SHAPE(n, D(7), D(12), D(10)));
  uint32_t g = rb_node(r, "adaptive_avg_pool", ARGS(rb_v(cat), LIST(rb_i(1), rb_i(1))), AIT_F32, SHAPE(n, D(60), D(1), D(1)));
  g = rb_node(r, "reshape", ARGS(rb_v(g), LIST(rb_d(n), rb_i(60))), AIT_F32, SHAPE(n, D(60)));
  uint32_t a = rb_node(r, "adaptive_avg_pool", ARGS(rb_v(cat), LIST(rb_i(4), rb_i(3))), AIT_F32, SHAPE(n, D(60), D(4), D(3)));
  uint32_t flat = rb_node(r, "reshape", ARGS(rb_v(p), LIST(rb_d(n), rb_i(600))), AIT_F32, SHAPE(n, D(600)));
  uint32_t up = rb_node(r, "upsample", ARGS(rb_v(p), LIST(rb_i(9), rb_i(15)), rb_s("nearest"), rb_b(false), rb_none()), AIT_F32,
                        SHAPE(n, D(20), D(9), D(15)));
  uint32_t bi = rb_node(r, "upsample", ARGS(rb_v(p), LIST(rb_i(9), rb_i(15)), rb_s("linear"), rb_b(true), rb_none()), AIT_F32,
                        SHAPE(n, D(20), D(9), D(15)));
  uint32_t gn_w = rb_weight(r, 0.2f, 1, SHAPE(D(20)));
  uint32_t gn = rb_node(r, "group_norm", ARGS(rb_v(up), rb_i(5), rb_v(gn_w), rb_none(), rb_f(1e-5)), AIT_F32, SHAPE(n, D(20), D(9), D(15)));
  const uint32_t outputs[] = {t, g, a, flat, bi, gn, cat};
  for (size_t i = 0; i < AIT_COUNT(outputs); ++i) rb_output(r, outputs[i]);
}

/* The way through an encoder layer: heads without copies, a mask made from integers. */
static void build_attention(region_builder *r) {
  ait_dim n = rb_symbol(r, "n"), t = rb_symbol(r, "t");
  uint32_t x = rb_input(r, AIT_F32, SHAPE(n, t, D(24))), ids = rb_input(r, AIT_I64, SHAPE(n, t));
  uint32_t table = rb_weight(r, 1, 0, SHAPE(D(10), D(24))), scale = rb_weight(r, 0.1f, 1, SHAPE(D(24)));
  uint32_t e = rb_node(r, "embedding", ARGS(rb_v(table), rb_v(ids)), AIT_F32, SHAPE(n, t, D(24)));
  x = rb_node(r, "add", ARGS(rb_v(x), rb_v(e)), AIT_F32, SHAPE(n, t, D(24)));
  x = rb_node(r, "layer_norm", ARGS(rb_v(x), rb_i(1), rb_v(scale), rb_none(), rb_f(1e-5)), AIT_F32, SHAPE(n, t, D(24)));
  uint32_t heads[3];
  for (int i = 0; i < 3; ++i) {
    uint32_t w = rb_weight(r, 0.4f, 0, SHAPE(D(24), D(24)));
    uint32_t p = rb_node(r, "linear", ARGS(rb_v(x), rb_v(w), rb_none()), AIT_F32, SHAPE(n, t, D(24)));
    p = rb_node(r, "reshape", ARGS(rb_v(p), LIST(rb_d(n), rb_d(t), rb_i(3), rb_i(8))), AIT_F32, SHAPE(n, t, D(3), D(8)));
    heads[i] = rb_node(r, "permute", ARGS(rb_v(p), LIST(rb_i(0), rb_i(2), rb_i(1), rb_i(3))), AIT_F32, SHAPE(n, D(3), t, D(8)));
  }
  uint32_t position = rb_node(r, "arange", ARGS(rb_i(0), rb_d(t), rb_i(1), rb_dtype(AIT_I64)), AIT_I64, SHAPE(t));
  uint32_t column = rb_node(r, "reshape", ARGS(rb_v(position), LIST(rb_d(t), rb_i(1))), AIT_I64, SHAPE(t, D(1)));
  uint32_t seen = rb_node(r, "le", ARGS(rb_v(position), rb_v(column)), AIT_BOOL, SHAPE(t, t));
  uint32_t real = rb_node(r, "ne", ARGS(rb_v(ids), rb_i(0)), AIT_BOOL, SHAPE(n, t));
  real = rb_node(r, "reshape", ARGS(rb_v(real), LIST(rb_d(n), rb_i(1), rb_i(1), rb_d(t))), AIT_BOOL, SHAPE(n, D(1), D(1), t));
  uint32_t mask = rb_node(r, "logical_and", ARGS(rb_v(real), rb_v(seen)), AIT_BOOL, SHAPE(n, D(1), t, t));
  uint32_t bias = rb_node(r, "where", ARGS(rb_v(mask), rb_f(0), rb_f(-30)), AIT_F32, SHAPE(n, D(1), t, t));
  uint32_t a = rb_node(r, "attention", ARGS(rb_v(heads[0]), rb_v(heads[1]), rb_v(heads[2]), rb_v(bias), rb_b(false), rb_none()), AIT_F32,
                       SHAPE(n, D(3), t, D(8)));
  uint32_t c = rb_node(r, "attention", ARGS(rb_v(heads[0]), rb_v(heads[1]), rb_v(heads[2]), rb_none(), rb_b(true), rb_f(0.5)), AIT_F32,
                       SHAPE(n, D(3), t, D(8)));
  a = rb_node(r, "permute", ARGS(rb_v(a), LIST(rb_i(0), rb_i(2), rb_i(1), rb_i(3))), AIT_F32, SHAPE(n, t, D(3), D(8)));
  a = rb_node(r, "reshape", ARGS(rb_v(a), LIST(rb_d(n), rb_d(t), rb_i(24))), AIT_F32, SHAPE(n, t, D(24)));
  uint32_t w = rb_weight(r, 0.4f, 0, SHAPE(D(24), D(24)));
  uint32_t o = rb_node(r, "matmul", ARGS(rb_v(a), rb_v(w)), AIT_F32, SHAPE(n, t, D(24)));
  o = rb_node(r, "add", ARGS(rb_v(x), rb_v(o)), AIT_F32, SHAPE(n, t, D(24)));
  o = rb_node(r, "rms_norm", ARGS(rb_v(o), rb_i(1), rb_v(scale), rb_f(1e-6)), AIT_F32, SHAPE(n, t, D(24)));
  rb_output(r, o);
  rb_output(r, c);
  rb_output(r, mask);
}

static void build_products(region_builder *r) {
  ait_dim n = rb_symbol(r, "n"), t = rb_symbol(r, "t");
  uint32_t a = rb_input(r, AIT_F32, SHAPE(n, D(4), t, D(6))), b = rb_input(r, AIT_F32, SHAPE(D(4), D(6), t)),
           c = rb_input(r, AIT_F32, SHAPE(n, D(1), t, D(5)));
  uint32_t m = rb_input(r, AIT_F32, SHAPE(D(6), D(9))), v = rb_input(r, AIT_F32, SHAPE(D(6)));
  uint32_t ab = rb_node(r, "matmul", ARGS(rb_v(a), rb_v(b)), AIT_F32, SHAPE(n, D(4), t, t));
  uint32_t abc = rb_node(r, "matmul", ARGS(rb_v(ab), rb_v(c)), AIT_F32, SHAPE(n, D(4), t, D(5)));
  uint32_t am = rb_node(r, "matmul", ARGS(rb_v(a), rb_v(m)), AIT_F32, SHAPE(n, D(4), t, D(9)));
  uint32_t av = rb_node(r, "matmul", ARGS(rb_v(a), rb_v(v)), AIT_F32, SHAPE(n, D(4), t));
  uint32_t vm = rb_node(r, "matmul", ARGS(rb_v(v), rb_v(m)), AIT_F32, SHAPE(D(9)));
  uint32_t vv = rb_node(r, "matmul", ARGS(rb_v(v), rb_v(v)), AIT_F32, r->shapes[0], 0);
  uint32_t vb = rb_node(r, "matmul", ARGS(rb_v(v), rb_v(b)), AIT_F32, SHAPE(D(4), t));
  uint32_t at = rb_node(r, "permute", ARGS(rb_v(a), LIST(rb_i(0), rb_i(1), rb_i(3), rb_i(2))), AIT_F32, SHAPE(n, D(4), D(6), t));
  uint32_t aa = rb_node(r, "matmul", ARGS(rb_v(at), rb_v(a)), AIT_F32, SHAPE(n, D(4), D(6), D(6)));
  aa = rb_node(r, "mul", ARGS(rb_v(aa), rb_f(0.5)), AIT_F32, SHAPE(n, D(4), D(6), D(6)));
  uint32_t soft = rb_node(r, "softmax", ARGS(rb_v(aa), rb_i(-1)), AIT_F32, SHAPE(n, D(4), D(6), D(6)));
  uint32_t logs = rb_node(r, "log_softmax", ARGS(rb_v(aa), rb_i(1)), AIT_F32, SHAPE(n, D(4), D(6), D(6)));
  const uint32_t outputs[] = {abc, am, av, vm, vv, vb, soft, logs};
  for (size_t i = 0; i < AIT_COUNT(outputs); ++i) rb_output(r, outputs[i]);
}

static void build_views(region_builder *r) {
  ait_dim n = rb_symbol(r, "n");
  uint32_t x = rb_input(r, AIT_F32, SHAPE(n, D(6), D(8)));
  uint32_t p = rb_node(r, "permute", ARGS(rb_v(x), LIST(rb_i(2), rb_i(0), rb_i(1))), AIT_F32, SHAPE(D(8), n, D(6)));
  uint32_t s = rb_node(r, "slice", ARGS(rb_v(p), rb_i(0), rb_i(1), rb_i(INT64_MAX), rb_i(3)), AIT_F32, SHAPE(D(3), n, D(6)));
  uint32_t f = rb_node(r, "reshape", ARGS(rb_v(s), LIST(rb_i(3), rb_i(-1))), AIT_F32, SHAPE(D(3), rb_dim(r, AIT_DIM_MUL, n, D(6))));
  uint32_t e = rb_node(r, "select", ARGS(rb_v(x), rb_i(1), rb_i(-2)), AIT_F32, SHAPE(n, D(8)));
  uint32_t u = rb_node(r, "unfold", ARGS(rb_v(e), rb_i(1), rb_i(3), rb_i(2)), AIT_F32, SHAPE(n, D(3), D(3)));
  uint32_t w = rb_node(r, "add", ARGS(rb_v(u), rb_f(1)), AIT_F32, SHAPE(n, D(3), D(3)));
  uint32_t flip = rb_node(r, "flip", ARGS(rb_v(x), LIST(rb_i(0), rb_i(2))), AIT_F32, SHAPE(n, D(6), D(8)));
  uint32_t roll = rb_node(r, "roll", ARGS(rb_v(x), LIST(rb_i(2), rb_i(-3)), LIST(rb_i(1), rb_i(2))), AIT_F32, SHAPE(n, D(6), D(8)));
  uint32_t pad = rb_node(r, "pad", ARGS(rb_v(x), LIST(rb_i(1), rb_i(2), rb_i(-1), rb_i(3)), rb_f(2.5)), AIT_F32, SHAPE(n, D(8), D(11)));
  uint32_t ones = rb_node(r, "full", ARGS(LIST(rb_d(n), rb_i(6), rb_i(2)), rb_f(3), rb_dtype(AIT_F32)), AIT_F32, SHAPE(n, D(6), D(2)));
  uint32_t put =
      rb_node(r, "slice_scatter", ARGS(rb_v(roll), rb_v(ones), rb_i(2), rb_i(3), rb_i(7), rb_i(2)), AIT_F32, SHAPE(n, D(6), D(8)));
  uint32_t sel = rb_node(r, "select_scatter", ARGS(rb_v(put), rb_v(e), rb_i(1), rb_i(0)), AIT_F32, SHAPE(n, D(6), D(8)));
  uint32_t wide = rb_node(r, "reshape", ARGS(rb_v(e), LIST(rb_d(n), rb_i(1), rb_i(8))), AIT_F32, SHAPE(n, D(1), D(8)));
  wide = rb_node(r, "expand", ARGS(rb_v(wide), LIST(rb_d(n), rb_i(6), rb_i(8))), AIT_F32, SHAPE(n, D(6), D(8)));
  uint32_t cat = rb_node(r, "cat", ARGS(LIST(rb_v(wide), rb_v(x), rb_v(x)), rb_i(-1)), AIT_F32, SHAPE(n, D(6), D(24)));
  const uint32_t outputs[] = {f, w, flip, pad, put, sel, cat, x, p, ones};
  for (size_t i = 0; i < AIT_COUNT(outputs); ++i) rb_output(r, outputs[i]);
}

static void build_reductions(region_builder *r) {
  ait_dim n = rb_symbol(r, "n");
  uint32_t x = rb_input(r, AIT_F32, SHAPE(n, D(4), D(5), D(6)));
  rb_output(r, rb_node(r, "sum", ARGS(rb_v(x), LIST(rb_i(1), rb_i(-1)), rb_b(false)), AIT_F32, SHAPE(n, D(5))));
  rb_output(r, rb_node(r, "mean", ARGS(rb_v(x), LIST(rb_i(2), rb_i(3)), rb_b(true)), AIT_F32, SHAPE(n, D(4), D(1), D(1))));
  rb_output(r, rb_node(r, "amax", ARGS(rb_v(x), LIST(rb_i(1)), rb_b(false)), AIT_F32, SHAPE(n, D(5), D(6))));
  rb_output(r, rb_node(r, "amin", ARGS(rb_v(x), LIST(rb_i(3)), rb_b(true)), AIT_F32, SHAPE(n, D(4), D(5), D(1))));
  rb_output(r, rb_node(r, "prod", ARGS(rb_v(x), LIST(rb_i(2)), rb_b(false)), AIT_F32, SHAPE(n, D(4), D(6))));
  rb_output(r, rb_node(r, "var", ARGS(rb_v(x), LIST(rb_i(-1)), rb_f(1), rb_b(false)), AIT_F32, SHAPE(n, D(4), D(5))));
  rb_output(r, rb_node(r, "argmax", ARGS(rb_v(x), rb_i(2), rb_b(false)), AIT_I64, SHAPE(n, D(4), D(6))));
  ait_region_node *m = rb_node_of(r, "max_dim", ARGS(rb_v(x), rb_i(-1), rb_b(false)));
  rb_output(r, rb_result(r, m, AIT_F32, SHAPE(n, D(4), D(5))));
  rb_output(r, rb_result(r, m, AIT_I64, SHAPE(n, D(4), D(5))));
  uint32_t index = rb_input(r, AIT_I64, SHAPE(D(3)));
  rb_output(r, rb_node(r, "index_select", ARGS(rb_v(x), rb_i(1), rb_v(index)), AIT_F32, SHAPE(n, D(3), D(5), D(6))));
  rb_output(r, rb_node(r, "cumsum", ARGS(rb_v(x), rb_i(1)), AIT_F32, SHAPE(n, D(4), D(5), D(6))));
  uint32_t two = rb_input(r, AIT_I64, SHAPE(D(2), D(1)));
  rb_output(r, rb_node(r, "index", ARGS(rb_v(x), LIST(rb_none(), rb_v(two), rb_v(index))), AIT_F32, SHAPE(n, D(2), D(3), D(6))));
  rb_output(r, rb_node(r, "index", ARGS(rb_v(x), LIST(rb_none(), rb_v(two), rb_none(), rb_v(index))), AIT_F32, SHAPE(D(2), D(3), n, D(5))));
  uint32_t where = rb_input(r, AIT_I64, SHAPE(n, D(4), D(2), D(6)));
  rb_output(r, rb_node(r, "gather", ARGS(rb_v(x), rb_i(2), rb_v(where)), AIT_F32, SHAPE(n, D(4), D(2), D(6))));
  rb_output(r, rb_node(r, "cumsum", ARGS(rb_v(where), rb_i(-1)), AIT_I64, SHAPE(n, D(4), D(2), D(6))));
  for (int k = 0; k < 4; ++k) {
    static const struct {
      int64_t dim, take;
      bool largest;
    } tops[] = {{-1, 2, true}, {1, 3, false}, {3, 6, true}, {-1, 1, false}};
    ait_region_node *top = rb_node_of(r, "topk", ARGS(rb_v(x), rb_i(tops[k].take), rb_i(tops[k].dim), rb_b(tops[k].largest), rb_b(true)));
    int64_t at = tops[k].dim < 0 ? 3 : tops[k].dim;
    ait_dim shape[] = {n, D(at == 1 ? tops[k].take : 4), D(5), D(at == 3 ? tops[k].take : 6)};
    rb_output(r, rb_result(r, top, AIT_F32, SHAPE(shape[0], shape[1], shape[2], shape[3])));
    rb_output(r, rb_result(r, top, AIT_I64, SHAPE(shape[0], shape[1], shape[2], shape[3])));
  }
  rb_output(r, rb_node(r, "tril", ARGS(rb_v(x), rb_i(1)), AIT_F32, SHAPE(n, D(4), D(5), D(6)))); /* no kernel: portable */
}

static void build_elementwise(region_builder *r) {
  ait_dim n = rb_symbol(r, "n");
  uint32_t x = rb_input(r, AIT_F32, SHAPE(n, D(7), D(3))), y = rb_input(r, AIT_F32, SHAPE(D(7), D(1))),
           i = rb_input(r, AIT_I64, SHAPE(n, D(7), D(3)));
  static const char *const unary[] = {"neg",   "abs",     "sign", "ceil", "floor",     "round",       "trunc", "exp",       "exp2",
                                      "expm1", "sin",     "cos",  "tan",  "atan",      "sinh",        "tanh",  "asinh",     "erf",
                                      "erfc",  "sigmoid", "relu", "silu", "hardswish", "hardsigmoid", "mish",  "reciprocal"};
  for (size_t k = 0; k < AIT_COUNT(unary); ++k) rb_output(r, rb_node(r, unary[k], ARGS(rb_v(x)), AIT_F32, SHAPE(n, D(7), D(3))));
  static const char *const binary[] = {"add", "sub", "mul", "div", "maximum", "minimum", "atan2", "remainder", "fmod"};
  for (size_t k = 0; k < AIT_COUNT(binary); ++k) {
    rb_output(r, rb_node(r, binary[k], ARGS(rb_v(x), rb_v(y)), AIT_F32, SHAPE(n, D(7), D(3))));
    rb_output(r, rb_node(r, binary[k], ARGS(rb_v(x), rb_f(0.75)), AIT_F32, SHAPE(n, D(7), D(3))));
    if (k < 4) rb_output(r, rb_node(r, binary[k], ARGS(rb_f(0.75), rb_v(x)), AIT_F32, SHAPE(n, D(7), D(3))));
  }
  uint32_t c = rb_node(r, "clamp", ARGS(rb_v(x), rb_f(-0.5), rb_none()), AIT_F32, SHAPE(n, D(7), D(3)));
  c = rb_node(r, "pow", ARGS(rb_v(c), rb_i(3)), AIT_F32, SHAPE(n, D(7), D(3)));
  c = rb_node(r, "elu", ARGS(rb_v(c), rb_f(1.5), rb_f(2), rb_f(0.5)), AIT_F32, SHAPE(n, D(7), D(3)));
  c = rb_node(r, "leaky_relu", ARGS(rb_v(c), rb_f(0.2)), AIT_F32, SHAPE(n, D(7), D(3)));
  c = rb_node(r, "softplus", ARGS(rb_v(c), rb_f(2), rb_f(20)), AIT_F32, SHAPE(n, D(7), D(3)));
  rb_output(r, c);
  static const char *const integer[] = {"add",          "sub",       "mul",         "maximum",    "minimum",
                                        "floor_divide", "remainder", "bitwise_and", "bitwise_xor"};
  uint32_t j = i;
  for (size_t k = 0; k < AIT_COUNT(integer); ++k) {
    j = rb_node(r, integer[k], ARGS(rb_v(j), rb_i(5)), AIT_I64, SHAPE(n, D(7), D(3)));
    if (k % 2 != 0) rb_output(r, j);
  }
  uint32_t big = rb_node(r, "mul", ARGS(rb_v(i), rb_i((int64_t)1 << 40)), AIT_I64, SHAPE(n, D(7), D(3)));
  uint32_t next = rb_node(r, "add", ARGS(rb_v(big), rb_i(1)), AIT_I64, SHAPE(n, D(7), D(3)));
  rb_output(r, rb_node(r, "gt", ARGS(rb_v(next), rb_v(big)), AIT_BOOL, SHAPE(n, D(7), D(3)))); /* floats would not see the difference */
  uint32_t floats = rb_node(r, "cast", ARGS(rb_v(i), rb_dtype(AIT_F32)), AIT_F32, SHAPE(n, D(7), D(3)));
  uint32_t positive = rb_node(r, "gt", ARGS(rb_v(x), rb_f(0)), AIT_BOOL, SHAPE(n, D(7), D(3)));
  uint32_t not = rb_node(r, "bitwise_not", ARGS(rb_v(positive)), AIT_BOOL, SHAPE(n, D(7), D(3)));
  rb_output(r, rb_node(r, "where", ARGS(rb_v(positive), rb_v(floats), rb_v(x)), AIT_F32, SHAPE(n, D(7), D(3))));
  rb_output(r, rb_node(r, "cast", ARGS(rb_v(not ), rb_dtype(AIT_I32)), AIT_I32, SHAPE(n, D(7), D(3))));
  uint32_t half = rb_node(r, "cast", ARGS(rb_v(x), rb_dtype(AIT_BF16)), AIT_BF16, SHAPE(n, D(7), D(3)));
  rb_output(r, rb_node(r, "mul", ARGS(rb_v(half), rb_v(half)), AIT_BF16, SHAPE(n, D(7), D(3))));
  rb_output(r, rb_node(r, "mul", ARGS(rb_v(x), rb_d(n)), AIT_F32, SHAPE(n, D(7), D(3))));
}

static void build_recurrent(region_builder *r, bool gru) {
  ait_dim n = rb_symbol(r, "n"), t = rb_symbol(r, "t");
  int64_t gates = gru ? 15 : 20;
  uint32_t x = rb_input(r, AIT_F32, SHAPE(n, t, D(7))), h0 = rb_input(r, AIT_F32, SHAPE(D(4), n, D(5))),
           c0 = gru ? 0 : rb_input(r, AIT_F32, SHAPE(D(4), n, D(5)));
  ait_arg params[16];
  for (int cell = 0; cell < 4; ++cell) {
    params[cell * 4] = rb_v(rb_weight(r, 0.5f, 0, SHAPE(D(gates), D(cell < 2 ? 7 : 10))));
    params[cell * 4 + 1] = rb_v(rb_weight(r, 0.5f, 0, SHAPE(D(gates), D(5))));
    params[cell * 4 + 2] = rb_v(rb_weight(r, 0.5f, 0, SHAPE(D(gates))));
    params[cell * 4 + 3] = rb_v(rb_weight(r, 0.5f, 0, SHAPE(D(gates))));
  }
  ait_arg list = rb_list(r, params, 16);
  ait_region_node *node = gru ? rb_node_of(r, "gru", ARGS(rb_v(x), rb_v(h0), list, rb_b(true), rb_i(2), rb_b(true), rb_b(true)))
                              : rb_node_of(r, "lstm", ARGS(rb_v(x), rb_v(h0), rb_v(c0), list, rb_b(true), rb_i(2), rb_b(true), rb_b(true)));
  rb_output(r, rb_result(r, node, AIT_F32, SHAPE(n, t, D(10))));
  rb_output(r, rb_result(r, node, AIT_F32, SHAPE(D(4), n, D(5))));
  if (!gru) rb_output(r, rb_result(r, node, AIT_F32, SHAPE(D(4), n, D(5))));
}
static void build_lstm(region_builder *r) { build_recurrent(r, false); }
static void build_gru(region_builder *r) { build_recurrent(r, true); }

/* Rotary embedding in halves of heads [n, 2, t, 10], and two that only look like it; gated layers. */
static uint32_t rotary(region_builder *r, uint32_t x, uint32_t cos, uint32_t sin, ait_dim n, ait_dim t, int64_t from, bool crossed) {
  uint32_t low = rb_node(r, "slice", ARGS(rb_v(x), rb_i(3), rb_i(0), rb_i(5), rb_i(1)), AIT_F32, SHAPE(n, D(2), t, D(5)));
  uint32_t high = rb_node(r, "slice", ARGS(rb_v(x), rb_i(-1), rb_i(from), rb_i(from + 5), rb_i(1)), AIT_F32, SHAPE(n, D(2), t, D(5)));
  high = rb_node(r, "neg", ARGS(rb_v(high)), AIT_F32, SHAPE(n, D(2), t, D(5)));
  uint32_t turned = rb_node(r, "cat", ARGS(LIST(rb_v(high), rb_v(low)), rb_i(3)), AIT_F32, SHAPE(n, D(2), t, D(10)));
  uint32_t a = rb_node(r, "mul", ARGS(rb_v(x), rb_v(cos)), AIT_F32, SHAPE(n, D(2), t, D(10)));
  uint32_t b = rb_node(r, "mul", ARGS(rb_v(sin), rb_v(turned)), AIT_F32, SHAPE(n, D(2), t, D(10)));
  return rb_node(r, "add", ARGS(rb_v(crossed ? b : a), rb_v(crossed ? a : b)), AIT_F32, SHAPE(n, D(2), t, D(10)));
}

static void build_gated(region_builder *r) {
  ait_dim n = rb_symbol(r, "n"), t = rb_symbol(r, "t");
  uint32_t x = rb_input(r, AIT_F32, SHAPE(n, t, D(20))), tables[2];
  for (int i = 0; i < 2; ++i) tables[i] = rb_input(r, AIT_F32, SHAPE(D(1), D(1), t, D(10)));
  uint32_t w[2], h[2];
  for (int i = 0; i < 2; ++i) {
    w[i] = rb_weight(r, 0.3f, 0, SHAPE(D(20), D(20)));
    h[i] = rb_node(r, "linear", ARGS(rb_v(x), rb_v(w[i]), rb_none()), AIT_F32, SHAPE(n, t, D(20)));
  }
  uint32_t gate = rb_node(r, "silu", ARGS(rb_v(h[0])), AIT_F32, SHAPE(n, t, D(20)));
  uint32_t y = rb_node(r, "mul", ARGS(rb_v(gate), rb_v(h[1])), AIT_F32, SHAPE(n, t, D(20)));
  rb_output(r, rb_node(r, "relu", ARGS(rb_v(y)), AIT_F32, SHAPE(n, t, D(20))));
  uint32_t bare = rb_node(r, "linear", ARGS(rb_v(y), rb_v(w[1]), rb_none()), AIT_F32, SHAPE(n, t, D(20)));
  bare = rb_node(r, "mul", ARGS(rb_v(x), rb_v(bare)), AIT_F32, SHAPE(n, t, D(20)));
  rb_output(r, rb_node(r, "sigmoid", ARGS(rb_v(bare)), AIT_F32, SHAPE(n, t, D(20))));
  uint32_t q = rb_node(r, "reshape", ARGS(rb_v(y), LIST(rb_d(n), rb_d(t), rb_i(2), rb_i(10))), AIT_F32, SHAPE(n, t, D(2), D(10)));
  q = rb_node(r, "permute", ARGS(rb_v(q), LIST(rb_i(0), rb_i(2), rb_i(1), rb_i(3))), AIT_F32, SHAPE(n, D(2), t, D(10)));
  rb_output(r, rotary(r, q, tables[0], tables[1], n, t, 5, false));
  uint32_t again = rotary(r, q, tables[0], tables[1], n, t, 5, true);
  rb_output(r, rotary(r, again, tables[1], tables[0], n, t, 4, false)); /* overlapping parts are no halves */
  rb_output(r, rotary(r, again, q, tables[0], n, t, 5, false));         /* a table for each head */
}

static const op_case cases[] = {
    {"mlp", build_mlp, SIZES_ONE, 0, 1e-5},
    {"conv block", build_conv_block, SIZES_ONE, 0, 2e-5},
    {"attention", build_attention, SIZES_TWO, 10, 2e-5},
    {"products", build_products, SIZES_TWO, 0, 2e-5},
    {"views", build_views, SIZES_ONE, 0, 0},
    {"reductions", build_reductions, SIZES_ONE, 4, 1e-5},
    {"elementwise", build_elementwise, SIZES_ONE, 1000, 1e-4},
    {"lstm", build_lstm, {{2, 5}, {1, 1}, {3, 1}, {2, 17}, {2, 5}}, 0, 1e-5},
    {"gated and rotary", build_gated, SIZES_TWO, 0, 2e-5},
    {"gru", build_gru, {{2, 5}, {1, 1}, {3, 1}, {2, 17}, {2, 5}}, 0, 1e-5},
};

/* ---- comparison ------------------------------------------------------------------------------------------------------------------*/
typedef struct variant {
  const char *backend, *key, *value;
  int32_t threads;
  bool give_outputs;
  const char *isa;
} variant;

static const variant variants[] = {
    {"native", NULL, NULL, 1, false, "native"},     {"native", NULL, NULL, 2, true, "native"},
    {"native", NULL, NULL, 1, true, "avx2"},        {"native", NULL, NULL, 1, false, "scalar"},
    {"native", "fuse", "off", 1, true, "native"},   {"native", "layout", "nchw", 1, false, "native"},
    {"native", "pack", "load", 2, false, "native"}, {"eager", NULL, NULL, 1, false, "native"},
    {"eager", NULL, NULL, 2, true, "native"},
};

static void run_once(const runner *k, region_builder *r, ait_pool *pool, const ait_value *inputs, ait_value *outputs) {
  ait_run_context c = {.struct_size = sizeof c, .allocator = k->allocator, .pool = pool, .inputs = inputs, .outputs = outputs};
  char what[64];
  snprintf(what, sizeof what, "run on %s", k->backend->name);
  check_ok(k->backend->run(k->instance, &c), what);
  AIT_UNUSED(r);
}

static void compare_once(const op_case *c, const variant *v, const runner *k, region_builder *r, ait_pool *pool, const ait_value *inputs,
                         const ait_value *want) {
  uint32_t count = r->region.output_count;
  ait_value got[RB_MAX] = {{0}};
  ait_tensor given[RB_MAX] = {{0}};
  for (uint32_t i = 0; v->give_outputs && i < count; ++i) {
    check_ok(
        ait_tensor_create(ait_allocator_default(), want[i].as.tensor.dtype, want[i].as.tensor.rank, want[i].as.tensor.shape, &given[i]),
        "output");
    if (given[i].data != NULL) memset(given[i].data, 0x7f, ait_tensor_bytes(&given[i]));
    got[i] = (ait_value){.kind = AIT_VALUE_TENSOR, .as.tensor = given[i]};
  }
  run_once(k, r, pool, inputs, got);
  for (uint32_t i = 0; i < count; ++i) {
    char what[128];
    snprintf(what, sizeof what, "%s on %s %s=%s, output %u", c->name, v->backend, v->key ? v->key : "", v->value ? v->value : "", i);
    assert_int_equal(got[i].kind, AIT_VALUE_TENSOR);
    check_close(what, &got[i].as.tensor, &want[i].as.tensor, c->tolerance);
    if (v->give_outputs) assert_ptr_equal(got[i].as.tensor.data, given[i].data);
    ait_tensor_release(&given[i]);
  }
}

static void compare_variant(const op_case *c, const variant *v) {
  region_builder *r = malloc(sizeof *r);
  rb_init(r);
  c->build(r);
  ait_weights weights = ait_weight_store_provider(r->weights);
  runner reference = {.allocator = ait_allocator_default()}, k = {.allocator = ait_allocator_default()};
  ait_option option = {v->key, v->value};
  uint64_t mask;
  check_ok(ait_cpu_mask_parse(v->isa, &mask), "mask");
  check_ok(runner_compile(&reference, "reference", &r->region, weights, NULL, 0), "compile reference");
  check_ok(runner_load(&reference, weights, UINT64_MAX), "load reference");
  check_ok(runner_compile(&k, v->backend, &r->region, weights, &option, v->key != NULL), c->name);
  check_ok(runner_load(&k, weights, mask), c->name);
  ait_pool *pool = NULL;
  if (v->threads > 1) check_ok(ait_pool_create(ait_allocator_default(), v->threads, &pool), "pool");
  for (size_t s = 0; s < AIT_COUNT(c->sizes); ++s) {
    ait_value inputs[RB_MAX], want[RB_MAX] = {{0}};
    rb_inputs(r, c->sizes[s], c->int_limit, inputs);
    run_once(&reference, r, NULL, inputs, want);
    compare_once(c, v, &k, r, pool, inputs, want);
    compare_once(c, v, &k, r, pool, inputs, want); /* again, with other memory */
    rb_release(want, r->region.output_count);
    rb_release(inputs, r->region.input_count);
  }
  if (pool != NULL) ait_pool_destroy(pool);
  runner_deinit(&k);
  runner_deinit(&reference);
  rb_deinit(r);
  free(r);
}

static void test_against_reference(void **state) {
  AIT_UNUSED(state);
  for (size_t c = 0; c < AIT_COUNT(cases); ++c) {
    for (size_t v = 0; v < AIT_COUNT(variants); ++v) compare_variant(&cases[c], &variants[v]);
  }
}

/* ---- channels-last and sliced inputs, outputs on top of inputs ---------------------------------------------------------------------*/
static void test_strided_inputs_and_aliased_outputs(void **state) {
  AIT_UNUSED(state);
  region_builder *r = malloc(sizeof *r);
  rb_init(r);
  build_mlp(r);
  ait_weights weights = ait_weight_store_provider(r->weights);
  runner k = {.allocator = ait_allocator_default()};
  check_ok(runner_compile(&k, "native", &r->region, weights, NULL, 0), "compile");
  check_ok(runner_load(&k, weights, UINT64_MAX), "load");
  float rows[4 * 40], plain[4 * 19], want[4 * 33];
  for (size_t i = 0; i < AIT_COUNT(rows); ++i) rows[i] = rb_random(r);
  for (int i = 0; i < 4; ++i) memcpy(&plain[i * 19], &rows[i * 40], 19 * sizeof(float));
  int64_t in_shape[] = {4, 19}, out_shape[] = {4, 33};
  ait_value inputs[RB_MAX] = {{0}}, outputs[1] = {{0}};
  inputs[0] = (ait_value){.kind = AIT_VALUE_TENSOR, .as.tensor = ait_tensor_borrow(plain, AIT_F32, 2, in_shape)};
  outputs[0] = (ait_value){.kind = AIT_VALUE_TENSOR, .as.tensor = ait_tensor_borrow(want, AIT_F32, 2, out_shape)};
  run_once(&k, r, NULL, inputs, outputs);
  inputs[0].as.tensor = ait_tensor_borrow(rows, AIT_F32, 2, in_shape);
  inputs[0].as.tensor.strides[0] = 40; /* a slice of a wider tensor */
  outputs[0] = (ait_value){0};
  run_once(&k, r, NULL, inputs, outputs);
  ait_tensor expected = ait_tensor_borrow(want, AIT_F32, 2, out_shape);
  check_close("sliced input", &outputs[0].as.tensor, &expected, 0);
  outputs[0] = (ait_value){.kind = AIT_VALUE_TENSOR, .as.tensor = ait_tensor_borrow(rows, AIT_F32, 2, out_shape)}; /* over the input */
  run_once(&k, r, NULL, inputs, outputs);
  check_close("output over input", &outputs[0].as.tensor, &expected, 0);
  runner_deinit(&k);
  rb_deinit(r);
  free(r);
}

/* ---- failing allocator -------------------------------------------------------------------------------------------------------------*/
typedef struct failing {
  int64_t left, live;
} failing;

static void *failing_alloc(void *ctx, size_t size, size_t align) {
  failing *f = ctx;
  if (f->left-- <= 0) return NULL;
  ait_allocator a = ait_allocator_default();
  void *p = a.alloc(a.ctx, size, align);
  f->live += p != NULL;
  return p;
}
static void failing_free(void *ctx, void *p, size_t size) {
  failing *f = ctx;
  ait_allocator a = ait_allocator_default();
  f->live--;
  a.free(a.ctx, p, size);
}

static ait_status whole_life(region_builder *r, runner *k, const char *backend, const ait_value *inputs) {
  ait_weights weights = ait_weight_store_provider(r->weights);
  AIT_TRY(runner_compile(k, backend, &r->region, weights, NULL, 0));
  AIT_TRY(runner_load(k, weights, UINT64_MAX));
  ait_value outputs[RB_MAX] = {{0}};
  ait_run_context c = {.struct_size = sizeof c, .allocator = k->allocator, .inputs = inputs, .outputs = outputs};
  return k->backend->run(k->instance, &c);
}

static void test_failing_allocator(void **state) {
  AIT_UNUSED(state);
  static void (*const builds[])(region_builder *) = {build_attention, build_conv_block, build_reductions};
  for (size_t b = 0; b < AIT_COUNT(builds); ++b) {
    region_builder *r = malloc(sizeof *r);
    rb_init(r);
    builds[b](r);
    ait_value inputs[RB_MAX];
    rb_inputs(r, (const int64_t[]){2, 3}, 4, inputs);
    bool done = false;
    for (int64_t n = 0; !done; n += n < 60 ? 1 : 7) {
      assert_true(n < 20000);
      failing f = {.left = n};
      runner k = {.allocator = {&f, failing_alloc, failing_free}};
      ait_status status = whole_life(r, &k, "native", inputs);
      done = status == AIT_OK;
      if (!done) assert_int_equal(ait_status_code(status), AIT_CODE_OUT_OF_MEMORY);
      ait_status_free(status);
      runner_deinit(&k);
      assert_int_equal(f.live, 0);
    }
    rb_release(inputs, r->region.input_count);
    rb_deinit(r);
    free(r);
  }
}

/* ---- steady state ------------------------------------------------------------------------------------------------------------------*/
static void test_steady_state_allocates_nothing(void **state) {
  AIT_UNUSED(state);
  region_builder *r = malloc(sizeof *r);
  rb_init(r);
  build_attention(r);
  failing f = {.left = INT64_MAX};
  runner k = {.allocator = {&f, failing_alloc, failing_free}};
  ait_value inputs[RB_MAX], outputs[RB_MAX] = {{0}};
  rb_inputs(r, (const int64_t[]){2, 3}, 10, inputs);
  check_ok(whole_life(r, &k, "native", inputs), "run");
  f.left = 0; /* from here on nothing may be asked for */
  for (int i = 0; i < 3; ++i) {
    memset(outputs, 0, sizeof outputs);
    run_once(&k, r, NULL, inputs, outputs);
  }
  runner_deinit(&k);
  rb_release(inputs, r->region.input_count);
  rb_deinit(r);
  free(r);
}

/* ---- hostile blobs -----------------------------------------------------------------------------------------------------------------*/
static void try_blob(region_builder *r, const void *data, size_t size, const ait_value *inputs) {
  ait_weights weights = ait_weight_store_provider(r->weights);
  runner k = {.allocator = ait_allocator_default(), .backend = ait_backend_find("native")};
  k.blob.data = ait_alloc(k.allocator, size, 64);
  k.blob.size = size;
  memcpy(k.blob.data, data, size);
  ait_status status = runner_load(&k, weights, UINT64_MAX);
  if (status == AIT_OK) {
    ait_value outputs[RB_MAX] = {{0}};
    ait_run_context c = {.struct_size = sizeof c, .allocator = k.allocator, .inputs = inputs, .outputs = outputs};
    status = k.backend->run(k.instance, &c);
  }
  ait_status_free(status);
  runner_deinit(&k);
}

/* Flipped bits and cut ends are refused, or run within their memory (the sanitizer build is the judge). */
static void test_hostile_blobs(void **state) {
  AIT_UNUSED(state);
  static void (*const builds[])(region_builder *) = {build_mlp, build_conv_block, build_attention, build_views};
  for (size_t b = 0; b < AIT_COUNT(builds); ++b) {
    region_builder *r = malloc(sizeof *r);
    rb_init(r);
    builds[b](r);
    ait_value inputs[RB_MAX];
    rb_inputs(r, (const int64_t[]){2, 3}, 10, inputs);
    runner k = {.allocator = ait_allocator_default()};
    check_ok(runner_compile(&k, "native", &r->region, ait_weight_store_provider(r->weights), NULL, 0), "compile");
    for (size_t cut = 0; cut < k.blob.size; cut += 1 + k.blob.size / 37) try_blob(r, k.blob.data, cut, inputs);
    uint8_t *bytes = k.blob.data;
    for (int i = 0; i < 3000; ++i) {
      uint64_t random = (uint64_t)((rb_random(r) + 1) * 4e6f);
      size_t at = (size_t)(random % (k.blob.size < 16384 ? k.blob.size : 16384));
      uint8_t old = bytes[at];
      bytes[at] = (uint8_t)(old ^ (1u << (random % 8)));
      try_blob(r, k.blob.data, k.blob.size, inputs);
      bytes[at] = old;
    }
    rb_release(inputs, r->region.input_count);
    runner_deinit(&k);
    rb_deinit(r);
    free(r);
  }
}

/* ---- errors ------------------------------------------------------------------------------------------------------------------------*/
static void test_index_out_of_range_is_an_error(void **state) {
  AIT_UNUSED(state);
  region_builder *r = malloc(sizeof *r);
  rb_init(r);
  build_attention(r);
  ait_value inputs[RB_MAX];
  rb_inputs(r, (const int64_t[]){2, 3}, 10, inputs);
  ((int64_t *)inputs[1].as.tensor.data)[4] = 10; /* the table has ten rows */
  runner k = {.allocator = ait_allocator_default()};
  ait_status status = whole_life(r, &k, "native", inputs);
  assert_int_equal(ait_status_code(status), AIT_CODE_INVALID_ARGUMENT);
  ait_status_free(status);
  ((int64_t *)inputs[1].as.tensor.data)[4] = 9;
  ait_value outputs[RB_MAX] = {{0}};
  run_once(&k, r, NULL, inputs, outputs);
  runner_deinit(&k);
  rb_release(inputs, r->region.input_count);
  rb_deinit(r);
  free(r);
}

static void test_profile_names_steps(void **state) {
  AIT_UNUSED(state);
  region_builder *r = malloc(sizeof *r);
  rb_init(r);
  build_reductions(r);
  ait_value inputs[RB_MAX], outputs[RB_MAX] = {{0}};
  rb_inputs(r, (const int64_t[]){2, 0}, 4, inputs);
  runner k = {.allocator = ait_allocator_default()};
  check_ok(whole_life(r, &k, "native", inputs), "run");
  ait_run_context c = {.struct_size = sizeof c, .allocator = k.allocator, .inputs = inputs, .outputs = outputs, .profile = true};
  check_ok(k.backend->run(k.instance, &c), "run");
  ait_step_time times[64];
  uint32_t count = k.backend->profile(k.instance, times, 64), portable = 0;
  assert_int_equal(count, 19);
  for (uint32_t i = 0; i < count; ++i) {
    assert_string_equal(times[i].module, "m");
    portable += times[i].portable;
  }
  assert_int_equal(portable, 1);
  ait_support_note notes[16];
  ait_support support = {.note_capacity = 16, .notes = notes};
  check_ok(k.backend->supports(&r->region, &support), "supports");
  assert_true(support.supported);
  assert_int_equal(support.note_count, 1);
  assert_string_equal(notes[0].code, "op-not-in-native");
  runner_deinit(&k);
  rb_release(inputs, r->region.input_count);
  rb_deinit(r);
  free(r);
}

static void test_rotary_is_one_step(void **state) {
  AIT_UNUSED(state);
  region_builder *r = malloc(sizeof *r);
  rb_init(r);
  build_gated(r);
  ait_value inputs[RB_MAX];
  rb_inputs(r, (const int64_t[]){2, 3}, 4, inputs);
  runner k = {.allocator = ait_allocator_default()};
  check_ok(whole_life(r, &k, "native", inputs), "run");
  ait_step_time times[64];
  uint32_t count = k.backend->profile(k.instance, times, 64), found = 0, products = 0, elementwise = 0;
  for (uint32_t i = 0; i < count; ++i) {
    found += strcmp(times[i].kernel, "rotary embedding") == 0;
    products += strcmp(times[i].kernel, "linear") == 0;
    elementwise += strcmp(times[i].kernel, "elementwise") == 0;
  }
  assert_int_equal(found, 3);
  assert_int_equal(products, 3);    /* activation and gate inside */
  assert_int_equal(elementwise, 4); /* relu, sigmoid behind gates; neg and the sum of what is no rotary embedding */
  runner_deinit(&k);
  rb_release(inputs, r->region.input_count);
  rb_deinit(r);
  free(r);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_against_reference),   cmocka_unit_test(test_strided_inputs_and_aliased_outputs),
      cmocka_unit_test(test_failing_allocator),   cmocka_unit_test(test_steady_state_allocates_nothing),
      cmocka_unit_test(test_hostile_blobs),       cmocka_unit_test(test_index_out_of_range_is_an_error),
      cmocka_unit_test(test_profile_names_steps), cmocka_unit_test(test_rotary_is_one_step),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
