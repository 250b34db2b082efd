/* Inside ait_tune: the state of one run, and its stages. tune.c walks them in order. Only the tuner's own thread is here; what is measured
 * runs in children (trial.c). */
#ifndef AIT_SRC_TUNE_TUNER_H
#define AIT_SRC_TUNE_TUNER_H

#include "tune/decide.h"
#include "tune/evidence.h"
#include "tune/goal.h"
#include "tune/record.h"
#include "tune/shapes.h"
#include "tune/watch.h"

/* Seconds of the first measurement of a candidate; each further one is twice as long. */
#define AIT_TRIAL_SECONDS 0.08
enum { AIT_TRIAL_ROUNDS = 5 };

/* Plain data, in the record. */
typedef struct ait_tuner_finish {
  uint32_t done; /* 1 */
  bool mixed;    /* mixed plans were looked for */
} ait_tuner_finish;

/* Candidates by name; plain data, in the record. */
typedef struct ait_tuner_kin {
  uint32_t count;
  char names[AIT_CONTEST_MAX][256];
} ait_tuner_kin;

typedef struct ait_tuner {
  ait_tune_options options;
  ait_objective objective;
  ait_goal goal;
  const char *phase;
  ait_graph *raw;
  ait_region *region;
  ait_tune_cases cases;
  ait_candidates list;
  ait_decision *decision;
  ait_evidence evidence;
  ait_shapes *shapes;   /* NULL: nothing is valid */
  ait_record *record;   /* NULL: none */
  ait_artifact *base;   /* --append: the file as it is */
  ait_artifact *source; /* the model's file where it is an .ait */
  ait_trial_context x;
  int32_t threads;
  char key[128];    /* what all trials of this run share: model, data, machine, build */
  uint64_t machine; /* CPU and build */
  double start;
  bool answered; /* the oracle has run */
  /* Of a whole run with these candidates and this budget, when the record holds one: what it did not measure was not worth it, and the same
   * run again decides the same. */
  ait_tuner_finish finished;
  char finish_key[512]; /* of the candidates that there were at the beginning */
  uint64_t candidates;  /* their names and versions */
  bool has_kin;
  ait_tuner_kin kin; /* finalists of models with the same parts */
  uint32_t done, total;
  const char *current; /* candidate at work, or NULL */
  ait_watch watch;     /* the machine, while anything is measured */
  bool measured;       /* something was: not all came from the record */
} ait_tuner;

/* ---- tune.c ----------------------------------------------------------------------------------------------------------------------*/
void ait_tuner_tell(ait_tuner *t, const char *line); /* progress; line: a finished thing, or NULL */
bool ait_tuner_cancelled(const ait_tuner *t);
/* Seconds until this share of the budget is used up; a part at the end is kept for the evidence. */
double ait_tuner_left(const ait_tuner *t, double share);
/* --from-record and WHAT is not in it. */
ait_status ait_tuner_not_recorded(const ait_tuner *t, const char *what) AIT_MUST_USE;

/* ---- tune_record.c: without a record, or when it fails (warned of once), nothing is found and nothing kept ----------------------------*/
ait_status ait_tuner_open_record(ait_tuner *t) AIT_MUST_USE;
void ait_tuner_recall(ait_tuner *t, const char *key, void *out, size_t size, bool *out_found);
void ait_tuner_remember(ait_tuner *t, const char *key, const char *label, const void *value, size_t size);
/* A record may come from elsewhere: what indexes and lengths say is checked before anything goes by it. */
bool ait_tuner_plausible_trial(const ait_trial_result *r);
bool ait_tuner_plausible_contest(const ait_contest *c, uint32_t members);
bool ait_tuner_plausible_profile(const ait_profile *p, const ait_tune_cases *cases);

/* ---- tune_trials.c ---------------------------------------------------------------------------------------------------------------*/
void ait_tuner_trial_key(const ait_tuner *t, const ait_candidate *c, char out[512]);
/* To have it ready once more: building, loading, warming up. */
double ait_tuner_rebuild_seconds(const ait_candidate *c);
void ait_tuner_finished_line(const ait_candidate *c, char *out, size_t size);
/* What the oracle found in an earlier run, or it runs. */
ait_status ait_tuner_recall_oracle(ait_tuner *t) AIT_MUST_USE;
/* The oracle's answers: before anything is checked. It runs once, and not at all when the record knows everything. */
ait_status ait_tuner_need_answers(ait_tuner *t) AIT_MUST_USE;
ait_status ait_tuner_try_one(ait_tuner *t, ait_candidate *c, double seconds) AIT_MUST_USE;
/* First measurements of all, then longer ones of the better half. */
ait_status ait_tuner_try_all(ait_tuner *t) AIT_MUST_USE;
ait_status ait_tuner_try_mixed(ait_tuner *t) AIT_MUST_USE; /* mixed plans join the list */

/* ---- tune_objective.c: what the objective needs beyond times at the samples' sizes ----------------------------------------------------*/
ait_status ait_tuner_open_objective(ait_tuner *t) AIT_MUST_USE;  /* first: reads the options */
ait_status ait_tuner_check_objective(ait_tuner *t) AIT_MUST_USE; /* with model and samples, before anything is measured */
ait_status ait_tuner_pursue(ait_tuner *t) AIT_MUST_USE;          /* after the trials: measures */
/* Scores candidates and bars those that may not win, from what was measured; sets the sizes of the contest. *out_again: a candidate fell
 * out, aim again. t->goal.unmet: nobody may win. */
ait_status ait_tuner_aim(ait_tuner *t, bool *out_again) AIT_MUST_USE;
bool ait_tuner_missed(ait_tuner *t); /* after the contest: its winner does not keep the objective, aim again */

/* ---- tune_contest.c ---------------------------------------------------------------------------------------------------------------*/
/* Finalists in turn; the decision. No winner: nothing is valid. */
ait_status ait_tuner_decide(ait_tuner *t) AIT_MUST_USE;
ait_status ait_tuner_nothing_valid(const ait_tuner *t) AIT_MUST_USE; /* the error for it */

void ait_tuner_recall_finished(ait_tuner *t);   /* before the first trial */
void ait_tuner_remember_finished(ait_tuner *t); /* after the last trial */

/* ---- tune_kin.c: what an earlier tuning of a model with mostly the same parts tells -------------------------------------------------*/
void ait_tuner_find_kin(ait_tuner *t); /* before the first trial */
bool ait_tuner_is_behind_in_kin(const ait_tuner *t, const ait_candidate *c);
void ait_tuner_remember_kin(ait_tuner *t); /* after the contest */

/* ---- tune_noise.c: how far what is measured here can be trusted -----------------------------------------------------------------------*/
/* Trial of the baseline, then the baseline against itself: the noise floor. Before other trials. */
ait_status ait_tuner_measure_noise(ait_tuner *t) AIT_MUST_USE;
/* After a measurement: the watch looks at the machine. */
void ait_tuner_measured(ait_tuner *t);
/* At the end: what the watch saw, now or in the run that the record is of; warnings. */
void ait_tuner_end_watch(ait_tuner *t);

/* ---- tune_shapes.c ----------------------------------------------------------------------------------------------------------------*/
/* The candidates at each size that samples have or the user asked for; buckets. */
ait_status ait_tuner_shapes(ait_tuner *t) AIT_MUST_USE;

/* ---- tune_evidence.c --------------------------------------------------------------------------------------------------------------*/
/* What the report shows of the winner and of the baseline: not part of the decision, and not of the budget. */
ait_status ait_tuner_gather_evidence(ait_tuner *t) AIT_MUST_USE;

#endif
