/* The model from the file, and one step of it. */
#include "llm/encoder.h"
#include "llm/step.h"
#include "runtime/runtime.h"
#include "base/json.h"
#include <stdio.h>

/* Where an input of the graph gets its contents. */
typedef enum role { ROLE_TOKENS, ROLE_POSITIONS, ROLE_PLACES, ROLE_SEQUENCES, ROLE_ROWS, ROLE_TABLE, ROLE_STATE, ROLE_LENGTHS } role;

typedef struct port {
  role role;
  uint32_t group; /* tables and state */
  uint32_t value; /* of the region */
  int32_t rank;
  int64_t shape[AIT_MAX_RANK]; /* state: [0] is filled per context */
  ait_dtype dtype;
} port;

struct ait_lm {
  ait_allocator allocator;
  ait_arena arena;
  ait_model *model;
  ait_lm_info info;
  port *ports; /* by user input */
  size_t port_count;
  lm_encoder *encoder; /* NULL: none */
};

struct ait_lm_context {
  ait_allocator allocator;
  const ait_lm *lm;
  ait_session *session;
  ait_lm_context_options options;
  int64_t table_width, row_room;
  ait_tensor *tensors; /* by port, whole; owned */
  ait_value *inputs;
  float *logits; /* [row_room, vocab]: rows that were rounded up */
  ait_session *encoder;
  ait_value *encoded; /* what a run of it gave */
  int32_t used;       /* entries of `sequences` that the last step filled */
};

/* ---- sizes ----------------------------------------------------------------------------------------------------------------------------*/
int32_t ait_lm_round(int32_t n) {
  int32_t step = n <= 8 ? 1 : n <= 64 ? 8 : n <= 512 ? 32 : 128;
  for (int32_t from = 4096; from < n && from <= INT32_MAX / 4; from *= 2) step = from / 8; /* few sizes, however many tokens */
  return n > INT32_MAX - step ? n : (n + step - 1) / step * step;
}

static int32_t round_rows(int32_t n) {
  int32_t r = 1;
  while (r < n) r *= 2;
  return r;
}

/* Rows of logits of a step: one, or as many as so many tokens may want. Two sizes for each number of tokens: every step that there can be
 * is one of few, and is bound once. */
static int32_t step_rows(const ait_lm_context *c, int32_t tokens, int32_t wanted) {
  int32_t all = round_rows(tokens);
  if (wanted <= 1) return 1;
  return all < c->row_room ? all : (int32_t)c->row_room;
}

/* ---- llm.json -------------------------------------------------------------------------------------------------------------------------*/
static ait_status damaged(const char *what) {
  return ait_error_hint(ait_error(AIT_CODE_INVALID_MODEL, "the file's language model section: %s", what), "make it again: ait deploy");
}

static bool get_int(const ait_json *o, const char *key, int64_t low, int64_t high, int64_t *out) {
  return ait_json_get_int(o, key, out) && *out >= low && *out <= high;
}

static ait_status read_groups(ait_lm *lm, const ait_json *root) {
  const ait_json *groups = ait_json_get_kind(root, "groups", AIT_JSON_ARRAY);
  if (!groups || groups->count > AIT_LM_MAX_GROUPS) return damaged("groups");
  for (uint32_t i = 0; i < groups->count; ++i) {
    ait_lm_group *g = &lm->info.groups[i];
    const char *kind = ait_json_get_string(&groups->as.items[i], "kind");
    int64_t layers;
    if (!kind || !get_int(&groups->as.items[i], "window", 0, INT32_MAX, &g->window) ||
        !get_int(&groups->as.items[i], "layers", 0, 1 << 20, &layers))
      return damaged("groups");
    g->kind = !strcmp(kind, "slots") ? AIT_LM_SLOTS : !strcmp(kind, "memory") ? AIT_LM_MEMORY : AIT_LM_PAGES;
    g->layers = (uint32_t)layers;
  }
  lm->info.group_count = groups->count;
  return AIT_OK;
}

static ait_status read_info(ait_lm *lm, const ait_json *root) {
  ait_lm_info *f = &lm->info;
  int64_t format;
  if (!get_int(root, "format", 1, INT32_MAX, &format)) return damaged("format");
  if (format != 1)
    return ait_error(AIT_CODE_INCOMPATIBLE, "the file's language model section has format %lld, this ait reads 1", (long long)format);
  if (!get_int(root, "vocab", 1, INT32_MAX, &f->vocab) || !get_int(root, "max_seq", 1, INT32_MAX, &f->max_seq) ||
      !get_int(root, "page_size", 1, 1 << 16, &f->page_size) || !get_int(root, "bos", -1, INT32_MAX, &f->bos) ||
      !get_int(root, "pad", -1, INT32_MAX, &f->pad))
    return damaged("sizes");
  const ait_json *stops = ait_json_get_kind(root, "stops", AIT_JSON_ARRAY), *cached = ait_json_get_kind(root, "cached", AIT_JSON_BOOL);
  if (!stops || stops->count > AIT_LM_MAX_STOPS || !cached) return damaged("stops");
  for (uint32_t i = 0; i < stops->count; ++i) {
    if (stops->as.items[i].kind != AIT_JSON_INT) return damaged("stops");
    f->stops[i] = stops->as.items[i].as.i;
  }
  f->stop_count = stops->count;
  f->cached = cached->as.b;
  if (!get_int(root, "switch_at", 1, f->max_seq, &f->switch_at)) {
    if (ait_json_get(root, "switch_at")) return damaged("switch_at");
    f->switch_at = 0;
  }
  return read_groups(lm, root);
}

static bool group_of_state(const ait_json *root, const char *name, uint32_t groups, uint32_t *out) {
  const ait_json *states = ait_json_get_kind(root, "states", AIT_JSON_ARRAY);
  for (uint32_t i = 0; states && i < states->count; ++i) {
    const char *own = ait_json_get_string(&states->as.items[i], "name");
    int64_t group;
    if (!own || strcmp(own, name)) continue;
    if (!get_int(&states->as.items[i], "group", 0, (int64_t)groups - 1, &group)) return false;
    *out = (uint32_t)group;
    return true;
  }
  return false;
}

/* ---- the graph's inputs ---------------------------------------------------------------------------------------------------------------*/
static ait_status describe_state(const ait_region *r, port *p) {
  const ait_region_value *v = &r->values[p->value];
  if (v->rank < 2 || v->rank > AIT_MAX_RANK) return damaged("the shape of a state");
  p->shape[0] = 1;
  for (int32_t d = 1; d < v->rank; ++d) {
    const ait_dim_expr *e = &r->dims[v->shape[d]];
    if (e->op != AIT_DIM_CONST || e->value < 0 || e->value > INT32_MAX) return damaged("the shape of a state");
    p->shape[d] = e->value;
  }
  return AIT_OK;
}

static ait_status describe_port(ait_lm *lm, const ait_json *root, const ait_region *r, const ait_region_input *in, port *p) {
  static const struct {
    const char *name;
    role role;
    int32_t rank;
    ait_dtype dtype;
  } known[] = {{"positions", ROLE_POSITIONS, 1, AIT_I64},
               {"places", ROLE_PLACES, 1, AIT_I64},
               {"sequences", ROLE_SEQUENCES, 2, AIT_I32},
               {"rows", ROLE_ROWS, 1, AIT_I64},
               {"lengths", ROLE_LENGTHS, 1, AIT_I32}};
  const ait_region_value *v = &r->values[in->value];
  *p = (port){.role = ROLE_TOKENS, .value = in->value, .rank = v->rank, .dtype = v->dtype};
  if (in->user_index == 0) return v->rank == 2 && (v->dtype == AIT_I64 || v->dtype == AIT_I32) ? AIT_OK : damaged("the tokens");
  for (size_t i = 0; i < AIT_COUNT(known); ++i)
    if (!strcmp(known[i].name, in->name)) {
      p->role = known[i].role;
      while (p->role == ROLE_LENGTHS && p->group < lm->info.group_count && lm->info.groups[p->group].kind != AIT_LM_MEMORY) ++p->group;
      if (p->group >= AIT_LM_MAX_GROUPS || (p->role == ROLE_LENGTHS && p->group >= lm->info.group_count)) return damaged(known[i].name);
      return v->rank == known[i].rank && v->dtype == known[i].dtype ? AIT_OK : damaged(known[i].name);
    }
  int32_t used = 0;
  if (sscanf(in->name, "pages.%u%n", &p->group, &used) == 1 && !in->name[used]) {
    p->role = ROLE_TABLE;
    return p->group < lm->info.group_count && v->rank == 2 && v->dtype == AIT_I32 ? AIT_OK : damaged("a page table");
  }
  p->role = ROLE_STATE;
  if (!group_of_state(root, in->name, lm->info.group_count, &p->group)) return damaged("an input that is not known");
  return describe_state(r, p);
}

static ait_status read_ports(ait_lm *lm, const ait_json *root) {
  const ait_region *r = ait_model_region(lm->model);
  lm->port_count = ait_model_input_count(lm->model);
  lm->ports = AIT_ARENA_ARRAY(&lm->arena, port, lm->port_count + 1);
  if (!lm->ports) return AIT_OOM();
  uint32_t seen = 0;
  for (uint32_t i = 0; i < r->input_count; ++i) {
    const ait_region_input *in = &r->inputs[i];
    if (in->kind != AIT_INPUT_USER) continue;
    if (in->value == AIT_NO_INDEX || in->user_index < 0 || (size_t)in->user_index >= lm->port_count || !in->name) return damaged("inputs");
    port *p = &lm->ports[in->user_index];
    AIT_TRY(describe_port(lm, root, r, in, p));
    ++seen;
    if (p->role != ROLE_STATE) continue;
    size_t bytes = ait_dtype_size(p->dtype);
    for (int32_t d = 1; d < p->rank; ++d)
      if (ait_mul_overflows(bytes, (size_t)p->shape[d], &bytes)) return damaged("the shape of a state");
    lm->info.groups[p->group].unit_bytes += bytes;
  }
  return seen == lm->port_count && seen > 0 && ait_model_output_count(lm->model) == 1 ? AIT_OK : damaged("inputs");
}

ait_status ait_lm_create(ait_allocator a, ait_model *model, ait_lm **out) {
  size_t size;
  const char *text = ait_model_entry(model, "llm.json", &size);
  *out = NULL;
  if (!text)
    return ait_error_hint(ait_error(AIT_CODE_INVALID_MODEL, "the file is not a deployed language model"),
                          "make one: ait deploy MODEL -o m.ait");
  ait_lm *lm = ait_alloc_zero(a, sizeof *lm, _Alignof(ait_lm));
  if (!lm) return AIT_OOM();
  lm->allocator = a;
  ait_arena_init(&lm->arena, a);
  lm->model = ait_model_retain(model);
  const ait_json *root;
  ait_status status = ait_json_parse(&lm->arena, text, size, &root);
  if (!status) status = read_info(lm, root);
  if (!status) status = lm_encoder_open(a, &lm->arena, model, root, &lm->info, &lm->encoder);
  if (!status) status = read_ports(lm, root);
  if (status) ait_lm_destroy(lm);
  else *out = lm;
  return status;
}

void ait_lm_destroy(ait_lm *lm) {
  if (!lm) return;
  lm_encoder_destroy(lm->encoder);
  ait_model_release(lm->model);
  ait_arena_deinit(&lm->arena);
  ait_free(lm->allocator, lm, sizeof *lm);
}

const char *ait_lm_kind_name(ait_lm_kind kind) { return kind == AIT_LM_SLOTS ? "slots" : kind == AIT_LM_MEMORY ? "memory" : "pages"; }
const ait_lm_info *ait_lm_describe(const ait_lm *lm) { return &lm->info; }
const void *ait_lm_entry(const ait_lm *lm, const char *name, size_t *out_size) { return ait_model_entry(lm->model, name, out_size); }

/* ---- contexts -------------------------------------------------------------------------------------------------------------------------*/
static ait_status settle_options(ait_lm_context *c) {
  const ait_lm_info *f = &c->lm->info;
  ait_lm_context_options *o = &c->options;
  if (o->max_tokens == 0) o->max_tokens = 512;
  if (o->max_sequences == 0) o->max_sequences = 64;
  if (o->max_rows == 0) o->max_rows = o->max_sequences;
  if (o->max_seq == 0) o->max_seq = f->max_seq;
  if (o->max_tokens < 1 || o->max_sequences < 1 || o->max_rows < 1 || o->max_seq < 1 || o->max_tokens > 1 << 24 ||
      o->max_sequences > 1 << 20 || o->max_rows > 1 << 24)
    return ait_error(AIT_CODE_INVALID_ARGUMENT, "sizes of a context must be positive");
  if (o->max_seq > f->max_seq)
    return ait_error_hint(ait_error(AIT_CODE_INVALID_ARGUMENT, "sequences of %lld tokens: the model was deployed for %lld",
                                    (long long)o->max_seq, (long long)f->max_seq),
                          "ait deploy --max-seq");
  c->table_width = (o->max_seq + f->page_size - 1) / f->page_size;
  c->row_room = round_rows(o->max_rows);
  for (uint32_t g = 0; g < f->group_count; ++g) {
    if (o->units[g] == 0) o->units[g] = f->groups[g].kind != AIT_LM_PAGES ? 1 : (int32_t)c->table_width;
    if (o->units[g] < 0) return ait_error(AIT_CODE_INVALID_ARGUMENT, "group %u cannot have %d units", g, o->units[g]);
  }
  return AIT_OK;
}

static ait_status make_tensor(ait_lm_context *c, const port *p, ait_tensor *out) {
  const ait_lm_context_options *o = &c->options;
  int64_t shape[AIT_MAX_RANK];
  memcpy(shape, p->shape, sizeof shape);
  switch (p->role) {
    case ROLE_TOKENS: shape[0] = 1, shape[1] = ait_lm_round(o->max_tokens); break;
    case ROLE_POSITIONS:
    case ROLE_PLACES: shape[0] = ait_lm_round(o->max_tokens); break;
    case ROLE_SEQUENCES: shape[0] = o->max_sequences, shape[1] = 4; break;
    case ROLE_ROWS: shape[0] = c->row_room; break;
    case ROLE_TABLE: shape[0] = o->max_sequences, shape[1] = c->table_width; break;
    case ROLE_STATE:
    case ROLE_LENGTHS: shape[0] = o->units[p->group]; break;
  }
  AIT_TRY(ait_tensor_create(c->allocator, p->dtype, p->rank, shape, out));
  if (p->role != ROLE_STATE) memset(out->data, p->role == ROLE_TABLE ? 0xFF : 0, ait_tensor_bytes(out));
  return AIT_OK;
}

/* State is written before it is read. Its pages are made now all the same, so that no step pays for them and memory does not grow: one byte
 * of each, by all threads, since the system clears them. */
static void touch_state(void *ctx, int32_t i) {
  const ait_lm_context *c = ctx;
  enum { PAGE = 4096 };
  const port *p = &c->lm->ports[i];
  /* What an encoder gives is left out: units that nobody uses take no memory. */
  if (p->role != ROLE_STATE || c->lm->info.groups[p->group].kind == AIT_LM_MEMORY) return;
  volatile char *data = c->tensors[i].data;
  for (size_t at = 0, bytes = ait_tensor_bytes(&c->tensors[i]); at < bytes; at += PAGE) data[at] = 0;
}

static ait_status touch_states(ait_lm_context *c) {
  ait_pool *pool = NULL;
  int32_t threads = c->options.threads > 0 ? c->options.threads : 1;
  if (threads > 1) AIT_TRY(ait_pool_create(c->allocator, threads, &pool));
  ait_pool_run(pool, touch_state, c, (int32_t)c->lm->port_count);
  ait_pool_destroy(pool);
  return AIT_OK;
}

static size_t encoded_bytes(const ait_lm_context *c) {
  return ait_model_output_count(lm_encoder_model(c->lm->encoder)) * sizeof(ait_value);
}

static ait_status open_encoder(ait_lm_context *c, const ait_session_options *options) {
  if (!c->lm->encoder) return AIT_OK;
  c->encoded = ait_alloc_zero(c->allocator, encoded_bytes(c), _Alignof(ait_value));
  if (!c->encoded) return AIT_OOM();
  return ait_session_create(lm_encoder_model(c->lm->encoder), options, &c->encoder);
}

static size_t logit_bytes(const ait_lm_context *c) { return (size_t)c->row_room * (size_t)c->lm->info.vocab * sizeof(float); }

ait_status ait_lm_context_create(ait_lm *lm, const ait_lm_context_options *options, ait_lm_context **out) {
  static const ait_lm_context_options defaults;
  ait_allocator a = options && options->allocator.alloc ? options->allocator : ait_allocator_default();
  *out = NULL;
  ait_lm_context *c = ait_alloc_zero(a, sizeof *c, _Alignof(ait_lm_context));
  if (!c) return AIT_OOM();
  c->allocator = a;
  c->lm = lm;
  c->options = options ? *options : defaults;
  ait_session_options session;
  ait_session_options_init(&session);
  session.allocator = a;
  session.threads = c->options.threads;
  ait_status status = AIT_OK;
  AIT_GOTO(settle_options(c));
  AIT_GOTO(ait_session_create(lm->model, &session, &c->session));
  AIT_GOTO(open_encoder(c, &session));
  c->tensors = ait_alloc_zero(a, lm->port_count * sizeof *c->tensors, _Alignof(ait_tensor));
  c->inputs = ait_alloc_zero(a, lm->port_count * sizeof *c->inputs, _Alignof(ait_value));
  c->logits = ait_alloc(a, logit_bytes(c), 64);
  if (!c->tensors || !c->inputs || !c->logits) AIT_GOTO(AIT_OOM());
  for (size_t i = 0; i < lm->port_count; ++i) {
    AIT_GOTO(make_tensor(c, &lm->ports[i], &c->tensors[i]));
    c->inputs[i] = ait_value_tensor(c->tensors[i]);
    c->inputs[i].as.tensor.storage = NULL;
  }
  AIT_GOTO(touch_states(c));
  *out = c;
cleanup:
  if (status) ait_lm_context_destroy(c);
  return status;
}

void ait_lm_context_destroy(ait_lm_context *c) {
  if (!c) return;
  ait_session_destroy(c->session);
  ait_session_destroy(c->encoder);
  if (c->encoded) ait_free(c->allocator, c->encoded, encoded_bytes(c));
  for (size_t i = 0; c->tensors && i < c->lm->port_count; ++i) ait_tensor_release(&c->tensors[i]);
  ait_free(c->allocator, c->tensors, c->lm->port_count * sizeof *c->tensors);
  ait_free(c->allocator, c->inputs, c->lm->port_count * sizeof *c->inputs);
  ait_free(c->allocator, c->logits, logit_bytes(c));
  ait_free(c->allocator, c, sizeof *c);
}

size_t ait_lm_context_bytes(const ait_lm_context *c) {
  size_t sum = ait_session_bytes(c->session) + logit_bytes(c) + (c->encoder ? ait_session_bytes(c->encoder) : 0);
  for (size_t i = 0; i < c->lm->port_count; ++i) sum += ait_tensor_bytes(&c->tensors[i]);
  return sum;
}

/* ---- checks ---------------------------------------------------------------------------------------------------------------------------*/
static ait_status bad(const char *what, int64_t i) { return ait_error(AIT_CODE_INVALID_ARGUMENT, "%s (%lld)", what, (long long)i); }

static ait_status check_pages(const ait_lm_context *c, const ait_lm_sequence *s, uint32_t g) {
  const ait_lm_info *f = &c->lm->info;
  int64_t end = (int64_t)s->past + s->count, first = 0, window = f->groups[g].window;
  if (window > 0 && s->past >= window) first = (s->past - window + 1) / f->page_size;
  if (!s->pages[g]) return bad("a sequence has no pages of group", g);
  if ((int64_t)s->page_count * f->page_size < end) return bad("a sequence has too few pages", s->page_count);
  for (int64_t p = first; p * f->page_size < end; ++p)
    if (s->pages[g][p] < 0 || s->pages[g][p] >= c->options.units[g]) return bad("a page is not in the pool", s->pages[g][p]);
  return AIT_OK;
}

static const port *lengths_port(const ait_lm *lm) {
  for (size_t i = 0; i < lm->port_count; ++i)
    if (lm->ports[i].role == ROLE_LENGTHS) return &lm->ports[i];
  return NULL;
}

static bool has_memory(const ait_lm_context *c, int32_t unit) {
  const port *p = lengths_port(c->lm);
  return p && ((const int32_t *)c->tensors[p - c->lm->ports].data)[unit] > 0;
}

static ait_status check_sequence(const ait_lm_context *c, const ait_lm_batch *b, const ait_lm_sequence *s) {
  const ait_lm_info *f = &c->lm->info;
  if (s->count < 1 || s->first < 0 || s->first > b->token_count - s->count)
    return bad("rows of a sequence are outside the batch", s->first);
  if (f->switch_at && !s->is_long && (int64_t)s->past + s->count > f->switch_at)
    return bad("a short sequence has become a long one: all of it must be computed anew", s->past);
  if (s->past < 0 || (int64_t)s->past + s->count > c->options.max_seq) return bad("a position is beyond the longest sequence", s->past);
  for (uint32_t g = 0; g < f->group_count; ++g) {
    if (f->groups[g].kind == AIT_LM_PAGES) AIT_TRY(check_pages(c, s, g));
    else if (s->slot < 0 || s->slot >= c->options.units[g]) return bad("a slot is not in the pool", s->slot);
    else if (f->groups[g].kind == AIT_LM_MEMORY && !has_memory(c, s->slot))
      return bad("nothing was encoded for a sequence, in unit", s->slot);
  }
  return AIT_OK;
}

static ait_status check_batch(const ait_lm_context *c, const ait_lm_batch *b) {
  const ait_lm_context_options *o = &c->options;
  if (b->token_count < 1 || b->token_count > o->max_tokens) return bad("tokens of a step are out of range", b->token_count);
  if (b->sequence_count < 1 || b->sequence_count > o->max_sequences) return bad("sequences of a step are out of range", b->sequence_count);
  if (b->row_count < 0 || b->row_count > o->max_rows) return bad("rows of logits are out of range", b->row_count);
  for (int32_t i = 0; i < b->token_count; ++i)
    if (b->tokens[i] < 0 || b->tokens[i] >= c->lm->info.vocab) return bad("a token is not in the vocabulary", b->tokens[i]);
  for (int32_t i = 0; i < b->row_count; ++i)
    if (b->rows[i] < 0 || b->rows[i] >= b->token_count) return bad("a row of logits is outside the batch", b->rows[i]);
  for (int32_t i = 0; i < b->sequence_count; ++i) AIT_TRY(check_sequence(c, b, &b->sequences[i]));
  for (int32_t i = 0; i < b->sequence_count && !c->lm->info.cached; ++i)
    if (b->sequences[i].past) return ait_error(AIT_CODE_UNSUPPORTED, "the model was deployed without caches: a step holds whole sequences");
  return AIT_OK;
}

/* ---- a step ---------------------------------------------------------------------------------------------------------------------------*/
static void fill_tokens(const port *p, const ait_tensor *t, const ait_lm_batch *b, int32_t padded) {
  for (int32_t i = 0; i < padded; ++i) {
    int32_t token = i < b->token_count ? b->tokens[i] : 0;
    if (p->dtype == AIT_I32) ((int32_t *)t->data)[i] = token;
    else ((int64_t *)t->data)[i] = token;
  }
}

/* long_offset: of the rows of tables that long sequences have. */
static void fill_positions(const ait_tensor *t, const ait_lm_batch *b, int32_t padded, int64_t long_offset) {
  int64_t *at = t->data;
  memset(at, 0, (size_t)padded * sizeof *at);
  for (int32_t i = 0; i < b->sequence_count; ++i) {
    const ait_lm_sequence *s = &b->sequences[i];
    for (int32_t k = 0; k < s->count; ++k) at[s->first + k] = s->past + k + (s->is_long ? long_offset : 0);
  }
}

static void fill_sequences(const ait_lm_context *c, const ait_tensor *t, const ait_lm_batch *b) {
  int32_t *at = t->data, used = c->used > b->sequence_count ? c->used : b->sequence_count;
  for (int32_t i = 0; i < used; ++i) {
    int32_t entry[4] = {0};
    if (i < b->sequence_count) {
      const ait_lm_sequence *s = &b->sequences[i];
      entry[0] = s->first, entry[1] = s->count, entry[2] = s->past, entry[3] = s->slot;
    }
    memcpy(at + 4 * (size_t)i, entry, sizeof entry);
  }
}

static void fill_table(const ait_lm_context *c, const port *p, const ait_tensor *t, const ait_lm_batch *b) {
  for (int32_t i = 0; i < b->sequence_count; ++i) {
    const ait_lm_sequence *s = &b->sequences[i];
    int64_t pages = ((int64_t)s->past + s->count + c->lm->info.page_size - 1) / c->lm->info.page_size;
    memcpy((int32_t *)t->data + i * c->table_width, s->pages[p->group], (size_t)pages * sizeof(int32_t));
  }
}

static void fill_rows(const ait_tensor *t, const ait_lm_batch *b, int32_t padded) {
  int64_t *at = t->data;
  for (int32_t i = 0; i < padded; ++i) at[i] = i < b->row_count ? b->rows[i] : 0;
}

static void fill(ait_lm_context *c, const ait_lm_batch *b, int32_t tokens, int32_t rows) {
  for (size_t i = 0; i < c->lm->port_count; ++i) {
    const port *p = &c->lm->ports[i];
    const ait_tensor *t = &c->tensors[i];
    ait_tensor *in = &c->inputs[i].as.tensor;
    switch (p->role) {
      case ROLE_TOKENS:
        fill_tokens(p, t, b, tokens);
        in->shape[1] = in->strides[0] = tokens;
        break;
      case ROLE_POSITIONS:
      case ROLE_PLACES:
        fill_positions(t, b, tokens, p->role == ROLE_PLACES ? c->lm->info.max_seq : 0);
        in->shape[0] = tokens;
        break;
      case ROLE_SEQUENCES: fill_sequences(c, t, b); break;
      case ROLE_TABLE: fill_table(c, p, t, b); break;
      case ROLE_ROWS:
        fill_rows(t, b, rows);
        in->shape[0] = rows;
        break;
      case ROLE_STATE:
      case ROLE_LENGTHS: break;
    }
  }
  c->used = b->sequence_count;
}

static ait_status run_filled(ait_lm_context *c, int32_t rows, float *logits) {
  const int64_t shape[2] = {rows, c->lm->info.vocab};
  ait_value output = ait_value_tensor(ait_tensor_borrow(logits, AIT_F32, 2, shape));
  return ait_session_run(c->session, c->inputs, c->lm->port_count, &output, 1);
}

static void copy_logits(const ait_lm_context *c, float *to, const float *from, int32_t rows) {
  memcpy(to, from, (size_t)rows * (size_t)c->lm->info.vocab * sizeof(float));
}

/* Without caches: one sequence after the other, each computed whole, as long as it is. */
static ait_status run_uncached(ait_lm_context *c, const ait_lm_batch *b) {
  for (int32_t i = 0; i < b->sequence_count; ++i) {
    const ait_lm_sequence *s = &b->sequences[i];
    for (int32_t r = 0; r < b->row_count; ++r) {
      int32_t row = b->rows[r] - s->first;
      if (row < 0 || row >= s->count) continue;
      ait_lm_sequence whole = {.count = s->count};
      ait_lm_batch one = {
          .tokens = b->tokens + s->first, .token_count = s->count, .sequences = &whole, .sequence_count = 1, .rows = &row, .row_count = 1};
      fill(c, &one, s->count, 1);
      AIT_TRY(run_filled(c, 1, c->logits));
      copy_logits(c, b->logits + (size_t)r * (size_t)c->lm->info.vocab, c->logits, 1);
    }
  }
  return AIT_OK;
}

ait_status ait_lm_run(ait_lm_context *c, const ait_lm_batch *b) {
  AIT_TRY(check_batch(c, b));
  if (!c->lm->info.cached) return run_uncached(c, b);
  int32_t tokens = ait_lm_round(b->token_count), rows = step_rows(c, tokens, b->row_count);
  bool direct = rows == b->row_count && b->row_count > 0;
  fill(c, b, tokens, rows);
  AIT_TRY(run_filled(c, rows, direct ? b->logits : c->logits));
  if (!direct && b->row_count > 0) copy_logits(c, b->logits, c->logits, b->row_count);
  return AIT_OK;
}

/* Rows of no sequence: nothing is written. */
static ait_status warm_one(ait_lm_context *c, int32_t tokens, int32_t rows) {
  ait_lm_batch none = {0};
  fill(c, &none, tokens, rows);
  return run_filled(c, rows, c->logits);
}

ait_status ait_lm_warm(ait_lm_context *c) {
  if (!c->lm->info.cached) return AIT_OK;
  for (int32_t t = 1; t <= ait_lm_round(c->options.max_tokens); t = ait_lm_round(t + 1))
    for (int32_t wanted = 1; wanted <= 2; ++wanted)
      if (wanted == 1 || (t > 1 && c->row_room > 1)) AIT_TRY(warm_one(c, t, step_rows(c, t, wanted)));
  return AIT_OK;
}

ait_status ait_lm_copy(ait_lm_context *c, uint32_t group, int32_t from, int32_t to) {
  if (group >= c->lm->info.group_count) return bad("there is no such group", group);
  if (from < 0 || from >= c->options.units[group] || to < 0 || to >= c->options.units[group]) return bad("a unit is not in the pool", from);
  for (size_t i = 0; i < c->lm->port_count; ++i) {
    const port *p = &c->lm->ports[i];
    if (p->role != ROLE_STATE || p->group != group) continue;
    size_t bytes = ait_tensor_bytes(&c->tensors[i]) / (size_t)c->options.units[group];
    memmove((char *)c->tensors[i].data + (size_t)to * bytes, (char *)c->tensors[i].data + (size_t)from * bytes, bytes);
  }
  return AIT_OK;
}

/* ---- what the encoder gives -----------------------------------------------------------------------------------------------------------*/
ait_status ait_lm_check_source(const ait_lm *lm, const ait_tensor *source) {
  if (!lm->encoder) return ait_error(AIT_CODE_INVALID_ARGUMENT, "the model has no encoder");
  return lm_check_source(&lm->info, source);
}

/* [G, S, d] into [G, M, d] of one unit. */
static ait_status keep_rows(ait_lm_context *c, const port *p, int32_t unit, const ait_tensor *rows, int64_t *length) {
  const ait_tensor *pool = &c->tensors[p - c->lm->ports];
  if (rows->rank != 3 || rows->dtype != AIT_F32 || rows->shape[0] != p->shape[1] || rows->shape[2] != p->shape[3] || rows->shape[1] < 1 ||
      rows->shape[1] > p->shape[2] || (*length && *length != rows->shape[1]))
    return ait_error(AIT_CODE_INVALID_MODEL, "what the encoder gives does not fit its pools");
  *length = rows->shape[1];
  size_t row = (size_t)rows->shape[2] * sizeof(float), part = (size_t)rows->shape[1] * row, whole = (size_t)p->shape[2] * row;
  char *to = (char *)pool->data + (size_t)unit * (size_t)p->shape[1] * whole;
  for (int64_t g = 0; g < rows->shape[0]; ++g) memcpy(to + (size_t)g * whole, (const char *)rows->data + (size_t)g * part, part);
  return AIT_OK;
}

static const port *port_named(const ait_lm *lm, const char *name) {
  const ait_region *r = ait_model_region(lm->model);
  for (uint32_t i = 0; i < r->input_count; ++i)
    if (r->inputs[i].kind == AIT_INPUT_USER && r->inputs[i].name && !strcmp(r->inputs[i].name, name))
      return &lm->ports[r->inputs[i].user_index];
  return NULL;
}

ait_status ait_lm_encode(ait_lm_context *c, int32_t unit, const ait_tensor *source) {
  const ait_lm *lm = c->lm;
  const port *lengths = lengths_port(lm);
  if (!lm->encoder || !lengths) return ait_error(AIT_CODE_INVALID_ARGUMENT, "the model has no encoder");
  if (unit < 0 || unit >= c->options.units[lengths->group]) return bad("a unit is not in the pool", unit);
  int32_t *kept = (int32_t *)c->tensors[lengths - lm->ports].data + unit;
  int64_t length = 0;
  *kept = 0;
  AIT_TRY(lm_encoder_run(lm->encoder, c->encoder, source, c->encoded));
  ait_model *model = lm_encoder_model(lm->encoder);
  for (size_t i = 0; i < ait_model_output_count(model); ++i) {
    ait_port output;
    AIT_TRY(ait_model_output(model, i, &output));
    const port *p = port_named(lm, output.name);
    if (!p || p->role != ROLE_STATE || p->group != lengths->group || p->rank != 4)
      return ait_error(AIT_CODE_INVALID_MODEL, "the encoder's output '%s' has no pool", output.name);
    AIT_TRY(keep_rows(c, p, unit, &c->encoded[i].as.tensor, &length));
  }
  *kept = (int32_t)length;
  return AIT_OK;
}
