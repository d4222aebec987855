"""One clause of a dialect: where a setting comes from.

A setting is a clause, or a list of clauses of which the first that says something wins.

    {key: "@max_num_seqs", default: 1024, at: {...}}      the config's key; else a default of the framework
    {key: "@max_num_seqs", default: 1024, moved: {0.9.1: 256}}     a default that a release moved
    {value: processed_logprobs, because: ...}             the framework's code sets it, and the config cannot
    {if: release >= 0.6.0, value: mp}                     only if a condition holds
    {since: 0.11.0, value: mp, at: {...}}                 from a release of the framework on, or `before:` one;
                                                          in a copy of the framework, if it has the words
    {value: raw, copy has: {...}}          only in a copy of the framework that has these words (`framework_code.py`)
    {open: an executor class of verl's own}               the config does not decide it; `among:` what it can be
    {nothing: true}                                       left to vLLM
    {key: "@vllm_v1_disable_multiproc", lost: not passed, because: ...}     written, and without effect

`key` may be several, `a | b`: the first that is written. What the key holds arrives as it is, or

    value: V         V arrives instead                    map: {bf16: bfloat16}   another word, `otherwise:` if none
    above: N         whether it is a number above N       text: true              as a variable spells it: 1, 0
    truth: true      as a command line spells yes and no  wrap: image             as {image: it}
    up to: [8, 16]   the next that is as large            open: REASON            it arrives in a way that is not known
    json: true       a text is read as the mapping that it spells, as for options of a command line
    null: V          a written null means V, or `keep` (the null arrives), `nothing`, `unwritten`: as without `null`
    mapping: {A: "@a", B: 1}  a mapping of references and values; without those that are missing
    fixes: false     the key is read, and no fix is written under it

`"*"` takes a mapping whose keys are vLLM's own names; of several the first whose condition holds:

    {key: "@engine_init_kwargs", unknown key: WHAT HAPPENS, front end: [chat_template]}    keys of the HTTP endpoint
    {key: vllm_engine_kwargs, overruled: {arguments: [seed], because: ...}}     those that the code itself gives win
    {key: "@engine_kwargs.vllm", null: nothing, flags: {if: server, otherwise: TypeError}}   spelt as flags, no_x: true;
        with `alone: true` a key without a value is a flag that is given

In `environment` it takes a mapping of variables, and those of the command, which win over the code's or yield:

    {key: inference.env_vars, command: yields}

A value of the code may be `same as: $engine.dtype`, such a `mapping`, `sum: [...]` or `product: [...]` of references
and numbers; `a|1024` is 1024 if a is not written. With a `key`, such a value arrives in place of what it holds.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any

from packaging.version import Version

from rlaudit.configs.arguments import of_word, truth
from rlaudit.configs.draft import arriving, is_said
from rlaudit.configs.syntax.node import Node
from rlaudit.dialects.keys import unread
from rlaudit.settings.rollout_config import Loss
from rlaudit.unknown import Unknown

if TYPE_CHECKING:
    from rlaudit.dialects.reading import Reading

LOSSES = {
    "not passed": Loss.NOT_PASSED,
    "overruled": Loss.OVERRULED,
    "refused": Loss.REFUSED,
    "unknown key": Loss.UNKNOWN_KEY,
    "false dropped": Loss.FALSE_DROPPED,
}
Clause = Mapping[str, Any]
# Forms of a value that name other settings and keys.
_REFERRING = {"mapping", "same as", "sum", "product"}


@dataclass(frozen=True)
class Outcome:
    """What a clause makes of a setting."""

    value: Any
    # None if the framework's code decides.
    node: Node | None = None
    # Why what is written never arrives.
    loss: Loss | None = None
    # Whether the setting is left to vLLM.
    is_nothing: bool = False


def clauses(entry: Clause | list[Clause]) -> Iterable[Clause]:
    """Return the clauses of an entry, which may be a single one."""
    return entry if isinstance(entry, list) else (entry,)


def outcome_of(clause: Clause, reading: "Reading") -> Outcome | None:  # noqa: PLR0911 - one for each form of a clause
    """Return the outcome of a clause whose condition holds; None if the next clause decides."""
    if clause.get("nothing"):
        return Outcome(None, is_nothing=True)
    node = node_of(clause, reading)
    if "lost" in clause:
        written = node is not None and node.value is not None
        return Outcome(None, node, LOSSES[clause["lost"]]) if written else None
    if is_said(node):
        return Outcome(_arriving(clause, node, reading), node)
    if node is not None and clause.get("null", "unwritten") != "unwritten":
        meaning = clause["null"]
        if meaning == "nothing":
            return Outcome(None, is_nothing=True)
        return Outcome(None if meaning == "keep" else meaning, node)
    if "key" in clause and node is None and isinstance(left := unread(reading.tree), Unknown):
        return Outcome(left)
    if "key" in clause and "default" not in clause:
        return None
    if "default" in clause and (truth := reading.defaults_hold()) is not True:
        return reading.without_default(truth)
    return _by_code(clause, reading)


def node_of(clause: Clause, reading: "Reading") -> Node | None:
    """Return the node at the clause's key; a text of JSON as the mapping that it spells."""
    node = reading.node(clause["key"]) if "key" in clause else None
    spelt = node is not None and clause.get("json") and isinstance(node.value, str)
    return of_word(node) if node is not None and spelt else node


def _arriving(clause: Clause, node: Node, reading: "Reading") -> Any:
    value = arriving(node)
    if "open" in clause and "default" not in clause:
        return Unknown(clause["open"])
    if "value" in clause:
        return clause["value"]
    if not _REFERRING.isdisjoint(clause):
        return _referred(clause, reading)
    if clause.get("truth"):
        value = truth(node)
    if isinstance(value, Unknown):
        return value
    if "map" in clause:
        value = _mapped(clause["map"], value)
    if "above" in clause:
        value = isinstance(value, int | float) and value > clause["above"]
    if "up to" in clause:
        fits = [size for size in clause["up to"] if isinstance(value, int) and size >= value]
        value = fits[0] if fits else Unknown(f"{value} is above every size of {clause['up to']}")
    if clause.get("text"):
        value = str(int(value) if isinstance(value, bool) else value)
    return {clause["wrap"]: value} if "wrap" in clause else value


def _mapped(table: Mapping[Any, Any], value: Any) -> Any:
    # YAML's true equals 1 in Python, and is not what a config with 1 says.
    for key, arrives in table.items():
        if key == value and isinstance(key, bool) == isinstance(value, bool):
            return arrives
    return table.get("otherwise", value)


def _by_code(clause: Clause, reading: "Reading") -> Outcome | None:
    if "moved" in clause:
        return Outcome(_moved(clause, reading))
    for name in ("value", "default"):
        if name in clause:
            return Outcome(clause[name])
    if not _REFERRING.isdisjoint(clause):
        value = _referred(clause, reading)
        return None if value is None else Outcome(value)
    return Outcome(Unknown(clause["open"], tuple(clause.get("among", ())))) if "open" in clause else None


def _referred(clause: Clause, reading: "Reading") -> Any:
    """Return what a clause makes of references."""
    if "mapping" in clause:
        return _assembled(clause["mapping"], reading)
    return reading.value(clause["same as"]) if "same as" in clause else _computed(clause, reading)


def _computed(clause: Clause, reading: "Reading") -> Any:
    """Return a sum or a product; Unknown if a part of it is not known."""
    name, together = ("sum", sum) if "sum" in clause else ("product", prod)
    parts = [reading.value(part) if isinstance(part, str) else part for part in clause[name]]
    if all(isinstance(part, int) and not isinstance(part, bool) for part in parts):
        return together(parts)
    reason = next((part.reason for part in parts if isinstance(part, Unknown)), f"a part of the {name} is not known")
    return Unknown(f"{clause['because']}: {reason}" if "because" in clause else reason)


def _assembled(parts: Mapping[str, Any], reading: "Reading") -> Any:
    """Return a mapping with the values of its references; Unknown if one of them is."""
    values = {
        name: reading.value(part.removeprefix("/")) if isinstance(part, str) and part[0] in "@$/" else part
        for name, part in parts.items()
    }
    unknown = next((value for value in values.values() if isinstance(value, Unknown)), None)
    return {name: value for name, value in values.items() if value is not None} if unknown is None else unknown


def _moved(clause: Clause, reading: "Reading") -> Any:
    """Return a default that releases changed; Unknown, with what it may be, if the release is not known."""
    value = clause["default"]
    spans = [f"{value!r} before"]
    for release, later in clause["moved"].items():
        truth = reading.compare("release", ">=", Version(str(release)))
        spans.append(f"{later!r} from {release} on")
        if isinstance(truth, Unknown):
            return Unknown(
                f"the default is {', '.join(spans)}; {truth.reason}", (value, later), hangs_on=truth.hangs_on
            )
        value = later if truth else value
    return value
