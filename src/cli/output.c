/* What people and programs read: errors, tables, JSON, units. */
#include "cli/cli.h"
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

int cli_fail(ait_status status) {
  if (status == AIT_OK) return CLI_DONE;
  fprintf(stderr, "ait: %s\n", ait_status_message(status));
  if (ait_status_hint(status)) fprintf(stderr, "hint: %s\n", ait_status_hint(status));
  int code = ait_code_exit(ait_status_code(status));
  ait_status_free(status);
  return code;
}

int cli_usage(const char *format, ...) {
  va_list list;
  va_start(list, format);
  fputs("ait: ", stderr);
  vfprintf(stderr, format, list);
  fputc('\n', stderr);
  va_end(list);
  return CLI_USAGE;
}

bool cli_wants_json(const cli_args *args) { return cli_flag(args, "json"); }

int cli_json(const cli_args *args, struct json_object *object) {
  const char *path = cli_option(args, "json");
  const char *text = json_object_to_json_string_ext(object, JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_NOSLASHESCAPE);
  FILE *out = path && *path ? fopen(path, "w") : stdout;
  int code = CLI_DONE;
  if (!out || fprintf(out, "%s\n", text) < 0) code = CLI_MISSING;
  if (out && out != stdout && fclose(out)) code = CLI_MISSING;
  if (code != CLI_DONE) fprintf(stderr, "ait: cannot write '%s'\n", path && *path ? path : "standard output");
  json_object_put(object);
  return code;
}

void cli_table_init(cli_table *t, int columns, const char *right_columns) {
  memset(t, 0, sizeof *t);
  t->columns = columns;
  for (int i = 0; i < columns && right_columns[i]; ++i) t->right[i] = right_columns[i] == 'R';
}

void cli_table_row(cli_table *t, ...) {
  if (t->rows == t->capacity) {
    int capacity = t->capacity ? 2 * t->capacity : 16;
    char **cells = realloc(t->cells, (size_t)capacity * (size_t)t->columns * sizeof *cells);
    if (!cells) return;
    t->cells = cells;
    t->capacity = capacity;
  }
  va_list list;
  va_start(list, t);
  for (int i = 0; i < t->columns; ++i) t->cells[t->rows * t->columns + i] = strdup(va_arg(list, const char *));
  va_end(list);
  ++t->rows;
}

static size_t columns_of(const char *utf8) {
  size_t n = 0;
  for (; *utf8; ++utf8) n += (*utf8 & 0xC0) != 0x80;
  return n;
}

void cli_table_print(cli_table *t, FILE *out) {
  size_t width[16] = {0};
  for (int r = 0; r < t->rows; ++r)
    for (int c = 0; c < t->columns; ++c) {
      const char *cell = t->cells[r * t->columns + c];
      size_t n = cell ? columns_of(cell) : 0;
      if (n > width[c]) width[c] = n;
    }
  for (int r = 0; r < t->rows; ++r) {
    for (int c = 0; c < t->columns; ++c) {
      const char *cell = t->cells[r * t->columns + c] ? t->cells[r * t->columns + c] : "";
      int pad = (int)(width[c] - columns_of(cell));
      bool last = c + 1 == t->columns;
      fprintf(out, "%s%*s%s%*s", c ? "  " : "", t->right[c] ? pad : 0, "", cell, t->right[c] || last ? 0 : pad, "");
    }
    fputc('\n', out);
  }
}

void cli_table_deinit(cli_table *t) {
  for (int i = 0; i < t->rows * t->columns; ++i) free(t->cells[i]);
  free(t->cells);
}

void cli_seconds(double s, char out[16]) {
  if (s >= 1) snprintf(out, 16, "%.2f s", s);
  else if (s >= 1e-3) snprintf(out, 16, "%.3g ms", s * 1e3);
  else snprintf(out, 16, "%.3g us", s * 1e6);
}

static void scaled(double v, const char *const units[5], char out[16]) {
  int k = 0;
  while (v >= 1000 && k < 4) v /= 1000, ++k;
  snprintf(out, 16, k || v != (double)(long)v ? "%.3g%s" : "%.0f%s", v, units[k]);
}

void cli_bytes(double b, char out[16]) {
  static const char *const units[5] = {" B", " kB", " MB", " GB", " TB"};
  scaled(b, units, out);
}

void cli_count(double n, char out[16]) {
  static const char *const units[5] = {"", " k", " M", " G", " T"};
  scaled(n, units, out);
}
