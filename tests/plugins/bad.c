/* Plugins that end badly before anything is asked of their backend: compiled once for each, -DBAD_constructor and so on. */
#define ait_backend_query honest_query
#include "../../examples/backend_plugin/rows.c"
#undef ait_backend_query

#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

static void die(int number) {
  signal(number, SIG_DFL);
  raise(number);
}

#if defined BAD_constructor || defined BAD_leaving || defined BAD_hanging
__attribute__((constructor)) static void begin(void) {
#if defined BAD_constructor
  die(SIGSEGV);
#elif defined BAD_leaving
  exit(0);
#else
  for (;;) pause();
#endif
}
#endif

#if defined BAD_probe
static void probe(ait_probe *out) {
  (void)out;
  die(SIGSEGV);
}
#endif

AIT_API const ait_backend *ait_backend_query(uint32_t abi_version);
const ait_backend *ait_backend_query(uint32_t abi_version) {
#if defined BAD_query
  die(SIGABRT);
#endif
  const ait_backend *honest = honest_query(abi_version);
#if defined BAD_probe
  static ait_backend table;
  table = *honest;
  table.name = "bad_probe";
  table.probe = probe;
  return &table;
#else
  (void)die;
  return honest;
#endif
}
