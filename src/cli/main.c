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

int cli_cmd_help(const cli_args *args) {
  cli_help(stdout, args->positional_count ? args->positional[0] : NULL);
  return CLI_DONE;
}

int main(int argc, char **argv) {
  signal(SIGPIPE, SIG_IGN);
  if (argc < 2) {
    cli_help(stderr, NULL);
    return CLI_USAGE;
  }
  if (!strcmp(argv[1], "--version")) return printf("ait %s\n", ait_version()) < 0 ? CLI_MISSING : CLI_DONE;
  if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h")) {
    cli_help(stdout, NULL);
    return CLI_DONE;
  }
  cli_args args;
  int code = cli_parse(argc, argv, &args);
  if (code != CLI_DONE) return code;
  for (size_t i = 0; i < sizeof commands / sizeof commands[0]; ++i)
    if (!strcmp(commands[i].name, args.command)) code = commands[i].run(&args);
  if (fflush(stdout) != 0 && code == CLI_DONE) code = CLI_MISSING;
  return code;
}
