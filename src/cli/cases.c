/* Runs one case: loads the model, runs its steps on one session, compares outputs, changed inputs and state. */
#include "cli/cases.h"
#include <stdlib.h>
#include <string.h>

enum { MAX_LEAVES = 512 };

typedef struct case_context {
  const cli_args *args;
  const char *folder;
  struct json_object *c;
  case_result *out;
  ait_model *model;
  ait_session *session;
} case_context;

static struct json_object *get(struct json_object *o, const char *key) {
  struct json_object *v = NULL;
  return o && json_object_object_get_ex(o, key, &v) ? v : NULL;
}
static const char *get_text(struct json_object *o, const char *key) {
  struct json_object *v = get(o, key);
  return v && json_object_is_type(v, json_type_string) ? json_object_get_string(v) : NULL;
}
static void join(char *out, size_t size, const char *folder, const char *file) { snprintf(out, size, "%s/%s", folder, file); }

/* ---- arrays ----------------------------------------------------------------------------------------------------------------------*/
/* Arrays whose dtype numpy lacks are stored as bits: bfloat16 as uint16. The same memory under the right dtype. */
static ait_tensor with_dtype(const ait_tensor *t, const char *dtype_name) {
  ait_tensor r = *t;
  ait_dtype dtype = dtype_name ? ait_dtype_from_name(dtype_name) : AIT_DTYPE_NONE;
  if (dtype != AIT_DTYPE_NONE && ait_dtype_size(dtype) == ait_dtype_size(t->dtype)) r.dtype = dtype;
  return r;
}

static void flatten_inline(struct json_object *o, double *out, int64_t *n, int64_t limit) {
  if (!json_object_is_type(o, json_type_array)) {
    if (*n < limit) out[(*n)++] = json_object_get_double(o);
    return;
  }
  for (size_t i = 0; i < json_object_array_length(o); ++i) flatten_inline(json_object_array_get_idx(o, i), out, n, limit);
}

/* {"dtype", "data": nested lists, "shape": where the lists do not say it: [0, 3]} */
static ait_status inline_tensor(struct json_object *leaf, ait_tensor *out) {
  struct json_object *data = get(leaf, "data"), *stated = get(leaf, "shape");
  const char *dtype = get_text(leaf, "dtype");
  int64_t shape[AIT_MAX_RANK], n = 0, count = 1;
  int32_t rank = 0;
  if (stated && json_object_is_type(stated, json_type_array)) {
    for (size_t d = 0; d < json_object_array_length(stated) && rank < AIT_MAX_RANK; ++d)
      shape[rank++] = json_object_get_int64(json_object_array_get_idx(stated, d));
  } else {
    for (struct json_object *o = data; rank < AIT_MAX_RANK && json_object_is_type(o, json_type_array);
         o = json_object_array_get_idx(o, 0)) {
      shape[rank++] = (int64_t)json_object_array_length(o);
      if (shape[rank - 1] == 0) break;
    }
  }
  for (int32_t d = 0; d < rank; ++d) count *= shape[d];
  ait_tensor wide;
  ait_status status = ait_tensor_create(ait_allocator_default(), AIT_F64, rank, shape, &wide);
  if (status != AIT_OK) return status;
  flatten_inline(data, wide.data, &n, count);
  if (n != count) status = ait_error(AIT_CODE_INVALID_ARGUMENT, "the case's inline data is ragged");
  else status = ait_tensor_cast(ait_allocator_default(), &wide, ait_dtype_from_name(dtype ? dtype : "float32"), out);
  ait_tensor_release(&wide);
  return status;
}

/* A copy laid out with the given strides ("strides" of a leaf: it was not contiguous), or contiguous. Inputs are copies, since a model may
 * write into them. */
static ait_status strided_copy(const ait_tensor *src, struct json_object *strides, ait_tensor *out) {
  if (!strides || (int32_t)json_object_array_length(strides) != src->rank)
    return ait_tensor_cast(ait_allocator_default(), src, src->dtype, out);
  int64_t span = 1;
  ait_tensor view = *src;
  for (int32_t d = 0; d < src->rank; ++d) {
    view.strides[d] = json_object_get_int64(json_object_array_get_idx(strides, (size_t)d));
    if (view.strides[d] < 0 || src->shape[d] == 0) return ait_tensor_cast(ait_allocator_default(), src, src->dtype, out);
    span += (src->shape[d] - 1) * view.strides[d];
  }
  ait_tensor memory;
  ait_status status = ait_tensor_create(ait_allocator_default(), src->dtype, 1, &span, &memory);
  if (status != AIT_OK) return status;
  memset(memory.data, 0, (size_t)span * ait_dtype_size(src->dtype));
  view.data = memory.data;
  view.storage = memory.storage;
  status = ait_tensor_copy(&view, src);
  if (status != AIT_OK) ait_tensor_release(&memory);
  else *out = view;
  return status;
}

static const ait_tensor *find_array(const ait_data *data, const char *prefix, size_t i, struct json_object *leaf) {
  char key[64];
  snprintf(key, sizeof key, "%s%zu", prefix, i);
  const ait_tensor *t = data ? ait_data_find(data, key) : NULL;
  const char *name = get_text(leaf, "name");
  return t || !data || !name ? t : ait_data_find(data, name);
}

static ait_status input_value(const ait_data *data, size_t i, struct json_object *leaf, ait_value *out) {
  struct json_object *value, *inline_data = get(leaf, "data");
  if (json_object_object_get_ex(leaf, "value", &value)) {
    const char *type = get_text(leaf, "type");
    *out = (ait_value){.kind = AIT_VALUE_NONE};
    if (!type || !strcmp(type, "none")) return AIT_OK;
    if (!strcmp(type, "int")) *out = (ait_value){.kind = AIT_VALUE_INT, .as.i = json_object_get_int64(value)};
    else if (!strcmp(type, "bool")) *out = (ait_value){.kind = AIT_VALUE_BOOL, .as.b = json_object_get_boolean(value)};
    else if (!strcmp(type, "str")) *out = (ait_value){.kind = AIT_VALUE_STRING, .as.s = json_object_get_string(value)};
    else if (json_object_is_type(value, json_type_string))
      *out = (ait_value){.kind = AIT_VALUE_FLOAT, .as.f = strtod(json_object_get_string(value), NULL)};
    else *out = (ait_value){.kind = AIT_VALUE_FLOAT, .as.f = json_object_get_double(value)};
    return AIT_OK;
  }
  out->kind = AIT_VALUE_TENSOR;
  if (inline_data) {
    ait_tensor given;
    ait_status status = inline_tensor(leaf, &given);
    if (status != AIT_OK) return status;
    status = strided_copy(&given, get(leaf, "strides"), &out->as.tensor);
    ait_tensor_release(&given);
    return status;
  }
  const ait_tensor *t = find_array(data, "arr_", i, leaf);
  if (!t) return ait_error(AIT_CODE_INVALID_ARGUMENT, "the case has no array for input %zu", i);
  ait_tensor typed = with_dtype(t, get_text(leaf, "dtype"));
  return strided_copy(&typed, get(leaf, "strides"), &out->as.tensor);
}

/* ---- a step ----------------------------------------------------------------------------------------------------------------------*/
typedef struct step_data {
  ait_data *in, *out;
  ait_value inputs[MAX_LEAVES], outputs[MAX_LEAVES];
  ait_tensor before[MAX_LEAVES]; /* copies of tensor inputs: what is not listed as changed stays as it was */
  size_t input_count, output_count;
} step_data;

static ait_status load_step(case_context *x, struct json_object *step, step_data *s) {
  char path[4096];
  ait_status status = AIT_OK;
  const char *file = get_text(step, "in");
  if (file) join(path, sizeof path, x->folder, file), status = ait_data_load(ait_allocator_default(), path, &s->in);
  if (status == AIT_OK && (file = get_text(step, "out")))
    join(path, sizeof path, x->folder, file), status = ait_data_load(ait_allocator_default(), path, &s->out);
  struct json_object *inputs = get(step, "inputs");
  size_t n = inputs ? json_object_array_length(inputs) : 0;
  size_t model_outputs = x->model ? ait_model_output_count(x->model) : 0;
  if (status == AIT_OK && (n > MAX_LEAVES || model_outputs > MAX_LEAVES))
    status = ait_error(AIT_CODE_LIMIT, "the case has too many leaves");
  s->output_count = model_outputs;
  for (size_t i = 0; status == AIT_OK && i < n; ++i) {
    status = input_value(s->in, i, json_object_array_get_idx(inputs, i), &s->inputs[i]);
    if (status == AIT_OK) s->input_count = i + 1;
    if (status == AIT_OK && s->inputs[i].kind == AIT_VALUE_TENSOR)
      status = ait_tensor_cast(ait_allocator_default(), &s->inputs[i].as.tensor, s->inputs[i].as.tensor.dtype, &s->before[i]);
  }
  return status;
}

static void free_step(step_data *s) {
  for (size_t i = 0; i < s->input_count; ++i) {
    ait_value_release(&s->inputs[i]);
    ait_tensor_release(&s->before[i]);
  }
  ait_data_destroy(s->in);
  ait_data_destroy(s->out);
}

static bool compare_outputs(case_context *x, const step_data *s, struct json_object *outputs, const char *where) {
  size_t n = outputs ? json_object_array_length(outputs) : 0;
  if (n != s->output_count) return case_fail(x->out, "%smodel gives %zu outputs, want %zu", where, s->output_count, n);
  for (size_t i = 0; i < n; ++i) {
    struct json_object *leaf = json_object_array_get_idx(outputs, i), *data = get(leaf, "data");
    const char *name = get_text(leaf, "name");
    char what[128];
    snprintf(what, sizeof what, "%soutput %zu%s%.60s", where, i, name ? " " : "", name ? name : "");
    ait_tensor want = {0};
    const ait_tensor *found = find_array(s->out, "arr_", i, leaf);
    if (data) ait_status_free(inline_tensor(leaf, &want));
    else if (found) want = with_dtype(found, get_text(leaf, "dtype"));
    bool ok = case_compare_value(&s->outputs[i], data || found ? &want : NULL, leaf, what, x->out);
    if (data) ait_tensor_release(&want);
    if (!ok) return false;
  }
  return true;
}

static bool has_tag(struct json_object *c, const char *tag) {
  struct json_object *tags = get(c, "tags");
  size_t n = tags && json_object_is_type(tags, json_type_array) ? json_object_array_length(tags) : 0;
  for (size_t i = 0; i < n; ++i) {
    const char *text = json_object_get_string(json_object_array_get_idx(tags, i));
    if (text && strcmp(text, tag) == 0) return true;
  }
  return false;
}

static bool compare_inputs(case_context *x, const step_data *s, struct json_object *changed, const char *where) {
  /* A case of this tag changes inputs without listing them: it gives their new contents as further outputs. */
  if (!changed && has_tag(x->c, "changes-input")) return true;
  for (size_t i = 0; i < s->input_count; ++i) {
    if (s->inputs[i].kind != AIT_VALUE_TENSOR) continue;
    char key[32], what[96];
    snprintf(key, sizeof key, "%zu", i);
    snprintf(what, sizeof what, "%sinput %zu after the call", where, i);
    struct json_object *spec = get(changed, key);
    const ait_tensor *array = spec && s->out && get_text(spec, "array") ? ait_data_find(s->out, get_text(spec, "array")) : NULL;
    if (spec && !array) return case_fail(x->out, "%s: the case holds no array", what);
    ait_tensor want = spec ? with_dtype(array, get_text(spec, "dtype")) : s->before[i];
    struct json_object *exact = spec ? json_object_get(spec) : json_object_new_object();
    bool ok = case_compare_value(&s->inputs[i], &want, exact, what, x->out);
    json_object_put(exact);
    if (!ok) return false;
  }
  return true;
}

static bool compare_state(case_context *x, const step_data *s, struct json_object *changed, const char *where) {
  if (!changed) return true;
  json_object_object_foreach(changed, name, spec) {
    char what[160];
    snprintf(what, sizeof what, "%sstate '%.80s'", where, name);
    ait_value got = {.kind = AIT_VALUE_TENSOR};
    ait_status status = ait_session_state(x->session, name, &got.as.tensor);
    if (status != AIT_OK) {
      case_fail(x->out, "%s: %s", what, ait_status_message(status));
      ait_status_free(status);
      return false;
    }
    const ait_tensor *array = s->out && get_text(spec, "array") ? ait_data_find(s->out, get_text(spec, "array")) : NULL;
    if (!array) return case_fail(x->out, "%s: the case holds no array", what);
    ait_tensor want = with_dtype(array, get_text(spec, "dtype"));
    if (!case_compare_value(&got, &want, spec, what, x->out)) return false;
  }
  return true;
}

/* Runs the step. *out_error: the model's own refusal. false: the comparison failed (x->out says why). */
static bool run_step(case_context *x, struct json_object *step, size_t index, bool compare, ait_status *out_error) {
  step_data *s = calloc(1, sizeof *s);
  if (!s) return case_fail(x->out, "out of memory");
  char where[32] = "";
  if (index) snprintf(where, sizeof where, "step %zu: ", index);
  ait_status status = load_step(x, step, s);
  bool ok = true;
  if (status != AIT_OK) {
    ok = case_fail(x->out, "%s%s", where, ait_status_message(status));
    ait_status_free(status);
  } else {
    struct json_object *reset = get(step, "reset");
    if (reset && json_object_get_boolean(reset)) *out_error = ait_session_reset(x->session);
    if (*out_error == AIT_OK) *out_error = ait_session_run(x->session, s->inputs, s->input_count, s->outputs, s->output_count);
    if (*out_error == AIT_OK && compare)
      ok = compare_outputs(x, s, get(step, "outputs"), where) && compare_inputs(x, s, get(step, "inputs_changed"), where) &&
           compare_state(x, s, get(step, "state_changed"), where);
  }
  free_step(s);
  free(s);
  return ok;
}

/* ---- a case ----------------------------------------------------------------------------------------------------------------------*/
static bool ends_with(const char *text, const char *end) {
  size_t n = strlen(text), m = strlen(end);
  return n >= m && strcmp(text + n - m, end) == 0;
}
static bool is_weights(const char *path) { return ends_with(path, ".safetensors") || ends_with(path, ".safetensors.index.json"); }

static ait_status open_case(case_context *x) {
  char path[4096];
  const char *model = get_text(x->c, "model");
  join(path, sizeof path, x->folder, model ? model : "");
  if (is_weights(path)) { /* no program: the file itself is the case */
    ait_data *data = NULL;
    ait_status read = ait_data_load(ait_allocator_default(), path, &data);
    ait_data_destroy(data);
    return read;
  }
  cli_args args = *x->args; /* --model-name comes from the case */
  const char *name = get_text(x->c, "model_name");
  if (name && args.option_count < CLI_MAX_OPTIONS) {
    args.options[args.option_count].name = "model-name";
    args.options[args.option_count++].value = name;
  }
  ait_status status = cli_model_open(&args, path, cli_option(x->args, "backend"), &x->model);
  if (status == AIT_OK && json_object_array_length(get(x->c, "steps"))) status = cli_session_open(x->args, x->model, false, &x->session);
  return status;
}

static const char *base_name(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash ? slash + 1 : path;
}

/* Decides what an error of the model means for the case. */
static void judge_error(case_context *x, ait_status error, bool importing, const char *expect) {
  case_result *out = x->out;
  const char *message = ait_status_message(error);
  ait_code code = ait_status_code(error);
  const char *model = get_text(x->c, "model");
  snprintf(out->text, sizeof out->text, "%s", message);
  if (!strcmp(expect, "error") || !strcmp(expect, "either")) {
    out->outcome = CASE_PASSED;
    struct json_object *words = get(x->c, "message");
    size_t n = words ? json_object_array_length(words) : 0;
    if (n && importing && cli_option(x->args, "backend") != NULL && code == AIT_CODE_UNSUPPORTED) {
      out->outcome = CASE_SKIPPED; /* a backend that declines the model cannot refuse the call */
      return;
    }
    for (size_t i = 0; i < n; ++i) {
      const char *word = json_object_get_string(json_object_array_get_idx(words, i));
      if (!strstr(message, word)) case_fail(out, "error does not say '%s': %.300s", word, message);
    }
    if (ait_code_exit(code) != CLI_BAD_MODEL) case_fail(out, "error has code %s: %s", ait_code_name(code), message);
    else if (importing && model && !strstr(message, base_name(model))) case_fail(out, "error does not name the file: %s", message);
  } else if (!strcmp(expect, "unsupported")) {
    out->outcome = CASE_PASSED;
    if (code != AIT_CODE_UNSUPPORTED) case_fail(out, "error has code %s, want unsupported: %s", ait_code_name(code), message);
  } else if (get(x->c, "custom_ops")) {
    out->outcome = CASE_FAILED; /* without a registration: an error that names them */
    json_object_object_foreach(get(x->c, "custom_ops"), name, meaning) {
      (void)meaning;
      const char *colon = strrchr(name, 0x3A);
      if (strstr(message, colon ? colon + 1 : name)) out->outcome = CASE_SKIPPED;
    }
  } else {
    bool other_backend = cli_option(x->args, "backend") != NULL && code == AIT_CODE_UNSUPPORTED;
    out->outcome = other_backend ? CASE_SKIPPED : CASE_FAILED;
  }
}

static void run_all_steps(case_context *x, const char *expect) {
  struct json_object *steps = get(x->c, "steps");
  bool compare = !strcmp(expect, "match") || !strcmp(expect, "either");
  for (size_t i = 0; i < json_object_array_length(steps); ++i) {
    ait_status error = AIT_OK;
    bool ok = run_step(x, json_object_array_get_idx(steps, i), i, compare, &error);
    if (error != AIT_OK) {
      judge_error(x, error, false, expect);
      ait_status_free(error);
      return;
    }
    if (!ok) return;
  }
  if (!strcmp(expect, "error") || !strcmp(expect, "unsupported"))
    case_fail(x->out, "no error, want one: %s", get_text(x->c, "why") ? get_text(x->c, "why") : "");
}

void case_run(const cli_args *args, const char *folder, struct json_object *c, case_result *out) {
  *out = (case_result){.outcome = CASE_PASSED};
  case_context x = {.args = args, .folder = folder, .c = c, .out = out};
  const char *expect = get_text(c, "expect");
  if (!expect || !get(c, "steps")) {
    case_fail(out, "the case lacks 'expect' or 'steps'");
    return;
  }
  ait_status status = open_case(&x);
  if (status != AIT_OK) judge_error(&x, status, true, expect);
  else run_all_steps(&x, expect);
  ait_status_free(status);
  ait_session_destroy(x.session);
  ait_model_release(x.model);
}
