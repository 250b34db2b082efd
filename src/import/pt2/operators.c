/* From the target of a node to an operator of ops.inc. */
#include "custom/custom.h"
#include "import/pt2/pt2.h"

/* Targets that are Python functions, not operators of a namespace. */
static ait_status normalise(ait_pt2_import *in, const char *target, const char **out) {
  static const char sym[] = "torch._sym_", ops[] = "torch.ops.", suffix[] = ".default", old_higher[] = "torch._higher_order_ops.";
  const char *name = NULL;
  if (ait_starts_with(target, ops)) {
    size_t length = strlen(target + strlen(ops));
    if (ait_ends_with(target, suffix)) length -= strlen(suffix);
    name = ait_arena_strdup(&in->arena, target + strlen(ops), length);
  } else if (ait_starts_with(target, sym)) {
    name = ait_arena_printf(&in->arena, "torch.sym_%s", target + strlen(sym));
  } else if (ait_starts_with(target, old_higher)) {
    name = ait_arena_printf(&in->arena, "higher_order.%s", strrchr(target, '.') + 1);
  } else if (ait_starts_with(target, "_operator.") || ait_starts_with(target, "math.") || ait_starts_with(target, "torch.")) {
    name = target;
  } else {
    return ait_error(AIT_CODE_INVALID_MODEL, "target '%s' is no operator", target);
  }
  *out = name;
  return name ? AIT_OK : AIT_OOM();
}

/* Namespaces of PyTorch and its companions: what is missing in them is ours to add, not the application's. */
static bool is_known_namespace(const char *name) {
  static const char *const more[] = {"prims", "prim", "rngprims", "inductor", "quantized", "debugprims"};
  size_t length = strcspn(name, ".");
  for (size_t i = 0; i < AIT_COUNT(more); ++i) {
    if (strlen(more[i]) == length && strncmp(more[i], name, length) == 0) return true;
  }
  for (size_t i = 0; i < ait_op_count(); ++i) {
    const char *known = ait_op_at(i)->name;
    if (strcspn(known, ".") == length && known[length] == '.' && strncmp(known, name, length) == 0) return true;
  }
  return false;
}

ait_status ait_pt2_find_operator(ait_pt2_import *in, const char *target, ait_pt2_operator *out) {
  bool in_place;
  *out = (ait_pt2_operator){0};
  AIT_TRY(normalise(in, target, &out->name));
  out->op = strchr(out->name, '.') ? ait_op_find_inplace(out->name, &in_place) : NULL;
  if (out->op) {
    out->flags = in_place ? AIT_NODE_INPLACE : 0;
    bool lacking = in->missing && !ait_op_runs(out->op) && strcmp(out->op->name, "export.access_subclass_inner_tensor") != 0;
    return lacking ? ait_missing_add(in->missing, out->name, in->node, false) : AIT_OK;
  }
  out->op = ait_op_find("custom");
  if (!out->op) return ait_error(AIT_CODE_INTERNAL, "ops.inc has no row 'custom'");
  AIT_TRY(ait_op_custom(out->name, &out->schema));
  if (out->schema) return AIT_OK;
  if (in->missing) return ait_missing_add(in->missing, out->name, in->node, !is_known_namespace(out->name));
  if (is_known_namespace(out->name)) {
    return ait_error_hint(ait_error(AIT_CODE_UNSUPPORTED, "operator '%s' is not known", out->name), "ait ops --missing %s", in->path);
  }
  return ait_custom_missing(NULL, out->name);
}
