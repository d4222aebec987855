"""Hydra's `defaults:` list, as far as the files it names are there.

Read: names beside the file, groups (`finetune: base` is finetune/base.yaml, placed under `finetune`), packages
(`group@a.b: name`, `# @package _global_`), `optional`, `override`, `_self_` (last where it is not written, as since
Hydra 1.1), names that follow another choice (`actor: ${model_engine}_actor`), choices of the command line, and
`hydra.searchpath` (`file://` from the folders above the config, `pkg://` where the package's source is there). What is
not found is named as missing.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path

from rlaudit.configs.merging import mapping_of, merged, nested, reread
from rlaudit.configs.source import Source
from rlaudit.configs.syntax.node import Node

DEEPEST = 8
_CHOICE = re.compile(r"\$\{([\w./@-]+)\}")
_PACKAGE = re.compile(r"\s*#\s*@package\s+(\S+)")
_HEADER_LINES = 20


@dataclass(frozen=True, eq=False)
class Composed:
    """A config with what it inherits.

    parts: the other files read. missing: entries whose file is not there. limits: where reading stopped, in sentences.
    """

    root: Node
    parts: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    limits: tuple[str, ...] = ()

    @property
    def gap(self) -> str:
        """Why something inherited may not be known; empty if all of it was read."""
        return f"{self.missing[0]} is not beside this file" if self.missing else "; ".join(self.limits)


@dataclass(frozen=True)
class _Entry:
    group: str
    name: str
    package: str | None
    optional: bool = False

    @property
    def file(self) -> str:
        """Relative to the directory of the config that lists it."""
        path = f"{self.group}/{self.name}" if self.group else self.name
        return path if path.endswith((".yaml", ".yml")) else f"{path}.yaml"


@dataclass(eq=False)
class _Family:
    """What one composition goes by, and what it has seen. search: folders that names are looked for in besides."""

    choices: Mapping[str, str]
    search: tuple[str, ...]
    parts: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)


# Asked by every dialect that may know the file, and again under each version.
@lru_cache(maxsize=16)
def composed(source: Source, choices: tuple[tuple[str, str], ...] = ()) -> Composed | None:
    """The first document with its `defaults:` applied; None if the file is no mapping. choices: of groups, made on
    the command line (`model_engine=megatron`).
    """
    root = mapping_of(source)
    if root is None:
        return None
    listed = root.get("defaults")
    own = {} if listed is None else {key: node.value for one in listed.elements() for key, node in one.items()}
    told = {key: value for key, value in {**own, **dict(choices)}.items() if isinstance(value, str)}
    family = _Family(told, _search_path(source, root) if listed is not None else ())
    tree = _compose(source, root, (), family, (source.path,))
    if family.missing and listed is not None:
        # Tells interpolation that a key which is not here may well be set there.
        tree = merged(tree, nested(("defaults",), listed))
    if family.parts:
        tree = reread(tree)
    return Composed(tree, tuple(dict.fromkeys(family.parts)), tuple(dict.fromkeys(family.missing)))


def _search_path(source: Source, root: Node) -> tuple[str, ...]:
    """Return the folders that `hydra.searchpath` names, as far as they are there."""
    listed = root.get("hydra", "searchpath")
    found = []
    for node in listed.elements() if listed is not None else ():
        scheme, _, name = str(node.value).rpartition("://")
        if scheme == "pkg":
            from rlaudit.configs.framework_source.checkout import checkout_of

            path = name.replace(".", "/")
            checkout = checkout_of(source, name.partition(".")[0], path)
            found += [f"{checkout.root}/{path}"] if checkout is not None else []
        else:
            above = (folder / name for folder in Path(source.path).absolute().parents)
            found += [str(folder) for folder in above if folder.is_dir()][:1]
    return tuple(found)


def _compose(source: Source, root: Node, at: tuple[str, ...], family: _Family, seen: tuple[str, ...]) -> Node:
    own = Node({key: node for key, node in root.items() if key != "defaults"}, root.place, root.key)
    own = nested(at, own)
    listed = root.get("defaults")
    if listed is None or not isinstance(listed.value, tuple):
        return nested(at, root) if listed is not None else own
    # What overrides a choice further down the chain; the outer one wins.
    family = replace(family, choices={**_overrides(listed), **family.choices})
    tree: Node | None = None
    done = False
    for entry in _entries(listed, family.choices):
        if entry is None:
            tree, done = (own if tree is None else merged(tree, own)), True
            continue
        part = _read(source, entry, at, family, seen)
        if part is not None:
            tree = part if tree is None else merged(tree, part)
    if not done:
        tree = own if tree is None else merged(tree, own)
    return own if tree is None else tree


def _read(source: Source, entry: _Entry, at: tuple[str, ...], family: _Family, seen: tuple[str, ...]) -> Node | None:
    name = entry.file.lstrip("/")
    found = source.neighbour(name)
    for folder in family.search if found is None else ():
        found = found or source.neighbour(f"{folder}/{name}")
    if found is None or found.path in seen or len(seen) > DEEPEST:
        if not entry.optional:
            family.missing.append(entry.file)
        return None
    root = mapping_of(found)
    if root is None:
        family.missing.append(entry.file)
        return None
    family.parts.append(found.path)
    package = _header(found.text) or entry.package
    where = _package(package, entry.group, at)
    return _compose(found, root, where, family, (*seen, found.path))


def _header(text: str) -> str | None:
    """Return the package that a config names for itself, in a comment before its first key."""
    for line in text.split("\n", _HEADER_LINES)[:_HEADER_LINES]:
        header = _PACKAGE.match(line)
        if header is not None:
            return header[1]
        if line.strip() and not line.lstrip().startswith("#"):
            return None
    return None


def _package(package: str | None, group: str, at: tuple[str, ...]) -> tuple[str, ...]:
    if package == "_global_":
        return ()
    if package == "_here_":
        return at
    if package is None or package == "_group_":
        return (*at, *(part for part in group.lstrip("/").split("/") if part))
    return (*at, *package.split("."))


def _overrides(listed: Node) -> dict[str, str]:
    """`override group: name`, by group."""
    told = {key: node.value for one in listed.elements() for key, node in one.items()}
    return {key.split()[-1]: value for key, value in told.items()
            if key.split()[:1] == ["override"] and isinstance(value, str)}  # fmt: skip


def _entries(listed: Node, choices: Mapping[str, str]) -> Iterator[_Entry | None]:
    """Yield one entry per line of the list; None is `_self_`."""
    for node in listed.elements():
        if isinstance(node.value, str):
            if node.value == "_self_":
                yield None
                continue
            name, _, package = node.value.partition("@")
            group, _, last = name.rpartition("/")
            yield _Entry(group, last, package or None)
        for key, choice in node.items():
            words = key.split()
            if words[:1] == ["override"] or not words:
                continue
            group, _, package = words[-1].partition("@")
            chosen = choices.get(words[-1])
            names = (
                (chosen,) if chosen is not None else [_followed(one, choices) for one in choice.elements() or (choice,)]
            )
            for one in names:
                if one:
                    yield _Entry(group, one, package or None, words[0] == "optional")


def _followed(node: Node, choices: Mapping[str, str]) -> str:
    """Return the name of a choice, with other choices filled in; "" where it cannot be told."""
    text = node.value if isinstance(node.value, str) else node.text.strip("\"'") if "${" in node.text else ""
    filled = _CHOICE.sub(lambda match: choices.get(match[1], match[0]), text)
    return "" if "${" in filled else filled
