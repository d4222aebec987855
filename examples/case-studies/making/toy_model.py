"""A language model small enough to be read: embeddings, one layer of causal attention with a key-value cache, a head.

Random weights, so it says nothing; but everything a logprob goes through is there: keys and values that were computed
with some weights and stay in a cache, a body that may round, a head that may round, and a softmax over the vocabulary.
Shapes: B sequences, T tokens so far, D features, V tokens of the vocabulary.
"""

from dataclasses import dataclass, fields, replace

import numpy as np

VOCABULARY, FEATURES, LONGEST = 384, 48, 160
# Most positions of a language model are nearly certain and some are wide open; a gain per token makes them so.
GAINS = (3.0, 16.0)
# Logits of real models are far from zero also where nothing is certain; penalties and bfloat16 see that.
LEVEL = 18.0


@dataclass(frozen=True)
class Weights:
    embedding_VD: np.ndarray
    position_PD: np.ndarray
    query_DD: np.ndarray
    key_DD: np.ndarray
    value_DD: np.ndarray
    mix_DD: np.ndarray
    head_VD: np.ndarray
    gain_V: np.ndarray


@dataclass
class Cache:
    """Keys and values of the tokens so far, (B, T, D)."""

    keys: np.ndarray
    values: np.ndarray

    def append(self, keys, values):
        self.keys = np.concatenate([self.keys, keys], axis=1)
        self.values = np.concatenate([self.values, values], axis=1)


def first_weights(generator):
    def matrix(rows, columns=FEATURES):
        return (generator.standard_normal((rows, columns)) / np.sqrt(FEATURES)).astype(np.float32)

    square = [matrix(FEATURES) for _ in range(4)]
    embedding = (matrix(VOCABULARY) * np.sqrt(FEATURES)).astype(np.float32)
    gain = np.exp(generator.uniform(*np.log(GAINS), VOCABULARY)).astype(np.float32)
    return Weights(embedding, matrix(LONGEST) * 2, *square, matrix(VOCABULARY), gain)


def updated(weights, generator, size):
    """One step of an optimiser: every tensor moves by `size` of its own scale."""
    moved = {}
    for one in fields(Weights):
        tensor = getattr(weights, one.name)
        if one.name != "gain_V":
            tensor = tensor + size * tensor.std() * generator.standard_normal(tensor.shape)
        moved[one.name] = tensor.astype(np.float32)
    return replace(weights, **moved)


def bfloat16(values):
    """Rounded to the nearest bfloat16, as float32."""
    bits = np.ascontiguousarray(values, dtype=np.float32).view(np.uint32)
    rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) & np.uint32(0xFFFF0000)
    return rounded.view(np.float32)


def exact(values):
    return np.asarray(values, dtype=np.float32)


def extend(weights, tokens_BN, cache, body, kept=None):
    """Feed N more tokens: their features (B, N, D), and their keys and values in the cache.

    body: rounds what the body computes. kept: rounds keys and values, where the cache has another precision."""
    kept = kept or body
    begin = 0 if cache is None else cache.keys.shape[1]
    places = np.arange(begin, begin + tokens_BN.shape[1])
    inputs = body(weights.embedding_VD[tokens_BN] + weights.position_PD[places])
    keys, values = kept(inputs @ weights.key_DD), kept(inputs @ weights.value_DD)
    if cache is None:
        cache = Cache(keys, values)
    else:
        cache.append(keys, values)
    scores = np.einsum("bnd,btd->bnt", inputs @ weights.query_DD, cache.keys) / np.sqrt(FEATURES)
    scores = np.where(np.arange(cache.keys.shape[1]) <= places[:, None], scores, -np.inf)
    attention = np.exp(scores - scores.max(axis=-1, keepdims=True))
    attention = body(attention / attention.sum(axis=-1, keepdims=True))
    read = body(np.einsum("bnt,btd->bnd", attention, cache.values))
    mixed = body(np.tanh((inputs + 2.0 * read) @ weights.mix_DD) + 0.5 * read)
    size = np.sqrt(np.mean(mixed**2, axis=-1, keepdims=True))
    return body(mixed / size * weights.gain_V[tokens_BN][..., None]), cache


def logits_of(weights, features, head):
    """(..., V). head: rounds the logits."""
    return head(features @ weights.head_VD.T + np.float32(LEVEL))


def log_softmax(logits):
    shifted = logits.astype(np.float64) - logits.max(axis=-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
