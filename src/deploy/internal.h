/* Between the files of the deploy room. One run of `ait deploy` works on one core graph; everything here belongs to one thread. */
#ifndef AIT_SRC_DEPLOY_INTERNAL_H
#define AIT_SRC_DEPLOY_INTERNAL_H

#include "artifact/artifact.h"
#include "backends/reference/reference.h"
#include "deploy/deploy.h"
#include "passes/rewrite.h"

/* ---- eval.c: values of the graph, computed by the oracle ---------------------------------------------------------------------------
 * The graph must not change between begin and end. Values that are given cut the graph: what only they depend on is not run. */
typedef struct dep_eval {
  const ait_graph *g;
  ait_allocator a;
  ait_region *region;
  int64_t *symbols;      /* by symbol; INT64_MIN: unbound */
  ait_ref_value *values; /* by value id */
  uint8_t *state;        /* by value id: see eval.c */
  bool fp64;
} dep_eval;
ait_status dep_eval_begin(const ait_graph *g, ait_allocator a, bool fp64, dep_eval *out) AIT_MUST_USE;
void dep_eval_end(dep_eval *e);
void dep_eval_size(dep_eval *e, const char *symbol, int64_t value);
/* The value is this tensor from now on (a reference is taken). */
ait_status dep_eval_give(dep_eval *e, uint32_t value, const ait_tensor *tensor) AIT_MUST_USE;
/* Random floats in (-scale, scale), or (-scale, 0), of the value's dtype (float64 in fp64 mode) and its shape under the sizes set. */
ait_status dep_eval_give_random(dep_eval *e, uint32_t value, uint64_t seed, double scale, bool negative) AIT_MUST_USE;
/* *out: borrowed, until dep_eval_forget or the end. Errors: those of the oracle; unsupported where an input is not given. */
ait_status dep_eval_run(dep_eval *e, uint32_t value, ait_tensor *out) AIT_MUST_USE;
/* Drops everything that was given or computed: for other sizes. */
void dep_eval_forget(dep_eval *e);
/* Shape of the value under the sizes set; false when it is not known. */
bool dep_eval_shape(const dep_eval *e, uint32_t value, int64_t out[AIT_MAX_RANK]);
/* Largest |a - b| over the largest |b| (at least 1e-30), as doubles; INFINITY when shapes or NaNs differ. */
double dep_difference(const ait_tensor *a, const ait_tensor *b);

/* ---- the work -------------------------------------------------------------------------------------------------------------------------*/
typedef enum dep_kind {
  DEP_FIXED,  /* depends neither on sizes nor on tokens */
  DEP_SIZED,  /* depends on sizes only: positions, masks */
  DEP_TOKEN,  /* one token axis: element i depends on token i, and its position */
  DEP_SCORES, /* two: queries along `dim`, keys along `keys` */
  DEP_MIXED,  /* tokens are mixed in a way that is not understood */
} dep_kind;

typedef struct dep_label {
  dep_kind kind;
  int32_t dim, keys;
  int64_t inner;        /* TOKEN: dimension `dim` is [outer, tokens, inner] */
  const ait_node *node; /* MIXED: the first node that mixes */
  const char *why;      /* MIXED: literal text */
} dep_label;

typedef struct dep_group {
  ait_lm_kind kind;
  int64_t window;
  uint32_t layers;
  uint32_t table; /* pages: the graph input */
} dep_group;

typedef struct dep_state {
  char *name; /* of the graph input */
  uint32_t group;
} dep_state;

/* What a term of a mask does to the scores. */
typedef enum dep_term_role {
  DEP_TERM_ADDED, /* floats: added; truth values: the keys that are dropped */
  DEP_TERM_KEEPS, /* truth values: the keys that are kept. Floats: added */
  DEP_TERM_GATE,  /* floats 0 and 1 by which probabilities are multiplied before they are made to sum to one */
  DEP_TERM_UNIT,  /* floats by which scores are multiplied: 1 wherever a key is seen */
} dep_term_role;

typedef struct dep_term {
  uint32_t value; /* depends on sizes only */
  dep_term_role role;
  double factor; /* by which a float that is added is multiplied */
} dep_term;
enum { DEP_MAX_TERMS = 8 };

/* An attention as it was found in the graph. */
typedef struct dep_found {
  dep_kind scores;  /* what its scores are: DEP_SCORES, or DEP_TOKEN where the keys come from an encoder */
  uint32_t q, k, v; /* k: [.., keys, width] once transposed back */
  bool k_is_transposed;
  double scale, cap;
  dep_term terms[DEP_MAX_TERMS];
  uint32_t term_count;
  bool causal;
  uint32_t sinks; /* value that holds one number a head; AIT_NO_INDEX */
} dep_found;

typedef struct dep_mask_memo {
  dep_term terms[DEP_MAX_TERMS];
  uint32_t count;
  bool good, causal;
  int64_t window;
  double *slopes;
  float *bias;       /* [heads, distances]: a bias by distance that is not linear; NULL: slopes say all */
  int64_t distances; /* the last one counts for all that are farther */
  int64_t heads;
  char why[160];
} dep_mask_memo;

typedef struct dep_work {
  ait_graph *g;
  ait_allocator a;
  ait_arena arena;
  const ait_deploy_options *options;
  ait_pass_context context;
  uint32_t tokens;         /* the graph input of token ids [1, T] */
  const char *tokens_name; /* symbol of T */
  uint32_t positions;      /* int64 [T]; AIT_NO_INDEX until needed */
  uint32_t places;         /* int64 [T]: rows of tables that long sequences exchange; AIT_NO_INDEX until needed */
  int64_t switch_at;       /* the longest sequence that has the first of the two; 0: there are none */
  uint32_t sequences;      /* int32 [S, 4] */
  uint32_t rows;           /* int64 [R] */
  dep_label *labels;       /* by value id */
  size_t label_capacity;
  int64_t max_seq, page_size;
  bool uncached;
  bool told; /* the source says how long sequences may be */
  dep_group groups[AIT_LM_MAX_GROUPS];
  uint32_t group_count;
  dep_state *states;
  size_t state_count, state_capacity;
  dep_mask_memo *masks;
  size_t mask_count, mask_capacity;
  uint32_t layers, tables;
  /* models with an encoder */
  uint32_t source;         /* the graph input of the encoder; AIT_NO_INDEX: none */
  const char *source_name; /* symbol of its length; NULL: fixed */
  int64_t max_source;      /* longest input of the encoder */
  int64_t memory_room;     /* rows of keys that this makes */
  int64_t source_vocab;    /* token ids are below it; 0: the input holds no ids */
  ait_graph *encoder;      /* its input to keys and values [G, S, d] of each layer; owned */
  char near[256];          /* why the latest candidate did not match */
} dep_work;

/* source.c. Errors name the file: not-found, io, invalid-model, incompatible. */
ait_status dep_source_open(ait_allocator a, const char *path, dep_source *out) AIT_MUST_USE;
void dep_source_close(dep_source *source);
ait_status dep_read_text(dep_source *source, const char *path, const char **out, size_t *out_size) AIT_MUST_USE;

/* graph.c: ids below which a value must be: the fewest rows of a table that it is looked up in; INT32_MAX: there is none. */
int64_t dep_rows_of_table(const ait_graph *g, uint32_t ids);
/* deploy.c: passes by name over the graph that is worked on; labels of new values are missing then. */
ait_status dep_run_passes(dep_work *w, const char *passes) AIT_MUST_USE;
/* deploy.c: a line for options->note. */
void dep_tell(const dep_work *w, const char *format, ...) AIT_PRINTF(2, 3);

/* plan.c: one or two graphs (the second: what runs once for each request) as plans with shared weights, a model in memory, a file. */
typedef struct dep_part {
  ait_graph *g; /* borrowed; of part 0 the work's own */
  ait_region *region;
  ait_plan plan;
} dep_part;
typedef struct dep_sealing {
  dep_work *w;
  dep_part parts[2];
  uint32_t part_count;
  ait_weight_store *weights; /* those that the graphs read */
  const char *section_name;  /* "llm.json" */
  const char *deploy_json;   /* into the manifest under "deploy"; NULL: nothing */
  ait_file_map *draft;       /* a file that becomes an entry, owned; NULL: none */
  ait_text section, second;  /* its text, written by the caller; the second graph, encoded */
} dep_sealing;
void dep_sealing_init(dep_sealing *s, dep_work *w, const char *section_name);
void dep_sealing_deinit(dep_sealing *s);
ait_status dep_sealing_plan(dep_sealing *s) AIT_MUST_USE;                   /* from the graphs as they are now */
ait_status dep_sealing_model(dep_sealing *s, ait_model **out) AIT_MUST_USE; /* reads from s as long as it lives */
ait_status dep_sealing_write(dep_sealing *s, const dep_source *source, const char *path) AIT_MUST_USE;
ait_status dep_sealing_report(const dep_sealing *s, char **out) AIT_MUST_USE; /* the section, for ait_string_free */

/* draft.c: the file of options->draft, which fits a model of so many tokens; *out NULL: none is wanted. */
ait_status dep_draft_open(dep_work *w, const char *out_path, int64_t vocab, ait_file_map **out) AIT_MUST_USE;

/* embed.c: an encoder of texts as it is. */
ait_status dep_deploy_embed(dep_work *w, dep_source *source, const char *path, char **out_json) AIT_MUST_USE;

/* seal.c: the plan, the section llm.json, the file. `original` is the lowered graph as it was, for the proof; NULL: none. */
ait_status dep_seal(dep_work *w, const dep_source *source, const ait_graph *original, const char *path, char **out_json) AIT_MUST_USE;
/* check.c: the cached model beside the original graph: whole prompts, token by token, in odd pieces. Worst differences of logits, relative
 * to the largest logit. */
typedef struct dep_check {
  int64_t length;
  double prefill, steps, pieces;
  bool same_choice;
} dep_check;
ait_status dep_compare(const ait_graph *original, ait_lm *lm, ait_allocator a, dep_check *out) AIT_MUST_USE;

/* graph.c */
ait_status dep_open(ait_allocator a, const ait_deploy_options *options, const dep_source *source, ait_graph **out) AIT_MUST_USE;
/* Every use of the symbol becomes `value`. */
ait_status dep_bind_symbol(ait_graph *g, const char *symbol, int64_t value) AIT_MUST_USE;
/* 16-bit floats become float32 everywhere, weights too: exact for the weights, and no rounding between operators. */
ait_status dep_widen(ait_graph *g) AIT_MUST_USE;
ait_status dep_add_input(dep_work *w, const char *name, ait_dtype dtype, int32_t rank, const ait_dim *shape, uint32_t *out) AIT_MUST_USE;
ait_status dep_symbol(dep_work *w, const char *name, ait_dim *out) AIT_MUST_USE;                     /* made when new: 1 or more */
ait_status dep_add_weight(dep_work *w, const char *name, ait_tensor *t, uint32_t *out) AIT_MUST_USE; /* a constant of the graph */
/* Group of that kind and window, made when new. */
ait_status dep_find_group(dep_work *w, ait_lm_kind kind, int64_t window, uint32_t *out) AIT_MUST_USE;
ait_status dep_add_state(dep_work *w, const char *name, uint32_t group, ait_dtype dtype, int32_t rank, const int64_t *shape,
                         uint32_t *out) AIT_MUST_USE; /* shape[0] is ignored: pages or slots */

/* axes.c: labels of all nodes, in order; matchers are called where nodes mix tokens and rewrite the graph. */
ait_status dep_label_graph(dep_work *w) AIT_MUST_USE;
ait_status dep_label_all(dep_work *w) AIT_MUST_USE; /* without matching */
ait_status dep_label_node(dep_work *w, const ait_node *n) AIT_MUST_USE;
ait_status dep_grow_labels(dep_work *w) AIT_MUST_USE; /* one for each value of the graph */
static inline bool data_kind(dep_kind k) { return k == DEP_TOKEN || k == DEP_SCORES || k == DEP_MIXED; }
bool dep_is_sized_dim(const ait_graph *g, ait_dim d, const char *symbol);

/* positions.c: what depends on sizes and is read by nodes of tokens becomes a table looked up by position. */
ait_status dep_place_tables(dep_work *w) AIT_MUST_USE;
/* The longest sequence, of max_seq and its halves, for which all of them can be computed. */
ait_status dep_reach(dep_work *w, int64_t *out) AIT_MUST_USE;

/* attention.c. n: a product of scores and values, or a fused attention. *out_matched false: dep_work.near says why. */
ait_status dep_match_attention(dep_work *w, ait_node *n, bool *out_matched) AIT_MUST_USE;
/* What stands before the product of probabilities and values n, or in a fused attention; false: w->near says why it is none. */
bool dep_read_attention(dep_work *w, const ait_node *n, dep_found *out);
ait_status dep_label_from(dep_work *w, ait_node *after, const ait_node *end) AIT_MUST_USE; /* nodes between them */
/* memory.c: attention over what an encoder gave. Labels must be there; they are stale after. Sets w->encoder. */
ait_status dep_match_memory(dep_work *w) AIT_MUST_USE;
/* masks.c: what the terms, at most DEP_MAX_TERMS, make of the scores. `causal`: the fused operator's own flag. */
ait_status dep_read_mask(dep_work *w, const dep_term *terms, uint32_t count, bool causal, dep_mask_memo **out) AIT_MUST_USE;
/* mask_grid.c: the mask on a grid of queries and keys. */
typedef struct dep_grid {
  int64_t points, heads;
  const int64_t *at; /* [points], ascending: positions of queries and of keys; NULL: 0, 1, … */
  float *bias;       /* [heads, points, points]; -INFINITY: masked */
  size_t bytes;
} dep_grid;
static inline int64_t dep_grid_at(const dep_grid *m, int64_t i) { return m->at ? m->at[i] : i; }
/* points, heads and at are given. *good false: its shape or its values are not understood. */
ait_status dep_grid_fill(dep_work *w, const dep_term *terms, uint32_t count, bool causal, dep_grid *m, bool *good) AIT_MUST_USE;
/* Are its values functions of the two positions alone, so that it can be evaluated at a few positions of a long sequence? *sources: the
 * values 0, 1, … that it is made of (arena). */
ait_status dep_grid_can_sample(dep_work *w, const dep_term *terms, uint32_t count, bool *out) AIT_MUST_USE;
/* tril and triu become comparisons of positions. */
ait_status dep_spell_triangles(dep_work *w) AIT_MUST_USE;
/* conv.c */
ait_status dep_match_conv(dep_work *w, ait_node *n, bool *out_matched) AIT_MUST_USE;
/* experts.c: products with matrices that rows choose. */
ait_status dep_match_experts(dep_work *w) AIT_MUST_USE;
/* experts_loop.c: experts that take the tokens which a condition picks, one after the other; alike but for their weights. */
ait_status dep_match_expert_loops(dep_work *w, bool *out_changed) AIT_MUST_USE;
/* scan.c: the first recurrence over the tokens that is still spelled out, whatever its spelling. Labels must be there; they are stale
 * after. */
ait_status dep_match_scan(dep_work *w, bool *out_matched) AIT_MUST_USE;
ait_status dep_match_scan_operator(dep_work *w, ait_node *n, bool *out_matched) AIT_MUST_USE; /* ait.scan */
/* proof.c: for a proof, one sequence of `length` tokens in pages 0, 1, … and slot 0; pools of that size. */
ait_status dep_give_step(dep_work *w, dep_eval *e, int64_t length) AIT_MUST_USE;
/* rows.c: [T, heads, width] of a value with its tokens along one dim and its width last (*heads -1: it is not of that form), and back to
 * the shape of `like`, whose tokens lie along `dim`. */
ait_status dep_to_rows(dep_work *w, const ait_rewrite *r, uint32_t value, uint32_t *out, int64_t *heads) AIT_MUST_USE;
ait_status dep_from_rows(dep_work *w, const ait_rewrite *r, uint32_t rows, uint32_t like, int32_t dim, uint32_t *out) AIT_MUST_USE;
/* All sizes but that of skip_dim, which counts as 1; false: one is not fixed. */
bool dep_const_sizes(const ait_graph *g, uint32_t value, int32_t skip_dim, int64_t out[AIT_MAX_RANK]);
/* proof.c: new_value must equal old_value for random operands at several lengths. negative: operands that are below zero, by bits. */
ait_status dep_prove(dep_work *w, uint32_t old_value, uint32_t new_value, const uint32_t *operands, uint32_t count, uint32_t negative,
                     int64_t extra_length, bool *out_equal) AIT_MUST_USE;
/* reduce.c: tables of embeddings whose numbers are all bfloat16 are stored so, unless the options say what else: exact. */
ait_status dep_keep_tables(dep_work *w) AIT_MUST_USE;
/* Fewer bits for weights, keys and values, as the options say. *out_any false: they say nothing. Errors: invalid-argument. */
ait_status dep_reduce(dep_work *w, bool *out_any) AIT_MUST_USE;
/* Names of precisions, before any work. Errors: invalid-argument. */
ait_status dep_reduce_check(const ait_deploy_options *options) AIT_MUST_USE;
/* complex.c: products of complex numbers that are read as pairs of real ones. */
ait_status dep_spell_complex(dep_work *w) AIT_MUST_USE;
/* head.c */
/* A model that gives the logits of the last token only gives those of all. Errors: unsupported: the logits are something else. */
ait_status dep_all_rows(dep_work *w) AIT_MUST_USE;
ait_status dep_select_rows(dep_work *w) AIT_MUST_USE;

#endif
