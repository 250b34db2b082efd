/* Text to ids, and one thread's memory for it. */
#include "llm/text/tokenizer.h"

/* ---- memory ------------------------------------------------------------------------------------------------------------------------*/
ait_status ait_scratch_create(ait_allocator a, ait_scratch **out) {
  ait_scratch *s = ait_alloc_zero(a, sizeof *s, _Alignof(ait_scratch));
  if (!s) return AIT_OOM();
  s->allocator = a;
  s->cache = ait_alloc_zero(a, AIT_CACHE_SLOTS * sizeof *s->cache, _Alignof(ait_cached_word));
  ait_status status = s->cache ? ait_regex_matcher_create(a, &s->matcher) : AIT_OOM();
  if (status) ait_scratch_destroy(s);
  else *out = s;
  return status;
}

static void buffer_deinit(ait_allocator a, ait_buffer *b) {
  ait_free(a, b->data, b->capacity);
  ait_free(a, b->origin, b->origin_capacity * sizeof *b->origin);
}

void ait_scratch_destroy(ait_scratch *s) {
  if (!s) return;
  ait_allocator a = s->allocator;
  buffer_deinit(a, &s->text);
  buffer_deinit(a, &s->other);
  ait_free(a, s->pieces.items, s->pieces.capacity * sizeof *s->pieces.items);
  ait_free(a, s->next.items, s->next.capacity * sizeof *s->next.items);
  ait_free(a, s->matches, s->match_capacity * sizeof *s->matches);
  ait_regex_matcher_destroy(s->matcher);
  ait_free(a, s->codes, s->code_capacity * sizeof *s->codes);
  ait_free(a, s->symbols, s->symbol_capacity * sizeof *s->symbols);
  ait_free(a, s->heap, s->heap_capacity * sizeof *s->heap);
  ait_free(a, s->best, s->best_capacity * sizeof *s->best);
  ait_free(a, s->word, s->word_capacity);
  ait_free(a, s->cache, AIT_CACHE_SLOTS * sizeof *s->cache);
  ait_free(a, s->cache_text, s->cache_text_capacity);
  ait_free(a, s->cache_ids, s->cache_id_capacity * sizeof *s->cache_ids);
  ait_free(a, s, sizeof *s);
}

ait_status ait_scratch_take(const ait_tokenizer *t, ait_scratch **out) {
  ait_scratch *spare = atomic_exchange(&((ait_tokenizer *)t)->spare, NULL);
  if (spare) return *out = spare, AIT_OK;
  return ait_scratch_create(t->allocator, out);
}

/* Long texts leave large buffers: those are not kept. */
void ait_scratch_give(const ait_tokenizer *t, ait_scratch *s) {
  if (s->text.capacity > 4 << 20 || s->other.capacity > 4 << 20 || s->symbol_capacity > 1 << 18 || s->best_capacity > 1 << 18)
    ait_scratch_destroy(s);
  else ait_scratch_destroy(atomic_exchange(&((ait_tokenizer *)t)->spare, s));
}

ait_status ait_pieces_add(ait_scratch *s, ait_pieces *pieces, ait_piece piece) {
  AIT_TRY(ait_grow(s->allocator, (void **)&pieces->items, &pieces->capacity, pieces->count + 1, sizeof *pieces->items));
  pieces->items[pieces->count++] = piece;
  return AIT_OK;
}

ait_status ait_token_list_append(ait_token_list *list, const int32_t *ids, size_t count) {
  size_t needed;
  if (ait_add_overflows(list->count, count, &needed)) return AIT_OOM();
  AIT_TRY(ait_grow(list->allocator, (void **)&list->ids, &list->capacity, needed, sizeof *list->ids));
  if (count) memcpy(list->ids + list->count, ids, count * sizeof *ids);
  list->count = needed;
  return AIT_OK;
}

void ait_token_list_deinit(ait_token_list *list) {
  ait_free(list->allocator, list->ids, list->capacity * sizeof *list->ids);
  *list = (ait_token_list){.allocator = list->allocator};
}

/* ---- the text as UTF-8
 * -----------------------------------------------------------------------------------------------------------------*/
static ait_status set_text(ait_scratch *s, const char *text, size_t size, bool track) {
  s->text.length = 0;
  if (size >= (size_t)1 << 30) return ait_error(AIT_CODE_LIMIT, "text to encode has %zu bytes: 1 GiB and more is not taken", size);
  if (ait_utf8_valid(text, size)) {
    AIT_TRY(ait_buffer_reserve(s, &s->text, size, track));
    if (size) memcpy(s->text.data, text, size);
    s->text.length = size;
  } else {
    AIT_TRY(ait_buffer_reserve(s, &s->text, 3 * size, track)); /* at most one U+FFFD for each byte */
    for (size_t i = 0; i < size;) {
      uint32_t code;
      int n = ait_utf8_step(text + i, size - i, &code);
      const char *from = n > 0 ? text + i : AIT_REPLACEMENT;
      size_t length = n > 0 ? (size_t)n : 3;
      memcpy(s->text.data + s->text.length, from, length);
      s->text.length += length;
      i += n == 0 ? size - i : (size_t)(n > 0 ? n : -n);
    }
  }
  for (size_t i = 0; track && i < s->text.length; ++i) s->text.origin[i] = (uint32_t)i;
  return AIT_OK;
}

/* ---- added tokens ------------------------------------------------------------------------------------------------------------------*/
/* The longest key at the place; its value, or -1. */
static int32_t trie_longest(const ait_trie *trie, const char *text, size_t size, size_t *length) {
  int32_t best = -1;
  const ait_trie_node *node = trie->nodes;
  for (size_t i = 0; i < size; ++i) {
    node = ait_trie_child(trie, node, (uint8_t)text[i]);
    if (!node) break;
    if (node->value >= 0) best = node->value, *length = i + 1;
  }
  return best;
}

static ait_status is_word_at(const ait_tokenizer *t, ait_scratch *s, const char *text, size_t size, bool *out) {
  size_t begin, end;
  uint32_t code;
  size_t n = size ? ait_utf8_read(text, &code) : 0;
  return ait_regex_find(t->word_start, s->matcher, text, n, 0, out, &begin, &end);
}

static ait_status single_word(const ait_tokenizer *t, ait_scratch *s, const char *text, size_t size, size_t begin, size_t end, bool *out) {
  bool left = false, right = false;
  size_t last = begin;
  if (begin) {
    do --last;
    while (last && ((unsigned char)text[last] & 0xC0) == 0x80);
    AIT_TRY(is_word_at(t, s, text + last, begin - last, &left));
  }
  if (end < size) AIT_TRY(is_word_at(t, s, text + end, size - end, &right));
  *out = !left && !right;
  return AIT_OK;
}

static size_t space_before(const char *text, size_t end) {
  uint32_t code;
  while (end) {
    size_t last = end - 1;
    while (last && ((unsigned char)text[last] & 0xC0) == 0x80) --last;
    ait_utf8_read(text + last, &code);
    if (!ait_char_is_space(code)) break;
    end = last;
  }
  return end;
}

static size_t space_after(const char *text, size_t size, size_t at) {
  uint32_t code;
  while (at < size) {
    uint32_t n = ait_utf8_read(text + at, &code);
    if (!ait_char_is_space(code)) break;
    at += n;
  }
  return at;
}

static ait_status cut(ait_scratch *s, const ait_piece *piece, size_t begin, size_t end, int32_t id) {
  if (begin >= end) return AIT_OK;
  uint32_t at = piece->begin + (uint32_t)begin;
  return ait_pieces_add(s, &s->next, (ait_piece){at, (uint32_t)(end - begin), s->text.origin ? s->text.origin[at] : 0, id});
}

static ait_status cut_added(const ait_tokenizer *t, ait_scratch *s, const ait_trie *trie, const ait_piece *piece, int flags) {
  const char *text = s->text.data + piece->begin;
  size_t size = piece->size, done = 0;
  const ait_trie_node *root = trie->nodes;
  for (size_t at = 0, length = 0; root && at < size;) {
    int32_t index = ait_trie_child(trie, root, (uint8_t)text[at]) ? trie_longest(trie, text + at, size - at, &length) : -1;
    if (index < 0) {
      ++at;
      continue;
    }
    const ait_added_token *token = &t->added[index];
    size_t begin = at, end = at + length;
    at = end;
    if ((flags & AIT_ENCODE_AS_TEXT) && ait_vocab_find(&t->specials, token->content.data, token->content.size) >= 0) continue;
    if (token->single_word) {
      bool single;
      AIT_TRY(single_word(t, s, text, size, begin, end, &single));
      if (!single) continue;
    }
    if (token->lstrip) {
      begin = space_before(text, begin);
      if (begin < done) begin = done;
    }
    if (token->rstrip) end = space_after(text, size, end);
    if (done < begin) AIT_TRY(cut(s, piece, done, begin, -1));
    AIT_TRY(cut(s, piece, begin < end ? begin : end - 1, end, token->id)); /* stripped space may reach behind the next match */
    done = end;
  }
  return cut(s, piece, done, size, -1);
}

static void swap_pieces(ait_scratch *s) {
  ait_pieces swap = s->pieces;
  s->pieces = s->next;
  s->next = swap;
}

static ait_status find_added(const ait_tokenizer *t, ait_scratch *s, const ait_trie *trie, int flags) {
  s->next.count = 0;
  for (size_t i = 0; i < s->pieces.count; ++i) {
    ait_piece piece = s->pieces.items[i];
    if (piece.id >= 0) AIT_TRY(ait_pieces_add(s, &s->next, piece));
    else AIT_TRY(cut_added(t, s, trie, &piece, flags));
  }
  swap_pieces(s);
  return AIT_OK;
}

static ait_status normalize_pieces(const ait_tokenizer *t, ait_scratch *s) {
  if (!t->normalizer.count) return AIT_OK;
  s->other.length = 0;
  for (size_t i = 0; i < s->pieces.count; ++i) {
    ait_piece *piece = &s->pieces.items[i];
    if (piece->id >= 0) continue;
    uint32_t begin = (uint32_t)s->other.length;
    AIT_TRY(ait_normalize_piece(t, s, piece, s->text.data, t->track_origin ? s->text.origin : NULL, &s->other));
    piece->begin = begin;
    piece->size = (uint32_t)s->other.length - begin;
  }
  ait_buffer swap = s->text;
  s->text = s->other;
  s->other = swap;
  return AIT_OK;
}

ait_status ait_normalize_whole(ait_tokenizer *t, const char *text, size_t size, ait_span *out) {
  ait_scratch *s = NULL;
  AIT_TRY(ait_scratch_take(t, &s));
  ait_piece piece = {0, (uint32_t)size, 0, -1};
  s->other.length = 0;
  ait_status status = ait_normalize_piece(t, s, &piece, text, NULL, &s->other);
  if (!status) *out = ait_span_copy(t, s->other.data ? s->other.data : "", s->other.length);
  if (!status && !out->data) status = AIT_OOM();
  ait_scratch_give(t, s);
  return status;
}

/* ---- one text ------------------------------------------------------------------------------------------------------------------------*/
static ait_status word_ids(const ait_token_model *m, ait_scratch *s, const char *word, size_t size, ait_token_list *out) {
  switch (m->kind) {
    case AIT_BPE: return ait_bpe_word(m, s, word, size, out);
    case AIT_UNIGRAM: return ait_unigram_word(m, s, word, size, out);
    case AIT_WORDPIECE: return ait_wordpiece_word(m, s, word, size, out);
    default: return ait_wordlevel_word(m, s, word, size, out);
  }
}

static ait_status encode_text(const ait_tokenizer *t, ait_scratch *s, const char *text, size_t size, int flags, ait_token_list *out) {
  AIT_TRY(set_text(s, text, size, t->track_origin));
  s->pieces.count = 0;
  if (s->text.length) AIT_TRY(ait_pieces_add(s, &s->pieces, (ait_piece){0, (uint32_t)s->text.length, 0, -1}));
  AIT_TRY(find_added(t, s, &t->added_raw, flags));
  AIT_TRY(normalize_pieces(t, s));
  AIT_TRY(find_added(t, s, &t->added_normalized, flags));
  AIT_TRY(ait_pretokenize(t, s));
  for (size_t i = 0; i < s->pieces.count; ++i) {
    ait_piece p = s->pieces.items[i];
    if (p.id >= 0) AIT_TRY(ait_token_list_append(out, &p.id, 1));
    else if (p.size) AIT_TRY(word_ids(&t->model, s, s->text.data + p.begin, p.size, out));
  }
  return AIT_OK;
}

/* ---- post-processors
 * -------------------------------------------------------------------------------------------------------------------*/
/* The text's ids, cut into segments: a post-processor takes segments and gives segments. Types, where they are wanted, go along. */
typedef struct segment {
  size_t begin, count;
} segment;
enum { MAX_SEGMENTS = 64 };
typedef struct segments {
  segment items[MAX_SEGMENTS];
  size_t count;
} segments;

typedef struct joined {
  ait_token_list ids, types;
  bool typed;
} joined;

static ait_status append_types(ait_token_list *types, int32_t type, size_t count) {
  AIT_TRY(ait_grow(types->allocator, (void **)&types->ids, &types->capacity, types->count + count, sizeof *types->ids));
  for (size_t i = 0; i < count; ++i) types->ids[types->count++] = type;
  return AIT_OK;
}

static ait_status add_ids(joined *j, const int32_t *ids, size_t count, int32_t type) {
  if (count) AIT_TRY(ait_token_list_append(&j->ids, ids, count));
  return j->typed ? append_types(&j->types, type, count) : AIT_OK;
}

/* type -1: the types that the segment has. */
static ait_status add_part(joined *j, segment part, int32_t type) {
  ait_token_list *lists[2] = {&j->ids, &j->types};
  for (int k = 0; k < 1 + j->typed; ++k) {
    ait_token_list *list = lists[k];
    if (k == 1 && type >= 0) return append_types(list, type, part.count);
    AIT_TRY(ait_grow(list->allocator, (void **)&list->ids, &list->capacity, list->count + part.count, sizeof *list->ids));
    if (part.count) AIT_TRY(ait_token_list_append(list, list->ids + part.begin, part.count));
  }
  return AIT_OK;
}

static ait_status begin_segment(const joined *j, segments *out) {
  if (out->count == MAX_SEGMENTS) return ait_error(AIT_CODE_UNSUPPORTED, "post_processor makes more than %d parts", MAX_SEGMENTS);
  out->items[out->count++] = (segment){j->ids.count, 0};
  return AIT_OK;
}

static void end_segment(const joined *j, segments *out) {
  segment *last = &out->items[out->count - 1];
  last->count = j->ids.count - last->begin;
}

static ait_status post_template(const ait_post *post, bool special, joined *j, const segments *in, segments *out) {
  if (in->count > 2) return ait_error(AIT_CODE_UNSUPPORTED, "post_processor: a template behind another one gets %zu parts", in->count);
  size_t which = in->count == 2;
  for (size_t i = 0; i < post->counts[which]; ++i) {
    const ait_post_piece *piece = &post->pieces[which][i];
    if (piece->sequence < 0 && !special) continue;
    if (piece->sequence >= (int)in->count)
      return ait_error(AIT_CODE_INVALID_MODEL, "post_processor: the template for one text asks for a second one");
    AIT_TRY(begin_segment(j, out));
    if (piece->sequence < 0) AIT_TRY(add_ids(j, piece->ids, piece->count, piece->type));
    else AIT_TRY(add_part(j, in->items[piece->sequence], piece->type));
    end_segment(j, out);
  }
  return AIT_OK;
}

/* <cls> A <sep> and then B <sep>; RoBERTa has <sep> in front of B, too, and one type for all. */
static ait_status post_bert(const ait_post *post, bool special, joined *j, const segments *in, segments *out) {
  const int32_t *cls = post->pieces[0][0].ids, *sep = post->pieces[0][1].ids;
  bool roberta = post->kind == AIT_POST_ROBERTA;
  for (size_t i = 0; i < in->count; ++i) {
    int32_t type = roberta || i == 0 ? 0 : 1;
    AIT_TRY(begin_segment(j, out));
    if (special && (i == 0 || roberta)) AIT_TRY(add_ids(j, i == 0 ? cls : sep, 1, type));
    AIT_TRY(add_part(j, in->items[i], special || roberta ? type : -1));
    if (special) AIT_TRY(add_ids(j, sep, 1, type));
    end_segment(j, out);
  }
  return AIT_OK;
}

static ait_status post_process(const ait_tokenizer *t, int flags, joined *j, segments *in) {
  for (size_t i = 0; i < t->post_count; ++i) {
    segments next = {.count = 0};
    const ait_post *post = &t->posts[i];
    bool special = flags & AIT_ENCODE_SPECIAL;
    if (post->kind == AIT_POST_TEMPLATE) AIT_TRY(post_template(post, special, j, in, &next));
    else AIT_TRY(post_bert(post, special, j, in, &next));
    *in = next;
  }
  return AIT_OK;
}

static ait_status hand_out(const joined *j, const segments *in, ait_token_list *ids, ait_token_list *types) {
  for (size_t i = 0; i < in->count; ++i) {
    segment s = in->items[i];
    if (!s.count) continue;
    AIT_TRY(ait_token_list_append(ids, j->ids.ids + s.begin, s.count));
    if (types) AIT_TRY(ait_token_list_append(types, j->types.ids + s.begin, s.count));
  }
  return AIT_OK;
}

/* ---- truncation ----------------------------------------------------------------------------------------------------------------------*/
/* Tokens that the post-processors add to one text, or to a pair. */
static size_t added_tokens(const ait_tokenizer *t, bool pair) {
  size_t sum = 0;
  for (size_t i = 0; i < t->post_count; ++i) {
    const ait_post *post = &t->posts[i];
    if (post->kind == AIT_POST_BERT) sum += pair ? 3 : 2;
    else if (post->kind == AIT_POST_ROBERTA) sum += pair ? 4 : 2;
    else
      for (size_t k = 0; k < post->counts[pair]; ++k)
        if (post->pieces[pair][k].sequence < 0) sum += post->pieces[pair][k].count;
  }
  return sum;
}

static void keep(segment *s, size_t count, bool left) {
  if (count >= s->count) return;
  if (left) s->begin += s->count - count;
  s->count = count;
}

/* The longer of two texts first, as the library does it. */
static ait_status truncate(const ait_tokenizer *t, const ait_encode_options *o, segments *in) {
  size_t added = o->flags & AIT_ENCODE_SPECIAL ? added_tokens(t, in->count == 2) : 0, room = (size_t)o->max_length, total = 0;
  if (room < added)
    return ait_error(AIT_CODE_INVALID_ARGUMENT, "%lld tokens at most: the tokenizer itself adds %zu", (long long)o->max_length, added);
  room -= added;
  for (size_t i = 0; i < in->count; ++i) total += in->items[i].count;
  if (total <= room) return AIT_OK;
  if (in->count == 1) return keep(&in->items[0], room, o->truncate_left), AIT_OK;
  bool swapped = in->items[0].count > in->items[1].count;
  size_t less = in->items[swapped].count, more = less > room || less > room - less ? less : room - less;
  if (less + more > room) less = room / 2, more = less + room % 2;
  keep(&in->items[swapped], less, o->truncate_left);
  keep(&in->items[!swapped], more, o->truncate_left);
  return AIT_OK;
}

/* ---- the whole way -------------------------------------------------------------------------------------------------------------------*/
static ait_status encode_joined(const ait_tokenizer *t, ait_scratch *s, const char *const *texts, const size_t *sizes, size_t count,
                                const ait_encode_options *o, joined *j, segments *in) {
  in->count = count;
  for (size_t i = 0; i < count; ++i) {
    size_t begin = j->ids.count;
    AIT_TRY(encode_text(t, s, texts[i], sizes[i], o->flags, &j->ids));
    if (j->typed) AIT_TRY(append_types(&j->types, (int32_t)i, j->ids.count - begin));
    in->items[i] = (segment){begin, j->ids.count - begin};
  }
  if (o->max_length > 0) AIT_TRY(truncate(t, o, in));
  return post_process(t, o->flags, j, in);
}

static ait_status encode_texts(const ait_tokenizer *t, const char *const *texts, const size_t *sizes, size_t count,
                               const ait_encode_options *o, ait_token_list *out, ait_token_list *types) {
  ait_scratch *s = NULL;
  size_t before = out->count, types_before = types ? types->count : 0;
  joined j = {.ids.allocator = t->allocator, .types.allocator = t->allocator, .typed = types != NULL};
  segments in = {.count = 0};
  bool direct = !t->post_count && !types && !o->max_length; /* nothing to join */
  ait_status status = ait_scratch_take(t, &s);
  for (size_t i = 0; direct && i < count && !status; ++i) status = encode_text(t, s, texts[i], sizes[i], o->flags, out);
  if (!direct && !status) status = encode_joined(t, s, texts, sizes, count, o, &j, &in);
  if (!direct && !status) status = hand_out(&j, &in, out, types);
  if (status) out->count = before;
  if (status && types) types->count = types_before;
  ait_token_list_deinit(&j.ids);
  ait_token_list_deinit(&j.types);
  if (s) ait_scratch_give(t, s);
  return status;
}

ait_status ait_tokenizer_encode(const ait_tokenizer *t, const char *text, size_t size, int flags, ait_token_list *out) {
  const ait_encode_options o = {.struct_size = sizeof o, .flags = flags};
  return encode_texts(t, &text, &size, 1, &o, out, NULL);
}

ait_status ait_tokenizer_encode_pair(const ait_tokenizer *t, const char *first, size_t first_size, const char *second, size_t second_size,
                                     int flags, ait_token_list *out) {
  const ait_encode_options o = {.struct_size = sizeof o, .flags = flags};
  return encode_texts(t, (const char *const[]){first, second}, (const size_t[]){first_size, second_size}, 2, &o, out, NULL);
}

void ait_encode_options_init(ait_encode_options *options) {
  *options = (ait_encode_options){.struct_size = sizeof *options, .flags = AIT_ENCODE_SPECIAL};
}

ait_status ait_tokenizer_encode_with(const ait_tokenizer *t, const char *first, size_t first_size, const char *second, size_t second_size,
                                     const ait_encode_options *options, ait_token_list *ids, ait_token_list *types) {
  ait_encode_options o;
  ait_encode_options_init(&o);
  if (options) memcpy(&o, options, options->struct_size < sizeof o ? options->struct_size : sizeof o);
  if (o.max_length < 0) return ait_error(AIT_CODE_INVALID_ARGUMENT, "%lld tokens at most", (long long)o.max_length);
  return encode_texts(t, (const char *const[]){first, second}, (const size_t[]){first_size, second_size}, second ? 2 : 1, &o, ids, types);
}
