/* Status, allocator and versions: what every other public header needs.
 *
 * Thread rule: everything here is safe to call from any thread; a status object belongs to one owner at a time. */
#ifndef AIT_BASE_H
#define AIT_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define AIT_VERSION_MAJOR 0
#define AIT_VERSION_MINOR 1
#define AIT_VERSION_PATCH 0

#if defined(__GNUC__) || defined(__clang__)
#define AIT_API __attribute__((visibility("default")))
#define AIT_MUST_USE __attribute__((warn_unused_result))
#define AIT_PRINTF(fmt, first) __attribute__((format(printf, fmt, first)))
#else
#define AIT_API
#define AIT_MUST_USE
#define AIT_PRINTF(fmt, first)
#endif

/* "0.1.0" */
AIT_API const char *ait_version(void);

/* What went wrong, as a kind. The list is include/ait/status.inc. */
typedef enum ait_code {
#define AIT_STATUS(name, number, text, exit_code) AIT_CODE_##name = number,
#include <ait/status.inc>
#undef AIT_STATUS
} ait_code;

/* NULL is success; anything else is an error object that its receiver owns: pass it on, or release it with ait_status_free. */
typedef struct ait_error *ait_status;
#define AIT_OK ((ait_status)0)

/* AIT_CODE_OK for NULL. */
AIT_API ait_code ait_status_code(ait_status status);
/* "not-found", as in status.inc. */
AIT_API const char *ait_code_name(ait_code code);
/* Process exit code that CONTRACT promises for this kind of error. */
AIT_API int ait_code_exit(ait_code code);
/* One sentence, contexts outermost first: "cannot import 'm.pt2': node 41 'aten.foo' has no rule". Valid until freed. "" for NULL. */
AIT_API const char *ait_status_message(ait_status status);
/* What to do about it, or NULL. */
AIT_API const char *ait_status_hint(ait_status status);
AIT_API void ait_status_free(ait_status status); /* takes NULL */
/* A new error (for backends, custom operators, programs); a static out-of-memory object when there is no memory for it. Never NULL; code
 * must not be OK. */
AIT_API AIT_MUST_USE ait_status ait_error(ait_code code, const char *format, ...) AIT_PRINTF(2, 3);
/* Each returns its argument, changed: a hint, and "context: " before the message. NULL stays NULL. */
AIT_API AIT_MUST_USE ait_status ait_error_hint(ait_status status, const char *format, ...) AIT_PRINTF(2, 3);
AIT_API AIT_MUST_USE ait_status ait_error_context(ait_status status, const char *format, ...) AIT_PRINTF(2, 3);

/* Memory comes from here. Must be thread-safe. align is a power of two; alloc returns NULL when out of memory;
 * free gets the size that was asked for; p is never NULL. */
typedef struct ait_allocator {
  void *ctx;
  void *(*alloc)(void *ctx, size_t size, size_t align);
  void (*free)(void *ctx, void *p, size_t size);
} ait_allocator;

/* The C library's heap. */
AIT_API ait_allocator ait_allocator_default(void);

#ifdef __cplusplus
}
#endif
#endif
