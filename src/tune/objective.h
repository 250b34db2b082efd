/* What the tuner optimises: the table of strategies (include/ait/strategies.inc) and one of them with its argument. */
#ifndef AIT_SRC_TUNE_OBJECTIVE_H
#define AIT_SRC_TUNE_OBJECTIVE_H

#include "base/base.h"

typedef enum ait_strategy_kind {
#define AIT_STRATEGY(id, name, alias, argument, part, help) AIT_STRATEGY_##id,
#include <ait/strategies.inc>
#undef AIT_STRATEGY
  AIT_STRATEGY_COUNT
} ait_strategy_kind;

typedef struct ait_strategy {
  const char *name, *alias, *argument, *help;
  bool part; /* can be asked for one module */
} ait_strategy;
extern const ait_strategy ait_strategies[AIT_STRATEGY_COUNT];

typedef struct ait_objective {
  ait_strategy_kind kind;
  double limit_seconds; /* latency-budget; traffic with goodput; else 0 */
  double quantile;      /* of latency: 0.95 for latency-budget, 0.99 for traffic */
  char trace[1024];     /* traffic: path */
  char text[192];       /* canonical, "latency-budget=5ms,p95"; of a path only the file's name */
} ait_objective;

/* text: NULL is the default. Errors: invalid-argument; the hint lists all strategies. */
ait_status ait_objective_parse(const char *text, ait_objective *out) AIT_MUST_USE;
/* "first-wins", "max-throughput" …: a strategy for one module. Errors: invalid-argument; the hint lists those that can be that. */
ait_status ait_objective_parse_part(const char *text, ait_strategy_kind *out) AIT_MUST_USE;
/* Does it look for the best batch size? */
bool ait_objective_searches(const ait_objective *objective);

#endif
