/* Parses the command line against options.inc and prints help from it. */
#include "cli/cli.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

typedef struct command_row {
  const char *name, *arguments, *summary;
  int minimum, maximum;
} command_row;
typedef struct option_row {
  const char *command, *name, *value, *help;
  char letter;
  bool repeatable;
} option_row;

static const command_row commands[] = {
#define AIT_COMMAND(function, name, arguments, minimum, maximum, summary) {name, arguments, summary, minimum, maximum},
#define AIT_OPTION(command, name, letter, value, repeatable, help)
#include "cli/options.inc"
#undef AIT_COMMAND
#undef AIT_OPTION
};
static const option_row options[] = {
#define AIT_COMMAND(function, name, arguments, minimum, maximum, summary)
#define AIT_OPTION(command, name, letter, value, repeatable, help) {command, name, value, help, letter, repeatable},
#include "cli/options.inc"
#undef AIT_COMMAND
#undef AIT_OPTION
};
enum { COMMANDS = sizeof commands / sizeof commands[0], OPTIONS = sizeof options / sizeof options[0] };

static const command_row *find_command(const char *name) {
  for (int i = 0; i < COMMANDS; ++i)
    if (!strcmp(commands[i].name, name)) return &commands[i];
  return NULL;
}

static const option_row *find_option(const char *command, const char *name, size_t length, char letter) {
  for (int i = 0; i < OPTIONS; ++i) {
    const option_row *o = &options[i];
    if (strcmp(o->command, command) && strcmp(o->command, "*")) continue;
    if (letter ? o->letter == letter : strlen(o->name) == length && !memcmp(o->name, name, length)) return o;
  }
  return NULL;
}

/* Levenshtein distance, capped by the buffer: for "did you mean". */
static size_t edit_distance(const char *a, const char *b) {
  size_t row[65], n = strlen(b);
  if (n > 64) return 99;
  for (size_t j = 0; j <= n; ++j) row[j] = j;
  for (size_t i = 1; a[i - 1]; ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= n; ++j) {
      size_t up = row[j], best = diagonal + (a[i - 1] != b[j - 1]);
      if (up + 1 < best) best = up + 1;
      if (row[j - 1] + 1 < best) best = row[j - 1] + 1;
      row[j] = best;
      diagonal = up;
    }
  }
  return row[n];
}

static int unknown_command(const char *name) {
  const char *near = NULL;
  for (int i = 0; i < COMMANDS; ++i)
    if (edit_distance(name, commands[i].name) <= 2) near = commands[i].name;
  fprintf(stderr, "ait: unknown command '%s'\n", name);
  if (near) fprintf(stderr, "hint: did you mean 'ait %s'?\n", near);
  else fprintf(stderr, "hint: 'ait help' lists the commands\n");
  return CLI_USAGE;
}

static int unknown_option(const char *command, const char *given) {
  char text[64];
  const char *near = NULL;
  snprintf(text, sizeof text, "%.*s", (int)strcspn(given, "="), given);
  for (int i = 0; i < OPTIONS; ++i)
    if ((!strcmp(options[i].command, command) || !strcmp(options[i].command, "*")) && edit_distance(text + 2, options[i].name) <= 2)
      near = options[i].name;
  fprintf(stderr, "ait: 'ait %s' has no option '%s'\n", command, text);
  if (text[1] == '-' && near) fprintf(stderr, "hint: did you mean '--%s'?\n", near);
  else fprintf(stderr, "hint: 'ait help %s' lists its options\n", command);
  return CLI_USAGE;
}

/* Values of these kinds are numbers, whatever the command does with them. */
static int check_value(const option_row *o, const char *value) {
  char *end;
  if (!o->value || (strcmp(o->value, "N") && strcmp(o->value, "SEED"))) return CLI_DONE;
  errno = 0;
  (void)strtoull(value, &end, 10);
  if (errno || end == value || *end || *value == '-') return cli_usage("option '--%s': '%s' is not a whole number", o->name, value);
  return CLI_DONE;
}

/* One "--name", "--name=value", "--name value", "-x", "-x value". */
static int parse_option(int argc, char **argv, int *i, cli_args *out) {
  const char *text = argv[*i];
  bool is_long = text[1] == '-';
  const char *equals = is_long ? strchr(text, '=') : NULL;
  size_t length = is_long ? (equals ? (size_t)(equals - text) : strlen(text)) - 2 : 0;
  const option_row *o = is_long   ? find_option(out->command, text + 2, length, 0)
                        : text[2] ? NULL
                                  : find_option(out->command, NULL, 0, text[1]);
  if (!o) return unknown_option(out->command, text);
  bool optional_value = o->value && o->value[0] == '[';
  const char *value = "";
  if (equals) {
    if (!o->value) return cli_usage("option '--%s' takes no value", o->name);
    value = equals + 1;
  } else if (o->value && !optional_value) {
    if (*i + 1 >= argc) return cli_usage("option '%s' needs a value: %s", text, o->value);
    value = argv[++*i];
  }
  if (check_value(o, value) != CLI_DONE) return CLI_USAGE;
  if (!o->repeatable && cli_option(out, o->name)) return cli_usage("option '--%s' is given twice", o->name);
  if (out->option_count == CLI_MAX_OPTIONS) return cli_usage("too many options");
  out->options[out->option_count].name = o->name;
  out->options[out->option_count++].value = value;
  return CLI_DONE;
}

int cli_parse(int argc, char **argv, cli_args *out) {
  memset(out, 0, sizeof *out);
  const command_row *command = find_command(argv[1]);
  if (!command) return unknown_command(argv[1]);
  out->command = command->name;
  cli_usage_command(command->name);
  bool only_positional = false;
  for (int i = 2; i < argc; ++i) {
    if (!only_positional && !strcmp(argv[i], "--")) {
      only_positional = true;
    } else if (!only_positional && !strcmp(argv[i], "--help")) {
      exit(cli_finish(cli_help(stdout, command->name)));
    } else if (!only_positional && argv[i][0] == '-' && argv[i][1]) {
      int code = parse_option(argc, argv, &i, out);
      if (code != CLI_DONE) return code;
    } else {
      if (out->positional_count == CLI_MAX_OPTIONS) return cli_usage("too many arguments");
      out->positional[out->positional_count++] = argv[i];
    }
  }
  if (out->positional_count < command->minimum || (command->maximum >= 0 && out->positional_count > command->maximum)) {
    fprintf(stderr, "ait: usage: ait %s %s [options]\nhint: 'ait help %s' says more\n", command->name, command->arguments, command->name);
    return CLI_USAGE;
  }
  return CLI_DONE;
}

/* "  left                      help", the help wrapped at 80 columns. */
static void print_entry(FILE *out, const char *left, const char *help) {
  if (strlen(left) <= 27) fprintf(out, "  %-27s ", left);
  else fprintf(out, "  %s\n%30s", left, "");
  int column = 30;
  for (const char *word = help; *word;) {
    size_t n = strcspn(word, " ");
    if (column > 30 && column + 1 + (int)n > 79) {
      fprintf(out, "\n%30s", "");
      column = 30;
    } else if (column > 30) {
      fputc(' ', out);
      ++column;
    }
    fwrite(word, 1, n, out);
    column += (int)n;
    word += n;
    while (*word == ' ') ++word;
  }
  fputc('\n', out);
}

static void print_options(FILE *out, const char *command) {
  for (int i = 0; i < OPTIONS; ++i) {
    const option_row *o = &options[i];
    if (strcmp(o->command, command)) continue;
    char left[64], letter[8] = "    ";
    if (o->letter) snprintf(letter, sizeof letter, "-%c, ", o->letter);
    const char *value = o->value ? o->value : "";
    snprintf(left, sizeof left, "%s--%s%s%s", letter, o->name, *value == '[' ? "" : *value ? " " : "", *value == '[' ? "[=FILE]" : value);
    print_entry(out, left, o->help);
  }
}

static void print_strategies(FILE *out) {
  static const struct {
    const char *name, *alias, *argument, *help;
  } rows[] = {
#define AIT_STRATEGY(id, name, alias, argument, part, help) {name, alias, argument, help},
#include <ait/strategies.inc>
#undef AIT_STRATEGY
  };
  fprintf(out, "\nstrategies:\n");
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; ++i) {
    char left[96];
    snprintf(left, sizeof left, "%s%s%s", rows[i].name, rows[i].argument ? "=" : "", rows[i].argument ? rows[i].argument : "");
    print_entry(out, left, rows[i].help);
    if (rows[i].alias) fprintf(out, "  %-27s the same\n", rows[i].alias);
  }
}

int cli_help(FILE *out, const char *name) {
  const command_row *command = name ? find_command(name) : NULL;
  if (name && !command) return unknown_command(name);
  if (command) {
    fprintf(out, "usage: ait %s %s [options]\n\n%s\n\noptions:\n", command->name, command->arguments, command->summary);
    print_options(out, command->name);
    print_options(out, "*");
    if (!strcmp(command->name, "tune")) print_strategies(out);
    return CLI_DONE;
  }
  fprintf(out, "usage: ait COMMAND [options]\n\ncommands:\n");
  for (int i = 0; i < COMMANDS; ++i) fprintf(out, "  %-9s %s\n", commands[i].name, commands[i].summary);
  fprintf(out, "\n'ait help COMMAND' lists a command's options; 'ait --version' is the version.\n"
               "Exit codes: 0 done, 1 the answer is no, 2 usage, 3 bad model or data,\n4 something missing here, 130 interrupted.\n");
  return CLI_DONE;
}

const char *cli_option_at(const cli_args *args, const char *name, int k) {
  for (int i = 0; i < args->option_count; ++i)
    if (!strcmp(args->options[i].name, name) && k-- == 0) return args->options[i].value;
  return NULL;
}

const char *cli_option(const cli_args *args, const char *name) { return cli_option_at(args, name, 0); }
bool cli_flag(const cli_args *args, const char *name) { return cli_option(args, name) != NULL; }

bool cli_int(const cli_args *args, const char *name, int64_t min, int64_t max, int64_t when_absent, int64_t *out) {
  const char *text = cli_option(args, name);
  *out = when_absent;
  if (!text) return true;
  char *end;
  errno = 0;
  long long v = strtoll(text, &end, 10);
  if (errno || end == text || *end || v < min || v > max) {
    cli_usage("option '--%s': '%s' is not a whole number from %lld to %lld", name, text, (long long)min, (long long)max);
    return false;
  }
  *out = v;
  return true;
}

/* A number, with "s" or "ms" allowed behind it. */
bool cli_double(const cli_args *args, const char *name, double when_absent, double *out) {
  const char *text = cli_option(args, name);
  *out = when_absent;
  if (!text) return true;
  char *end;
  double v = strtod(text, &end);
  if (end != text && !strcmp(end, "ms")) v /= 1000, end += 2;
  else if (end != text && !strcmp(end, "s")) end += 1;
  if (end == text || *end || !(v >= 0) || v > 1e300) {
    cli_usage("option '--%s': '%s' is not a number", name, text);
    return false;
  }
  *out = v;
  return true;
}

/* A whole number, with K, M, G or T (powers of 1024) allowed behind it. */
bool cli_byte_count(const cli_args *args, const char *name, uint64_t *out) {
  const char *text = cli_option(args, name), *units = "KMGT";
  *out = 0;
  if (!text) return true;
  char *end;
  errno = 0;
  uint64_t v = strtoull(text, &end, 10);
  const char *unit = *end ? strchr(units, *end) : NULL;
  int shift = unit ? 10 * (int)(unit - units + 1) : 0;
  if (unit) ++end;
  if (errno || *text < '0' || *text > '9' || *end || v == 0 || v > UINT64_MAX >> shift) {
    cli_usage("option '--%s': '%s' is not a number of bytes like 512M", name, text);
    return false;
  }
  *out = v << shift;
  return true;
}
