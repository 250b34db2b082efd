/* ait_graph_fuzz: random graphs through every pass and backend, compared with the oracle. Failures are shrunk and saved as text. */
#include "graph_fuzz.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static const char usage[] = "usage: ait_graph_fuzz [options]\n"
                            "       ait_graph_fuzz --replay FILE...\n"
                            "  --seed N       first seed (1)\n"
                            "  --count N      so many graphs (without limit)\n"
                            "  --seconds S    stop after so long (60 when there is no count)\n"
                            "  --only OP      graphs with much of this operator\n"
                            "  --check NAME   this check alone (--list shows them)\n"
                            "  --failures N   stop after so many failures (1)\n"
                            "  --out DIR      where failing graphs go (.)\n"
                            "  --print        print each graph and do not run it\n"
                            "  --list         list the checks and operators\n"
                            "  --verbose      every graph that is declined or invalid, with the reason\n";

typedef struct settings {
  uint64_t seed, count, failures;
  double seconds;
  const char *only, *check, *out;
  bool print, list, replay, verbose;
} settings;

/* Shared with the child that runs the graphs. */
typedef struct progress {
  volatile uint64_t seed, graphs, checks, declined, invalid, nodes;
  volatile bool failed, done;
} progress;

typedef struct counting {
  progress *p;
  bool verbose;
  uint64_t seed;
} counting;

static void count_check(void *ctx, const gf_check *check, const gf_result *r) {
  counting *c = ctx;
  ++c->p->checks;
  if (r->verdict != GF_DECLINED) return;
  ++c->p->declined;
  if (c->verbose) printf("seed %llu: declined by %s: %s\n", (unsigned long long)c->seed, check->name, r->reason);
}

static void run_seeds(const settings *s, progress *p, double end) {
  for (; p->graphs < s->count && (s->seconds <= 0 || ait_clock_seconds() < end); ++p->seed, ++p->graphs) {
    counting c = {p, s->verbose, p->seed};
    ait_graph *g = gf_generate(p->seed, s->only);
    p->nodes += g->node_count;
    if (g->output_count) {
      gf_result r = gf_examine(g, s->check, NULL, count_check, &c);
      if (r.verdict == GF_INVALID) ++p->invalid;
      if (r.verdict == GF_INVALID && s->verbose) printf("seed %llu: invalid: %s: %s\n", (unsigned long long)p->seed, r.check, r.reason);
      if (r.verdict == GF_FAILED) p->failed = true;
    }
    ait_graph_destroy(g);
    if (p->failed) return;
  }
  p->done = true;
}

/* Which check it is that fails, each in a process of its own. */
static gf_result find_failure(const ait_graph *g, const char *only) {
  gf_result r = gf_examine_apart(g, only, NULL);
  if (r.verdict != GF_CRASHED || only) return r;
  for (size_t i = 0; i < gf_check_count(); ++i) {
    gf_check c = gf_check_at(i);
    gf_result one = gf_examine_apart(g, c.name, NULL);
    if (one.verdict == GF_CRASHED) return one;
  }
  return r;
}

static void save(const settings *s, uint64_t seed, const ait_graph *g, const gf_result *failure) {
  char path[512];
  char *text = gf_text(g, seed, failure);
  snprintf(path, sizeof path, "%s/fuzz_%llu.txt", s->out, (unsigned long long)seed);
  FILE *f = fopen(path, "w");
  if (f) fputs(text, f);
  if (!f || fclose(f)) fprintf(stderr, "ait_graph_fuzz: cannot write '%s'\n", path);
  printf("%s\nsaved as %s; run it again: ait_graph_fuzz --replay %s\n", text, path, path);
  free(text);
}

static void report_failure(const settings *s, uint64_t seed) {
  ait_graph *g = gf_generate(seed, s->only);
  gf_result failure = find_failure(g, s->check);
  printf("seed %llu fails: %s: %s\n", (unsigned long long)seed, failure.check, failure.reason);
  if (failure.verdict != GF_FAILED && failure.verdict != GF_CRASHED) {
    printf("  but not when run alone\n");
    ait_graph_destroy(g);
    return;
  }
  ait_graph *small = gf_shrink(g, &failure, NULL, NULL);
  printf("shrunk from %zu nodes to %zu\n", g->node_count, small->node_count);
  gf_result again = gf_examine_apart(small, failure.check, NULL);
  save(s, seed, small, &again);
  ait_graph_destroy(small);
  ait_graph_destroy(g);
}

static int run_apart(const settings *s, progress *p, double end) {
  fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    run_seeds(s, p, end);
    fflush(stdout);
    _exit(0);
  }
  int state = 0;
  return child < 0 || waitpid(child, &state, 0) < 0 ? 4 : 0;
}

static int fuzz(const settings *s) {
  progress *p = mmap(NULL, sizeof *p, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED) return 4;
  *p = (progress){.seed = s->seed};
  double end = ait_clock_seconds() + s->seconds;
  uint64_t failures = 0;
  int rc = 0;
  while (rc == 0 && !p->done && failures < s->failures) {
    rc = run_apart(s, p, end);
    if (rc || p->done) break;
    ++failures;
    report_failure(s, p->seed++);
    ++p->graphs;
    p->failed = false;
  }
  printf("%llu graphs from seed %llu, %llu nodes, %llu checks; %llu declined, %llu graphs that the reference does not run; "
         "%llu failures\n",
         (unsigned long long)p->graphs, (unsigned long long)s->seed, (unsigned long long)p->nodes, (unsigned long long)p->checks,
         (unsigned long long)p->declined, (unsigned long long)p->invalid, (unsigned long long)failures);
  munmap(p, sizeof *p);
  return rc ? rc : failures > 0;
}

static int replay(const settings *s, const char *path) {
  char *text;
  size_t length;
  gf_must(ait_file_read(ait_allocator_default(), path, 64 << 20, &text, &length), "replay");
  ait_graph *g = gf_parse(text, length);
  ait_free(ait_allocator_default(), text, length + 1);
  if (!g) return 3;
  gf_result r = find_failure(g, s->check);
  static const char *const verdicts[] = {"passes", "is not valid", "passes, some declined", "FAILS", "CRASHES"};
  printf("%s %s: %s %s\n", path, verdicts[r.verdict], r.check, r.reason);
  ait_graph_destroy(g);
  return r.verdict >= GF_FAILED;
}

static int print_graphs(const settings *s) {
  for (uint64_t i = 0; i < s->count; ++i) {
    ait_graph *g = gf_generate(s->seed + i, s->only);
    char *text = gf_text(g, s->seed + i, NULL);
    puts(text);
    free(text);
    ait_graph_destroy(g);
  }
  return 0;
}

static int list(void) {
  for (size_t i = 0; i < gf_check_count(); ++i) printf("check %s\n", gf_check_at(i).name);
  for (const gf_recipe *r = gf_core_recipes; r->op; ++r) printf("core %s\n", r->op);
  for (const gf_recipe *r = gf_raw_recipes; r->op; ++r) printf("raw %s\n", r->op);
  return 0;
}

int main(int argc, char **argv) {
  static const struct option options[] = {{"seed", 1, NULL, 's'},   {"count", 1, NULL, 'n'},   {"seconds", 1, NULL, 't'},
                                          {"only", 1, NULL, 'o'},   {"check", 1, NULL, 'c'},   {"out", 1, NULL, 'd'},
                                          {"replay", 0, NULL, 'r'}, {"print", 0, NULL, 'p'},   {"failures", 1, NULL, 'f'},
                                          {"list", 0, NULL, 'l'},   {"verbose", 0, NULL, 'v'}, {NULL, 0, NULL, 0}};
  settings s = {.seed = 1, .count = UINT64_MAX, .failures = 1, .out = "."};
  for (int c; (c = getopt_long(argc, argv, "", options, NULL)) != -1;) {
    switch (c) {
      case 's': s.seed = strtoull(optarg, NULL, 10); break;
      case 'n': s.count = strtoull(optarg, NULL, 10); break;
      case 't': s.seconds = strtod(optarg, NULL); break;
      case 'o': s.only = optarg; break;
      case 'c': s.check = optarg; break;
      case 'd': s.out = optarg; break;
      case 'r': s.replay = true; break;
      case 'f': s.failures = strtoull(optarg, NULL, 10); break;
      case 'p': s.print = true; break;
      case 'l': s.list = true; break;
      case 'v': s.verbose = true; break;
      default: fputs(usage, stderr); return 2;
    }
  }
  if ((optind < argc) != s.replay) return fputs(usage, stderr), 2;
  if (s.print && s.count == UINT64_MAX) s.count = 1;
  if (s.seconds <= 0 && s.count == UINT64_MAX) s.seconds = 60;
  int rc = s.replay ? 0 : s.list ? list() : s.print ? print_graphs(&s) : fuzz(&s);
  for (int i = optind; i < argc; ++i) {
    int one = replay(&s, argv[i]);
    if (one > rc) rc = one;
  }
  return rc;
}
