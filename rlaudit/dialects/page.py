"""A dialect as a page to read: `rlaudit explain verl`, and what may stand in one: `rlaudit explain dialects`."""

import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rlaudit.dialects.clause import Clause, clauses
from rlaudit.dialects.framework_code import places
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
    lines = [dialect.title, "", str(dialect.declared.get("about", "")), "", f"Read: {dialect.declared['read']}"]
    package = dialect.package
    if package is not None:
        lines.append(f"Pinned as: {', '.join((*package.names, *package.repositories))}")
    lines += list(_releases(dialect))
    for name, title in _SECTIONS.items():
        if name in dialect.declared:
            lines += ["", title]
            for setting, entry in dialect.declared[name].items():
                lines += list(_setting(setting, entry))
    if dialect.declared.get("lost"):
        lines += ["", "Written, and without effect"]
        lines += [
            f"  {_lost(entry)}{_if(entry)}: {entry['as']}, {entry['because']}" for entry in dialect.declared["lost"]
        ]
    return "\n".join(lines)


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
        own_trainer,
        span,
        spec,
        writing,
    )  # fmt: skip

    modules = (
        spec, front_ends, keys, clause, condition, span, falses, elsewhere, framework_code, own_trainer, writing,
    )  # fmt: skip
    return "\n\n".join(inspect.getdoc(module) or "" for module in modules)


def _releases(dialect: Spec) -> Iterator[str]:
    release = dialect.declared.get("release", {})
    if release:
        yield from ("", "What tells its release")
    for name, field in release.get("fields", {}).items():
        yield f"  {name}: {', '.join(f'{bound} {field[bound]}' for bound in ('since', 'before') if bound in field)}"
    for first, newest in release.get("admits vllm", {}).items():
        yield f"  from {first} on: {release['admits by']} admits vLLM up to {newest}"
    for kind in ("by keys", "runs with vllm", "by vllm"):
        for entry in release.get(kind, ()):
            first = f"from {entry['since']} on" if "since" in entry else ""
            end = f"before {entry['before']}" if "before" in entry else ""
            yield f"  {', '.join(part for part in (first, end) if part)}: {entry['because']}"


def _lost(entry: Clause) -> str:
    return f"other keys of {entry['others of']}" if "others of" in entry else str(entry["key"])


def _setting(name: str, entry: Any) -> Iterator[str]:
    for at, clause in enumerate(clauses(entry)):
        yield f"  {name if at == 0 else '':<30} {_source(clause)}{_changed(clause)}{_if(clause)}{_because(clause)}"
        for file, words in places(clause.get("at", {})):
            yield f"  {'':<32} {file}: {words}"
        for file, words in places(clause.get("copy has", {})):
            yield f"  {'':<32} only in a copy with {file}: {words}"


def _source(clause: Clause) -> str:  # noqa: PLR0911 - one for each form of a clause
    if "lost" in clause:
        return f"{clause['key']} is {clause['lost']}"
    key = clause.get("key", "")
    if "value" in clause:
        return f"{clause['value']!r} if {key} is written" if key else repr(clause["value"])
    if "default" in clause:
        later = "".join(f", {value!r} from {release} on" for release, value in clause.get("moved", {}).items())
        return f"{key}, else {clause['default']!r}{later}"
    if "devices" in clause:
        return f"{' x '.join(map(str, clause['devices']))} / ({' x '.join(clause['ranks'])})"
    for name, sign in (("sum", " + "), ("product", " x ")):
        if name in clause:
            return sign.join(map(str, clause[name]))
    if clause.get("nothing"):
        return "left to vLLM"
    return key or clause.get("same as", "") or f"open: {clause.get('open', 'the variables of the command')}"


def _changed(clause: Clause) -> str:
    return "".join(f", {name} {clause[name]}" for name in _CHANGES if name in clause)


def _if(clause: Clause) -> str:
    parts = [f"if {clause['if']}"] if "if" in clause else []
    parts += [f"{bound} {clause[bound]}" for bound in ("since", "before") if bound in clause]
    return f" ({', '.join(parts)})" if parts else ""


def _because(clause: Clause) -> str:
    return f"; {clause['because']}" if "because" in clause else ""
