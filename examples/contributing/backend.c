/* Adding a backend, on the example of `relu`: it takes regions that are one relu on a float32 tensor, and nothing else. Made from
 * src/backends/null/null.c, the template to copy: the functions stand in the order in which they are called. In the tree it would be
 * src/backends/relu/relu.c, and backends.inc would get the line AIT_BACKEND(relu). The second half checks it. */
#include "base/base.h"
#include "tensor/tensor.h"
#include <ait/backend.h>
#include <stdio.h>

extern const ait_backend ait_backend_relu;

/* begin probe */
/* Is it here? A backend over a library that is found at run time says its version and path, or why it cannot be had. */
static void relu_probe(ait_probe *out) {
  out->available = true;
  snprintf(out->version, sizeof out->version, "1");
  snprintf(out->detail, sizeof out->detail, "built in");
}
/* end probe */

/* begin supports */
/* Yes, or a reason with a code: `ait explain` shows it, and no backend fails later what it accepted here. */
static ait_status decline(ait_support *out, uint32_t node, const char *code, const char *reason) {
  out->supported = false;
  if (out->note_count == out->note_capacity) return AIT_OK;
  ait_support_note *note = &out->notes[out->note_count++];
  *note = (ait_support_note){.node = node, .code = code};
  snprintf(note->reason, sizeof note->reason, "%s", reason);
  return AIT_OK;
}

static ait_status relu_supports(const ait_region *region, ait_support *out) {
  out->supported = true;
  if (region->node_count != 1) return decline(out, AIT_NO_INDEX, "not-one-node", "takes a region of one node only");
  const ait_region_node *n = &region->nodes[0];
  if (strcmp(n->op, "relu") != 0) return decline(out, 0, "op-not-in-relu", "has no other operator than relu");
  if (region->values[n->results[0]].dtype != AIT_F32) return decline(out, 0, "dtype", "computes float32 only");
  if (region->input_count != 1 || region->output_count != 1)
    return decline(out, AIT_NO_INDEX, "ports", "takes one input and gives one output");
  return AIT_OK;
}
/* end supports */

/* begin compile */
/* Makes the blob: everything that load and run will know of the region. Equal regions must give equal bytes. */
typedef struct relu_blob {
  char magic[8];
  uint32_t version;
  int32_t rank;
} relu_blob;

static ait_status relu_compile(const ait_region *region, const ait_compile_options *options, ait_blob *out) {
  relu_blob *blob = ait_alloc_zero(options->allocator, sizeof *blob, 64);
  if (blob == NULL) return AIT_OOM();
  memcpy(blob->magic, "aitrelu", sizeof "aitrelu");
  blob->version = 1;
  blob->rank = region->values[region->inputs[0].value].rank;
  *out = (ait_blob){.data = blob, .size = sizeof *blob};
  return AIT_OK;
}
/* end compile */

/* begin load */
/* The bytes may come from anywhere: everything is checked. What load makes is shared by all sessions and never changes. */
typedef struct relu_loaded {
  ait_allocator allocator;
  const relu_blob *blob; /* stays valid until unload */
} relu_loaded;

static ait_status relu_load(const ait_load_context *context, void **out_loaded) {
  const relu_blob *blob = context->blob;
  if (context->blob_size != sizeof *blob || memcmp(blob->magic, "aitrelu", sizeof "aitrelu") != 0 || blob->rank < 0 ||
      blob->rank > AIT_MAX_RANK)
    return ait_error(AIT_CODE_INVALID_MODEL, "not a blob of the relu backend");
  if (blob->version != 1) return ait_error(AIT_CODE_INCOMPATIBLE, "blob has version %u, this ait reads 1", blob->version);
  relu_loaded *l = ait_alloc(context->allocator, sizeof *l, _Alignof(relu_loaded));
  if (l == NULL) return AIT_OOM();
  *l = (relu_loaded){context->allocator, blob};
  *out_loaded = l;
  return AIT_OK;
}

static void relu_unload(void *loaded) {
  relu_loaded *l = loaded;
  if (l != NULL) ait_free(l->allocator, l, sizeof *l);
}
/* end load */

/* begin run */
/* An instance is one session's memory; sessions run at the same time on different threads. */
typedef struct relu_instance {
  const relu_loaded *loaded;
  ait_allocator allocator;
  ait_tensor held; /* the result where the caller gave no memory; valid until the next run */
} relu_instance;

static ait_status relu_instance_create(void *loaded, ait_allocator allocator, void **out_instance) {
  relu_instance *in = ait_alloc_zero(allocator, sizeof *in, _Alignof(relu_instance));
  if (in == NULL) return AIT_OOM();
  in->loaded = loaded;
  in->allocator = allocator;
  *out_instance = in;
  return AIT_OK;
}

static void relu_instance_destroy(void *instance) {
  relu_instance *in = instance;
  if (in == NULL) return;
  ait_tensor_release(&in->held);
  ait_free(in->allocator, in, sizeof *in);
}

static ait_status place_result(relu_instance *in, const ait_tensor *x, ait_value *out) {
  if (out->kind == AIT_VALUE_TENSOR) return AIT_OK;
  if (in->held.storage == NULL || !ait_tensor_same_shape(&in->held, x)) { /* a second run of the same shape allocates nothing */
    ait_tensor_release(&in->held);
    AIT_TRY(ait_tensor_create(in->allocator, AIT_F32, x->rank, x->shape, &in->held));
  }
  *out = (ait_value){.kind = AIT_VALUE_TENSOR, .as.tensor = in->held};
  out->as.tensor.storage = NULL; /* lent, not given */
  return AIT_OK;
}

static ait_status relu_run(void *instance, const ait_run_context *context) {
  relu_instance *in = instance;
  const ait_value *input = &context->inputs[0];
  if (input->kind != AIT_VALUE_TENSOR || input->as.tensor.rank != in->loaded->blob->rank)
    return ait_error(AIT_CODE_INVALID_ARGUMENT, "input 0 is no tensor of rank %d", in->loaded->blob->rank);
  const ait_tensor *x = &input->as.tensor;
  AIT_TRY(place_result(in, x, &context->outputs[0]));
  AIT_TRY(ait_tensor_copy(&context->outputs[0].as.tensor, x)); /* any strides in, the result's strides out */
  float *y = context->outputs[0].as.tensor.data;
  for (int64_t i = 0, n = ait_tensor_count(x); i < n; ++i) y[i] = y[i] < 0 ? 0 : y[i]; /* NaN stays */
  return AIT_OK;
}
/* end run */

/* begin table */
static const ait_knob relu_knobs[] = {{0}}; /* options that the tuner should try; ends with a NULL name */

const ait_backend ait_backend_relu = {
    .struct_size = sizeof(ait_backend),
    .abi_version = AIT_BACKEND_ABI,
    .name = "relu",
    .summary = "one relu: the example of CONTRIBUTING.md",
    .knobs = relu_knobs,
    .probe = relu_probe,
    .supports = relu_supports,
    .compile = relu_compile,
    .load = relu_load,
    .instance_create = relu_instance_create,
    .run = relu_run,
    .instance_destroy = relu_instance_destroy,
    .unload = relu_unload,
};
/* end table */

/* ---- checks ----------------------------------------------------------------------------------------------------------------------*/
#include "backends/registry.h"
#include "ir/ir.h"
#include "runtime/runtime.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#define HEAD "graph \"m\" core producer \"test\"\nsymbol s0 [1, 64] hint 4 backed\ninput %x: float32[s0, 3] user 0 \"x\"\n"
static const char one_relu[] = HEAD "%y: float32[s0, 3] = relu(%x)\noutput user 0 = %y\n";
static const char one_exp[] = HEAD "%y: float32[s0, 3] = exp(%x)\noutput user 0 = %y\n";

typedef struct fixture {
  ait_graph *graph;
  ait_region *region;
} fixture;

static fixture open_region(const char *text) {
  fixture f;
  ait_status status = ait_graph_parse(ait_allocator_default(), text, strlen(text), &f.graph);
  if (status) fail_msg("%s", ait_status_message(status));
  assert_null(ait_graph_region(f.graph, ait_allocator_default(), &f.region));
  return f;
}
static void close_region(fixture *f) {
  ait_graph_region_destroy(ait_allocator_default(), f->region);
  ait_graph_destroy(f->graph);
}

static void says_no_with_a_reason(void **state) {
  AIT_UNUSED(state);
  fixture f = open_region(one_exp);
  ait_support_note notes[2];
  ait_support support = {.notes = notes, .note_capacity = 2};
  assert_null(ait_backend_relu.supports(f.region, &support));
  assert_false(support.supported);
  assert_int_equal(support.note_count, 1);
  assert_string_equal(notes[0].code, "op-not-in-relu");
  close_region(&f);
}

static void refuses_damaged_blobs(void **state) {
  AIT_UNUSED(state);
  void *loaded = NULL;
  _Alignas(64) char bytes[sizeof(relu_blob)] = "aitrelu";
  ait_load_context load = {.struct_size = sizeof load, .allocator = ait_allocator_default(), .blob = bytes, .blob_size = sizeof bytes};
  ait_status status = ait_backend_relu.load(&load, &loaded); /* version 0 */
  assert_int_equal(ait_status_code(status), AIT_CODE_INCOMPATIBLE);
  ait_status_free(status);
  load.blob_size = 3;
  status = ait_backend_relu.load(&load, &loaded);
  assert_int_equal(ait_status_code(status), AIT_CODE_INVALID_MODEL);
  ait_status_free(status);
}

/* Two shapes on one instance, the input not contiguous, memory given and not given. */
static void check_run(void *instance, int64_t rows, bool give) {
  float data[12] = {-1, 2, -3, 4, -0.0f, NAN, 7, -8, 9, -10, 11, -12}, given[12];
  ait_tensor x = {.data = data, .dtype = AIT_F32, .rank = 2, .shape = {rows, 3}, .strides = {1, rows}};
  ait_value input = {.kind = AIT_VALUE_TENSOR, .as.tensor = x}, output = {0};
  if (give) output = ait_value_tensor(ait_tensor_borrow(given, AIT_F32, 2, x.shape));
  ait_run_context run = {.struct_size = sizeof run, .allocator = ait_allocator_default(), .inputs = &input, .outputs = &output};
  assert_null(ait_backend_relu.run(instance, &run));
  const float *y = output.as.tensor.data;
  if (give) assert_ptr_equal(y, given);
  for (int64_t i = 0; i < rows * 3; ++i) {
    float v = data[i % 3 * rows + i / 3];
    assert_true(isnan(v) ? isnan(y[i]) : y[i] == (v > 0 ? v : 0));
  }
}

static void runs(void **state) {
  AIT_UNUSED(state);
  ait_allocator a = ait_allocator_default();
  fixture f = open_region(one_relu);
  ait_support support = {0};
  ait_blob blob;
  void *loaded, *instance;
  assert_null(ait_backend_relu.supports(f.region, &support));
  assert_true(support.supported);
  ait_compile_options compile = {.struct_size = sizeof compile, .allocator = a, .cpu_mask = UINT64_MAX};
  assert_null(ait_backend_relu.compile(f.region, &compile, &blob));
  close_region(&f); /* load and run never see the region */
  ait_load_context load = {.struct_size = sizeof load, .allocator = a, .blob = blob.data, .blob_size = blob.size, .cpu_mask = UINT64_MAX};
  assert_null(ait_backend_relu.load(&load, &loaded));
  assert_null(ait_backend_relu.instance_create(loaded, a, &instance));
  for (int64_t rows = 1; rows <= 4; ++rows) {
    check_run(instance, rows, false);
    check_run(instance, rows, true);
  }
  ait_backend_relu.instance_destroy(instance);
  ait_backend_relu.unload(loaded);
  ait_free(a, blob.data, blob.size);
}

/* As the tuner uses it: found by name, compiled into a plan, run by a session. */
static void runs_in_a_session(void **state) {
  AIT_UNUSED(state);
  ait_allocator a = ait_allocator_default();
  fixture f = open_region(one_relu);
  ait_plan plan;
  ait_model *model;
  ait_session *session;
  float data[3] = {-1, 0, 1};
  const int64_t shape[] = {1, 3};
  ait_value input = ait_value_tensor(ait_tensor_borrow(data, AIT_F32, 2, shape)), output = {0};
  assert_null(ait_backend_add(&ait_backend_relu)); /* in the tree: the line in backends.inc */
  assert_null(ait_plan_compile(a, "relu", NULL, f.region, (ait_weights){0}, UINT64_MAX, "any", &plan));
  assert_null(ait_model_create(a, f.region, (ait_weights){0}, &plan, NULL, NULL, &model));
  assert_null(ait_session_create(model, NULL, &session));
  assert_string_equal(ait_session_backend(session), "relu");
  assert_null(ait_session_run(session, &input, 1, &output, 1));
  assert_true(((const float *)output.as.tensor.data)[2] == 1);
  ait_session_destroy(session);
  ait_model_release(model);
  ait_plan_deinit(&plan);
  close_region(&f);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(says_no_with_a_reason), cmocka_unit_test(refuses_damaged_blobs),
                                     cmocka_unit_test(runs), cmocka_unit_test(runs_in_a_session)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
