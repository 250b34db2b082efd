#include "tune/objective.h"
#include <stdio.h>

const ait_strategy ait_strategies[AIT_STRATEGY_COUNT] = {
#define AIT_STRATEGY(id, name, alias, argument, part, help) [AIT_STRATEGY_##id] = {name, alias, argument, help, part},
#include <ait/strategies.inc>
#undef AIT_STRATEGY
};

bool ait_objective_searches(const ait_objective *o) {
  return o->kind == AIT_STRATEGY_MAX_THROUGHPUT || o->kind == AIT_STRATEGY_LATENCY_BUDGET;
}

/* "max-throughput, min-latency, latency-budget=MS[,pNN] …" */
static ait_status with_list(ait_status status, bool parts) {
  char list[512] = "";
  for (int i = 0; i < AIT_STRATEGY_COUNT; ++i) {
    const ait_strategy *s = &ait_strategies[i];
    size_t n = strlen(list);
    if (parts && !s->part) continue;
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

/* "5", "5ms", "0.005s": milliseconds when nothing is said. All of the text. */
static bool read_milliseconds(const char *text, double *out_seconds) {
  char *end;
  double v = ait_parse_double(text, &end), scale = 1e-3;
  if (end == text) return false;
  if (!strcmp(end, "s")) scale = 1;
  else if (*end && strcmp(end, "ms")) return false;
  *out_seconds = v * scale;
  return v > 0 && *out_seconds < 1e6;
}

/* "p95", "p99.9". */
static bool read_quantile(const char *text, double *out) {
  char *end;
  if (*text != 'p') return false;
  double v = ait_parse_double(text + 1, &end);
  *out = v / 100;
  return end != text + 1 && !*end && v > 0 && v < 100;
}

static ait_status bad_argument(const ait_strategy *s, const char *argument) {
  return with_list(ait_error(AIT_CODE_INVALID_ARGUMENT, "strategy '%s': '%s' is not %s", s->name, argument, s->argument), false);
}

static ait_status parse_latency(const ait_strategy *s, const char *argument, ait_objective *o) {
  char number[64];
  size_t n = strcspn(argument, ",");
  o->quantile = 0.95;
  if (n >= sizeof number) return bad_argument(s, argument);
  snprintf(number, sizeof number, "%.*s", (int)n, argument);
  if (!read_milliseconds(number, &o->limit_seconds)) return bad_argument(s, argument);
  if (argument[n] && !read_quantile(argument + n + 1, &o->quantile)) return bad_argument(s, argument);
  snprintf(o->text, sizeof o->text, "%s=%gms,p%g", s->name, o->limit_seconds * 1e3, o->quantile * 100);
  return AIT_OK;
}

/* The part behind the last comma is what to optimise, where it is one of that; file names may have commas. */
static ait_status parse_traffic(const ait_strategy *s, const char *argument, ait_objective *o) {
  const char *comma = strrchr(argument, ','), *slash;
  size_t n = strlen(argument);
  o->quantile = 0.99;
  if (comma && ait_starts_with(comma + 1, "goodput=")) {
    if (!read_milliseconds(comma + 9, &o->limit_seconds)) return bad_argument(s, argument);
    n = (size_t)(comma - argument);
  } else if (comma && read_quantile(comma + 1, &o->quantile)) {
    n = (size_t)(comma - argument);
  }
  if (n == 0 || n >= sizeof o->trace) return bad_argument(s, argument);
  snprintf(o->trace, sizeof o->trace, "%.*s", (int)n, argument);
  slash = strrchr(o->trace, '/');
  int used = snprintf(o->text, sizeof o->text, "%s=%.120s", s->name, slash ? slash + 1 : o->trace);
  if (o->limit_seconds > 0) snprintf(o->text + used, sizeof o->text - (size_t)used, ",goodput=%gms", o->limit_seconds * 1e3);
  else snprintf(o->text + used, sizeof o->text - (size_t)used, ",p%g", o->quantile * 100);
  return AIT_OK;
}

ait_status ait_objective_parse(const char *text, ait_objective *out) {
  *out = (ait_objective){.kind = 0};
  const char *given = text ? text : ait_strategies[0].name, *equals = strchr(given, '=');
  int kind = find(given, equals ? (size_t)(equals - given) : strlen(given));
  if (kind < 0) return with_list(ait_error(AIT_CODE_INVALID_ARGUMENT, "there is no strategy '%s'", given), false);
  const ait_strategy *s = &ait_strategies[kind];
  out->kind = (ait_strategy_kind)kind;
  if (equals && !s->argument) return with_list(ait_error(AIT_CODE_INVALID_ARGUMENT, "strategy '%s' takes no argument", s->name), false);
  if (!equals && s->argument)
    return with_list(ait_error(AIT_CODE_INVALID_ARGUMENT, "strategy '%s' needs =%s", s->name, s->argument), false);
  if (kind == AIT_STRATEGY_LATENCY_BUDGET) return parse_latency(s, equals + 1, out);
  if (kind == AIT_STRATEGY_TRAFFIC) return parse_traffic(s, equals + 1, out);
  snprintf(out->text, sizeof out->text, "%s", s->name);
  return AIT_OK;
}

ait_status ait_objective_parse_part(const char *text, ait_strategy_kind *out) {
  int kind = find(text, strlen(text));
  if (kind < 0 || !ait_strategies[kind].part)
    return with_list(ait_error(AIT_CODE_INVALID_ARGUMENT, "'%s' is no strategy for one module", text), true);
  *out = (ait_strategy_kind)kind;
  return AIT_OK;
}
