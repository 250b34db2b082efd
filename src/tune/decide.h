/* Which candidate wins. */
#ifndef AIT_SRC_TUNE_DECIDE_H
#define AIT_SRC_TUNE_DECIDE_H

#include "tune/candidate.h"
#include "tune/stats.h"

typedef struct ait_decision {
  int32_t winner, baseline; /* candidate indices; -1: none is valid */
  int32_t single;           /* the best plan of one backend that is not the baseline: the winner must not be slower; -1: none is valid */
  int32_t finalists[AIT_CONTEST_MAX];
  uint32_t finalist_count;
  ait_contest contest; /* finalists in turn: the evidence */
  bool contested, reused;
  bool pinned; /* modules were given backends: the baseline, which does not obey, cannot win */
  bool fixed;  /* the objective has chosen; the contest is the evidence of its speed */
  int32_t chosen;
  ait_stats medians[AIT_CONTEST_MAX];
  ait_stats against_winner[AIT_CONTEST_MAX]; /* time / winner's time, paired by round */
  bool tie[AIT_CONTEST_MAX];                 /* not beaten by another: within noise of the fastest */
  bool probably_slower[AIT_CONTEST_MAX];     /* a tie, but the odds are against it */
  uint32_t fastest;                          /* of the finalists that may win */
  double behind[AIT_CONTEST_MAX];            /* time / the fastest's, of those that may win; infinite: may not */
  bool open[AIT_CONTEST_MAX];                /* neither surely slower nor surely as fast as the fastest: more rounds could tell */
  double speedup, speedup_low, speedup_high; /* baseline's time / winner's; 0: no baseline */
  uint32_t speedup_rounds;                   /* in which both were */
  ait_stats over_single;                     /* winner's time / single's; count 0: no single */
  /* The baseline against itself, before anything else: how far two equal plans seem apart here. */
  bool has_noise, noise_reused;
  ait_contest noise;
  ait_stats noise_ratio;
  double floor; /* what it tells of rounds as many as the contest's (ait_noise_floor); 0: not known */
  double bias;  /* what equal plans surely differ by here; ratios up to 1 + bias are ties */
} ait_decision;

/* What an A/A contest says about a contest of `rounds` rounds: how far its median is from 1, and twice the standard error of a median of as
 * many rounds, from the median absolute deviation (Rousseeuw and Croux 1993: 1.4826 for normal noise; 1.2533 for a median). At most 0.1:
 * where noise is larger, the interval of the contest itself says more than a short look before. */
double ait_noise_floor(const ait_contest *same, uint32_t rounds);

/* The baseline, the best single plan, and the fastest of the others, for the contest. */
void ait_decide_finalists(const ait_candidates *list, ait_decision *d);
/* What an A/A contest is sure of: by how much the two differ though they are equal; mostly 0, at most 0.1. */
double ait_noise_bias(const ait_contest *same);
/* From the contest: the chosen one where the objective has chosen, else the fastest (by ratios paired by round). What is surely slower by
 * more than 1 % (and the bias) and was measured more than 3 % (and the noise floor) behind is beaten, the rest a tie: in another run, built
 * anew, it may be ahead. Of ties those that are not probably slower either go to the simplest: fewest threads, then no mixed plan, then
 * earliest in the list. */
void ait_decide_winner(const ait_candidates *list, ait_decision *d);

#endif
