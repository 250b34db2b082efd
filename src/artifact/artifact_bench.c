/* How long opening takes: artifact_bench [MB]. Writes a file of that size (half of it weights, half a blob), opens it with each way of
 * checking, and prints the best of ten in milliseconds. */
#include "artifact/artifact.h"
#include "artifact/toy_models.h"
#include <stdio.h>
#include <stdlib.h>

#define FILE_NAME "artifact_bench.ait"

static ait_status add_bulk(ait_artifact_writer *w, size_t bytes) {
  ait_allocator a = ait_allocator_default();
  char *data = ait_alloc(a, bytes, 64);
  if (!data) return AIT_OOM();
  for (size_t i = 0; i < bytes; ++i) data[i] = (char)(i * 2654435761u >> 13);
  ait_status status = ait_artifact_add(w, "weights/0", data, bytes, 4096);
  if (!status) status = ait_artifact_add(w, "targets/x/0.blob", data, bytes, 4096);
  ait_free(a, data, bytes);
  return status;
}

static ait_status write_file(size_t bytes) {
  static const char manifest[] = "{\"format\": 1, \"reader\": 1}", weights[] = "{\"storages\": 1, \"tensors\": []}";
  ait_region r = toy_linear();
  ait_text graph;
  ait_artifact_writer *w = NULL;
  ait_text_init(&graph, ait_allocator_default());
  ait_status status = ait_region_encode(&r, &graph);
  if (!status) status = ait_artifact_create(ait_allocator_default(), FILE_NAME, &w);
  if (!status) status = ait_artifact_add(w, AIT_ENTRY_MANIFEST, manifest, strlen(manifest), 64);
  if (!status) status = ait_artifact_add(w, AIT_ENTRY_GRAPH, graph.data, graph.length, 64);
  if (!status) status = ait_artifact_add(w, AIT_ENTRY_WEIGHTS, weights, strlen(weights), 64);
  if (!status) status = add_bulk(w, bytes / 2);
  if (!status) status = ait_artifact_finish(w);
  ait_artifact_writer_destroy(w);
  ait_text_deinit(&graph);
  return status;
}

static ait_status measure(const char *label, const ait_artifact_open_options *options, bool verify) {
  double best = 1e9;
  for (int i = 0; i < 10; ++i) {
    ait_artifact *f;
    double begin = ait_clock_seconds();
    AIT_TRY(ait_artifact_open(ait_allocator_default(), FILE_NAME, options, &f));
    ait_status status = verify ? ait_artifact_verify(f) : AIT_OK;
    double seconds = ait_clock_seconds() - begin;
    ait_artifact_release(f);
    AIT_TRY(status);
    if (seconds < best) best = seconds;
  }
  printf("%-28s %8.2f ms\n", label, best * 1e3);
  return AIT_OK;
}

int main(int argc, char **argv) {
  size_t bytes = (size_t)(argc > 1 ? atoi(argv[1]) : 100) << 20;
  ait_status status = write_file(bytes);
  if (!status) status = measure("no bulk checksum", &(ait_artifact_open_options){.skip_bulk_checksum = true}, false);
  if (!status) status = measure("1 thread", &(ait_artifact_open_options){.threads = 1}, false);
  if (!status) status = measure("2 threads", &(ait_artifact_open_options){.threads = 2}, false);
  if (!status) status = measure("all SHA-256", &(ait_artifact_open_options){.skip_bulk_checksum = true}, true);
  if (status) fprintf(stderr, "%s\n", ait_status_message(status));
  remove(FILE_NAME);
  return status != AIT_OK;
}
