"""A dialect as a page to read: `rlaudit explain verl`, and what may stand in one: `rlaudit explain dialects`."""

import inspect
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml
from packaging.version import Version

from rlaudit.configs.dialects.clause import clauses
from rlaudit.configs.dialects.spec import spec_at

_SECTIONS = {
    "engine": "What vLLM's engine gets",
    "sampling": "What a request sends",
    "environment": "Variables",
    "trainer": "What the trainer does",
    "objective": "Options with defaults that decide the objective",
    "lost": "What is written and has no effect",
    "elsewhere": "What another file decides",
    "not seen": "What is not read",
    "release": "What tells the release",
    "conditions": "Conditions",
}
_RELEASE = re.compile(r"release (?:>=|<) (\d[\w.]*)")
# Of a line: an entry is not broken.
_WIDTH = 10_000


def page_of(path: Path, in_full: bool = False) -> str:
    """Return a dialect as text: which release goes with which vLLM, and how an argument is passed.

    in_full: its entries, too, without the lines of code that decide them, and what each release changes. They are in
    the language of `rlaudit explain dialects`.
    """
    dialect = spec_at(path)
    declared = dialect.declared
    roots = " or ".join(dict.fromkeys(layout.root for layout in dialect.layouts if layout.root))
    head = [f"Releases that were read: {declared['read']}", *([f"@ stands for: {roots}"] if roots else [])]
    if dialect.package is not None:
        head.append(f"Pinned as: {', '.join((*dialect.package.names, *dialect.package.repositories))}")
    release = declared.get("release") or {}
    of = release.get("of", dialect.title)
    by_vllm = (entry["because"] for kind in ("by vllm", "runs with vllm") for entry in release.get(kind) or ())
    parts = {
        f"Which {of} goes with which vLLM": [f"  {because}" for because in dict.fromkeys(by_vllm)],
        "How an argument of vLLM is written": list(_passed(declared)),
    }
    if in_full:
        parts |= {title: _entries(declared[name]) for name, title in _SECTIONS.items() if declared.get(name)}
        parts[f"What releases of {of} change"] = list(_changed_by_releases(declared))
    else:
        further = "  lists how each setting is read, what is not read, and what each release changes"
        parts[f"rlaudit explain {path.stem} -v"] = [further]
    shown = ["\n".join([title, *lines]) for title, lines in parts.items() if lines]
    return "\n\n".join([dialect.title, str(declared.get("about", "")), "\n".join(head), *shown])


def _passed(declared: Mapping[str, Any]) -> Iterator[str]:
    """Yield where arguments of vLLM are written, and what becomes of a false."""
    write = declared.get("write") or {}
    fields = write.get("fields")
    root = next(iter(fields.values())) if isinstance(fields, dict) else fields
    keys = [clause["key"] for entry in declared["engine"].values() for clause in clauses(entry) if "key" in clause]
    own = [key.partition(" | ")[0] for key in keys if root is not None and key.startswith(root)]
    if own:
        yield f"  by a key: {', '.join(dict.fromkeys(own))}"
    if write.get("others"):
        yield f"  any other argument: {write['others']}.NAME"
    for entry in declared.get("falses") or ():
        if "because" in entry:
            yield f"  a written false: {entry['because']}"


def grammar() -> str:
    """Return what may stand in a dialect: the documentation of the files that read it."""
    from rlaudit.configs.dialects import (
        clause,
        condition,
        elsewhere,
        falses,
        framework_code,
        front_ends,
        span,
        spec,
        writing,
    )

    modules = (spec, front_ends, clause, condition, span, falses, elsewhere, framework_code, writing)
    return "\n\n".join(inspect.getdoc(module) or "" for module in modules)


def _entries(section: Any) -> list[str]:
    text = yaml.safe_dump(_without_places(section), sort_keys=False, default_flow_style=None, width=_WIDTH)
    return [f"  {line}" for line in text.splitlines()]


def _without_places(part: Any) -> Any:
    """Return a part of a dialect without the places of the code that decides it."""
    if isinstance(part, list):
        return [_without_places(child) for child in part]
    if not isinstance(part, dict):
        return part
    return {key: _without_places(child) for key, child in part.items() if key not in {"at", "nowhere"}}


def _changed_by_releases(declared: Mapping[str, Any]) -> Iterator[str]:
    """Yield the releases at which something is decided otherwise, each with the names of what that is."""
    changes: dict[Version, dict[str, None]] = defaultdict(dict)
    for name, field in declared.get("release", {}).get("fields", {}).items():
        for bound in {"since", "before"} & field.keys():
            changes[Version(str(field[bound]))][name] = None
    settings = [(name, entry) for section in _SECTIONS if isinstance(declared.get(section), dict)
                for name, entry in declared[section].items() if section not in {"release", "conditions"}]  # fmt: skip
    for name, entry in [*settings, *((name, {"if": text}) for name, text in declared.get("conditions", {}).items())]:
        for clause in clauses(entry):
            for release in (*clause.get("moved", ()), *_RELEASE.findall(str(clause.get("if", "")))):
                changes[Version(str(release))][name] = None
    yield from (f"  {version}: {', '.join(changes[version])}" for version in sorted(changes))
