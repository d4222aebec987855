"""Which parts of the model an update reached, by reading the worker's weights back and by scores.

Two witnesses must agree, or the parts are inconclusive:
    read back   fingerprints of tensors, and the head's answer to a probe: names them, one worker only
    scores      tokens of a cold cache under the new weights, under the old ones, and under the mixture that was read
A head whose parameter is new and whose answer is old computes with a packed or cast copy that the update did not
reach: no fingerprint of its weights shows that.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rlaudit.laboratory.studies.updates.cases import COLD_AFTER
from rlaudit.laboratory.studies.updates.parts_read import HEAD, PartsRead
from rlaudit.laboratory.studies.updates.scored_tokens import ScoredTokens
from rlaudit.layers import Verdict
from rlaudit.statistics.estimate import figure
from rlaudit.statistics.measurement.measure import Measurement

EMBEDDING = "model.embed_tokens.weight"


@dataclass(frozen=True)
class K3Under:
    """k3 of tokens of a cold cache under the new weights, the old ones, and the mixture that was read back."""

    new: Measurement | None
    old: Measurement | None
    read: Measurement | None


@dataclass(frozen=True)
class Parts:
    """Which tensors an update reached."""

    verdict: Verdict
    because: str
    # The figures.
    sure: str
    read_back: PartsRead | None
    k3_under: K3Under = K3Under(None, None, None)


def judge_parts(parts: PartsRead | None, tokens: ScoredTokens, margin: float, new: str = "1") -> Parts:
    """Check a read back by the scores of cold tokens. new: the checkpoint that should be in force."""
    cold_T = np.array([flight.run == COLD_AFTER for flight in tokens.flights], dtype=bool)[tokens.sequence_T]
    read = None if tokens.held == new else tokens.k3(cold_T, tokens.under(tokens.held))
    k3 = K3Under(tokens.k3(cold_T, tokens.under(new)), tokens.k3(cold_T, tokens.under("0")), read)
    verdict, because = _judge(parts, k3, margin)
    return Parts(verdict, because, _figures(parts, k3), parts, k3)


def _judge(parts: PartsRead | None, k3: K3Under, margin: float) -> tuple[Verdict, str]:
    new, old = k3.new, k3.old
    if new is None or new.low is None or new.high is None:
        return Verdict.NOT_TESTED, "nothing was sampled after the update"
    if new.high < margin:
        return _judge_fit(parts, old, margin)
    if parts is not None and k3.read is not None and _is_below(k3.read, margin):
        return Verdict.MISMATCH, f"{summary(parts.old)} kept the old weights"
    if old is not None and _is_below(old, margin):
        return Verdict.MISMATCH, "nothing was updated: the scores fit the old weights"
    if new.low > margin:
        return Verdict.MISMATCH, _without_explanation(parts)
    return Verdict.INCONCLUSIVE, f"the interval of k3 under the new weights reaches over {margin:.2g}: more prompts"


def _without_explanation(parts: PartsRead | None) -> str:
    """Return why scores fit neither version, as far as the read back tells."""
    if parts is not None and parts.of_no_version:
        return f"{summary(parts.of_no_version)} holds values of no known version"
    return "the scores do not fit the new weights, and the weights that were read do not explain this"


def _judge_fit(parts: PartsRead | None, old: Measurement | None, margin: float) -> tuple[Verdict, str]:
    """Judge parts whose scores fit the new weights: that proves an update only if the old ones do not fit."""
    if parts is not None and parts.old:
        return Verdict.INCONCLUSIVE, f"read back as old: {summary(parts.old)}; yet the scores fit the new weights"
    if old is not None and old.low is not None and old.low < margin:
        return Verdict.INCONCLUSIVE, "the step between the versions is too small to tell them apart here"
    return Verdict.MATCH, "everything is updated" if parts else "the scores fit the new weights; nothing was read"


def _is_below(k3: Measurement, margin: float) -> bool:
    return k3.high is not None and k3.high < margin


def _figures(parts: PartsRead | None, k3: K3Under) -> str:
    figures = []
    if parts is not None:
        hidden = "; the head answers with old weights behind its parameter" if parts.old_head_behind else ""
        foreign = f"; values of no known version: {summary(parts.of_no_version)}" if parts.of_no_version else ""
        unread = f"; {len(parts.unread)} could not be read" if parts.unread else ""
        figures.append(f"{parts.new} of {parts.tensors} tensors read back as new{hidden}{foreign}{unread}")
    if k3.new is not None:
        figures.append(f"k3 {_figure(k3.new)} under the new weights")
    if k3.read is not None:
        figures.append(f"{_figure(k3.read)} under the new ones with that part old")
    return "; ".join(figures)


def summary(names: Sequence[str], shown: int = 3) -> str:
    """Return the first names in words: "the head" and "the embedding" for these two tensors."""
    words = [{HEAD: "the head", EMBEDDING: "the embedding"}.get(name, name) for name in names]
    others = f" and {len(words) - shown} more" if len(words) > shown else ""
    return ", ".join(words[:shown]) + others


def _figure(k3: Measurement) -> str:
    return figure(k3.value, k3.low, k3.high)
