#include "tune/record.h"
#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>

enum { BUSY_MILLISECONDS = 10000 };

ait_status ait_record_fault(const ait_record *r, const char *what) {
  return ait_error(AIT_CODE_IO, "record '%s': cannot %s: %s", r->path, what, r->db ? sqlite3_errmsg(r->db) : "out of memory");
}

ait_status ait_record_exec(ait_record *r, const char *what, const char *sql) {
  return sqlite3_exec(r->db, sql, NULL, NULL, NULL) == SQLITE_OK ? AIT_OK : ait_record_fault(r, what);
}

static ait_status make_folders(const char *path) {
  char part[1024];
  size_t n = strlen(path);
  if (n >= sizeof part) return ait_error(AIT_CODE_INVALID_ARGUMENT, "record path is too long");
  for (size_t i = 1; i < n; ++i) {
    if (path[i] != '/') continue;
    memcpy(part, path, i);
    part[i] = 0;
    if (mkdir(part, 0777) && errno != EEXIST)
      return ait_error(AIT_CODE_IO, "record '%s': cannot make folder '%s': %s", path, part, strerror(errno));
  }
  return AIT_OK;
}

/* Going over to a write-ahead log does not wait for others as all else does (sqlite.org/wal.html, "busy"): two who make a record at one
 * time. */
static ait_status log_ahead(ait_record *r) {
  double end = ait_clock_seconds() + BUSY_MILLISECONDS * 1e-3;
  int code;
  while ((code = sqlite3_exec(r->db, "PRAGMA journal_mode=WAL", NULL, NULL, NULL)) == SQLITE_BUSY && ait_clock_seconds() < end)
    nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
  return code == SQLITE_OK ? AIT_OK : ait_record_fault(r, "open");
}

/* ---- versions ----------------------------------------------------------------------------------------------------------------------
 * 1: key, label, value. 2: when a row was made (seconds since 1970; 0: by version 1) and by which build, for merging and pruning. */
static const char *const migrations[] = {
    [1] = "ALTER TABLE trial ADD COLUMN made INTEGER NOT NULL DEFAULT 0;"
          "ALTER TABLE trial ADD COLUMN build TEXT NOT NULL DEFAULT '';"
          "UPDATE version SET number = 2;",
};

int ait_record_version(sqlite3 *db) {
  sqlite3_stmt *s = NULL;
  int version = -1;
  if (sqlite3_prepare_v2(db, "SELECT number FROM version", -1, &s, NULL) == SQLITE_OK && sqlite3_step(s) == SQLITE_ROW)
    version = sqlite3_column_int(s, 0);
  sqlite3_finalize(s);
  return version;
}

static ait_status migrate(ait_record *r) {
  int version = ait_record_version(r->db);
  if (version == -1) {
    char text[512];
    snprintf(text, sizeof text,
             "CREATE TABLE trial (key TEXT PRIMARY KEY, label TEXT NOT NULL, value BLOB NOT NULL, made INTEGER NOT NULL DEFAULT 0, "
             "build TEXT NOT NULL DEFAULT '');"
             "CREATE TABLE version (number INTEGER NOT NULL);"
             "INSERT INTO version VALUES (%d);",
             AIT_RECORD_VERSION);
    return ait_record_exec(r, "prepare", text);
  }
  for (; version >= 1 && version < AIT_RECORD_VERSION; ++version) AIT_TRY(ait_record_exec(r, "bring up to date", migrations[version]));
  if (version == AIT_RECORD_VERSION) return AIT_OK;
  return ait_error_hint(
      ait_error(AIT_CODE_INCOMPATIBLE, "record '%s' has version %d, this ait writes %d", r->path, version, AIT_RECORD_VERSION),
      "use another --record file, or a newer ait");
}

ait_status ait_record_prepare(ait_record *r) {
  if (ait_record_version(r->db) == AIT_RECORD_VERSION) return AIT_OK; /* no lock for what is there already */
  AIT_TRY(ait_record_exec(r, "prepare", "BEGIN IMMEDIATE"));
  ait_status status = migrate(r);
  if (!status) return ait_record_exec(r, "prepare", "COMMIT");
  ait_status_ignore(ait_record_exec(r, "go back", "ROLLBACK"));
  return status;
}

ait_status ait_record_open(const char *path, ait_record **out) {
  *out = NULL;
  AIT_TRY(make_folders(path));
  ait_record *r = ait_alloc_zero(ait_allocator_default(), sizeof *r, _Alignof(ait_record));
  if (!r) return AIT_OOM();
  snprintf(r->path, sizeof r->path, "%s", path);
  int code = sqlite3_open_v2(path, &r->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, NULL);
  if (code == SQLITE_OK) sqlite3_busy_timeout(r->db, BUSY_MILLISECONDS);
  ait_status status = code == SQLITE_OK ? AIT_OK : ait_record_fault(r, "open");
  if (!status) status = ait_record_exec(r, "open", "PRAGMA trusted_schema=OFF; PRAGMA synchronous=NORMAL");
  if (!status) status = log_ahead(r);
  if (!status) status = ait_record_prepare(r);
  if (status != AIT_OK) ait_record_close(r);
  else *out = r;
  return status;
}

void ait_record_close(ait_record *r) {
  if (!r) return;
  sqlite3_close(r->db);
  ait_free(ait_allocator_default(), r, sizeof *r);
}

/* ---- rows --------------------------------------------------------------------------------------------------------------------------*/
ait_status ait_record_get(ait_record *r, const char *key, void *out, size_t size, bool *out_found) {
  sqlite3_stmt *s = NULL;
  *out_found = false;
  if (sqlite3_prepare_v2(r->db, "SELECT value FROM trial WHERE key = ?", -1, &s, NULL) != SQLITE_OK) return ait_record_fault(r, "read");
  sqlite3_bind_text(s, 1, key, -1, SQLITE_STATIC);
  int code = sqlite3_step(s);
  if (code == SQLITE_ROW && sqlite3_column_type(s, 0) == SQLITE_BLOB && (size_t)sqlite3_column_bytes(s, 0) == size) {
    memcpy(out, sqlite3_column_blob(s, 0), size);
    *out_found = true;
  }
  ait_status status = code == SQLITE_ROW || code == SQLITE_DONE ? AIT_OK : ait_record_fault(r, "read");
  sqlite3_finalize(s);
  return status;
}

ait_status ait_record_put(ait_record *r, const char *key, const char *label, const char *build, const void *value, size_t size) {
  sqlite3_stmt *s = NULL;
  if (sqlite3_prepare_v2(r->db, "INSERT OR REPLACE INTO trial (key, label, value, made, build) VALUES (?, ?, ?, ?, ?)", -1, &s, NULL) !=
      SQLITE_OK)
    return ait_record_fault(r, "write");
  sqlite3_bind_text(s, 1, key, -1, SQLITE_STATIC);
  sqlite3_bind_text(s, 2, label, -1, SQLITE_STATIC);
  sqlite3_bind_blob64(s, 3, value, size, SQLITE_STATIC);
  sqlite3_bind_int64(s, 4, (sqlite3_int64)time(NULL));
  sqlite3_bind_text(s, 5, build, -1, SQLITE_STATIC);
  ait_status status = sqlite3_step(s) == SQLITE_DONE ? AIT_OK : ait_record_fault(r, "write");
  sqlite3_finalize(s);
  return status;
}
