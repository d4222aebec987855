"""A dialect as a page to read: `rlaudit explain verl`, and what may stand in one: `rlaudit explain dialects`."""

import inspect
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from rlaudit.dialects import (
    clause,
    condition,
    elsewhere,
    falses,
    framework_code,
    front_ends,
    keys,
    own_trainer,
    span,
    spec,
    writing,
)
from rlaudit.dialects.spec import Spec, spec_at

_SECTIONS = {
    "engine": "What vLLM's engine gets",
    "sampling": "What a request asks for",
    "environment": "Variables",
    "trainer": "What the trainer does",
    "objective": "Options with defaults that decide the objective",
}
_CHANGES = ("map", "above", "up to", "text", "truth", "wrap", "json", "null")


def page_of(path: Path) -> str:
    """Return a dialect as text: each setting with where it comes from and the place that decides it."""
    dialect = spec_at(path)
    lines = [dialect.title, "", str(dialect.said.get("about", "")), "", f"Read: {dialect.said['read']}"]
    package = dialect.package
    if package is not None:
        lines.append(f"Pinned as: {', '.join((*package.names, *package.repositories))}")
    lines += list(_releases(dialect))
    for name, title in _SECTIONS.items():
        if name in dialect.said:
            lines += ["", title]
            for setting, entry in dialect.said[name].items():
                lines += list(_setting(setting, entry))
    if dialect.said.get("lost"):
        lines += ["", "Written, and without effect"]
        lines += [f"  {_lost(one)}{_if(one)}: {one['as']}, {one['because']}" for one in dialect.said["lost"]]
    return "\n".join(lines)


def grammar() -> str:
    """Return what may stand in a dialect: the documentation of the files that read it."""
    parts = (
        spec,
        front_ends,
        keys,
        clause,
        condition,
        span,
        falses,
        elsewhere,
        framework_code,
        own_trainer,
        writing,
    )
    return "\n\n".join(inspect.getdoc(part) or "" for part in parts)


def _releases(dialect: Spec) -> Iterator[str]:
    said = dialect.said.get("release", {})
    if said:
        yield from ("", "What tells its release")
    for name, field in said.get("fields", {}).items():
        yield f"  {name}: {', '.join(f'{bound} {field[bound]}' for bound in ('since', 'before') if bound in field)}"
    for first, newest in said.get("admits vllm", {}).items():
        yield f"  from {first} on: {said['admits by']} admits vLLM up to {newest}"
    for kind in ("by keys", "runs with vllm", "by vllm"):
        for entry in said.get(kind, ()):
            first = f"from {entry['since']} on" if "since" in entry else ""
            end = f"before {entry['before']}" if "before" in entry else ""
            yield f"  {', '.join(part for part in (first, end) if part)}: {entry['because']}"


def _lost(said: Mapping[str, Any]) -> str:
    return f"other keys of {said['others of']}" if "others of" in said else str(said["key"])


def _setting(name: str, entry: Any) -> Iterator[str]:
    clauses = entry if isinstance(entry, list) else [entry]
    for at, said in enumerate(clauses):
        yield f"  {name if at == 0 else '':<30} {_clause(said)}"
        for file, words in framework_code.places(said.get("at", {})):
            yield f"  {'':<32} {file}: {words}"
        for file, words in framework_code.places(said.get("copy has", {})):
            yield f"  {'':<32} only in a copy with {file}: {words}"


def _clause(said: Mapping[str, Any]) -> str:
    return f"{_source(said)}{_changed(said)}{_if(said)}{_because(said)}"


def _source(said: Mapping[str, Any]) -> str:  # noqa: PLR0911 - one for each form of a clause
    if "lost" in said:
        return f"{said['key']} is {said['lost']}"
    key = said.get("key", "")
    if "value" in said:
        return f"{said['value']!r} if {key} is written" if key else repr(said["value"])
    if "default" in said:
        later = "".join(f", {value!r} from {release} on" for release, value in said.get("moved", {}).items())
        return f"{key}, else {said['default']!r}{later}"
    if "devices" in said:
        return f"{' x '.join(map(str, said['devices']))} / ({' x '.join(said['ranks'])})"
    for name, sign in (("sum", " + "), ("product", " x ")):
        if name in said:
            return sign.join(map(str, said[name]))
    if said.get("nothing"):
        return "left to vLLM"
    return key or said.get("same as", "") or f"open: {said.get('open', 'the variables of the command')}"


def _changed(said: Mapping[str, Any]) -> str:
    return "".join(f", {name} {said[name]}" for name in _CHANGES if name in said)


def _if(said: Mapping[str, Any]) -> str:
    parts = [f"if {said['if']}"] if "if" in said else []
    parts += [f"{bound} {said[bound]}" for bound in ("since", "before") if bound in said]
    return f" ({', '.join(parts)})" if parts else ""


def _because(said: Mapping[str, Any]) -> str:
    return f"; {said['because']}" if "because" in said else ""
