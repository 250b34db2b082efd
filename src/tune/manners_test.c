/* Each change of the process is seen, by its name, and is none when it is taken back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tune/manners.h"
#include <locale.h>
#include <sys/stat.h>
#include <unistd.h>

static void on_signal(int number) { AIT_UNUSED(number); }

enum { FOLDER, LOCALE, MASK, HANDLER, ROUNDING, CHANGES };
static const char *const names[CHANGES] = {"working folder", "locale", "mask of file modes", "handler of signal 15",
                                           "direction of rounding"};

static void change(int what, bool back, const ait_manners *before) {
  switch (what) {
    case FOLDER: assert_int_equal(chdir(back ? before->folder : "/"), 0); break;
    case LOCALE: assert_non_null(setlocale(LC_ALL, back ? before->locale : "C.UTF-8")); break;
    case MASK: umask(back ? before->mask : (before->mask ^ 077)); break;
    case HANDLER: signal(SIGTERM, back ? SIG_DFL : on_signal); break;
    default: fesetround(back ? FE_TONEAREST : FE_DOWNWARD); break;
  }
}

static void changes_are_named(void **state) {
  AIT_UNUSED(state);
  ait_manners before;
  if (chdir("/tmp")) skip();
  ait_manners_look(&before);
  for (int i = 0; i < CHANGES; ++i) {
    assert_true(ait_manners_check(&before) == AIT_OK);
    change(i, false, &before);
    ait_status status = ait_manners_check(&before);
    change(i, true, &before);
    assert_int_equal(ait_status_code(status), AIT_CODE_MISMATCH);
    if (!strstr(ait_status_message(status), names[i])) fail_msg("%s, want %s", ait_status_message(status), names[i]);
    ait_status_free(status);
  }
  assert_true(ait_manners_check(&before) == AIT_OK);
}

static void denormal_numbers_count(void **state) {
  AIT_UNUSED(state);
#if defined(__x86_64__)
  ait_manners before;
  ait_manners_look(&before);
  unsigned mode = __builtin_ia32_stmxcsr();
  for (unsigned bit = 0x40; bit <= 0x8000; bit <<= 9) { /* denormals are zero; flush to zero */
    __builtin_ia32_ldmxcsr(mode | bit);
    ait_status status = ait_manners_check(&before);
    __builtin_ia32_ldmxcsr(mode);
    assert_non_null(strstr(ait_status_message(status), "denormal"));
    ait_status_free(status);
  }
  __builtin_ia32_ldmxcsr(mode | 0x3f); /* exceptions that happened are no change */
  assert_true(ait_manners_check(&before) == AIT_OK);
#else
  skip();
#endif
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(changes_are_named), cmocka_unit_test(denormal_numbers_count)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
