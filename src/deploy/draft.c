/* The smaller model that proposes tokens: a deployed file, which becomes an entry of the new one as it is. */
#include "deploy/internal.h"
#include "llm/engine.h"
#include <ait/tune.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static void tell_of_draft(void *ctx, const char *line) { dep_tell(ctx, "draft: %s", line); }

/* A folder, or an exported model: deployed in the same precision, beside the file that is to be. */
static ait_status deploy_draft(dep_work *w, const char *out_path, char **out) {
  ait_deploy_options options = *w->options;
  char *json = NULL;
  *out = ait_arena_printf(&w->arena, "%s.draft-%ld.tmp", out_path, (long)getpid());
  if (!*out) return AIT_OOM();
  options.draft = options.weights = options.eval_text = NULL;
  options.eval_size = 0;
  options.note = w->options->note ? tell_of_draft : NULL;
  options.note_ctx = w;
  ait_status status = ait_deploy(w->options->draft, *out, &options, &json);
  ait_string_free(json);
  return status;
}

/* May it draft for a model of so many tokens? */
static ait_status check(dep_work *w, const char *path, int64_t vocab) {
  ait_load_options options;
  ait_llm *draft;
  ait_load_options_init(&options);
  options.allocator = w->a;
  AIT_TRY(ait_llm_load(path, &options, &draft));
  ait_status status = lm_draft_fits(ait_lm_describe(lm_of(draft)), vocab);
  if (!status && ait_llm_draft(draft)) status = ait_error(AIT_CODE_INVALID_ARGUMENT, "it brings a draft model of its own");
  ait_llm_release(draft);
  return status;
}

static ait_status open(dep_work *w, const char *out_path, int64_t vocab, ait_file_map **out) {
  const char *path = w->options->draft;
  struct stat info;
  char *made = NULL;
  if (stat(path, &info)) return ait_error(AIT_CODE_NOT_FOUND, "there is no such file or folder");
  if (w->encoder) return ait_error(AIT_CODE_UNSUPPORTED, "the model has an encoder, and no draft model works for it");
  if (w->uncached) return ait_error(AIT_CODE_UNSUPPORTED, "the model runs without caches, and nothing is proposed to it");
  ait_status status = AIT_OK;
  if (S_ISDIR(info.st_mode) || !ait_ends_with(path, ".ait")) status = deploy_draft(w, out_path, &made);
  if (!status) status = check(w, made ? made : path, vocab);
  if (!status) status = ait_file_map_open(w->a, made ? made : path, out);
  if (made) unlink(made); /* what is mapped stays */
  return status;
}

ait_status dep_draft_open(dep_work *w, const char *out_path, int64_t vocab, ait_file_map **out) {
  *out = NULL;
  return w->options->draft ? ait_error_context(open(w, out_path, vocab, out), "draft model '%s'", w->options->draft) : AIT_OK;
}
