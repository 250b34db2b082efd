/* The record of trials: an SQLite file. A finished trial is there for good; a killed run loses at most the running one. Several tuners may
 * share a file. */
#ifndef AIT_SRC_TUNE_RECORD_H
#define AIT_SRC_TUNE_RECORD_H

#include "base/base.h"

typedef struct ait_record ait_record;
/* Creates the file and its folder when missing. A record of another version is refused: incompatible. */
ait_status ait_record_open(const char *path, ait_record **out) AIT_MUST_USE;
void ait_record_close(ait_record *record); /* takes NULL */
/* What is known under the key: *out_found false when nothing is. The stored value must have `size` bytes (else it counts as not found). */
ait_status ait_record_get(ait_record *record, const char *key, void *out, size_t size, bool *out_found) AIT_MUST_USE;
/* label: for people who open the file. Replaces. */
ait_status ait_record_put(ait_record *record, const char *key, const char *label, const void *value, size_t size) AIT_MUST_USE;

#endif
