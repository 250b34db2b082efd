/* Buckets of a plan: which sizes have steps of their own. */
#include "artifact/artifact.h"
#include <stdio.h>

/* ---- memory ------------------------------------------------------------------------------------------------------------------------*/
ait_status ait_plan_new_buckets(ait_plan *plan, uint32_t count) {
  plan->buckets = ait_alloc_zero(plan->allocator, count * sizeof *plan->buckets, _Alignof(ait_plan_bucket));
  if (!plan->buckets) return AIT_OOM();
  plan->bucket_count = count;
  return AIT_OK;
}

ait_status ait_plan_bucket_new_ranges(ait_allocator a, ait_plan_bucket *b, uint32_t count) {
  b->ranges = ait_alloc_zero(a, count * sizeof *b->ranges, _Alignof(ait_plan_range));
  if (!b->ranges) return AIT_OOM();
  b->range_count = count;
  return AIT_OK;
}

void ait_plan_buckets_deinit(ait_plan *plan) {
  ait_allocator a = plan->allocator;
  for (uint32_t i = 0; plan->buckets && i < plan->bucket_count; ++i) {
    ait_plan_bucket *b = &plan->buckets[i];
    for (uint32_t k = 0; b->ranges && k < b->range_count; ++k) {
      if (b->ranges[k].symbol) ait_free(a, b->ranges[k].symbol, strlen(b->ranges[k].symbol) + 1);
    }
    ait_free(a, b->ranges, b->range_count * sizeof *b->ranges);
    if (!b->plan) continue;
    b->plan->allocator = a;
    ait_plan_deinit(b->plan); /* a bucket's plan has no buckets: ends at the second level */
    ait_free(a, b->plan, sizeof *b->plan);
  }
  ait_free(a, plan->buckets, plan->bucket_count * sizeof *plan->buckets);
  plan->buckets = NULL;
  plan->bucket_count = 0;
}

/* ---- text --------------------------------------------------------------------------------------------------------------------------*/
void ait_plan_ranges_text(const ait_plan_bucket *b, char *out, size_t size) {
  size_t n = 0;
  if (size) out[0] = 0;
  for (uint32_t i = 0; i < b->range_count && n < size; ++i) {
    const ait_plan_range *r = &b->ranges[i];
    n += (size_t)snprintf(out + n, size - n, "%s%s %lld", i ? ", " : "", r->symbol, (long long)r->min);
    if (n >= size || r->max == r->min) continue;
    if (r->max == INT64_MAX) n += (size_t)snprintf(out + n, size - n, " and more");
    else n += (size_t)snprintf(out + n, size - n, " to %lld", (long long)r->max);
  }
}

/* ---- check -------------------------------------------------------------------------------------------------------------------------*/
static const ait_symbol *find_symbol(const ait_region *portable, const char *name) {
  for (uint32_t i = 0; i < portable->symbol_count; ++i) {
    if (strcmp(portable->symbols[i].name, name) == 0) return &portable->symbols[i];
  }
  return NULL;
}

static ait_status check_range(const ait_plan_bucket *b, uint32_t index, const ait_region *portable) {
  const ait_plan_range *r = &b->ranges[index];
  if (!r->symbol) return ait_error(AIT_CODE_INVALID_MODEL, "a range has no symbol");
  const ait_symbol *s = find_symbol(portable, r->symbol);
  if (!s) return ait_error(AIT_CODE_INVALID_MODEL, "the model has no symbol '%.64s'", r->symbol);
  if (!s->backed) return ait_error(AIT_CODE_INVALID_MODEL, "symbol '%.64s' is not bound by an input", r->symbol);
  for (uint32_t k = 0; k < index; ++k) {
    if (strcmp(b->ranges[k].symbol, r->symbol) == 0) return ait_error(AIT_CODE_INVALID_MODEL, "symbol '%.64s' has two ranges", r->symbol);
  }
  if (r->min > r->max)
    return ait_error(AIT_CODE_INVALID_MODEL, "the range %lld to %lld of '%.64s' is empty", (long long)r->min, (long long)r->max, r->symbol);
  if (r->min < s->min || r->max > s->max)
    return ait_error(AIT_CODE_INVALID_MODEL, "the range %lld to %lld of '%.64s' is beyond the model's %lld to %lld", (long long)r->min,
                     (long long)r->max, r->symbol, (long long)s->min, (long long)s->max);
  return AIT_OK;
}

static bool apart(const ait_plan_bucket *a, const ait_plan_bucket *b) {
  for (uint32_t i = 0; i < a->range_count; ++i) {
    for (uint32_t k = 0; k < b->range_count; ++k) {
      const ait_plan_range *x = &a->ranges[i], *y = &b->ranges[k];
      if (strcmp(x->symbol, y->symbol) == 0 && (x->max < y->min || y->max < x->min)) return true;
    }
  }
  return false;
}

static ait_status check_bucket(const ait_plan *plan, uint32_t index, const ait_region *portable) {
  const ait_plan_bucket *b = &plan->buckets[index];
  if (b->range_count == 0) return ait_error(AIT_CODE_INVALID_MODEL, "it has no ranges of sizes");
  if (b->range_count > AIT_PLAN_RANGES_MAX)
    return ait_error(AIT_CODE_LIMIT, "it has %u ranges, at most %d are allowed", b->range_count, AIT_PLAN_RANGES_MAX);
  for (uint32_t k = 0; k < b->range_count; ++k) AIT_TRY(check_range(b, k, portable));
  for (uint32_t k = 0; k < index; ++k) {
    if (!apart(&plan->buckets[k], b)) return ait_error(AIT_CODE_INVALID_MODEL, "it has sizes in common with bucket %u", k);
  }
  if (!b->plan) return AIT_OK;
  if (b->plan->bucket_count) return ait_error(AIT_CODE_INVALID_MODEL, "its plan has buckets of its own");
  return ait_plan_check(b->plan, portable);
}

ait_status ait_plan_check_buckets(const ait_plan *plan, const ait_region *portable) {
  if (plan->bucket_count > AIT_PLAN_BUCKETS_MAX)
    return ait_error(AIT_CODE_LIMIT, "there are %u buckets, at most %d are allowed", plan->bucket_count, AIT_PLAN_BUCKETS_MAX);
  for (uint32_t i = 0; i < plan->bucket_count; ++i) AIT_TRY(ait_error_context(check_bucket(plan, i, portable), "bucket %u", i));
  return AIT_OK;
}
