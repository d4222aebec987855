"""Hydra's `defaults:` list, as far as its files exist.

Read: names beside the file, groups (`finetune: base` is finetune/base.yaml, placed under `finetune`), packages
(`group@a.b: name`, `# @package _global_`), `optional`, `override`, `_self_` (last if it is not written, as since Hydra
1.1), names that follow another choice (`actor: ${model_engine}_actor`), choices of the command line, and
`hydra.searchpath` (`file://` from the folders above the config, `pkg://` if the package's source is found). Files that
are not found are listed as missing.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache, reduce
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
    """A config with the files that it inherits."""

    root: Node
    # The other files that were read.
    parts: tuple[str, ...] = ()
    # Entries whose file is missing.
    missing: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Entry:
    group: str
    name: str
    package: str | None
    optional: bool = False

    @property
    def file(self) -> str:
        """The path from the directory of the config that lists it."""
        path = f"{self.group}/{self.name}" if self.group else self.name
        return path if path.endswith((".yaml", ".yml")) else f"{path}.yaml"


@dataclass(eq=False)
class _Family:
    """The choices of one composition, and the files that it read."""

    choices: Mapping[str, str]
    # Further folders with configs.
    search: tuple[str, ...]
    parts: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)


# Called by every dialect that may know the file, and again for each version.
@lru_cache(maxsize=16)
def composed(source: Source, choices: tuple[tuple[str, str], ...] = ()) -> Composed | None:
    """Return the first document with its `defaults:` applied; None if the file is no mapping. choices: of groups, made
    on the command line (`model_engine=megatron`).
    """
    root = mapping_of(source)
    if root is None:
        return None
    listed = root.get("defaults")
    family = _Family(dict(choices), ())
    if listed is not None:
        family = _Family({**_choices(listed), **family.choices}, _search_path(source, root))
    tree = _compose(source, root, (), family, (source.path,))
    if family.missing and listed is not None:
        # Shows interpolation that a missing key may be set in a file of the list.
        tree = merged(tree, nested(("defaults",), listed))
    if family.parts:
        tree = reread(tree)
    return Composed(tree, tuple(dict.fromkeys(family.parts)), tuple(dict.fromkeys(family.missing)))


def _search_path(source: Source, root: Node) -> tuple[str, ...]:
    """Return the folders of `hydra.searchpath` that exist."""
    listed = root.get("hydra", "searchpath")
    folders = []
    for node in listed.elements() if listed is not None else ():
        scheme, _, name = str(node.value).rpartition("://")
        if scheme == "pkg":
            from rlaudit.configs.framework_source.checkout import checkout_of

            path = name.replace(".", "/")
            checkout = checkout_of(source, name.partition(".")[0], path)
            folders += [f"{checkout.root}/{path}"] if checkout is not None else []
        else:
            above = (folder / name for folder in Path(source.path).absolute().parents)
            folders += [str(folder) for folder in above if folder.is_dir()][:1]
    return tuple(folders)


def _compose(source: Source, root: Node, at: tuple[str, ...], family: _Family, seen: tuple[str, ...]) -> Node:
    content = Node({key: node for key, node in root.items() if key != "defaults"}, root.place, root.key)
    content = nested(at, content)
    listed = root.get("defaults")
    if listed is None or not isinstance(listed.value, tuple):
        return nested(at, root) if listed is not None else content
    # `override group: name` changes a choice further down the chain; the outer one wins.
    overrides = {key.split()[-1]: name for key, name in _choices(listed).items() if key.split()[:1] == ["override"]}
    family = replace(family, choices={**overrides, **family.choices})
    entries = [*_entries(listed, family.choices)]
    if None not in entries:
        entries.append(None)
    parts = [content if entry is None else _read(source, entry, at, family, seen) for entry in entries]
    return reduce(merged, [part for part in parts if part is not None])


def _read(source: Source, entry: _Entry, at: tuple[str, ...], family: _Family, seen: tuple[str, ...]) -> Node | None:
    name = entry.file.lstrip("/")
    file = source.neighbour(name)
    for folder in family.search if file is None else ():
        file = file or source.neighbour(f"{folder}/{name}")
    if file is None or file.path in seen or len(seen) > DEEPEST:
        if not entry.optional:
            family.missing.append(entry.file)
        return None
    root = mapping_of(file)
    if root is None:
        family.missing.append(entry.file)
        return None
    family.parts.append(file.path)
    package = _header(file.text) or entry.package
    target = _package(package, entry.group, at)
    return _compose(file, root, target, family, (*seen, file.path))


def _header(text: str) -> str | None:
    """Return the package of a config from the comment before its first key."""
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


def _choices(listed: Node) -> dict[str, str]:
    """Return the entries `group: name` of a list, by group."""
    entries = (entry for element in listed.elements() for entry in element.items())
    return {key: node.value for key, node in entries if isinstance(node.value, str)}


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
            written = choice.elements() or (choice,)
            for name in [_followed(node, choices) for node in written] if chosen is None else [chosen]:
                if name:
                    yield _Entry(group, name, package or None, words[0] == "optional")


def _followed(node: Node, choices: Mapping[str, str]) -> str:
    """Return the name of a choice, with other choices filled in; "" if it is unknown."""
    name = node.value if isinstance(node.value, str) else node.text.strip("\"'") if "${" in node.text else ""
    resolved = _CHOICE.sub(lambda match: choices.get(match[1], match[0]), name)
    return "" if "${" in resolved else resolved
