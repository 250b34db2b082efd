"""ait.embed, and requests of models with an encoder: the recorded answers of transformers and sentence-transformers (tests/data/llm)."""
import concurrent.futures
import json
import os
import pathlib
import sys

import pytest

np = pytest.importorskip("numpy")
ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, os.environ.get("AIT_PYTHON_PACKAGE", str(ROOT / "build" / "release" / "python")))
import ait  # noqa: E402

DATA = ROOT / "tests" / "data" / "llm"


def deployed(name, folder, deploy):
    path = folder / f"{name}.ait"
    deploy(DATA / name, path)
    return path


@pytest.fixture(scope="module")
def embedder_file(tmp_path_factory):
    return deployed("embed", tmp_path_factory.mktemp("embed"), ait.embed.deploy)


@pytest.fixture(scope="module")
def expected():
    return json.loads((DATA / "embed" / "expected.json").read_text())


def test_vectors_are_those_recorded(embedder_file, expected):
    embedder = ait.embed.load(embedder_file)
    for key, options in (("plain", {}), ("query", dict(prompt_name="query"))):
        vectors = ait.embed.load(embedder_file, **options).encode(expected["texts"], returns="numpy")
        want = np.asarray(expected[key], np.float32)
        assert vectors.dtype == np.float32 and vectors.shape == want.shape == (len(expected["texts"]), len(embedder))
        assert np.abs(vectors - want).max() < 1e-5
    assert embedder.normalized and embedder.pooling == "graph" and embedder.prompt == ""
    assert ait.embed.load(embedder_file, prompt_name="query").prompt == "fox: "


def test_one_text_several_and_none(embedder_file):
    embedder = ait.embed.load(embedder_file, threads=1, batch=2)
    texts = ["the quick brown fox", "a", "hello world, this is a test"]
    rows = embedder.encode(iter(texts), returns="numpy")
    assert isinstance(embedder.encode("a"), ait.Tensor) and embedder.encode("a").shape == (embedder.size,)
    for text, row in zip(texts, rows):
        assert np.abs(np.asarray(embedder.encode(text)) - row).max() < 1e-5
    assert embedder.encode([]).shape == (0, embedder.size)
    counts = embedder.count_tokens([*texts, "the lazy fox " * 40])
    assert counts[1] == 3 and counts[-1] == embedder.max_length


def test_threads_share_an_embedder(embedder_file):
    embedder = ait.embed.load(embedder_file)
    texts = [f"numbers {i} and the lazy dog" for i in range(40)]
    want = embedder.encode(texts, returns="numpy")
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        for row, got in zip(want, pool.map(embedder.encode, texts)):
            assert np.abs(np.asarray(got) - row).max() < 1e-5


@pytest.mark.parametrize("options, words", [
    (dict(pooling="x"), "pooling is 'x'"), (dict(prompt="a", prompt_name="query"), "exclude each other"), (dict(prompt_name="nope"), "no prompt 'nope'"),
    (dict(depth=1), "unexpected keyword argument 'depth'"), (dict(tokenizer="/nowhere"), "/nowhere"), (dict(batch=-1), "batch"),
])
def test_wrong_options_are_named(embedder_file, options, words):
    with pytest.raises((ait.Error, ValueError, TypeError), match=words):
        ait.embed.load(embedder_file, **options)


def test_what_is_no_text_or_no_encoder_is_refused(embedder_file, tmp_path):
    embedder = ait.embed.load(embedder_file)
    with pytest.raises(TypeError, match="text 1 is no str"):
        embedder.encode(["a", 1])
    with pytest.raises(ValueError, match="returns must be"):
        embedder.encode("a", returns="list")
    with pytest.raises(ait.InvalidModel, match="not a deployed language model"):
        ait.llm.load(embedder_file)
    with pytest.raises(ait.Unsupported, match="gives no embeddings"):
        ait.embed.load(deployed("t5", tmp_path, ait.llm.deploy))


# ---- an encoder and a decoder ------------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", ["t5", "bart", "whisper"])
def test_answers_of_pairs_are_those_of_transformers(name, tmp_path):
    lm = ait.llm.load(deployed(name, tmp_path, ait.llm.deploy))
    requests = json.loads((DATA / name / "expected.json").read_text())["requests"]
    assert lm.encoder and len(lm.source_shape) == (2 if name == "whisper" else 1)
    prompts = [r["tokens"] if "tokens" in r else np.load(DATA / name / r["source"]) for r in requests]
    for prompt, r in zip(prompts, requests):
        answer = lm.generate(prompt, max_tokens=r["max_tokens"])
        assert answer.tokens == r["expected"] and answer.prompt == r.get("tokens", [])
    most = max(r["max_tokens"] for r in requests)
    together = lm.generate_all(prompts, max_tokens=most)
    for answer, r in zip(together, requests):  # some models force an end token where the answer may be no longer
        assert answer.tokens[: len(r["expected"]) - 1] == r["expected"][:-1]
    streamed = [piece.token for piece in lm.stream(prompts[-1], max_tokens=requests[-1]["max_tokens"]) if piece.token is not None]
    assert streamed == requests[-1]["expected"]
    begun = lm.generate(prompts[-1], max_tokens=3, decoder_tokens=[lm.generate(prompts[-1], max_tokens=1).tokens[0], 9], ignore_stop=True)
    assert len(begun.tokens) == 3


def test_what_no_encoder_reads_is_refused(tmp_path):
    speech = ait.llm.load(deployed("whisper", tmp_path, ait.llm.deploy))
    with pytest.raises(TypeError, match=r"array of features of shape \(8, 40\), not a str"):
        speech.generate("hello")
    with pytest.raises(ait.InvalidArgument, match="must be 8"):
        speech.generate(np.zeros((3, 40), np.float32))
    text = ait.llm.load(deployed("t5", tmp_path, ait.llm.deploy))
    with pytest.raises(ait.InvalidArgument):
        text.generate([10**6])
    with pytest.raises(ait.Error):
        text.generate([])
