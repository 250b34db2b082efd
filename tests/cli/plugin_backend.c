/* A plugin that brings a backend and nothing else: it is listed, and takes no model. */
#include <ait/backend.h>

#include <stdio.h>

static void probe(ait_probe *out) {
  out->available = true;
  snprintf(out->version, sizeof out->version, "7");
}

static ait_status supports(const ait_region *region, ait_support *out) {
  (void)region;
  out->supported = false;
  if (out->note_count < out->note_capacity) {
    ait_support_note *note = &out->notes[out->note_count++];
    *note = (ait_support_note){.node = AIT_NO_INDEX, .code = "never"};
    snprintf(note->reason, sizeof note->reason, "it takes nothing");
  }
  return AIT_OK;
}

static ait_status compile(const ait_region *region, const ait_compile_options *options, ait_blob *out) {
  (void)region, (void)options, (void)out;
  return ait_error(AIT_CODE_UNSUPPORTED, "it compiles nothing");
}
static ait_status load(const ait_load_context *context, void **out_loaded) {
  (void)context, (void)out_loaded;
  return ait_error(AIT_CODE_UNSUPPORTED, "it loads nothing");
}
static ait_status instance_create(void *loaded, ait_allocator allocator, void **out_instance) {
  (void)loaded, (void)allocator, (void)out_instance;
  return ait_error(AIT_CODE_UNSUPPORTED, "it runs nothing");
}
static ait_status run(void *instance, const ait_run_context *context) {
  (void)instance, (void)context;
  return ait_error(AIT_CODE_UNSUPPORTED, "it runs nothing");
}
static void destroy(void *p) { (void)p; }

static const ait_knob knobs[] = {{0}};
static const ait_backend never = {.struct_size = sizeof(ait_backend),
                                  .abi_version = AIT_BACKEND_ABI,
                                  .name = "never",
                                  .summary = "for a test of plugins",
                                  .knobs = knobs,
                                  .probe = probe,
                                  .supports = supports,
                                  .compile = compile,
                                  .load = load,
                                  .instance_create = instance_create,
                                  .run = run,
                                  .instance_destroy = destroy,
                                  .unload = destroy};

AIT_API const ait_backend *ait_backend_query(uint32_t abi_version);
const ait_backend *ait_backend_query(uint32_t abi_version) { return abi_version == AIT_BACKEND_ABI ? &never : NULL; }
