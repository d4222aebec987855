"""One setting from its clauses: what is known of it, what it may be, and what is written without effect."""

from collections.abc import Iterable
from typing import Any

from rlaudit.configs.draft import Settings
from rlaudit.configs.rollout_config import TRAINER, Loss
from rlaudit.configs.syntax.node import Unknown
from rlaudit.dialects.clause import Found, Said, found
from rlaudit.dialects.condition import Truth, both
from rlaudit.dialects.framework_code import filled
from rlaudit.dialects.reading import Reading
from rlaudit.vllm.catalogue import Catalogue


def put(reading: Reading, kind: str, name: str, entry: Said | list[Said]) -> None:
    """Settle one setting from its clauses."""
    possible: list[tuple[Found, Said]] = []
    reason: Unknown | None = None
    for said in clauses(entry):
        truth = _applies(reading, said)
        says = found(reading.with_null(kind, said), reading) if truth is not False else None
        if says is None:
            continue
        possible.append((says, said))
        if truth is True:
            break
        if reason is None and isinstance(truth, Unknown):
            reason = truth
    else:
        if reason is not None:
            possible.append((Found(None, is_nothing=True), {}))
    if not possible or (kind == "engine" and _is_left_out(reading, name, possible)):
        return
    first, said = possible[0]
    if reason is None or all(_same(first, other) for other, _ in possible):
        _settle(reading, kind, name, first, said)
    else:
        _leave_open(reading, kind, name, [one for one, _ in possible], reason)


def _applies(reading: Reading, said: Said) -> Truth:
    """Return whether a clause is one of this copy, or release, and its condition holds."""
    if not reading.code.has(said.get("copy has")):
        return False
    truth = reading.holds(said.get("if"))
    if reading.code.checkout is not None and "at" in said and not {"since", "before"}.isdisjoint(said):
        return both(truth, reading.code.has(said["at"]))
    for bound, sign in (("since", ">="), ("before", "<")):
        if bound in said:
            truth = both(truth, reading.compare("release", sign, said[bound]))
    return truth


def _is_left_out(reading: Reading, name: str, possible: list[tuple[Found, Said]]) -> bool:
    """Return whether the framework passes an argument only to a vLLM that has it, and this one has not."""
    said = reading.spec.said.get("guarded")
    if said is None or name not in said.get("arguments", (name,)) or name in Catalogue.at(reading.vllm).engine:
        return False
    node = next((one.node for one, _ in possible if one.node is not None), None)
    if node is not None:
        reason = f"vLLM {reading.vllm} has no argument {name}: {reading.sentence(said)}"
        reading.draft.lose(name, node, Loss.UNKNOWN_KEY, reason)
    return True


def _settle(reading: Reading, kind: str, name: str, says: Found, said: Said) -> None:
    if says.is_nothing:
        getattr(reading.draft, kind).pop(name, None)
        return
    if says.loss is not None and says.node is not None:
        reading.draft.lose(name, says.node, says.loss, reading.sentence(said))
        return
    at = filled(said.get("at", said.get("copy has", {})), says.value, reading.tree.call)
    gone = reading.code.is_gone(at) if says.node is None or "value" in said or "map" in said else ""
    gone = "" if isinstance(says.value, Unknown) else gone
    value = Unknown(gone) if gone else says.value
    note = gone or reading.note(says, said)
    settings: Settings = getattr(reading.draft, kind)
    if kind == "trainer" and name not in TRAINER:
        raise KeyError(f"{name} is no trainer fact")
    if says.node is None:
        settings.by_code(name, value, note)
    else:
        settings.by_file(name, says.node, value, note)
    if reading.code.checkout is not None and at:
        reading.draft.decided[name] = reading.code.line_of(at) or gone


def _leave_open(reading: Reading, kind: str, name: str, possible: list[Found], reason: Unknown) -> None:
    """Say what a setting may be, if conditions that are not known decide."""
    # A clause that leaves it open by itself says what it may be.
    opens = [one for one in possible if one.node is None and isinstance(one.value, Unknown)]
    values = list(dict.fromkeys(_spelt(one) for one in opens[-1:] or possible))
    sentence = f"{' or '.join(values)}: {reason.reason}"
    node = next((one.node for one in possible if one.node is not None), None)
    lost = next((one for one in possible if one.loss is not None and one.node is not None), None)
    # What may arrive as well is open, which says enough; what may stop the start is more.
    arrives = any(one.node is not None and one.loss is None for one in possible)
    if lost is not None and arrives and lost.loss is not Loss.REFUSED:
        lost = None
    if lost is not None and lost.node is not None and lost.loss is not None:
        reading.draft.lose(name, lost.node, lost.loss, sentence, certain=False)
    # What vLLM takes by itself is not known here, and so not all that the setting may be.
    is_left = any(one.is_nothing or one.loss is not None for one in possible)
    among = () if is_left else tuple(one.value for one in possible)
    value = Unknown(sentence, among if _are_plain(among) else ())
    settings: Settings = getattr(reading.draft, kind)
    if node is None:
        settings.by_code(name, value, sentence)
    else:
        settings.by_file(name, node, value, sentence)


def clauses(entry: Said | list[Said]) -> Iterable[Said]:
    """Return the clauses of an entry, which may be one."""
    return entry if isinstance(entry, list) else (entry,)


def _same(left: Found, right: Found) -> bool:
    if (left.is_nothing, left.loss) != (right.is_nothing, right.loss):
        return False
    if isinstance(left.value, Unknown) or isinstance(right.value, Unknown):
        return left.value is right.value
    return bool(left.value == right.value) and isinstance(left.value, bool) == isinstance(right.value, bool)


def _spelt(one: Found) -> str:
    if one.loss is not None:
        return "without effect"
    if one.is_nothing:
        return "left to vLLM"
    return one.value.reason if isinstance(one.value, Unknown) else str(one.value)


def _are_plain(values: tuple[Any, ...]) -> bool:
    return not any(isinstance(value, Unknown | dict | list) for value in values)
