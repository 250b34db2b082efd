/* ait export: a model as an ONNX file. */
#include "cli/cli.h"

int cli_cmd_export(const cli_args *args) {
  ait_load_options options;
  ait_export_options wanted = {.struct_size = sizeof wanted, .external_data = cli_flag(args, "external-data")};
  const char *path = cli_option(args, "output");
  int64_t opset;
  if (!path) return cli_usage("'ait export' needs -o OUT.onnx");
  if (!cli_int(args, "opset", 1, 1000, 0, &opset)) return CLI_USAGE;
  wanted.opset = (int32_t)opset;
  ait_load_options_init(&options);
  options.model_name = cli_option(args, "model-name");
  options.weights = cli_option(args, "weights");
  return cli_fail(ait_export(args->positional[0], path, &options, &wanted));
}
