/* Any bytes as a chat template, rendered with a conversation. */
#include <ait/text.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const char variables[] =
      "{\"messages\":[{\"role\":\"system\",\"content\":\"S\"},{\"role\":\"user\",\"content\":\"a \\u00e9\\n b\",\"n\":[1,2.5,null]}],"
      "\"tools\":[{\"function\":{\"name\":\"f\",\"parameters\":{\"x\":{\"type\":\"string\"}}}}],\"bos_token\":\"<s>\",\"n\":3}";
  const ait_chat_options options = {.max_steps = 20000, .max_memory = 4 << 20, .max_output = 1 << 16};
  ait_chat_template *t = NULL;
  char *text = NULL;
  size_t text_size = 0;
  ait_status status = ait_chat_template_parse(ait_allocator_default(), (const char *)data, size, &t);
  if (!status) status = ait_chat_template_render(t, variables, sizeof variables - 1, &options, ait_allocator_default(), &text, &text_size);
  if (text) ait_text_free(ait_allocator_default(), text, text_size);
  ait_status_free(status);
  ait_chat_template_destroy(t);
  return 0;
}
