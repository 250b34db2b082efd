/* How far the measurements can be trusted: the baseline against itself, and the machine's own state. */
#include "tune/tuner.h"
#include <stdio.h>

/* ---- A against A -------------------------------------------------------------------------------------------------------------------*/
static ait_candidate *baseline_of(ait_tuner *t) {
  for (size_t i = 0; i < t->list.count; ++i)
    if (t->list.items[i].baseline && t->list.items[i].threads == t->threads) return &t->list.items[i];
  return NULL;
}

/* Rounds are two calls each, and two plans are built; five rounds are the least. Where that is too much of the budget nothing is known. */
static double noise_seconds(const ait_tuner *t, const ait_candidate *c) {
  double share = 0.08 * t->options.budget_seconds, least = 10 * c->median + 2 * ait_tuner_rebuild_seconds(c);
  share = share > 1.5 ? 1.5 : share;
  return least > 3 * share ? 0 : share;
}

static void note_floor(ait_tuner *t) {
  ait_decision *d = t->decision;
  double scratch[AIT_CONTEST_ROUNDS];
  char line[160];
  d->has_noise = true;
  d->noise_ratio = ait_stats_ratio(&d->noise.times[0], &d->noise.times[AIT_CONTEST_ROUNDS], d->noise.rounds, scratch);
  snprintf(line, sizeof line, "noise: the baseline against itself differs by up to %.1f %% (%u rounds)",
           100 * ait_noise_floor(&d->noise, d->noise.rounds), d->noise.rounds);
  ait_tuner_tell(t, line);
}

ait_status ait_tuner_measure_noise(ait_tuner *t) {
  ait_decision *d = t->decision;
  ait_candidate *c = baseline_of(t);
  if (!c || *c->missing) return AIT_OK;
  t->phase = "noise";
  AIT_TRY(ait_tuner_try_one(t, c, AIT_TRIAL_SECONDS));
  if (c->median <= 0) return AIT_OK;
  char key[512];
  const ait_candidate *same[] = {c, c};
  snprintf(key, sizeof key, "noise-%s-%s-%s-%llu", t->key, c->version, c->name, (unsigned long long)t->options.seed);
  ait_tuner_recall(t, key, &d->noise, sizeof d->noise, &d->noise_reused);
  d->noise_reused = d->noise_reused && ait_tuner_plausible_contest(&d->noise, 2);
  if (!d->noise_reused) {
    double seconds = noise_seconds(t, c);
    if (t->finished.done || t->options.from_record || seconds == 0) return AIT_OK;
    ait_tuner_tell(t, NULL);
    AIT_TRY(ait_contest_run(&t->x, same, 2, seconds, &d->noise));
    ait_tuner_measured(t);
    if (d->noise.failed) return AIT_OK;
    ait_tuner_remember(t, key, "noise", &d->noise, sizeof d->noise);
  }
  note_floor(t);
  return AIT_OK;
}

/* ---- the machine -------------------------------------------------------------------------------------------------------------------*/
void ait_tuner_measured(ait_tuner *t) {
  t->measured = true;
  ait_watch_look(&t->watch);
}

void ait_tuner_end_watch(ait_tuner *t) {
  char key[160], text[192], line[224];
  bool found;
  ait_watch_result recorded;
  snprintf(key, sizeof key, "watch-%s", t->key);
  if (t->measured) {
    ait_watch_finish(&t->watch);
    ait_tuner_remember(t, key, "machine", &t->watch.result, sizeof t->watch.result);
  } else {
    ait_tuner_recall(t, key, &recorded, sizeof recorded, &found);
    t->watch.result =
        found && ait_watch_plausible(&recorded) ? recorded : (ait_watch_result){.steal_share = -1, .throttled = -1, .others = -1};
  }
  for (int k = 0; k < AIT_WATCH_KINDS; ++k) {
    ait_watch_warning(&t->watch.result, (ait_watch_kind)k, text, sizeof text);
    if (!*text) continue;
    snprintf(line, sizeof line, "warning: while measuring, %s", text);
    ait_tuner_tell(t, line);
  }
}
