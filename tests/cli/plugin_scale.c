/* A plugin with one operator, for an ONNX model: testlib::Scale(x; s, shift) is x * s + shift[0]. */
#include <ait/custom_op.h>

static ait_status infer(const ait_custom_call *call, ait_custom_shape *results) {
  const ait_tensor *x = call->args[0].as.tensor;
  results[0].dtype = x->dtype;
  results[0].rank = x->rank;
  for (int32_t d = 0; d < x->rank; ++d) results[0].shape[d] = x->shape[d];
  return AIT_OK;
}

static ait_status run(const ait_custom_call *call, ait_value *results) {
  const ait_tensor *x = call->args[0].as.tensor;
  double s = call->args[1].as.f, shift = call->args[2].count ? call->args[2].as.list[0].as.f : 0;
  if (x->dtype != AIT_F32) return ait_error(AIT_CODE_UNSUPPORTED, "x is %s, not float32", ait_dtype_name(x->dtype));
  for (int64_t i = 0; i < ait_tensor_count(x); ++i)
    ((float *)results[0].as.tensor.data)[i] = (float)((double)((const float *)x->data)[i] * s + shift);
  return AIT_OK;
}

static const ait_custom_op scale = {.struct_size = sizeof(ait_custom_op),
                                    .name = "testlib::Scale",
                                    .schema = "(Tensor x, float s=2.0, float[] shift=[]) -> Tensor",
                                    .infer = infer,
                                    .run = run};
static const ait_custom_op *const operators[] = {&scale};
static const ait_plugin plugin = {.struct_size = sizeof(ait_plugin),
                                  .abi_version = AIT_PLUGIN_ABI,
                                  .name = "scale",
                                  .version = "1",
                                  .custom_op_count = 1,
                                  .custom_ops = operators};

AIT_API const ait_plugin *ait_plugin_query(uint32_t abi_version);
const ait_plugin *ait_plugin_query(uint32_t abi_version) { return abi_version == AIT_PLUGIN_ABI ? &plugin : NULL; }
