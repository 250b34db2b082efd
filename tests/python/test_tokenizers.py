"""Ids and texts equal to the library `tokenizers`: tokenizers of every kind, trained here, on texts of many scripts and on random ones."""
import base64
import json
import random

import pytest
from tokenizers import Tokenizer

import text_library as ait
import tokenizer_kinds

KINDS = tokenizer_kinds.kinds()
TEXTS = tokenizer_kinds.SAMPLES + tokenizer_kinds.random_texts(140, 11)


def same(function, *arguments):
    """What the library gives, or None where it fails."""
    try:
        return function(*arguments)
    except BaseException as e:  # noqa: BLE001  the library panics
        if isinstance(e, KeyboardInterrupt):
            raise
        return None


@pytest.mark.parametrize("name", KINDS)
def test_kind(name):
    theirs, ours = Tokenizer.from_str(KINDS[name]), ait.Tokenizer(KINDS[name])
    # The library's table of scripts is that of Unicode 9: random characters would show what has moved since.
    texts = tokenizer_kinds.SAMPLES if "scripts" in name else TEXTS + ["\n".join(TEXTS)]
    for text in texts:
        for special in (False, True):
            want = same(lambda: theirs.encode(text, add_special_tokens=special).ids)
            if want is None:
                with pytest.raises(ait.AitError):
                    ours.encode(text, ait.SPECIAL if special else 0)
                continue
            got = ours.encode(text, ait.SPECIAL if special else 0)
            assert got == want, (text, [theirs.id_to_token(i) for i in got], [theirs.id_to_token(i) for i in want])
        check_decode(theirs, ours, want or [])
    r = random.Random(3)
    size = theirs.get_vocab_size()
    for _ in range(15):
        check_decode(theirs, ours, [r.randrange(size + 2) for _ in range(r.randint(1, 30))])


def check_decode(theirs, ours, ids):
    for skip in (False, True):
        want = same(lambda: theirs.decode(ids, skip_special_tokens=skip))
        flags = ait.SKIP_SPECIAL if skip else 0
        got = ours.decode(ids, flags)
        if want is not None:
            assert got == want, ids
        assert "".join(ours.stream(ids, flags)) == got, ids


@pytest.mark.parametrize("name", ["bpe-cl100k", "llama2-first", "bert-uncased", "roberta", "unigram"])
def test_pairs_and_special_as_text(name):
    theirs, ours = Tokenizer.from_str(KINDS[name]), ait.Tokenizer(KINDS[name])
    for a, b in zip(TEXTS[:60], TEXTS[7:67]):
        assert ours.encode(a, ait.SPECIAL, pair=b) == theirs.encode(a, b).ids
        assert ours.encode(a, 0, pair=b) == theirs.encode(a, b, add_special_tokens=False).ids
    theirs.encode_special_tokens = True
    for text in TEXTS:
        assert ours.encode(text, ait.AS_TEXT) == theirs.encode(text, add_special_tokens=False).ids


@pytest.mark.parametrize("name", ["bpe-cl100k", "llama2-first", "bert-uncased", "roberta", "unigram"])
def test_types_and_truncation(name):
    theirs, ours = Tokenizer.from_str(KINDS[name]), ait.Tokenizer(KINDS[name])
    cases = [(a, b) for a, b in zip(TEXTS[:30], TEXTS[7:37])] + [(a, None) for a in TEXTS[:30]]
    for length in (0, 4, 7, 16):
        for side in ("right", "left"):
            for special in (True, False):
                theirs.no_truncation()
                if length:
                    theirs.enable_truncation(length, direction=side)
                for a, b in cases:
                    want = theirs.encode(a, b, add_special_tokens=special)
                    got = ours.encode_with(a, b, ait.SPECIAL if special else 0, length, side == "left")
                    assert got == (want.ids, want.type_ids), (a, b, length, side, special)


def test_bytes_that_are_no_utf8():
    theirs, ours = Tokenizer.from_str(KINDS["bpe-gpt2"]), ait.Tokenizer(KINDS["bpe-gpt2"])
    r = random.Random(9)
    for _ in range(500):
        data = bytes(r.choice([r.randint(0, 255), r.randint(0xE0, 0xF4), r.randint(0x80, 0x9F)]) for _ in range(r.randint(0, 12)))
        assert ours.encode(data) == theirs.encode(data.decode("utf-8", "replace"), add_special_tokens=False).ids, data


def test_long_words():
    for name in ("bpe-gpt2", "llama2-first"):
        theirs, ours = Tokenizer.from_str(KINDS[name]), ait.Tokenizer(KINDS[name])
        for text in ("a" * 100_000, "ab" * 10_000, " " * 10_000, "é" * 10_000, "\n" * 5_000 + "x"):
            assert ours.encode(text) == theirs.encode(text, add_special_tokens=False).ids


def test_clean_up():
    ours = ait.Tokenizer(KINDS["bert-uncased"])
    raw = Tokenizer.from_str(KINDS["bert-uncased"])
    for text in TEXTS:
        ids = raw.encode(text).ids
        want = ours.decode(ids)
        for old, new in [(" .", "."), (" ?", "?"), (" !", "!"), (" ,", ","), (" ' ", "'"), (" n't", "n't"), (" 'm", "'m"), (" 's", "'s"), (" 've", "'ve"), (" 're", "'re")]:
            want = want.replace(old, new)
        assert ours.decode(ids, ait.CLEAN_UP) == want
        assert "".join(ours.stream(ids, ait.CLEAN_UP)) == want


def charsmap(pairs):
    """sentencepiece's precompiled_charsmap: a double array trie over bytes, and replacements that end with NUL."""
    blob, values, units, used = b"", {}, {0: 0}, {0}
    for key, text in pairs.items():
        values[key.encode()] = len(blob)
        blob += text.encode() + b"\0"

    def place(position, keys, depth):
        children = sorted({k[depth] for k in keys if len(k) > depth})
        base = next(b for b in range(1, 1 << 16) if all((b ^ c) not in used for c in [0, *children]))
        used.update(base ^ c for c in [0, *children])
        leaf = next((k for k in keys if len(k) == depth), None)
        units[position] |= (base ^ position) << 10 | (leaf is not None) << 8
        if leaf is not None:
            units[base] = values[leaf] | 1 << 31
        for c in children:
            units[base ^ c] = c
            place(base ^ c, [k for k in keys if len(k) > depth and k[depth] == c], depth + 1)

    place(0, list(values), 0)
    trie = b"".join(units.get(i, 0).to_bytes(4, "little") for i in range((max(units) | 255) + 257))
    return base64.b64encode(len(trie).to_bytes(4, "little") + trie + blob).decode()


def test_precompiled():
    mapping = charsmap({"ﬁ": "fi", "Ａ": "A", "\r": " ", "é": "e\u0301", "e\u0301": "E", "\u200b": "", "が": "か", "a": "aa"})
    document = json.loads(KINDS["bpe-gpt2"])
    document["normalizer"] = {"type": "Precompiled", "precompiled_charsmap": mapping}
    theirs, ours = Tokenizer.from_str(json.dumps(document)), ait.Tokenizer(json.dumps(document))
    for text in TEXTS + ["ﬁＡ\r\n e\u0301\u0301 é\u200b\u200d か\u3099が a\u0301\u0302 aー"]:
        assert ours.encode(text) == theirs.encode(text, add_special_tokens=False).ids, text
