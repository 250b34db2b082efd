/* What people and programs read: errors, tables, JSON, units. */
#include "cli/cli.h"
#include <time.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int cli_fail(ait_status status) {
  if (status == AIT_OK) return CLI_DONE;
  fprintf(stderr, "ait: %s\n", ait_status_message(status));
  if (ait_status_hint(status)) fprintf(stderr, "hint: %s\n", ait_status_hint(status));
  int code = ait_code_exit(ait_status_code(status));
  ait_status_free(status);
  return code;
}

static const char *usage_command;
void cli_usage_command(const char *command) { usage_command = command; }

int cli_usage(const char *format, ...) {
  va_list list;
  va_start(list, format);
  fputs("ait: ", stderr);
  vfprintf(stderr, format, list);
  fputc('\n', stderr);
  va_end(list);
  if (usage_command) fprintf(stderr, "hint: 'ait help %s' says more\n", usage_command);
  return CLI_USAGE;
}

static int cannot_write(const char *what, int error) {
  fprintf(stderr, "ait: cannot write %s: %s\n", what, strerror(error));
  fprintf(stderr, "hint: is the disk full, or may you not write there?\n");
  return CLI_MISSING;
}

int cli_finish(int code) {
  errno = 0;
  bool failed = fflush(stdout) != 0;
  int error = errno;
  failed |= ferror(stdout) != 0;
  if (!failed || code != CLI_DONE) return code;
  if (error == EPIPE) return CLI_MISSING; /* the reader has gone: it wants to hear nothing */
  return cannot_write("standard output", error ? error : EIO);
}

static bool put_text(FILE *f, const char *text, bool sync) {
  bool whole_line = *text && text[strlen(text) - 1] == '\n';
  bool good = fputs(text, f) >= 0 && (whole_line || fputc('\n', f) >= 0) && fflush(f) == 0 && (!sync || fsync(fileno(f)) == 0);
  int error = errno;
  if (fclose(f) != 0) return false;
  errno = error;
  return good;
}

int cli_write_file(const char *path, const char *text) {
  struct stat info;
  char temporary[4200], quoted[4200];
  snprintf(quoted, sizeof quoted, "'%s'", path);
  if (lstat(path, &info) == 0 && !S_ISREG(info.st_mode)) {
    FILE *f = fopen(path, "w");
    return f && put_text(f, text, false) ? CLI_DONE : cannot_write(quoted, errno);
  }
  if ((size_t)snprintf(temporary, sizeof temporary, "%s.tmp-%ld", path, (long)getpid()) >= sizeof temporary)
    return cannot_write(quoted, ENAMETOOLONG);
  FILE *f = fopen(temporary, "wx");
  if (f && put_text(f, text, true) && rename(temporary, path) == 0) return CLI_DONE;
  int error = errno;
  if (f) unlink(temporary);
  return cannot_write(quoted, error);
}

bool cli_wants_json(const cli_args *args) { return cli_flag(args, "json"); }

double cli_now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

ait_status cli_read_all(FILE *f, const char *path, const char *what, size_t limit, char **out, size_t *out_size) {
  size_t size = 0, capacity = 1 << 16;
  char *text = malloc(capacity + 1);
  while (text) {
    size += fread(text + size, 1, capacity - size, f);
    if (size < capacity) break;
    if (capacity >= limit) {
      free(text);
      return ait_error(AIT_CODE_LIMIT, "'%s' is too large for %s", path, what);
    }
    char *more = realloc(text, 2 * capacity + 1);
    if (!more) free(text);
    text = more;
    capacity *= 2;
  }
  if (!text) return ait_error(AIT_CODE_OUT_OF_MEMORY, "out of memory");
  text[size] = 0;
  *out = text;
  *out_size = size;
  return AIT_OK;
}

ait_status cli_read_text(const char *path, char **out, size_t *out_size) {
  FILE *f = fopen(path, "rb");
  if (!f)
    return ait_error(errno == ENOENT || errno == ENOTDIR ? AIT_CODE_NOT_FOUND : AIT_CODE_IO, "cannot open '%s': %s", path, strerror(errno));
  ait_status status = cli_read_all(f, path, "a text", (size_t)1 << 30, out, out_size);
  bool failed = ferror(f) != 0;
  fclose(f);
  return status == AIT_OK && failed ? ait_error(AIT_CODE_IO, "cannot read '%s'", path) : status;
}

int cli_json(const cli_args *args, struct json_object *object) {
  const char *path = cli_option(args, "json");
  const char *text = json_object_to_json_string_ext(object, JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_NOSLASHESCAPE);
  int code = CLI_DONE;
  if (path && *path) code = cli_write_file(path, text);
  else puts(text); /* cli_finish looks whether it got out */
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

enum { SCREEN = 80, NARROWEST = 20 };

/* Bytes of the next word, but at most `width` columns of it. */
static size_t word_length(const char *word, size_t width, size_t *out_columns) {
  size_t bytes = 0;
  *out_columns = 0;
  for (; word[bytes] && word[bytes] != ' '; ++bytes) {
    bool begins = (word[bytes] & 0xC0) != 0x80;
    if (begins && *out_columns == width) break;
    *out_columns += begins;
  }
  return bytes;
}

/* At word boundaries, later lines under the first; words that are too long for a line go over several. */
static void print_wrapped(FILE *out, const char *text, size_t indent, size_t width) {
  size_t column = 0;
  for (const char *word = text; *word;) {
    size_t columns, bytes = word_length(word, width, &columns);
    if (column && column + 1 + columns > width) fprintf(out, "\n%*s", (int)indent, ""), column = 0;
    else if (column) fputc(' ', out), ++column;
    fwrite(word, 1, bytes, out);
    column += columns;
    for (word += bytes; *word == ' ';) ++word;
  }
}

/* Too wide: first the gaps shrink, then the last column is wrapped. */
void cli_table_print(cli_table *t, FILE *out) {
  size_t width[16] = {0}, before = 0, gap = 2;
  int last = t->columns - 1;
  for (int r = 0; r < t->rows; ++r)
    for (int c = 0; c < t->columns; ++c) {
      const char *cell = t->cells[r * t->columns + c];
      size_t n = cell ? columns_of(cell) : 0;
      if (n > width[c]) width[c] = n;
    }
  for (int c = 0; c < last; ++c) before += width[c];
  if (before + gap * (size_t)last + width[last] > SCREEN && t->right[last]) gap = 1;
  before += gap * (size_t)last;
  bool wrap = !t->right[last] && before + width[last] > SCREEN && before + NARROWEST <= SCREEN;
  for (int r = 0; r < t->rows; ++r) {
    for (int c = 0; c < t->columns; ++c) {
      const char *cell = t->cells[r * t->columns + c] ? t->cells[r * t->columns + c] : "";
      int pad = (int)(width[c] - columns_of(cell));
      if (c == last && wrap) {
        fprintf(out, "%*s", c ? (int)gap : 0, "");
        print_wrapped(out, cell, before, SCREEN - before);
      } else {
        fprintf(out, "%*s%*s%s%*s", c ? (int)gap : 0, "", t->right[c] ? pad : 0, "", cell, t->right[c] || c == last ? 0 : pad, "");
      }
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
