/* Differential fuzzing of graphs: random valid graphs through every pass and backend, compared with the oracle.
 *
 * A case is a graph with a name for each input; what an input holds follows from its name alone (domains.c), so a graph saved as text can
 * be run again without anything else. The same seed gives the same graph on every machine.
 *
 * Test code: it runs out of memory by ending the process, and its functions are for one thread. */
#ifndef AIT_TESTS_GRAPH_FUZZ_H
#define AIT_TESTS_GRAPH_FUZZ_H

#include "tune/tune.h"

/* ---- random numbers ----------------------------------------------------------------------------------------------------------------*/
typedef struct gf_random {
  uint64_t state;
} gf_random;
uint64_t gf_next(gf_random *r);
static inline uint32_t gf_below(gf_random *r, uint32_t n) { return (uint32_t)((gf_next(r) >> 32) % (n ? n : 1)); }
static inline bool gf_chance(gf_random *r, uint32_t percent) { return gf_below(r, 100) < percent; }
static inline double gf_real(gf_random *r) { return (double)(gf_next(r) >> 11) * 0x1p-53; } /* [0, 1) */

void gf_must(ait_status status, const char *what); /* ends the process with the message */

/* ---- inputs (domains.c) --------------------------------------------------------------------------------------------------------------
 * "<domain><number>" or "<domain><limit>_<number>": s smooth in [-1, 1), p positive in [0.5, 2), g multiples of a quarter in [-3, 3],
 * w like g with NaN, infinities, -0 and denormals, i integers in [-9, 9], n indices in [0, limit), b any of 0 and 1. */
enum { GF_SETTINGS = 4 };
/* The input's contents for one setting of the symbols, in odd strides when `strided`. nudge: smooth values move by one unit in the last
 * place. Released by the caller. */
ait_tensor gf_contents(const char *name, ait_dtype dtype, int32_t rank, const int64_t *shape, int setting, bool strided, bool nudge);
/* Weights for every parameter, buffer and constant of the graph, in a store that the graph has for itself. */
void gf_fill_weights(ait_graph *g, bool nudge);
/* Values of the symbols: 0 what export saw, 1 the smallest, others between. false: a size is not known then, or is negative. */
void gf_symbols(const ait_region *region, int setting, int64_t *out);
bool gf_inputs(const ait_region *region, int setting, bool nudge, ait_value *out, size_t *out_count);

/* ---- generating (generate.c, recipes_core.c, recipes_raw.c) --------------------------------------------------------------------------*/
typedef struct gf_value {
  uint32_t id;
  double lo, hi;   /* floats, when nothing is NaN: a bound of the values */
  bool exact;      /* no rounding stands behind it: operators that jump may read it */
  bool contiguous; /* raw: in memory */
  bool writable;   /* raw: may be written in place */
  uint32_t root;   /* raw: index of the tensor whose memory it may share */
} gf_value;

enum { GF_MAX_VALUES = 96, GF_MAX_INPUTS = 24 };
typedef struct gf_gen {
  ait_graph *g;
  gf_random random;
  gf_value values[GF_MAX_VALUES];
  uint32_t count, input_count;
  ait_dim symbols[3];
  uint32_t symbol_count;
  ait_dtype main; /* the floating dtype that most tensors have */
  bool wild;      /* NaN and infinities: bounds mean nothing */
  bool raw;
} gf_gen;

typedef bool (*gf_recipe_fn)(gf_gen *g, const char *op); /* false: nothing fitted this time */
typedef struct gf_recipe {
  const char *op;
  gf_recipe_fn make;
  uint32_t weight; /* how often */
} gf_recipe;
extern const gf_recipe gf_core_recipes[], gf_raw_recipes[]; /* end with a NULL op */

/* `only`: every second node is this operator; NULL: all. */
ait_graph *gf_generate(uint64_t seed, const char *only);

/* Helpers of the recipes. */
enum { GF_FLOAT = 1, GF_INT = 2, GF_BOOL = 4, GF_ANY = 7, GF_EXACT = 8, GF_MODERATE = 16, GF_CONST_SHAPE = 32, GF_NONEMPTY = 64 };
const ait_value_info *gf_info(const gf_gen *g, const gf_value *v);
bool gf_fits(const gf_gen *g, const gf_value *v, uint32_t want, int32_t min_rank, int32_t max_rank);
/* An existing value, or a new input. Never NULL unless the graph is full. */
gf_value *gf_pick(gf_gen *g, uint32_t want, int32_t min_rank, int32_t max_rank);
gf_value *gf_input(gf_gen *g, char domain, int64_t limit, ait_dtype dtype, int32_t rank, const ait_dim *shape, bool may_be_weight);
gf_value *gf_weight(gf_gen *g, char domain, ait_dtype dtype, int32_t rank, const int64_t *shape);
gf_value *gf_add(gf_gen *g, uint32_t id); /* a value that a node has made */
ait_dim gf_const(gf_gen *g, int64_t n);
ait_dim gf_some_dim(gf_gen *g);
int64_t gf_some_size(gf_gen *g);
bool gf_size(const gf_gen *g, const gf_value *v, int32_t dim, int64_t *out); /* constant size */
int64_t gf_least(const gf_gen *g, const gf_value *v, int32_t dim);           /* smallest that the size may be */
ait_dtype gf_float_dtype(gf_gen *g);
/* Adds a core node. Results are the last values then; NULL when the operator's rule refuses. */
gf_value *gf_emit(gf_gen *g, const char *op, const ait_arg *args, uint32_t count);
#define GF_ARGS(...) ((const ait_arg[]){__VA_ARGS__}), (uint32_t)(sizeof((const ait_arg[]){__VA_ARGS__}) / sizeof(ait_arg))
void gf_range(gf_value *v, double lo, double hi, bool exact);
static inline ait_arg gf_v(const gf_value *v) { return ait_arg_value(v->id); }
/* A value that broadcasts with v (never to more than v's shape when `within`): another one or a new input. */
gf_value *gf_partner(gf_gen *g, const gf_value *v, uint32_t want, bool within);
bool gf_broadcasts(const gf_gen *g, const gf_value *a, const gf_value *b, bool within);
/* v itself when it lies within the bounds, else v clamped to them. */
gf_value *gf_bounded(gf_gen *g, gf_value *v, double lo, double hi);

/* ---- checking (check.c) --------------------------------------------------------------------------------------------------------------*/
typedef enum gf_verdict {
  GF_PASS,
  GF_INVALID,  /* the reference itself does not run the graph */
  GF_DECLINED, /* unsupported, with a reason */
  GF_FAILED,   /* other answers, or an error where the reference has none */
  GF_CRASHED,
} gf_verdict;

typedef struct gf_result {
  gf_verdict verdict;
  char check[64]; /* which */
  char reason[512];
} gf_result;

typedef struct gf_check {
  const char *name;
  const char *passes;  /* NULL: what the backend needs */
  const char *backend; /* "reference", "eager", "native" */
  const char *knobs, *cpu;
  int32_t threads;
  bool equal; /* equal bits are promised */
  /* NULL, or a deliberate fault: tests prove with it that faults are found. false: nothing to break here. */
  bool (*sabotage)(ait_graph *g);
  int32_t other_threads; /* not 0: with so many threads the bits must be the same */
  bool parts;            /* cut in up to four, native and the reference in turn */
} gf_check;
extern const gf_check gf_checks[]; /* ends with a NULL name; gf_check_at adds the single passes and the knobs of native */
size_t gf_check_count(void);
gf_check gf_check_at(size_t i);
extern const gf_check gf_broken_checks[]; /* with sabotage */

typedef void (*gf_report_fn)(void *ctx, const gf_check *check, const gf_result *result);
/* Runs the checks from `first` on until one fails (its result) or all have passed. report (may be NULL) gets each. `only`: the check of
 * that name alone; broken: a row of gf_broken_checks, or NULL. */
gf_result gf_examine(const ait_graph *g, const char *only, const gf_check *broken, gf_report_fn report, void *ctx);
/* The same in a child process: a crash or a hang is a result. */
gf_result gf_examine_apart(const ait_graph *g, const char *only, const gf_check *broken);

/* ---- shrinking (shrink.c) ------------------------------------------------------------------------------------------------------------
 * The smallest graph found that fails the same check. A new graph. */
ait_graph *gf_shrink(const ait_graph *g, const gf_result *failure, const gf_check *broken, void (*progress)(const ait_graph *g));
ait_graph *gf_clone(const ait_graph *g); /* with a weight store of its own */
/* As text, with the failure as comments. NULL ends the process. Freed with free(). */
char *gf_text(const ait_graph *g, uint64_t seed, const gf_result *failure);
ait_graph *gf_parse(const char *text, size_t length); /* weights filled in; NULL after an error on stderr */

#endif
