"""A trainer on the toy model: it scores the tokens of a rollout in one forward pass, in float32."""

from dataclasses import dataclass

import numpy as np
from toy_engine import TOP
from toy_model import exact, extend, log_softmax, logits_of


@dataclass(frozen=True)
class Scores:
    """(B, T) logprobs and entropies of the tokens, (B, T, TOP) best tokens and their logprobs."""

    logprobs_BT: np.ndarray
    entropy_BT: np.ndarray
    top_ids_BTK: np.ndarray
    top_logprobs_BTK: np.ndarray


def score(weights, rollout, temperature=1.0, replay=False, head=exact, tokens_BT=None):
    """The trainer's logprobs. replay: over the tokens that the sampler kept, which the engine returned. tokens_BT: what
    it takes the completions to be, where that is not what was sampled."""
    tokens_BT = rollout.tokens_BT if tokens_BT is None else tokens_BT
    both = np.concatenate([rollout.prompts_BP, tokens_BT], axis=1)
    features, _ = extend(weights, both, None, exact)
    first = rollout.prompts_BP.shape[1] - 1
    logits = logits_of(weights, features[:, first:-1], head)
    if replay:
        logits = np.where(rollout.mask_BTV, logits, -np.inf)
    logprobs = log_softmax(logits / temperature)
    best = np.argsort(-logprobs, axis=-1, kind="stable")[..., :TOP]
    chosen = np.take_along_axis(logprobs, tokens_BT[..., None], axis=-1)[..., 0]
    entropy = -np.sum(np.exp(logprobs) * np.maximum(logprobs, -1e3), axis=-1)
    return Scores(chosen, entropy, best, np.take_along_axis(logprobs, best, axis=-1))
