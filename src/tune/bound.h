/* What the roofline says of a model before anything is built, and what a run of the baseline says of its modules. */
#ifndef AIT_SRC_TUNE_BOUND_H
#define AIT_SRC_TUNE_BOUND_H

#include "tune/cost.h"
#include "tune/roofline.h"
#include "tune/tune.h"

typedef enum ait_bound { AIT_BOUND_NOTHING = 0, AIT_BOUND_ARITHMETIC, AIT_BOUND_CACHES, AIT_BOUND_MEMORY, AIT_BOUND_COUNT } ait_bound;
const char *ait_bound_text(ait_bound bound); /* "arithmetic" */

/* The least time for that work here, and what takes it. Traffic that fits into the caches is served by them. */
double ait_bound_seconds(const ait_roofline *r, double flops, double bytes, ait_bound *out_bound);

typedef struct ait_module_bound {
  double seconds[AIT_BOUND_COUNT]; /* of its nodes, by what bounds each */
} ait_module_bound;
/* out: module_count + 1 elements, zero before; the last is the whole graph. */
void ait_bound_modules(const ait_graph *g, const int64_t *symbols, const ait_roofline *r, ait_module_bound *out);
double ait_bound_total(const ait_module_bound *b);
ait_bound ait_bound_main(const ait_module_bound *b); /* what takes most of it */
/* The whole graph's least time when each element-wise node joins the node before it where nothing else uses that one's result. */
ait_status ait_bound_fused(const ait_graph *core, const int64_t *symbols, const ait_roofline *r, double *out_seconds) AIT_MUST_USE;

bool ait_roofline_read(const char *json, ait_roofline *out); /* false: it says nothing useful */

/* Median seconds of the steps of `eager` inside each of the graph's modules, over calls with these inputs. out: module_count + 1 elements,
 * the last is all. Errors: what building and running say. */
ait_status ait_measure_modules(const ait_graph *raw, const ait_graph *g, const ait_value *inputs, size_t input_count, int32_t threads,
                               double *out_seconds) AIT_MUST_USE;

#endif
