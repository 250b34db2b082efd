/* Weights from beside the graph: tensors of a checkpoint take the place of the model's own, by name. */
#include "import/import.h"

/* Widening loses nothing; any other conversion would be a decision that is not ours. */
static bool widens(ait_dtype from, ait_dtype to) {
  return ait_dtype_is_float(from) && (to == AIT_F32 || to == AIT_F64) && ait_dtype_size(from) < ait_dtype_size(to);
}

static ait_status check_given(const ait_graph *g, const ait_value_info *v, const char *name, const ait_tensor *t) {
  bool same = v->rank < 0 || v->rank == t->rank;
  for (int32_t d = 0; same && v->rank >= 0 && d < v->rank; ++d) {
    int64_t size;
    same = !ait_dim_is_const(g, v->shape[d], &size) || size == t->shape[d];
  }
  bool fits = v->dtype == AIT_DTYPE_NONE || v->dtype == t->dtype || widens(t->dtype, v->dtype);
  if (same && fits) return AIT_OK;
  char shape[160];
  ait_tensor_shape_text(t, shape, sizeof shape);
  ait_text want;
  ait_text_init(&want, g->allocator);
  for (int32_t d = 0; d < v->rank; ++d) {
    ait_text_append(&want, ", ", d ? 2 : 0);
    ait_dim_text(g, v->shape[d], &want);
  }
  ait_status status = ait_error(AIT_CODE_INVALID_ARGUMENT, "given weight '%s' is %s %s, the model declares %s [%s]", name,
                                ait_dtype_name(t->dtype), shape, ait_dtype_name(v->dtype), want.data ? want.data : "");
  ait_text_deinit(&want);
  return status;
}

static ait_status add_tensor(ait_weight_store *store, const char *name, const ait_tensor *t) {
  ait_weight weight = {.name = name, .dtype = t->dtype, .rank = t->rank};
  memcpy(weight.shape, t->shape, sizeof weight.shape);
  memcpy(weight.strides, t->strides, sizeof weight.strides);
  ait_storage *storage = ait_storage_retain(t->storage);
  ait_status status = ait_weight_store_add_storage(store, storage, &weight.storage);
  if (status) ait_storage_release(storage);
  else status = ait_weight_store_add(store, &weight);
  return status;
}

ait_status ait_import_give_weight(ait_weight_store *store, const ait_graph *g, const ait_value_info *v, const char *name,
                                  const ait_tensor *t) {
  AIT_TRY(check_given(g, v, name, t));
  if (v->dtype == AIT_DTYPE_NONE || v->dtype == t->dtype) return add_tensor(store, name, t);
  ait_tensor wide;
  AIT_TRY(ait_tensor_cast(g->allocator, t, v->dtype, &wide));
  ait_status status = add_tensor(store, name, &wide);
  ait_tensor_release(&wide);
  return status;
}

/* ---- the whole graph -------------------------------------------------------------------------------------------------------------*/
typedef struct giver {
  const ait_graph *g;
  const ait_map *given;
  ait_weight_store *store; /* the new one */
  uint32_t *storages;      /* of the old store, by index: index + 1 in the new one; 0: not taken over yet */
  size_t used;
  const char *missing; /* the first parameter that is not given */
} giver;

static bool is_weight(const ait_region_input *in) {
  return in->kind != AIT_INPUT_USER && in->kind != AIT_INPUT_TOKEN && in->value != AIT_NO_INDEX && in->name;
}

/* Tied weights: the same elements under two names. */
static bool same_place(const ait_weight *a, const ait_weight *b) {
  bool same = a->storage == b->storage && a->offset == b->offset && a->dtype == b->dtype && a->rank == b->rank;
  for (int32_t d = 0; same && d < a->rank; ++d) same = a->shape[d] == b->shape[d] && a->strides[d] == b->strides[d];
  return same;
}

/* The checkpoint's tensor for a weight: by its name, or by that of one it is tied to (checkpoints store such a tensor once). */
static const ait_tensor *find_given(const giver *r, const char *name) {
  void *tensor;
  if (ait_map_get(r->given, name, &tensor)) return tensor;
  const ait_weight *own = ait_weight_store_find(r->g->weights, name);
  for (size_t i = 0; own && i < r->given->count; ++i) {
    const ait_weight *other = ait_weight_store_find(r->g->weights, r->given->entries[i].key);
    if (other && same_place(own, other)) return r->given->entries[i].value;
  }
  return NULL;
}

static ait_status keep_own(giver *r, const char *name) {
  const ait_weight *own = ait_weight_store_find(r->g->weights, name);
  if (!own) return AIT_OK;
  ait_weight weight = *own;
  uint32_t *index = &r->storages[own->storage];
  if (!*index) {
    ait_storage *storage = ait_storage_retain(ait_weight_store_storage(r->g->weights, own->storage));
    ait_status status = ait_weight_store_add_storage(r->store, storage, index);
    if (status) {
      ait_storage_release(storage);
      return status;
    }
    ++*index;
  }
  weight.storage = *index - 1;
  return ait_weight_store_add(r->store, &weight);
}

static ait_status give_all(giver *r) {
  const ait_graph *g = r->g;
  for (size_t i = 0; i < g->input_count; ++i) {
    const ait_region_input *in = &g->inputs[i];
    if (!is_weight(in) || ait_weight_store_find(r->store, in->name)) continue;
    const ait_tensor *t = find_given(r, in->name);
    r->used += ait_map_get(r->given, in->name, NULL);
    if (!t && in->kind == AIT_INPUT_PARAMETER && !r->missing) r->missing = in->name;
    if (t) AIT_TRY(ait_import_give_weight(r->store, g, &g->values[in->value], in->name, t));
    else AIT_TRY(keep_own(r, in->name));
  }
  return AIT_OK;
}

/* Half of one checkpoint and half of another is no model. Buffers and constants are often not saved. */
static ait_status check_complete(const giver *r) {
  if (!r->missing) return AIT_OK;
  return ait_error_hint(ait_error(AIT_CODE_INVALID_ARGUMENT, "the given weights lack the model's parameter '%s'", r->missing),
                        "all parameters must be given, under the model's own names");
}

/* The first name of each side, so that the user sees what differs. */
static ait_status none_matches(const giver *r) {
  const char *own = "none";
  for (size_t i = 0; i < r->g->input_count; ++i)
    if (is_weight(&r->g->inputs[i])) {
      own = r->g->inputs[i].name;
      break;
    }
  return ait_error_hint(ait_error(AIT_CODE_INVALID_ARGUMENT, "no tensor of the given weights is a parameter of the model"),
                        "names must be equal: the weights have '%s', the model has '%s'",
                        r->given->count ? r->given->entries[0].key : "none", own);
}

ait_status ait_import_give_weights(ait_graph *g, const ait_map *given) {
  giver r = {.g = g, .given = given};
  size_t bytes = (ait_weight_store_storage_count(g->weights) + 1) * sizeof *r.storages;
  r.storages = ait_alloc_zero(g->allocator, bytes, _Alignof(uint32_t));
  if (!r.storages) return AIT_OOM();
  ait_status status = ait_weight_store_create(g->allocator, &r.store);
  if (!status) status = give_all(&r);
  if (!status) status = r.used ? check_complete(&r) : none_matches(&r);
  ait_free(g->allocator, r.storages, bytes);
  if (status) {
    ait_weight_store_release(r.store);
    return status;
  }
  ait_weight_store_release(g->weights);
  g->weights = r.store;
  return AIT_OK;
}
