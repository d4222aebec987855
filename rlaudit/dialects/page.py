"""A dialect as a page to read: `rlaudit explain verl`, and what may stand in one: `rlaudit explain dialects`."""

import inspect
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from packaging.version import Version

from rlaudit.dialects.clause import Clause, clauses
from rlaudit.dialects.spec import spec_at

_SECTIONS = {
    "engine": "What vLLM's engine gets",
    "sampling": "What a request sends",
    "environment": "Variables",
    "trainer": "What the trainer does",
    "objective": "Options with defaults that decide the objective",
}
_CHANGES = ("above", "hook")
_RELEASE = re.compile(r"release (?:>=|<) (\d[\w.]*)")


def page_of(path: Path) -> str:
    """Return a dialect as text: what is read of a config, what is not, and what each release changes."""
    dialect = spec_at(path)
    declared = dialect.declared
    roots = " or ".join(dict.fromkeys(layout.root for layout in dialect.layouts if layout.root))
    head = [f"Releases that were read: {declared['read']}", *([f"@ stands for: {roots}"] if roots else [])]
    if dialect.package is not None:
        head.append(f"Pinned as: {', '.join((*dialect.package.names, *dialect.package.repositories))}")
    parts = {title: list(_read(declared.get(name) or {})) for name, title in _SECTIONS.items()}
    parts["What is not read, or has no effect"] = list(_not_read(declared))
    release = declared.get("release") or {}
    parts[f"What releases of {release.get('of', dialect.title)} change"] = list(_changed_by_releases(declared))
    parts[f"The {release.get('of')} that its releases bring"] = [
        f"  {first}: {other}" for first, other in release.get("carried", {}).items()
    ]
    bounds = (release.get(kind) or () for kind in ("by keys", "runs with vllm", "by vllm"))
    parts["What tells the release"] = [f"  {entry['because']}" for entries in bounds for entry in entries]
    parts["Conditions"] = [f"  {name}: {condition}" for name, condition in (declared.get("conditions") or {}).items()]
    shown = ["\n".join([title, *lines]) for title, lines in parts.items() if lines]
    return "\n\n".join([dialect.title, str(declared.get("about", "")), "\n".join(head), *shown])


def grammar() -> str:
    """Return what may stand in a dialect: the documentation of the files that read it."""
    from rlaudit.dialects import (
        clause,
        condition,
        elsewhere,
        falses,
        framework_code,
        front_ends,
        keys,
        span,
        spec,
        writing,
    )  # fmt: skip

    modules = (
        spec, front_ends, keys, clause, condition, span, falses, elsewhere, framework_code, writing,
    )  # fmt: skip
    return "\n\n".join(inspect.getdoc(module) or "" for module in modules)


def _read(section: Mapping[str, Any]) -> Iterator[str]:
    for setting, entry in section.items():
        name = setting
        for clause in clauses(entry):
            if "lost" not in clause and ("open" not in clause or "default" in clause):
                yield f"  {name:<30} {_source(clause)}{_if(clause)}{_because(clause)}"
                name = ""


def _not_read(declared: Mapping[str, Any]) -> Iterator[str]:
    for name in _SECTIONS:
        for setting, entry in declared.get(name, {}).items():
            for clause in clauses(entry):
                if "lost" in clause:
                    yield f"  {clause['key']}: {clause['lost']}{_if(clause)}{_because(clause)}"
                elif "open" in clause and "default" not in clause:
                    yield f"  {setting}: {clause['open']}{_if(clause)}"
    for entry in declared.get("lost") or ():
        name = f"other keys of {entry['others of']}" if "others of" in entry else entry["key"]
        yield f"  {name}: {entry['as']}{_if(entry)}{_because(entry)}"
    for entries in (declared.get("elsewhere") or {}).values():
        yield from (f"  {entry['because']}{_if(entry)}" for entry in clauses(entries))
    yield from (f"  {entry['say']}{_if(entry)}" for entry in declared.get("not seen") or ())


def _changed_by_releases(declared: Mapping[str, Any]) -> Iterator[str]:
    """Yield the releases at which something is decided otherwise, each with the names of what that is."""
    changes: dict[Version, dict[str, None]] = defaultdict(dict)
    for name, field in (declared.get("release") or {}).get("fields", {}).items():
        for bound in {"since", "before"} & field.keys():
            changes[Version(str(field[bound]))][name] = None
    settings = [(name, entry) for section in _SECTIONS for name, entry in (declared.get(section) or {}).items()]
    for name, entry in [*settings, *((name, {"if": text}) for name, text in declared.get("conditions", {}).items())]:
        for clause in clauses(entry):
            for release in (*clause.get("moved", ()), *_RELEASE.findall(str(clause.get("if", "")))):
                changes[Version(str(release))][name] = None
    yield from (f"  {version}: {', '.join(changes[version])}" for version in sorted(changes))


def _source(clause: Clause) -> str:
    key = clause.get("key", "")
    if "value" in clause:
        return f"{_word(clause['value'])} if {key} is written" if key and "if" not in clause else _word(clause["value"])
    if "default" in clause:
        later = "".join(f", {_word(value)} from {release} on" for release, value in clause.get("moved", {}).items())
        return (
            f"{key}{_changed(clause)}, else {_word(clause['default'])}{later}"
            if key
            else f"{_word(clause['default'])}{later}"
        )
    if "devices" in clause:
        return f"{' x '.join(map(str, clause['devices']))} / ({' x '.join(clause['ranks'])})"
    if "sum" in clause:
        return " + ".join(map(str, clause["sum"]))
    if clause.get("nothing"):
        return "left to vLLM"
    return f"{key or clause.get('same as') or clause.get('hook') or 'the variables of the command'}{_changed(clause)}"


def _word(value: Any) -> str:
    return "null" if value is None else repr(value)


def _changed(clause: Clause) -> str:
    words = [f"{_word(word)} -> {_word(other)}" for word, other in (clause.get("map") or {}).items()]
    return "".join(
        [
            f" ({', '.join(words)})" if words else "",
            *(f", {name} {clause[name]}" for name in _CHANGES if name in clause),
        ]
    )


def _if(clause: Clause) -> str:
    return f" (if {clause['if']})" if "if" in clause else ""


def _because(clause: Clause) -> str:
    return f"; {clause['because']}" if "because" in clause else ""
