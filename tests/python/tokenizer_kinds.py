"""Tokenizers of every kind, trained here and now by the library `tokenizers`, and texts of many scripts to try them on."""
import json
import random

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

SAMPLES = [
    "The quick brown fox doesn't jump over 13 lazy dogs; it's 3.14159 o'clock — isn't it? I'LL say: WE'VE seen 'em.",
    "Größe, naïve façade, Ærøskøbing, İstanbul'da ıslık, Škoda, Łódź, Ǆ ǅ ǆ, ß ẞ, ﬁ ﬂ ﬆ, ½ ⅓ Ⅷ ² ³ № ™ ℃",
    "Съешь же ещё этих мягких французских булок, да выпей чаю. Київ, Београд, ѣ, Ё",
    "Ξεσκεπάζω τὴν ψυχοφθόρα βδελυγμία. ΟΔΥΣΣΕΎΣ ὀδυσσεύς",
    "天地玄黃，宇宙洪荒。日月盈昃，辰宿列張。 简体中文和繁體中文混排 𠀀𪜶 ㍻ ㌀",
    "いろはにほへと ちりぬるを　ワガヨタレソ ツネナラム ｶﾞｷﾞ カ\u3099 ー々〆 東京タワーに行った。",
    "키스의 고유조건은 입술끼리 만나야 하고 특별한 기술은 필요치 않다. \u1112\u1161\u11ab\u1100\u1173\u11af ㅋㅋㅋ",
    "نص حكيم له سر قاطع وذو شأن عظيم مكتوب على ثوب أخضر ومغلف بجلد أزرق ﷺ ١٢٣٤ پچژگ",
    "דג סקרן שט בים מאוכזב ולפתע מצא חברה. שָׁלוֹם עֲלֵיכֶם",
    "ऋषियों को सताने वाले दुष्ट राक्षसों के राजा रावण का सर्वनाश १२३ क्षत्रिय हिन्दी ज़रूर",
    "เป็นมนุษย์สุดประเสริฐเลิศคุณค่า กว่าบรรดาฝูงสัตว์เดรัจฉาน ๑๒๓ น้ำ",
    "தமிழ் மொழி வாழ்க. తెలుగు భాష. ಕನ್ನಡ. മലയാളം. বাংলা ভাষা ৪৫৬. ગુજરાતી. ਪੰਜਾਬੀ. සිංහල. ລາວ. ខ្មែរ. မြန်မာ. བོད་སྐད།",
    "አማርኛ ትግርኛ ፩፪፫ ქართული ენა Ⴀ հայերեն ᏣᎳᎩ ᠮᠣᠩᠭᠣᠯ ꦗꦮ ⵜⴰⵎⴰⵣⵉⵖⵜ ᚠᚢᚦ 𐌰𐌱 𝔘𝔫𝔦 𝒜𝟘𝟙 ⠓⠑⠇⠇⠕",
    "Emoji: 😀😃 👩‍👩‍👧‍👦 🏳️‍🌈 👍🏽 🇩🇪🇫🇷 ❤️ 1️⃣ 🧑🏿‍🚀 ☺︎ 🫠",
    "combining: e\u0301 é a\u0328\u0301 ą́ \u0301start q\u0307\u0323 q\u0323\u0307 Z\u0351\u036b\u0343\u036a\u0302\u036b\u033d\u034f\u0334 ḍ̇ Å Å Å ô̖",
    "def f(x):\n\treturn x**2  # comment\n\nclass A:\n    def __init__(self, *args, **kwargs):\n        self.x = {'a': [1, 2, 3]}\r\n\r\n\r\n",
    "for (int i = 0; i < n; ++i) { a[i] += b[i] * 0x1F; } /* ... */ // <|endoftext|> <s> </s> [CLS] [SEP] [MASK] <|im_start|>user",
    "https://example.org/path?q=a%20b&c=d#frag user.name+tag@mail.example.com C:\\dir\\file.txt 2024-02-29T23:59:60Z +1 (555) 010-9999",
    "1 12 123 1234 12345 1234567890 1,234,567.89 -1e-10 ١٢٣ 一二三 ①②③ ⅣⅤ 3½",
    "  leading,  double  spaces   and\ttabs\t\tand \n newlines\n\n\n  then trailing   ",
    "\u00a0nbsp\u2003em\u3000ideographic\u200bzero\u200c\u200djoin\u2028line\u2029para\u0085nel\ufeffbom\u180emvs \x00nul\x01\x07\x1b[0m\x7f\x80\x9f\x8f \x0b\x0c",
    "\ufffd\ufffe\uffff\U0010ffff\ue000\U000f0000 \u0378 unassigned ｆｕｌｌｗｉｄｔｈ ＡＢＣ！？ “quotes” ‘single’ «guillemets» …—–‐ ¿¡ ·•",
    "don't DON'T I'm I'M you're YOU'RE we'll WE'LL they'd 'tis '\u017f '\u017Ft K\u212a can\u2019t won\u2019t",
    "AAAAAAAAAAAAAAAAAAAAAAAAAAAA aaaaaaaaaaaaaaaaaaaaaaa !!!!!!!!!!!!!!!!!! ............. ----------------- ==========",
    "camelCaseWordsAndHTTPServerIDs snake_case_words kebab-case-words ALLCAPS Title Case McDonald O'Neil iPhone15Pro",
    "▁metaspace ▁▁ literal and <0x41> <0xFF> byte tokens, Ġ and Ċ letters, ##prefix, word</w>",
    "do not . stop ! really ? yes , he said ' quoted ' n't 'm 's 've 're",
    "", " ", "  ", "\n", "\n\n", "\t", "a", "é", "😀", " a", "a ", "'", "''s", "\r\n", " \n ", "  \n\n  x",
]


def random_texts(count, seed):
    """Random characters of random blocks, random bytes (what is no UTF-8 becomes U+FFFD), and mixtures of the samples."""
    r = random.Random(seed)
    blocks = [(0x20, 0x7E), (0, 0x20), (0x7F, 0x24F), (0x300, 0x36F), (0x370, 0x52F), (0x590, 0x6FF), (0x900, 0x97F), (0xE00, 0xE7F), (0x1100, 0x11FF),
              (0x2000, 0x206F), (0x20A0, 0x21FF), (0x3000, 0x30FF), (0x4E00, 0x4FFF), (0xAC00, 0xACFF), (0xFB00, 0xFDFF), (0xFF00, 0xFFEF),
              (0x1F300, 0x1F6FF), (0x1D400, 0x1D7FF)]
    texts = []
    for i in range(count):
        kind = i % 4
        if kind == 0:
            low, high = r.choice(blocks)
            texts.append("".join(chr(r.randint(low, high)) for _ in range(r.randint(1, 30))))
        elif kind == 1:
            texts.append("".join(chr(r.randint(*r.choice(blocks))) for _ in range(r.randint(1, 40))))
        elif kind == 2:
            texts.append(bytes(r.choice([r.randint(0, 255), r.randint(0xC0, 0xF4), r.randint(0x80, 0xBF), 32]) for _ in range(r.randint(1, 40))).decode("utf-8", "replace"))
        else:
            parts = []
            for _ in range(r.randint(2, 6)):
                sample = r.choice(SAMPLES)
                at = r.randint(0, len(sample))
                parts.append(sample[at : at + r.randint(0, 20)] + r.choice(["", " ", "  ", "\n", "<s>", "</s>", "[MASK]", "<|x|>", "new tok"]))
            texts.append("".join(parts))
    return [t for t in texts if not any(0xD800 <= ord(x) < 0xE000 for x in t)]


GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
REGEXES = {
    "gpt2": GPT2,
    "cl100k": r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    "cl100k-possessive": r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+",
    "qwen2": r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    "o200k": "|".join([
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
        r"\p{N}{1,3}", r" ?[^\s\p{L}\p{N}]+[\r\n/]*", r"\s*[\r\n]+", r"\s+(?!\S)", r"\s+"]),
    "deepseek3": r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    "cjk": "[一-龥\u0800-一가-힣]+",
    "kimi": r"[\p{Han}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    "chatglm": r"\p{N}{1}|[\p{L}\p{M}]+|\s+|[^\s\p{L}\p{N}]",
    "classes": r"[[:alpha:]_]+|[^\W\d]+|[\S&&[^a-z]]|\d{2,}?|(?:\w{1,3})+|\h+|\b.|$",
    "not-class": r"[^[a-f]\s]+|[^a-z&&\p{L}]+|(?m:.)|x{,3}y",
    "starcoder": r"\p{N}",
    "bloom": r" ?[^(\s|[.,!?…。，、।۔،])]+",
    "odd": r"(?<=a)b|(?<!\s)\p{P}+|\S{2}+\s?|\u0041+|\x{42}\x43|[\x00-\x1f]+",
}


def corpus():
    return SAMPLES * 3 + random_texts(200, 5)


def train(model, trainer, normalizer=None, pre=None, post=None, decoder=None, added=(), special=()):
    t = Tokenizer(model)
    if normalizer is not None:
        t.normalizer = normalizer
    if pre is not None:
        t.pre_tokenizer = pre
    t.train_from_iterator(corpus(), trainer)
    if special:
        t.add_special_tokens(list(special))
    if added:
        t.add_tokens(list(added))
    if post is not None:
        t.post_processor = post(t)
    if decoder is not None:
        t.decoder = decoder
    return t.to_str()


def bpe_trainer(size=900, **options):
    return trainers.BpeTrainer(vocab_size=size, show_progress=False, special_tokens=["<unk>", "<s>", "</s>", "<|x|>"], **options)


BYTES = sorted(pre_tokenizers.ByteLevel.alphabet())
BYTE_TOKENS = [f"<0x{b:02X}>" for b in range(256)]


def byte_level(regex, ignore_merges=False, normalizer=None, **options):
    pre = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(regex), "isolated"), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    post = lambda t: processors.TemplateProcessing(single="<s> $A", pair="<s> $A <s> $B:1", special_tokens=[("<s>", t.token_to_id("<s>"))])  # noqa: E731
    text = train(models.BPE(ignore_merges=ignore_merges), bpe_trainer(initial_alphabet=BYTES), normalizer, pre, post, decoders.ByteLevel(), **options)
    return text


def with_byte_fallback(text, model="BPE"):
    """Adds the 256 byte tokens and turns the fallback on, as sentencepiece does."""
    d = json.loads(text)
    if model == "BPE":
        size = max(d["model"]["vocab"].values()) + 1
        for token in BYTE_TOKENS:
            if token not in d["model"]["vocab"]:
                d["model"]["vocab"][token] = size
                size += 1
    else:
        d["model"]["vocab"] += [[token, -20.0] for token in BYTE_TOKENS]
    d["model"]["byte_fallback"] = True
    d["added_tokens"] = [a for a in d["added_tokens"] if not a["content"].startswith("new")]
    return json.dumps(d)


def bert(lowercase=True, accents=None, **options):
    post = lambda t: processors.BertProcessing(("[SEP]", t.token_to_id("[SEP]")), ("[CLS]", t.token_to_id("[CLS]")))  # noqa: E731
    return train(models.WordPiece(unk_token="[UNK]", max_input_chars_per_word=20),
                 trainers.WordPieceTrainer(vocab_size=900, show_progress=False, special_tokens=["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"], **options),
                 normalizers.BertNormalizer(lowercase=lowercase, strip_accents=accents), pre_tokenizers.BertPreTokenizer(), post,
                 decoders.WordPiece(), special=[AddedToken("[MASK]", lstrip=True)])


def unigram(normalizer, pre, decoder, byte_fallback=False):
    trainer = trainers.UnigramTrainer(vocab_size=2500, show_progress=False, special_tokens=["<s>", "</s>", "<unk>"], unk_token="<unk>")
    text = train(models.Unigram(), trainer, normalizer, pre, None, decoder)
    return with_byte_fallback(text, "Unigram") if byte_fallback else text


def llama2_style(scheme="first", normalizer_style=False):
    if normalizer_style:
        normalizer, pre = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]), None
    else:
        normalizer, pre = None, pre_tokenizers.Metaspace(prepend_scheme=scheme, split=False)
    decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    post = lambda t: processors.TemplateProcessing(single="<s> $A </s>", pair="<s> $A </s> $B:1 </s>:1", special_tokens=[("<s>", t.token_to_id("<s>")), ("</s>", t.token_to_id("</s>"))])  # noqa: E731
    train_pre = pre_tokenizers.Metaspace(prepend_scheme=scheme)
    t = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True))
    t.pre_tokenizer = train_pre
    t.train_from_iterator(corpus(), bpe_trainer(600, limit_alphabet=150))
    if normalizer is not None:
        t.normalizer = normalizer
    d = json.loads(t.to_str())
    if pre is None:
        d["pre_tokenizer"] = None
    else:
        d["pre_tokenizer"] = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": scheme, "split": False}
    t = Tokenizer.from_str(with_byte_fallback(json.dumps(d)))
    t.decoder = decoder
    t.post_processor = post(t)
    return t.to_str()


def kinds():
    """name → text of tokenizer.json."""
    added = [AddedToken("new tok", normalized=True), AddedToken("single", single_word=True), AddedToken("left", lstrip=True), AddedToken("right", rstrip=True),
             AddedToken("É", normalized=True), AddedToken("  ", normalized=False), AddedToken("    ", normalized=False), AddedToken("<|x", normalized=False)]
    out = {}
    for name, regex in REGEXES.items():
        out["bpe-" + name] = byte_level(regex, ignore_merges=name in ("cl100k", "o200k"), normalizer=normalizers.NFC() if name.startswith("qwen") else None)
    out["bpe-added"] = byte_level(GPT2, added=added, normalizer=normalizers.Sequence([normalizers.NFKC(), normalizers.Lowercase()]), special=[AddedToken("<|im_start|>", rstrip=True, special=True)])
    roberta = lambda t: processors.RobertaProcessing(("</s>", t.token_to_id("</s>")), ("<s>", t.token_to_id("<s>")))  # noqa: E731
    out["roberta"] = train(models.BPE(), bpe_trainer(initial_alphabet=BYTES), None, pre_tokenizers.ByteLevel(add_prefix_space=True), roberta, decoders.ByteLevel(), added)
    digits = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(r"[\r\n]"), "isolated"), pre_tokenizers.Split(Regex(r"\s?\p{L}+"), "isolated"), pre_tokenizers.Split(Regex(r"\s?\p{P}+"), "isolated"),
                                     pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    out["deepseek-coder"] = train(models.BPE(), bpe_trainer(initial_alphabet=BYTES), None, digits, None, decoders.ByteLevel())
    out["byte-level-normalizer"] = train(models.BPE(), bpe_trainer(initial_alphabet=BYTES), normalizers.ByteLevel(), pre_tokenizers.Split(Regex("Ġ?[^Ġ]+"), "isolated"), None, decoders.ByteLevel(), added[:2])
    for scheme in ("first", "always", "never"):
        out["llama2-" + scheme] = llama2_style(scheme)
    out["llama2-normalizer"] = llama2_style(normalizer_style=True)
    out["bpe-words"] = train(models.BPE(unk_token="<unk>", end_of_word_suffix="</w>"), bpe_trainer(600, end_of_word_suffix="</w>", limit_alphabet=80), normalizers.Lowercase(), pre_tokenizers.Whitespace(), None, decoders.BPEDecoder())
    out["bpe-fused-unk"] = train(models.BPE(unk_token="<unk>", fuse_unk=True), bpe_trainer(500, limit_alphabet=60), normalizers.NFKD(), pre_tokenizers.WhitespaceSplit())
    out["bpe-prefix"] = train(models.BPE(unk_token="<unk>", continuing_subword_prefix="##"), bpe_trainer(500, continuing_subword_prefix="##", limit_alphabet=60), None, pre_tokenizers.Whitespace(), None, decoders.WordPiece(cleanup=False))
    out["bpe-no-unk"] = train(models.BPE(), bpe_trainer(500, limit_alphabet=60), normalizers.StripAccents(), pre_tokenizers.Punctuation("merged_with_previous"))
    out["bert-uncased"] = bert()
    out["bert-cased"] = bert(False)
    out["bert-accents"] = bert(True, False)
    out["unigram"] = unigram(normalizers.NFKC(), pre_tokenizers.Metaspace(), decoders.Metaspace())
    out["unigram-nmt"] = unigram(normalizers.Sequence([normalizers.Nmt(), normalizers.NFKC(), normalizers.Replace(Regex(" {2,}"), " "), normalizers.Strip(right=False)]),
                                 pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace(prepend_scheme="first")]), decoders.Metaspace(prepend_scheme="first"))
    out["unigram-bytes"] = unigram(None, pre_tokenizers.Metaspace(prepend_scheme="never", split=False), decoders.Sequence([decoders.ByteFallback(), decoders.Metaspace(prepend_scheme="never")]), True)
    out["unigram-scripts"] = unigram(normalizers.NFD(), pre_tokenizers.Sequence([pre_tokenizers.UnicodeScripts(), pre_tokenizers.Metaspace(prepend_scheme="first")]), decoders.Metaspace(prepend_scheme="first"))
    words = trainers.WordLevelTrainer(vocab_size=500, show_progress=False, special_tokens=["<unk>", "<pad>"])
    out["word-level"] = train(models.WordLevel(unk_token="<unk>"), words, None, pre_tokenizers.Whitespace(), None, None)
    for behavior in ("removed", "isolated", "merged_with_previous", "merged_with_next", "contiguous"):
        for invert in (False, True):
            out[f"split-{behavior}-{invert}"] = train(models.WordLevel(unk_token="<unk>"), words, None, pre_tokenizers.Split(Regex(r"\s+|\d|[aeiou]"), behavior, invert))
        out["literal-" + behavior] = train(models.WordLevel(unk_token="<unk>"), words, None, pre_tokenizers.Split("e", behavior))
        out["punctuation-" + behavior] = train(models.WordLevel(unk_token="<unk>"), words, None, pre_tokenizers.Punctuation(behavior))
    out["delimiter"] = train(models.WordLevel(unk_token="<unk>"), words, normalizers.Strip(), pre_tokenizers.CharDelimiterSplit("a"))
    out["digits"] = train(models.WordLevel(unk_token="<unk>"), words, None, pre_tokenizers.Sequence([pre_tokenizers.Digits(), pre_tokenizers.FixedLength(3)]))
    out["scripts"] = train(models.WordLevel(unk_token="<unk>"), words, None, pre_tokenizers.UnicodeScripts())
    out["ctc"] = train(models.WordLevel(unk_token="<unk>"), words, None, pre_tokenizers.FixedLength(1), None, decoders.CTC(pad_token="<pad>", word_delimiter_token="e"))
    out["replace-decoder"] = train(models.WordLevel(unk_token="<unk>"), words, normalizers.Replace("ab", ""), pre_tokenizers.FixedLength(2), None,
                                   decoders.Sequence([decoders.Fuse(), decoders.Replace("aa", "b"), decoders.Strip(" ", 1, 1), decoders.Replace(Regex("[0-9]+"), "#")]))
    return out
