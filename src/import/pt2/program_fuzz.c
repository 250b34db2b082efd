/* Any text as the JSON of a program, in a small archive made around it: what a CRC would hide from pt2_fuzz. */
#include "import/import.h"

#include <stdlib.h>
#include <zlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef struct buffer {
  uint8_t *data;
  size_t size;
} buffer;

static void put(buffer *b, uint64_t value, size_t bytes) {
  for (size_t i = 0; i < bytes; ++i) b->data[b->size++] = (uint8_t)(value >> 8 * i);
}

static void put_bytes(buffer *b, const void *data, size_t size) {
  memcpy(b->data + b->size, data, size);
  b->size += size;
}

/* The fields that local header and directory share, from "version needed" to the sizes. */
static void put_common(buffer *b, const void *data, size_t size, size_t name_length) {
  put(b, 20, 2);
  put(b, 0, 2);
  put(b, 0, 2);
  put(b, 0, 4);
  put(b, crc32(0, data, (unsigned)size), 4);
  put(b, size, 4);
  put(b, size, 4);
  put(b, name_length, 2);
  put(b, 0, 2);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const uint8_t weight[48];
  static const char config[] =
      "{\"config\":{\"weight\":{\"path_name\":\"weight_0\",\"is_param\":true,\"use_pickle\":false,\"tensor_meta\":{\"dtype\":7,"
      "\"sizes\":[{\"as_int\":4},{\"as_int\":3}],\"strides\":[{\"as_int\":3},{\"as_int\":1}],\"storage_offset\":{\"as_int\":0},"
      "\"layout\":7}}}}";
  const struct {
    const char *name;
    const void *data;
    size_t size;
  } members[] = {{"m/archive_format", "pt2", 3},
                 {"m/models/model.json", data, size},
                 {"m/data/weights/weight_0", weight, sizeof weight},
                 {"m/data/weights/model_weights_config.json", config, sizeof config - 1}};
  size_t offsets[AIT_COUNT(members)];
  buffer b = {.data = malloc(size + 4096)};
  if (!b.data || size > 1 << 20) goto cleanup;
  for (size_t i = 0; i < AIT_COUNT(members); ++i) {
    offsets[i] = b.size;
    put(&b, 0x04034b50, 4);
    put_common(&b, members[i].data, members[i].size, strlen(members[i].name));
    put_bytes(&b, members[i].name, strlen(members[i].name));
    put_bytes(&b, members[i].data, members[i].size);
  }
  size_t directory = b.size;
  for (size_t i = 0; i < AIT_COUNT(members); ++i) {
    put(&b, 0x02014b50, 4);
    put(&b, 20, 2);
    put_common(&b, members[i].data, members[i].size, strlen(members[i].name));
    put(&b, 0, 2);
    put(&b, 0, 8);
    put(&b, offsets[i], 4);
    put_bytes(&b, members[i].name, strlen(members[i].name));
  }
  size_t end = b.size;
  put(&b, 0x06054b50, 4);
  put(&b, 0, 4);
  put(&b, AIT_COUNT(members), 2);
  put(&b, AIT_COUNT(members), 2);
  put(&b, end - directory, 4);
  put(&b, directory, 4);
  put(&b, 0, 2);
  ait_graph *graph;
  ait_import_options options = {.memory_limit = 64 << 20};
  ait_status status = ait_import_pt2_memory(ait_allocator_default(), "fuzz", b.data, b.size, &options, &graph);
  ait_status_ignore(status);
  ait_graph_destroy(graph);
cleanup:
  free(b.data);
  return 0;
}
