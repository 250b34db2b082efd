/* Sizes: what is asked for, who wins where, which boxes that makes. */
#include "artifact/toy_models.h"
#include "tune/shapes.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static void test_requests(void **state) {
  AIT_UNUSED(state);
  static const struct {
    const char *texts[4];
    const char *message; /* NULL: taken */
    uint32_t combinations;
  } cases[] = {
      {{NULL}, NULL, 0},
      {{"s0=2"}, NULL, 1},
      {{"s0=2,8,64", "n=0,1"}, NULL, 6},
      {{"x.0=2,8"}, NULL, 2},
      {{"s0=2,8", "x.0=9"}, NULL, 3},
      {{"s0=2,2,2"}, NULL, 1},
      {{"s0"}, "buckets 's0': no '='", 0},
      {{"s0="}, "'' is no list of sizes", 0},
      {{"s0=2,"}, "is no list of sizes", 0},
      {{"s0=2;3"}, "is no list of sizes", 0},
      {{"s0=1"}, "size 1 of 's0' is outside the model's range, which begins at 2 and ends at 64", 0},
      {{"s0=99999999999999999999"}, "is outside the model's range", 0},
      {{"batch=2"}, "the model has no size 'batch'", 0},
      {{"x.1=2"}, "dimension 1 of input 'x' is fixed at 3 by export", 0},
      {{"x.7=2"}, "input 'x' has no dimension 7", 0},
      {{"x.-1=2"}, "input 'x' has no dimension -1", 0},
      {{"y.0=2"}, "dimension 0 of input 'y' is 2*s0", 0},
      {{"s0=2,3,4,5,6,7,8,9", "n=0,1,2"}, "more than 16 combinations", 0},
      {{"s0=2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18"}, "more than 16 sizes of 's0'", 0},
  };
  ait_region r = toy_sizes();
  for (size_t i = 0; i < AIT_COUNT(cases); ++i) {
    ait_shape_requests q;
    ait_status status = ait_shape_requests_parse(&r, cases[i].texts, &q);
    if (!cases[i].message) {
      if (status) fail_msg("%s", ait_status_message(status));
      assert_int_equal(q.combinations, cases[i].combinations);
      continue;
    }
    assert_non_null(status);
    if (!strstr(ait_status_message(status), cases[i].message)) fail_msg("'%s' is not in: %s", cases[i].message, ait_status_message(status));
    ait_status_free(status);
  }
  ait_shape_requests q;
  const char *const both[] = {"s0=2,8", "n=5,6,7", NULL};
  ait_status status = ait_shape_requests_parse(&r, both, &q);
  assert_null(status);
  for (uint32_t i = 0; i < 6; ++i) {
    int64_t symbols[3] = {-1, -1, -1};
    ait_shape_requests_at(&q, i, symbols);
    assert_int_equal(symbols[0], i % 2 ? 8 : 2);
    assert_int_equal(symbols[1], 5 + i / 2);
    assert_int_equal(symbols[2], -1);
  }
}

static ait_shapes *new_shapes(uint32_t axes) {
  static ait_region r;
  r = toy_sizes();
  ait_shapes *s = calloc(1, sizeof *s);
  assert_non_null(s);
  s->region = &r;
  s->axis_count = axes;
  s->axes[1] = 1;
  s->member_count = 3;
  s->measured = true;
  return s;
}

static void check_boxes(const ait_shapes *s, const char *const *want) {
  for (uint32_t i = 0; i < s->box_count; ++i) {
    char text[128], all[160];
    ait_shapes_box_text(s, &s->boxes[i], text, sizeof text);
    snprintf(all, sizeof all, "%s: %u", text, s->boxes[i].winner);
    assert_non_null(want[i]);
    assert_string_equal(all, want[i]);
  }
  assert_null(want[s->box_count]);
}

static void test_boxes(void **state) {
  AIT_UNUSED(state);
  static const struct {
    uint32_t axes, points;
    struct {
      int64_t size[2];
      uint32_t winner;
    } at[8];
    const char *want[8];
  } cases[] = {
      {1, 0, {{{0}, 0}}, {NULL}},
      {1, 1, {{{8}, 0}}, {"s0 8: 0"}},
      {1, 3, {{{2}, 1}, {{8}, 1}, {{64}, 0}}, {"s0 2 to 22: 1", "s0 23 to 64: 0"}}, /* cut at the root of 8 * 64 */
      {1, 3, {{{2}, 1}, {{8}, 0}, {{64}, 1}}, {"s0 2 to 4: 1", "s0 5 to 22: 0", "s0 23 to 64: 1"}},
      {1, 3, {{{2}, 0}, {{8}, 0}, {{64}, 0}}, {"s0 2 to 64: 0"}},
      {1, 3, {{{2}, 0}, {{3}, 1}, {{4}, 2}}, {"s0 2: 0", "s0 3: 1", "s0 4: 2"}},
      {2, 4, {{{2, 1}, 0}, {{2, 100}, 1}, {{8, 1}, 0}, {{8, 100}, 1}}, {"s0 2 to 8, n 1 to 10: 0", "s0 2 to 8, n 11 to 100: 1"}},
      {2, 4, {{{2, 1}, 1}, {{2, 100}, 1}, {{8, 1}, 1}, {{8, 100}, 1}}, {"s0 2 to 8, n 1 to 100: 1"}},
      {2, 2, {{{2, 0}, 0}, {{8, 100}, 0}}, {"s0 2 to 4, n 0: 0", "s0 5 to 8, n 1 to 100: 0"}}, /* between them nothing was seen */
      {2, 3, {{{2, 1}, 0}, {{2, 100}, 1}, {{8, 1}, 0}}, {"s0 2 to 8, n 1 to 10: 0", "s0 2 to 4, n 11 to 100: 1"}},
  };
  for (size_t i = 0; i < AIT_COUNT(cases); ++i) {
    ait_shapes *s = new_shapes(cases[i].axes);
    for (uint32_t p = 0; p < cases[i].points; ++p) {
      memcpy(s->points[p].size, cases[i].at[p].size, sizeof cases[i].at[p].size);
      s->points[p].winner = cases[i].at[p].winner;
    }
    s->point_count = cases[i].points;
    ait_shapes_make_boxes(s);
    check_boxes(s, cases[i].want);
    free(s);
  }
}

/* Every point lies in the box of its winner, and no two boxes meet, whatever the points are. */
static void test_random_boxes(void **state) {
  AIT_UNUSED(state);
  srand(3);
  for (int round = 0; round < 2000; ++round) {
    ait_shapes *s = new_shapes(2);
    for (int i = 0; i < 1 + rand() % 20; ++i) {
      ait_shape_point p = {.size = {2 + rand() % 12, rand() % 9}, .winner = (uint32_t)(rand() % 3)};
      bool there = false;
      for (uint32_t k = 0; k < s->point_count; ++k) there |= memcmp(s->points[k].size, p.size, 2 * sizeof *p.size) == 0;
      if (!there) s->points[s->point_count++] = p;
    }
    ait_shapes_make_boxes(s);
    for (int64_t x = 0; x < 16; ++x) {
      for (int64_t y = 0; y < 10; ++y) {
        uint32_t inside = 0, winner = 0;
        for (uint32_t b = 0; b < s->box_count; ++b) {
          const ait_shape_box *box = &s->boxes[b];
          if (x < box->min[0] || x > box->max[0] || y < box->min[1] || y > box->max[1]) continue;
          ++inside;
          winner = box->winner;
        }
        assert_true(inside <= 1);
        for (uint32_t k = 0; k < s->point_count; ++k) {
          if (s->points[k].size[0] != x || s->points[k].size[1] != y) continue;
          assert_int_equal(inside, 1);
          assert_int_equal(winner, s->points[k].winner);
        }
      }
    }
    free(s);
  }
}

static void set_times(ait_shapes *s, uint32_t point, uint32_t member, double seconds, double noise) {
  for (uint32_t r = 0; r < 20; ++r)
    s->times.times[(point * AIT_SHAPE_MEMBERS + member) * AIT_SHAPE_ROUNDS + r] = seconds * (1 + noise * (r % 2 ? 1 : -1) * (member + 1));
  s->times.rounds[point] = 20;
}

static void test_winners(void **state) {
  AIT_UNUSED(state);
  static const struct {
    double seconds[3], noise, floor;
    uint32_t winner;
  } cases[] = {
      {{1, 2, 3}, 0, 0, 0},       {{2, 1, 3}, 0, 0, 1}, {{1.01, 1, 3}, 0, 0, 0}, /* 1 % is not worth a plan */
      {{1.10, 1, 3}, 0.2, 0, 0},                                                 /* not surely slower */
      {{1.10, 1, 3}, 0, 0.2, 0},                                                 /* equal plans differ more here */
      {{1.50, 1.01, 1}, 0, 0, 2},
  };
  for (size_t i = 0; i < AIT_COUNT(cases); ++i) {
    ait_shapes *s = new_shapes(1);
    s->point_count = 1;
    s->floor = cases[i].floor;
    for (uint32_t k = 0; k < 3; ++k) set_times(s, 0, k, cases[i].seconds[k], cases[i].noise);
    ait_shapes_decide(s);
    if (s->points[0].winner != cases[i].winner) fail_msg("case %zu: %u", i, s->points[0].winner);
    free(s);
  }
  /* A neighbour's winner is kept where it is as good. */
  ait_shapes *s = new_shapes(1);
  s->point_count = 2;
  for (uint32_t k = 0; k < 3; ++k) set_times(s, 0, k, (double[]){3, 1, 2}[k], 0), set_times(s, 1, k, (double[]){3, 1.01, 1}[k], 0);
  ait_shapes_decide(s);
  assert_int_equal(s->points[0].winner, 1);
  assert_int_equal(s->points[1].winner, 1);
  free(s);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_requests), cmocka_unit_test(test_boxes), cmocka_unit_test(test_random_boxes),
                                     cmocka_unit_test(test_winners)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
