/* The watch: what it reads is possible, and each kind of trouble has its sentence. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tune/watch.h"

#include <math.h>
#include <sys/wait.h>
#include <unistd.h>

static void burn(double seconds) {
  for (double end = ait_clock_seconds() + seconds; ait_clock_seconds() < end;) {}
}

static void looks_are_possible(void **state) {
  AIT_UNUSED(state);
  ait_watch w;
  ait_watch_start(&w);
  pid_t child = fork(); /* our own child is not somebody else */
  if (child == 0) {
    burn(0.2);
    _exit(0);
  }
  assert_int_equal(waitpid(child, NULL, 0), child);
  ait_watch_look(&w);
  ait_watch_finish(&w);
  const ait_watch_result *r = &w.result;
  assert_true(ait_watch_plausible(r));
  assert_true(r->seconds >= 0.2 && r->seconds < 60);
  assert_true(r->loop_fastest > 1e-6 && r->loop_fastest <= r->loop_first && r->loop_fastest <= r->loop_last);
  assert_true(r->loop_slowest >= r->loop_first && r->loop_slowest >= r->loop_last);
  assert_true(r->steal_share == -1 || (r->steal_share >= 0 && r->steal_share <= 1));
  assert_true(r->throttled >= -1 && r->others >= -1 && r->involuntary >= 0);
}

/* Somebody else's work is seen: a grandchild that is nobody's child when it works. */
static void others_are_seen(void **state) {
  AIT_UNUSED(state);
  ait_watch w;
  ait_watch_start(&w);
  pid_t child = fork();
  if (child == 0) {
    if (fork() == 0) burn(1);
    _exit(0);
  }
  waitpid(child, NULL, 0);
  usleep(600000);
  ait_watch_finish(&w);
  if (w.result.others < 0) skip(); /* a part of a machine: whose work it is cannot be told */
  assert_true(w.result.others > 0.2);
  char text[192];
  ait_watch_warning(&w.result, AIT_WATCH_OTHERS, text, sizeof text);
  assert_non_null(strstr(text, "other processes kept"));
}

static void each_trouble_has_its_sentence(void **state) {
  AIT_UNUSED(state);
  static const ait_watch_result fine = {.seconds = 10,
                                        .loop_fastest = 1e-4,
                                        .loop_first = 1e-4,
                                        .loop_last = 1e-4,
                                        .loop_slowest = 1.02e-4,
                                        .hertz_first = 3e9,
                                        .hertz_last = 2.95e9,
                                        .governor = "performance"};
  static const char *const words[AIT_WATCH_KINDS] = {"became up to 20 % slower", "took 10 % of",   "stopped the process for 2 s of 10 s",
                                                     "kept 1.5 processors",      "3 times (heat)", "fell by 33 %"};
  for (int bad = -1; bad < AIT_WATCH_KINDS; ++bad) {
    ait_watch_result r = fine;
    if (bad == AIT_WATCH_SLOWER) r.loop_slowest = 1.2e-4;
    if (bad == AIT_WATCH_STEAL) r.steal_share = 0.1;
    if (bad == AIT_WATCH_QUOTA) r.throttled = 2;
    if (bad == AIT_WATCH_OTHERS) r.others = 1.5;
    if (bad == AIT_WATCH_THERMAL) r.thermal_events = 3;
    if (bad == AIT_WATCH_FREQUENCY) r.hertz_last = 2e9;
    for (int k = 0; k < AIT_WATCH_KINDS; ++k) {
      char text[192];
      ait_watch_warning(&r, (ait_watch_kind)k, text, sizeof text);
      if (k != bad) assert_string_equal(text, "");
      else assert_non_null(strstr(text, words[k]));
    }
  }
  ait_watch_result odd = fine;
  odd.steal_share = NAN;
  assert_false(ait_watch_plausible(&odd));
  odd = fine;
  memset(odd.governor, 'x', sizeof odd.governor);
  assert_false(ait_watch_plausible(&odd));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(looks_are_possible),
      cmocka_unit_test(others_are_seen),
      cmocka_unit_test(each_trouble_has_its_sentence),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
