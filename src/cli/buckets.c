#include "cli/buckets.h"
#include <stdlib.h>

/* Freed by the caller; NULL: one plan for all sizes, or no memory. */
static ait_bucket_info *items(const ait_session *session, size_t *out_count) {
  *out_count = ait_session_buckets(session, NULL, 0);
  ait_bucket_info *list = *out_count > 1 ? calloc(*out_count, sizeof *list) : NULL;
  if (list) ait_session_buckets(session, list, *out_count);
  return list;
}

struct json_object *cli_buckets_json(const ait_session *session) {
  size_t n;
  ait_bucket_info *list = items(session, &n);
  struct json_object *array = list ? json_object_new_array() : NULL;
  for (size_t i = 0; array && i < n; ++i) {
    struct json_object *o = json_object_new_object();
    json_object_object_add(o, "sizes", json_object_new_string(list[i].sizes));
    json_object_object_add(o, "backend", json_object_new_string(list[i].backend));
    json_object_object_add(o, "threads", json_object_new_int(list[i].threads));
    json_object_object_add(o, "own_plan", json_object_new_boolean(list[i].own_plan));
    if (*list[i].why_not) json_object_object_add(o, "why_not", json_object_new_string(list[i].why_not));
    json_object_object_add(o, "runs", json_object_new_int64((int64_t)list[i].runs));
    json_object_array_add(array, o);
  }
  free(list);
  return array;
}

void cli_buckets_print(const ait_session *session) {
  size_t n;
  ait_bucket_info *list = items(session, &n);
  cli_table table;
  if (!list) return;
  cli_table_init(&table, 4, "LRRL");
  cli_table_row(&table, "sizes", "runs", "threads", "plan");
  for (size_t i = 1; i <= n; ++i) { /* the plan for all sizes last */
    const ait_bucket_info *b = &list[i % n];
    char runs[24], threads[16], plan[224];
    snprintf(runs, sizeof runs, "%llu", (unsigned long long)b->runs);
    snprintf(threads, sizeof threads, "%d", b->threads);
    snprintf(plan, sizeof plan, "%.60s%s%s%.80s", b->backend, b->own_plan || i == n ? "" : ", the plan for all sizes",
             *b->why_not ? ": " : "", b->why_not);
    cli_table_row(&table, i == n ? "others, not tuned for" : b->sizes, runs, threads, plan);
  }
  cli_table_print(&table, stdout);
  cli_table_deinit(&table);
  free(list);
}
