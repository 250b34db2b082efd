/* The record: what was put is there for good, whoever else writes and whenever the writer dies. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tune/record.h"
#include "tune/tune.h"
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
  ok(ait_record_put(r, key, "a candidate", "build", value, sizeof value));
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
  ok(ait_record_put(r, "key", "label", "build", &number, sizeof number));
  number = 6;
  ok(ait_record_put(r, "key", "it's another", "build", &number, sizeof number)); /* replaces */
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

/* ---- sharing -----------------------------------------------------------------------------------------------------------------------*/
static void run_sql(const char *file, const char *sql) {
  sqlite3 *db;
  assert_int_equal(sqlite3_open(file, &db), SQLITE_OK);
  sqlite3_busy_timeout(db, 10000);
  if (sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK) fail_msg("%s: %s", sql, sqlite3_errmsg(db));
  sqlite3_close(db);
}

static int64_t ask(const char *file, const char *sql) {
  sqlite3 *db;
  sqlite3_stmt *s;
  assert_int_equal(sqlite3_open(file, &db), SQLITE_OK);
  if (sqlite3_prepare_v2(db, sql, -1, &s, NULL) != SQLITE_OK) fail_msg("%s: %s", sql, sqlite3_errmsg(db));
  int64_t value = sqlite3_step(s) == SQLITE_ROW ? sqlite3_column_int64(s, 0) : -1;
  sqlite3_finalize(s);
  sqlite3_close(db);
  return value;
}

/* What version 1 wrote. */
static void write_version_1(const char *file) {
  char command[256];
  snprintf(command, sizeof command, "mkdir -p \"$(dirname '%s')\"", file);
  assert_int_equal(system(command), 0);
  run_sql(file, "PRAGMA journal_mode=WAL;"
                "CREATE TABLE trial (key TEXT PRIMARY KEY, label TEXT NOT NULL, value BLOB NOT NULL);"
                "CREATE TABLE version (number INTEGER NOT NULL);"
                "INSERT INTO version VALUES (1);"
                "INSERT INTO trial VALUES ('old', 'by version 1', x'05000000'), ('both', 'by version 1', x'06000000');");
}

static void earlier_versions_are_brought_up_to_date(void **state) {
  AIT_UNUSED(state);
  ait_record *r;
  int value = 0;
  bool found;
  write_version_1(path);
  ok(ait_record_open(path, &r));
  ok(ait_record_get(r, "old", &value, sizeof value, &found));
  assert_true(found && value == 5);
  ok(ait_record_put(r, "new", "label", "this build", &value, sizeof value));
  ait_record_close(r);
  assert_int_equal(ask(path, "SELECT number FROM version"), AIT_RECORD_VERSION);
  assert_int_equal(ask(path, "SELECT made FROM trial WHERE key = 'old'"), 0);
  assert_true(ask(path, "SELECT made FROM trial WHERE key = 'new'") > 1600000000);
}

/* Several tuners that start at once on an old record: one brings it up to date, all go on. */
static void many_bring_it_up_to_date(void **state) {
  AIT_UNUSED(state);
  pid_t children[4];
  write_version_1(path);
  for (int c = 0; c < 4; ++c) {
    children[c] = fork();
    if (children[c]) continue;
    ait_record *r;
    if (ait_record_open(path, &r)) _exit(1);
    for (int n = 0; n < 20; ++n) put(r, c, n);
    ait_record_close(r);
    _exit(0);
  }
  for (int c = 0; c < 4; ++c) {
    int code;
    assert_int_equal(waitpid(children[c], &code, 0), children[c]);
    assert_int_equal(code, 0);
  }
  assert_int_equal(ask(path, "SELECT count(*) FROM trial"), 82);
}

static void exported_and_merged(void **state) {
  AIT_UNUSED(state);
  char copy[160], other[160], *json;
  ait_record *r;
  snprintf(copy, sizeof copy, "%s/copy.db", folder);
  snprintf(other, sizeof other, "%s/other.db", folder);
  ok(ait_record_open(path, &r));
  for (int n = 0; n < 30; ++n) put(r, 1, n);
  ok(ait_record_export(path, copy, &json)); /* while it is open elsewhere */
  ait_record_close(r);
  assert_non_null(strstr(json, "\"rows\": 30"));
  ait_string_free(json);
  assert_int_equal(ask(copy, "SELECT count(*) FROM trial"), 30);
  ok(ait_record_export(path, copy, NULL)); /* in the place of the first */
  /* into another one, of version 1, which knows a row of its own */
  write_version_1(other);
  run_sql(copy,
          "INSERT INTO trial VALUES ('both', 'newer', x'07000000', 1700000000, 'b'), ('future', 'wrong clock', x'00', 99999999999, 'b')");
  ok(ait_record_merge(other, (const char *const[]){copy}, 1, &json));
  assert_non_null(strstr(json, "\"rows_read\": 32, \"added\": 31, \"replaced\": 1, \"rows\": 33"));
  ait_string_free(json);
  assert_int_equal(ask(other, "SELECT made FROM trial WHERE key = 'both'"), 1700000000);
  assert_true(ask(other, "SELECT made < 5000000000 FROM trial WHERE key = 'future'"));
  ok(ait_record_merge(other, (const char *const[]){copy}, 1, &json)); /* again: nothing new */
  assert_non_null(strstr(json, "\"added\": 0, \"replaced\": 0"));
  ait_string_free(json);
  /* the older row does not win; a version 1 file is read as it is */
  char old[160];
  snprintf(old, sizeof old, "%s/old.db", folder);
  write_version_1(old);
  ok(ait_record_merge(other, (const char *const[]){old}, 1, &json));
  assert_non_null(strstr(json, "\"rows_read\": 2, \"added\": 0, \"replaced\": 0"));
  ait_string_free(json);
  assert_int_equal(ask(old, "SELECT number FROM version"), 1);
  ait_status status = ait_record_merge(path, (const char *const[]){path}, 1, NULL);
  assert_int_equal(ait_status_code(status), AIT_CODE_INVALID_ARGUMENT);
  ait_status_free(status);
  status = ait_record_export(path, path, NULL);
  assert_int_equal(ait_status_code(status), AIT_CODE_INVALID_ARGUMENT);
  ait_status_free(status);
}

/* A tuner at work keeps its rows while another process merges and prunes. */
static void merged_while_tuners_write(void **state) {
  AIT_UNUSED(state);
  char other[160];
  snprintf(other, sizeof other, "%s/other.db", folder);
  ait_record *r;
  ok(ait_record_open(other, &r));
  for (int n = 0; n < 50; ++n) put(r, 7, n);
  ait_record_close(r);
  ok(ait_record_open(path, &r));
  ait_record_close(r);
  pid_t child = fork();
  if (!child) {
    if (ait_record_open(path, &r)) _exit(1);
    for (int n = 0; n < 200; ++n) put(r, 1, n);
    ait_record_close(r);
    _exit(0);
  }
  for (int k = 0; k < 5; ++k) {
    ok(ait_record_merge(path, (const char *const[]){other}, 1, NULL));
    ok(ait_record_prune(path, &(ait_record_prune_options){.older_seconds = 3600}, NULL));
  }
  int code;
  assert_int_equal(waitpid(child, &code, 0), child);
  assert_int_equal(code, 0);
  ok(ait_record_open(path, &r));
  for (int n = 0; n < 200; ++n) assert_true(get(r, 1, n));
  for (int n = 0; n < 50; ++n) assert_true(get(r, 7, n));
  ait_record_close(r);
}

static void pruned(void **state) {
  AIT_UNUSED(state);
  ait_record *r;
  int value = 1;
  char *json;
  write_version_1(path);
  ok(ait_record_open(path, &r));
  ok(ait_record_put(r, "mine", "label", ait_build_id(), &value, sizeof value));
  ok(ait_record_put(r, "theirs", "label", "another", &value, sizeof value));
  ait_record_close(r);
  ok(ait_record_prune(path, &(ait_record_prune_options){.older_seconds = 86400}, &json));
  assert_non_null(strstr(json, "\"removed\": 2, \"rows\": 2"));
  ait_string_free(json);
  ok(ait_record_prune(path, &(ait_record_prune_options){.other_builds = true}, &json));
  assert_non_null(strstr(json, "\"removed\": 1, \"rows\": 1"));
  ait_string_free(json);
  assert_int_equal(ask(path, "SELECT count(*) FROM trial WHERE key = 'mine'"), 1);
  char nothing[160];
  snprintf(nothing, sizeof nothing, "%s/nothing.db", folder);
  ait_status status = ait_record_prune(nothing, &(ait_record_prune_options){.other_builds = true}, NULL);
  assert_int_equal(ait_status_code(status), AIT_CODE_NOT_FOUND);
  ait_status_free(status);
  assert_int_equal(access(nothing, F_OK), -1);
}

/* Files from elsewhere: nothing of a bad one is taken, and none hangs. */
static void hostile_records(void **state) {
  AIT_UNUSED(state);
  static const struct {
    const char *sql;
    ait_code code;
  } cases[] = {
      {"CREATE TABLE other (x)", AIT_CODE_INVALID_ARGUMENT},
      {"CREATE TABLE t (x); CREATE VIEW trial AS SELECT * FROM t; CREATE TABLE version (number)", AIT_CODE_INVALID_ARGUMENT},
      {"CREATE TABLE trial (key, label, value); CREATE TABLE version (number); INSERT INTO version VALUES (999)", AIT_CODE_INCOMPATIBLE},
      {"CREATE TABLE trial (key, label, value); CREATE TABLE version (number); INSERT INTO version VALUES ('x')", AIT_CODE_INCOMPATIBLE},
      {"CREATE TABLE trial (key, label, value); CREATE TABLE version (number)", AIT_CODE_INCOMPATIBLE},
      {"CREATE TABLE trial (key, label); CREATE TABLE version (number); INSERT INTO version VALUES (1)", AIT_CODE_IO},
      {"CREATE TABLE trial (key, label, value); CREATE TABLE version (number); INSERT INTO version VALUES (1);"
       "INSERT INTO trial VALUES ('a', 'good', x'00'), ('b', 'no blob', 5)",
       AIT_CODE_INVALID_ARGUMENT},
      {"CREATE TABLE trial (key, label, value); CREATE TABLE version (number); INSERT INTO version VALUES (1);"
       "INSERT INTO trial VALUES (NULL, 'no key', x'00')",
       AIT_CODE_INVALID_ARGUMENT},
      {"CREATE TABLE trial (key, label, value); CREATE TABLE version (number); INSERT INTO version VALUES (1);"
       "INSERT INTO trial VALUES ('large', '', zeroblob(2000000))",
       AIT_CODE_INVALID_ARGUMENT},
      {"CREATE TABLE trial (key, label, value, made, build); CREATE TABLE version (number); INSERT INTO version VALUES (2);"
       "INSERT INTO trial VALUES ('a', 'no time', x'00', 'now', 'b')",
       AIT_CODE_INVALID_ARGUMENT},
  };
  char file[160];
  ait_status status;
  for (size_t i = 0; i < AIT_COUNT(cases); ++i) {
    snprintf(file, sizeof file, "%s/bad%zu.db", folder, i);
    run_sql(file, cases[i].sql);
    status = ait_record_merge(path, (const char *const[]){file}, 1, NULL);
    if (ait_status_code(status) != cases[i].code) fail_msg("%s: %s", cases[i].sql, ait_status_message(status));
    assert_non_null(strstr(ait_status_message(status), file));
    ait_status_free(status);
  }
  /* bytes that are damaged here and there */
  snprintf(file, sizeof file, "%s/good.db", folder);
  ait_record *r;
  ok(ait_record_open(file, &r));
  for (int n = 0; n < 40; ++n) put(r, 1, n);
  ait_record_close(r);
  char copy[160], *data;
  size_t size;
  snprintf(copy, sizeof copy, "%s/copy.db", folder);
  ok(ait_record_export(file, copy, NULL));
  ok(ait_file_read(ait_allocator_default(), copy, 1 << 24, &data, &size));
  uint64_t random = 1;
  for (int round = 0; round < 200; ++round) {
    char saved[8];
    size_t at[8];
    for (int k = 0; k < 8; ++k) {
      random = random * 6364136223846793005u + 1442695040888963407u;
      at[k] = (size_t)(random >> 33) % (round % 2 ? size : 400);
      saved[k] = data[at[k]];
      data[at[k]] = (char)(random >> 20);
    }
    FILE *f = fopen(copy, "wb");
    assert_int_equal(fwrite(data, 1, size, f), size);
    fclose(f);
    ait_status_free(ait_record_merge(path, (const char *const[]){copy}, 1, NULL));
    for (int k = 8; k-- > 0;) data[at[k]] = saved[k];
  }
  ait_free(ait_allocator_default(), data, size + 1);
  status = ait_record_merge(path, (const char *const[]){"/nothing/there.db"}, 1, NULL);
  assert_int_equal(ait_status_code(status), AIT_CODE_NOT_FOUND);
  ait_status_free(status);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(what_was_put_is_found, make_folder, remove_folder),
      cmocka_unit_test_setup_teardown(two_processes_share_it, make_folder, remove_folder),
      cmocka_unit_test_setup_teardown(a_killed_writer_loses_at_most_one, make_folder, remove_folder),
      cmocka_unit_test_setup_teardown(other_versions_are_refused, make_folder, remove_folder),
      cmocka_unit_test_setup_teardown(unusable_places, make_folder, remove_folder),
      cmocka_unit_test_setup_teardown(earlier_versions_are_brought_up_to_date, make_folder, remove_folder),
      cmocka_unit_test_setup_teardown(many_bring_it_up_to_date, make_folder, remove_folder),
      cmocka_unit_test_setup_teardown(exported_and_merged, make_folder, remove_folder),
      cmocka_unit_test_setup_teardown(merged_while_tuners_write, make_folder, remove_folder),
      cmocka_unit_test_setup_teardown(pruned, make_folder, remove_folder),
      cmocka_unit_test_setup_teardown(hostile_records, make_folder, remove_folder),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
