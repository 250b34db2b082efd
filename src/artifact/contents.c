/* A whole model into a file: which entries, in which order. */
#include "artifact/checksum.h"
#include "artifact/manifest.h"
#include "artifact/zip.h"

typedef struct book {
  ait_allocator allocator;
  ait_arena arena;
  ait_artifact_writer *writer;
  const ait_artifact_content *content;
} book;

static ait_status add_text(book *b, const char *entry, const ait_text *text) {
  if (text->failed) return AIT_OOM();
  return ait_artifact_add(b->writer, entry, text->data, text->length, AIT_ZIP_ALIGN);
}

static ait_status add_weights(book *b) {
  const ait_weight_store *store = b->content->weights;
  for (size_t i = 0; i < ait_weight_store_storage_count(store); ++i) {
    ait_storage *storage = ait_weight_store_storage(store, (uint32_t)i);
    char *name = ait_arena_printf(&b->arena, "weights/%zu", i);
    if (!name) return AIT_OOM();
    AIT_TRY(ait_artifact_add(b->writer, name, ait_storage_data(storage), ait_storage_bytes(storage), AIT_ZIP_BULK_ALIGN));
  }
  return AIT_OK;
}

static ait_status add_step(book *b, const ait_plan *owner, const char *folder, uint32_t bucket, uint32_t index, const ait_plan_step *step) {
  ait_step_entries entries;
  AIT_TRY(ait_plan_step_entries(&b->arena, owner, folder, bucket, index, &entries));
  ait_text bytes;
  ait_text_init(&bytes, b->allocator);
  ait_status status = ait_region_encode(step->region, &bytes);
  if (!status) status = add_text(b, entries.region, &bytes);
  ait_text_deinit(&bytes);
  AIT_TRY(status);
  return entries.own_blob ? ait_artifact_add(b->writer, entries.blob, step->blob.data, step->blob.size, AIT_ZIP_BULK_ALIGN) : AIT_OK;
}

static ait_status add_plan(book *b, const ait_plan *p, const char *folder) {
  for (uint32_t s = 0; s < p->step_count; ++s) AIT_TRY(add_step(b, p, folder, AIT_NO_INDEX, s, &p->steps[s]));
  for (uint32_t k = 0; k < p->bucket_count; ++k) {
    const ait_plan *own = p->buckets[k].plan;
    for (uint32_t s = 0; own && s < own->step_count; ++s) AIT_TRY(add_step(b, p, folder, k, s, &own->steps[s]));
  }
  return AIT_OK;
}

static ait_status add_plans(book *b) {
  const ait_artifact_content *c = b->content;
  for (size_t i = 0; i < c->plan_count; ++i) {
    const char *folder;
    AIT_TRY(ait_plan_check(&c->plans[i], c->portable));
    AIT_TRY(ait_plan_folder(&b->arena, c->plans, i, &folder));
    AIT_TRY(add_plan(b, &c->plans[i], folder));
  }
  return AIT_OK;
}

static ait_status add_all(book *b) {
  ait_text graph, manifest, weights;
  ait_text_init(&graph, b->allocator);
  ait_text_init(&manifest, b->allocator);
  ait_text_init(&weights, b->allocator);
  char hex[AIT_SHA256_HEX + 1];
  ait_status status = AIT_OK;
  AIT_GOTO(ait_region_encode(b->content->portable, &graph));
  AIT_GOTO(ait_sha256_hex(graph.data, graph.length, hex));
  AIT_GOTO(ait_manifest_format(b->allocator, b->content, hex, &manifest));
  AIT_GOTO(ait_weights_format(b->content->weights, &weights));
  AIT_GOTO(add_text(b, AIT_ENTRY_MANIFEST, &manifest));
  AIT_GOTO(add_text(b, AIT_ENTRY_GRAPH, &graph));
  AIT_GOTO(add_text(b, AIT_ENTRY_WEIGHTS, &weights));
  AIT_GOTO(add_weights(b));
  AIT_GOTO(add_plans(b));
  for (size_t i = 0; i < b->content->extra_count; ++i) {
    const ait_artifact_extra *e = &b->content->extras[i];
    AIT_GOTO(ait_artifact_add(b->writer, e->name, e->data, e->size, ait_entry_is_bulk(e->name) ? AIT_ZIP_BULK_ALIGN : AIT_ZIP_ALIGN));
  }
  if (b->content->signer) AIT_GOTO(ait_artifact_add_signature(b->writer, b->content->signer));
  AIT_GOTO(ait_artifact_finish(b->writer));
cleanup:
  ait_text_deinit(&weights);
  ait_text_deinit(&manifest);
  ait_text_deinit(&graph);
  return status;
}

ait_status ait_artifact_write(ait_allocator a, const char *path, const ait_artifact_content *content) {
  book b = {.allocator = a, .content = content};
  ait_arena_init(&b.arena, a);
  ait_status status = ait_artifact_create(a, path, &b.writer);
  if (!status) status = add_all(&b);
  ait_artifact_writer_destroy(b.writer);
  ait_arena_deinit(&b.arena);
  return ait_error_context(status, "cannot write '%s'", path);
}
