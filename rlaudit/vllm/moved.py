"""What moves between two vLLM releases for everybody, whatever the config: the migration seen from vLLM's side."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from packaging.version import Version

from rlaudit.configs.rollout_config import Origin, RolloutConfig, Setting
from rlaudit.configs.syntax.node import Unknown
from rlaudit.layers import Layer
from rlaudit.vllm.catalogue import Catalogue, Declared
from rlaudit.vllm.machine import Machine
from rlaudit.vllm.removed import removed
from rlaudit.vllm.resolve import resolution_rules, resolve
from rlaudit.vllm.why_it_matters import WHY

_NOTHING: tuple[Any, ...] = (None, {}, [], "")


@dataclass(frozen=True)
class Moved:
    """One thing that is not what it was.

    kind: resolved (what an empty server config runs with), default (a declared one), variable (default of a variable),
    sampling, method (parameters), or `removed X` and `added X` with X one of argument, flag, variable, sampling
    parameter, method. before, after: values, None where there is none. note: why vLLM decides so, with its source line;
    for a removed name what a config meets that still says it. why: why it matters for logprobs, for a removed name what
    to say instead; empty where nobody has said.
    """

    kind: str
    name: str
    before: Any
    after: Any
    layer: Layer
    note: str = ""
    why: str = ""


def moved(before: Version, after: Version, machine: Machine) -> tuple[Moved, ...]:
    """Everything that moves, what an engine really runs with first.

    Raises UsageError for a version older than the catalogue.
    """
    old, new = Catalogue.at(before), Catalogue.at(after)
    resolved = moved_values(before, after, machine)
    taken = {change.name for change in resolved} | set(resolution_rules())
    return (
        *resolved,
        *(change for change in _defaults("default", old.engine, new.engine) if change.name not in taken),
        *_defaults("variable", old.variables, new.variables),
        *_defaults("sampling", old.sampling, new.sampling),
        *_methods(old, new),
        *_names(old, new),
    )


def _change(kind: str, name: str, before: Any, after: Any, note: str = "") -> Moved:
    layer, why = WHY.get(name, (Layer.INFERENCE_PATH, ""))
    return Moved(kind, name, before, after, layer, note, why)


def moved_values(before: Version, after: Version, machine: Machine, v0: bool = False) -> tuple[Moved, ...]:
    """What an engine runs with when the config says nothing, where that moves.

    v0: the old release runs with VLLM_USE_V1=0, as most runs before the migration did.
    """
    forced = Setting("VLLM_USE_V1", "0", "0", Origin.FILE)
    configs = RolloutConfig("vllm", "", environment={forced.name: forced} if v0 else {}), RolloutConfig("vllm", "")
    sides = [
        resolve(config, Catalogue.at(version), machine)
        for config, version in zip(configs, (before, after), strict=True)
    ]
    found = []
    for name in resolution_rules():
        was, is_now = (side.setting(name) for side in sides)
        both_unknown = isinstance(was.value, Unknown) and isinstance(is_now.value, Unknown)
        if was.value != is_now.value and not both_unknown:
            found.append(_change("resolved", name, was.value, is_now.value, is_now.note))
    order = [*WHY]
    return tuple(sorted(found, key=lambda change: order.index(change.name) if change.name in WHY else len(order)))


def _defaults(kind: str, old: Mapping[str, Declared], new: Mapping[str, Declared]) -> Iterator[Moved]:
    for name in sorted(set(old) & set(new)):
        before, after = old[name], new[name]
        if _same(before, after):
            continue
        yield _change(kind, name, before.default, after.default, after.line)


def _same(before: Declared, after: Declared) -> bool:
    """Whether two declarations mean the same; a config object that replaces "nothing given" does."""
    if before.default == after.default and type(before.default) is type(after.default):
        return True
    empty = [field.config != "" or field.default in _NOTHING for field in (before, after)]
    return all(empty) or (before.default in _NOTHING and after.default is False)


def _methods(old: Catalogue, new: Catalogue) -> Iterator[Moved]:
    for name in sorted(set(old.signatures) & set(new.signatures)):
        before, after = old.signature_defaults[name], new.signature_defaults[name]
        if before != after:
            yield _change("method", name, _signature(before), _signature(after))


def _signature(parameters: Mapping[str, Any]) -> str:
    shown = [
        name if isinstance(default, dict) and default.get("required") else f"{name}={default!r}"
        for name, default in parameters.items()
    ]
    return f"({', '.join(shown)})"


def _names(old: Catalogue, new: Catalogue) -> Iterator[Moved]:
    engine_flags = {
        flag for catalogue in (old, new) for flag, field in catalogue.cli.items() if field in catalogue.engine
    }
    for what, kind, before, after in (
        ("argument", "engine", set(old.engine), set(new.engine)),
        ("flag", "flag", set(old.cli) - engine_flags, set(new.cli) - engine_flags),
        ("sampling parameter", "sampling", set(old.sampling), set(new.sampling)),
        ("variable", "variable", set(old.variables), set(new.variables)),
        ("method", "method", set(old.signatures), set(new.signatures)),
    ):
        for name in sorted(before - after):
            gone = removed(kind, name, new.version)
            layer, _why = WHY.get(name, (Layer.INFERENCE_PATH, ""))
            effect, instead = (gone.effect, gone.instead) if gone is not None else ("", "")
            yield Moved(f"removed {what}", name, _default(old, kind, name), None, layer, effect, instead)
        for name in sorted(after - before):
            yield _change(f"added {what}", name, None, _default(new, kind, name))


def _default(catalogue: Catalogue, kind: str, name: str) -> Any:
    sections = {"engine": catalogue.engine, "sampling": catalogue.sampling, "variable": catalogue.variables}
    declared = sections.get(kind, {}).get(name)
    return declared.default if declared is not None else None
