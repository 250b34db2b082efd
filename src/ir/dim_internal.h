/* Inside of dim.c, dim_divide.c and dim_range.c. */
#ifndef AIT_SRC_IR_DIM_INTERNAL_H
#define AIT_SRC_IR_DIM_INTERNAL_H

#include "ir/ir_internal.h"

enum { DIM_MAX_TERMS = 32, DIM_MAX_DEGREE = 8, DIM_DEPTH_LIMIT = 200, DIM_SIZE_LIMIT = 5000 };

/* coef * atoms[0] * atoms[1] * …, atoms sorted. */
typedef struct dim_term {
  int64_t coef;
  uint32_t degree;
  ait_dim atoms[DIM_MAX_DEGREE];
} dim_term;

/* Terms sorted, all different, none zero; no terms: 0. In the arena only the used terms are there. */
typedef struct dim_poly {
  uint32_t count;
  dim_term terms[DIM_MAX_TERMS];
} dim_poly;

typedef struct dim_info {
  dim_poly *poly;       /* sums and products; NULL: atoms and constants */
  int64_t min, max;     /* with the symbols' ranges as dim_refresh_ranges last saw them */
  uint32_t depth, size; /* of the tree */
  bool known;           /* of backed symbols only */
} dim_info;

/* The symbols' fields that ranges were computed from; they may be changed from outside at any time. */
typedef struct dim_ranges {
  struct dim_symbol_range {
    int64_t min, max;
    bool backed;
  } * symbols;
  size_t count, capacity;
} dim_ranges;

struct ait_dim_index {
  uint32_t *slots; /* dim + 1; 0: free */
  size_t slot_count;
  dim_info *infos; /* parallel to root->dims */
  size_t info_capacity;
  dim_ranges ranges;
  int64_t next_unknown;
};

/* dim.c */
ait_status dim_intern(ait_graph *g, ait_dim_expr e, const dim_poly *poly, ait_dim *out) AIT_MUST_USE;
ait_status dim_raw(ait_graph *g, ait_dim_op op, ait_dim a, ait_dim b, ait_dim *out) AIT_MUST_USE; /* as it stands, an atom */
ait_status dim_build(ait_graph *g, const dim_poly *p, ait_dim *out) AIT_MUST_USE;
int dim_compare(const ait_graph *g, ait_dim a, ait_dim b);
void dim_get_poly(const ait_graph *g, ait_dim d, dim_poly *out);
bool dim_poly_const(const dim_poly *p, int64_t *out);
bool dim_poly_add_term(const ait_graph *g, dim_poly *p, const dim_term *term);
bool dim_poly_divide(const ait_graph *g, const dim_poly *p, const dim_poly *by, dim_poly *out);

/* dim_divide.c */
ait_status dim_make_floordiv(ait_graph *g, ait_dim a, ait_dim b, ait_dim *out) AIT_MUST_USE;
ait_status dim_make_ceildiv(ait_graph *g, ait_dim a, ait_dim b, ait_dim *out) AIT_MUST_USE;
ait_status dim_make_mod(ait_graph *g, ait_dim a, ait_dim b, ait_dim *out) AIT_MUST_USE;

/* dim_range.c */
ait_status dim_refresh_ranges(ait_graph *root) AIT_MUST_USE; /* recomputes all when a symbol's range changed */
void dim_compute_range(ait_graph *root, ait_dim d);          /* from its operands' */
int64_t dim_floordiv(int64_t a, int64_t b);                  /* b != 0, not INT64_MIN / -1 */
int64_t dim_mod(int64_t a, int64_t b);

#endif
