"""Mappings that a framework hands on as they are: vLLM's own names, and the variables of a command or a program."""

from rlaudit.configs.dialects.clause import Clause, clauses, node_of
from rlaudit.configs.dialects.reading import Reading
from rlaudit.configs.draft import Settings
from rlaudit.configs.engine_names import canonical
from rlaudit.configs.syntax.node import Node, entries
from rlaudit.settings.rollout_config import Loss
from rlaudit.unknown import Unknown
from rlaudit.vllm.catalogue import Catalogue

_VARIABLES = ("VLLM_", "NCCL_", "UNSLOTH_VLLM_")


def pass_on(reading: Reading, kind: str, entry: Clause | list[Clause]) -> None:
    """Take a mapping whose keys are vLLM's own names, or the variables that a command sets."""
    clause = next((clause for clause in clauses(entry) if reading.holds(clause.get("if")) is not False), None)
    if clause is None:
        return
    if kind == "environment":
        for name, node in entries(reading.node(clause["key"])) if "key" in clause else ():
            reading.draft.environment.by_file(name, node)
        command_variables(reading, wins=clause["command"] == "wins")
        return
    catalogue, truth = Catalogue.at(reading.vllm), reading.holds(clause.get("if"))
    settings: Settings = getattr(reading.draft, kind)
    for key, node in entries(node_of(clause, reading)):
        if node.value is None and clause.get("null") == "nothing":
            continue
        if isinstance(truth, Unknown):
            settings.by_file(key, node, truth, truth.reason)
        elif "flags" in clause:
            _flag(reading, key, node, clause["flags"])
        elif kind == "sampling" or key in catalogue.engine or "unknown key" not in clause:
            settings.by_file(key, node, note=clause.get("because", ""))
        elif "front end" in clause and (key in catalogue.frontend or key in clause["front end"]):
            where = reading.from_the_root(clause["key"])
            reading.draft.not_seen.append(
                f"{where}.{key} was not read: it belongs to the HTTP endpoint, not the engine"
            )
        else:
            reason = f"vLLM {reading.vllm} has no argument {key}, and {clause['unknown key']}"
            reading.draft.lose(key, node, Loss.UNKNOWN_KEY, reason)


def _flag(reading: Reading, key: str, node: Node, entry: Clause) -> None:
    """Take a key that is spelt as a flag of vLLM's: `no_x: true` is a false, but no keyword of a call."""
    spelt = key.replace("-", "_")
    is_alone = node.value in (None, "")
    if is_alone and not spelt.startswith("no_"):
        reading.draft.engine.by_file(canonical(key), node, True, "no value: the flag is passed alone")
        return
    if not spelt.startswith("no_") or not (is_alone or node.value is True):
        reading.draft.engine.by_file(canonical(key), node)
        return
    name, truth = canonical(spelt.removeprefix("no_")), reading.holds(entry["if"])
    if truth is False:
        reading.draft.lose(spelt, node, Loss.UNKNOWN_KEY, entry["otherwise"])
    else:
        note = f"passed as --{spelt.replace('_', '-')}"
        value: bool | Unknown = False
        if isinstance(truth, Unknown):
            value = Unknown(f"it is {note}, or {entry['otherwise']}; {truth.reason}", hangs_on=truth.hangs_on)
        reading.draft.engine.by_file(name, node, value, value.reason if isinstance(value, Unknown) else note)


def command_variables(reading: Reading, *, wins: bool) -> None:
    """Take the variables that a command exports or has in front, a submitted job's, or those that a program sets."""
    if reading.tree.python_call is not None:
        from rlaudit.configs.python_environment import python_environment

        for name, node in python_environment(reading.source, _VARIABLES).items():
            reading.draft.environment.by_file(name, node)
    if reading.tree.command is None:
        return
    from rlaudit.configs.ray_job import take_job_environment

    if take_job_environment(reading.draft, reading.source, reading.tree.command):
        return
    for name, node in reading.tree.command.variables.items():
        if name.startswith(_VARIABLES) and (wins or name not in reading.draft.environment):
            reading.draft.environment.by_file(name, node)
