/* Where other people's engines may be: the command line reads the environment, the library does not. */
#include "cli/cli.h"
#include <stdlib.h>

/* AIT_GUEST_PATH first, then the active Python environment, then the user's own packages. */
int cli_guests_configure(void) {
  char path[3500];
  const char *named = getenv("AIT_GUEST_PATH"), *environment = getenv("VIRTUAL_ENV"), *home = getenv("HOME");
  int n = snprintf(path, sizeof path, "%s", named ? named : "");
  if (environment && n >= 0 && (size_t)n < sizeof path)
    n += snprintf(path + n, sizeof path - (size_t)n, ":%s/lib/python3*/site-packages", environment);
  if (home && n >= 0 && (size_t)n < sizeof path)
    n += snprintf(path + n, sizeof path - (size_t)n, ":%s/.local/lib/python3*/site-packages", home);
  /* Before any thread: ONNX Runtime would report usage over the network, OpenVINO's threads end a program under AddressSanitizer. */
  setenv("ORT_DISABLE_TELEMETRY", "1", 1);
  setenv("TBB_ENABLE_SANITIZERS", "1", 1);
  ait_guest_options options = {.struct_size = sizeof options, .search_path = path, .usage_reporting_settled = true};
  return cli_fail(ait_guests_configure(&options));
}
