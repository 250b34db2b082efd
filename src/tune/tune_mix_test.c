/* The search for mixed plans measures what it does not know yet, and nothing else: parts that are alike once, parts of another model never.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "backends/reference/reference.h"
#include "passes/testing.h"
#include "tune/part_key.h"
#include "tune/regions.h"
#include "tune/tune.h"

#include <unistd.h>

/* ---- what makes parts alike ------------------------------------------------------------------------------------------------------*/
#define HEAD                                                                                                                            \
  "graph \"m\" core\nsymbol s0 [1, 64] hint 4 backed\nmodule \"a\" \"A\" calls 1\nmodule \"b\" \"B\" calls 1\n"                         \
  "input %x: float32[s0, 8] user 0 \"x\"\ninput %w: float32[8, 8] parameter -1 \"one\"\ninput %v: float32[8, 8] parameter -1 \"two\"\n" \
  "input %u: float32[8, 8] buffer -1 \"three\"\n"
#define LINEAR(out, in, weight, module) "%" out ": float32[s0, 8] = linear(%" in ", %" weight ", none) module \"" module "\"\n"

/* Do the two halves of this graph count as alike when the symbol is `size`? */
static bool alike(const char *nodes, uint32_t cut, int64_t size, int64_t other_size) {
  char text[2048];
  snprintf(text, sizeof text, "%s%s", HEAD, nodes);
  ait_graph *g = pt_parse(text);
  ait_region *r;
  ait_parts parts;
  const int64_t *sets[] = {&size}, *other[] = {&other_size};
  pt_ok(ait_graph_region(g, ait_allocator_default(), &r), "region");
  pt_ok(ait_parts_create(ait_allocator_default(), r, &cut, 1, &parts), "parts");
  bool same = ait_part_hash(&parts.items[0].region, sets, 1) == ait_part_hash(&parts.items[1].region, other, 1);
  ait_parts_deinit(&parts);
  ait_graph_region_destroy(ait_allocator_default(), r);
  ait_graph_destroy(g);
  return same;
}

static void alike_is_alike_but_for_weights(void **state) {
  AIT_UNUSED(state);
  const char *out = "output user 0 \"q\" = %q\n";
  static const struct {
    const char *first, *second;
    bool same;
  } pairs[] = {
      {LINEAR("p", "x", "w", "a"), LINEAR("q", "p", "v", "b"), true},  /* other names, another weight, another module */
      {LINEAR("p", "x", "w", "a"), LINEAR("q", "p", "u", "b"), false}, /* a buffer may change, a parameter does not */
      {"%p: float32[s0, 8] = tanh(%x) module \"a\"\n", "%q: float32[s0, 8] = sin(%p) module \"b\"\n", false},
      {"%p: float32[s0, 8] = mul(%x, %x) module \"a\"\n", "%q: float32[s0, 8] = mul(%p, %x) module \"b\"\n", false}, /* other flow */
      {"%p: float32[s0, 8] = leaky_relu(%x, 0.5) module \"a\"\n", "%q: float32[s0, 8] = leaky_relu(%p, 0.25) module \"b\"\n", false},
  };
  for (size_t i = 0; i < AIT_COUNT(pairs); ++i) {
    char nodes[1024];
    snprintf(nodes, sizeof nodes, "%s%s%s", pairs[i].first, pairs[i].second, out);
    if (alike(nodes, 1, 4, 4) != pairs[i].same) fail_msg("pair %zu", i);
    assert_false(alike(nodes, 1, 4, 5)); /* other sizes are other work */
  }
}

/* ---- what is measured ------------------------------------------------------------------------------------------------------------*/
static const ait_knob no_knobs[] = {{0}};
static ait_backend rival;
static char folder[512], model[544], record[544], artifact[544];

static int setup(void **state) {
  AIT_UNUSED(state);
  rival = ait_backend_reference;
  rival.name = "t-rival";
  rival.knobs = no_knobs;
  pt_ok(ait_backend_add(&rival), "add");
  strcpy(folder, AIT_BINARY_DIR "/tests/ait-mix-XXXXXX");
  if (!mkdtemp(folder)) return -1;
  snprintf(model, sizeof model, "%s/m.txt", folder);
  snprintf(record, sizeof record, "%s/r.db", folder);
  snprintf(artifact, sizeof artifact, "%s/m.ait", folder);
  return 0;
}
static int cleanup(void **state) {
  AIT_UNUSED(state);
  char command[544];
  snprintf(command, sizeof command, "rm -rf '%s'", folder);
  return system(command);
}

/* Six layers of two operators in modules of their own; layer `other` has other ones. */
static void write_model(int other) {
  FILE *f = fopen(model, "w");
  assert_non_null(f);
  fprintf(f, "graph \"m\" raw\nsymbol s0 [2, 64] hint 4 backed\nmodule \"layers\" \"L\" calls 1\n");
  for (int i = 0; i < 6; ++i) fprintf(f, "module \"layers.%d\" \"Layer\" calls 1\n", i);
  fprintf(f, "input %%x: float32[s0, 64] user 0 \"x\"\n");
  for (int i = 0; i < 6; ++i) {
    char in[8] = "x";
    if (i) snprintf(in, sizeof in, "y%d", i - 1);
    fprintf(f, "%%t%d: float32[s0, 64] = aten.%s(%%%s) module \"layers.%d\"\n", i, i == other ? "cos" : "sin", in, i);
    fprintf(f, "%%y%d: float32[s0, 64] = aten.tanh(%%t%d) module \"layers.%d\"\n", i, i, i);
  }
  fprintf(f, "output user 0 \"y\" = %%y5\n");
  assert_int_equal(fclose(f), 0);
}

typedef struct counts {
  struct {
    char name[64]; /* with options */
    unsigned parts, measured, recalled;
  } engines[4];
  unsigned engine_count, trials, kin;
} counts;

static void on_progress(void *ctx, const ait_tune_progress *p) {
  counts *c = ctx;
  if (!p->line) return;
  c->kin += strstr(p->line, "most of the model was tuned here before") != NULL;
  if (strstr(p->line, " ms, error ") && !strstr(p->line, "(from the record)")) ++c->trials;
  if (c->engine_count == AIT_COUNT(c->engines) ||
      sscanf(p->line, "parts on %63[^:]: %u of the model, %u measured, %u from the record", c->engines[c->engine_count].name,
             &c->engines[c->engine_count].parts, &c->engines[c->engine_count].measured, &c->engines[c->engine_count].recalled) != 4)
    return;
  ++c->engine_count;
}

/* On each of the two engines; native's options may be others than before, by chance of what was measured: then nothing of it is known. */
static void expect(const counts *c, const counts *before, unsigned measured, unsigned recalled) {
  assert_int_equal(c->engine_count, 2);
  for (unsigned e = 0; e < 2; ++e) {
    assert_int_equal(c->engines[e].parts, 6);
    bool known = strcmp(c->engines[e].name, before->engines[e].name) == 0;
    assert_int_equal(c->engines[e].measured, known ? measured : measured + recalled);
    assert_int_equal(c->engines[e].recalled, known ? recalled : 0);
  }
  assert_string_equal(c->engines[1].name, "t-rival");
}

static char *tune(counts *c, bool from_record) {
  ait_tune_options options;
  char *report;
  float numbers[4 * 64];
  for (size_t i = 0; i < AIT_COUNT(numbers); ++i) numbers[i] = (float)i / 64;
  ait_value x = {.kind = AIT_VALUE_TENSOR, .as.tensor = ait_tensor_borrow(numbers, AIT_F32, 2, (const int64_t[]){4, 64})};
  ait_sample sample = {&x, 1};
  *c = (counts){0};
  ait_tune_options_init(&options);
  options.backends = (const char *const[]){"native", "t-rival", NULL};
  options.threads = 1;
  options.budget_seconds = 2;
  options.record_path = record;
  options.regions = "modules";
  options.from_record = from_record;
  options.progress = on_progress;
  options.progress_ctx = c;
  pt_ok(ait_tune(model, artifact, &sample, 1, &options, &report), "tune");
  return report;
}

static void only_what_is_new_is_measured(void **state) {
  AIT_UNUSED(state);
  counts c, one;
  write_model(-1);
  char *first = tune(&one, false);
  expect(&one, &one, 1, 0); /* six layers are alike */
  assert_true(one.trials > 0 && one.kin == 0);

  double start = ait_clock_seconds();
  char *second = tune(&c, false); /* nothing has changed */
  assert_true(ait_clock_seconds() - start < 5);
  expect(&c, &one, 0, 1);
  assert_int_equal(c.trials, 0);
  assert_string_equal(first, second);
  char *third = tune(&c, true);
  assert_string_equal(first, third);

  write_model(3);
  char *changed = tune(&c, false);
  expect(&c, &one, 1, 1);                                            /* the layer that changed; the others are known */
  assert_true(c.trials > 0 && c.trials <= one.trials && c.kin == 1); /* five layers of six are those of another model */
  one = c;
  char *again = tune(&c, false);
  expect(&c, &one, 0, 2);
  assert_true(c.trials == 0 && c.kin == 0);
  assert_string_equal(changed, again);
  char *texts[] = {first, second, third, changed, again};
  for (size_t i = 0; i < AIT_COUNT(texts); ++i) ait_string_free(texts[i]);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(alike_is_alike_but_for_weights), cmocka_unit_test(only_what_is_new_is_measured)};
  return cmocka_run_group_tests(tests, setup, cleanup);
}
