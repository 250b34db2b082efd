/* Logits of whole prompts, and however a sequence is cut, taken back, or mixed with others: near those of float64, and each way bit for bit
 * the same. */
#include "check.h"
#include <math.h>
#include <stdlib.h>

typedef struct bench {
  ait_lm *lm;
  const ait_lm_info *info;
  ait_lm_context *context;
  const goldens *g;
  int32_t count, length, blocks; /* sequences; tokens and pages of each */
  int64_t vocab;
  int32_t *pages, *tokens, *rows;
  float *got, *first; /* [sequences, length, vocab]: of this way, of the first */
  float *out;         /* of a step */
  bool has_first;
  ait_lm_sequence sequences[64];
  ait_lm_batch batch;
  int32_t where[64]; /* row of `got` for each sequence of the batch */
} bench;

enum { JUNK = 5, EXTRA = 8 };

static void open_bench(bench *b, int32_t threads) {
  ait_lm_context_options o = {.allocator = ait_allocator_default(),
                              .threads = threads,
                              .max_tokens = b->count * (b->length + EXTRA),
                              .max_sequences = b->count,
                              .max_rows = b->count * (b->length + EXTRA)};
  for (uint32_t g = 0; g < b->info->group_count; ++g)
    o.units[g] = b->info->groups[g].kind == AIT_LM_SLOTS ? 2 * b->count : b->count * b->blocks;
  must(ait_lm_context_create(b->lm, &o, &b->context));
}

static void begin_step(bench *b) {
  b->batch = (ait_lm_batch){.tokens = b->tokens, .sequences = b->sequences, .rows = b->rows, .logits = b->out};
}

/* Tokens [past, past + count) of sequence i; junk: other tokens. */
static void add(bench *b, int32_t i, int32_t past, int32_t count, bool junk) {
  ait_lm_sequence *s = &b->sequences[b->batch.sequence_count];
  *s = (ait_lm_sequence){.first = b->batch.token_count,
                         .count = count,
                         .past = past,
                         .slot = i,
                         .page_count = b->blocks,
                         .is_long = b->info->switch_at > 0 && b->length > b->info->switch_at};
  for (uint32_t g = 0; g < b->info->group_count; ++g) s->pages[g] = b->pages + i * b->blocks;
  for (int32_t k = 0; k < count; ++k) {
    int64_t token = junk ? (7 * k + past) % b->vocab : int_at(&b->g->ids, i, past + k);
    b->tokens[b->batch.token_count + k] = (int32_t)token;
    b->rows[b->batch.token_count + k] = b->batch.token_count + k;
  }
  b->where[b->batch.sequence_count++] = junk ? -1 : i * b->length + past;
  b->batch.token_count += count;
  b->batch.row_count = b->batch.token_count;
}

static void run_step(bench *b) {
  must(ait_lm_run(b->context, &b->batch));
  for (int32_t i = 0; i < b->batch.sequence_count; ++i) {
    const ait_lm_sequence *s = &b->sequences[i];
    if (b->where[i] >= 0)
      memcpy(b->got + (int64_t)b->where[i] * b->vocab, b->out + (int64_t)s->first * b->vocab,
             (size_t)(s->count * b->vocab) * sizeof(float));
  }
}

static int32_t least(int32_t a, int32_t b) { return a < b ? a : b; }

/* ---- ways ----------------------------------------------------------------------------------------------------------------------------*/
static void in_pieces(bench *b, int32_t piece) {
  for (int32_t i = 0; i < b->count; ++i)
    for (int32_t past = 0; past < b->length; past += piece) {
      begin_step(b);
      add(b, i, past, least(piece, b->length - past), false);
      run_step(b);
    }
}

/* Each sequence starts a step after the one before it, and goes in pieces of its own size. */
static void in_a_batch(bench *b, int32_t unused) {
  AIT_UNUSED(unused);
  int32_t past[64] = {0};
  bool more = true;
  for (int32_t step = 0; more; ++step) {
    more = false;
    begin_step(b);
    for (int32_t i = 0; i < b->count; ++i) {
      int32_t piece = least(i % 3 == 0 ? 1 : 2 * i + 3, b->length - past[i]);
      more |= piece > 0;
      if (piece <= 0 || step < i) continue;
      add(b, i, past[i], piece, false);
      past[i] += piece;
    }
    if (b->batch.sequence_count) run_step(b);
  }
}

static void copy_slot(bench *b, int32_t from, int32_t to) {
  for (uint32_t g = 0; g < b->info->group_count; ++g)
    if (b->info->groups[g].kind == AIT_LM_SLOTS) must(ait_lm_copy(b->context, g, from, to));
}

/* Tokens that were proposed and refused stood there before. */
static void after_rollback(bench *b, int32_t unused) {
  AIT_UNUSED(unused);
  for (int32_t i = 0; i < b->count; ++i)
    for (int32_t past = 0, piece; past < b->length; past += piece) {
      piece = least(4, b->length - past);
      copy_slot(b, i, b->count + i);
      begin_step(b);
      add(b, i, past, least(JUNK, b->length - past), true);
      run_step(b);
      copy_slot(b, b->count + i, i);
      begin_step(b);
      add(b, i, past, piece, false);
      run_step(b);
    }
}

/* ---- judging -------------------------------------------------------------------------------------------------------------------------*/
static int judge(bench *b, const char *name) {
  int64_t n = (int64_t)b->count * b->length * b->vocab, differ = 0;
  const float *want = b->g->logits.data;
  double worst = 0;
  for (int64_t i = 0; i < n; ++i) {
    double apart = fabs((double)b->got[i] - (double)want[i]);
    worst = apart <= worst ? worst : isnan(apart) ? INFINITY : apart;
    differ += b->has_first && memcmp(&b->got[i], &b->first[i], sizeof(float)) != 0;
  }
  if (!b->has_first) memcpy(b->first, b->got, (size_t)n * sizeof(float));
  b->has_first = true;
  bool good = worst <= b->g->bound && differ == 0;
  printf("  logits, %-24s %.2g of %.2g from float64%s", name, worst, b->g->bound, good ? "\n" : "");
  if (!good) printf(": FAILED, %lld of %lld are not bit for bit those of whole prompts\n", (long long)differ, (long long)n);
  return !good;
}

int check_logits(ait_llm *llm, const goldens *g) {
  bench b = {.lm = lm_of(llm), .info = ait_lm_describe(lm_of(llm)), .g = g};
  b.count = (int32_t)g->ids.shape[0];
  b.length = (int32_t)g->ids.shape[1];
  b.vocab = g->logits.shape[2];
  if (b.vocab != b.info->vocab || b.count > 64 || b.length > b.info->max_seq) return printf("  the goldens are of another model\n"), 1;
  int32_t page = (int32_t)b.info->page_size;
  b.blocks = (b.length + EXTRA + page - 1) / page;
  size_t rows = (size_t)b.count * (size_t)(b.length + EXTRA), values = rows * (size_t)b.vocab;
  b.pages = calloc((size_t)(b.count * b.blocks), sizeof *b.pages);
  b.tokens = calloc(rows, sizeof *b.tokens), b.rows = calloc(rows, sizeof *b.rows);
  b.got = calloc(values, sizeof *b.got), b.first = calloc(values, sizeof *b.first), b.out = calloc(values, sizeof *b.out);
  for (int32_t i = 0; i < b.count * b.blocks; ++i) b.pages[i] = i % b.blocks * b.count + i / b.blocks; /* of all sequences in turn */
  const struct {
    const char *name;
    void (*run)(bench *b, int32_t piece);
    int32_t piece, threads;
  } ways[] = {{"whole prompts", in_pieces, b.length, 1}, {"token by token", in_pieces, 1, 1},
              {"pieces of a page", in_pieces, page, 1},  {"odd pieces", in_pieces, 7, 1},
              {"two threads", in_pieces, b.length, 2},   {"three threads, in pieces", in_pieces, 5, 3},
              {"in a batch", in_a_batch, 0, 2},          {"after proposals", after_rollback, 0, 1}};
  int bad = 0;
  for (size_t w = 0; w < AIT_COUNT(ways); ++w) {
    open_bench(&b, ways[w].threads);
    memset(b.got, 0xFF, values * sizeof *b.got);
    ways[w].run(&b, ways[w].piece);
    bad += judge(&b, ways[w].name);
    ait_lm_context_destroy(b.context);
  }
  free(b.pages), free(b.tokens), free(b.rows), free(b.got), free(b.first), free(b.out);
  return bad;
}
