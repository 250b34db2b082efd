/* ait_llm_check equality|trace|memory MODEL …: see tests/llm/README.md. Exit code: 0, all equal; 1, something is not; 2, usage or a model
 * that cannot be opened. */
#include "check.h"
#include <stdlib.h>
#include <unistd.h>

void must(ait_status status) {
  if (status == AIT_OK) return;
  fprintf(stderr, "%s\n", ait_status_message(status));
  exit(2);
}

uint32_t roll(dice *d, uint32_t below) {
  d->state = d->state * 6364136223846793005u + 1442695040888963407u;
  return (uint32_t)(d->state >> 33) % below;
}

float roll_between(dice *d, float low, float high) { return low + (high - low) * (float)roll(d, 1 << 20) / (float)(1 << 20); }

/* ---- files ---------------------------------------------------------------------------------------------------------------------------*/
static bool ends_with(const char *text, const char *end) {
  size_t n = strlen(text), m = strlen(end);
  return n >= m && !strcmp(text + n - m, end);
}

ait_llm *open_llm(const char *path, int64_t max_seq) {
  ait_llm *llm;
  char made[] = "/tmp/ait_llm_check.XXXXXX", *json;
  if (ends_with(path, ".ait")) {
    must(ait_llm_load(path, NULL, &llm));
    return llm;
  }
  ait_deploy_options options;
  ait_deploy_options_init(&options);
  options.max_seq = max_seq;
  options.page_size = 16;
  int fd = mkstemp(made);
  if (fd < 0) exit(2);
  close(fd);
  must(ait_deploy(path, made, &options, &json));
  ait_string_free(json);
  must(ait_llm_load(made, NULL, &llm));
  unlink(made);
  return llm;
}

static ait_tensor member(const goldens *g, const char *name, ait_dtype dtype, int32_t rank) {
  const ait_tensor *t = ait_tensor_file_find(&g->file, name);
  if (!t || t->dtype != dtype || t->rank != rank || !ait_tensor_is_contiguous(t)) {
    fprintf(stderr, "the goldens have no '%s' of the right kind\n", name);
    exit(2);
  }
  return *t;
}

void read_goldens(const char *path, goldens *out) {
  *out = (goldens){0};
  ait_tensor_file_init(&out->file, ait_allocator_default());
  must(ait_npz_read(path, &out->file));
  out->ids = member(out, "ids", AIT_I64, 2);
  out->logits = member(out, "logits", AIT_F32, 3);
  out->prompts = member(out, "prompts", AIT_I64, 2);
  out->answers = member(out, "answers", AIT_I64, 2);
  ait_tensor bound = member(out, "bound", AIT_F64, 1);
  out->bound = *(const double *)bound.data;
}

int64_t int_at(const ait_tensor *t, int64_t row, int64_t column) { return ((const int64_t *)t->data)[row * t->shape[1] + column]; }

int32_t row_length(const ait_tensor *t, int64_t row) {
  int32_t n = 0;
  while (n < t->shape[1] && int_at(t, row, n) >= 0) ++n;
  return n;
}

/* ---- commands ------------------------------------------------------------------------------------------------------------------------*/
static int usage(void) {
  fprintf(stderr, "usage: ait_llm_check equality MODEL GOLDENS.npz [DRAFT]\n"
                  "       ait_llm_check fixtures FOLDER          every NAME.golden.npz beside NAME.pt2\n"
                  "       ait_llm_check trace MODEL REQUESTS SEED [DRAFT]\n"
                  "       ait_llm_check memory MODEL REQUESTS SEED\n"
                  "MODEL: .ait; or .pt2 or folder, which is deployed first\n");
  return 2;
}

static int equality(const char *model, const char *golden, const char *draft) {
  goldens g;
  read_goldens(golden, &g);
  ait_llm *llm = open_llm(model, 0), *small = draft ? open_llm(draft, 0) : NULL;
  int bad = check_logits(llm, &g) + check_answers(llm, small, &g);
  ait_llm_release(llm);
  ait_llm_release(small);
  ait_tensor_file_deinit(&g.file);
  return bad;
}

/* FIXTURES of tests/llm/make.py; the draft model is one of attention for all of them. */
static int fixtures(const char *folder) {
  static const char *const names[] = {"llama", "gemma3", "gpt2", "falcon_new", "gpt_oss", "mixtral", "mamba2", "bamba"};
  char model[512], golden[512], draft[512];
  int bad = 0;
  snprintf(draft, sizeof draft, "%s/llama.pt2", folder);
  for (size_t i = 0; i < AIT_COUNT(names); ++i) {
    snprintf(model, sizeof model, "%s/%s.pt2", folder, names[i]);
    snprintf(golden, sizeof golden, "%s/%s.golden.npz", folder, names[i]);
    printf("%s\n", names[i]);
    bad += equality(model, golden, draft);
  }
  return bad;
}

int main(int argc, char **argv) {
  int bad;
  if (argc == 3 && !strcmp(argv[1], "fixtures")) bad = fixtures(argv[2]);
  else if ((argc == 4 || argc == 5) && !strcmp(argv[1], "equality")) bad = equality(argv[2], argv[3], argc == 5 ? argv[4] : NULL);
  else if ((argc == 5 || argc == 6) && !strcmp(argv[1], "trace")) {
    ait_llm *llm = open_llm(argv[2], 0), *draft = argc == 6 ? open_llm(argv[5], 0) : NULL;
    bad = check_trace(llm, draft, atoi(argv[3]), strtoull(argv[4], NULL, 10));
    ait_llm_release(llm);
    ait_llm_release(draft);
  } else if (argc == 5 && !strcmp(argv[1], "memory")) {
    ait_llm *llm = open_llm(argv[2], 0);
    bad = check_memory(llm, atoi(argv[3]), strtoull(argv[4], NULL, 10));
    ait_llm_release(llm);
  } else return usage();
  if (bad) printf("%d FAILED\n", bad);
  return bad ? 1 : 0;
}
