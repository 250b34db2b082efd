/* Inside of a tokenizer: the parts that tokenizer.json names, and one thread's memory for running them.
 *
 * Text goes through: added tokens as spelled → normalizer → added tokens that match normalised text → pre-tokenizer (pieces) → model
 * (ids) → post-processor. Each part keeps, for each byte, where in the input it came from: Metaspace "first" asks for it. */
#ifndef AIT_SRC_LLM_TEXT_TOKENIZER_H
#define AIT_SRC_LLM_TEXT_TOKENIZER_H

#include "base/json.h"
#include "llm/text/regex.h"
#include "llm/text/unicode.h"
#include "llm/text/vocab.h"
#include <ait/text.h>
#include <stdatomic.h>

typedef struct ait_span {
  const char *data;
  uint32_t size;
} ait_span;

/* ---- parts -----------------------------------------------------------------------------------------------------------------------*/
typedef enum ait_norm_kind {
  AIT_NORM_FORM, /* NFC … */
  AIT_NORM_LOWERCASE,
  AIT_NORM_STRIP,
  AIT_NORM_STRIP_ACCENTS,
  AIT_NORM_REPLACE,
  AIT_NORM_PREPEND,
  AIT_NORM_BERT_CLEAN,
  AIT_NORM_BERT_CJK,
  AIT_NORM_BERT_ACCENTS,
  AIT_NORM_PRECOMPILED,
  AIT_NORM_NMT,
  AIT_NORM_BYTE_LEVEL,
} ait_norm_kind;

typedef enum ait_pre_kind {
  AIT_PRE_SPLIT, /* a pattern: regex, or literal where there is none */
  AIT_PRE_SPACE, /* characters of a class */
  AIT_PRE_PUNCTUATION,
  AIT_PRE_NUMERIC,
  AIT_PRE_BYTE_LEVEL,
  AIT_PRE_METASPACE,
  AIT_PRE_FIXED_LENGTH,
} ait_pre_kind;

typedef enum ait_behavior { AIT_REMOVED, AIT_ISOLATED, AIT_MERGED_PREVIOUS, AIT_MERGED_NEXT, AIT_CONTIGUOUS } ait_behavior;
typedef enum ait_prepend { AIT_PREPEND_FIRST, AIT_PREPEND_NEVER, AIT_PREPEND_ALWAYS } ait_prepend;

typedef enum ait_decode_kind {
  AIT_DEC_BPE,
  AIT_DEC_BYTE_LEVEL,
  AIT_DEC_WORDPIECE,
  AIT_DEC_METASPACE,
  AIT_DEC_CTC,
  AIT_DEC_REPLACE,
  AIT_DEC_FUSE,
  AIT_DEC_STRIP,
  AIT_DEC_BYTE_FALLBACK,
} ait_decode_kind;

typedef enum ait_post_kind { AIT_POST_TEMPLATE, AIT_POST_BERT, AIT_POST_ROBERTA } ait_post_kind;

/* A replaced or splitting pattern. */
typedef struct ait_pattern {
  ait_span literal; /* when regex is NULL; never empty */
  ait_regex *regex;
} ait_pattern;

/* spm_precompiled: a double array trie over bytes, and NUL-ended replacements. */
typedef struct ait_charsmap {
  const uint32_t *units;
  uint32_t unit_count, blob_size;
  const char *blob;
} ait_charsmap;

/* One step of a normalizer, pre-tokenizer or decoder; which members count depends on the kind. */
typedef struct ait_part {
  int kind;
  ait_pattern pattern;
  ait_span text, text2; /* replacement, what is prepended, suffix, prefix, pad token, delimiter */
  ait_charsmap charsmap;
  ait_normal_form form;
  ait_behavior behavior;
  ait_prepend prepend;
  uint32_t code;       /* a character */
  int64_t start, stop; /* lengths */
  bool invert, left, right, prefix_space, use_regex, split, cleanup;
} ait_part;

typedef struct ait_part_list {
  ait_part *items;
  size_t count, capacity;
} ait_part_list;

typedef struct ait_post_piece {
  int sequence; /* 0: A, 1: B, -1: the special ids */
  const int32_t *ids;
  size_t count;
  int32_t type; /* of its tokens */
} ait_post_piece;
typedef struct ait_post {
  ait_post_kind kind;
  ait_post_piece *pieces[2]; /* single, pair; of BERT: pieces[0] = {cls, sep} */
  size_t counts[2];
} ait_post;

/* ---- added tokens ----------------------------------------------------------------------------------------------------------------*/
typedef struct ait_added_token {
  ait_span content, normalized_form; /* the latter: what decoding starts from */
  int32_t id;
  bool single_word, lstrip, rstrip, normalized, special;
} ait_added_token;

/* A trie over bytes, children sorted. */
typedef struct ait_trie_node {
  uint32_t first; /* child */
  uint16_t count;
  uint8_t byte;
  int32_t value; /* -1: none */
} ait_trie_node;
typedef struct ait_trie {
  const ait_trie_node *nodes; /* NULL: empty */
  uint32_t count;
} ait_trie;
typedef struct ait_trie_key {
  const char *text;
  uint32_t size;
  int32_t value;
} ait_trie_key;
/* Sorts keys. Of equal keys the last one counts. */
ait_status ait_trie_build(ait_arena *arena, ait_trie_key *keys, size_t count, ait_trie *out) AIT_MUST_USE;
static inline const ait_trie_node *ait_trie_child(const ait_trie *t, const ait_trie_node *node, uint8_t byte) {
  uint32_t low = 0, high = node->count;
  const ait_trie_node *children = t->nodes + node->first;
  if (node->count == 256) return &children[byte];
  while (low < high) {
    uint32_t middle = (low + high) / 2;
    if (children[middle].byte < byte) low = middle + 1;
    else high = middle;
  }
  return low < node->count && children[low].byte == byte ? &children[low] : NULL;
}

/* ---- models ----------------------------------------------------------------------------------------------------------------------*/
typedef enum ait_model_kind { AIT_BPE, AIT_UNIGRAM, AIT_WORDPIECE, AIT_WORDLEVEL } ait_model_kind;

typedef struct ait_merge {
  uint64_t pair; /* left << 32 | right; UINT64_MAX: free */
  uint32_t rank;
  int32_t id;
} ait_merge;

typedef struct ait_token_model {
  ait_model_kind kind;
  ait_vocab vocab;
  ait_span unk_token, prefix, suffix;
  bool has_unk, has_prefix, has_suffix, fuse_unk, byte_fallback, ignore_merges;
  int32_t unk_id, byte_ids[256]; /* -1: none */
  ait_merge *merges;             /* open addressing */
  uint64_t merge_mask;
  int32_t *char_ids; /* of single characters below CHAR_IDS, where there is no prefix or suffix */
  ait_trie trie;     /* Unigram */
  double *scores, min_score;
  int64_t max_chars; /* WordPiece */
} ait_token_model;
enum { AIT_CHAR_IDS = 0x10000 };

struct ait_tokenizer {
  ait_allocator allocator;
  ait_arena arena;
  ait_part_list normalizer, pre_tokenizer, decoder;
  bool has_decoder, track_origin;
  ait_post *posts;
  size_t post_count;
  ait_token_model model;
  const char *json; /* the text, while it is read */
  ait_added_token *added;
  size_t added_count;
  ait_vocab added_vocab;                    /* content → id */
  const ait_added_token **added_by_id;      /* added_vocab.id_limit of them */
  ait_trie added_raw, added_normalized;     /* values: index into added */
  ait_vocab specials;                       /* contents of special tokens */
  ait_regex *word_start, *byte_level_regex; /* those that are needed */
  int64_t max_length;
  int32_t vocab_size;
  _Atomic(struct ait_scratch *) spare; /* kept between calls; taken and given back whole */
};

/* ---- one thread's memory -----------------------------------------------------------------------------------------------------------*/
typedef struct ait_buffer {
  char *data;
  uint32_t *origin; /* first byte in the input that this byte came from; NULL: not asked for */
  size_t length, capacity, origin_capacity;
} ait_buffer;

typedef struct ait_piece {
  uint32_t begin, size;
  uint32_t start; /* origin when it was cut off */
  int32_t id;     /* >= 0: an added token; -1: text */
} ait_piece;
typedef struct ait_pieces {
  ait_piece *items;
  size_t count, capacity;
} ait_pieces;

typedef struct ait_match {
  uint32_t begin, end;
  bool match;
} ait_match;

typedef struct ait_symbol {
  int32_t id, prev, next;
  uint32_t size;
} ait_symbol;
typedef struct ait_heap_item {
  uint32_t rank, pos;
  int32_t id;
} ait_heap_item;
typedef struct ait_best {
  double score;
  uint32_t from; /* UINT32_MAX: not reached */
  int32_t id;
} ait_best;
typedef struct ait_cached_word {
  uint64_t hash;
  uint32_t text, size; /* in cache_text */
  uint32_t ids, count; /* in cache_ids */
} ait_cached_word;
enum { AIT_CACHE_SLOTS = 1 << 14, AIT_CACHE_WORD = 256 };

typedef struct ait_scratch {
  ait_allocator allocator;
  ait_buffer text, other; /* text is current */
  ait_pieces pieces, next;
  ait_match *matches;
  size_t match_count, match_capacity;
  ait_regex_matcher *matcher;
  int32_t *codes;
  size_t code_capacity;
  ait_symbol *symbols;
  size_t symbol_capacity;
  ait_heap_item *heap;
  size_t heap_capacity, heap_count;
  ait_best *best;
  size_t best_capacity;
  char *word;
  size_t word_capacity;
  ait_cached_word *cache; /* AIT_CACHE_SLOTS of them; size 0: free */
  uint32_t cache_count;
  char *cache_text;
  size_t cache_text_length, cache_text_capacity;
  int32_t *cache_ids;
  size_t cache_id_count, cache_id_capacity;
} ait_scratch;

ait_status ait_scratch_create(ait_allocator a, ait_scratch **out) AIT_MUST_USE;
void ait_scratch_destroy(ait_scratch *scratch);
ait_status ait_buffer_reserve(ait_scratch *s, ait_buffer *b, size_t more, bool origin) AIT_MUST_USE;
ait_status ait_pieces_add(ait_scratch *s, ait_pieces *pieces, ait_piece piece) AIT_MUST_USE;

/* normalize.c: the piece's text through the normalizer, appended to s->other. */
ait_status ait_normalize_piece(const ait_tokenizer *t, ait_scratch *s, const ait_piece *piece, const char *data, const uint32_t *origin,
                               ait_buffer *out) AIT_MUST_USE;
ait_span ait_charsmap_find(const ait_charsmap *map, const char *text, size_t size, bool *found);
extern const uint16_t ait_byte_chars[256]; /* GPT-2's printable character for each byte */
uint32_t ait_byte_char_write(char out[2], uint8_t byte);

/* pretokenize.c: s->pieces over s->text, cut. */
ait_status ait_pretokenize(const ait_tokenizer *t, ait_scratch *s) AIT_MUST_USE;
/* s->matches: alternating parts of the text, covering it. Offsets relative to data. */
ait_status ait_pattern_matches(ait_scratch *s, const ait_pattern *pattern, const char *data, size_t size, bool invert) AIT_MUST_USE;

/* model_bpe.c, model_unigram.c, model_word.c: one word to ids, appended. */
ait_status ait_bpe_word(const ait_token_model *m, ait_scratch *s, const char *word, size_t size, ait_token_list *out) AIT_MUST_USE;
ait_status ait_unigram_word(const ait_token_model *m, ait_scratch *s, const char *word, size_t size, ait_token_list *out) AIT_MUST_USE;
ait_status ait_wordpiece_word(const ait_token_model *m, ait_scratch *s, const char *word, size_t size, ait_token_list *out) AIT_MUST_USE;
ait_status ait_wordlevel_word(const ait_token_model *m, ait_scratch *s, const char *word, size_t size, ait_token_list *out) AIT_MUST_USE;
ait_status ait_token_model_unknown(const ait_token_model *m) AIT_MUST_USE; /* the error when there is no unknown token */

/* load.c's helpers, one file per part. `where`: "normalizer" …, for messages. */
ait_status ait_load_normalizer(ait_tokenizer *t, const ait_json *json) AIT_MUST_USE;
ait_status ait_load_pre_tokenizer(ait_tokenizer *t, const ait_json *json) AIT_MUST_USE;
ait_status ait_load_decoder(ait_tokenizer *t, const ait_json *json) AIT_MUST_USE;
ait_status ait_load_post(ait_tokenizer *t, const ait_json *json) AIT_MUST_USE;
ait_status ait_load_model(ait_tokenizer *t, const ait_json *json) AIT_MUST_USE;
ait_status ait_load_added(ait_tokenizer *t, const ait_json *json) AIT_MUST_USE;
void ait_part_list_deinit(ait_tokenizer *t, ait_part_list *parts);

/* Members of a part, with errors that name them. Absent optional members leave *out as it is. */
ait_status ait_field_bool(const ait_json *json, const char *where, const char *name, bool *out) AIT_MUST_USE;
ait_status ait_field_string(ait_tokenizer *t, const ait_json *json, const char *where, const char *name, bool required,
                            ait_span *out) AIT_MUST_USE;
ait_status ait_field_int(const ait_json *json, const char *where, const char *name, bool required, int64_t low, int64_t *out) AIT_MUST_USE;
ait_status ait_field_char(const ait_json *json, const char *where, const char *name, uint32_t *out) AIT_MUST_USE;
ait_status ait_field_pattern(ait_tokenizer *t, const ait_json *json, const char *where, ait_pattern *out) AIT_MUST_USE;
ait_span ait_span_copy(ait_tokenizer *t, const char *text, size_t size); /* data NULL: out of memory */
/* Walks a part and the parts of its sequences, in order. */
typedef ait_status (*ait_part_reader)(ait_tokenizer *t, const ait_json *json, const char *type);
ait_status ait_walk_parts(ait_tokenizer *t, const ait_json *json, const char *where, const char *list, ait_part_reader read) AIT_MUST_USE;
ait_status ait_part_list_add(ait_tokenizer *t, ait_part_list *parts, ait_part part) AIT_MUST_USE;

/* encode.c */
ait_status ait_scratch_take(const ait_tokenizer *t, ait_scratch **out) AIT_MUST_USE;
void ait_scratch_give(const ait_tokenizer *t, ait_scratch *scratch);
/* The whole normalizer over a text (contents of added tokens); *out in the arena. */
ait_status ait_normalize_whole(ait_tokenizer *t, const char *text, size_t size, ait_span *out) AIT_MUST_USE;

#endif
