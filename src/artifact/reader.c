/* A sealed file, mapped. Order of trust: the container's structure, then SHA256SUMS over the small entries, then CHECKSUMS (one of them)
 * over the bulk, then the signature over SHA256SUMS; only then is anything parsed. */
#include "artifact/checksum.h"
#include "artifact/manifest.h"
#include "artifact/signature.h"
#include "artifact/zip.h"
#include <stdatomic.h>
#include <sys/mman.h>
#include <unistd.h>

struct ait_artifact {
  ait_allocator allocator;
  atomic_uint references;
  ait_arena arena;
  ait_file_map *map;
  size_t begin, size; /* of this file in the mapping: the whole, or an entry of another file */
  ait_zip_entry *entries;
  size_t entry_count;
  ait_map names;         /* entry name -> index + 1 */
  _Atomic bool *checked; /* bulk, by entry */
  char *manifest_text;
  ait_manifest manifest;
  ait_signature signature;
  ait_region *region;
  ait_weight_store *weights;
};

/* ---- entries -----------------------------------------------------------------------------------------------------------------------*/
static const uint8_t *entry_data(const ait_artifact *f, const ait_zip_entry *e) {
  return ait_file_map_data(f->map) + f->begin + e->data_offset;
}

static const ait_zip_entry *find(const ait_artifact *f, const char *name) {
  void *found;
  return ait_map_get(&f->names, name, &found) ? &f->entries[(uintptr_t)found - 1] : NULL;
}

const void *ait_artifact_entry(const ait_artifact *f, const char *name, size_t *out_size) {
  const ait_zip_entry *e = find(f, name);
  if (!e) return NULL;
  if (out_size) *out_size = (size_t)e->size;
  return entry_data(f, e);
}

size_t ait_artifact_entry_count(const ait_artifact *f) { return f->entry_count; }
const char *ait_artifact_entry_name(const ait_artifact *f, size_t index) { return index < f->entry_count ? f->entries[index].name : NULL; }

static ait_status index_entries(ait_artifact *f) {
  for (size_t i = 0; i < f->entry_count; ++i) {
    if (find(f, f->entries[i].name)) return ait_error(AIT_CODE_INVALID_MODEL, "entry '%s' is there twice", f->entries[i].name);
    AIT_TRY(ait_map_put(&f->names, f->entries[i].name, (void *)(uintptr_t)(i + 1)));
  }
  return AIT_OK;
}

static ait_status check_ending(const ait_artifact *f) {
  size_t n = f->entry_count;
  bool ends_well = n >= 2 && strcmp(f->entries[n - 2].name, AIT_ENTRY_SUMS) == 0 && strcmp(f->entries[n - 1].name, AIT_ENTRY_SHA256) == 0;
  return ends_well ? AIT_OK : ait_error(AIT_CODE_INVALID_MODEL, "it has no %s: not a .ait file", AIT_ENTRY_SHA256);
}

/* ---- checksums ---------------------------------------------------------------------------------------------------------------------*/
bool ait_entry_is_bulk(const char *name) {
  return ait_starts_with(name, "weights/") || (ait_starts_with(name, "targets/") && ait_ends_with(name, ".blob")) ||
         strcmp(name, AIT_ENTRY_DRAFT) == 0;
}

static bool is_bulk(const ait_zip_entry *e) { return ait_entry_is_bulk(e->name); }

/* Lines "<hex>  <name>\n", one for each of the first `count` entries, in their order. *hex of entry i stands at out[i]. */
static ait_status read_sums(ait_artifact *f, const char *list, size_t hex_bytes, size_t count, const char ***out) {
  size_t size;
  const char *p = ait_artifact_entry(f, list, &size), *end = p + size;
  const char **sums = AIT_ARENA_ARRAY(&f->arena, const char *, count);
  if (!sums) return AIT_OOM();
  for (size_t i = 0; i < count; ++i) {
    size_t name = strlen(f->entries[i].name), line = hex_bytes + 2 + name + 1;
    bool right = (size_t)(end - p) >= line && memcmp(p + hex_bytes, "  ", 2) == 0 &&
                 memcmp(p + hex_bytes + 2, f->entries[i].name, name) == 0 && p[line - 1] == '\n';
    if (!right) return ait_error(AIT_CODE_INVALID_MODEL, "entry '%s' does not list entry '%s'", list, f->entries[i].name);
    sums[i] = p;
    p += line;
  }
  if (p != end) return ait_error(AIT_CODE_INVALID_MODEL, "entry '%s' lists what is not there", list);
  *out = sums;
  return AIT_OK;
}

static ait_status check_sha256(const ait_artifact *f, const ait_zip_entry *e, const char *want) {
  char got[AIT_SHA256_HEX + 1];
  AIT_TRY(ait_sha256_hex(entry_data(f, e), (size_t)e->size, got));
  if (memcmp(got, want, AIT_SHA256_HEX) == 0) return AIT_OK;
  return ait_error(AIT_CODE_INVALID_MODEL, "entry '%s' does not match its SHA-256", e->name);
}

/* The bulk in pieces, for threads to share. */
typedef struct piece {
  uint32_t entry, chunk;
} piece;

typedef struct bulk_check {
  const ait_artifact *file;
  const piece *pieces;
  uint64_t *sums; /* by piece */
  bool keep;      /* what was read will be used */
} bulk_check;

static void sum_piece(void *ctx, int32_t index) {
  bulk_check *b = ctx;
  const ait_zip_entry *e = &b->file->entries[b->pieces[index].entry];
  size_t begin = b->pieces[index].chunk * AIT_SUM_CHUNK, left = (size_t)e->size - begin;
  size_t size = left < AIT_SUM_CHUNK ? left : AIT_SUM_CHUNK;
  ait_file_map_prefetch(b->file->map, b->file->begin + (size_t)e->data_offset + begin, size);
  b->sums[index] = ait_sum_chunk(entry_data(b->file, e), (size_t)e->size, b->pieces[index].chunk);
  /* Most of it is not needed: weights that a plan has packed, blobs for other machines. All pages go back; those that are read come again.
   */
  size_t page = (size_t)sysconf(_SC_PAGESIZE);
  uint8_t *start = (uint8_t *)entry_data(b->file, e) + begin;
  if (!b->keep && (uintptr_t)start % page == 0) madvise(start, size & ~(page - 1), MADV_DONTNEED);
}

static ait_status list_pieces(ait_artifact *f, piece **out, size_t *out_count) {
  size_t count = 0, at = 0;
  for (size_t i = 0; i < f->entry_count; ++i) count += is_bulk(&f->entries[i]) ? ait_sum_chunks((size_t)f->entries[i].size) : 0;
  piece *pieces = AIT_ARENA_ARRAY(&f->arena, piece, count);
  if (!pieces) return AIT_OOM();
  if (count > INT32_MAX) return ait_error(AIT_CODE_LIMIT, "it is too large");
  for (size_t i = 0; i < f->entry_count; ++i) {
    size_t chunks = is_bulk(&f->entries[i]) ? ait_sum_chunks((size_t)f->entries[i].size) : 0;
    for (size_t c = 0; c < chunks; ++c) pieces[at++] = (piece){(uint32_t)i, (uint32_t)c};
  }
  *out = pieces;
  *out_count = count;
  return AIT_OK;
}

/* The sum that CHECKSUMS states at `want`. */
static uint64_t stated_sum(const char *want) {
  uint64_t stated = 0;
  for (int k = 0; k < 16; ++k) {
    char c = want[k];
    stated = stated << 4 | (uint64_t)(c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : 0);
  }
  return stated;
}

static ait_status damaged_entry(const ait_artifact *f, const ait_zip_entry *e, const char *sha256) {
  AIT_TRY(check_sha256(f, e, sha256));
  return ait_error(AIT_CODE_INVALID_MODEL, "entry '%s' does not match its checksum", e->name);
}

static ait_status compare_sums(const ait_artifact *f, const uint64_t *sums, const char *const *want, const char *const *sha256) {
  size_t at = 0;
  for (size_t i = 0; i < f->entry_count; ++i) {
    const ait_zip_entry *e = &f->entries[i];
    if (!is_bulk(e)) continue;
    size_t chunks = ait_sum_chunks((size_t)e->size);
    uint64_t got = ait_sum_join(sums + at, chunks, (size_t)e->size);
    at += chunks;
    if (got != stated_sum(want[i])) return damaged_entry(f, e, sha256[i]);
    f->checked[i] = true;
  }
  return AIT_OK;
}

static ait_status check_bulk(ait_artifact *f, int32_t threads, const char *const *sha256) {
  const char **want;
  piece *pieces = NULL;
  size_t count = 0;
  AIT_TRY(read_sums(f, AIT_ENTRY_SUMS, 16, f->entry_count - 2, &want));
  AIT_TRY(list_pieces(f, &pieces, &count));
  uint64_t *sums = AIT_ARENA_ARRAY(&f->arena, uint64_t, count);
  if (!sums) return AIT_OOM();
  ait_pool *pool = NULL;
  if (threads > 1 && count > 1) AIT_TRY(ait_pool_create(f->allocator, threads, &pool));
  bulk_check b = {.file = f, .pieces = pieces, .sums = sums};
  ait_pool_run(pool, sum_piece, &b, (int32_t)count);
  ait_pool_destroy(pool);
  return compare_sums(f, sums, want, sha256);
}

static ait_status check_sums(ait_artifact *f, const ait_artifact_open_options *options) {
  const ait_zip_entry *list = &f->entries[f->entry_count - 1];
  const char **sha256;
  if (ait_crc32(0, entry_data(f, list), (size_t)list->size) != list->crc) {
    return ait_error(AIT_CODE_INVALID_MODEL, "entry '%s' does not match its CRC-32", list->name);
  }
  AIT_TRY(read_sums(f, AIT_ENTRY_SHA256, AIT_SHA256_HEX, f->entry_count - 1, &sha256));
  if (options->skip_bulk_checksum) { /* for who checks entry by entry */
    const char **unused;
    AIT_TRY(read_sums(f, AIT_ENTRY_SUMS, 16, f->entry_count - 2, &unused));
  }
  for (size_t i = 0; i + 1 < f->entry_count; ++i) {
    if (!is_bulk(&f->entries[i])) AIT_TRY(check_sha256(f, &f->entries[i], sha256[i]));
  }
  return options->skip_bulk_checksum ? AIT_OK : check_bulk(f, options->threads, sha256);
}

/* The line of entry `index` in one of the two lists, which read_sums has seen whole. */
static const char *line_of(const ait_artifact *f, const char *list, size_t hex_bytes, size_t index) {
  const char *line = ait_artifact_entry(f, list, NULL);
  for (size_t i = 0; i < index; ++i) line += hex_bytes + 2 + strlen(f->entries[i].name) + 1;
  return line;
}

static ait_status check_entry(const ait_artifact *f, size_t index, int32_t threads) {
  const ait_zip_entry *e = &f->entries[index];
  size_t count = ait_sum_chunks((size_t)e->size), bytes = count * (sizeof(piece) + sizeof(uint64_t));
  uint64_t *sums = ait_alloc(f->allocator, bytes, _Alignof(uint64_t));
  if (!sums) return AIT_OOM();
  piece *pieces = (piece *)(void *)(sums + count);
  for (size_t c = 0; c < count; ++c) pieces[c] = (piece){(uint32_t)index, (uint32_t)c};
  ait_pool *pool = NULL;
  ait_status status = threads > 1 && count > 1 ? ait_pool_create(f->allocator, threads, &pool) : AIT_OK;
  bulk_check b = {.file = f, .pieces = pieces, .sums = sums, .keep = true};
  if (!status) {
    ait_pool_run(pool, sum_piece, &b, (int32_t)count);
    if (ait_sum_join(sums, count, (size_t)e->size) != stated_sum(line_of(f, AIT_ENTRY_SUMS, 16, index)))
      status = damaged_entry(f, e, line_of(f, AIT_ENTRY_SHA256, AIT_SHA256_HEX, index));
  }
  ait_pool_destroy(pool);
  ait_free(f->allocator, sums, bytes);
  return status;
}

ait_status ait_artifact_check(const ait_artifact *f, const void *inside, int32_t threads) {
  uintptr_t at = (uintptr_t)inside;
  for (size_t i = 0; i < f->entry_count; ++i) {
    uintptr_t begin = (uintptr_t)entry_data(f, &f->entries[i]);
    if (!is_bulk(&f->entries[i]) || at < begin || at - begin >= f->entries[i].size) continue;
    if (f->checked[i]) return AIT_OK;
    AIT_TRY(check_entry(f, i, threads));
    f->checked[i] = true;
    return AIT_OK;
  }
  return AIT_OK; /* a weight without elements */
}

static ait_status checked_get(void *ctx, const char *name, ait_tensor *out) {
  const ait_artifact *f = ctx;
  ait_weights plain = ait_weight_store_provider(f->weights);
  AIT_TRY(plain.get(plain.ctx, name, out));
  return ait_artifact_check(f, out->data, 1);
}

ait_weights ait_artifact_checked_weights(const ait_artifact *f) { return (ait_weights){(void *)(uintptr_t)f, checked_get}; }

ait_status ait_artifact_verify(const ait_artifact *f) {
  const char *line = ait_artifact_entry(f, AIT_ENTRY_SHA256, NULL);
  for (size_t i = 0; i + 1 < f->entry_count; ++i) {
    AIT_TRY(check_sha256(f, &f->entries[i], line));
    line += AIT_SHA256_HEX + 2 + strlen(f->entries[i].name) + 1;
  }
  return AIT_OK;
}

/* ---- signature ---------------------------------------------------------------------------------------------------------------------
 * It stands before CHECKSUMS, so that what it signs, the lines of SHA256SUMS for all entries before it, is the list but for its last two.
 */
static ait_status judge_signature(ait_artifact *f, const ait_keys *keys) {
  size_t size, list_size, n = f->entry_count, last_lines = 0;
  const void *entry = ait_artifact_entry(f, AIT_ENTRY_SIGNATURE, &size);
  f->signature = (ait_signature){.key_name = "", .fingerprint = ""};
  if (!entry) return AIT_OK;
  if (n < 3 || strcmp(f->entries[n - 3].name, AIT_ENTRY_SIGNATURE) != 0)
    return ait_error(AIT_CODE_INVALID_MODEL, "entry '%s' is not in its place", AIT_ENTRY_SIGNATURE);
  const char *list = ait_artifact_entry(f, AIT_ENTRY_SHA256, &list_size), *name;
  for (size_t i = n - 3; i < n - 1; ++i) last_lines += AIT_SHA256_HEX + 2 + strlen(f->entries[i].name) + 1;
  uint8_t key[AIT_KEY_BYTES];
  AIT_TRY(ait_signature_check(entry, size, list, list_size - last_lines, key)); /* read_sums saw that all lines are there */
  char *fingerprint = ait_arena_zero(&f->arena, AIT_FINGERPRINT_HEX + 1, 1);
  if (!fingerprint) return AIT_OOM();
  ait_key_fingerprint(key, fingerprint);
  f->signature.state = ait_keys_judge(keys, key, &name);
  f->signature.key_name = ait_arena_strdup(&f->arena, name, strlen(name));
  f->signature.fingerprint = fingerprint;
  return f->signature.key_name ? AIT_OK : AIT_OOM();
}

static ait_status demand_trust(const ait_artifact *f) {
  switch (f->signature.state) {
    case AIT_SIGNATURE_TRUSTED: return AIT_OK;
    case AIT_SIGNATURE_REVOKED:
      return ait_error(AIT_CODE_INVALID_MODEL, "it is signed by key '%s', which was revoked", f->signature.key_name);
    case AIT_SIGNATURE_UNKNOWN:
      return ait_error_hint(ait_error(AIT_CODE_UNAVAILABLE, "it is signed by a key that is not trusted here: %s", f->signature.fingerprint),
                            "'ait key trust' with the key from who made the file");
    default:
      return ait_error_hint(ait_error(AIT_CODE_INVALID_MODEL, "it is not signed, and a signature is required"),
                            "'ait sign' by who made the file");
  }
}

static ait_status check_signature(ait_artifact *f, const ait_artifact_open_options *options) {
  AIT_TRY(judge_signature(f, options->keys));
  if (options->require_signature) AIT_TRY(demand_trust(f));
  bool signed_file = f->signature.state != AIT_SIGNATURE_UNSIGNED;
  return signed_file && (options->keys || options->require_signature) ? ait_artifact_verify(f) : AIT_OK;
}

/* ---- contents ----------------------------------------------------------------------------------------------------------------------*/
static const void *source_find(void *ctx, const char *name, size_t *out_size) { return ait_artifact_entry(ctx, name, out_size); }

static void release_map(void *ctx) { ait_file_map_release(ctx); }

static ait_status source_storage(void *ctx, const char *name, ait_storage **out) {
  const ait_artifact *f = ctx;
  const ait_zip_entry *e = find(f, name);
  if (!e) return ait_error(AIT_CODE_INVALID_MODEL, "entry '%s' is missing", name);
  ait_file_map *map = ait_file_map_retain(f->map);
  ait_status status = ait_storage_wrap(f->allocator, (void *)entry_data(f, e), (size_t)e->size, release_map, map, out);
  if (status) ait_file_map_release(map);
  return status;
}

static ait_status check_format(const ait_artifact *f) {
  size_t size;
  const char *text = ait_artifact_entry(f, AIT_ENTRY_MANIFEST, &size);
  int64_t format = 0, reader = 0;
  if (!text) return ait_error(AIT_CODE_INVALID_MODEL, "it has no %s: not a .ait file", AIT_ENTRY_MANIFEST);
  if (!ait_manifest_peek(text, size, &format, &reader) || format < 1 || reader < 1) {
    return ait_error(AIT_CODE_INVALID_MODEL, "entry '%s' is damaged", AIT_ENTRY_MANIFEST);
  }
  if (reader <= AIT_FORMAT) return AIT_OK;
  return ait_error_hint(ait_error(AIT_CODE_INCOMPATIBLE, "it has format %lld, this ait reads up to %u", (long long)format, AIT_FORMAT),
                        "use a newer ait");
}

/* Those that need most of a CPU first; equal ones stay in the order of the file. There are few: insertion. */
static void sort_plans(ait_manifest *m) {
  for (size_t i = 1; i < m->plan_count; ++i) {
    ait_plan plan = m->plans[i];
    size_t at = i;
    for (; at > 0 && m->plans[at - 1].cpu_needed < plan.cpu_needed; --at) m->plans[at] = m->plans[at - 1];
    m->plans[at] = plan;
  }
}

static ait_status read_contents(ait_artifact *f) {
  size_t size;
  const void *data = ait_artifact_entry(f, AIT_ENTRY_GRAPH, &size);
  const ait_entry_source source = {f, source_find, source_storage};
  if (!data) return ait_error(AIT_CODE_INVALID_MODEL, "entry '%s' is missing", AIT_ENTRY_GRAPH);
  AIT_TRY(ait_error_context(ait_region_decode(f->allocator, data, size, &f->region), "entry '%s'", AIT_ENTRY_GRAPH));
  const char *text = ait_artifact_entry(f, AIT_ENTRY_MANIFEST, &size);
  f->manifest_text = ait_arena_strdup(&f->arena, text, size);
  if (!f->manifest_text) return AIT_OOM();
  AIT_TRY(ait_manifest_parse(f->allocator, &f->arena, text, size, &source, &f->manifest));
  sort_plans(&f->manifest);
  text = ait_artifact_entry(f, AIT_ENTRY_WEIGHTS, &size);
  if (!text) return ait_error(AIT_CODE_INVALID_MODEL, "entry '%s' is missing", AIT_ENTRY_WEIGHTS);
  return ait_weights_parse(f->allocator, text, size, &source, &f->weights);
}

static ait_status open_map(ait_artifact *f, const ait_artifact_open_options *options) {
  AIT_TRY(ait_zip_parse(&f->arena, ait_file_map_data(f->map) + f->begin, f->size, &f->entries, &f->entry_count));
  AIT_TRY(index_entries(f));
  f->checked = AIT_ARENA_ARRAY(&f->arena, _Atomic bool, f->entry_count);
  if (!f->checked) return AIT_OOM();
  /* Twice: a newer file may look damaged to this reader, and a damaged one may look newer or older. */
  ait_status format = check_format(f);
  if (ait_status_code(format) == AIT_CODE_INCOMPATIBLE) return format;
  ait_status ending = check_ending(f);
  if (ending) return ait_status_join(ending, format);
  ait_status sums = check_sums(f, options);
  AIT_TRY(ait_status_join(sums, format));
  AIT_TRY(check_signature(f, options));
  return read_contents(f);
}

static ait_artifact *new_artifact(ait_allocator a) {
  ait_artifact *f = ait_alloc_zero(a, sizeof *f, _Alignof(ait_artifact));
  if (!f) return NULL;
  f->allocator = a;
  atomic_init(&f->references, 1);
  ait_arena_init(&f->arena, a);
  ait_map_init(&f->names, a);
  return f;
}

static const ait_artifact_open_options defaults;

ait_status ait_artifact_open(ait_allocator a, const char *path, const ait_artifact_open_options *options, ait_artifact **out) {
  *out = NULL;
  ait_artifact *f = new_artifact(a);
  if (!f) return AIT_OOM();
  ait_status status = ait_file_map_open(a, path, &f->map);
  if (!status) f->size = ait_file_map_size(f->map);
  if (!status) status = ait_error_context(open_map(f, options ? options : &defaults), "cannot load '%s'", path);
  if (status) ait_artifact_release(f);
  else *out = f;
  return status;
}

ait_status ait_artifact_open_inside(const ait_artifact *outer, const char *entry, const ait_artifact_open_options *options,
                                    ait_artifact **out) {
  *out = NULL;
  const ait_zip_entry *e = find(outer, entry);
  if (!e) return ait_error(AIT_CODE_NOT_FOUND, "there is no entry '%s'", entry);
  ait_artifact *f = new_artifact(outer->allocator);
  if (!f) return AIT_OOM();
  f->map = ait_file_map_retain(outer->map);
  f->begin = outer->begin + (size_t)e->data_offset;
  f->size = (size_t)e->size;
  ait_status status = ait_error_context(open_map(f, options ? options : &defaults), "entry '%s'", entry);
  if (status) ait_artifact_release(f);
  else *out = f;
  return status;
}

ait_artifact *ait_artifact_retain(ait_artifact *f) {
  if (f) atomic_fetch_add_explicit(&f->references, 1, memory_order_relaxed);
  return f;
}

void ait_artifact_release(ait_artifact *f) {
  if (!f || atomic_fetch_sub_explicit(&f->references, 1, memory_order_acq_rel) != 1) return;
  ait_manifest_deinit(f->allocator, &f->manifest);
  ait_weight_store_release(f->weights);
  ait_region_destroy(f->region);
  ait_map_deinit(&f->names);
  if (f->map) ait_file_map_release(f->map);
  ait_arena_deinit(&f->arena);
  ait_free(f->allocator, f, sizeof *f);
}

/* ---- questions ---------------------------------------------------------------------------------------------------------------------*/
const char *ait_artifact_manifest(const ait_artifact *f) { return f->manifest_text; }
const char *ait_artifact_model_name(const ait_artifact *f) { return f->manifest.model_name; }
const char *ait_artifact_producer(const ait_artifact *f) { return f->manifest.producer; }
const ait_region *ait_artifact_region(const ait_artifact *f) { return f->region; }
const ait_weight_store *ait_artifact_weights(const ait_artifact *f) { return f->weights; }
ait_status ait_artifact_report(ait_artifact *f, const char **out) {
  *out = f->manifest.report ? ait_arena_strdup(&f->arena, f->manifest.report, f->manifest.report_size) : NULL;
  return f->manifest.report && !*out ? AIT_OOM() : AIT_OK;
}
ait_status ait_artifact_call(ait_artifact *f, const char **out) {
  *out = f->manifest.call ? ait_arena_strdup(&f->arena, f->manifest.call, f->manifest.call_size) : NULL;
  return f->manifest.call && !*out ? AIT_OOM() : AIT_OK;
}
ait_status ait_artifact_deploy(ait_artifact *f, const char **out) {
  *out = f->manifest.deploy ? ait_arena_strdup(&f->arena, f->manifest.deploy, f->manifest.deploy_size) : NULL;
  return f->manifest.deploy && !*out ? AIT_OOM() : AIT_OK;
}

ait_signature ait_artifact_signature(const ait_artifact *f) { return f->signature; }
size_t ait_artifact_plan_count(const ait_artifact *f) { return f->manifest.plan_count; }
const ait_plan *ait_artifact_plan(const ait_artifact *f, size_t index) {
  return index < f->manifest.plan_count ? &f->manifest.plans[index] : NULL;
}
