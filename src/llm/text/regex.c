/* Compiling and matching with PCRE2. Its own compiler is used where the system lets it (pcre2_jit_compile); the interpreter does the same.
 */
#include "llm/text/regex.h"
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

/* PCRE2 frees without a size; the allocator wants one: it stands in front. */
typedef struct block_header {
  ait_allocator allocator;
  size_t size;
} block_header;
enum { HEADER = 64 };
_Static_assert(sizeof(block_header) <= HEADER, "header");

static void *rx_alloc(size_t size, void *ctx) {
  const ait_allocator *a = ctx;
  if (size > SIZE_MAX - HEADER) return NULL;
  char *p = ait_alloc(*a, size + HEADER, HEADER);
  if (!p) return NULL;
  *(block_header *)p = (block_header){*a, size + HEADER};
  return p + HEADER;
}

static void rx_free(void *p, void *ctx) {
  AIT_UNUSED(ctx);
  if (!p) return;
  block_header h = *(block_header *)((char *)p - HEADER);
  ait_free(h.allocator, (char *)p - HEADER, h.size);
}

struct ait_regex {
  ait_allocator allocator;
  pcre2_general_context *general;
  pcre2_code *code;
};

struct ait_regex_matcher {
  ait_allocator allocator;
  pcre2_general_context *general;
  pcre2_match_data *data;
  pcre2_match_context *context;
  pcre2_jit_stack *stack;
};

ait_status ait_regex_compile(ait_allocator a, const char *pattern, size_t size, ait_regex **out) {
  ait_regex *r = ait_alloc_zero(a, sizeof *r, _Alignof(ait_regex));
  if (!r) return AIT_OOM();
  ait_status status = AIT_OK;
  pcre2_compile_context *context = NULL;
  int code = 0;
  size_t offset = 0;
  r->allocator = a;
  r->general = pcre2_general_context_create(rx_alloc, rx_free, &r->allocator);
  if (r->general) context = pcre2_compile_context_create(r->general);
  if (!context) {
    status = AIT_OOM();
    goto cleanup;
  }
  pcre2_set_newline(context, PCRE2_NEWLINE_LF);
  pcre2_set_parens_nest_limit(context, 100);
  r->code =
      pcre2_compile((PCRE2_SPTR)pattern, size, PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C, &code, &offset, context);
  if (!r->code) {
    if (code == PCRE2_ERROR_HEAP_FAILED) {
      status = AIT_OOM();
      goto cleanup;
    }
    char message[128] = "";
    pcre2_get_error_message(code, (PCRE2_UCHAR *)message, sizeof message);
    status = ait_error(AIT_CODE_INVALID_MODEL, "regular expression: %s at byte %zu of '%.*s'", message, offset,
                       (int)(size > 200 ? 200 : size), pattern);
    goto cleanup;
  }
  pcre2_jit_compile(r->code, PCRE2_JIT_COMPLETE); /* a refusal leaves the interpreter */
  *out = r;
  r = NULL;
cleanup:
  pcre2_compile_context_free(context);
  ait_regex_destroy(r);
  return status;
}

ait_status ait_regex_compile_onig(ait_allocator a, const char *pattern, size_t size, ait_regex **out) {
  ait_text text;
  ait_text_init(&text, a);
  ait_status status = ait_regex_translate(pattern, size, &text);
  if (!status && text.failed) status = AIT_OOM();
  if (!status) status = ait_regex_compile(a, text.data ? text.data : "", text.length, out);
  ait_text_deinit(&text);
  return status;
}

void ait_regex_destroy(ait_regex *r) {
  if (!r) return;
  pcre2_code_free(r->code);
  pcre2_general_context_free(r->general);
  ait_free(r->allocator, r, sizeof *r);
}

ait_status ait_regex_matcher_create(ait_allocator a, ait_regex_matcher **out) {
  ait_regex_matcher *m = ait_alloc_zero(a, sizeof *m, _Alignof(ait_regex_matcher));
  if (!m) return AIT_OOM();
  m->allocator = a;
  m->general = pcre2_general_context_create(rx_alloc, rx_free, &m->allocator);
  if (m->general) m->data = pcre2_match_data_create(1, m->general);
  if (m->data) m->context = pcre2_match_context_create(m->general);
  if (!m->context) {
    ait_regex_matcher_destroy(m);
    return AIT_OOM();
  }
  pcre2_set_heap_limit(m->context, 256 << 10); /* KiB */
  m->stack = pcre2_jit_stack_create(32 << 10, 1 << 20, m->general);
  if (m->stack) pcre2_jit_stack_assign(m->context, NULL, m->stack); /* else the machine's stack, 32 KiB of it */
  *out = m;
  return AIT_OK;
}

void ait_regex_matcher_destroy(ait_regex_matcher *m) {
  if (!m) return;
  pcre2_jit_stack_free(m->stack);
  pcre2_match_context_free(m->context);
  pcre2_match_data_free(m->data);
  pcre2_general_context_free(m->general);
  ait_free(m->allocator, m, sizeof *m);
}

/* Backtracking is bounded in proportion to the text: honest expressions go over it a few times. */
static uint32_t step_limit(size_t size) {
  uint64_t limit = 10000000 + 64 * (uint64_t)size;
  return limit > UINT32_MAX ? UINT32_MAX : (uint32_t)limit;
}

ait_status ait_regex_find(const ait_regex *r, ait_regex_matcher *m, const char *text, size_t size, size_t from, bool *found, size_t *start,
                          size_t *end) {
  pcre2_set_match_limit(m->context, step_limit(size));
  int rc = pcre2_match(r->code, (PCRE2_SPTR)text, size, from, PCRE2_NO_UTF_CHECK, m->data, m->context);
  if (rc == PCRE2_ERROR_JIT_STACKLIMIT)
    rc = pcre2_match(r->code, (PCRE2_SPTR)text, size, from, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT, m->data, m->context);
  *found = rc >= 0;
  if (rc == PCRE2_ERROR_NOMATCH) return AIT_OK;
  if (rc == PCRE2_ERROR_NOMEMORY) return AIT_OOM();
  if (rc < 0) {
    char message[128] = "";
    pcre2_get_error_message(rc, (PCRE2_UCHAR *)message, sizeof message);
    return ait_error(AIT_CODE_LIMIT, "a regular expression of the tokenizer gives up at byte %zu of the text: %s", from, message);
  }
  const PCRE2_SIZE *v = pcre2_get_ovector_pointer(m->data);
  *start = v[0];
  *end = v[1] < v[0] ? v[0] : v[1]; /* \K in a lookahead */
  return AIT_OK;
}
