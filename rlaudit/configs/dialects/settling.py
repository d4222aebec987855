"""One setting from its clauses: what is known of it, what it may be, and what is written without effect.

Beside the clauses, `lost` and the fields of a release say what never arrives.
"""

from dataclasses import replace

from packaging.version import Version

from rlaudit.configs.dialects.clause import LOSSES, Clause, Outcome, clauses, outcome_of
from rlaudit.configs.dialects.condition import Truth
from rlaudit.configs.dialects.framework_code import filled
from rlaudit.configs.dialects.reading import Reading
from rlaudit.configs.dialects.span import written_fields
from rlaudit.configs.draft import Settings, known
from rlaudit.configs.syntax.node import entries
from rlaudit.settings.rollout_config import Copy, Loss, Lost
from rlaudit.unknown import Unknown
from rlaudit.vllm.catalogue import Catalogue


def put(reading: Reading, kind: str, name: str, entry: Clause | list[Clause]) -> None:
    """Settle one setting from its clauses."""
    possible: list[tuple[Outcome, Clause]] = []
    reason: Unknown | None = None
    for clause in clauses(entry):
        truth = applies(reading, clause)
        outcome = outcome_of(reading.with_null(kind, clause), reading) if truth is not False else None
        if outcome is None:
            continue
        possible.append((outcome, clause))
        if truth is True:
            break
        if reason is None and isinstance(truth, Unknown):
            reason = truth
    else:
        if reason is not None:
            possible.append((Outcome(None, is_nothing=True), {}))
    if not possible or (kind == "engine" and _is_left_out(reading, name, possible)):
        return
    first, clause = possible[0]
    if reason is None or all(_have_same_effect(first, other) for other, _ in possible):
        _settle(reading, kind, name, first, clause)
    else:
        _leave_open(reading, kind, name, [outcome for outcome, _ in possible], reason)


def applies(reading: Reading, clause: Clause) -> Truth:
    """Return whether a clause is of this copy and release, and its condition holds."""
    if "copy has" in clause and not reading.code.has(filled(clause["copy has"], None, reading.tree.call)):
        return False
    truth = reading.holds(clause.get("if"))
    if (
        isinstance(truth, Unknown)
        and "at" in clause
        and reading.code.checkout is not None
        and truth.hangs_on == reading.which
    ):
        # The words of a copy that names no release show which one it is.
        return reading.code.has(filled(clause["at"], None, reading.tree.call))
    return truth


def _is_left_out(reading: Reading, name: str, possible: list[tuple[Outcome, Clause]]) -> bool:
    """Return whether the framework passes an argument only to a vLLM that has it, and this vLLM lacks it."""
    guarded = reading.spec.declared.get("guarded")
    if guarded is None or name in Catalogue.at(reading.vllm).engine:
        return False
    node = next((outcome.node for outcome, _ in possible if outcome.node is not None), None)
    if node is not None:
        reason = f"vLLM {reading.vllm} has no argument {name}: {guarded['because']}"
        reading.draft.lose(name, node, Loss.UNKNOWN_KEY, reason)
    return True


def _settle(reading: Reading, kind: str, name: str, outcome: Outcome, clause: Clause) -> None:
    settings: Settings = getattr(reading.draft, kind)
    before = settings.pop(name, None)
    place = outcome.node.place if outcome.node is not None else None
    is_said = "because" in clause if outcome.is_nothing else before is not None and before.value != outcome.value
    if is_said and before is not None and before.place is not None and before.place != place:
        reason = f"{reading.spec.title} sets {name} by itself"
        reading.draft.lost.append(Lost(name, before.written, before.place, Loss.OVERRULED, reason))
    if outcome.is_nothing:
        return
    if outcome.loss is not None and outcome.node is not None:
        reading.draft.lose(name, outcome.node, outcome.loss, reading.sentence(clause))
        return
    # What a copy lacks is evidence of its own.
    evidence = clause.get("at", {} if "nowhere" in clause else clause.get("copy has", {}))
    at = filled(evidence, outcome.value, reading.tree.call)
    is_open = isinstance(outcome.value, Unknown)
    doubt = "" if is_open else reading.code.doubt(clause, at, outcome.node is not None)
    value = Unknown(doubt) if doubt else outcome.value
    if kind == "environment" and isinstance(value, bool | int):
        value = str(int(value))
    note = doubt or reading.note(outcome, clause)
    if outcome.node is None:
        settings.by_code(name, value, note)
    else:
        settings.by_file(name, outcome.node, value, note)
    if reading.code.checkout is not None and at:
        reading.draft.decided[name] = reading.code.line_of(at) or doubt


def _leave_open(reading: Reading, kind: str, name: str, possible: list[Outcome], reason: Unknown) -> None:
    """Leave a setting open that depends on unknown conditions, with what it may be."""
    # The last clause that is open itself has the reason.
    opens = [outcome for outcome in possible if outcome.node is None and isinstance(outcome.value, Unknown)]
    values = list(dict.fromkeys(_in_words(outcome) for outcome in opens[-1:] or possible))
    either = f"{values[0]};" if opens else f"the value is either {' or '.join(values)}, since"
    sentence = f"{either} {reason.reason}"
    node = next((outcome.node for outcome in possible if outcome.node is not None), None)
    lost = next((outcome for outcome in possible if outcome.loss is not None and outcome.node is not None), None)
    # A value that may arrive all the same is only open, unless it may stop the start.
    arrives = any(outcome.node is not None and outcome.loss is None for outcome in possible)
    if lost is not None and arrives and lost.loss is not Loss.REFUSED:
        lost = None
    if lost is not None and lost.node is not None and lost.loss is not None:
        reading.draft.lose(name, lost.node, lost.loss, sentence, certain=False)
    # If the setting may be left to vLLM, its possible values are not all known.
    is_left = any(outcome.is_nothing or outcome.loss is not None for outcome in possible)
    among = () if is_left else tuple(outcome.value for outcome in possible)
    if any(isinstance(value, Unknown | dict | list) for value in among):
        among = ()
    value = Unknown(sentence, among, hangs_on=reason.hangs_on)
    settings: Settings = getattr(reading.draft, kind)
    if node is None:
        settings.by_code(name, value, sentence)
    else:
        settings.by_file(name, node, value, sentence)


def _have_same_effect(left: Outcome, right: Outcome) -> bool:
    if (left.is_nothing, left.loss) != (right.is_nothing, right.loss):
        return False
    if isinstance(left.value, Unknown) or isinstance(right.value, Unknown):
        return left.value is right.value
    return bool(left.value == right.value) and isinstance(left.value, bool) == isinstance(right.value, bool)


def _in_words(outcome: Outcome) -> str:
    if outcome.loss is not None:
        return "dropped"
    if outcome.is_nothing:
        return "vLLM's own default"
    return outcome.value.reason if isinstance(outcome.value, Unknown) else str(outcome.value)


def lose(reading: Reading, entry: Clause) -> None:
    """Keep something that is written and never arrives."""
    if "others of" in entry:
        _lose_others(reading, entry)
        return
    node = reading.node(entry["key"])
    truth = reading.holds(entry.get("if"))
    if node is None or truth is False or ("unless" in entry and known(node, entry["unless"]) == entry["unless"]):
        return
    name = reading.spec.arguments.get(entry["key"], entry["key"].rpartition(".")[2].lstrip("@"))
    reading.draft.lose(name, node, LOSSES[entry["as"]], reading.sentence(entry), certain=truth is True)


def _lose_others(reading: Reading, entry: Clause) -> None:
    """Keep the keys of a mapping that neither the dialect nor the entry names."""
    if reading.holds(entry.get("if")) is not True:
        return
    named = {*entry.get("but", ()), *reading.spec.keys_below(entry["others of"])}
    arguments = Catalogue.at(reading.vllm).engine if entry.get("arguments") else None
    for key, node in entries(reading.node(entry["others of"])):
        if node.value is None and entry["as"] == "not passed":
            continue
        if key not in named and (arguments is None or key in arguments):
            reading.draft.lose(key, node, LOSSES[entry["as"]], reading.sentence(entry))


def take_span(reading: Reading) -> None:
    """Take the releases of the framework, and lose the written fields that none of them has any more."""
    span, draft, release = reading.span, reading.draft, reading.spec.declared.get("release", {})
    draft.release_of = reading.release_of
    draft.refused_pin, draft.unused_pin, shown = span.refused, span.unused, span.shown(reading.of)
    with_vllm = (span.published or span).releases
    draft.releases = with_vllm and replace(with_vllm, of=str(release.get("of", "")).lower())
    if span.published is not None and reading.code.checkout is not None:
        version = reading.code.checkout.version
        draft.copy = Copy(reading.code.where, version and Version(version.base_version))
    if span.is_empty:
        draft.not_seen.append(f"{shown}: what this report says of the trainer holds for the later release")
    elif span.starts is not None:
        others = f"releases from {span.starts} on run with this vLLM as well"
        draft.not_seen.append(f"the release of {reading.of} is not known: this report assumes {shown}; {others}")
    for name in written_fields(release, reading.holds, reading.is_written):
        field, node = release["fields"][name], reading.node(name)
        if node is not None and span.lacks(field):
            certain = span.lacks_for_certain(field)
            since = span.starts if certain and span.starts is not None else span.first
            releases = f"{reading.of} {since} or later, which this vLLM needs," if span.is_empty else shown
            reason = f"{releases} has no {name} any more, and refuses it"
            draft.lose(reading.spec.arguments.get(name, name), node, Loss.REFUSED, reason, certain=certain)
