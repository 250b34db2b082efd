/* Records that a team shares: out of one, into another, and what nobody needs any more out of the way. */
#include "tune/put_json.h"
#include "tune/record.h"
#include "tune/tune.h"
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* A row is some kilobytes. A file from elsewhere may hold anything: what is larger is no row of ours. */
enum { KEY_LIMIT = 1024, VALUE_LIMIT = 1 << 20, STEP_OPERATIONS = 1 << 20, STEPS_LIMIT = 4096 };

/* ---- reading one from elsewhere ----------------------------------------------------------------------------------------------------*/
typedef struct source {
  ait_record record; /* only looked into */
  int version;
  int steps;
} source;

/* A crafted schema can compute for ever. */
static int count_steps(void *ctx) { return ++((source *)ctx)->steps > STEPS_LIMIT; }

static bool is_record(sqlite3 *db) {
  sqlite3_stmt *s = NULL;
  bool good = sqlite3_prepare_v2(db, "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name IN ('trial', 'version')", -1, &s,
                                 NULL) == SQLITE_OK &&
              sqlite3_step(s) == SQLITE_ROW && sqlite3_column_int(s, 0) == 2;
  sqlite3_finalize(s);
  return good;
}

static ait_status source_open(const char *path, source *out) {
  *out = (source){0};
  if (access(path, F_OK) != 0) return ait_error(AIT_CODE_NOT_FOUND, "cannot open '%s': %s", path, strerror(errno));
  snprintf(out->record.path, sizeof out->record.path, "%s", path);
  if (sqlite3_open_v2(path, &out->record.db, SQLITE_OPEN_READONLY, NULL) != SQLITE_OK) return ait_record_fault(&out->record, "open");
  sqlite3_busy_timeout(out->record.db, 10000);
  sqlite3_limit(out->record.db, SQLITE_LIMIT_LENGTH, 4 * VALUE_LIMIT);
  sqlite3_progress_handler(out->record.db, STEP_OPERATIONS, count_steps, out);
  sqlite3_exec(out->record.db, "PRAGMA trusted_schema=OFF; PRAGMA cell_size_check=ON;", NULL, NULL, NULL);
  if (!is_record(out->record.db)) return ait_error(AIT_CODE_INVALID_ARGUMENT, "'%s' is no record of trials", path);
  out->version = ait_record_version(out->record.db);
  if (out->version >= 1 && out->version <= AIT_RECORD_VERSION) return AIT_OK;
  return ait_error_hint(
      ait_error(AIT_CODE_INCOMPATIBLE, "record '%s' has version %d, this ait reads up to %d", path, out->version, AIT_RECORD_VERSION),
      "use a newer ait");
}

static void source_close(source *s) { sqlite3_close(s->record.db); }

static bool text_fits(sqlite3_stmt *s, int column) {
  return sqlite3_column_type(s, column) == SQLITE_TEXT && sqlite3_column_bytes(s, column) <= KEY_LIMIT;
}

static bool row_fits(sqlite3_stmt *s) {
  return text_fits(s, 0) && text_fits(s, 1) && text_fits(s, 4) && sqlite3_column_type(s, 2) == SQLITE_BLOB &&
         sqlite3_column_bytes(s, 2) <= VALUE_LIMIT && sqlite3_column_type(s, 3) == SQLITE_INTEGER;
}

/* ---- copying rows ------------------------------------------------------------------------------------------------------------------*/
typedef struct copied {
  int64_t rows, added, replaced;
} copied;

static int64_t count_rows(sqlite3 *db) {
  sqlite3_stmt *s = NULL;
  int64_t n = -1;
  if (sqlite3_prepare_v2(db, "SELECT count(*) FROM trial", -1, &s, NULL) == SQLITE_OK && sqlite3_step(s) == SQLITE_ROW)
    n = sqlite3_column_int64(s, 0);
  sqlite3_finalize(s);
  return n;
}

static ait_status copy_row(sqlite3_stmt *from, sqlite3_stmt *to, ait_record *into, sqlite3_int64 now) {
  sqlite3_int64 made = sqlite3_column_int64(from, 3);
  sqlite3_reset(to);
  for (int c = 0; c < 5; ++c) sqlite3_bind_value(to, c + 1, sqlite3_column_value(from, c));
  sqlite3_bind_int64(to, 4, made < 0 ? 0 : made > now ? now : made); /* a clock that was wrong does not win for ever */
  return sqlite3_step(to) == SQLITE_DONE ? AIT_OK : ait_record_fault(into, "write");
}

/* What both know: the newer row counts, the one that is here when none is newer. */
static ait_status copy_rows(source *from, ait_record *into, copied *out) {
  static const char insert[] = "INSERT INTO trial (key, label, value, made, build) VALUES (?, ?, ?, ?, ?) ON CONFLICT (key) DO UPDATE SET "
                               "label = excluded.label, value = excluded.value, made = excluded.made, build = excluded.build "
                               "WHERE excluded.made > trial.made";
  const char *select = from->version >= 2 ? "SELECT key, label, value, made, build FROM trial ORDER BY key"
                                          : "SELECT key, label, value, 0, '' FROM trial ORDER BY key";
  sqlite3_stmt *read = NULL, *write = NULL;
  sqlite3_int64 now = (sqlite3_int64)time(NULL);
  int64_t before = count_rows(into->db), changes = sqlite3_total_changes64(into->db), rows = 0;
  ait_status status = AIT_OK;
  int code = SQLITE_DONE;
  if (sqlite3_prepare_v2(from->record.db, select, -1, &read, NULL) != SQLITE_OK) AIT_GOTO(ait_record_fault(&from->record, "read"));
  if (sqlite3_prepare_v2(into->db, insert, -1, &write, NULL) != SQLITE_OK) AIT_GOTO(ait_record_fault(into, "write"));
  for (; (code = sqlite3_step(read)) == SQLITE_ROW; ++rows) {
    if (!row_fits(read)) AIT_GOTO(ait_error(AIT_CODE_INVALID_ARGUMENT, "record '%s' holds what is no trial", from->record.path));
    AIT_GOTO(copy_row(read, write, into, now));
  }
  if (code != SQLITE_DONE) AIT_GOTO(ait_record_fault(&from->record, "read"));
  out->rows += rows;
  out->added += count_rows(into->db) - before;
  out->replaced += sqlite3_total_changes64(into->db) - changes - (count_rows(into->db) - before);
cleanup:
  sqlite3_finalize(write);
  sqlite3_finalize(read);
  return status;
}

/* All of one file or nothing of it. */
static ait_status copy_all(const char *path, ait_record *into, copied *out) {
  source from;
  ait_status status = source_open(path, &from);
  if (!status) status = ait_record_exec(into, "write", "BEGIN IMMEDIATE");
  if (!status) {
    status = copy_rows(&from, into, out);
    if (!status) status = ait_record_exec(into, "write", "COMMIT");
    if (status) ait_status_ignore(ait_record_exec(into, "go back", "ROLLBACK"));
  }
  source_close(&from);
  return status;
}

static ait_status finish_copied(const char *path, const copied *c, int64_t total, char **out) {
  ait_text t;
  bool first = true;
  if (!out) return AIT_OK;
  ait_text_init(&t, ait_allocator_default());
  ait_text_printf(&t, "{");
  ait_put_string(&t, &first, "file", path);
  ait_put_int(&t, &first, "rows_read", c->rows);
  ait_put_int(&t, &first, "added", c->added);
  ait_put_int(&t, &first, "replaced", c->replaced);
  ait_put_int(&t, &first, "rows", total);
  ait_text_printf(&t, "}\n");
  return ait_put_finish(&t, out);
}

static bool same_file(const char *a, const char *b) {
  struct stat x, y;
  return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

ait_status ait_record_merge(const char *path, const char *const *from, size_t count, char **out) {
  ait_record *into;
  copied c = {0};
  if (out) *out = NULL;
  for (size_t i = 0; i < count; ++i)
    if (same_file(path, from[i])) return ait_error(AIT_CODE_INVALID_ARGUMENT, "'%s' cannot be merged into itself", from[i]);
  AIT_TRY(ait_record_open(path, &into));
  ait_status status = AIT_OK;
  for (size_t i = 0; !status && i < count; ++i) status = copy_all(from[i], into, &c);
  int64_t total = status ? 0 : count_rows(into->db);
  ait_record_close(into);
  return status ? status : finish_copied(path, &c, total, out);
}

/* A file of its own, without a log beside it, that appears when it is whole. */
static ait_status write_export(const char *path, const char *temporary, copied *c) {
  ait_record into = {0};
  snprintf(into.path, sizeof into.path, "%s", temporary);
  int code = sqlite3_open_v2(temporary, &into.db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_EXCLUSIVE, NULL);
  ait_status status = code == SQLITE_OK ? AIT_OK : ait_record_fault(&into, "write");
  if (!status) status = ait_record_prepare(&into);
  if (!status) status = copy_all(path, &into, c);
  sqlite3_close(into.db);
  return status;
}

ait_status ait_record_export(const char *path, const char *out_path, char **out) {
  char temporary[1024];
  copied c = {0};
  if (out) *out = NULL;
  if (same_file(path, out_path)) return ait_error(AIT_CODE_INVALID_ARGUMENT, "record '%s' cannot be exported to itself", path);
  if ((size_t)snprintf(temporary, sizeof temporary, "%s.tmp-%ld", out_path, (long)getpid()) >= sizeof temporary)
    return ait_error(AIT_CODE_INVALID_ARGUMENT, "the path is too long");
  ait_status status = write_export(path, temporary, &c);
  if (!status && rename(temporary, out_path) != 0) status = ait_error(AIT_CODE_IO, "cannot write '%s': %s", out_path, strerror(errno));
  if (status) unlink(temporary);
  return status ? status : finish_copied(out_path, &c, c.added, out);
}

/* ---- pruning -----------------------------------------------------------------------------------------------------------------------*/
static ait_status delete_rows(ait_record *r, const ait_record_prune_options *o, int64_t *out_removed) {
  sqlite3_stmt *s = NULL;
  sqlite3_int64 limit = o->older_seconds > 0 ? (sqlite3_int64)time(NULL) - (sqlite3_int64)o->older_seconds : INT64_MIN;
  if (sqlite3_prepare_v2(r->db, "DELETE FROM trial WHERE made < ?1 OR (?2 AND build <> ?3)", -1, &s, NULL) != SQLITE_OK)
    return ait_record_fault(r, "write");
  sqlite3_bind_int64(s, 1, limit);
  sqlite3_bind_int(s, 2, o->other_builds);
  sqlite3_bind_text(s, 3, ait_build_id(), -1, SQLITE_STATIC);
  ait_status status = sqlite3_step(s) == SQLITE_DONE ? AIT_OK : ait_record_fault(r, "write");
  sqlite3_finalize(s);
  *out_removed = sqlite3_changes64(r->db);
  return status;
}

ait_status ait_record_prune(const char *path, const ait_record_prune_options *options, char **out) {
  ait_record *r;
  int64_t removed = 0;
  if (out) *out = NULL;
  if (access(path, F_OK) != 0) return ait_error(AIT_CODE_NOT_FOUND, "record '%s': %s", path, strerror(errno));
  AIT_TRY(ait_record_open(path, &r));
  ait_status status = delete_rows(r, options, &removed);
  /* Space goes back when nobody else is at work; else with a later call. */
  if (!status) sqlite3_exec(r->db, "VACUUM; PRAGMA wal_checkpoint(TRUNCATE);", NULL, NULL, NULL);
  int64_t left = status ? 0 : count_rows(r->db);
  ait_record_close(r);
  if (status || !out) return status;
  ait_text t;
  bool first = true;
  ait_text_init(&t, ait_allocator_default());
  ait_text_printf(&t, "{");
  ait_put_string(&t, &first, "file", path);
  ait_put_int(&t, &first, "removed", removed);
  ait_put_int(&t, &first, "rows", left);
  ait_text_printf(&t, "}\n");
  return ait_put_finish(&t, out);
}
