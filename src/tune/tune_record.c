/* What the tuner keeps in its record, and what it believes of it. */
#include "tune/tuner.h"
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

/* A record that cannot be had, or not any more, is a loss of time, not of the answer. */
static void without_record(ait_tuner *t, ait_status status) {
  char line[512];
  snprintf(line, sizeof line, "warning: nothing will be recorded: %s", ait_status_message(status));
  ait_tuner_tell(t, line);
  ait_status_free(status);
  ait_record_close(t->record);
  t->record = NULL;
}

ait_status ait_tuner_not_recorded(const ait_tuner *t, const char *what) {
  return ait_error_hint(ait_error(AIT_CODE_UNAVAILABLE, "record '%s' does not hold %s for this model, data, machine and build of ait",
                                  t->options.record_path, what),
                        "without --from-record it is measured");
}

ait_status ait_tuner_open_record(ait_tuner *t) {
  const char *path = t->options.record_path;
  if (t->options.from_record && !path) return ait_error(AIT_CODE_INVALID_ARGUMENT, "deciding from a record needs a record");
  if (t->options.from_record && access(path, F_OK) != 0)
    return ait_error(AIT_CODE_UNAVAILABLE, "there is no record '%s': %s", path, strerror(errno));
  if (!path) return AIT_OK;
  ait_status status = ait_record_open(path, &t->record);
  if (status == AIT_OK || ait_status_code(status) != AIT_CODE_IO || t->options.from_record) return status;
  without_record(t, status);
  return AIT_OK;
}

void ait_tuner_recall(ait_tuner *t, const char *key, void *out, size_t size, bool *out_found) {
  *out_found = false;
  ait_status status = t->record ? ait_record_get(t->record, key, out, size, out_found) : AIT_OK;
  if (status != AIT_OK) without_record(t, status);
}

void ait_tuner_remember(ait_tuner *t, const char *key, const char *label, const void *value, size_t size) {
  ait_status status = t->record ? ait_record_put(t->record, key, label, ait_build_id(), value, size) : AIT_OK;
  if (status != AIT_OK) without_record(t, status);
}

static bool is_finite(double v) { return v - v == 0; }

bool ait_tuner_plausible_trial(const ait_trial_result *r) {
  bool good = (uint32_t)r->outcome <= AIT_OUTCOME_SKIPPED && r->sample_count <= AIT_TRIAL_SAMPLES && memchr(r->reason, 0, sizeof r->reason);
  for (uint32_t i = 0; good && i < r->sample_count; ++i) good = r->samples[i] > 0 && is_finite(r->samples[i]);
  good = good && is_finite(r->transport_seconds);
  return good && (r->outcome != AIT_OUTCOME_VALID || r->sample_count > 0);
}

bool ait_tuner_plausible_contest(const ait_contest *c, uint32_t members) {
  bool good = *(const uint8_t *)&c->failed == 0 && c->count == members && c->rounds > 0 && c->rounds <= AIT_CONTEST_ROUNDS;
  good = good && c->sittings > 0 && c->sittings <= AIT_SITTINGS && c->ends[c->sittings - 1] == c->rounds;
  for (uint32_t s = 0; good && s + 1 < c->sittings; ++s) good = c->ends[s] < c->ends[s + 1];
  for (uint32_t k = 0; good && k < c->count; ++k) {
    const double *times = &c->times[k * AIT_CONTEST_ROUNDS];
    for (uint32_t r = 0; good && r < c->rounds; ++r) good = times[r] >= 0 && is_finite(times[r]);
    good = good && times[0] > 0; /* all have a part in the first sitting */
  }
  return good;
}

static bool is_text(const char *text, size_t size) { return memchr(text, 0, size) != NULL; }

bool ait_tuner_plausible_profile(const ait_profile *p, const ait_tune_cases *cases) {
  bool good = is_text(p->why, sizeof p->why) && p->step_count <= AIT_PROFILE_STEPS && p->row_count <= AIT_PROFILE_ROWS;
  for (uint32_t i = 0; good && i < p->step_count; ++i) {
    const ait_profile_step *s = &p->steps[i];
    good = is_text(s->name, sizeof s->name) && is_text(s->op, sizeof s->op) && is_text(s->kernel, sizeof s->kernel) &&
           is_text(s->module, sizeof s->module) && is_finite(s->seconds);
  }
  for (uint32_t i = 0; good && i < p->row_count; ++i)
    good = p->rows[i].case_index < cases->count && p->rows[i].output_index < cases->output_count;
  return good;
}
