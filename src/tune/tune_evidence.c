/* Evidence about the winner, with the record around it. */
#include "tune/tuner.h"
#include <stdio.h>

/* ---- evidence --------------------------------------------------------------------------------------------------------------------*/
static ait_status profile_one(ait_tuner *t, const ait_candidate *c, ait_profile *out) {
  char key[512];
  bool found;
  snprintf(key, sizeof key, "profile-%s-%s-%s", t->key, c->version, c->name);
  ait_tuner_recall(t, key, out, sizeof *out, &found);
  if (found && ait_tuner_plausible_profile(out, &t->cases)) return AIT_OK;
  if (t->options.from_record) {
    *out = (ait_profile){.why = "the record does not hold it"};
    return AIT_OK;
  }
  AIT_TRY(ait_tuner_need_answers(t));
  t->current = c->name;
  ait_tuner_tell(t, NULL);
  AIT_TRY(ait_profile_run(&t->x, c, 0.3, out));
  t->current = NULL;
  ait_tuner_remember(t, key, c->name, out, sizeof *out);
  return AIT_OK;
}

/* What the report shows of the winner and of the baseline: not part of the decision, and not of the budget. */
ait_status ait_tuner_gather_evidence(ait_tuner *t) {
  ait_evidence *e = &t->evidence;
  const int32_t both[2] = {t->decision->winner, t->decision->baseline};
  if (both[0] < 0) return AIT_OK;
  t->phase = "evidence";
  e->profiles = ait_alloc_zero(ait_allocator_default(), 2 * sizeof *e->profiles, _Alignof(ait_profile));
  if (!e->profiles) return AIT_OOM();
  for (int i = 0; i < 2; ++i) {
    if (both[i] < 0 || (i && both[1] == both[0])) continue;
    e->candidates[e->count] = both[i];
    AIT_TRY(profile_one(t, &t->list.items[both[i]], &e->profiles[e->count]));
    ++e->count;
  }
  char key[128];
  int32_t threads = t->list.items[both[0]].threads;
  snprintf(key, sizeof key, "roofline-%016llx-%d", (unsigned long long)t->machine, threads);
  ait_tuner_recall(t, key, &e->roofline, sizeof e->roofline, &e->has_roofline);
  if (e->has_roofline || t->options.from_record) return AIT_OK;
  AIT_TRY(ait_evidence_roofline(&t->x, threads, &e->roofline, &e->has_roofline));
  if (e->has_roofline) ait_tuner_remember(t, key, "roofline", &e->roofline, sizeof e->roofline);
  return AIT_OK;
}
