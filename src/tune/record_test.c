/* The record: what was put is there for good, whoever else writes and whenever the writer dies. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tune/record.h"
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { VALUE_SIZE = 4000 };
static char folder[64], path[128];

static int make_folder(void **state) {
  AIT_UNUSED(state);
  strcpy(folder, "/tmp/ait-record-XXXXXX");
  if (!mkdtemp(folder)) return -1;
  snprintf(path, sizeof path, "%s/deep/er/record.db", folder);
  return 0;
}
static int remove_folder(void **state) {
  AIT_UNUSED(state);
  char command[128];
  snprintf(command, sizeof command, "rm -rf '%s'", folder);
  return system(command);
}

static void ok(ait_status status) {
  if (status != AIT_OK) fail_msg("%s", ait_status_message(status));
}

static void fill(unsigned char value[VALUE_SIZE], int n) { memset(value, 'a' + n % 26, VALUE_SIZE); }

static void put(ait_record *r, int writer, int n) {
  unsigned char value[VALUE_SIZE];
  char key[64];
  snprintf(key, sizeof key, "%d-%d", writer, n);
  fill(value, n);
  ok(ait_record_put(r, key, "a candidate", value, sizeof value));
}

/* Whole, or not there. */
static bool get(ait_record *r, int writer, int n) {
  unsigned char value[VALUE_SIZE], want[VALUE_SIZE];
  char key[64];
  bool found;
  snprintf(key, sizeof key, "%d-%d", writer, n);
  ok(ait_record_get(r, key, value, sizeof value, &found));
  fill(want, n);
  if (found) assert_memory_equal(value, want, VALUE_SIZE);
  return found;
}

static void what_was_put_is_found(void **state) {
  AIT_UNUSED(state);
  ait_record *r;
  bool found = true;
  int number = 5, out = 0;
  char small = 0;
  ok(ait_record_open(path, &r));
  ok(ait_record_get(r, "key", &out, sizeof out, &found));
  assert_false(found);
  ok(ait_record_put(r, "key", "label", &number, sizeof number));
  number = 6;
  ok(ait_record_put(r, "key", "it's another", &number, sizeof number)); /* replaces */
  ait_record_close(r);
  ok(ait_record_open(path, &r));
  ok(ait_record_get(r, "key", &out, sizeof out, &found));
  assert_true(found && out == 6);
  ok(ait_record_get(r, "key", &small, sizeof small, &found)); /* another structure */
  assert_false(found);
  ait_record_close(r);
  ait_record_close(NULL);
}

static void two_processes_share_it(void **state) {
  AIT_UNUSED(state);
  pid_t children[2];
  for (int c = 0; c < 2; ++c) {
    children[c] = fork();
    if (children[c]) continue;
    ait_record *r;
    if (ait_record_open(path, &r)) _exit(1);
    for (int n = 0; n < 100; ++n) put(r, c, n);
    ait_record_close(r);
    _exit(0);
  }
  for (int c = 0; c < 2; ++c) {
    int code;
    assert_int_equal(waitpid(children[c], &code, 0), children[c]);
    assert_int_equal(code, 0);
  }
  ait_record *r;
  ok(ait_record_open(path, &r));
  for (int c = 0; c < 2; ++c)
    for (int n = 0; n < 100; ++n) assert_true(get(r, c, n));
  ait_record_close(r);
}

static void a_killed_writer_loses_at_most_one(void **state) {
  AIT_UNUSED(state);
  for (int round = 0; round < 6; ++round) {
    int ends[2], done = -1;
    assert_int_equal(pipe(ends), 0);
    pid_t pid = fork();
    if (pid == 0) {
      ait_record *r;
      if (ait_record_open(path, &r)) _exit(1);
      for (int n = 0;; ++n) {
        put(r, round, n);
        if (write(ends[1], &n, sizeof n) != sizeof n) _exit(1); /* said to be there */
      }
    }
    close(ends[1]);
    for (int k = 0; k <= 7 * round; ++k) assert_int_equal(read(ends[0], &done, sizeof done), sizeof done);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    for (int n; read(ends[0], &n, sizeof n) == sizeof n;) done = n;
    close(ends[0]);
    ait_record *r;
    ok(ait_record_open(path, &r));
    for (int n = 0; n <= done; ++n) assert_true(get(r, round, n));
    assert_false(get(r, round, done + 2));
    put(r, round, 1000); /* and it can be written */
    ait_record_close(r);
  }
}

static void other_versions_are_refused(void **state) {
  AIT_UNUSED(state);
  ait_record *r;
  sqlite3 *db;
  ok(ait_record_open(path, &r));
  ait_record_close(r);
  assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
  assert_int_equal(sqlite3_exec(db, "UPDATE version SET number = 999", NULL, NULL, NULL), SQLITE_OK);
  sqlite3_close(db);
  ait_status status = ait_record_open(path, &r);
  assert_int_equal(ait_status_code(status), AIT_CODE_INCOMPATIBLE);
  assert_non_null(strstr(ait_status_message(status), "999"));
  assert_non_null(strstr(ait_status_message(status), path));
  assert_non_null(ait_status_hint(status));
  assert_null(r);
  ait_status_free(status);
}

static void check_unusable(const char *file) {
  ait_record *r;
  ait_status status = ait_record_open(file, &r);
  assert_int_equal(ait_status_code(status), AIT_CODE_IO);
  assert_non_null(strstr(ait_status_message(status), file));
  assert_null(r);
  ait_status_free(status);
}

static void unusable_places(void **state) {
  AIT_UNUSED(state);
  char file[160];
  snprintf(file, sizeof file, "%s/text", folder);
  FILE *f = fopen(file, "w");
  for (int i = 0; i < 5000; ++i) fputs("no database ", f);
  fclose(f);
  check_unusable(file);
  snprintf(file, sizeof file, "%s/text/record.db", folder); /* the folder is a file */
  check_unusable(file);
  snprintf(file, sizeof file, "%s/deep", folder); /* it is a folder */
  mkdir(file, 0777);
  check_unusable(file);
  if (geteuid() == 0) return; /* root may write everywhere */
  snprintf(file, sizeof file, "%s/closed", folder);
  mkdir(file, 0555);
  snprintf(file, sizeof file, "%s/closed/record.db", folder);
  check_unusable(file);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(what_was_put_is_found, make_folder, remove_folder),
      cmocka_unit_test_setup_teardown(two_processes_share_it, make_folder, remove_folder),
      cmocka_unit_test_setup_teardown(a_killed_writer_loses_at_most_one, make_folder, remove_folder),
      cmocka_unit_test_setup_teardown(other_versions_are_refused, make_folder, remove_folder),
      cmocka_unit_test_setup_teardown(unusable_places, make_folder, remove_folder),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
