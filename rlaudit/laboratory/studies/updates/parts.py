"""Which parts of the model an update reached, by reading the worker back and by scores.

Two witnesses, and neither is believed alone:
    read back   a parameter's bytes, and what its layer answers to a probe: names every tensor, one worker only
    scores      tokens of a cold cache under the new weights, under the old ones, and under the mixture that was read
Where the two disagree the parts are inconclusive. A layer whose parameter is new and whose answer is old computes with
a packed or cast copy that the update did not reach: the checksum of that engine would have called it updated.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rlaudit.laboratory.studies.updates.records import Flight, ReadBack
from rlaudit.laboratory.studies.updates.scoring import Scorebook, k3_of, pairs_of
from rlaudit.layers import Verdict
from rlaudit.measurement.measure import Measurement
from rlaudit.report.plain import plain

HEAD = "lm_head.weight"
EMBEDDING = "model.embed_tokens.weight"


@dataclass(frozen=True)
class PartsRead:
    """What one read back says. `old`: checkpoint names of tensors that did not get to the believed version.

    A parameter that is of no version as a whole is told by its tensors.

    new: parameters that a witness proves new and none old; by_bytes, by_answer: by each of the witnesses. unread:
    parameters that neither could tell. hidden: old although their bytes are new. foreign: tensors whose layer answers,
    beside others of known versions, with what is of none: memory that no update wrote, or an update in part.
    """

    believed: str
    parameters: int
    new: int
    by_bytes: int
    by_answer: int
    old: tuple[str, ...]
    unread: tuple[str, ...]
    hidden: tuple[str, ...]
    logits: str | None
    checksums: Mapping[str, str]
    foreign: tuple[str, ...] = ()


@dataclass(frozen=True)
class Parts:
    """What was updated: the read back, and k3 of cold tokens under new, old and read weights. `sure`: the figures."""

    verdict: Verdict
    because: str
    sure: str
    read: PartsRead | None
    under_new: Measurement | None
    under_old: Measurement | None
    under_read: Measurement | None

    @property
    def stale(self) -> bool:
        """Whether something was convicted of being old."""
        return self.verdict is Verdict.MISMATCH


def read_parts(read: ReadBack) -> PartsRead | None:
    """Sort the parameters of a read back; None where nothing could be read."""
    if read.believed is None or not read.parameters:
        return None
    believed = read.believed
    old, unread, hidden, foreign, checksums = [], [], [], [], {}
    new = by_bytes = by_answer = 0
    for name, told in read.parameters.items():
        ways = [told[way] for way in ("bytes", "probe") if told[way] is not None]
        parts = told.get("parts") or {}
        if told["sha256"]:
            checksums[name] = told["sha256"]
        by_bytes += told["bytes"] == believed
        by_answer += told["probe"] == believed
        if parts:
            old += [tensor for tensor, held in parts.items() if held not in (None, believed)]
            foreign += [tensor for tensor, held in parts.items() if held is None]
        elif not ways:
            unread.append(name)
        elif any(way != believed for way in ways):
            old += list(told["tensors"]) or [name]
            if told["bytes"] == believed:
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
        tuple(unread),
        tuple(hidden),
        read.logits,
        checksums,
        tuple(foreign),
    )


def state_left(read: ReadBack) -> dict[str, int]:
    """How many parameters hold which version after a failed update: {"version 1": 60, "no data": 4, ...}."""
    counted: dict[str, int] = {}
    for told in read.parameters.values():
        held = told["probe"] if told["probe"] is not None else told["bytes"]
        unknown = "not read" if told["data"] else "no data"
        name = unknown if held is None else f"version {held}"
        counted[name] = counted.get(name, 0) + 1
    return dict(sorted(counted.items()))


def judge_parts(
    read: PartsRead | None, cold: Sequence[Flight], book: Scorebook, effective: str | None, margin: float
) -> Parts:
    """Let scores of cold tokens confirm what was read. `effective` names the checkpoint of the mixture that was read,
    None where everything was read as new."""
    new = _under(cold, book, read.believed if read else "1")
    old = _under(cold, book, "0")
    mixed = _under(cold, book, effective) if effective else None
    verdict, because = _judge(read, new, old, mixed, margin)
    return Parts(verdict, because, _figures(read, new, mixed), read, new, old, mixed)


def _judge(
    read: PartsRead | None, new: Measurement | None, old: Measurement | None, mixed: Measurement | None, margin: float
) -> tuple[Verdict, str]:
    if new is None or new.low is None or new.high is None:
        return Verdict.NOT_TESTED, "nothing was sampled after the update"
    if new.high < margin:
        return _judge_fit(read, old, margin)
    if read is not None and mixed is not None and _below(mixed, margin):
        return Verdict.MISMATCH, f"{summary(read.old)} kept the old weights"
    if old is not None and _below(old, margin):
        return Verdict.MISMATCH, "nothing was updated: the scores fit the old weights"
    if new.low > margin:
        named = f"{summary(read.foreign)} holds what is of no version" if read is not None and read.foreign else ""
        return Verdict.MISMATCH, named or "the scores do not fit the new weights, and nothing that was read explains it"
    return Verdict.INCONCLUSIVE, f"the interval of k3 under the new weights reaches over {margin:.2g}: more prompts"


def _judge_fit(read: PartsRead | None, old: Measurement | None, margin: float) -> tuple[Verdict, str]:
    """The scores fit the new weights; whether that proves anything."""
    if read is not None and read.old:
        return Verdict.INCONCLUSIVE, f"read back as old: {summary(read.old)}; yet the scores fit the new weights"
    if old is not None and old.low is not None and old.low < margin:
        return Verdict.INCONCLUSIVE, "the step between the versions is too small to tell them apart here"
    return Verdict.MATCH, "everything is updated" if read else "the scores fit the new weights; nothing was read"


def _below(found: Measurement, margin: float) -> bool:
    return found.high is not None and found.high < margin


def _figures(read: PartsRead | None, new: Measurement | None, mixed: Measurement | None) -> str:
    said = []
    if read is not None:
        hidden = f"; {summary(read.hidden)} answers with old weights behind new bytes" if read.hidden else ""
        foreign = f"; of no version: {summary(read.foreign)}" if read.foreign else ""
        unread = f"; {len(read.unread)} could not be read" if read.unread else ""
        said.append(
            f"{read.new} of {read.parameters} parameters read back as new ({read.by_bytes} by their bytes, "
            f"{read.by_answer} by their layer's answer){hidden}{foreign}{unread}"
        )
    if new is not None:
        said.append(f"k3 {_short(new)} under the new weights")
    if mixed is not None:
        said.append(f"{_short(mixed)} under the new ones with that part old")
    return "; ".join(said)


def summary(names: Sequence[str], shown: int = 3) -> str:
    """A few names in words: the head and the embedding by what they are."""
    said = [{HEAD: "the head", EMBEDDING: "the embedding"}.get(name, name) for name in names]
    more = f" and {len(said) - shown} more" if len(said) > shown else ""
    return ", ".join(said[:shown]) + more


def _under(flights: Sequence[Flight], book: Scorebook, checkpoint: str) -> Measurement | None:
    scored = [flight for flight in flights if book.has(checkpoint, flight)]
    return k3_of(pairs_of(scored, lambda flight: book.logprobs(checkpoint, flight)))


def _short(found: Measurement) -> str:
    if found.low is None or found.high is None or found.value is None:
        return "unknown" if found.value is None else f"{found.value:.2g}"
    return f"{found.value:.2g} [{found.low:.2g}, {found.high:.2g}]"


def as_dict(parts: Parts) -> dict[str, Any]:
    """JSON-able."""
    read = parts.read
    return {
        "verdict": parts.verdict.value,
        "because": parts.because,
        "sure": parts.sure,
        "read_back": None
        if read is None
        else {
            "believed": read.believed,
            "parameters": read.parameters,
            "new": read.new,
            "new_by_bytes": read.by_bytes,
            "new_by_answer": read.by_answer,
            "old": list(read.old),
            "of_no_version": list(read.foreign),
            "unread": len(read.unread),
            "old_behind_new_bytes": list(read.hidden),
            "logits": read.logits,
            "checksums": dict(read.checksums),
        },
        "k3_under": {
            name: plain(found)
            for name, found in (("new", parts.under_new), ("old", parts.under_old), ("read", parts.under_read))
        },
    }
