/* Perplexity of a text. */
#include "llm/evaluate.h"
#include "llm/engine.h"
#include <math.h>

enum { CHUNK = 64 }; /* tokens of a step, and rows of logits: a whole window's would be hundreds of megabytes */

typedef struct evaluation {
  const lm_evaluation *what;
  const ait_lm_info *info;
  ait_lm_context *context;
  int32_t *pages; /* 0, 1, 2 … */
  int32_t page_count;
  float *logits;
  int32_t tokens[CHUNK], rows[CHUNK];
} evaluation;

/* Steps of one window; adds what its tokens cost. */
static ait_status run_window(evaluation *v, const int32_t *tokens, int64_t count, ait_perplexity *out) {
  bool begin = v->info->bos >= 0;
  int64_t all = count + begin;
  for (int64_t past = 0; past + 1 < all; past += CHUNK) {
    int32_t n = (int32_t)(all - 1 - past < CHUNK ? all - 1 - past : CHUNK); /* nothing follows the last token */
    ait_lm_sequence s = {.count = n, .past = (int32_t)past, .page_count = v->page_count};
    s.is_long = v->info->switch_at > 0 && all > v->info->switch_at;
    for (uint32_t g = 0; g < v->info->group_count; ++g) s.pages[g] = v->pages;
    for (int32_t i = 0; i < n; ++i) {
      int64_t at = past + i - begin;
      v->tokens[i] = at < 0 ? (int32_t)v->info->bos : tokens[at];
      v->rows[i] = i;
    }
    ait_lm_batch b = {
        .tokens = v->tokens, .token_count = n, .sequences = &s, .sequence_count = 1, .rows = v->rows, .row_count = n, .logits = v->logits};
    AIT_TRY(ait_lm_run(v->context, &b));
    for (int32_t i = 0; i < n; ++i) {
      int32_t next = tokens[past + i + 1 - begin];
      out->nll -= (double)lm_logprobs(v->logits + (int64_t)i * v->info->vocab, v->info->vocab, next, NULL, 0);
      out->tokens++;
    }
  }
  out->windows++;
  return AIT_OK;
}

static ait_status run_windows(evaluation *v, const ait_token_list *tokens, int64_t window, ait_perplexity *out) {
  int64_t total = (int64_t)tokens->count;
  for (int64_t at = 0; at < total; at += window) {
    if (v->what->progress) v->what->progress(v->what->ctx, at, total);
    AIT_TRY(run_window(v, tokens->ids + at, total - at < window ? total - at : window, out));
  }
  return AIT_OK;
}

static ait_status open_evaluation(evaluation *v, int64_t window) {
  ait_allocator a = ait_allocator_default();
  int64_t length = window + 1, page = v->info->page_size > 0 ? v->info->page_size : length;
  ait_lm_context_options o = {
      .allocator = a, .threads = v->what->threads, .max_tokens = CHUNK, .max_sequences = 1, .max_rows = CHUNK, .max_seq = length};
  v->page_count = (int32_t)((length + page - 1) / page);
  v->pages = ait_alloc(a, (size_t)v->page_count * sizeof *v->pages, 16);
  v->logits = ait_alloc(a, CHUNK * (size_t)v->info->vocab * sizeof *v->logits, 64);
  if (!v->pages || !v->logits) return AIT_OOM();
  for (int32_t i = 0; i < v->page_count; ++i) v->pages[i] = i;
  return ait_lm_context_create(v->what->lm, &o, &v->context);
}

static ait_status evaluate(evaluation *v, const ait_token_list *tokens, ait_perplexity *out) {
  int64_t most = v->info->max_seq - 1, window = v->what->window > 0 ? v->what->window : 511;
  if (window > most) window = most;
  if (!v->info->cached)
    return ait_error_hint(ait_error(AIT_CODE_UNSUPPORTED, "the model was deployed without caches"), "ait deploy without --allow-unmatched");
  AIT_TRY(open_evaluation(v, window));
  return run_windows(v, tokens, window, out);
}

ait_status lm_perplexity(const lm_evaluation *what, ait_perplexity *out) {
  ait_allocator a = ait_allocator_default();
  ait_token_list tokens = {.allocator = a};
  evaluation v = {.what = what, .info = ait_lm_describe(what->lm)};
  *out = (ait_perplexity){0};
  double start = ait_clock_seconds();
  if (v.info->has_source) return ait_error(AIT_CODE_UNSUPPORTED, "the model has an encoder: there is no perplexity of a text alone");
  if (!what->tokenizer) return ait_error(AIT_CODE_INVALID_ARGUMENT, "the file has no tokenizer");
  ait_status status = ait_tokenizer_encode(what->tokenizer, what->text, what->size, 0, &tokens);
  if (status == AIT_OK && tokens.count < 2) status = ait_error(AIT_CODE_INVALID_ARGUMENT, "the text has %zu tokens", tokens.count);
  if (status == AIT_OK) status = evaluate(&v, &tokens, out);
  out->perplexity = out->tokens > 0 ? exp(out->nll / (double)out->tokens) : 0;
  out->bits_per_byte = out->nll / log(2) / (double)what->size;
  out->seconds = ait_clock_seconds() - start;
  ait_token_list_deinit(&tokens);
  ait_lm_context_destroy(v.context);
  ait_free(a, v.pages, (size_t)v.page_count * sizeof *v.pages);
  ait_free(a, v.logits, CHUNK * (size_t)v.info->vocab * sizeof *v.logits);
  return status;
}

ait_status ait_llm_perplexity(ait_llm *llm, const char *text, size_t size, int64_t window, int32_t threads,
                              void (*progress)(void *ctx, int64_t done, int64_t total), void *ctx, ait_perplexity *out) {
  const lm_evaluation what = {.lm = lm_of(llm),
                              .tokenizer = ait_llm_tokenizer(llm),
                              .text = text,
                              .size = size,
                              .window = window,
                              .threads = threads,
                              .progress = progress,
                              .ctx = ctx};
  return lm_perplexity(&what, out);
}
