#include "tune/report.h"
#include "tune/cost.h"
#include "tune/mix.h"
#include "tune/put_json.h"
#include <gnu/libc-version.h>
#include <math.h>
#include <stdio.h>
#include <sys/utsname.h>

static void put_number(ait_text *t, bool *first, const char *key, double v) {
  if (!isfinite(v)) return;
  ait_put_key(t, first, key);
  ait_text_json_double(t, v);
}

static void put_stats(ait_text *t, bool *first, const ait_stats *s) {
  put_number(t, first, "median_s", s->median);
  put_number(t, first, "low_s", s->low);
  put_number(t, first, "high_s", s->high);
  put_number(t, first, "p95_s", s->p95);
  put_number(t, first, "p99_s", s->p99);
  ait_put_int(t, first, "measurements", s->count);
}

static void put_seconds(ait_text *t, bool *first, const double *seconds, uint32_t count) {
  ait_put_key(t, first, "seconds");
  ait_text_printf(t, "[");
  for (uint32_t i = 0; i < count; ++i) {
    char number[48];
    ait_format_double(number, 6, seconds[i]);
    ait_text_printf(t, "%s%s", i ? "," : "", number);
  }
  ait_text_printf(t, "]");
}

/* Parts in order: module, backend, seconds when measured by itself. */
static void put_parts(ait_text *t, bool *first, const ait_mix *m) {
  ait_put_key(t, first, "parts");
  ait_text_printf(t, "[");
  for (uint32_t p = 0; p < m->part_count; ++p) {
    bool f = true;
    ait_text_printf(t, "%s{", p ? ", " : "");
    ait_put_string(t, &f, "module", m->modules[p]);
    ait_put_string(t, &f, "backend", m->engines[m->engine[p]].backend->name);
    ait_put_string(t, &f, "options", m->engines[m->engine[p]].options);
    put_number(t, &f, "seconds", m->seconds[p]);
    ait_text_printf(t, "}");
  }
  ait_text_printf(t, "]");
}

/* Not in the contest, and by the trials alone it could be as fast as the winner. */
static bool is_near(const ait_candidates *list, size_t i, const ait_decision *d) {
  const ait_candidate *c = &list->items[i], *winner = d->winner >= 0 ? &list->items[d->winner] : NULL;
  double mine[AIT_TRIAL_SAMPLES], its[AIT_TRIAL_SAMPLES];
  if (!winner || c->median <= 0 || winner->median <= 0 || c->barred || c->score > 0 || winner->score > 0 || d->fixed) return false;
  for (uint32_t k = 0; k < d->finalist_count; ++k)
    if (d->finalists[k] == (int32_t)i) return false;
  memcpy(mine, c->result.samples, sizeof mine);
  memcpy(its, winner->result.samples, sizeof its);
  return ait_stats_of(mine, c->result.sample_count).low <= ait_stats_of(its, winner->result.sample_count).high;
}

static void put_candidate(ait_text *t, const ait_candidates *list, size_t i, const ait_decision *d) {
  const ait_candidate *c = &list->items[i];
  const ait_trial_result *r = &c->result;
  bool first = true;
  ait_text_printf(t, "%s\n    {", i ? "," : "");
  ait_put_string(t, &first, "name", c->name);
  ait_put_string(t, &first, "backend", c->mix ? "mixed" : c->backend->name);
  ait_put_string(t, &first, "options", c->options);
  ait_put_int(t, &first, "threads", c->threads);
  if (c->mix) put_parts(t, &first, c->mix);
  ait_put_bool(t, &first, "baseline", c->baseline);
  ait_put_bool(t, &first, "won", d->winner == (int32_t)i);
  ait_put_string(t, &first, "outcome", ait_outcome_text(r->outcome));
  ait_put_string(t, &first, "reason", r->reason);
  if (is_near(list, i, d)) ait_put_bool(t, &first, "near", true);
  if (r->outcome == AIT_OUTCOME_VALID || r->outcome == AIT_OUTCOME_INVALID) {
    put_number(t, &first, "error_over_tolerance", r->worst_error);
    put_number(t, &first, "max_abs", r->max_abs);
    put_number(t, &first, "snr_db", r->snr_db);
    put_number(t, &first, "build_s", r->build_seconds);
    put_number(t, &first, "load_s", r->load_seconds);
    if (r->transport_seconds > 0) put_number(t, &first, "transport_s", r->transport_seconds);
    ait_put_int(t, &first, "blob_bytes", (int64_t)r->blob_bytes);
    ait_put_int(t, &first, "plan_bytes", (int64_t)r->plan_bytes);
    ait_put_int(t, &first, "memory_bytes", (int64_t)ait_trial_memory(r));
    ait_put_int(t, &first, "read_bytes", (int64_t)r->read_bytes);
    ait_put_int(t, &first, "load_bytes", (int64_t)r->load_bytes);
    ait_put_int(t, &first, "peak_bytes", (int64_t)r->peak_bytes);
    if (r->joules >= 0 && r->sample_count) put_number(t, &first, "joules", r->joules);
    ait_put_int(t, &first, "dropped", r->dropped);
  }
  if (r->sample_count) {
    double copy[AIT_TRIAL_SAMPLES];
    memcpy(copy, r->samples, sizeof copy);
    ait_stats s = ait_stats_of(copy, r->sample_count);
    put_stats(t, &first, &s);
    ait_put_int(t, &first, "rounds", c->rounds);
    put_seconds(t, &first, r->samples, r->sample_count);
  }
  ait_text_printf(t, "}");
}

static void put_contest(ait_text *t, const ait_candidates *list, const ait_decision *d) {
  double seconds[AIT_CONTEST_ROUNDS];
  ait_text_printf(t, "{\"rounds\": %u, \"dropped\": %u, \"members\": [", d->contest.rounds, d->contest.dropped);
  for (uint32_t k = 0; d->contested && k < d->finalist_count; ++k) {
    bool first = true;
    ait_text_printf(t, "%s\n    {", k ? "," : "");
    ait_put_string(t, &first, "name", list->items[d->finalists[k]].name);
    put_stats(t, &first, &d->medians[k]);
    ait_put_bool(t, &first, "tie", d->tie[k]);
    ait_put_bool(t, &first, "probably_slower", d->probably_slower[k]);
    put_number(t, &first, "time_over_winner", d->against_winner[k].median);
    put_number(t, &first, "time_over_winner_low", d->against_winner[k].low);
    put_number(t, &first, "time_over_winner_high", d->against_winner[k].high);
    put_seconds(t, &first, seconds, ait_contest_times(&d->contest, k, seconds));
    ait_text_printf(t, "}");
  }
  ait_text_printf(t, "]}");
}

static void put_checks(ait_text *t, const ait_tune_cases *cases) {
  ait_text_printf(t, "{");
  bool first = true;
  ait_put_string(t, &first, "oracle", cases->double_precision ? "reference in double precision" : "reference in the model's precision");
  if (*cases->why) ait_put_string(t, &first, "why_not_double", cases->why);
  ait_text_printf(t, ", \"cases\": [");
  for (size_t i = 0; i < cases->count; ++i) {
    bool f = true;
    ait_text_printf(t, "%s{", i ? ", " : "");
    ait_put_string(t, &f, "label", cases->items[i].label);
    ait_put_string(t, &f, "shapes", cases->items[i].shapes);
    ait_text_printf(t, "}");
  }
  ait_text_printf(t, "], \"outputs\": [");
  for (size_t k = 0; k < cases->output_count; ++k) {
    const ait_tune_output *o = &cases->outputs[k];
    bool f = true;
    ait_text_printf(t, "%s{", k ? ", " : "");
    ait_put_string(t, &f, "name", o->name);
    ait_put_bool(t, &f, "exact", o->exact);
    put_number(t, &f, "noise", o->noise);
    put_number(t, &f, "max_abs", o->max_abs);
    put_number(t, &f, "atol", o->atol);
    put_number(t, &f, "rtol", o->rtol);
    ait_text_printf(t, "}");
  }
  ait_text_printf(t, "]}");
}

/* Versions of what a plan may run on. */
static void put_backends(ait_text *t, bool *first) {
  ait_put_key(t, first, "backends");
  ait_text_printf(t, "[");
  for (size_t i = 0, n = 0; i < ait_backend_count(); ++i) {
    ait_probe probe = {0};
    bool f = true;
    ait_backend_at(i)->probe(&probe);
    if (!probe.available) continue;
    ait_text_printf(t, "%s{", n++ ? ", " : "");
    ait_put_string(t, &f, "name", ait_backend_at(i)->name);
    ait_put_string(t, &f, "version", probe.version);
    ait_text_printf(t, "}");
  }
  ait_text_printf(t, "]");
}

static void put_environment(ait_text *t, const ait_tune_options *o, const ait_watch_result *machine) {
  char names[256], kernel[140];
  struct utsname system = {0};
  bool first = true;
  ait_cpu_names(ait_cpu_features(), names, sizeof names);
  uname(&system);
  snprintf(kernel, sizeof kernel, "%s %s", system.sysname, system.release);
  ait_text_printf(t, "{");
  ait_put_string(t, &first, "cpu", ait_cpu_model());
  ait_put_string(t, &first, "features", names);
  ait_put_int(t, &first, "cores", ait_cpu_count());
  ait_put_int(t, &first, "threads", o->threads > 0 ? o->threads : ait_cpu_count());
  ait_put_string(t, &first, "governor", machine->governor);
  ait_put_string(t, &first, "kernel", kernel);
  ait_put_string(t, &first, "libc", gnu_get_libc_version());
  ait_put_string(t, &first, "compiler", __VERSION__);
  ait_put_string(t, &first, "ait", ait_version());
  ait_put_string(t, &first, "build", ait_build_id());
  put_backends(t, &first);
  ait_text_printf(t, "}");
}

/* The baseline against itself. */
static void put_noise(ait_text *t, const ait_decision *d) {
  bool first = true;
  ait_text_printf(t, "{");
  ait_put_bool(t, &first, "measured", d->has_noise);
  if (d->has_noise) {
    put_number(t, &first, "floor", d->floor);
    put_number(t, &first, "bias", d->bias);
    put_number(t, &first, "ratio", d->noise_ratio.median);
    put_number(t, &first, "ratio_low", d->noise_ratio.low);
    put_number(t, &first, "ratio_high", d->noise_ratio.high);
    ait_put_int(t, &first, "rounds", d->noise.rounds);
    ait_put_int(t, &first, "dropped", d->noise.dropped);
    ait_put_key(t, &first, "seconds");
    for (uint32_t k = 0; k < 2; ++k) {
      bool f = true;
      ait_text_printf(t, "%s{", k ? ", " : "[");
      put_seconds(t, &f, &d->noise.times[k * AIT_CONTEST_ROUNDS], d->noise.rounds);
      ait_text_printf(t, "}");
    }
    ait_text_printf(t, "]");
  }
  ait_text_printf(t, "}");
}

/* What is not known is absent. */
static void put_known(ait_text *t, bool *first, const char *key, double v, bool known) {
  if (known) put_number(t, first, key, v);
}

static void put_machine(ait_text *t, const ait_watch_result *w) {
  bool first = true;
  char text[192];
  ait_text_printf(t, "{");
  put_number(t, &first, "watched_s", w->seconds);
  put_known(t, &first, "loop_fastest_s", w->loop_fastest, w->loop_fastest > 0);
  put_known(t, &first, "loop_slowest_s", w->loop_slowest, w->loop_slowest > 0);
  put_known(t, &first, "loop_first_s", w->loop_first, w->loop_first > 0);
  put_known(t, &first, "loop_last_s", w->loop_last, w->loop_last > 0);
  put_known(t, &first, "steal_share", w->steal_share, w->steal_share >= 0);
  put_known(t, &first, "quota_stopped_s", w->throttled, w->throttled >= 0);
  put_known(t, &first, "others_processors", w->others, w->others >= 0);
  put_known(t, &first, "hertz_first", w->hertz_first, w->hertz_first > 0);
  put_known(t, &first, "hertz_last", w->hertz_last, w->hertz_last > 0);
  put_known(t, &first, "thermal_events", (double)w->thermal_events, w->thermal_events >= 0);
  ait_put_int(t, &first, "involuntary_switches", w->involuntary);
  ait_put_key(t, &first, "warnings");
  ait_text_printf(t, "[");
  for (int k = 0, n = 0; k < AIT_WATCH_KINDS; ++k) {
    ait_watch_warning(w, (ait_watch_kind)k, text, sizeof text);
    if (!*text) continue;
    ait_text_printf(t, "%s", n++ ? ", " : "");
    ait_text_json_string(t, text, strlen(text));
  }
  ait_text_printf(t, "]}");
}

ait_status ait_report_json(const ait_trial_context *x, const ait_goal *goal, const ait_candidates *list, const ait_decision *d,
                           const ait_evidence *evidence, const ait_watch_result *machine, const ait_shapes *shapes, ait_text *t) {
  bool first = true;
  ait_text_printf(t, "{\n  ");
  ait_put_int(t, &first, "format", 1);
  ait_put_string(t, &first, "model", x->raw->name);
  ait_put_string(t, &first, "producer", x->raw->producer);
  ait_put_string(t, &first, "strategy", goal->objective->text);
  ait_put_string(t, &first, "winner", d->winner >= 0 ? list->items[d->winner].name : "");
  ait_put_string(t, &first, "baseline", d->baseline >= 0 ? list->items[d->baseline].name : "");
  put_number(t, &first, "speedup", d->speedup);
  put_number(t, &first, "speedup_low", d->speedup_low);
  put_number(t, &first, "speedup_high", d->speedup_high);
  if (d->speedup_rounds) ait_put_int(t, &first, "speedup_rounds", d->speedup_rounds);
  ait_put_string(t, &first, "best_single", d->single >= 0 ? list->items[d->single].name : "");
  put_number(t, &first, "time_over_single", d->over_single.count ? d->over_single.median : NAN);
  put_number(t, &first, "time_over_single_low", d->over_single.count ? d->over_single.low : NAN);
  put_number(t, &first, "time_over_single_high", d->over_single.count ? d->over_single.high : NAN);
  ait_put_int(t, &first, "seed", (int64_t)x->options->seed);
  put_number(t, &first, "budget_s", x->options->budget_seconds);
  ait_put_int(t, &first, "weight_bytes", (int64_t)ait_graph_weight_bytes(x->raw));
  ait_text_printf(t, ",\n  \"environment\": ");
  put_environment(t, x->options, machine);
  ait_text_printf(t, ",\n  \"machine\": ");
  put_machine(t, machine);
  ait_text_printf(t, ",\n  \"noise\": ");
  put_noise(t, d);
  ait_text_printf(t, ",\n  \"checks\": ");
  put_checks(t, x->cases);
  ait_text_printf(t, ",\n  \"candidates\": [");
  for (size_t i = 0; i < list->count; ++i) put_candidate(t, list, i, d);
  ait_text_printf(t, "],\n  \"contest\": ");
  put_contest(t, list, d);
  if (shapes) {
    ait_text_printf(t, ",\n  \"shapes\": ");
    ait_shapes_put(t, x, list, shapes);
  }
  AIT_TRY(ait_goal_put(t, x, goal, list, d));
  AIT_TRY(ait_evidence_put(t, x, list, evidence));
  ait_text_printf(t, "\n}\n");
  return t->failed ? AIT_OOM() : AIT_OK;
}
