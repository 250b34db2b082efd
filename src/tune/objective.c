#include "tune/objective.h"
#include <stdio.h>

const ait_strategy ait_strategies[AIT_STRATEGY_COUNT] = {
#define AIT_STRATEGY(id, name, alias, argument, part, help) [AIT_STRATEGY_##id] = {name, alias, argument, help, part},
#include <ait/strategies.inc>
#undef AIT_STRATEGY
};

/* "max-throughput, min-latency, latency-budget=MS[,pNN] …" */
static ait_status with_list(ait_status status) {
  char list[512] = "";
  for (int i = 0; i < AIT_STRATEGY_COUNT; ++i) {
    const ait_strategy *s = &ait_strategies[i];
    size_t n = strlen(list);
    snprintf(list + n, sizeof list - n, "%s%s%s%s", n ? ", " : "", s->name, s->argument ? "=" : "", s->argument ? s->argument : "");
  }
  return ait_error_hint(status, "%s", list);
}

static int find(const char *name, size_t length) {
  for (int i = 0; i < AIT_STRATEGY_COUNT; ++i) {
    const ait_strategy *s = &ait_strategies[i];
    if (strlen(s->name) == length && !memcmp(s->name, name, length)) return i;
    if (s->alias && strlen(s->alias) == length && !memcmp(s->alias, name, length)) return i;
  }
  return -1;
}

ait_status ait_objective_parse(const char *text, ait_objective *out) {
  *out = (ait_objective){.kind = 0};
  const char *given = text ? text : ait_strategies[0].name, *equals = strchr(given, '=');
  int kind = find(given, equals ? (size_t)(equals - given) : strlen(given));
  if (kind < 0) return with_list(ait_error(AIT_CODE_INVALID_ARGUMENT, "there is no strategy '%s'", given));
  const ait_strategy *s = &ait_strategies[kind];
  out->kind = (ait_strategy_kind)kind;
  if (equals && !s->argument) return with_list(ait_error(AIT_CODE_INVALID_ARGUMENT, "strategy '%s' takes no argument", s->name));
  if (!equals && s->argument) return with_list(ait_error(AIT_CODE_INVALID_ARGUMENT, "strategy '%s' needs =%s", s->name, s->argument));
  snprintf(out->text, sizeof out->text, "%s", s->name);
  return AIT_OK;
}
