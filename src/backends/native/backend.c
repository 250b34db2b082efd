/* Native's table: what it takes, its knobs. */
#include "backends/native/backend.h"

#include "backends/dims.h"
#include "backends/native/instance.h"
#include "backends/native/lower.h"
#include "backends/reference/reference.h"
#include <stdio.h>

void nat_probe(ait_probe *out) {
  const ait_kernels *k = ait_kernels_for(ait_cpu_features());
  out->available = true;
  snprintf(out->version, sizeof out->version, "%u", NAT_VERSION);
  snprintf(out->detail, sizeof out->detail, "built in, %s kernels", k->isa);
}

/* ---- supports --------------------------------------------------------------------------------------------------------------------*/
static void note(ait_support *out, uint32_t node, const char *code, const char *format, ...) AIT_PRINTF(4, 5);
static void note(ait_support *out, uint32_t node, const char *code, const char *format, ...) {
  if (out->note_count == out->note_capacity) return;
  ait_support_note *n = &out->notes[out->note_count++];
  *n = (ait_support_note){.node = node, .code = code};
  va_list args;
  va_start(args, format);
  vsnprintf(n->reason, sizeof n->reason, format, args);
  va_end(args);
}

/* Why a value's memory cannot be planned, or NULL. Lists and numbers between portable steps need none. */
static const char *unplanned(const ait_region *r, uint32_t value) {
  const ait_region_value *v = &r->values[value];
  if (v->type == AIT_TYPE_NONE) return "a value without a type";
  if (v->type != AIT_TYPE_TENSOR) return NULL;
  if (v->rank < 0) return "a tensor of unknown rank";
  if (ait_dtype_size(v->dtype) == 0) return "a tensor of unknown dtype";
  for (int32_t d = 0; d < v->rank; ++d) {
    if (!ait_dims_backed(r, v->shape[d])) return "a tensor whose size depends on data";
  }
  return NULL;
}

/* The first refusal goes before what is only noted: callers show the first note as the reason. */
static void refuse(ait_support *out, uint32_t node, const char *code, const char *reason, const char *name) {
  bool first = out->supported;
  out->supported = false;
  if (first && out->note_count > 0 && out->note_count == out->note_capacity) --out->note_count;
  uint32_t count = out->note_count;
  note(out, node, code, "%s: '%s'", reason, name != NULL ? name : "");
  if (!first || out->note_count == count) return;
  ait_support_note decisive = out->notes[count];
  memmove(&out->notes[1], &out->notes[0], count * sizeof *out->notes);
  out->notes[0] = decisive;
}

typedef struct operand_check {
  const ait_region *region;
  bool good;
} operand_check;

static void check_operand(void *ctx, uint32_t value) {
  operand_check *c = ctx;
  ait_type type = c->region->values[value].type;
  c->good = c->good && type != AIT_TYPE_NONE;
}

static void check_node(const ait_region *r, uint32_t i, ait_support *out) {
  const ait_region_node *n = &r->nodes[i];
  for (uint32_t k = 0; k < n->result_count; ++k) {
    if (n->results[k] == AIT_NO_INDEX) continue;
    const char *why = unplanned(r, n->results[k]);
    if (why != NULL) refuse(out, i, "size-unknown", why, n->name);
  }
  if (n->flags & AIT_NODE_INPLACE) refuse(out, i, "not-core", "an operator that works in place", n->name);
  operand_check c = {r, true};
  nat_each_value(n, check_operand, &c);
  if (!c.good) refuse(out, i, "operand-unknown", "an operand without a type", n->name);
  if (nat_has_kernel(r, n) || nat_gives_sizes(r, n)) return;
  if (!ait_ref_find(n->op)) refuse(out, i, "op-unknown", "an operator that nothing here can run", n->op);
  else note(out, i, "op-not-in-native", "'%s' (%s) runs on the portable path", n->name != NULL ? n->name : "", n->op);
}

ait_status nat_supports(const ait_region *region, ait_support *out) {
  out->supported = true;
  for (uint32_t i = 0; i < region->input_count; ++i) {
    const ait_region_input *in = &region->inputs[i];
    if (in->value == AIT_NO_INDEX || in->kind == AIT_INPUT_TOKEN) continue;
    const char *why = unplanned(region, in->value);
    if (why == NULL && !nat_is_sized(region, in->value)) why = "an input that is neither a tensor nor a size";
    if (why != NULL) refuse(out, AIT_NO_INDEX, "input-unknown", why, in->name);
  }
  for (uint32_t i = 0; i < region->node_count; ++i) check_node(region, i, out);
  for (uint32_t i = 0; i < region->output_count; ++i) {
    const ait_arg *a = &region->outputs[i].arg;
    bool known = a->kind != AIT_ARG_LIST && a->kind != AIT_ARG_GRAPH;
    if (a->kind == AIT_ARG_VALUE) known = nat_is_sized(region, a->as.value);
    if (a->kind == AIT_ARG_DIM) known = ait_dims_backed(region, a->as.dim);
    if (!known) refuse(out, AIT_NO_INDEX, "output-unknown", "an output that is neither a tensor nor a size", region->outputs[i].name);
  }
  return AIT_OK;
}

/* ---- compile ---------------------------------------------------------------------------------------------------------------------*/
static bool option_is(const ait_compile_options *o, const char *key, const char *value) {
  for (uint32_t i = 0; i < o->option_count; ++i) {
    if (strcmp(o->options[i].key, key) == 0) return strcmp(o->options[i].value, value) == 0;
  }
  return false;
}

static ait_status native_compile(const ait_region *region, const ait_compile_options *options, ait_blob *out) {
  nat_choices choices = {.flags = option_is(options, "layout", "nchw") ? NAT_NCHW : 0,
                         .fuse = !option_is(options, "fuse", "off"),
                         .pack = !option_is(options, "pack", "load"),
                         .winograd = option_is(options, "winograd", "off")  ? NAT_WINOGRAD_OFF
                                     : option_is(options, "winograd", "on") ? NAT_WINOGRAD_ON
                                                                            : NAT_WINOGRAD_AUTO};
  return nat_compile(region, options, &choices, out);
}

ait_status nat_compile_eager(const ait_region *region, const ait_compile_options *options, ait_blob *out) {
  return nat_compile(region, options, &(nat_choices){.flags = NAT_EAGER | NAT_NCHW}, out);
}

ait_status nat_load(const ait_load_context *context, void **out_loaded) {
  nat_program *p;
  AIT_TRY(nat_program_load(context, &p));
  *out_loaded = p;
  return AIT_OK;
}

void nat_unload(void *loaded) { nat_program_unload(loaded); }

static const char *const layouts[] = {"auto", "nchw", NULL};
static const char *const switches[] = {"on", "off", NULL};
static const char *const algorithms[] = {"auto", "on", "off", NULL};
static const char *const packings[] = {"compile", "load", NULL};
static const ait_knob knobs[] = {
    {"layout", "order of images in memory: auto keeps channels last where operators want it, nchw converts at each of them", "auto",
     layouts},
    {"fuse", "element-wise chains and epilogues as one step", "on", switches},
    {"winograd", "3 x 3 convolutions with 16 products for 4 outputs: auto by the number of channels", "auto", algorithms},
    {"pack", "weights in kernel order: in the file, or made when first run (smaller file, slower start)", "compile", packings},
    {0},
};

const ait_backend ait_backend_native = {
    .struct_size = sizeof(ait_backend),
    .abi_version = AIT_BACKEND_ABI,
    .name = "native",
    .summary = "own kernels: packed weights, fused steps, channels last, planned memory",
    .knobs = knobs,
    .probe = nat_probe,
    .supports = nat_supports,
    .compile = native_compile,
    .load = nat_load,
    .instance_create = nat_instance_create,
    .run = nat_instance_run,
    .profile = nat_instance_profile,
    .instance_destroy = nat_instance_destroy,
    .unload = nat_unload,
    .instance_bytes = nat_instance_bytes,
    .blob_is_whole = true,
};
