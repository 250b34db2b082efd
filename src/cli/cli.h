/* Front door of the command line: parsed arguments, output, data. Uses the public headers only. */
#ifndef AIT_SRC_CLI_H
#define AIT_SRC_CLI_H

#include <ait/ait.h>
#include <json-c/json.h>
#include <stdio.h>

enum { CLI_DONE = 0, CLI_NO = 1, CLI_USAGE = 2, CLI_BAD_MODEL = 3, CLI_MISSING = 4, CLI_INTERRUPTED = 130 };

#define CLI_MAX_OPTIONS 64
typedef struct cli_args {
  const char *command;
  const char *positional[CLI_MAX_OPTIONS];
  int positional_count;
  struct {
    const char *name, *value; /* value: "" for flags and for --json without a file */
  } options[CLI_MAX_OPTIONS];
  int option_count;
} cli_args;

/* options.c. parse prints what is wrong and returns CLI_USAGE, or CLI_DONE. */
int cli_parse(int argc, char **argv, cli_args *out);
int cli_help(FILE *out, const char *command);                   /* NULL: all commands. Returns an exit code: the command may be unknown */
const char *cli_option(const cli_args *args, const char *name); /* last value; NULL: not given */
const char *cli_option_at(const cli_args *args, const char *name, int k); /* k-th value of a repeatable option; NULL after the last */
bool cli_flag(const cli_args *args, const char *name);
/* Numbers from options; usage errors are printed and end up false. */
bool cli_int(const cli_args *args, const char *name, int64_t min, int64_t max, int64_t when_absent, int64_t *out);
bool cli_byte_count(const cli_args *args, const char *name, uint64_t *out); /* "512M"; 0 when absent */
bool cli_double(const cli_args *args, const char *name, double when_absent, double *out);

/* guests.c: tells the library where other people's engines may be. An exit code. */
int cli_guests_configure(void);

/* plugins.c: all of --plugin. An exit code. */
int cli_plugins_load(const cli_args *args);

/* output.c */
/* Prints "ait: message" and "hint: …" to stderr, frees the status, returns its exit code. CLI_DONE for AIT_OK. */
int cli_fail(ait_status status);
int cli_usage(const char *format, ...) AIT_PRINTF(1, 2); /* prints, with a hint to the command's help; returns CLI_USAGE */
void cli_usage_command(const char *command);             /* whose help that is; NULL: none */
double cli_now(void);                                    /* seconds of a clock that only goes forward */
/* All of a file that is open, NUL-terminated, freed with free. Errors: limit ("'path' is too large for WHAT"), out-of-memory. */
ait_status cli_read_all(FILE *f, const char *path, const char *what, size_t limit, char **out, size_t *out_size) AIT_MUST_USE;
/* A file of text for a language model, at most 1 GiB. Errors: not-found, io, and those of cli_read_all. */
ait_status cli_read_text(const char *path, char **out, size_t *out_size) AIT_MUST_USE;
/* Flushes standard output. code, or CLI_MISSING after a message when something that was printed could not be written. */
int cli_finish(int code);
/* The text as a file: ended by a newline; whole, or as it was before. Special files (/dev/stdout) are written directly. Returns an exit
 * code. */
int cli_write_file(const char *path, const char *text);
/* Sends a JSON object where --json says; returns an exit code. Takes over the object. */
int cli_json(const cli_args *args, struct json_object *object);
bool cli_wants_json(const cli_args *args);
/* A left-aligned table that fits 80 columns where it can: rows of `columns` texts; the last column takes what is left. */
typedef struct cli_table {
  int columns, rows, capacity;
  char **cells;
  bool right[16]; /* numbers: aligned right */
} cli_table;
void cli_table_init(cli_table *t, int columns, const char *right_columns); /* "RLR" */
void cli_table_row(cli_table *t, ...);                                     /* `columns` const char * */
void cli_table_print(cli_table *t, FILE *out);
void cli_table_deinit(cli_table *t);
void cli_seconds(double s, char out[16]); /* "1.25 ms" */
void cli_bytes(double b, char out[16]);   /* "4.0 MB" */
void cli_count(double n, char out[16]);   /* "25.6 M" */

/* cmd_key.c: the store that --keys names, else the one in the user's config folder; *out NULL where there is no such folder to name. */
ait_status cli_keys_open(const cli_args *args, ait_keys **out) AIT_MUST_USE;
/* The name in `key` of an own key, which is made when it is "own" and missing. */
ait_status cli_keys_need(const cli_args *args, ait_keys *keys, const char *key) AIT_MUST_USE;
#define CLI_OWN_KEY "own"
/* Load options as --isa, --model-name, --keys and --require-signature say; closed when the load is done. */
typedef struct cli_load {
  ait_load_options options;
  ait_keys *keys;
} cli_load;
ait_status cli_load_open(const cli_args *args, cli_load *out) AIT_MUST_USE;
void cli_load_close(cli_load *load);
/* "signed by 'anna' (fingerprint)", "not signed" … */
void cli_signature_text(const char *state, const char *key, const char *fingerprint, char out[192]);

/* cmd_record.c: --record, else $XDG_CACHE_HOME/ait/record.db, else ~/.cache/ait/record.db; NULL: nowhere, or 'none'. */
const char *cli_record_path(const cli_args *args, char *buffer, size_t size);

/* data.c: inputs of a model from --data/--random */
typedef struct cli_inputs {
  ait_data *sources[CLI_MAX_OPTIONS]; /* own the memory of the values */
  int source_count;
  ait_value *values;
  size_t count;
} cli_inputs;
/* Values for the model's user inputs, by name, else by position (arr_0, arr_1, …). Usage errors and bad data: status. */
ait_status cli_inputs_load(const cli_args *args, ait_model *model, const char *option, cli_inputs *out) AIT_MUST_USE;
ait_status cli_inputs_random(const cli_args *args, ait_model *model, uint64_t seed, cli_inputs *out) AIT_MUST_USE;
/* --random SEED or the data option; error when neither is given. */
ait_status cli_inputs_get(const cli_args *args, ait_model *model, const char *option, cli_inputs *out) AIT_MUST_USE;
/* At most the first `rows` rows of every tensor whose dimension 0 is as large as the first tensor's: a smaller batch, without a copy. */
void cli_inputs_take_rows(cli_inputs *inputs, int64_t rows);
void cli_inputs_deinit(cli_inputs *inputs);
/* .ait or an importable model, with --isa, --backend, --knobs, --model-name applied. */
ait_status cli_model_open(const cli_args *args, const char *path, const char *backend, ait_model **out) AIT_MUST_USE;
ait_status cli_session_open(const cli_args *args, ait_model *model, bool profile, ait_session **out) AIT_MUST_USE;

/* One per command, in cmd_<name>.c. */
#define AIT_COMMAND(function, name, arguments, minimum, maximum, summary) int cli_cmd_##function(const cli_args *args);
#define AIT_OPTION(command, name, letter, value, repeatable, help)
#include "cli/options.inc"
#undef AIT_COMMAND
#undef AIT_OPTION

#endif
