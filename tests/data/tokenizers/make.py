#!/usr/bin/env python3
"""Makes the files of this folder: NAME.json is a tokenizer.json, NAME.golden.json what the library `tokenizers` gives for some texts.
Needs the Python environment of tests/python. Training draws nothing at random, but hash orders differ: ids may change from run to run."""
import json
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "python"))
import tokenizer_kinds  # noqa: E402
from tokenizers import Tokenizer  # noqa: E402

NAMES = ["bpe-o200k", "bpe-added", "llama2-first", "roberta", "bert-uncased", "unigram-nmt", "bpe-words", "byte-level-normalizer", "word-level"]


def main():
    kinds = tokenizer_kinds.kinds()
    texts = tokenizer_kinds.SAMPLES + tokenizer_kinds.random_texts(16, 21)
    for name in NAMES:
        tokenizer = Tokenizer.from_str(kinds[name])
        rows = []
        for text in texts:
            ids = tokenizer.encode(text, add_special_tokens=False).ids
            special = tokenizer.encode(text).ids
            rows.append({"text": text, "ids": ids, "special": special, "decoded": tokenizer.decode(special, skip_special_tokens=False), "skipped": tokenizer.decode(special)})
        document = json.loads(kinds[name])
        (HERE / f"{name}.json").write_text(json.dumps(document, ensure_ascii=False, separators=(",", ":")))
        (HERE / f"{name}.golden.json").write_text(json.dumps(rows, ensure_ascii=True, separators=(",", ":")))


main()
