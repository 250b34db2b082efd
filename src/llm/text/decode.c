/* Ids to text: the decoder's parts as a chain of stages that tokens, or pieces of one fused token, run through. Decoding a whole list is
 * the same chain fed at once, so that a stream's pieces are the whole text. Every piece that a stage gets consists of whole characters. */
#include "llm/text/tokenizer.h"

typedef struct stage stage;
struct ait_text_stream {
  ait_allocator allocator;
  const ait_tokenizer *tokenizer;
  int flags;
  stage *stages;
  size_t stage_count;
  ait_text out;
  ait_scratch *scratch; /* for regular expressions; made when needed */
  ait_status status;    /* the first error within a stage */
  size_t tokens;
};

struct stage {
  ait_decode_kind kind;
  const ait_part *part;
  ait_span from, to; /* of replacing stages */
  bool fused;        /* the input is one token, in pieces */
  bool whole;        /* … and is collected before anything is done with it */
  ait_text held, made;
  size_t index;      /* tokens so far */
  int64_t cut, tail; /* Strip: characters cut in front, held at the end */
  bool has_held, past_front;
};

/* What `clean_up_tokenization_spaces` of transformers replaces, in this order. */
static const char *const clean_up[][2] = {{" .", "."},     {" ?", "?"},   {" !", "!"},   {" ,", ","},     {" ' ", "'"},
                                          {" n't", "n't"}, {" 'm", "'m"}, {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};
/* The decoder's own clean-up has one line more. */
static const char *const word_clean_up[][2] = {{" .", "."},   {" ?", "?"},     {" !", "!"},    {" ,", ","},
                                               {" ' ", "'"},  {" n't", "n't"}, {" 'm", "'m"},  {" do not", " don't"},
                                               {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};

static void feed(ait_text_stream *s, size_t i, const char *data, size_t size);

static void emit(ait_text_stream *s, size_t i, const char *data, size_t size) {
  if (i + 1 < s->stage_count) feed(s, i + 1, data, size);
  else ait_text_append(&s->out, data, size);
}

/* ---- literal replacement over pieces
 * -----------------------------------------------------------------------------------------------------*/
/* How much of the end may be the beginning of the literal. */
static size_t partial(const char *data, size_t size, ait_span literal) {
  size_t n = size < literal.size ? size : literal.size - 1;
  while (n && memcmp(data + size - n, literal.data, n) != 0) --n;
  return n;
}

static void replace_pieces(ait_text_stream *s, size_t i, const char *data, size_t size, bool end) {
  stage *g = &s->stages[i];
  ait_text_append(&g->held, data, size);
  const char *p = g->held.data ? g->held.data : "";
  size_t left = g->held.length;
  g->made.length = 0;
  while (left) {
    const char *hit = memmem(p, left, g->from.data, g->from.size);
    size_t before = hit ? (size_t)(hit - p) : left - (end ? 0 : partial(p, left, g->from));
    ait_text_append(&g->made, p, before);
    p += before, left -= before;
    if (!hit) break;
    ait_text_append(&g->made, g->to.data, g->to.size);
    p += g->from.size, left -= g->from.size;
  }
  if (left) memmove(g->held.data, p, left);
  g->held.length = left;
  if (g->made.length) emit(s, i, g->made.data, g->made.length);
}

/* text := text with every `from` replaced. */
static void replace_all(ait_text *text, ait_text *spare, const char *from, size_t from_size, const char *to, size_t to_size) {
  const char *p = text->data ? text->data : "", *hit;
  size_t left = text->length;
  if (!memmem(p, left, from, from_size)) return;
  spare->length = 0;
  while ((hit = memmem(p, left, from, from_size))) {
    ait_text_append(spare, p, (size_t)(hit - p));
    ait_text_append(spare, to, to_size);
    left -= (size_t)(hit - p) + from_size;
    p = hit + from_size;
  }
  ait_text_append(spare, p, left);
  ait_text swap = *text;
  *text = *spare;
  *spare = swap;
}

static void clean_word(stage *g) {
  for (size_t k = 0; k < AIT_COUNT(word_clean_up); ++k)
    replace_all(&g->made, &g->held, word_clean_up[k][0], strlen(word_clean_up[k][0]), word_clean_up[k][1], strlen(word_clean_up[k][1]));
  g->held.length = 0;
}

/* ---- one token -----------------------------------------------------------------------------------------------------------------------*/
static int byte_of_char(uint32_t c) {
  if (c >= 33 && c <= 255) return ait_byte_chars[c] == c ? (int)c : -1;
  if (c < 256 || c > 323) return -1;
  if (c < 289) return (int)c - 256;          /* 0 to 32 */
  return c < 323 ? (int)c - 289 + 127 : 173; /* 127 to 160, and the soft hyphen */
}

/* Appends the token's bytes to held. */
static void byte_level_token(stage *g, const char *data, size_t size) {
  size_t before = g->held.length;
  uint32_t code;
  for (size_t i = 0; i < size;) {
    i += ait_utf8_read(data + i, &code);
    int byte = byte_of_char(code);
    if (byte < 0) { /* no byte-level token: as it is spelled */
      g->held.length = before;
      ait_text_append(&g->held, data, size);
      return;
    }
    char b = (char)byte;
    ait_text_append(&g->held, &b, 1);
  }
}

/* Whole characters of held go on; half of one stays, unless nothing follows. */
static void emit_utf8(ait_text_stream *s, size_t i, bool end) {
  stage *g = &s->stages[i];
  size_t at = 0;
  g->made.length = 0;
  while (at < g->held.length) {
    uint32_t code;
    int n = ait_utf8_step(g->held.data + at, g->held.length - at, &code);
    if (n == 0 && !end) break;
    if (n > 0) ait_text_append(&g->made, g->held.data + at, (size_t)n);
    else ait_text_append(&g->made, AIT_REPLACEMENT, 3);
    at += n > 0 ? (size_t)n : n < 0 ? (size_t)-n : g->held.length - at;
  }
  if (at && at < g->held.length) memmove(g->held.data, g->held.data + at, g->held.length - at);
  g->held.length -= at;
  if (g->made.length) emit(s, i, g->made.data, g->made.length);
}

static int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* "<0x41>", and "<0x+1>" as Rust reads numbers; -1: another token. */
static int byte_token(const char *t, size_t size) {
  if (size != 6 || memcmp(t, "<0x", 3) != 0 || t[5] != '>') return -1;
  int high = t[3] == '+' ? 0 : hex_value(t[3]), low = hex_value(t[4]);
  return high < 0 || low < 0 ? -1 : high * 16 + low;
}

/* A run of byte tokens counts as a whole: text, or one U+FFFD for each. */
static void end_byte_run(ait_text_stream *s, size_t i) {
  stage *g = &s->stages[i];
  if (!g->held.length) return;
  if (ait_utf8_valid(g->held.data, g->held.length)) {
    emit(s, i, g->held.data, g->held.length);
  } else {
    for (size_t k = 0; k < g->held.length; ++k) emit(s, i, AIT_REPLACEMENT, 3);
  }
  g->held.length = 0;
}

static void metaspace_token(ait_text_stream *s, size_t i, const char *data, size_t size, bool first) {
  stage *g = &s->stages[i];
  ait_span mark = g->part->text;
  bool drop = first && g->part->prepend != AIT_PREPEND_NEVER;
  g->made.length = 0;
  for (size_t k = 0; k < size;) {
    if (size - k >= mark.size && memcmp(data + k, mark.data, mark.size) == 0) {
      if (!drop) ait_text_append(&g->made, " ", 1);
      k += mark.size;
    } else {
      ait_text_append(&g->made, data + k++, 1);
    }
  }
  emit(s, i, g->made.data ? g->made.data : "", g->made.length);
}

static void wordpiece_token(ait_text_stream *s, size_t i, const char *data, size_t size) {
  stage *g = &s->stages[i];
  ait_span prefix = g->part->text;
  bool glued = g->index && size >= prefix.size && memcmp(data, prefix.data, prefix.size) == 0;
  g->made.length = 0;
  if (g->index && !glued) ait_text_append(&g->made, " ", 1);
  ait_text_append(&g->made, data + (glued ? prefix.size : 0), size - (glued ? prefix.size : 0));
  if (g->part->cleanup) clean_word(g);
  emit(s, i, g->made.data ? g->made.data : "", g->made.length);
}

static void ctc_token(ait_text_stream *s, size_t i, const char *data, size_t size) {
  stage *g = &s->stages[i];
  /* held would hold the last token, but cleaning needs it: the last one is kept behind made */
  ait_text *last = &g->held;
  if (g->has_held && last->length == size && memcmp(last->data ? last->data : "", data, size) == 0) return;
  last->length = 0;
  ait_text_append(last, data, size);
  g->has_held = true;
  ait_text spare;
  ait_text_init(&spare, s->allocator);
  g->made.length = 0;
  ait_text_append(&g->made, data, size);
  replace_all(&g->made, &spare, g->part->text.data, g->part->text.size, "", 0);
  for (size_t k = 0; g->part->cleanup && k < AIT_COUNT(word_clean_up); ++k)
    replace_all(&g->made, &spare, word_clean_up[k][0], strlen(word_clean_up[k][0]), word_clean_up[k][1], strlen(word_clean_up[k][1]));
  if (g->part->cleanup) replace_all(&g->made, &spare, g->part->text2.data, g->part->text2.size, " ", 1);
  g->made.failed |= spare.failed;
  ait_text_deinit(&spare);
  if (g->made.length) emit(s, i, g->made.data, g->made.length);
}

static void strip_token(ait_text_stream *s, size_t i, const char *data, size_t size) {
  const ait_part *p = s->stages[i].part;
  size_t begin = 0, end = size;
  uint32_t code;
  for (int64_t k = 0; k < p->start && begin < end; ++k) {
    uint32_t n = ait_utf8_read(data + begin, &code);
    if (code != p->code) break;
    begin += n;
  }
  for (int64_t k = 0; k < p->stop && end > begin; ++k) {
    size_t last = end - 1;
    while (last > begin && ((unsigned char)data[last] & 0xC0) == 0x80) --last;
    ait_utf8_read(data + last, &code);
    if (code != p->code) break;
    end = last;
  }
  emit(s, i, data + begin, end - begin);
}

static void replace_token(ait_text_stream *s, size_t i, const char *data, size_t size) {
  stage *g = &s->stages[i];
  if (!s->scratch && !s->status) s->status = ait_scratch_create(s->allocator, &s->scratch);
  if (!s->status) s->status = ait_pattern_matches(s->scratch, &g->part->pattern, data, size, false);
  if (s->status) return;
  g->made.length = 0;
  for (size_t k = 0; k < s->scratch->match_count; ++k) {
    ait_match m = s->scratch->matches[k];
    if (m.match) ait_text_append(&g->made, g->part->text.data, g->part->text.size);
    else ait_text_append(&g->made, data + m.begin, m.end - m.begin);
  }
  emit(s, i, g->made.data ? g->made.data : "", g->made.length);
}

static void bpe_token(ait_text_stream *s, size_t i, const char *data, size_t size, bool end) {
  stage *g = &s->stages[i];
  if (g->has_held) { /* the one before: only now it is known whether it is the last */
    g->made.length = 0;
    ait_text_append(&g->made, g->held.data ? g->held.data : "", g->held.length);
    replace_all(&g->made, &g->held, g->part->text.data, g->part->text.size, " ", end ? 0 : 1);
    emit(s, i, g->made.data ? g->made.data : "", g->made.length);
  }
  g->held.length = 0;
  ait_text_append(&g->held, data, size);
  g->has_held = !end;
}

static void token(ait_text_stream *s, size_t i, const char *data, size_t size) {
  stage *g = &s->stages[i];
  switch (g->kind) {
    case AIT_DEC_BPE: bpe_token(s, i, data, size, false); break;
    case AIT_DEC_BYTE_LEVEL:
      byte_level_token(g, data, size);
      emit_utf8(s, i, false);
      break;
    case AIT_DEC_WORDPIECE: wordpiece_token(s, i, data, size); break;
    case AIT_DEC_METASPACE: metaspace_token(s, i, data, size, g->index == 0); break;
    case AIT_DEC_CTC: ctc_token(s, i, data, size); break;
    case AIT_DEC_REPLACE: replace_token(s, i, data, size); break;
    case AIT_DEC_FUSE: emit(s, i, data, size); break;
    case AIT_DEC_STRIP: strip_token(s, i, data, size); break;
    case AIT_DEC_BYTE_FALLBACK: {
      int byte = byte_token(data, size);
      char b = (char)byte;
      if (byte >= 0) {
        ait_text_append(&g->held, &b, 1);
      } else {
        end_byte_run(s, i);
        emit(s, i, data, size);
      }
    }
  }
  ++g->index;
}

/* ---- pieces of one token
 * ---------------------------------------------------------------------------------------------------------------*/
static void strip_piece(ait_text_stream *s, size_t i, const char *data, size_t size) {
  stage *g = &s->stages[i];
  char bytes[4];
  size_t width = ait_utf8_write(bytes, g->part->code);
  g->made.length = 0;
  for (size_t k = 0; k < size;) {
    uint32_t code, n = ait_utf8_read(data + k, &code);
    if (code == g->part->code && !g->past_front && g->cut < g->part->start) {
      ++g->cut;
    } else if (code == g->part->code && g->tail < g->part->stop) {
      g->past_front = true;
      ++g->tail;
    } else if (code == g->part->code) {
      g->past_front = true;
      ait_text_append(&g->made, data + k, n); /* one more at the end, one less held: they look the same */
    } else {
      g->past_front = true;
      for (; g->tail; --g->tail) ait_text_append(&g->made, bytes, width);
      ait_text_append(&g->made, data + k, n);
    }
    k += n;
  }
  if (g->made.length) emit(s, i, g->made.data, g->made.length);
}

static void feed(ait_text_stream *s, size_t i, const char *data, size_t size) {
  stage *g = &s->stages[i];
  if (s->status) return;
  if (!g->fused) token(s, i, data, size);
  else if (g->whole) ait_text_append(&g->held, data, size);
  else if (g->from.size) replace_pieces(s, i, data, size, false);
  else if (g->kind == AIT_DEC_STRIP) strip_piece(s, i, data, size);
  else if (g->kind == AIT_DEC_METASPACE) metaspace_token(s, i, data, size, true);
  else emit(s, i, data, size);
}

/* A token that was collected runs through as one. */
static void finish_whole(ait_text_stream *s, size_t i) {
  stage *g = &s->stages[i];
  ait_text all = g->held;
  ait_text_init(&g->held, s->allocator);
  token(s, i, all.data ? all.data : "", all.length);
  g->held.failed |= all.failed;
  ait_text_deinit(&all);
}

static void finish_stage(ait_text_stream *s, size_t i) {
  stage *g = &s->stages[i];
  if (s->status) return;
  if (g->fused && g->whole) finish_whole(s, i);
  if (g->fused && g->from.size) replace_pieces(s, i, "", 0, true);
  if (!g->fused || g->whole) {
    if (g->kind == AIT_DEC_BPE && g->has_held) bpe_token(s, i, "", 0, true);
    if (g->kind == AIT_DEC_BYTE_LEVEL) emit_utf8(s, i, true);
    if (g->kind == AIT_DEC_BYTE_FALLBACK) end_byte_run(s, i);
  }
}

/* ---- the stream
 * --------------------------------------------------------------------------------------------------------------------------*/
static void stage_reset(stage *g) {
  g->held.length = g->made.length = g->index = 0;
  g->cut = g->tail = 0;
  g->has_held = g->past_front = false;
}

static void add_stage(ait_text_stream *s, stage g, bool *fused) {
  g.fused = *fused;
  ait_text_init(&g.held, s->allocator);
  ait_text_init(&g.made, s->allocator);
  if (g.part && (g.kind == AIT_DEC_FUSE || g.kind == AIT_DEC_BYTE_LEVEL)) *fused = true;
  if (g.part && g.fused) {
    if (g.kind == AIT_DEC_REPLACE && !g.part->pattern.regex) g.from = g.part->pattern.literal, g.to = g.part->text;
    else if (g.kind == AIT_DEC_BPE) g.from = g.part->text;
    else g.whole = g.kind != AIT_DEC_FUSE && g.kind != AIT_DEC_STRIP && g.kind != AIT_DEC_METASPACE;
  }
  s->stages[s->stage_count++] = g;
}

ait_status ait_text_stream_create(const ait_tokenizer *t, int flags, ait_allocator a, ait_text_stream **out) {
  size_t count = t->decoder.count + AIT_COUNT(clean_up);
  ait_text_stream *s = ait_alloc_zero(a, sizeof *s, _Alignof(ait_text_stream));
  if (!s) return AIT_OOM();
  s->allocator = a;
  s->tokenizer = t;
  s->flags = flags;
  ait_text_init(&s->out, a);
  s->stages = ait_alloc_zero(a, count * sizeof *s->stages, _Alignof(stage));
  if (!s->stages) {
    ait_free(a, s, sizeof *s);
    return AIT_OOM();
  }
  bool fused = false;
  for (size_t i = 0; i < t->decoder.count; ++i)
    add_stage(s, (stage){.kind = (ait_decode_kind)t->decoder.items[i].kind, .part = &t->decoder.items[i]}, &fused);
  fused = true;
  for (size_t i = 0; (flags & AIT_DECODE_CLEAN_UP) && i < AIT_COUNT(clean_up); ++i) {
    ait_span from = {clean_up[i][0], (uint32_t)strlen(clean_up[i][0])}, to = {clean_up[i][1], (uint32_t)strlen(clean_up[i][1])};
    add_stage(s, (stage){.from = from, .to = to}, &fused);
  }
  *out = s;
  return AIT_OK;
}

void ait_text_stream_destroy(ait_text_stream *s) {
  if (!s) return;
  size_t count = s->tokenizer->decoder.count + AIT_COUNT(clean_up);
  for (size_t i = 0; i < s->stage_count; ++i) {
    ait_text_deinit(&s->stages[i].held);
    ait_text_deinit(&s->stages[i].made);
  }
  ait_free(s->allocator, s->stages, count * sizeof *s->stages);
  ait_text_deinit(&s->out);
  ait_scratch_destroy(s->scratch);
  ait_status_free(s->status);
  ait_free(s->allocator, s, sizeof *s);
}

static void emit_first(ait_text_stream *s, const char *data, size_t size) {
  if (s->stage_count) feed(s, 0, data, size);
  else ait_text_append(&s->out, data, size);
}

static void stream_token(ait_text_stream *s, int32_t id) {
  const ait_tokenizer *t = s->tokenizer;
  const ait_added_token *added = id >= 0 && id < t->added_vocab.id_limit ? t->added_by_id[id] : NULL;
  const ait_vocab_entry *entry = added ? NULL : ait_vocab_at(&t->model.vocab, id);
  if (!added && !entry) return;
  ait_span text = added ? added->normalized_form : (ait_span){entry->text, entry->size};
  if ((s->flags & AIT_DECODE_SKIP_SPECIAL) && ait_vocab_find(&t->specials, text.data, text.size) >= 0) return;
  if (!t->has_decoder && s->tokens++) emit_first(s, " ", 1); /* without a decoder: joined by spaces */
  emit_first(s, text.data, text.size);
}

static ait_status stream_state(ait_text_stream *s) {
  bool failed = s->out.failed;
  for (size_t i = 0; i < s->stage_count; ++i) failed |= s->stages[i].held.failed || s->stages[i].made.failed;
  ait_status status = s->status ? s->status : failed ? AIT_OOM() : AIT_OK;
  s->status = NULL;
  return status;
}

ait_status ait_text_stream_push(ait_text_stream *s, int32_t id, const char **out, size_t *out_size) {
  s->out.length = 0;
  stream_token(s, id);
  *out = s->out.data ? s->out.data : "";
  *out_size = s->out.length;
  return stream_state(s);
}

static void stream_end(ait_text_stream *s) {
  for (size_t i = 0; i < s->stage_count; ++i) finish_stage(s, i);
  for (size_t i = 0; i < s->stage_count; ++i) stage_reset(&s->stages[i]);
  s->tokens = 0;
}

ait_status ait_text_stream_finish(ait_text_stream *s, const char **out, size_t *out_size) {
  s->out.length = 0;
  stream_end(s);
  *out = s->out.data ? s->out.data : "";
  *out_size = s->out.length;
  return stream_state(s);
}

ait_status ait_tokenizer_decode(const ait_tokenizer *t, const int32_t *ids, size_t count, int flags, ait_allocator a, char **out,
                                size_t *out_size) {
  ait_text_stream *s = NULL;
  AIT_TRY(ait_text_stream_create(t, flags, a, &s));
  for (size_t i = 0; i < count && !s->status; ++i) stream_token(s, ids[i]);
  stream_end(s);
  ait_status status = stream_state(s);
  char *text = status ? NULL : ait_alloc(a, s->out.length + 1, 1);
  if (!status && !text) status = AIT_OOM();
  if (text) {
    if (s->out.length) memcpy(text, s->out.data, s->out.length);
    text[s->out.length] = 0;
    *out = text;
    *out_size = s->out.length;
  }
  ait_text_stream_destroy(s);
  return status;
}

void ait_text_free(ait_allocator a, char *text, size_t size) { ait_free(a, text, size + 1); }
