/* docs/operators.md, from the operator table. */
#include "ir/ir.h"

static const char *const references[] = {
#define AIT_OP(name_, schema_, dialects_, traits_, reference_) #reference_,
#include "ir/ops.inc"
#undef AIT_OP
};

static const struct {
  uint32_t trait;
  const char *text;
} trait_names[] = {
    {AIT_OP_VIEW, "view"},
    {AIT_OP_MAYBE_VIEW, "maybe view"},
    {AIT_OP_RANDOM, "random"},
    {AIT_OP_EFFECT, "effect"},
    {AIT_OP_MUTATES, "mutates"},
    {AIT_OP_POINTWISE, "pointwise"},
    {AIT_OP_HIGHER, "graphs"},
    {AIT_OP_COMMUTATIVE, "commutative"},
    {AIT_OP_SYMBOLIC, "sizes"},
    {AIT_OP_DYNAMIC, "dynamic shape"},
    {AIT_OP_UNINIT, "undefined contents"},
    {AIT_OP_MADE, "made by passes"},
};

bool ait_op_runs(const ait_op *op) { return strcmp(references[op->id], "none") != 0; }

static void write_row(const ait_op *op, ait_text *out) {
  ait_text_printf(out, "| `%s` | `%s` | ", op->name, op->schema);
  const char *separator = "";
  for (size_t i = 0; i < AIT_COUNT(trait_names); ++i) {
    if (!(op->traits & trait_names[i].trait)) continue;
    ait_text_printf(out, "%s%s", separator, trait_names[i].text);
    separator = ", ";
  }
  ait_text_printf(out, " | %s |\n", ait_op_runs(op) ? "yes" : "no");
}

static void write_section(const char *title, const char *intro, ait_dialect dialects, ait_text *out) {
  ait_text_printf(out, "\n## %s\n\n%s\n\n| operator | schema | traits | runs |\n| --- | --- | --- | --- |\n", title, intro);
  for (size_t i = 0; i < ait_op_count(); ++i) {
    if (ait_op_at(i)->dialects == dialects) write_row(ait_op_at(i), out);
  }
}

void ait_ops_markdown(ait_text *out) {
  size_t runs = 0;
  for (size_t i = 0; i < ait_op_count(); ++i) runs += ait_op_runs(ait_op_at(i));
  ait_text_printf(
      out,
      "# Operators\n\nMade from `src/ir/ops.inc` by `ait ops --markdown`. %zu operators, %zu of them run on the reference backend.\n"
      "In-place variants (`aten.add_.Tensor`) have no row: they are the functional operator with a flag.\n",
      ait_op_count(), runs);
  write_section("Core", "Pure values: what passes produce and fast backends take.", AIT_DIALECT_CORE, out);
  write_section("Raw and core", "Higher-order and custom operators stand in both dialects.", AIT_DIALECT_BOTH, out);
  write_section("Raw", "What PyTorch exports.", AIT_DIALECT_RAW, out);
}
