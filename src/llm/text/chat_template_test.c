/* Chat templates: what transformers gave for some (tests/python/test_chat_templates.py compares many more), errors, limits, memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/test_support.h"
#include <ait/text.h>

static ait_status render(const char *source, const char *variables, const ait_chat_options *options, char **out, size_t *size) {
  ait_chat_template *t = NULL;
  ait_status status = ait_chat_template_parse(ait_allocator_default(), source, strlen(source), &t);
  if (!status) status = ait_chat_template_render(t, variables, strlen(variables), options, ait_allocator_default(), out, size);
  ait_chat_template_destroy(t);
  return status;
}

static void check(const char *source, const char *variables, const char *want) {
  char *text;
  size_t size;
  ait_status status = render(source, variables, &(ait_chat_options){.now = 86400 * 366}, &text, &size);
  if (status) fail_msg("%s: %s", source, ait_status_message(status));
  assert_string_equal(text, want);
  assert_int_equal(size, strlen(want));
  ait_text_free(ait_allocator_default(), text, size);
}

static void renders(void **state) {
  AIT_UNUSED(state);
  static const char chat[] =
      "{\"messages\":[{\"role\":\"system\",\"content\":\" S \"},{\"role\":\"user\",\"content\":\"hé\\n\\\"x\\\"\",\"name\":null}],"
      "\"add_generation_prompt\":true,\"bos_token\":\"<s>\"}";
  check("{{ bos_token }}{% for m in messages %}\n  <{{ m.role }}>{{ m['content'] | trim }}\n{% endfor %}\n{% if add_generation_prompt "
        "%}A:{% endif %}\n",
        chat, "<s>  <system>S\n  <user>h\xC3\xA9\n\"x\"\nA:");
  check("{{ messages[1] | tojson }}{{ messages[-1].name is defined }}", chat,
        "{\"role\": \"user\", \"content\": \"h\xC3\xA9\\n\\\"x\\\"\"}False");
  check("{%- set ns = namespace(n=0) -%}{%- for m in messages if m.role != 'system' -%}{%- set ns.n = ns.n + loop.index -%}{%- endfor -%} "
        "{{ ns.n }}",
        chat, "1");
  check("{% macro f(x, y=2) %}{{ x }}-{{ y }}{{ caller() if caller }}{% endmacro %}{{ f(1) }}{% call f(3, y=4) %}!{% endcall %}", "{}",
        "1-23-4!");
  check("{{ tools is none }}{{ documents is none }}{{ 7 // -2 }}{{ -7 % 3 }}{{ 1e22 }}{{ [1, 'a', none, 0.1] }}", "{}",
        "TrueTrue-421e+22[1, 'a', None, 0.1]");
  check("{{ strftime_now('%d %b %Y') }}", "{}", "02 Jan 1971");
}

static void errors(void **state) {
  AIT_UNUSED(state);
  static const struct {
    const char *source, *variables, *message;
    ait_code code;
  } cases[] = {{"a\nb{{ x", "{}", "chat template: line 2: a '{{' without its '}}'", AIT_CODE_INVALID_MODEL},
               {"\n{% for x in y %}", "{}", "line 2: the template ends before 'else'", AIT_CODE_INVALID_MODEL},
               {"{% include 'x' %}", "{}", "line 1: tag 'include' is not known here", AIT_CODE_UNSUPPORTED},
               {"\n\n{{ raise_exception('roles must alternate') }}", "{}", "line 3: roles must alternate", AIT_CODE_INVALID_ARGUMENT},
               {"{{ a.b.c }}", "{\"a\":{}}", "line 1: 'b' is undefined, it has no 'c'", AIT_CODE_INVALID_MODEL},
               {"{{ 1|nosuch }}", "{}", "filter 'nosuch' is not known here", AIT_CODE_UNSUPPORTED},
               {"{{ [].append(1) }}", "{}", "would change it", AIT_CODE_INVALID_MODEL},
               {"{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", "{}", "macros call each other too deeply", AIT_CODE_LIMIT},
               {"{{ 'x' * 99999999999 }}", "{}", "more than 64 MB", AIT_CODE_LIMIT},
               {"x", "[1]", "variables must be a JSON object", AIT_CODE_INVALID_ARGUMENT},
               {"x", "{", "variables: ", AIT_CODE_INVALID_ARGUMENT},
               {"x", "{\"messages\":[1]}", "\"messages\" must be a list of objects", AIT_CODE_INVALID_ARGUMENT}};
  for (size_t i = 0; i < AIT_COUNT(cases); ++i) {
    char *text;
    size_t size;
    ait_status status = render(cases[i].source, cases[i].variables, NULL, &text, &size);
    if (!status || !strstr(ait_status_message(status), cases[i].message)) fail_msg("%s: %s", cases[i].source, ait_status_message(status));
    assert_int_equal(ait_status_code(status), cases[i].code);
    ait_status_free(status);
  }
}

static void limits(void **state) {
  AIT_UNUSED(state);
  static const char endless[] = "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}";
  char *text;
  size_t size;
  ait_status status = render(endless, "{}", &(ait_chat_options){.max_steps = 10000}, &text, &size);
  assert_int_equal(ait_status_code(status), AIT_CODE_LIMIT);
  ait_status_free(status);
  status = render("{% for a in range(999) %}0123456789{% endfor %}", "{}", &(ait_chat_options){.max_output = 100}, &text, &size);
  assert_int_equal(ait_status_code(status), AIT_CODE_LIMIT);
  ait_status_free(status);
}

static void from_a_folder(void **state) {
  AIT_UNUSED(state);
  static const char variables[] = "{\"messages\":[{\"role\":\"u\",\"content\":\"x\"}],\"tools\":[1,2]}",
                    folder[] = AIT_TEST_DATA "/chat_template";
  ait_allocator a = ait_allocator_default();
  const char *const names[] = {NULL, "tool_use"}, *const wants[] = {"<s>u:x</s>", "2"};
  ait_chat_template *t = NULL;
  for (size_t i = 0; i < AIT_COUNT(names); ++i) {
    char *text;
    size_t size;
    assert_null(ait_chat_template_load(a, folder, names[i], &t));
    assert_null(ait_chat_template_render(t, variables, sizeof variables - 1, NULL, a, &text, &size));
    assert_string_equal(text, wants[i]);
    ait_text_free(a, text, size);
    ait_chat_template_destroy(t);
  }
  ait_status status = ait_chat_template_load(a, folder, "rag", &t);
  assert_int_equal(ait_status_code(status), AIT_CODE_NOT_FOUND);
  ait_status_free(status);
  status = ait_chat_template_load(a, AIT_TEST_DATA, NULL, &t);
  assert_int_equal(ait_status_code(status), AIT_CODE_NOT_FOUND);
  ait_status_free(status);
}

static ait_status use(ait_allocator a, void *ctx) {
  static const char variables[] = "{\"messages\":[{\"role\":\"user\",\"content\":\"a b\"}]}";
  ait_chat_template *t = NULL;
  char *text = NULL;
  size_t size = 0;
  ait_status status = ait_chat_template_parse(a, ctx, strlen(ctx), &t);
  if (!status) status = ait_chat_template_render(t, variables, sizeof variables - 1, NULL, a, &text, &size);
  if (text) ait_text_free(a, text, size);
  ait_chat_template_destroy(t);
  return status;
}

static void every_allocation(void **state) {
  AIT_UNUSED(state);
  test_every_allocation_fails(
      use,
      "{% set x %}{{ messages[0].content.split()|join('-')|upper }}{% endset %}{{ x|tojson }}{{ messages|map(attribute='role')|list }}");
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(renders), cmocka_unit_test(errors), cmocka_unit_test(limits),
                                     cmocka_unit_test(from_a_folder), cmocka_unit_test(every_allocation)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
