"""One setting from its clauses: what is known of it, what it may be, and what is written without effect.

Beside the clauses, `lost` and the fields of a release say what never arrives.
"""

from collections.abc import Iterable
from typing import Any

from rlaudit.configs.draft import Settings, known
from rlaudit.configs.syntax.node import entries
from rlaudit.dialects.clause import LOSSES, Found, Said, found
from rlaudit.dialects.condition import Truth, both
from rlaudit.dialects.framework_code import filled
from rlaudit.dialects.reading import Reading
from rlaudit.dialects.span import written_fields
from rlaudit.settings.rollout_config import Loss
from rlaudit.unknown import Unknown
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
    if "copy has" in said and not reading.code.has(filled(said["copy has"], None, reading.tree.call)):
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


def lose(reading: Reading, said: Said) -> None:
    """Keep something that is written and never arrives."""
    if "others of" in said:
        _lose_others(reading, said)
        return
    node = reading.node(said["key"])
    truth = reading.holds(said.get("if"))
    if node is None or truth is False or ("unless" in said and known(node, said["unless"]) == said["unless"]):
        return
    name = said.get("name", said["key"].rpartition(".")[2].lstrip("@"))
    reading.draft.lose(name, node, LOSSES[said["as"]], reading.sentence(said), certain=truth is True)


def _lose_others(reading: Reading, said: Said) -> None:
    """Keep the keys of a mapping that neither the dialect nor the entry names."""
    truth = reading.holds(said.get("if"))
    if truth is False:
        return
    named = {*said.get("but", ()), *reading.spec.keys_below(said["others of"])}
    arguments = Catalogue.at(reading.vllm).engine if said.get("arguments") else None
    for key, node in entries(reading.node(said["others of"])):
        if key not in named and (arguments is None or key in arguments):
            reading.draft.lose(key, node, LOSSES[said["as"]], reading.sentence(said), certain=truth is True)


def take_span(reading: Reading) -> None:
    """Say which releases these are, and which written fields none of them has any more."""
    span, draft, said = reading.span, reading.draft, reading.spec.said.get("release", {})
    draft.releases, draft.refused_pin, shown = span.releases, span.refused, span.shown(reading.of)
    if span.is_empty:
        draft.not_seen.append(f"{shown}: what is said of the trainer is said of the later release")
    elif span.starts is not None:
        others = f"those from {span.starts} on run with this vLLM as well"
        draft.not_seen.append(f"the {reading.of} release: taken is {shown}; {others}")
    for name in written_fields(said, reading.holds, reading.is_written):
        field, node = said["fields"][name], reading.node(name)
        if node is not None and span.lacks(field):
            certain = span.lacks_for_certain(field)
            release = span.starts if certain and span.starts is not None else span.first
            who = f"{reading.of} {release} or later, which this vLLM needs," if span.is_empty else shown
            reason = f"{who} has no {name} any more, and its parser stops there"
            draft.lose(field.get("name", name), node, Loss.REFUSED, reason, certain=certain)
