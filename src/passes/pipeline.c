/* Runs pipelines, verifying after each pass. */
#include "passes/passes.h"

static const ait_pass passes[] = {
#define AIT_PASS(function, name, changes, help) {name, help, ait_pass_##function, (changes) != 0, (int)(changes) == AIT_PASS_LOSSY},
#define AIT_PIPELINE(name, passes, help)
#include "passes/passes.inc"
#undef AIT_PASS
#undef AIT_PIPELINE
};
static const struct {
  const char *name, *passes;
} pipelines[] = {
#define AIT_PASS(function, name, changes, help)
#define AIT_PIPELINE(name, passes, help) {name, passes},
#include "passes/passes.inc"
#undef AIT_PASS
#undef AIT_PIPELINE
};

size_t ait_pass_count(void) { return AIT_COUNT(passes); }
const ait_pass *ait_pass_at(size_t i) { return i < AIT_COUNT(passes) ? &passes[i] : NULL; }

const ait_pass *ait_pass_find(const char *name) {
  for (size_t i = 0; i < AIT_COUNT(passes); ++i)
    if (!strcmp(passes[i].name, name)) return &passes[i];
  return NULL;
}

typedef struct run {
  ait_graph *graph;
  const ait_pass_context *context;
  void (*after)(void *ctx, const char *pass, const ait_graph *graph);
  void *after_ctx;
} run;

static ait_status run_pass(const run *r, const ait_pass *pass) {
  bool changed = false;
  ait_status status = pass->run(r->graph, r->context, &changed);
  if (status == AIT_OK) status = ait_graph_verify(r->graph);
  if (status != AIT_OK) return ait_error_context(status, "pass '%s'", pass->name);
  if (r->after) r->after(r->after_ctx, pass->name, r->graph);
  return AIT_OK;
}

static ait_status run_list(const run *r, const char *list) {
  char name[64];
  for (const char *p = list; *p;) {
    size_t n = strcspn(p, ",");
    const ait_pass *pass = NULL;
    const char *pipeline = NULL;
    if (n < sizeof name) {
      memcpy(name, p, n);
      name[n] = 0;
      pass = ait_pass_find(name);
      for (size_t i = 0; i < AIT_COUNT(pipelines); ++i)
        if (!strcmp(pipelines[i].name, name)) pipeline = pipelines[i].passes;
    }
    if (pass) AIT_TRY(run_pass(r, pass));
    else if (pipeline && list != pipeline) AIT_TRY(run_list(r, pipeline)); /* pipelines hold passes only: one level */
    else
      return ait_error_hint(ait_error(AIT_CODE_INVALID_ARGUMENT, "there is no pass or pipeline '%.*s'", (int)n, p),
                            "'ait opt --list' shows them");
    p += n;
    p += *p == ',';
  }
  return AIT_OK;
}

ait_status ait_passes_run(ait_graph *graph, const char *pipeline, const ait_pass_context *context,
                          void (*after)(void *ctx, const char *pass, const ait_graph *graph), void *after_ctx) {
  run r = {graph, context, after, after_ctx};
  return run_list(&r, pipeline);
}
