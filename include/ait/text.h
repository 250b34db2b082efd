/* Text for language models: tokenizers (tokenizer.json) and chat templates (the Jinja that models come with).
 *
 * Thread rule: a tokenizer or chat template never changes after it was made: threads share it. A stream, a stop matcher and a token list
 * belong to one thread at a time. */
#ifndef AIT_TEXT_H
#define AIT_TEXT_H

#include <ait/base.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- token lists -----------------------------------------------------------------------------------------------------------------*/
/* Grows as it is appended to. Start with {.allocator = …}; ends with ait_token_list_deinit. */
typedef struct ait_token_list {
  ait_allocator allocator;
  int32_t *ids;
  size_t count, capacity;
} ait_token_list;
AIT_API AIT_MUST_USE ait_status ait_token_list_append(ait_token_list *list, const int32_t *ids, size_t count);
AIT_API void ait_token_list_deinit(ait_token_list *list);

/* ---- tokenizer -------------------------------------------------------------------------------------------------------------------*/
typedef struct ait_tokenizer ait_tokenizer;

/* From the text of a tokenizer.json. It gives the ids that the library `tokenizers` gives; "truncation" and "padding" of the file are left
 * to the caller, as in transformers. Errors: invalid-model, unsupported, limit, naming the field. */
AIT_API AIT_MUST_USE ait_status ait_tokenizer_parse(ait_allocator allocator, const char *json, size_t size, ait_tokenizer **out);
/* From a file, or from the folder that holds tokenizer.json. */
AIT_API AIT_MUST_USE ait_status ait_tokenizer_load(ait_allocator allocator, const char *path, ait_tokenizer **out);
AIT_API void ait_tokenizer_destroy(ait_tokenizer *tokenizer); /* takes NULL; no stream may use it any more */

/* Largest id + 1, added tokens included. */
AIT_API int32_t ait_tokenizer_vocab_size(const ait_tokenizer *tokenizer);
/* The id of a token's text as the file spells it (added tokens first); -1: none. */
AIT_API int32_t ait_tokenizer_id(const ait_tokenizer *tokenizer, const char *token, size_t size);
/* The token as the file spells it, valid as long as the tokenizer; NULL: no such id. */
AIT_API const char *ait_tokenizer_token(const ait_tokenizer *tokenizer, int32_t id, size_t *out_size);
AIT_API bool ait_tokenizer_is_special(const ait_tokenizer *tokenizer, int32_t id);
/* "truncation": {"max_length"} of the file; 0: none. */
AIT_API int64_t ait_tokenizer_max_length(const ait_tokenizer *tokenizer);

enum {
  AIT_ENCODE_SPECIAL = 1, /* add what the post-processor adds: begin, end, [CLS] … */
  AIT_ENCODE_AS_TEXT = 2, /* special tokens that are spelled out in the text are text: nobody can forge them */
};
/* Appends to the list. Bytes that are not UTF-8 count as U+FFFD, one for each maximal part. On an error the list is as it was.
 * Errors: limit (text of 1 GiB or more, a regular expression that takes too many steps), invalid-model (no unknown token where one is
 * needed). */
AIT_API AIT_MUST_USE ait_status ait_tokenizer_encode(const ait_tokenizer *tokenizer, const char *text, size_t size, int flags,
                                                     ait_token_list *out);
/* A pair of texts, as the post-processor joins them. */
AIT_API AIT_MUST_USE ait_status ait_tokenizer_encode_pair(const ait_tokenizer *tokenizer, const char *first, size_t first_size,
                                                          const char *second, size_t second_size, int flags, ait_token_list *out);

typedef struct ait_encode_options {
  uint32_t struct_size;
  int flags;          /* AIT_ENCODE_… (init: AIT_ENCODE_SPECIAL) */
  int64_t max_length; /* tokens at most, those that the post-processor adds included; 0: any number. Of a pair the longer text is cut */
  bool truncate_left; /* texts that are too long lose their beginning, not their end */
} ait_encode_options;
AIT_API void ait_encode_options_init(ait_encode_options *options);
/* One text, or a pair (second not NULL), for a model that takes several inputs: ids are appended to `ids`, and to `types` (or NULL) for
 * each of them which text it belongs to, as the post-processor says ("token_type_ids"). options may be NULL. On an error the lists are as
 * they were. Errors: those of ait_tokenizer_encode; invalid-argument where max_length has no room for what the post-processor adds. */
AIT_API AIT_MUST_USE ait_status ait_tokenizer_encode_with(const ait_tokenizer *tokenizer, const char *first, size_t first_size,
                                                          const char *second, size_t second_size, const ait_encode_options *options,
                                                          ait_token_list *ids, ait_token_list *types);

enum {
  AIT_DECODE_SKIP_SPECIAL = 1, /* leave special tokens out */
  AIT_DECODE_CLEAN_UP = 2,     /* no space before . ? ! , n't 'm 's 've 're ("clean_up_tokenization_spaces") */
};
/* Valid UTF-8, NUL-terminated; freed with ait_text_free(allocator, *out, *out_size). Ids that nobody knows are left out. */
AIT_API AIT_MUST_USE ait_status ait_tokenizer_decode(const ait_tokenizer *tokenizer, const int32_t *ids, size_t count, int flags,
                                                     ait_allocator allocator, char **out, size_t *out_size);
AIT_API void ait_text_free(ait_allocator allocator, char *text, size_t size); /* takes NULL */

/* Tokens in, text out as soon as it is certain: never part of a character, and all pieces together are the text that
 * ait_tokenizer_decode gives for all the ids. What later tokens can change is held back (half a character, a run of byte tokens). */
typedef struct ait_text_stream ait_text_stream;
AIT_API AIT_MUST_USE ait_status ait_text_stream_create(const ait_tokenizer *tokenizer, int flags, ait_allocator allocator,
                                                       ait_text_stream **out);
AIT_API void ait_text_stream_destroy(ait_text_stream *stream);
/* *out is valid until the next call; *out_size may be 0. */
AIT_API AIT_MUST_USE ait_status ait_text_stream_push(ait_text_stream *stream, int32_t id, const char **out, size_t *out_size);
/* The rest. Then the stream is as new. */
AIT_API AIT_MUST_USE ait_status ait_text_stream_finish(ait_text_stream *stream, const char **out, size_t *out_size);

/* ---- chat templates
 * --------------------------------------------------------------------------------------------------------------------*/
/* The Jinja of published chat templates, rendered as transformers does: for if set macro call filter with generation break continue,
 * filters, tests, methods of strings, lists and dictionaries. What a template may do is bounded; it sees only what it is given. */
typedef struct ait_chat_template ait_chat_template;
/* Errors name the line: invalid-model (syntax), unsupported (a tag that is not known here). */
AIT_API AIT_MUST_USE ait_status ait_chat_template_parse(ait_allocator allocator, const char *source, size_t size, ait_chat_template **out);
/* From the texts of a model's files: chat_template.jinja (NULL: none) and tokenizer_config.json (NULL: none); see below. */
AIT_API AIT_MUST_USE ait_status ait_chat_template_make(ait_allocator allocator, const char *source, size_t source_size, const char *config,
                                                       size_t config_size, const char *name, ait_chat_template **out);
/* From a model's folder: chat_template.jinja, else "chat_template" of tokenizer_config.json; bos_token, eos_token and the other special
 * tokens of tokenizer_config.json become variables. name: which one of several (NULL: "default"). Errors: not-found. */
AIT_API AIT_MUST_USE ait_status ait_chat_template_load(ait_allocator allocator, const char *folder, const char *name,
                                                       ait_chat_template **out);
AIT_API void ait_chat_template_destroy(ait_chat_template *chat); /* takes NULL */

typedef struct ait_chat_options {
  int64_t now;        /* for strftime_now: seconds since 1970, shifted to local time */
  uint64_t max_steps; /* 0: 20 million */
  size_t max_memory;  /* bytes, 0: 256 MiB */
  size_t max_output;  /* bytes, 0: 64 MiB */
} ait_chat_options;

/* variables: a JSON object, {"messages": [{"role": …, "content": …} …], "tools": […], "add_generation_prompt": true, …}. As in
 * transformers, tools and documents are none and add_generation_prompt is false where they are not given, members of messages that are null
 * are left out, and "reasoning_content" and "thinking" stand for each other. *out: UTF-8, NUL-terminated; free with ait_text_free. options
 * may be NULL. Errors: invalid-argument (the template's own raise_exception; variables that are no such object), invalid-model,
 * unsupported, limit; with the line. */
AIT_API AIT_MUST_USE ait_status ait_chat_template_render(const ait_chat_template *chat, const char *variables, size_t size,
                                                         const ait_chat_options *options, ait_allocator allocator, char **out,
                                                         size_t *out_size);

#ifdef __cplusplus
}
#endif
#endif
