#include "cli/cli.h"
#include <signal.h>
#include <string.h>

static const struct {
  const char *name;
  int (*run)(const cli_args *args);
} commands[] = {
#define AIT_COMMAND(function, name, arguments, minimum, maximum, summary) {name, cli_cmd_##function},
#define AIT_OPTION(command, name, letter, value, repeatable, help)
#include "cli/options.inc"
#undef AIT_COMMAND
#undef AIT_OPTION
};

int cli_cmd_help(const cli_args *args) { return cli_help(stdout, args->positional_count ? args->positional[0] : NULL); }

int main(int argc, char **argv) {
  signal(SIGPIPE, SIG_IGN); /* both come back as errors of write */
  signal(SIGXFSZ, SIG_IGN);
  if (argc < 2) return cli_help(stderr, NULL), CLI_USAGE;
  if (!strcmp(argv[1], "--version")) return printf("ait %s\n", ait_version()), cli_finish(CLI_DONE);
  if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h")) return cli_finish(cli_help(stdout, NULL));
  cli_args args;
  int code = cli_parse(argc, argv, &args);
  if (code != CLI_DONE) return code;
  if ((code = cli_guests_configure()) != CLI_DONE) return code;
  if ((code = cli_plugins_load(&args)) != CLI_DONE) return code;
  for (size_t i = 0; i < sizeof commands / sizeof commands[0]; ++i)
    if (!strcmp(commands[i].name, args.command)) code = commands[i].run(&args);
  return cli_finish(code);
}
