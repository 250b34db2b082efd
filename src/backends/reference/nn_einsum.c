/* einsum, tensordot, bilinear and chains of products: operands with labelled dims, contracted two at a time from the left. */
#include "backends/reference/nn.h"

enum { LABELS = 52 + AIT_MAX_RANK }; /* a-z, A-Z, and one for each dim that an ellipsis stands for */

/* An operand: a strided view (F64 or C128) whose dim d carries label[d]. Holds a reference. */
typedef struct term {
  ait_tensor t;
  int32_t label[AIT_MAX_RANK];
} term;

typedef struct einsum {
  const ait_ref_call *call;
  bool is_complex;
  int64_t size[LABELS]; /* 0: not seen */
} einsum;

static int32_t label_of(char c) { return c >= 'a' && c <= 'z' ? c - 'a' : c >= 'A' && c <= 'Z' ? 26 + c - 'A' : -1; }
static bool has(const int32_t *labels, int32_t n, int32_t label) {
  for (int32_t i = 0; i < n; ++i)
    if (labels[i] == label) return true;
  return false;
}

/* Dims of t in the order of `labels`; every label of t must be among them, others become broadcast dims. */
static ait_tensor arranged(const einsum *e, const term *x, const int32_t *labels, int32_t n) {
  ait_tensor v = x->t;
  v.rank = n;
  for (int32_t i = 0; i < n; ++i) {
    v.shape[i] = e->size[labels[i]];
    v.strides[i] = 0;
    for (int32_t d = 0; d < x->t.rank; ++d)
      if (x->label[d] == labels[i]) v.strides[i] = x->t.shape[d] == 1 ? 0 : x->t.strides[d];
  }
  return v;
}

/* Takes the diagonal where a label stands twice. */
static void take_diagonals(term *x) {
  for (int32_t d = 0; d < x->t.rank; ++d)
    for (int32_t f = d + 1; f < x->t.rank;) {
      if (x->label[f] != x->label[d]) {
        ++f;
        continue;
      }
      x->t.strides[d] += x->t.strides[f];
      x->t.rank--;
      for (int32_t g = f; g < x->t.rank; ++g) {
        x->t.shape[g] = x->t.shape[g + 1];
        x->t.strides[g] = x->t.strides[g + 1];
        x->label[g] = x->label[g + 1];
      }
    }
}

static int64_t sizes(const einsum *e, const int32_t *labels, int32_t n) {
  int64_t p = 1;
  for (int32_t i = 0; i < n; ++i) p *= e->size[labels[i]];
  return p;
}

/* c = a * b, keeping the labels in `keep`. Labels of both that are kept are batch; labels of both that are not, summed; labels of one
 * operand only that are not kept are summed first (by treating them as contracted with a broadcast operand). */
static ait_status contract(const einsum *e, const term *a, const term *b, const bool *keep, term *out) {
  int32_t batch[LABELS], left[LABELS], right[LABELS], inner[LABELS], nb = 0, nl = 0, nr = 0, ni = 0, order[2 * LABELS];
  for (int32_t d = 0; d < a->t.rank; ++d) {
    int32_t l = a->label[d];
    if (!keep[l]) inner[ni++] = l;
    else if (has(b->label, b->t.rank, l)) batch[nb++] = l;
    else left[nl++] = l;
  }
  for (int32_t d = 0; d < b->t.rank; ++d) {
    int32_t l = b->label[d];
    if (has(a->label, a->t.rank, l)) continue;
    if (keep[l]) right[nr++] = l;
    else inner[ni++] = l;
  }
  if (nb + nl + nr > AIT_MAX_RANK || nb + nl + ni > AIT_MAX_RANK || nb + ni + nr > AIT_MAX_RANK)
    return ait_ref_error(e->call, AIT_CODE_LIMIT, "more than %d dims", AIT_MAX_RANK);
  ait_tensor fa = {0}, fb = {0}, c = {0};
  ait_status status;
  int64_t shape[AIT_MAX_RANK];
  memcpy(order, batch, sizeof(int32_t) * (size_t)nb);
  memcpy(order + nb, left, sizeof(int32_t) * (size_t)nl);
  memcpy(order + nb + nl, inner, sizeof(int32_t) * (size_t)ni);
  ait_tensor va = arranged(e, a, order, nb + nl + ni);
  memcpy(order + nb, inner, sizeof(int32_t) * (size_t)ni);
  memcpy(order + nb + ni, right, sizeof(int32_t) * (size_t)nr);
  ait_tensor vb = arranged(e, b, order, nb + ni + nr);
  AIT_GOTO(ait_nn_numbers(e->call, &va, &fa));
  AIT_GOTO(ait_nn_numbers(e->call, &vb, &fb));
  for (int32_t i = 0; i < nb + nl + nr; ++i) {
    out->label[i] = i < nb ? batch[i] : i < nb + nl ? left[i - nb] : right[i - nb - nl];
    shape[i] = e->size[out->label[i]];
  }
  AIT_GOTO(ait_ref_temp(e->call, e->is_complex ? AIT_C128 : AIT_F64, nb + nl + nr, shape, &c));
  AIT_GOTO(ait_nn_multiply(e->call, e->is_complex, sizes(e, batch, nb), sizes(e, left, nl), sizes(e, right, nr), sizes(e, inner, ni),
                           fa.data, fb.data, c.data));
  out->t = c;
  c = (ait_tensor){0};
cleanup:
  ait_tensor_release(&fa);
  ait_tensor_release(&fb);
  ait_tensor_release(&c);
  return status;
}

/* Multiplies all terms (released) and gives result 0 with dims in the order of `out`. */
static ait_status contract_all(ait_ref_call *call, einsum *e, term *terms, uint32_t count, const int32_t *out, int32_t out_rank,
                               ait_dtype dtype) {
  double unit_data[2] = {1, 0};
  term unit = {.t = ait_tensor_borrow(unit_data, e->is_complex ? AIT_C128 : AIT_F64, 0, NULL)};
  for (uint32_t i = 0; i < count; ++i) {
    bool keep[LABELS] = {false};
    for (int32_t d = 0; d < out_rank; ++d) keep[out[d]] = true;
    for (uint32_t j = i + 2; j < count; ++j)
      for (int32_t d = 0; d < terms[j].t.rank; ++d) keep[terms[j].label[d]] = true;
    bool last = i + 1 == count;
    if (last && i > 0) break;
    term next = {0};
    AIT_TRY(contract(e, &terms[i], last ? &unit : &terms[i + 1], keep, &next));
    uint32_t at = last ? i : i + 1;
    ait_tensor_release(&terms[at].t);
    terms[at] = next;
  }
  ait_tensor view = arranged(e, &terms[count - 1], out, out_rank), dense;
  AIT_TRY(ait_nn_numbers(call, &view, &dense));
  ait_status status = ait_nn_result(call, 0, dtype, &dense);
  ait_tensor_release(&dense);
  return status;
}

static ait_status start_terms(const ait_ref_call *call, const ait_tensor *tensors, uint32_t count, einsum *e, term *terms) {
  for (uint32_t i = 0; i < count; ++i) e->is_complex |= ait_dtype_is_complex(tensors[i].dtype);
  for (uint32_t i = 0; i < count; ++i)
    AIT_TRY(ait_tensor_cast(call->allocator, &tensors[i], e->is_complex ? AIT_C128 : AIT_F64, &terms[i].t));
  return AIT_OK;
}

static ait_status see_sizes(const ait_ref_call *call, einsum *e, const term *x) {
  for (int32_t d = 0; d < x->t.rank; ++d) {
    int64_t *size = &e->size[x->label[d]], n = x->t.shape[d];
    if (*size <= 1 || *size == n) *size = *size == 0 || *size == 1 ? n : *size;
    else if (n != 1)
      return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "sizes %lld and %lld of one label differ", (long long)*size, (long long)n);
  }
  return AIT_OK;
}

/* ---- einsum --------------------------------------------------------------------------------------------------------------------------*/
/* Labels of one operand from *p up to ',' or '-' or the end. An ellipsis takes what is left of the rank, counted from its right end. */
static ait_status parse_labels(const ait_ref_call *call, const char **p, int32_t rank, int32_t *label, int32_t *out_count,
                               int32_t *ellipsis) {
  int32_t n = 0, named = 0;
  for (const char *q = *p; *q && *q != ',' && *q != '-'; ++q) named += label_of(*q) >= 0;
  for (; **p && **p != ',' && **p != '-'; ++*p) {
    if (**p == ' ') continue;
    if (**p == '.') {
      if (strncmp(*p, "...", 3) != 0) return ait_ref_error(call, AIT_CODE_INVALID_MODEL, "einsum equation: '.' outside an ellipsis");
      int32_t covered = rank >= 0 ? rank - named : *ellipsis;
      if (covered > *ellipsis) *ellipsis = covered;
      for (int32_t i = 0; i < covered && n < AIT_MAX_RANK; ++i) label[n++] = 52 + covered - 1 - i;
      *p += 2;
      continue;
    }
    int32_t l = label_of(**p);
    if (l < 0 || n >= AIT_MAX_RANK) return ait_ref_error(call, AIT_CODE_INVALID_MODEL, "einsum equation: '%c'", **p);
    label[n++] = l;
  }
  if (rank >= 0 && n != rank)
    return ait_ref_error(call, AIT_CODE_INVALID_MODEL, "einsum equation names %d dims of a rank %d tensor", n, rank);
  *out_count = n;
  return AIT_OK;
}

/* Without an arrow: the ellipsis, then labels that stand exactly once, in alphabetical order (capitals first). */
static int32_t implicit_output(const char *equation, int32_t ellipsis, int32_t *out) {
  int32_t n = 0;
  for (int32_t i = ellipsis - 1; i >= 0; --i) out[n++] = 52 + i;
  for (int32_t pass = 0; pass < 2; ++pass)
    for (int32_t i = 0; i < 26 && n < AIT_MAX_RANK; ++i) {
      char c = (char)((pass == 0 ? 'A' : 'a') + i);
      const char *first = strchr(equation, c);
      if (first && !strchr(first + 1, c)) out[n++] = label_of(c);
    }
  return n;
}

static ait_status einsum_run(ait_ref_call *call, const ait_tensor *tensors, uint32_t count, term *terms) {
  const char *equation = ait_ref_string(call, 0);
  if (!equation) return ait_ref_error(call, AIT_CODE_INVALID_MODEL, "no equation");
  einsum e = {.call = call};
  int32_t ellipsis = 0, out[AIT_MAX_RANK], out_rank = 0, n;
  AIT_TRY(start_terms(call, tensors, count, &e, terms));
  const char *p = equation;
  for (uint32_t i = 0; i < count; ++i) {
    AIT_TRY(parse_labels(call, &p, terms[i].t.rank, terms[i].label, &n, &ellipsis));
    if (i + 1 < count && *p++ != ',') return ait_ref_error(call, AIT_CODE_INVALID_MODEL, "einsum equation has fewer operands than given");
    AIT_TRY(see_sizes(call, &e, &terms[i]));
    take_diagonals(&terms[i]);
  }
  if (*p == '-') {
    if (p[1] != '>') return ait_ref_error(call, AIT_CODE_INVALID_MODEL, "einsum equation: '-' without '>'");
    p += 2;
    AIT_TRY(parse_labels(call, &p, -1, out, &out_rank, &ellipsis));
    for (int32_t d = 0; d < out_rank; ++d)
      if (e.size[out[d]] == 0 && !strchr(equation, '.')) {
        bool seen = false;
        for (uint32_t i = 0; i < count; ++i) seen |= has(terms[i].label, terms[i].t.rank, out[d]);
        if (!seen) return ait_ref_error(call, AIT_CODE_INVALID_MODEL, "einsum equation: output label that no operand has");
      }
  } else {
    out_rank = implicit_output(equation, ellipsis, out);
  }
  ait_dtype dtype = tensors[0].dtype;
  for (uint32_t i = 1; i < count; ++i) dtype = ait_dtype_promote(dtype, tensors[i].dtype);
  return contract_all(call, &e, terms, count, out, out_rank, ait_nn_dtype(call, 0, dtype));
}

static void release_terms(const ait_ref_call *call, term *terms, uint32_t count) {
  for (uint32_t i = 0; i < count; ++i) ait_tensor_release(&terms[i].t);
  ait_free(call->allocator, terms, count * sizeof *terms);
}

ait_status ait_ref_einsum(ait_ref_call *call) {
  ait_tensor *tensors;
  uint32_t count;
  AIT_TRY(ait_ref_tensors(call, 1, &tensors, &count));
  term *terms = count ? ait_alloc_zero(call->allocator, count * sizeof *terms, 8) : NULL;
  ait_status status = terms   ? einsum_run(call, tensors, count, terms)
                      : count ? AIT_OOM()
                              : ait_ref_error(call, AIT_CODE_INVALID_MODEL, "no operands");
  if (terms) release_terms(call, terms, count);
  ait_free(call->allocator, tensors, count * sizeof *tensors);
  return status;
}

/* ---- others by labels -------------------------------------------------------------------------------------------------------- */
/* The labels are given: label[i] has tensors[i].rank entries. */
static ait_status labelled(ait_ref_call *call, const ait_tensor *tensors, uint32_t count, int32_t (*label)[AIT_MAX_RANK],
                           const int32_t *out, int32_t out_rank) {
  einsum e = {.call = call};
  term *terms = ait_alloc_zero(call->allocator, count * sizeof *terms, 8);
  if (!terms) return AIT_OOM();
  ait_status status;
  AIT_GOTO(start_terms(call, tensors, count, &e, terms));
  for (uint32_t i = 0; i < count; ++i) {
    memcpy(terms[i].label, label[i], sizeof terms[i].label);
    AIT_GOTO(see_sizes(call, &e, &terms[i]));
  }
  ait_dtype dtype = tensors[0].dtype;
  for (uint32_t i = 1; i < count; ++i) dtype = ait_dtype_promote(dtype, tensors[i].dtype);
  status = contract_all(call, &e, terms, count, out, out_rank, ait_nn_dtype(call, 0, dtype));
cleanup:
  release_terms(call, terms, count);
  return status;
}

ait_status ait_ref_tensordot(ait_ref_call *call) {
  const ait_tensor *a, *b;
  int64_t da[AIT_MAX_RANK], db[AIT_MAX_RANK];
  int32_t na, nb, label[2][AIT_MAX_RANK], out[2 * AIT_MAX_RANK], n = 0;
  AIT_TRY(ait_ref_tensor(call, 0, &a));
  AIT_TRY(ait_ref_tensor(call, 1, &b));
  AIT_TRY(ait_ref_ints(call, 2, da, &na));
  AIT_TRY(ait_ref_ints(call, 3, db, &nb));
  if (na != nb || a->rank + b->rank - 2 * na > AIT_MAX_RANK) return ait_ref_error(call, AIT_CODE_INVALID_MODEL, "dims of tensordot");
  for (int32_t d = 0; d < a->rank; ++d) label[0][d] = d;
  for (int32_t d = 0; d < b->rank; ++d) label[1][d] = AIT_MAX_RANK + d;
  for (int32_t i = 0; i < na; ++i) {
    int32_t p, q;
    AIT_TRY(ait_ref_dim(call, da[i], a->rank, &p));
    AIT_TRY(ait_ref_dim(call, db[i], b->rank, &q));
    label[1][q] = p;
  }
  for (int32_t d = 0; d < a->rank; ++d)
    if (!has(label[1], b->rank, d)) out[n++] = d;
  for (int32_t d = 0; d < b->rank; ++d)
    if (label[1][d] >= AIT_MAX_RANK) out[n++] = label[1][d];
  ait_tensor both[2] = {*a, *b};
  return labelled(call, both, 2, label, out, n);
}

/* out[.., o] = sum_ij x1[.., i] weight[o, i, j] x2[.., j] + bias[o] */
ait_status ait_ref_bilinear(ait_ref_call *call) {
  const ait_tensor *x1, *x2, *w, *bias = ait_ref_tensor_or_null(call, 3);
  AIT_TRY(ait_ref_tensor(call, 0, &x1));
  AIT_TRY(ait_ref_tensor(call, 1, &x2));
  AIT_TRY(ait_ref_tensor(call, 2, &w));
  int32_t label[3][AIT_MAX_RANK], out[AIT_MAX_RANK], lead = x1->rank - 1;
  if (lead < 0 || x2->rank != x1->rank || w->rank != 3) return ait_ref_error(call, AIT_CODE_INVALID_MODEL, "ranks of the operands");
  for (int32_t d = 0; d < lead; ++d) label[0][d] = label[2][d] = out[d] = d;
  label[0][lead] = label[1][1] = 20;
  label[2][lead] = label[1][2] = 21;
  label[1][0] = out[lead] = 22;
  ait_tensor three[3] = {*x1, *w, *x2};
  AIT_TRY(labelled(call, three, 3, label, out, lead + 1));
  if (!bias) return AIT_OK;
  ait_tensor sum = call->results[0].as.tensor, fs = {0}, fb = {0};
  ait_status status;
  AIT_GOTO(ait_nn_f64(call, &sum, &fs));
  AIT_GOTO(ait_nn_f64(call, bias, &fb));
  int64_t n = ait_tensor_count(&fb);
  for (int64_t i = 0; i < ait_tensor_count(&fs); ++i) ait_nn_data_mut(&fs)[i] += ait_nn_data(&fb)[i % n];
  ait_nn_store(sum.data, sum.dtype, 1, ait_tensor_count(&fs), fs.data);
cleanup:
  ait_tensor_release(&fs);
  ait_tensor_release(&fb);
  return status;
}

/* A chain of matrices; the first and the last may be vectors. */
ait_status ait_ref_linalg_multi_dot(ait_ref_call *call) {
  ait_tensor *tensors;
  uint32_t count;
  AIT_TRY(ait_ref_tensors(call, 0, &tensors, &count));
  ait_status status = AIT_OK;
  int32_t(*label)[AIT_MAX_RANK] = NULL;
  if (count < 2 || count > 40) status = ait_ref_error(call, AIT_CODE_INVALID_MODEL, "a chain of %u", count);
  if (!status && !(label = ait_alloc_zero(call->allocator, count * sizeof *label, 8))) status = AIT_OOM();
  if (!status) {
    int32_t out[2], n = 0;
    for (uint32_t i = 0; i < count; ++i) {
      bool row = i == 0 && tensors[i].rank == 1;
      label[i][0] = row ? 1 : (int32_t)i;
      label[i][1] = (int32_t)i + 1;
    }
    if (tensors[0].rank == 2) out[n++] = 0;
    if (tensors[count - 1].rank == 2) out[n++] = (int32_t)count;
    status = labelled(call, tensors, count, label, out, n);
    ait_free(call->allocator, label, count * sizeof *label);
  }
  ait_free(call->allocator, tensors, count * sizeof *tensors);
  return status;
}

/* _trilinear(i1, i2, i3, expand1, expand2, expand3, sumdim, unroll_dim): the product of the three, each with dims of one put in where its
 * list says, summed over sumdim. A dim that is put in simply lacks the label. */
ait_status ait_ref_trilinear(ait_ref_call *call) {
  ait_tensor three[3];
  int32_t label[3][AIT_MAX_RANK] = {{0}}, out[AIT_MAX_RANK], out_rank = 0, total = 0, count;
  int64_t dims[AIT_MAX_RANK];
  for (uint32_t i = 0; i < 3; ++i) {
    const ait_tensor *t;
    bool put_in[AIT_MAX_RANK] = {false};
    AIT_TRY(ait_ref_tensor(call, i, &t));
    AIT_TRY(ait_ref_ints(call, 3 + i, dims, &count));
    three[i] = *t;
    int32_t rank = t->rank + count, d;
    if (rank > AIT_MAX_RANK || (i > 0 && rank != total)) return ait_ref_error(call, AIT_CODE_INVALID_MODEL, "expanded ranks differ");
    total = rank;
    for (int32_t k = 0; k < count; ++k) {
      AIT_TRY(ait_ref_dim(call, dims[k], rank, &d));
      put_in[d] = true;
    }
    for (int32_t e = 0, at = 0; e < rank && at < t->rank; ++e)
      if (!put_in[e]) label[i][at++] = e;
  }
  bool summed[AIT_MAX_RANK] = {false};
  AIT_TRY(ait_ref_ints(call, 6, dims, &count));
  for (int32_t k = 0; k < count; ++k) {
    int32_t d;
    AIT_TRY(ait_ref_dim(call, dims[k], total, &d));
    summed[d] = true;
  }
  for (int32_t d = 0; d < total; ++d) {
    bool seen = false;
    for (int i = 0; i < 3; ++i) seen |= has(label[i], three[i].rank, d);
    if (!seen) return ait_ref_error(call, AIT_CODE_UNSUPPORTED, "a dim that no operand has");
    if (!summed[d]) out[out_rank++] = d;
  }
  return labelled(call, three, 3, label, out, out_rank);
}
