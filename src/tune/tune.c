/* ait_tune: the way from a model and samples to a sealed file. tuner.h says where the rest of it is. */
#include "artifact/signature.h"
#include "tune/code_id.h"
#include "tune/put_json.h"
#include "tune/report.h"
#include "tune/seal.h"
#include "tune/tuner.h"
#include <stdio.h>

void ait_tune_options_init(ait_tune_options *options) {
  *options = (ait_tune_options){.struct_size = sizeof *options,
                                .allocator = ait_allocator_default(),
                                .budget_seconds = 60,
                                .trial_seconds = 120,
                                .cpu_mask = UINT64_MAX};
}

/* ---- progress --------------------------------------------------------------------------------------------------------------------*/
void ait_tuner_tell(ait_tuner *t, const char *line) {
  if (!t->options.progress) return;
  ait_tune_progress p = {.phase = t->phase,
                         .candidate = t->current ? t->current : "",
                         .done = t->done,
                         .total = t->total,
                         .seconds = ait_clock_seconds() - t->start,
                         .budget_seconds = t->options.budget_seconds,
                         .line = line};
  t->options.progress(t->options.progress_ctx, &p);
}
static void idle(void *ctx) { ait_tuner_tell(ctx, NULL); }

bool ait_tuner_cancelled(const ait_tuner *t) { return t->options.cancel && *t->options.cancel; }

/* Profiles of the winner and of the baseline take about as long as their trials did; the roofline is half a second. */
static double evidence_seconds(const ait_tuner *t) {
  double longest = 0, baseline = 0, most = 0.3 * t->options.budget_seconds;
  for (size_t i = 0; i < t->list.count; ++i) {
    const ait_candidate *c = &t->list.items[i];
    double wall = c->median > 0 ? c->result.wall_seconds + 0.3 : 0;
    if (c->baseline && wall > baseline) baseline = wall;
    if (!c->baseline && wall > longest) longest = wall;
  }
  double seconds = longest + baseline + 0.5;
  return seconds < most ? seconds : most;
}

double ait_tuner_left(const ait_tuner *t, double share) {
  return share * (t->options.budget_seconds - evidence_seconds(t)) - (ait_clock_seconds() - t->start);
}

/* ---- keys ------------------------------------------------------------------------------------------------------------------------*/
/* Everything that a trial's result depends on but the candidate itself. */
static ait_status make_key(ait_tuner *t) {
  ait_text text;
  ait_text_init(&text, ait_allocator_default());
  ait_status status = ait_graph_print(t->raw, &text);
  uint64_t model = status == AIT_OK ? ait_hash(text.data, text.length, 1 + ait_code_id_of_operators(text.data)) : 0;
  ait_text_deinit(&text);
  for (size_t i = 0; t->raw->weights && i < ait_weight_store_storage_count(t->raw->weights); ++i) {
    ait_storage *s = ait_weight_store_storage(t->raw->weights, (uint32_t)i);
    model = ait_hash(ait_storage_data(s), ait_storage_bytes(s), model);
  }
  char machine[600], names[256], limits[160];
  ait_cpu_names(ait_cpu_features() & t->options.cpu_mask, names, sizeof names);
  snprintf(machine, sizeof machine, "%s|%s|%d|%s", ait_cpu_model(), names, ait_cpu_count(), ait_build_id());
  t->machine = ait_hash(machine, strlen(machine), 2);
  snprintf(limits, sizeof limits, "%g|%g|%g|%llu", t->options.rtol, t->options.atol, t->options.trial_seconds,
           (unsigned long long)t->options.trial_bytes);
  snprintf(t->key, sizeof t->key, "%016llx-%016llx-%016llx", (unsigned long long)model, (unsigned long long)ait_tune_cases_hash(&t->cases),
           (unsigned long long)ait_hash(limits, strlen(limits), t->machine));
  return status;
}

/* ---- all of it -------------------------------------------------------------------------------------------------------------------*/
/* Better to hear it before the tuning than after. */
static ait_status check_writable(const char *path) {
  ait_file_writer *writer;
  AIT_TRY(ait_file_writer_create(ait_allocator_default(), path, &writer));
  ait_file_writer_destroy(writer); /* the file is as it was */
  return AIT_OK;
}

static ait_status check_signer(const ait_tune_options *options) {
  ait_private_key key;
  if (!options->sign_key) return AIT_OK;
  AIT_TRY(ait_private_key_find(options->keys, options->sign_key, &key));
  ait_private_key_wipe(&key);
  return AIT_OK;
}

/* An .ait is kept open: what it holds beside the model goes into the new file, too. */
static ait_status open_source(ait_tuner *t, const char *model_path) {
  ait_file_kind kind;
  AIT_TRY(ait_import_detect(model_path, &kind));
  ait_artifact_open_options open = {.keys = t->options.keys};
  return kind == AIT_FILE_AIT ? ait_artifact_open(ait_allocator_default(), model_path, &open, &t->source) : AIT_OK;
}

static ait_status run(ait_tuner *t, const char *model_path, const char *out_path, const ait_sample *samples, size_t sample_count,
                      char **out_report) {
  ait_load_options load;
  ait_load_options_init(&load);
  load.model_name = t->options.model_name;
  load.weights = t->options.weights;
  AIT_TRY(ait_tuner_open_objective(t));
  if (t->options.regions && strcmp(t->options.regions, "auto") && strcmp(t->options.regions, "modules") &&
      strcmp(t->options.regions, "whole"))
    return ait_error_hint(ait_error(AIT_CODE_INVALID_ARGUMENT, "there are no regions '%s'", t->options.regions), "auto, modules, whole");
  AIT_TRY(ait_candidates_create(&t->options, t->objective.kind, t->threads, &t->list));
  t->phase = "import";
  AIT_TRY(ait_graph_open(model_path, &load, &t->raw));
  AIT_TRY(open_source(t, model_path));
  AIT_TRY(ait_graph_check_operators(t->raw));
  AIT_TRY(ait_graph_region(t->raw, ait_allocator_default(), &t->region));
  if (out_path) AIT_TRY(check_writable(out_path));
  AIT_TRY(check_signer(&t->options));
  if (t->options.append) AIT_TRY(ait_append_open(out_path, t->options.keys, t->raw, t->region, &t->base));
  if (t->base && ait_artifact_signature(t->base).state != AIT_SIGNATURE_UNSIGNED && !t->options.sign_key)
    ait_tuner_tell(t, "note: the file was signed; with another plan in it, it is not (--sign KEY signs it again)");
  AIT_TRY(ait_tuner_open_record(t));
  AIT_TRY(ait_tune_cases_create(t->raw, samples, sample_count, t->options.buckets, &t->cases));
  AIT_TRY(ait_tuner_check_objective(t));
  AIT_TRY(make_key(t));
  t->start = ait_clock_seconds();
  AIT_TRY(ait_tuner_recall_oracle(t));
  ait_watch_start(&t->watch);
  t->x = (ait_trial_context){
      .raw = t->raw, .region = t->region, .cases = &t->cases, .options = &t->options, .tried = &t->list, .idle = idle, .idle_ctx = t};
  ait_tuner_recall_finished(t);
  ait_tuner_find_kin(t);
  AIT_TRY(ait_tuner_measure_noise(t));
  AIT_TRY(ait_tuner_try_all(t));
  AIT_TRY(ait_tuner_try_mixed(t));
  AIT_TRY(ait_tuner_pursue(t));
  ait_tuner_remember_finished(t);
  AIT_TRY(ait_tuner_decide(t));
  ait_tuner_remember_kin(t);
  AIT_TRY(ait_tuner_shapes(t));
  ait_tuner_end_watch(t);
  AIT_TRY(ait_tuner_gather_evidence(t));
  ait_text report;
  ait_text_init(&report, ait_allocator_default());
  ait_status status = ait_report_json(&t->x, &t->goal, &t->list, t->decision, &t->evidence, &t->watch.result, t->shapes, &report);
  t->phase = "seal";
  ait_tuner_tell(t, NULL);
  if (status == AIT_OK && t->decision->winner >= 0 && out_path)
    status = ait_seal(&t->x, &t->list, t->shapes, report.data, t->base, t->source, out_path);
  if (status == AIT_OK && t->decision->winner < 0) status = ait_tuner_nothing_valid(t);
  if (!out_report) return ait_text_deinit(&report), status;
  return ait_status_join(status, ait_put_finish(&report, out_report));
}

ait_status ait_tune(const char *model_path, const char *out_path, const ait_sample *samples, size_t sample_count,
                    const ait_tune_options *options, char **out_report) {
  ait_tuner t = {.phase = "start", .start = ait_clock_seconds()};
  ait_tune_options_init(&t.options);
  if (options) memcpy(&t.options, options, options->struct_size < sizeof t.options ? options->struct_size : sizeof t.options);
  if (t.options.budget_seconds <= 0) t.options.budget_seconds = 60;
  if (t.options.trial_seconds <= 0) t.options.trial_seconds = 120;
  if (out_report) *out_report = NULL;
  t.threads = t.options.threads > 0 ? t.options.threads : ait_cpu_count();
  t.decision = ait_alloc_zero(ait_allocator_default(), sizeof *t.decision, _Alignof(ait_decision));
  ait_status status = t.decision ? run(&t, model_path, out_path, samples, sample_count, out_report) : AIT_OOM();
  ait_free(ait_allocator_default(), t.decision, sizeof *t.decision);
  ait_evidence_deinit(&t.evidence);
  ait_free(ait_allocator_default(), t.shapes, sizeof *t.shapes);
  ait_goal_deinit(&t.goal);
  ait_record_close(t.record);
  ait_artifact_release(t.base);
  ait_artifact_release(t.source);
  ait_candidates_deinit(&t.list);
  ait_tune_cases_deinit(&t.cases);
  ait_graph_region_destroy(ait_allocator_default(), t.region);
  ait_graph_destroy(t.raw);
  return ait_file_context(status, "tune", model_path);
}
