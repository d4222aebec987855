"""A world of ids and one logprob a token, and a fault that can be planted in it."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from worlds.plant import Dose, Edit
from worlds.sibling_tree import Transform, at, tree

from rlaudit.layers import Verdict
from rlaudit.meaning.broken_groups import Broken
from rlaudit.meaning.candidates import RAW, Semantics
from rlaudit.meaning.meaning import Kind
from rlaudit.tokens.token_batch import TokenBatch

# What a match takes of contexts as flat as these: half as many prompts leave 2 % of the mass open every other time.
PROMPTS, SAMPLES, LENGTH = 1024, 16, 64
# Scales of exponential logits, and the noise of a logit between two engines with which nothing is wrong.
SHARPNESS = (1.0, 9.0)
NOISE = 1e-3
# Nothing is named and nothing matches.
OPEN = frozenset(kind for kind in Kind if kind.verdict in {Verdict.INCONCLUSIVE, Verdict.NOTHING_FOUND})
# A filter is one of the parameters that neither side knows of; a penalty is no filter.
HIDDEN = frozenset({Kind.HIDDEN_FILTER, Kind.HIDDEN_SAMPLING})


@dataclass(frozen=True)
class SiblingWorld:
    """sampled, reported, trainer: what tokens are drawn from, and what either side says of them. asked, told: what the
    engine was asked for and the trainer is said to compute. copied, strangers, drift: as in `worlds/sibling_tree.py`.
    edits: changes of the recorded table.
    """

    sampled: Semantics = RAW
    reported: Semantics = RAW
    trainer: Semantics = RAW
    asked: Semantics = RAW
    told: Semantics = RAW
    copied: float = 0.0
    strangers: float = 0.0
    drift: float = 0.0
    edits: tuple[Edit, ...] = ()

    def with_edit(self, edit: Edit) -> "SiblingWorld":
        """Another change of the record."""
        return replace(self, edits=(*self.edits, edit))

    def table(self, rng: np.random.Generator) -> TokenBatch:
        """What a user would have of it."""
        batch = tree(
            rng,
            PROMPTS,
            SAMPLES,
            LENGTH,
            sampler=_transform(self.sampled),
            report=_transform(self.reported),
            trainer=_transform(self.trainer),
            sharpness=SHARPNESS,
            noise=NOISE,
            copied=self.copied,
            strangers=self.strangers,
            drift=self.drift,
        )
        for edit in self.edits:
            batch = edit(batch, rng)
        return batch


@dataclass(frozen=True)
class SiblingFault:
    """doses: what low, middle and top mean, for people. plant(dose): the world with the fault in it.

    kinds: what may be said of it; what is open counts as nothing said. broken: of which one has to be seen.
    """

    name: str
    doses: tuple[str, ...]
    plant: Callable[[Dose], SiblingWorld]
    kinds: frozenset[Kind]
    broken: frozenset[Broken] = frozenset()


def _transform(theta: Semantics) -> Transform:
    return at(theta.temperature, theta.top_p, theta.top_k, theta.min_p, theta.repetition_penalty)
