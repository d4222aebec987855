"""One clause of a dialect: where a setting comes from.

A setting is a clause, or a list of clauses of which the first that says something wins.

    {key: "@max_num_seqs", default: 1024, at: {...}}      the config's key; else a default of the framework
    {key: "@max_num_seqs", default: 1024, moved: {0.9.1: 256}}     a default that a release moved
    {value: processed_logprobs, because: ...}             the framework's code sets it, and the config cannot
    {if: release >= 0.6.0, value: mp}                     only if a condition holds
    {value: raw, copy has: {...}}          only in a copy of the framework that has these words (`framework_code.py`)
    {value: false, nowhere: cache_salt}    in a copy that has this word, the value is not known
    {open: an executor class of verl's own}               the config does not decide it; `among:` what it can be
    {nothing: true}                                       left to vLLM
    {key: "@vllm_v1_disable_multiproc", lost: not passed, because: ...}     written, and without effect

`key` may be several, `a | b`: the first that is written. What the key holds arrives as it is, or

    value: V         V arrives instead                    map: {bf16: bfloat16}   another word, `otherwise:` if none
    above: N         whether it is a number above N       truth: true              as a command line spells yes and no
    open: REASON     it arrives in a way that is not known
    null: V          a written null means V, or `keep` (the null arrives), `nothing`, `unwritten`: as without `null`
    hook: F.NAME     a function of the framework F, (reading, clause) -> value; None if the next clause decides

A text that begins with `{` is the mapping that it spells, and a variable of the environment a text.

`"*"` takes a mapping whose keys are vLLM's own names; of several the first whose condition holds:

    {key: "@engine_init_kwargs", unknown key: WHAT HAPPENS, front end: [chat_template]}    keys of the HTTP endpoint
    {key: "@engine_kwargs.vllm", null: nothing, flags: {if: server, otherwise: TypeError}}   spelt as flags, no_x: true,
        of which a key without a value is given

An entry behind it overrules what the mapping says.

In `environment` it takes a mapping of variables, and those of the command, which win over the code's or yield:

    {key: inference.env_vars, command: yields}

A value of the code may be `same as: $engine.dtype`, or `sum: [...]` of references and numbers; `a|1024` is 1024 if a is
not written. With a `key`, such a value arrives in place of what it holds.

`replicas` of `trainer` may be counted, as devices (the product of references and numbers) by the ranks of one engine:

    {devices: [nodes, gpus_per_node], ranks: [$engine.tensor_parallel_size], because: ..., missing: WHY IT IS NOT KNOWN}
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from packaging.version import Version

from rlaudit.configs.arguments import of_word, truth
from rlaudit.configs.draft import arriving, is_said
from rlaudit.configs.syntax.node import Node
from rlaudit.settings.rollout_config import Loss
from rlaudit.unknown import Unknown

if TYPE_CHECKING:
    from rlaudit.configs.dialects.reading import Reading

LOSSES = {
    "not passed": Loss.NOT_PASSED,
    "overruled": Loss.OVERRULED,
    "refused": Loss.REFUSED,
    "unknown key": Loss.UNKNOWN_KEY,
    "false dropped": Loss.FALSE_DROPPED,
}
Clause = Mapping[str, Any]
# Forms of a value that name other settings and keys, or a function that does.
_REFERRING = {"same as", "sum", "hook"}


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
    if "key" in clause and node is None and isinstance(left := reading.tree.unread, Unknown):
        return Outcome(left)
    if "key" in clause and "default" not in clause:
        return None
    return _by_code(clause, reading)


def node_of(clause: Clause, reading: "Reading") -> Node | None:
    """Return the node at the clause's key; a text of JSON as the mapping that it spells."""
    node = reading.node(clause["key"]) if "key" in clause else None
    spells = node is not None and isinstance(node.value, str) and node.value.startswith("{")
    return of_word(node) if node is not None and spells else node


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
    return value


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
    if "hook" in clause:
        return reading.spec.hook(clause["hook"])(reading, clause)
    return reading.value(clause["same as"]) if "same as" in clause else total(clause["sum"], reading, clause)


def total(parts: Iterable[Any], reading: "Reading", clause: Clause) -> Any:
    """Return the sum of references and numbers; Unknown if one of them is not known."""
    values = [reading.value(part) if isinstance(part, str) else part for part in parts]
    if all(isinstance(value, int) and not isinstance(value, bool) for value in values):
        return sum(values)
    reason = next((value.reason for value in values if isinstance(value, Unknown)), "a part of the sum is not known")
    return Unknown(f"{clause['because']}: {reason}" if "because" in clause else reason)


def _moved(clause: Clause, reading: "Reading") -> Any:
    """Return a default that releases changed; Unknown, with what it may be, if the release is not known."""
    value = clause["default"]
    spans = [f"was {value!r}"]
    for release, later in clause["moved"].items():
        truth = reading.compare("release", ">=", Version(str(release)))
        spans.append(f"is {later!r} from {release} on")
        if isinstance(truth, Unknown):
            return Unknown(
                f"the default {' and '.join(spans)}; {truth.reason}", (value, later), hangs_on=truth.hangs_on
            )
        value = later if truth else value
    return value
