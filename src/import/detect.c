/* What a file is, by its first bytes. */
#include "import/pt2/pt2.h"

/* Eight bytes of header length, then the JSON header. */
static bool is_safetensors(const uint8_t *data, size_t size) {
  if (size < 9 || data[8] != '{') return false;
  uint64_t length = 0;
  for (int i = 0; i < 8; ++i) length |= (uint64_t)data[i] << 8 * i;
  return length >= 2 && length <= size - 8;
}

/* A ModelProto has no magic. Its first field is ir_version (1, a varint) in every file that a known tool wrote; a producer's name, a
 * domain or the graph may follow. */
static bool is_onnx(const uint8_t *data, size_t size) {
  if (size < 8 || data[0] != 0x08 || data[1] == 0 || data[1] > 0x40) return false;
  uint8_t next = data[2];
  return next == 0x12 || next == 0x1a || next == 0x22 || next == 0x2a || next == 0x32 || next == 0x3a || next == 0x42;
}

/* Comments and blank lines, then "graph ". */
static bool is_text(const uint8_t *data, size_t size) {
  size_t i = 0;
  while (i < size && (data[i] == '#' || data[i] == '\n')) {
    while (i < size && data[i] != '\n') ++i;
    i += i < size;
  }
  return size - i > 7 && memcmp(data + i, "graph \"", 7) == 0;
}

ait_status ait_import_detect(const char *path, ait_file_kind *out) {
  ait_allocator a = ait_allocator_default();
  ait_file_map *map;
  *out = AIT_FILE_UNKNOWN;
  AIT_TRY(ait_file_map_open(a, path, &map));
  const uint8_t *data = ait_file_map_data(map);
  size_t size = ait_file_map_size(map);
  if (size >= 4 && (memcmp(data, "PK\3\4", 4) == 0 || memcmp(data, "PK\5\6", 4) == 0)) *out = ait_pt2_kind(a, data, size);
  else if (is_safetensors(data, size)) *out = AIT_FILE_SAFETENSORS;
  else if (is_onnx(data, size)) *out = AIT_FILE_ONNX;
  else if (is_text(data, size)) *out = AIT_FILE_TEXT;
  ait_file_map_release(map);
  return AIT_OK;
}
