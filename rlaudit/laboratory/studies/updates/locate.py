"""Finds the parts of a model that kept old weights by scores alone, where a worker cannot be read back.

The parts stand in the order of the forward pass: embedding, layers, final norm, head. A mixture takes some parts from
the old weights. To first order each old part moves the logprob of every token by a pattern of its own, so that the
pattern of a group, regressed on what the engine's logprobs miss under the new weights, gives the share of the group
that is old. Groups with such a share are halved, the others dropped: one old layer of 32 takes some sixteen mixtures.

Covered: any set of parts. The answer is checked: the mixture of all parts found has to fit, else nothing is named.
Not covered: steps between versions that are too large for first order; `fits` is False then.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from rlaudit.arrays import Floats
from rlaudit.metrics.k3 import k3

Score = Callable[[Sequence[str]], Floats]
Part = tuple[str, tuple[str, ...]]
# Of the parts of a group that could be old, less than half a part is noise.
LEAST_PARTS = 0.5
MOST_MIXTURES = 40


@dataclass(frozen=True)
class Located:
    """The parts that are old, their tensors, and whether the mixture with them fits (k3 in nats)."""

    parts: tuple[str, ...]
    tensors: tuple[str, ...]
    k3: float
    fits: bool
    mixtures: int


def parts_in_order(tensors: Sequence[str]) -> list[Part]:
    """(part, its tensors) in the order of the forward pass; the layers are found by the number in their names."""
    layers: dict[tuple[str, int], list[str]] = {}
    before, after, head = [], [], []
    for name in tensors:
        words = name.split(".")
        number = next((place for place, word in enumerate(words) if word.isdigit()), None)
        if number is not None:
            layers.setdefault((".".join(words[:number]), int(words[number])), []).append(name)
        elif "embed" in name:
            before.append(name)
        elif "head" in name:
            head.append(name)
        else:
            after.append(name)
    ordered = [(f"{stem}.{number}", tuple(names)) for (stem, number), names in sorted(layers.items())]
    found = [("embedding", tuple(before)), *ordered, ("final norm", tuple(after)), ("head", tuple(head))]
    return [part for part in found if part[1]]


def locate_old(parts: Sequence[Part], rollout_logprobs_T: Floats, score: Score, margin: float) -> Located:
    """Name the old parts. `score(tensors)` gives trainer logprobs (T,) with these tensors taken from the old weights;
    without any it gives those of the new weights."""
    found: list[Part] = []
    base_T = score([])
    asked = 0

    def old_parts(group: Sequence[Part]) -> float:
        """How many parts of a group are old, as far as the scores tell once those already found are taken as old."""
        nonlocal asked
        asked += 1
        pattern_T = score(_tensors([*found, *group])) - base_T
        size = float(pattern_T @ pattern_T)
        return 0.0 if size == 0 else len(group) * float((rollout_logprobs_T - base_T) @ pattern_T) / size

    # The ends weigh more than a layer does: they are asked for alone before any group is halved.
    ends = [[part] for part in parts if part[0] in ("embedding", "final norm", "head")]
    layers = [part for part in parts if [part] not in ends]
    waiting: list[Sequence[Part]] = [*ends, layers] if layers else [*ends]
    while waiting and asked < MOST_MIXTURES:
        group = waiting.pop(0)
        if old_parts(group) < LEAST_PARTS:
            continue
        if len(group) == 1:
            found += group
            base_T = score(_tensors(found))
        else:
            waiting += [group[: len(group) // 2], group[len(group) // 2 :]]
    ordered = [part for part in parts if part in found]
    value = float(np.mean(k3(score(_tensors(ordered)) - rollout_logprobs_T)))
    names = tuple(name for name, _ in ordered)
    return Located(names, tuple(_tensors(ordered)), value, bool(names) and value < margin, asked)


def _tensors(group: Sequence[Part]) -> list[str]:
    return [tensor for _, tensors in group for tensor in tensors]
