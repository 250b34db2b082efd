/* Inputs of a model: from files, or made up from its signature. */
#include "cli/cli.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* ---- opening ---------------------------------------------------------------------------------------------------------------------*/
/* Unsigned files are the rule and nothing to talk about; a signature that proves nothing here is. */
static void note_signature(const cli_args *args, ait_signature signature) {
  char text[192];
  if (signature.state == AIT_SIGNATURE_UNSIGNED || signature.state == AIT_SIGNATURE_TRUSTED || cli_flag(args, "quiet")) return;
  cli_signature_text(ait_signature_state_name(signature.state), signature.key_name, signature.fingerprint, text);
  fprintf(stderr, "note: %s\n", text);
}

ait_status cli_model_open(const cli_args *args, const char *path, const char *backend, ait_model **out) {
  cli_load load;
  ait_status status = cli_load_open(args, &load);
  if (status != AIT_OK) return status;
  load.options.backend = backend;
  load.options.knobs = cli_option(args, "knobs");
  load.options.passes = cli_option(args, "passes");
  load.options.full_checksum = strcmp(args->command, "verify") == 0;
  status = ait_model_import(path, &load.options, out);
  cli_load_close(&load);
  if (status == AIT_OK) note_signature(args, ait_model_signature(*out));
  /* Never slower in silence: the file's best plan does not run here. */
  if (status == AIT_OK && *ait_model_reason(*out) && !cli_flag(args, "quiet")) {
    fprintf(stderr, "note: %s; running %s instead\n", ait_model_reason(*out), ait_model_target(*out));
  }
  return status;
}

ait_status cli_session_open(const cli_args *args, ait_model *model, bool profile, ait_session **out) {
  ait_session_options options;
  ait_session_options_init(&options);
  const char *threads = cli_option(args, "threads");
  if (threads) { /* the parser saw to it that it is a number */
    long long n = strtoll(threads, NULL, 10);
    if (n < 1 || n > 1024) return ait_error(AIT_CODE_INVALID_ARGUMENT, "%s threads: must be 1 to 1024", threads);
    options.threads = (int32_t)n;
  }
  options.profile = profile;
  return ait_session_create(model, &options, out);
}

/* ---- files -----------------------------------------------------------------------------------------------------------------------*/
/* name=file.npy: the tensor under that name. */
static ait_status load_named(ait_data *into, const char *text, const char *equals) {
  char name[256];
  size_t length = (size_t)(equals - text);
  if (length >= sizeof name) return ait_error(AIT_CODE_INVALID_ARGUMENT, "input name in '%s' is too long", text);
  memcpy(name, text, length);
  name[length] = 0;
  ait_data *file;
  ait_status status = ait_data_load(ait_allocator_default(), equals + 1, &file);
  if (status != AIT_OK) return status;
  if (ait_data_count(file) == 1) status = ait_data_add(into, name, ait_data_tensor(file, 0));
  else
    status = ait_error(AIT_CODE_INVALID_ARGUMENT, "'%s' holds %zu arrays; one is needed for '%s'", equals + 1, ait_data_count(file), name);
  ait_data_destroy(file);
  return status;
}

static ait_status load_sources(const cli_args *args, const char *option, cli_inputs *out) {
  ait_data *named = NULL;
  const char *text;
  for (int k = 0; (text = cli_option_at(args, option, k)); ++k) {
    const char *equals = strchr(text, '=');
    ait_status status = AIT_OK;
    if (equals && strncmp(text, "./", 2) && *text != '/') {
      if (!named) {
        status = ait_data_create(ait_allocator_default(), &named);
        if (status == AIT_OK) out->sources[out->source_count++] = named;
      }
      if (status == AIT_OK) status = load_named(named, text, equals);
    } else {
      status = ait_data_load(ait_allocator_default(), text, &out->sources[out->source_count]);
      if (status == AIT_OK) ++out->source_count;
    }
    if (status != AIT_OK) return status;
  }
  return AIT_OK;
}

static const ait_tensor *find_tensor(const cli_inputs *in, const char *name, size_t position) {
  for (int s = 0; s < in->source_count; ++s) {
    const ait_tensor *t = ait_data_find(in->sources[s], name);
    if (t) return t;
  }
  char by_position[32];
  snprintf(by_position, sizeof by_position, "arr_%zu", position);
  for (int s = 0; s < in->source_count; ++s) {
    const ait_tensor *t = ait_data_find(in->sources[s], by_position);
    if (t) return t;
  }
  return NULL;
}

/* The last part of "x.y" or "args[0].ids": users name files by argument. */
static ait_status value_from_tensor(const ait_port *port, const ait_tensor *t, ait_value *out) {
  *out = (ait_value){.kind = port->kind};
  if (port->kind == AIT_VALUE_TENSOR) {
    out->as.tensor = *t;
    out->as.tensor.storage = NULL;
    return AIT_OK;
  }
  ait_tensor number;
  ait_status status = ait_tensor_cast(ait_allocator_default(), t, AIT_F64, &number);
  if (status != AIT_OK) return status;
  if (ait_tensor_count(t) != 1) status = ait_error(AIT_CODE_INVALID_ARGUMENT, "input '%s' is a single number, not an array", port->name);
  else if (port->kind == AIT_VALUE_INT) out->as.i = (int64_t) * (double *)number.data;
  else if (port->kind == AIT_VALUE_FLOAT) out->as.f = *(double *)number.data;
  else if (port->kind == AIT_VALUE_BOOL) out->as.b = *(double *)number.data != 0;
  ait_tensor_release(&number);
  return status;
}

/* Baked and scalar inputs that the data does not mention take what export saw. */
static bool default_value(const ait_port *port, const ait_region *region, size_t index, ait_value *out) {
  if (port->kind == AIT_VALUE_NONE) {
    *out = (ait_value){.kind = AIT_VALUE_NONE};
    return true;
  }
  for (uint32_t i = 0; i < region->input_count; ++i) {
    const ait_region_input *in = &region->inputs[i];
    if (in->kind != AIT_INPUT_USER || in->user_index != (int32_t)index || in->value != AIT_NO_INDEX) continue;
    *out = (ait_value){.kind = port->kind};
    switch (in->baked.kind) {
      case AIT_ARG_INT: out->as.i = in->baked.as.i; return true;
      case AIT_ARG_FLOAT: out->as.f = in->baked.as.f; return true;
      case AIT_ARG_BOOL: out->as.b = in->baked.as.b; return true;
      case AIT_ARG_STRING: out->as.s = in->baked.as.string; return true;
      default: return false;
    }
  }
  return false;
}

static ait_status allocate_values(ait_model *model, cli_inputs *out) {
  out->count = ait_model_input_count(model);
  out->values = calloc(out->count ? out->count : 1, sizeof *out->values);
  return out->values ? AIT_OK : ait_error(AIT_CODE_OUT_OF_MEMORY, "out of memory");
}

static ait_status missing_input(const ait_port *port, size_t position, const cli_inputs *in) {
  char have[256] = "";
  for (int s = 0; s < in->source_count; ++s)
    for (size_t i = 0; i < ait_data_count(in->sources[s]) && strlen(have) < 160; ++i)
      snprintf(have + strlen(have), sizeof have - strlen(have), "%s%.60s", *have ? ", " : "", ait_data_name(in->sources[s], i));
  return ait_error_hint(ait_error(AIT_CODE_INVALID_ARGUMENT, "no data for input '%s' (position %zu)", port->name, position),
                        "the data holds: %s", have);
}

ait_status cli_inputs_load(const cli_args *args, ait_model *model, const char *option, cli_inputs *out) {
  memset(out, 0, sizeof *out);
  ait_status status = load_sources(args, option, out);
  if (status == AIT_OK) status = allocate_values(model, out);
  for (size_t i = 0; status == AIT_OK && i < out->count; ++i) {
    ait_port port;
    status = ait_model_input(model, i, &port);
    if (status != AIT_OK) break;
    const ait_tensor *t = find_tensor(out, port.name, i);
    if (t) status = value_from_tensor(&port, t, &out->values[i]);
    else if (!default_value(&port, ait_model_region(model), i, &out->values[i])) status = missing_input(&port, i, out);
  }
  if (status != AIT_OK) cli_inputs_deinit(out);
  return status;
}

/* ---- made-up inputs --------------------------------------------------------------------------------------------------------------*/
/* SplitMix64 (Steele, Lea, Flood 2014): enough for test inputs, the same everywhere. */
static uint64_t next_random(uint64_t *state) {
  uint64_t z = (*state += 0x9E3779B97F4A7C15u);
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}
static double next_uniform(uint64_t *state) { return (double)(next_random(state) >> 11) * 0x1p-53; }
static double next_normal(uint64_t *state) {
  double u = next_uniform(state), v = next_uniform(state);
  return sqrt(-2 * log(u + 1e-300)) * cos(6.283185307179586 * v);
}

static bool size_option(const cli_args *args, const char *symbol, int64_t *out) {
  const char *text;
  size_t length = strlen(symbol);
  for (int k = 0; (text = cli_option_at(args, "size", k)); ++k)
    if (!strncmp(text, symbol, length) && text[length] == '=') {
      *out = strtoll(text + length + 1, NULL, 10); /* check_sizes looked at it */
      return true;
    }
  return false;
}

/* Every --size names a symbol and has a size. */
static ait_status check_sizes(const cli_args *args, const ait_region *region) {
  const char *text;
  for (int k = 0; (text = cli_option_at(args, "size", k)); ++k) {
    const char *equals = strchr(text, '=');
    char *end = NULL;
    bool known = false;
    errno = 0;
    if (equals && strtoll(equals + 1, &end, 10) >= 0 && end != equals + 1 && !*end && !errno)
      for (uint32_t i = 0; i < region->symbol_count; ++i)
        known |=
            strlen(region->symbols[i].name) == (size_t)(equals - text) && !strncmp(region->symbols[i].name, text, (size_t)(equals - text));
    else return ait_error_hint(ait_error(AIT_CODE_INVALID_ARGUMENT, "--size '%s' is not SYMBOL=N", text), "like --size s0=8");
    if (!known)
      return ait_error_hint(ait_error(AIT_CODE_INVALID_ARGUMENT, "--size '%s': the model has no such size", text),
                            "'ait inspect' lists the sizes");
  }
  return AIT_OK;
}

/* A value for every symbol: --size, else the size that export saw, else the smallest allowed (at least 2 where that is allowed). */
static int64_t symbol_value(const cli_args *args, const ait_symbol *s) {
  int64_t v;
  if (size_option(args, s->name, &v)) return v;
  if (s->hint >= s->min && s->hint <= s->max && s->hint >= 0) return s->hint;
  v = s->min > 2 ? s->min : 2;
  return v > s->max ? s->max : v;
}

static bool eval_dim(const ait_region *r, const int64_t *symbols, ait_dim d, int depth, int64_t *out) {
  const ait_dim_expr *e = &r->dims[d];
  int64_t a = 0, b = 0;
  if (depth > 64) return false;
  if (e->op == AIT_DIM_CONST) return *out = e->value, true;
  if (e->op == AIT_DIM_SYMBOL) return *out = symbols[e->a], true;
  if (e->op == AIT_DIM_UNKNOWN || !eval_dim(r, symbols, e->a, depth + 1, &a) || !eval_dim(r, symbols, e->b, depth + 1, &b)) return false;
  switch (e->op) {
    case AIT_DIM_ADD: return !__builtin_add_overflow(a, b, out);
    case AIT_DIM_SUB: return !__builtin_sub_overflow(a, b, out);
    case AIT_DIM_MUL: return !__builtin_mul_overflow(a, b, out);
    case AIT_DIM_FLOORDIV: return b > 0 && a >= 0 ? (*out = a / b, true) : false;
    case AIT_DIM_CEILDIV: return b > 0 && a >= 0 ? (*out = a / b + (a % b != 0), true) : false;
    case AIT_DIM_MOD: return b > 0 && a >= 0 ? (*out = a % b, true) : false;
    case AIT_DIM_MIN: return *out = a < b ? a : b, true;
    case AIT_DIM_MAX: return *out = a > b ? a : b, true;
    default: return false;
  }
}

/* Integers: small and non-negative, so that they are valid indices of most tables. Indices into embeddings want real data: --data. */
static void fill_random(ait_tensor *t, uint64_t *state) {
  int64_t n = ait_tensor_count(t);
  ait_tensor wide;
  int32_t rank = t->rank;
  if (ait_dtype_size(t->dtype) == 0 || ait_tensor_create(ait_allocator_default(), AIT_F64, rank, t->shape, &wide) != AIT_OK) return;
  const char *name = ait_dtype_name(t->dtype);
  bool is_float = !strncmp(name, "float", 5) || !strncmp(name, "bfloat", 6) || !strncmp(name, "complex", 7);
  for (int64_t i = 0; i < n; ++i)
    ((double *)wide.data)[i] = is_float ? next_normal(state) : (double)(next_random(state) % (t->dtype == AIT_BOOL ? 2 : 10));
  ait_status_free(ait_tensor_copy(t, &wide));
  ait_tensor_release(&wide);
}

static ait_status random_tensor(const ait_region *region, const ait_region_value *v, const int64_t *symbols, const char *name,
                                uint64_t *state, ait_value *out) {
  int64_t shape[AIT_MAX_RANK];
  if (v->rank < 0 || v->rank > AIT_MAX_RANK) return ait_error(AIT_CODE_INVALID_ARGUMENT, "the shape of input '%s' is not known", name);
  for (int32_t d = 0; d < v->rank; ++d)
    if (!eval_dim(region, symbols, v->shape[d], 0, &shape[d]))
      return ait_error_hint(ait_error(AIT_CODE_INVALID_ARGUMENT, "dimension %d of input '%s' is not known", d, name),
                            "give the inputs with --data");
  *out = (ait_value){.kind = AIT_VALUE_TENSOR};
  ait_status status = ait_tensor_create(ait_allocator_default(), v->dtype, v->rank, shape, &out->as.tensor);
  if (status == AIT_OK) fill_random(&out->as.tensor, state);
  return status;
}

/* An int that is a size has that size; any other is 2. */
static ait_status random_int(const ait_region *region, const ait_region_value *v, const int64_t *symbols, const char *name,
                             ait_value *out) {
  *out = (ait_value){.kind = AIT_VALUE_INT, .as.i = 2};
  if (v->type != AIT_TYPE_INT || !v->shape || eval_dim(region, symbols, v->shape[0], 0, &out->as.i)) return AIT_OK;
  return ait_error_hint(ait_error(AIT_CODE_INVALID_ARGUMENT, "the value of input '%s' is not known", name), "give the inputs with --data");
}

ait_status cli_inputs_random(const cli_args *args, ait_model *model, uint64_t seed, cli_inputs *out) {
  memset(out, 0, sizeof *out);
  const ait_region *region = ait_model_region(model);
  int64_t *symbols = calloc(region->symbol_count ? region->symbol_count : 1, sizeof *symbols);
  ait_status status = symbols ? allocate_values(model, out) : ait_error(AIT_CODE_OUT_OF_MEMORY, "out of memory");
  if (status == AIT_OK) status = check_sizes(args, region);
  for (uint32_t i = 0; symbols && i < region->symbol_count; ++i) symbols[i] = symbol_value(args, &region->symbols[i]);
  for (uint32_t i = 0; status == AIT_OK && i < region->input_count; ++i) {
    const ait_region_input *in = &region->inputs[i];
    if (in->kind != AIT_INPUT_USER || in->user_index < 0) continue;
    ait_value *slot = &out->values[in->user_index];
    ait_port port;
    status = ait_model_input(model, (size_t)in->user_index, &port);
    if (status != AIT_OK || default_value(&port, region, (size_t)in->user_index, slot)) continue;
    if (in->value == AIT_NO_INDEX) continue;
    const ait_region_value *v = &region->values[in->value];
    if (port.kind == AIT_VALUE_TENSOR) status = random_tensor(region, v, symbols, port.name, &seed, slot);
    else if (port.kind == AIT_VALUE_INT) status = random_int(region, v, symbols, port.name, slot);
    else if (port.kind == AIT_VALUE_FLOAT) *slot = (ait_value){.kind = AIT_VALUE_FLOAT, .as.f = 0.5};
    else *slot = (ait_value){.kind = port.kind};
  }
  free(symbols);
  if (status != AIT_OK) cli_inputs_deinit(out);
  return status;
}

ait_status cli_inputs_get(const cli_args *args, ait_model *model, const char *option, cli_inputs *out) {
  const char *seed = cli_option(args, "random");
  if (seed) return cli_inputs_random(args, model, strtoull(seed, NULL, 10), out);
  if (cli_option(args, option) || ait_model_input_count(model) == 0) return cli_inputs_load(args, model, option, out);
  return ait_error_hint(ait_error(AIT_CODE_INVALID_ARGUMENT, "no inputs are given"), "use --%s FILE.npz, or --random SEED", option);
}

void cli_inputs_take_rows(cli_inputs *in, int64_t rows) {
  int64_t batch = -1;
  for (size_t i = 0; i < in->count; ++i) {
    ait_tensor *t = &in->values[i].as.tensor;
    if (in->values[i].kind != AIT_VALUE_TENSOR || t->rank == 0) continue;
    if (batch < 0) batch = t->shape[0];
    if (t->shape[0] == batch && rows < batch) t->shape[0] = rows;
  }
}

void cli_inputs_deinit(cli_inputs *in) {
  for (size_t i = 0; i < in->count; ++i) ait_value_release(&in->values[i]);
  for (int s = 0; s < in->source_count; ++s) ait_data_destroy(in->sources[s]);
  free(in->values);
  memset(in, 0, sizeof *in);
}
