#include "backends/reference/reference.h"

#include "custom/custom.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define ait_ref_none ((ait_ref_fn)0)

typedef struct ref_row {
  const char *name;
  ait_ref_fn fn;
} ref_row;

static const ref_row rows[] = {
#define AIT_OP(name, schema, dialects, traits, reference) {name, ait_ref_##reference},
#include "ir/ops.inc"
#undef AIT_OP
};

static uint16_t order[AIT_COUNT(rows)]; /* rows by name; written once */
static pthread_once_t order_once = PTHREAD_ONCE_INIT;

static int by_name(const void *a, const void *b) { return strcmp(rows[*(const uint16_t *)a].name, rows[*(const uint16_t *)b].name); }

static void make_order(void) {
  for (size_t i = 0; i < AIT_COUNT(rows); ++i) order[i] = (uint16_t)i;
  qsort(order, AIT_COUNT(rows), sizeof order[0], by_name);
}

static const ref_row *find_row(const char *op) {
  pthread_once(&order_once, make_order);
  size_t low = 0, high = AIT_COUNT(rows);
  while (low < high) {
    size_t mid = (low + high) / 2;
    int c = strcmp(op, rows[order[mid]].name);
    if (c == 0) return &rows[order[mid]];
    if (c < 0) high = mid;
    else low = mid + 1;
  }
  return NULL;
}

ait_ref_fn ait_ref_find(const char *op) {
  const ref_row *row = find_row(op);
  if (row) return row->fn;
  return ait_custom_find(op) ? ait_ref_custom : NULL;
}

/* "aten::add.Tensor" is "aten.add.Tensor". */
bool ait_ref_find_own(const char *op) {
  char name[256];
  const char *colons = strstr(op, "::");
  if (!colons || strlen(op) >= sizeof name) return find_row(op) != NULL;
  snprintf(name, sizeof name, "%.*s.%s", (int)(colons - op), op, colons + 2);
  return find_row(name) != NULL;
}

ait_status ait_ref_missing(const char *node, const char *op) {
  if (!ait_ref_find_own(op)) return ait_custom_missing(node, op);
  return ait_error(AIT_CODE_UNSUPPORTED, "node '%s': the reference backend has no operator '%s'", node ? node : "", op);
}
