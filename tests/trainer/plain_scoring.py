"""The obvious computation that the scoring script is held against, and the tiny models it is tried on.

Full logits of the whole vocabulary, the sampler's transforms one after the other, one sequence at a time.
"""

import itertools
import math

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="scoring needs torch: run these tests in a trainer's environment")
transformers = pytest.importorskip("transformers", reason="scoring needs transformers")

VOCABULARY = 700
SMALL = {
    "vocab_size": VOCABULARY,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "max_position_embeddings": 128,
    "pad_token_id": 0,
    "initializer_range": 0.4,
}


class Channel:
    """The worker's channel, into a folder."""

    def __init__(self, folder):
        self.folder, self.events = folder, []

    def phase(self, name):
        self.events.append(("phase", name))

    def emit(self, event, **fields):
        self.events.append((event, fields))

    def path(self, name):
        return str(self.folder / name)


def saved(folder, kind="Llama", dtype=torch.float32, **settings):
    """A checkpoint of a tiny model with random weights."""
    torch.manual_seed(0)
    config = getattr(transformers, f"{kind}Config")(**{**SMALL, **settings})
    model = getattr(transformers, f"{kind}ForCausalLM")(config).to(dtype).eval()
    model.save_pretrained(folder, safe_serialization=True)
    return model


def ragged(count=7, seed=0):
    """Sequences of very different lengths, with repeated tokens for penalties to bite on."""
    draw = np.random.default_rng(seed)

    def ids(length):
        return draw.integers(3, 60 if length % 2 else VOCABULARY, length).tolist()

    return [{"prompt_token_ids": ids(2 + 5 * n % 17), "token_ids": ids(1 + 7 * n % 31)} for n in range(count)]


def scores(score, folder, model, sequences, **settings):
    """Run the script's job; gives its arrays and its record."""
    job = {
        "model": str(model),
        "dtype": "float32",
        "head_dtype": "float32",
        "attention": "sdpa",
        "temperature": 1.0,
        "sequences": sequences,
        "batch_tokens": 64,
        "chunk_positions": 7,
        "top_logprobs": 3,
        "floor_sequences": 3,
        **settings,
    }
    record = score.run(job, Channel(folder))
    with np.load(folder / "scores.npz", allow_pickle=False) as arrays:
        return dict(arrays), record


@torch.no_grad()
def full_logits(model, sequences):
    """(T, V) float32 logits before every sampled token, one sequence at a time."""
    found = []
    for sequence in sequences:
        first = len(sequence["prompt_token_ids"])
        ids = torch.tensor([sequence["prompt_token_ids"] + sequence["token_ids"]])
        found.append(model(ids).logits[0, first - 1 : -1].float())
    return torch.cat(found)


def sampled(sequences):
    return torch.tensor([token for sequence in sequences for token in sequence["token_ids"]])


def by_the_sampler(logits, sequences, meaning):
    """(T,) logprobs as vLLM's sampler computes them, row by row and by sorting everything."""
    meaning = {"temperature": 1.0, "top_k": 0, "top_p": 1.0, "min_p": 0.0, **meaning}
    logits = logits.clone()
    before = itertools.chain.from_iterable(
        ((s["prompt_token_ids"], s["token_ids"][:t]) for t in range(len(s["token_ids"]))) for s in sequences
    )
    for row, (prompt, output) in zip(logits, before, strict=True):
        for token, added in meaning.get("logit_bias", ()):
            row[token] += added
        repeated = sorted(set(prompt) | set(output))
        penalty = meaning.get("repetition_penalty", 1.0)
        row[repeated] = torch.where(row[repeated] > 0, row[repeated] / penalty, row[repeated] * penalty)
        for token in set(output):
            row[token] -= meaning.get("frequency_penalty", 0.0) * output.count(token)
            row[token] -= meaning.get("presence_penalty", 0.0)
    logits /= meaning["temperature"]
    if meaning["min_p"]:
        probability = logits.softmax(-1)
        logits[probability < meaning["min_p"] * probability.amax(-1, keepdim=True)] = -math.inf
    ordered, places = logits.sort(dim=-1)
    if meaning["top_k"]:
        ordered[ordered < ordered[:, -meaning["top_k"], None]] = -math.inf
    if meaning["top_p"] < 1:
        dropped = ordered.softmax(-1).cumsum(-1) <= 1 - meaning["top_p"]
        dropped[:, -1] = False
        ordered[dropped] = -math.inf
    logits = torch.empty_like(logits).scatter_(-1, places, ordered)
    return logits.log_softmax(-1).gather(1, sampled(sequences)[:, None])[:, 0].numpy()
