/* An operator that a model calls as torch.ops.mylib.foo(x, y, s): adds 1 to y in place and returns x * s. Compiled into an application
 * (app.c), or alone as a plugin: cc -shared -fPIC foo.c -o foo.so, then ait run model.pt2 --plugin foo.so … */
#include <ait/custom_op.h>

/* begin operator */
static ait_status foo_infer(const ait_custom_call *call, ait_custom_shape *results) {
  const ait_tensor *x = call->args[0].as.tensor;
  results[0].dtype = x->dtype;
  results[0].rank = x->rank;
  for (int32_t d = 0; d < x->rank; ++d) results[0].shape[d] = x->shape[d];
  return AIT_OK;
}

static ait_status foo_run(const ait_custom_call *call, ait_value *results) {
  const ait_tensor *x = call->args[0].as.tensor, *y = call->args[1].as.tensor;
  double s = call->args[2].as.f;
  if (x->dtype != y->dtype || (x->dtype != AIT_F32 && x->dtype != AIT_F64))
    return ait_error(AIT_CODE_UNSUPPORTED, "x and y are %s and %s, not both float32", ait_dtype_name(x->dtype), ait_dtype_name(y->dtype));
  for (int64_t i = 0, n = ait_tensor_count(y); i < n; ++i) { /* tensors are contiguous */
    if (y->dtype == AIT_F64) ((double *)y->data)[i] += 1;
    else ((float *)y->data)[i] += 1;
  }
  for (int64_t i = 0, n = ait_tensor_count(x); i < n; ++i) {
    if (x->dtype == AIT_F64) ((double *)results[0].as.tensor.data)[i] = ((const double *)x->data)[i] * s;
    else ((float *)results[0].as.tensor.data)[i] = ((const float *)x->data)[i] * (float)s;
  }
  return AIT_OK;
}

const ait_custom_op mylib_foo = {
    .struct_size = sizeof(ait_custom_op),
    .flags = AIT_CUSTOM_DOUBLE,
    .name = "mylib::foo",
    .schema = "(Tensor x, Tensor(a!) y, float s) -> Tensor",
    .summary = "x * s, and y += 1",
    .infer = foo_infer,
    .run = foo_run,
};
/* end operator */

/* begin plugin */
static const ait_custom_op *const operators[] = {&mylib_foo};

static const ait_plugin plugin = {
    .struct_size = sizeof(ait_plugin),
    .abi_version = AIT_PLUGIN_ABI,
    .name = "foo",
    .version = "1",
    .custom_op_count = 1,
    .custom_ops = operators,
};

AIT_API const ait_plugin *ait_plugin_query(uint32_t abi_version);
const ait_plugin *ait_plugin_query(uint32_t abi_version) { return abi_version == AIT_PLUGIN_ABI ? &plugin : NULL; }
/* end plugin */
