/* Error objects. They live on the C library's heap, not in a caller's allocator: an error must be reportable when that allocator failed. */
#include "base/base.h"

#include <stdio.h>
#include <stdlib.h>

struct ait_error {
  ait_code code;
  char *message;
  char *hint;
};

/* Stands in when there is no memory for a real one. Shared, never changed, never freed. */
static struct ait_error static_oom = {AIT_CODE_OUT_OF_MEMORY, (char *)"out of memory", NULL};

static const struct {
  ait_code code;
  const char *name;
  int exit_code;
} code_table[] = {
#define AIT_STATUS(name, number, text, exit_code) {AIT_CODE_##name, text, exit_code},
#include <ait/status.inc>
#undef AIT_STATUS
};

static char *format_text(const char *format, va_list args) AIT_PRINTF(1, 0);
static char *format_text(const char *format, va_list args) {
  char *text = NULL;
  return vasprintf(&text, format, args) < 0 ? NULL : text;
}

static ait_status error_new(ait_code code, char *message) {
  struct ait_error *error = message ? malloc(sizeof *error) : NULL;
  if (!error) {
    free(message);
    return &static_oom;
  }
  *error = (struct ait_error){code == AIT_CODE_OK ? AIT_CODE_INTERNAL : code, message, NULL};
  return error;
}

ait_status ait_error(ait_code code, const char *format, ...) {
  va_list args;
  va_start(args, format);
  char *message = format_text(format, args);
  va_end(args);
  return error_new(code, message);
}

/* A changeable error in place of the static one; the static one again when there is still no memory. */
static ait_status error_own(ait_status status) {
  return status == &static_oom ? error_new(static_oom.code, strdup(static_oom.message)) : status;
}

ait_status ait_error_hint(ait_status status, const char *format, ...) {
  if (!status) return AIT_OK;
  status = error_own(status);
  if (status == &static_oom) return status;
  va_list args;
  va_start(args, format);
  char *hint = format_text(format, args);
  va_end(args);
  if (hint) {
    free(status->hint);
    status->hint = hint;
  }
  return status;
}

ait_status ait_error_context(ait_status status, const char *format, ...) {
  if (!status) return AIT_OK;
  status = error_own(status);
  if (status == &static_oom) return status;
  va_list args;
  va_start(args, format);
  char *context = format_text(format, args);
  va_end(args);
  char *message = NULL;
  if (context && asprintf(&message, "%s: %s", context, status->message) >= 0) {
    free(status->message);
    status->message = message;
  }
  free(context);
  return status;
}

ait_status ait_status_join(ait_status first, ait_status second) {
  if (!first) return second;
  ait_status_free(second);
  return first;
}

ait_code ait_status_code(ait_status status) { return status ? status->code : AIT_CODE_OK; }

const char *ait_code_name(ait_code code) {
  for (size_t i = 0; i < AIT_COUNT(code_table); i++) {
    if (code_table[i].code == code) return code_table[i].name;
  }
  return "?";
}

int ait_code_exit(ait_code code) {
  for (size_t i = 0; i < AIT_COUNT(code_table); i++) {
    if (code_table[i].code == code) return code_table[i].exit_code;
  }
  return 3;
}

const char *ait_status_message(ait_status status) { return status ? status->message : ""; }
const char *ait_status_hint(ait_status status) { return status ? status->hint : NULL; }

void ait_status_free(ait_status status) {
  if (!status || status == &static_oom) return;
  free(status->message);
  free(status->hint);
  free(status);
}

#define VERSION_TEXT_(major, minor, patch) #major "." #minor "." #patch
#define VERSION_TEXT(major, minor, patch) VERSION_TEXT_(major, minor, patch)
const char *ait_version(void) { return VERSION_TEXT(AIT_VERSION_MAJOR, AIT_VERSION_MINOR, AIT_VERSION_PATCH); }
