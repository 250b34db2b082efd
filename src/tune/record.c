#include "tune/record.h"
#include <errno.h>
#include <sqlite3.h>
#include <stdio.h>
#include <sys/stat.h>

/* Changes when the stored structures do. */
enum { RECORD_VERSION = 1, BUSY_MILLISECONDS = 10000 };

struct ait_record {
  sqlite3 *db;
  char path[1024];
};

static ait_status fault(const ait_record *r, const char *what) {
  return ait_error(AIT_CODE_IO, "record '%s': cannot %s: %s", r->path, what, r->db ? sqlite3_errmsg(r->db) : "out of memory");
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

static ait_status prepare(ait_record *r) {
  static const char schema[] = "BEGIN IMMEDIATE;"
                               "CREATE TABLE IF NOT EXISTS trial (key TEXT PRIMARY KEY, label TEXT NOT NULL, value BLOB NOT NULL);"
                               "CREATE TABLE IF NOT EXISTS version (number INTEGER NOT NULL);"
                               "INSERT INTO version SELECT %d WHERE NOT EXISTS (SELECT 1 FROM version);"
                               "COMMIT;";
  char text[512];
  snprintf(text, sizeof text, schema, RECORD_VERSION);
  sqlite3_busy_timeout(r->db, BUSY_MILLISECONDS);
  if (sqlite3_exec(r->db, "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;", NULL, NULL, NULL) != SQLITE_OK) return fault(r, "open");
  if (sqlite3_exec(r->db, text, NULL, NULL, NULL) != SQLITE_OK) return fault(r, "prepare");
  sqlite3_stmt *s = NULL;
  int version = -1;
  if (sqlite3_prepare_v2(r->db, "SELECT number FROM version", -1, &s, NULL) == SQLITE_OK && sqlite3_step(s) == SQLITE_ROW)
    version = sqlite3_column_int(s, 0);
  sqlite3_finalize(s);
  if (version == RECORD_VERSION) return AIT_OK;
  return ait_error_hint(
      ait_error(AIT_CODE_INCOMPATIBLE, "record '%s' has version %d, this ait writes %d", r->path, version, RECORD_VERSION),
      "use another --record file");
}

ait_status ait_record_open(const char *path, ait_record **out) {
  *out = NULL;
  AIT_TRY(make_folders(path));
  ait_record *r = ait_alloc_zero(ait_allocator_default(), sizeof *r, _Alignof(ait_record));
  if (!r) return AIT_OOM();
  snprintf(r->path, sizeof r->path, "%s", path);
  int code = sqlite3_open_v2(path, &r->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, NULL);
  ait_status status = code == SQLITE_OK ? prepare(r) : fault(r, "open");
  if (status != AIT_OK) ait_record_close(r);
  else *out = r;
  return status;
}

void ait_record_close(ait_record *r) {
  if (!r) return;
  sqlite3_close(r->db);
  ait_free(ait_allocator_default(), r, sizeof *r);
}

ait_status ait_record_get(ait_record *r, const char *key, void *out, size_t size, bool *out_found) {
  sqlite3_stmt *s = NULL;
  *out_found = false;
  if (sqlite3_prepare_v2(r->db, "SELECT value FROM trial WHERE key = ?", -1, &s, NULL) != SQLITE_OK) return fault(r, "read");
  sqlite3_bind_text(s, 1, key, -1, SQLITE_STATIC);
  int code = sqlite3_step(s);
  if (code == SQLITE_ROW && (size_t)sqlite3_column_bytes(s, 0) == size) {
    memcpy(out, sqlite3_column_blob(s, 0), size);
    *out_found = true;
  }
  ait_status status = code == SQLITE_ROW || code == SQLITE_DONE ? AIT_OK : fault(r, "read");
  sqlite3_finalize(s);
  return status;
}

ait_status ait_record_put(ait_record *r, const char *key, const char *label, const void *value, size_t size) {
  sqlite3_stmt *s = NULL;
  if (sqlite3_prepare_v2(r->db, "INSERT OR REPLACE INTO trial VALUES (?, ?, ?)", -1, &s, NULL) != SQLITE_OK) return fault(r, "write");
  sqlite3_bind_text(s, 1, key, -1, SQLITE_STATIC);
  sqlite3_bind_text(s, 2, label, -1, SQLITE_STATIC);
  sqlite3_bind_blob64(s, 3, value, size, SQLITE_STATIC);
  ait_status status = sqlite3_step(s) == SQLITE_DONE ? AIT_OK : fault(r, "write");
  sqlite3_finalize(s);
  return status;
}
