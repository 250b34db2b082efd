/* Imports every .pt2 below the files and folders named on the command line; for each one a line: name, time, counts or the error. A
 * file's errors do not end the walk. For development; the exit code is 0 as long as nothing crashes. -p prints the
 * graphs. */
#include "import/import.h"
#include <ftw.h>
#include <stdio.h>

static int passed, refused;
static bool print;

/* As text, and whether the text reads back to the same. */
static void print_graph(const ait_graph *graph) {
  ait_text text, again;
  ait_graph *copy = NULL;
  ait_text_init(&text, graph->allocator);
  ait_text_init(&again, graph->allocator);
  ait_status status = ait_graph_print(graph, &text);
  if (!status) status = ait_graph_parse(graph->allocator, text.data, text.length, &copy);
  if (!status) status = ait_graph_print(copy, &again);
  puts(text.data ? text.data : "");
  if (status) printf("TEXT does not read back: %s\n", ait_status_message(status));
  else if (strcmp(text.data, again.data) != 0) printf("TEXT reads back as something else\n");
  ait_status_ignore(status);
  ait_graph_destroy(copy);
  ait_text_deinit(&text);
  ait_text_deinit(&again);
}

static int walk(const char *path, const struct stat *info, int type, struct FTW *place) {
  (void)info, (void)place;
  if (type != FTW_F || !ait_ends_with(path, ".pt2")) return 0;
  ait_import_options options = {0};
  ait_graph *graph = NULL;
  double begin = ait_clock_seconds();
  ait_status status = ait_import_pt2(ait_allocator_default(), path, &options, &graph);
  double ms = 1e3 * (ait_clock_seconds() - begin);
  if (status) {
    printf("REFUSED %7.1f ms  %s\n", ms, ait_status_message(status));
    if (ait_status_hint(status)) printf("        (hint: %s)\n", ait_status_hint(status));
    ++refused;
  } else {
    size_t mutated = 0;
    for (size_t i = 0; i < graph->input_count; ++i) mutated += graph->inputs[i].mutated;
    printf("ok      %7.1f ms  %s: %zu nodes, %zu inputs (%zu written), %zu outputs, %zu symbols, %zu guards, %zu modules, %zu weights in "
           "%zu files\n",
           ms, path, graph->node_count, graph->input_count, mutated, graph->output_count, graph->symbol_count, graph->guard_count,
           graph->module_count, ait_weight_store_count(graph->weights), ait_weight_store_storage_count(graph->weights));
    ++passed;
    if (print) print_graph(graph);
  }
  ait_status_ignore(status);
  ait_graph_destroy(graph);
  return 0;
}

int main(int argc, char **argv) {
  for (int i = 1; i < argc; ++i) {
    if (strcmp(argv[i], "-p") == 0) print = true;
    else nftw(argv[i], walk, 16, FTW_PHYS);
  }
  printf("%d imported, %d refused\n", passed, refused);
  return 0;
}
