/* The record of trials: an SQLite file. A finished trial is there for good; a killed run loses at most the running one. Several tuners may
 * share a file. */
#ifndef AIT_SRC_TUNE_RECORD_H
#define AIT_SRC_TUNE_RECORD_H

#include "base/base.h"
#include <sqlite3.h>

typedef struct ait_record {
  sqlite3 *db;
  char path[1024];
} ait_record;
/* Creates the file and its folder when missing. A record of an earlier version becomes one of this version; that of a later one is refused:
 * incompatible. */
ait_status ait_record_open(const char *path, ait_record **out) AIT_MUST_USE;
void ait_record_close(ait_record *record); /* takes NULL */
/* What is known under the key: *out_found false when nothing is. The stored value must have `size` bytes (else it counts as not found).
 * The file may come from elsewhere: the caller checks what the bytes say. */
ait_status ait_record_get(ait_record *record, const char *key, void *out, size_t size, bool *out_found) AIT_MUST_USE;
/* label: for people who open the file. build: the library that measured (ait_build_id). Replaces. */
ait_status ait_record_put(ait_record *record, const char *key, const char *label, const char *build, const void *value,
                          size_t size) AIT_MUST_USE;

/* Between record.c and record_share.c. */
ait_status ait_record_fault(const ait_record *record, const char *what) AIT_MUST_USE;
ait_status ait_record_exec(ait_record *record, const char *what, const char *sql) AIT_MUST_USE;
/* The schema in a new file. */
ait_status ait_record_prepare(ait_record *record) AIT_MUST_USE;
/* -1: no record. */
int ait_record_version(sqlite3 *db);
enum { AIT_RECORD_VERSION = 2 };

#endif
