"""What transformers gives for a causal language model, as ait_llm_check reads it: a .npz of

ids [sequences, length], logits [sequences, length, vocab]   whole sequences, computed in float64
bound [1]                                                    10 times what rounding to float32 changes in these logits
prompts, answers [items, longest]                            greedy in float32; -1 behind the last token
"""

import numpy as np
import torch


def _logits(model, ids):
    with torch.no_grad():
        return model(input_ids=ids, use_cache=False).logits


def reference(model, ids):
    """(logits of float64, bound)."""
    single = _logits(model, ids).double()
    exact = _logits(model.double(), ids).double()
    model.float()
    noise = float((single - exact).abs().max())
    return exact.float().numpy(), max(10 * noise, 1e-6 * float(exact.abs().max()))


def greedy(model, prompt, count, stops=()):
    """(answer, smallest distance between the best logit and the next)."""
    ids, margin = list(prompt), float("inf")
    for _ in range(count):
        two = _logits(model, torch.tensor([ids]))[0, -1].topk(2)
        margin = min(margin, float(two.values[0] - two.values[1]))
        ids.append(int(two.indices[0]))
        if ids[-1] in stops:
            break
    return ids[len(prompt) :], margin


def random_items(model, vocab, lengths, count, least_margin, seed=5, stops=()):
    """Prompts of the lengths, whose answers do not hang on rounding."""
    g = torch.Generator().manual_seed(seed)
    items = []
    for length in lengths:
        for _ in range(50):
            prompt = torch.randint(3, vocab, (length,), generator=g).tolist()
            answer, margin = greedy(model, prompt, count, stops)
            if margin > least_margin:
                break
        else:
            raise SystemExit(f"no prompt of {length} tokens has an answer with clear choices")
        items.append((prompt, answer))
    return items


def _padded(rows):
    out = np.full((len(rows), max(map(len, rows))), -1, np.int64)
    for i, row in enumerate(rows):
        out[i, : len(row)] = row
    return out


def write(path, ids, logits, bound, items):
    np.savez_compressed(
        path,
        ids=np.asarray(ids, np.int64),
        logits=np.asarray(logits, np.float32),
        bound=np.array([bound], np.float64),
        prompts=_padded([p for p, _ in items]),
        answers=_padded([a for _, a in items]),
    )
