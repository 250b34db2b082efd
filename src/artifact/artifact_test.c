/* Files: round trip, equal bytes, and what is refused. */
#include "artifact/artifact.h"
#include "artifact/toy_models.h"
#include "artifact/zip.h"
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#define FILE_A AIT_BINARY_DIR "/tests/artifact_a.ait"
#define FILE_B AIT_BINARY_DIR "/tests/artifact_b.ait"

static ait_allocator heap(void) { return ait_allocator_default(); }

static void ok(ait_status status) {
  if (status) fail_msg("%s (%s)", ait_status_message(status), ait_status_hint(status) ? ait_status_hint(status) : "");
}

static void refused(ait_status status, const char *message) {
  assert_non_null(status);
  if (!strstr(ait_status_message(status), message)) fail_msg("'%s' is not in: %s", message, ait_status_message(status));
  ait_status_free(status);
}

static const float w_data[6] = {1, 2, 3, 4, 5, 6};

static ait_weight_store *make_weights(void) {
  ait_weight_store *store;
  ok(ait_weight_store_create(heap(), &store));
  ok(toy_add_weight(store, "w", w_data, 2, (int64_t[]){3, 2}));
  static float large[20000];
  for (int i = 0; i < 20000; ++i) large[i] = (float)i;
  ok(toy_add_weight(store, "layer.\"0\".unused", large, 1, (int64_t[]){20000}));
  return store;
}

static char *copy_text(const char *text) {
  char *copy = ait_alloc(heap(), strlen(text) + 1, 1);
  return strcpy(copy, text);
}

static uint32_t *copy_indices(const uint32_t *values, size_t count) {
  uint32_t *copy = ait_alloc(heap(), count * sizeof *copy, 4);
  return memcpy(copy, values, count * sizeof *copy);
}

/* One step; the blob is no backend's. */
static ait_plan make_plan(const ait_region *r, const char *target, uint64_t cpu) {
  ait_plan plan = {.allocator = heap(),
                   .target = copy_text(target),
                   .cpu_needed = cpu,
                   .threads = 2,
                   .value_count = 2,
                   .step_count = 1,
                   .output_count = 1};
  plan.steps = ait_alloc_zero(heap(), sizeof *plan.steps, 8);
  plan.outputs = copy_indices((uint32_t[]){1}, 1);
  ait_plan_step *s = plan.steps;
  s->backend = copy_text("none");
  s->options = copy_text("a=1,b=\"2\"");
  ok(ait_region_interface(heap(), r, &s->region));
  s->blob.size = 70000;
  s->blob.data = ait_alloc_zero(heap(), s->blob.size, 64);
  memcpy(s->blob.data, target, strlen(target));
  s->inputs = copy_indices((uint32_t[]){AIT_NO_INDEX, 0}, 2);
  s->outputs = copy_indices((uint32_t[]){1}, 1);
  return plan;
}

static void write_file(const char *path, const char *report) {
  ait_region r = toy_linear();
  ait_weight_store *weights = make_weights();
  ait_plan plans[3] = {make_plan(&r, "x86-64", 0), make_plan(&r, "x86-64-avx2", AIT_CPU_AVX2), make_plan(&r, "x86-64", AIT_CPU_SSE2)};
  ait_artifact_content content = {.portable = &r,
                                  .weights = weights,
                                  .plans = plans,
                                  .plan_count = 3,
                                  .report_json = report,
                                  .deploy_json = "{\"perplexity\": 21.5}",
                                  .producer = "torch 2.13.0",
                                  .model_name = "toy \"1\""};
  ok(ait_artifact_write(heap(), path, &content));
  for (int i = 0; i < 3; ++i) ait_plan_deinit(&plans[i]);
  ait_weight_store_release(weights);
}

static char *read_file(const char *path, size_t *size) {
  char *data;
  ok(ait_file_read(heap(), path, 1u << 30, &data, size));
  return data;
}

static void test_round_trip(void **state) {
  AIT_UNUSED(state);
  write_file(FILE_A, "{\"speedup\": 3.5, \"samples\": [1, 2]}");
  ait_artifact *f;
  for (int threads = 0; threads <= 3; ++threads) {
    ok(ait_artifact_open(heap(), FILE_A, &(ait_artifact_open_options){.threads = threads}, &f));
    ait_artifact_release(f);
  }
  ok(ait_artifact_open(heap(), FILE_A, NULL, &f));
  ok(ait_artifact_verify(f));
  assert_string_equal(ait_artifact_model_name(f), "toy \"1\"");
  assert_string_equal(ait_artifact_producer(f), "torch 2.13.0");
  assert_non_null(strstr(ait_artifact_manifest(f), "\"tuning\": {\"speedup\": 3.5"));
  const char *deploy;
  ok(ait_artifact_deploy(f, &deploy));
  assert_string_equal(deploy, "{\"perplexity\": 21.5}");
  assert_string_equal(ait_artifact_region(f)->name, "linear");

  assert_int_equal(ait_artifact_plan_count(f), 3);
  const ait_plan *p = ait_artifact_plan(f, 0);
  assert_string_equal(p->target, "x86-64-avx2"); /* the one that needs most comes first */
  assert_int_equal(ait_artifact_plan(f, 1)->cpu_needed, AIT_CPU_SSE2);
  assert_int_equal(p->threads, 2);
  ok(ait_plan_check(p, ait_artifact_region(f)));
  assert_string_equal(p->steps[0].options, "a=1,b=\"2\"");
  assert_int_equal(p->steps[0].inputs[0], AIT_NO_INDEX);
  assert_int_equal(p->steps[0].blob.size, 70000);
  assert_string_equal((const char *)p->steps[0].blob.data, "x86-64-avx2");
  assert_int_equal((uintptr_t)p->steps[0].blob.data % AIT_ZIP_BULK_ALIGN, 0);

  ait_weight_store *weights = ait_weight_store_retain((ait_weight_store *)ait_artifact_weights(f));
  ait_artifact_release(f); /* the store keeps the mapping */
  ait_tensor t;
  ait_weights provider = ait_weight_store_provider(weights);
  ok(provider.get(provider.ctx, "w", &t));
  assert_memory_equal(t.data, w_data, sizeof w_data);
  ok(provider.get(provider.ctx, "layer.\"0\".unused", &t));
  assert_true(((const float *)t.data)[19999] == 19999);
  ait_weight_store_release(weights);
}

/* A plan may carry its own report, and the machine that it was tuned on; entries that no reader needs come through. */
static void test_plan_report(void **state) {
  AIT_UNUSED(state);
  ait_region r = toy_linear();
  ait_weight_store *weights = make_weights();
  ait_plan plans[2] = {make_plan(&r, "x86-64", 0), make_plan(&r, "x86-64-avx2", AIT_CPU_AVX2)};
  plans[1].machine = copy_text("A \"CPU\" 9000");
  plans[1].report = "{\"a\": [1, \"}\"]}, not this";
  plans[1].report_size = strlen("{\"a\": [1, \"}\"]}");
  ait_artifact_extra extra = {"samples/0/0.npy", "sample", 6};
  ait_artifact_content content = {
      .portable = &r, .weights = weights, .plans = plans, .plan_count = 2, .report_json = "[2]", .extras = &extra, .extra_count = 1};
  content.call_json = "{\"in\": [\"x\"]}";
  ok(ait_artifact_write(heap(), FILE_A, &content));
  ait_artifact *f;
  const char *report;
  size_t size;
  ok(ait_artifact_open(heap(), FILE_A, NULL, &f));
  const ait_plan *p = ait_artifact_plan(f, 0);
  assert_string_equal(p->machine, "A \"CPU\" 9000");
  assert_int_equal(p->report_size, plans[1].report_size);
  assert_memory_equal(p->report, plans[1].report, p->report_size);
  assert_null(ait_artifact_plan(f, 1)->machine);
  assert_null(ait_artifact_plan(f, 1)->report);
  ok(ait_artifact_report(f, &report));
  assert_string_equal(report, "[2]");
  ok(ait_artifact_call(f, &report));
  assert_string_equal(report, "{\"in\": [\"x\"]}");
  assert_memory_equal(ait_artifact_entry(f, "samples/0/0.npy", &size), "sample", 6);
  ait_artifact_release(f);
  content.call_json = "{";
  refused(ait_artifact_write(heap(), FILE_B, &content), "the description of the call is not JSON");
  content.call_json = NULL;
  plans[1].report = "{\"a\": ";
  plans[1].report_size = 6;
  refused(ait_artifact_write(heap(), FILE_B, &content), "the tuning report is not JSON");
  for (int i = 0; i < 2; ++i) ait_plan_deinit(&plans[i]);
  ait_weight_store_release(weights);
}

static void test_equal_bytes(void **state) {
  AIT_UNUSED(state);
  write_file(FILE_A, "[1]");
  write_file(FILE_B, "[1]");
  size_t a_size, b_size;
  char *a = read_file(FILE_A, &a_size), *b = read_file(FILE_B, &b_size);
  assert_int_equal(a_size, b_size);
  assert_memory_equal(a, b, a_size);
  assert_null(strstr(a, AIT_BINARY_DIR));
  /* Written again from what was read: the same file. */
  ait_artifact *f;
  ok(ait_artifact_open(heap(), FILE_A, NULL, &f));
  ait_plan plans[3] = {*ait_artifact_plan(f, 2), *ait_artifact_plan(f, 0), *ait_artifact_plan(f, 1)};
  const char *deploy;
  ok(ait_artifact_deploy(f, &deploy));
  ait_artifact_content content = {.portable = ait_artifact_region(f),
                                  .weights = ait_artifact_weights(f),
                                  .plans = plans,
                                  .plan_count = 3,
                                  .report_json = "[1]",
                                  .deploy_json = deploy,
                                  .producer = ait_artifact_producer(f),
                                  .model_name = ait_artifact_model_name(f)};
  ok(ait_artifact_write(heap(), FILE_B, &content));
  ait_artifact_release(f);
  ait_free(heap(), b, b_size + 1);
  b = read_file(FILE_B, &b_size);
  assert_int_equal(a_size, b_size);
  assert_memory_equal(a, b, a_size);
  ait_free(heap(), a, a_size + 1);
  ait_free(heap(), b, b_size + 1);
}

static void put_file(const char *path, const char *data, size_t size) {
  FILE *f = fopen(path, "wb");
  assert_non_null(f);
  assert_int_equal(fwrite(data, 1, size, f), size);
  fclose(f);
}

static ait_status try_open(const char *data, size_t size, bool skip) {
  put_file(FILE_B, data, size);
  ait_artifact *f = NULL;
  ait_status status = ait_artifact_open(heap(), FILE_B, &(ait_artifact_open_options){.skip_bulk_checksum = skip}, &f);
  ait_artifact_release(f);
  return status;
}

static void test_truncated(void **state) {
  AIT_UNUSED(state);
  write_file(FILE_A, NULL);
  size_t size;
  char *data = read_file(FILE_A, &size);
  for (size_t n = 0; n < size; n += n < 200 || n + 3000 > size ? 13 : 1777) refused(try_open(data, n, false), "cannot load '" FILE_B "'");
  refused(try_open(data, size - 1, false), "cut short");
  char *longer = calloc(1, size + 1);
  memcpy(longer, data, size);
  refused(try_open(longer, size + 1, false), "cannot load");
  free(longer);
  ait_free(heap(), data, size + 1);
}

static void put_byte(int fd, size_t at, char byte) { assert_int_equal(pwrite(fd, &byte, 1, (off_t)at), 1); }

/* Whatever byte changes, the file is refused. Where nothing lies but zeros, every few hundred bytes are tried. */
static void test_flipped(void **state) {
  AIT_UNUSED(state);
  write_file(FILE_A, NULL);
  size_t size;
  char *data = read_file(FILE_A, &size);
  put_file(FILE_B, data, size);
  int fd = open(FILE_B, O_RDWR);
  assert_true(fd >= 0);
  uint64_t random = 1;
  for (size_t at = 0; at < size; at += data[at] == 0 && at % 4096 > 700 ? 701 : at % 4096 > 1400 ? 97 : 11) {
    random = random * 6364136223846793005u + 1442695040888963407u;
    put_byte(fd, at, (char)(data[at] ^ (char)(1 << (random >> 60 & 7))));
    ait_artifact *f = NULL;
    ait_status status = ait_artifact_open(heap(), FILE_B, NULL, &f);
    put_byte(fd, at, data[at]);
    if (!status) fail_msg("byte %zu may change", at);
    assert_true(ait_status_code(status) == AIT_CODE_INVALID_MODEL || ait_status_code(status) == AIT_CODE_INCOMPATIBLE);
    ait_status_free(status);
  }
  close(fd);
  ok(try_open(data, size, false));
  ait_free(heap(), data, size + 1);
}

static void test_names_the_entry(void **state) {
  AIT_UNUSED(state);
  static const char *const entries[] = {
      "manifest.json", "graph.bin", "weights.json", "weights/0", "weights/1", "targets/x86-64/0.blob", "targets/x86-64/1/0.region",
      "CHECKSUMS"};
  write_file(FILE_A, NULL);
  size_t size;
  char *data = read_file(FILE_A, &size);
  char *scan = memmem(data, size, "{\n  \"format\"", 11);
  assert_non_null(scan);
  for (size_t i = 0; i < AIT_COUNT(entries); ++i) {
    char message[128];
    char *copy = malloc(size + 1);
    memcpy(copy, data, size + 1);
    size_t manifest = (size_t)(scan - data);
    ait_artifact *f;
    ok(ait_artifact_open(heap(), FILE_A, NULL, &f));
    const char *begin = ait_artifact_entry(f, AIT_ENTRY_MANIFEST, NULL), *at = ait_artifact_entry(f, entries[i], NULL);
    assert_non_null(at);
    copy[manifest + (size_t)(at - begin) + 20] ^= 4;
    ait_artifact_release(f);
    snprintf(message, sizeof message, "cannot load '" FILE_B "': entry '%s' does not match its SHA-256", entries[i]);
    refused(try_open(copy, size, false), message);
    if (ait_starts_with(entries[i], "weights/")) ok(try_open(copy, size, true));
    free(copy);
  }
  ait_free(heap(), data, size + 1);
}

/* ---- crafted files: every checksum is right ---------------------------------------------------------------------------------- */
typedef struct crafted {
  const char *manifest, *weights;
  bool no_graph;
} crafted;

static ait_status open_crafted(const crafted *c) {
  ait_artifact_writer *w;
  ait_text graph;
  ait_region r = toy_linear();
  ait_text_init(&graph, heap());
  ok(ait_region_encode(&r, &graph));
  ok(ait_artifact_create(heap(), FILE_B, &w));
  ok(ait_artifact_add(w, AIT_ENTRY_MANIFEST, c->manifest, strlen(c->manifest), 64));
  if (!c->no_graph) ok(ait_artifact_add(w, AIT_ENTRY_GRAPH, graph.data, graph.length, 64));
  ok(ait_artifact_add(w, AIT_ENTRY_WEIGHTS, c->weights, strlen(c->weights), 64));
  ok(ait_artifact_add(w, "weights/0", w_data, sizeof w_data, 4096));
  ok(ait_artifact_finish(w));
  ait_artifact_writer_destroy(w);
  ait_text_deinit(&graph);
  ait_artifact *f = NULL;
  ait_status status = ait_artifact_open(heap(), FILE_B, NULL, &f);
  ait_artifact_release(f);
  return status;
}

#define GOOD_MANIFEST "{\"format\": 1, \"reader\": 1}"
#define GOOD_WEIGHTS                                                                                                                   \
  "{\"storages\": 1, \"tensors\": [{\"name\": \"w\", \"storage\": 0, \"dtype\": \"float32\", \"shape\": [3, 2], \"strides\": [2, 1], " \
  "\"offset\": 0}]}"

static void test_crafted(void **state) {
  AIT_UNUSED(state);
  static const struct {
    crafted file;
    const char *message;
  } cases[] = {
      {{"{\"format\": 99, \"reader\": 99}", GOOD_WEIGHTS, false}, "it has format 99, this ait reads up to 1"},
      {{"{\"format\": 0, \"reader\": 1}", GOOD_WEIGHTS, false}, "entry 'manifest.json' is damaged"},
      {{"{\"reader\": 1}", GOOD_WEIGHTS, false}, "entry 'manifest.json' is damaged"},
      {{"{\"format\": 1, \"reader\": 1", GOOD_WEIGHTS, false}, "entry 'manifest.json': its JSON cannot be read"},
      {{GOOD_MANIFEST, GOOD_WEIGHTS, true}, "entry 'graph.bin' is missing"},
      {{"{\"format\": 1, \"reader\": 1, \"plans\": [{\"target\": \"x\", \"outputs\": [], \"steps\": [{}]}]}", GOOD_WEIGHTS, false},
       "a step of a plan is incomplete"},
      {{"{\"format\": 1, \"reader\": 1, \"plans\": [{\"target\": \"x\", \"outputs\": [], \"steps\": [{\"inputs\": [1, 2, 99999999999]}]}]}",
        GOOD_WEIGHTS, false},
       "a value number"},
      {{"{\"format\": 1, \"reader\": 1, \"plans\": [{\"steps\": [{\"region\": \"weights/0\"}]}]}", GOOD_WEIGHTS, false},
       "encoded region is damaged"},
      {{"{\"format\": 1, \"reader\": 1, \"plans\": [{\"steps\": [{\"blob\": \"nothing\"}]}]}", GOOD_WEIGHTS, false},
       "entry 'nothing' is missing"},
      {{GOOD_MANIFEST, "{\"storages\": 2, \"tensors\": []}", false}, "entry 'weights/1' is missing"},
      {{GOOD_MANIFEST,
        "{\"storages\": 1, \"tensors\": [{\"name\": \"w\", \"storage\": 0, \"dtype\": \"float32\", \"shape\": [3, 3], \"strides\": [3, 1], "
        "\"offset\": 0}]}",
        false},
       "weight 'w' reaches outside its storage of 24 bytes"},
      {{GOOD_MANIFEST,
        "{\"storages\": 1, \"tensors\": [{\"name\": \"w\", \"storage\": 1, \"dtype\": \"float32\", \"shape\": [1], \"strides\": [1], "
        "\"offset\": 0}]}",
        false},
       "storage that does not exist"},
      {{GOOD_MANIFEST,
        "{\"storages\": 1, \"tensors\": [{\"name\": \"w\", \"storage\": 0, \"dtype\": \"float33\", \"shape\": [1], \"strides\": [1], "
        "\"offset\": 0}]}",
        false},
       "unknown dtype"},
      {{GOOD_MANIFEST,
        "{\"storages\": 1, \"tensors\": [{\"name\": \"w\", \"storage\": 0, \"dtype\": \"float32\", \"shape\": [4611686018427387904, 4], "
        "\"strides\": [4, 1], \"offset\": 0}]}",
        false},
       "reaches outside"},
  };
  ok(open_crafted(&(crafted){GOOD_MANIFEST, GOOD_WEIGHTS, false}));
  for (size_t i = 0; i < AIT_COUNT(cases); ++i) refused(open_crafted(&cases[i].file), cases[i].message);
  ait_status status = open_crafted(&cases[0].file);
  assert_int_equal(ait_status_code(status), AIT_CODE_INCOMPATIBLE);
  assert_string_equal(ait_status_hint(status), "use a newer ait");
  ait_status_free(status);
}

static void test_not_an_artifact(void **state) {
  AIT_UNUSED(state);
  refused(try_open("", 0, false), "cannot load");
  refused(try_open("PK\5\6\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 22, false), "not a .ait file");
  static const char text[] = "this is a text, and a rather long one at that";
  refused(try_open(text, sizeof text, false), "cut short, or another kind of file");
  ait_artifact *f;
  ait_status status = ait_artifact_open(heap(), AIT_BINARY_DIR "/tests/no-such.ait", NULL, &f);
  assert_int_equal(ait_status_code(status), AIT_CODE_NOT_FOUND);
  ait_status_free(status);
}

static void test_writer_refuses(void **state) {
  AIT_UNUSED(state);
  static const char *const names[] = {"", "/a", "../a", "a/../b", "a//b", "a/", "./a", "a b", "a\\b", "\xc3\xa9"};
  ait_artifact_writer *w;
  remove(FILE_B);
  ok(ait_artifact_create(heap(), FILE_B, &w));
  for (size_t i = 0; i < AIT_COUNT(names); ++i) refused(ait_artifact_add(w, names[i], "x", 1, 64), "cannot name an entry");
  ok(ait_artifact_add(w, "a", "x", 1, 64));
  refused(ait_artifact_add(w, "a", "x", 1, 64), "two entries are named 'a'");
  ait_artifact_writer_destroy(w); /* not finished: nothing is left */
  assert_int_equal(access(FILE_B, F_OK), -1);
}

/* ---- memory --------------------------------------------------------------------------------------------------------------------------*/
typedef struct failing {
  long left, live;
} failing;

static void *failing_alloc(void *ctx, size_t size, size_t align) {
  failing *f = ctx;
  if (f->left-- <= 0) return NULL;
  void *p = ait_alloc(heap(), size, align);
  if (p) ++f->live;
  return p;
}

static void failing_free(void *ctx, void *p, size_t size) {
  --((failing *)ctx)->live;
  ait_free(heap(), p, size);
}

static void test_out_of_memory(void **state) {
  AIT_UNUSED(state);
  write_file(FILE_A, NULL);
  failing f = {0};
  ait_allocator a = {&f, failing_alloc, failing_free};
  bool done = false;
  for (long n = 0; !done && n < 10000; ++n) {
    f = (failing){.left = n};
    ait_artifact *artifact = NULL;
    ait_status status = ait_artifact_open(a, FILE_A, &(ait_artifact_open_options){.threads = 2}, &artifact);
    done = status == AIT_OK;
    if (!done && ait_status_code(status) != AIT_CODE_OUT_OF_MEMORY) fail_msg("%ld: %s", n, ait_status_message(status));
    if (done) {
      ait_artifact_content content = {.portable = ait_artifact_region(artifact),
                                      .weights = ait_artifact_weights(artifact),
                                      .plans = ait_artifact_plan(artifact, 0),
                                      .plan_count = 3};
      f.left = n % 97;
      ait_status_free(ait_artifact_write(a, FILE_B, &content));
    }
    ait_artifact_release(artifact);
    ait_status_free(status);
    assert_int_equal(f.live, 0);
  }
  assert_true(done);
}

/* ---- large files: headers only ----------------------------------------------------------------------------------------------- */
static void test_zip64_headers(void **state) {
  AIT_UNUSED(state);
  ait_zip_entry entries[2] = {{.name = (char *)"weights/0", .size = (uint64_t)5 << 30, .crc = 1},
                              {.name = (char *)"b", .size = 3, .crc = 2}};
  ait_zip_place(&entries[0], 4096);
  assert_int_equal(entries[0].data_offset, 4096);
  entries[1].header_offset = entries[0].data_offset + entries[0].size;
  ait_zip_place(&entries[1], 64);
  ait_text text;
  ait_text_init(&text, heap());
  ait_zip_local_header(&text, &entries[0]);
  assert_int_equal(text.length, 4096);
  assert_memory_equal(text.data + 18, "\xff\xff\xff\xff\xff\xff\xff\xff", 8);
  assert_memory_equal(text.data + 30 + 9, "\1\0\20\0\0\0\0\100\1\0\0\0\0\0\0\100\1\0\0\0", 20);
  text.length = 0;
  ait_zip_directory(&text, entries, 2, entries[1].data_offset + 3);
  assert_int_equal(text.length, 46 + 9 + 20 + 46 + 1 + 12 + 56 + 20 + 22);
  ait_text_deinit(&text);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_round_trip),      cmocka_unit_test(test_equal_bytes),     cmocka_unit_test(test_truncated),
      cmocka_unit_test(test_flipped),         cmocka_unit_test(test_names_the_entry), cmocka_unit_test(test_crafted),
      cmocka_unit_test(test_not_an_artifact), cmocka_unit_test(test_writer_refuses),  cmocka_unit_test(test_out_of_memory),
      cmocka_unit_test(test_zip64_headers),   cmocka_unit_test(test_plan_report),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
