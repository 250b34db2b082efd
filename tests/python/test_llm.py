"""ait.llm: deploying from transformers, generating, streaming, threads, tokenizer, errors. Answers are those of transformers."""
import asyncio
import math
import os
import pathlib
import sys
import threading

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")
pytest.importorskip("tokenizers")
sys.path.insert(0, os.environ.get("AIT_PYTHON_PACKAGE", str(pathlib.Path(__file__).resolve().parents[2] / "build" / "release" / "python")))
os.environ.setdefault("HF_HUB_OFFLINE", "1")
import ait  # noqa: E402

LINES = ["the cat sat on the mat", "the dog ran after the cat", "and the mat lay where the dog sat", "who sat? the cat."]
TEMPLATE = ("{% for m in messages %}{{ bos_token }}{{ m.role }}: {{ m.content }}\n{% endfor %}"
            "{% if add_generation_prompt %}{{ name | default('cat') }}: {% endif %}")


def tokenizer():
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer, bpe.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    bpe.train_from_iterator(LINES, trainers.BpeTrainer(vocab_size=300, special_tokens=["<s>", "</s>"], show_progress=False,
                                                       initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    made = PreTrainedTokenizerFast(tokenizer_object=bpe, bos_token="<s>", eos_token="</s>")
    made.chat_template = TEMPLATE
    return made


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """(transformers' model, its tokenizer, the deployed model)"""
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = LlamaForCausalLM(LlamaConfig(vocab_size=300, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
                                         num_key_value_heads=2, max_position_embeddings=128, bos_token_id=0, eos_token_id=1)).eval()
    with torch.no_grad():
        for p in model.parameters():
            if p.dim() > 1:
                p.copy_(torch.randn(p.shape) / p.shape[1] ** 0.5)
    words = tokenizer()
    path = tmp_path_factory.mktemp("lm") / "lm.ait"
    notes = []
    result = ait.llm.deploy(model, path, tokenizer=words, progress=notes.append, eval_text=" ".join(LINES))
    assert "perplexity" in str(result) and all(isinstance(n, str) for n in notes)
    return model, words, ait.llm.load(path)


def greedy(model, ids, n):
    """Token by token from the whole sequence: no cache, no library's loop."""
    tokens = list(ids)
    with torch.no_grad():
        for _ in range(n):
            tokens.append(int(model(torch.tensor([tokens]), use_cache=False).logits[0, -1].argmax()))
    return tokens[len(ids):]


def test_greedy_answers_are_those_of_transformers(made):
    model, words, lm = made
    for text in LINES[:2]:
        answer = lm.generate(text, max_tokens=10, ignore_stop=True, logprobs=2)
        ids = words(text).input_ids
        assert answer.prompt == ids and answer.tokens == greedy(model, ids, 10) and answer.finish == "length"
        assert answer.text == words.decode(answer.tokens, skip_special_tokens=True) == str(answer)
        with torch.no_grad():
            want = torch.log_softmax(model(torch.tensor([ids])).logits[0, -1].double(), -1)
        assert abs(answer.logprobs[0] - float(want.max())) < 1e-3
        assert [t for t, _ in answer.choices[0].top[0]] == want.topk(2).indices.tolist()
    assert lm.generate(words(LINES[0]).input_ids, max_tokens=3).choices[0].logprobs == []
    assert lm.generate(torch.tensor(words(LINES[0]).input_ids), max_tokens=3).prompt == words(LINES[0]).input_ids


def test_streams_give_the_same_text_and_may_be_left(made):
    _, _, lm = made
    engine = lm.engine(max_sequences=2)
    pieces = list(engine.stream(LINES[0], max_tokens=12, ignore_stop=True))
    whole = engine.generate(LINES[0], max_tokens=12, ignore_stop=True)
    assert "".join(p.text for p in pieces) == whole.text and [p.token for p in pieces if p.token is not None] == whole.tokens
    assert [p.finish for p in pieces[:-1]] == [None] * (len(pieces) - 1) and pieces[-1].finish == "length"
    for _ in engine.stream(LINES[1], max_tokens=100, ignore_stop=True):
        break
    assert engine.generate(LINES[0], max_tokens=12, ignore_stop=True).text == whole.text and not engine._waiting
    assert engine.stats["answer_tokens"] < 100 and engine.stats["reused_tokens"] >= 0


def test_requests_of_many_threads_are_one_batch(made):
    _, _, lm = made
    request = dict(max_tokens=80, ignore_stop=True)  # long enough for threads to meet
    want = {p: lm.generate(p, **request).tokens for p in LINES}
    engine, gate, wrong = lm.engine(max_sequences=8), threading.Barrier(8), []

    def work(i):
        gate.wait()
        for k in range(3):
            p = LINES[(i + k) % len(LINES)]
            if engine.generate(p, **request).tokens != want[p]:
                wrong.append(p)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    stats = engine.stats
    assert not wrong and stats["answer_tokens"] == 8 * 3 * 80
    assert stats["steps"] < 8 * 3 * 80 * 0.8  # they ran together
    assert [a.tokens for a in engine.generate_all(LINES, **request)] == [want[p] for p in LINES]


def test_speculation_and_sampling(made):
    model, _, lm = made
    plain = lm.generate(LINES[0], max_tokens=20, ignore_stop=True).tokens
    assert lm.engine(speculate="ngram").generate(LINES[0], max_tokens=20, ignore_stop=True).tokens == plain
    drafted = lm.engine(draft=lm, draft_tokens=3)
    assert drafted.generate(LINES[0], max_tokens=20, ignore_stop=True).tokens == plain and drafted.stats["accepted"] > 0
    one = lm.generate(LINES[0], max_tokens=8, temperature=0.9, seed=3, n=2, ignore_stop=True)
    assert len(one.choices) == 2 and one.choices[0].tokens != one.choices[1].tokens
    again = lm.generate(LINES[0], max_tokens=8, temperature=0.9, seed=4, ignore_stop=True)
    assert again.tokens == one.choices[1].tokens  # answer i samples with seed + i
    never = {plain[0]: -math.inf}
    assert lm.generate(LINES[0], max_tokens=1, logit_bias=never).tokens[0] != plain[0]
    whole = lm.generate(LINES[0], max_tokens=20, ignore_stop=True).text
    stop = next(c for c in whole[1:] if c.isascii() and c.isprintable() and c != whole[0])
    stopped = lm.generate(LINES[0], max_tokens=20, ignore_stop=True, stop=stop)
    assert stopped.finish == "stop" and stopped.text == whole[:whole.index(stop)]
    assert lm.generate(LINES[0], max_tokens=20, ignore_stop=True, stop_tokens=[plain[1]]).finish == "stop"


def test_a_draft_model_in_the_file(made, tmp_path):
    model, words, lm = made
    model.save_pretrained(tmp_path / "small")
    ait.llm.deploy(model, tmp_path / "with.ait", tokenizer=words, draft=tmp_path / "small", skip_proof=True)
    with_draft = ait.llm.load(tmp_path / "with.ait")
    engine = with_draft.engine()
    answer = engine.generate(LINES[0], max_tokens=20, ignore_stop=True)
    assert answer.tokens == lm.generate(LINES[0], max_tokens=20, ignore_stop=True).tokens and engine.stats["accepted"] > 0
    plain = with_draft.engine(speculate="none")
    assert plain.generate(LINES[0], max_tokens=20, ignore_stop=True).tokens == answer.tokens and plain.stats["drafted"] == 0


def test_tokenizer_and_conversations(made):
    _, words, lm = made
    t = lm.tokenizer
    for text in [*LINES, "", "Größe 漢字 🙂", "a</s>b"]:
        assert t.encode(text) == words(text).input_ids
        assert t.decode(t.encode(text), skip_special=False) == words.decode(words(text).input_ids, skip_special_tokens=False)
    assert 1 in t.encode("</s>") and 1 not in t.encode("</s>", as_text=True)
    assert len(t) == len(words) and t.token(0) == "<s>" and t.token_id("</s>") == 1 and t.is_special(1) and not t.is_special(5)
    assert t.token(10**6) is None and t.token_id("no such token") is None
    talk = [{"role": "user", "content": "who sat?"}]
    text = words.apply_chat_template(talk, tokenize=False, add_generation_prompt=True)
    assert t.chat(talk) == text and t.chat(talk, name="dog").endswith("dog: ")
    answer = lm.generate(talk, max_tokens=3, ignore_stop=True)
    assert answer.prompt == words(text, add_special_tokens=False).input_ids
    assert "".join(p.text for p in lm.stream(talk, max_tokens=3, ignore_stop=True)) == answer.text
    p = lm.perplexity(" ".join(LINES))
    assert p["perplexity"] > 1 and p["tokens"] > 0


def test_asyncio(made):
    _, _, lm = made
    engine = lm.engine()

    async def both():
        answer = await engine.agenerate(LINES[0], max_tokens=6, ignore_stop=True)
        pieces = [p.text async for p in engine.astream(LINES[0], max_tokens=6, ignore_stop=True)]
        return answer.text, "".join(pieces)

    a, b = asyncio.run(both())
    assert a == b == lm.generate(LINES[0], max_tokens=6, ignore_stop=True).text


def test_what_is_wrong_is_said(made, tmp_path):
    _, _, lm = made
    with pytest.raises(ait.InvalidArgument, match="vocabulary|token"):
        lm.generate([5, 10**6])
    with pytest.raises(ait.InvalidArgument):
        lm.generate([])
    with pytest.raises(ait.InvalidArgument):
        lm.generate(LINES[0], temperature=-1.0)
    with pytest.raises(ait.Limit):
        lm.generate([5] * 1000)
    with pytest.raises(TypeError, match="tempreature"):
        lm.generate(LINES[0], tempreature=1.0)
    with pytest.raises(TypeError, match="generate_all"):
        lm.generate(LINES)
    with pytest.raises(TypeError, match="float"):
        lm.generate(3.5)
    with pytest.raises(ValueError, match="ngram"):
        lm.engine(speculate="guess")
    with pytest.raises(ValueError, match="draft="):
        lm.engine(speculate="draft")
    with pytest.raises(ait.Limit):
        lm.engine(cache_bytes=1)
    digits = pathlib.Path(__file__).resolve().parents[1] / "data" / "models" / "digits" / "digits.pt2"
    with pytest.raises(ait.Error):
        ait.llm.load(digits)
    with pytest.raises(ait.NotFound):
        ait.llm.load(tmp_path / "none.ait")
    with pytest.raises(ait.Error):
        ait.llm.deploy(digits, tmp_path / "d.ait")
    with pytest.raises(KeyError, match="mine"):
        ait.llm.deploy(digits.parents[2] / "llm" / "llama.pt2", tmp_path / "d.ait", progress=lambda line: {}["mine"])
    assert not lm._engine._waiting


def test_a_graph_without_tokenizer(tmp_path):
    source = pathlib.Path(__file__).resolve().parents[1] / "data" / "llm" / "llama.pt2"
    ait.llm.deploy(source, tmp_path / "m.ait", quantize="int8")
    lm = ait.llm.load(tmp_path / "m.ait")
    answer = lm.generate([1, 2, 3], max_tokens=4)
    assert len(answer.tokens) == 4 and answer.text == ""
    with pytest.raises(ait.NotFound, match="no tokenizer"):
        lm.generate("text")
    with pytest.raises(ait.NotFound):
        lm.tokenizer


def test_an_engine_stays_in_its_process(made):
    _, _, lm = made
    engine = lm.engine()
    engine.generate(LINES[0], max_tokens=2)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            engine.generate(LINES[0], max_tokens=2)
        except ait.Unavailable:
            code = 0 if len(lm.engine().generate(LINES[0], max_tokens=2).tokens) else 2
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0
