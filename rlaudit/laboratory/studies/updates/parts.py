"""Which parts of the model an update reached, by reading the worker back and by scores.

Two witnesses, and neither is believed alone:
    read back   a parameter's bytes, and what its layer answers to a probe: names every tensor, one worker only
    scores      tokens of a cold cache under the new weights, under the old ones, and under the mixture that was read
Where the two disagree the parts are inconclusive. A layer whose parameter is new and whose answer is old computes with
a packed or cast copy that the update did not reach: the checksum of that engine would have called it updated.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from rlaudit.laboratory.studies.updates.records import Flight, ReadBack
from rlaudit.laboratory.studies.updates.scoring import Scorebook, k3_of, pairs_of
from rlaudit.layers import Verdict
from rlaudit.measurement.measure import Measurement

HEAD = "lm_head.weight"
EMBEDDING = "model.embed_tokens.weight"


@dataclass(frozen=True)
class PartsRead:
    """What one read back says.

    A parameter that is of no version as a whole counts by its tensors.

    new: parameters that a witness proves new and none old; new_by_bytes, new_by_answer: by each of the witnesses. old:
    checkpoint names of tensors that did not get to the believed version. of_no_version: tensors whose layer answers,
    beside others of known versions, with what is of none: memory that no update wrote, or an update in part. unread:
    parameters that neither witness could tell. old_behind_new_bytes: old although their bytes are new.
    """

    believed: str
    parameters: int
    new: int
    new_by_bytes: int
    new_by_answer: int
    old: tuple[str, ...]
    of_no_version: tuple[str, ...]
    unread: tuple[str, ...]
    old_behind_new_bytes: tuple[str, ...]
    logits: str | None


@dataclass(frozen=True)
class K3Under:
    """k3 of tokens of a cold cache under the new weights, the old ones, and the mixture that was read back."""

    new: Measurement | None
    old: Measurement | None
    read: Measurement | None


@dataclass(frozen=True)
class Parts:
    """Which parameters an update reached. `sure`: the figures."""

    verdict: Verdict
    because: str
    sure: str
    read_back: PartsRead | None
    k3_under: K3Under = K3Under(None, None, None)


def read_parts(read: ReadBack) -> PartsRead | None:
    """Sort the parameters of a read back; None if nothing could be read."""
    if not read.parameters:
        return None
    believed = read.believed
    old, unread, hidden, of_no_version = [], [], [], []
    new = by_bytes = by_answer = 0
    for name, parameter in read.parameters.items():
        ways = [parameter[way] for way in ("bytes", "probe") if parameter[way] is not None]
        parts = parameter.get("parts") or {}
        by_bytes += parameter["bytes"] == believed
        by_answer += parameter["probe"] == believed
        if parts:
            old += [tensor for tensor, held in parts.items() if held not in (None, believed)]
            of_no_version += [tensor for tensor, held in parts.items() if held is None]
        elif not ways:
            unread.append(name)
        elif any(way != believed for way in ways):
            old += list(parameter["tensors"]) or [name]
            if parameter["bytes"] == believed:
                hidden.append(name)
        else:
            new += 1
    if read.logits is not None and read.logits != believed and HEAD not in old:
        old.append(HEAD)
        hidden.append(HEAD)
    return PartsRead(
        believed,
        len(read.parameters),
        new,
        by_bytes,
        by_answer,
        tuple(old),
        tuple(of_no_version),
        tuple(unread),
        tuple(hidden),
        read.logits,
    )


def judge_parts(
    read: PartsRead | None, cold: Sequence[Flight], book: Scorebook, effective: str | None, margin: float
) -> Parts:
    """Let scores of cold tokens confirm what was read. `effective` names the checkpoint of the mixture that was read,
    None if everything was read as new."""
    k3 = K3Under(
        new=_under(cold, book, read.believed if read else "1"),
        old=_under(cold, book, "0"),
        read=_under(cold, book, effective) if effective else None,
    )
    verdict, because = _judge(read, k3, margin)
    return Parts(verdict, because, _figures(read, k3), read, k3)


def _judge(read: PartsRead | None, k3: K3Under, margin: float) -> tuple[Verdict, str]:
    new, old = k3.new, k3.old
    if new is None or new.low is None or new.high is None:
        return Verdict.NOT_TESTED, "nothing was sampled after the update"
    if new.high < margin:
        return _judge_fit(read, old, margin)
    if read is not None and k3.read is not None and _below(k3.read, margin):
        return Verdict.MISMATCH, f"{summary(read.old)} kept the old weights"
    if old is not None and _below(old, margin):
        return Verdict.MISMATCH, "nothing was updated: the scores fit the old weights"
    if new.low > margin:
        odd = f"{summary(read.of_no_version)} holds what is of no version" if read and read.of_no_version else ""
        return Verdict.MISMATCH, odd or "the scores do not fit the new weights, and nothing that was read explains it"
    return Verdict.INCONCLUSIVE, f"the interval of k3 under the new weights reaches over {margin:.2g}: more prompts"


def _judge_fit(read: PartsRead | None, old: Measurement | None, margin: float) -> tuple[Verdict, str]:
    """Judge parts whose scores fit the new weights: does that prove anything?"""
    if read is not None and read.old:
        return Verdict.INCONCLUSIVE, f"read back as old: {summary(read.old)}; yet the scores fit the new weights"
    if old is not None and old.low is not None and old.low < margin:
        return Verdict.INCONCLUSIVE, "the step between the versions is too small to tell them apart here"
    return Verdict.MATCH, "everything is updated" if read else "the scores fit the new weights; nothing was read"


def _below(found: Measurement, margin: float) -> bool:
    return found.high is not None and found.high < margin


def _figures(read: PartsRead | None, k3: K3Under) -> str:
    figures = []
    if read is not None:
        behind = summary(read.old_behind_new_bytes)
        hidden = f"; {behind} answers with old weights behind new bytes" if behind else ""
        foreign = f"; of no version: {summary(read.of_no_version)}" if read.of_no_version else ""
        unread = f"; {len(read.unread)} could not be read" if read.unread else ""
        figures.append(
            f"{read.new} of {read.parameters} parameters read back as new ({read.new_by_bytes} by their bytes, "
            f"{read.new_by_answer} by their layer's answer){hidden}{foreign}{unread}"
        )
    if k3.new is not None:
        figures.append(f"k3 {_short(k3.new)} under the new weights")
    if k3.read is not None:
        figures.append(f"{_short(k3.read)} under the new ones with that part old")
    return "; ".join(figures)


def summary(names: Sequence[str], shown: int = 3) -> str:
    """Return a few names in words: the head and the embedding by what they are."""
    words = [{HEAD: "the head", EMBEDDING: "the embedding"}.get(name, name) for name in names]
    more = f" and {len(words) - shown} more" if len(words) > shown else ""
    return ", ".join(words[:shown]) + more


def _under(flights: Sequence[Flight], book: Scorebook, checkpoint: str) -> Measurement | None:
    scored = [flight for flight in flights if book.has(checkpoint, flight)]
    return k3_of(pairs_of(scored, lambda flight: book.logprobs(checkpoint, flight)))


def _short(found: Measurement) -> str:
    if found.low is None or found.high is None or found.value is None:
        return "unknown" if found.value is None else f"{found.value:.2g}"
    return f"{found.value:.2g} [{found.low:.2g}, {found.high:.2g}]"
