"""Hydra's `defaults:` list, as far as its files exist.

Read: names and groups (`finetune: base` is finetune/base.yaml, placed under `finetune`) beside the config that lists
them, or from the first config's folder (`/db: x`); packages (`group@a.b: name`, which counts before the file's
`# @package _global_`), `optional`, `_self_` (last if it is not written, as since Hydra 1.1), names that follow another
choice (`actor: ${model_engine}_actor`), `hydra.searchpath` (`file://` from the folders above the config, `pkg://` if
the package's source is found), and choices. A choice of the command line counts before `override group: name`, and one
of a later entry before that of an earlier one. Files that are not found are listed as missing.
Source: "The Defaults List" in the manual of Hydra 1.3; tests/configs/test_hydra_composes_alike.py asks Hydra itself.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache, reduce
from pathlib import Path

from rlaudit.configs.merging import mapping_of, merged, nested, reread
from rlaudit.configs.source import Source
from rlaudit.configs.syntax.node import Node
from rlaudit.settings.place import Place

DEEPEST = 8
_CHOICE = re.compile(r"\$\{([\w./@-]+)\}")
_PACKAGE = re.compile(r"\s*#\s*@package\s+(\S+)")
_CONTENT = re.compile(r"^[ \t]*[^\s#]", re.MULTILINE)
_HEADER_LINES = 20
_GLOBAL = "_global_"


@dataclass(frozen=True)
class Choice:
    """What a command may choose for a group: `db=x`, `db@a.b=x`, `db=[x,y]`, `+db=x`, or `~db`, which has no names."""

    key: str
    names: tuple[str, ...] = ()
    added: bool = False


@dataclass(frozen=True, eq=False)
class Composed:
    """A config with the files that it inherits."""

    root: Node
    # The other files that were read.
    parts: tuple[str, ...] = ()
    # Entries whose file is missing.
    missing: tuple[str, ...] = ()
    # The keys of choices that are those of a group: the others are values.
    chosen: frozenset[str] = frozenset()


@dataclass(frozen=True)
class _Entry:
    # As written: with a slash in front it counts from the first config's folder. Empty beside the config.
    group: str
    names: tuple[str, ...]
    package: str | None = None
    optional: bool = False
    override: bool = False
    # Whether it has a group that may be chosen otherwise.
    is_choice: bool = True

    def folder(self, base: str) -> str:
        """Return the path of its group from the first config's folder. base: that of the config that lists it."""
        return self.group[1:] if self.group.startswith("/") else "/".join(filter(None, (base, self.group)))

    def paths(self, base: str) -> list[str]:
        """Return the paths of its files from there."""
        return [f"{self.folder(base)}/{name}".lstrip("/") for name in self.names]

    def target(self, base: str, at: tuple[str, ...], header: str | None = None) -> tuple[str, ...]:
        """Return the keys under which its content stands. at: those of the config that lists it."""
        if self.package is not None:
            package = "" if self.package == "_here_" else self.package
        else:
            # A package in the file counts from the root.
            package = f"{_GLOBAL}.{header}" if header is not None else self.group.lstrip("/").replace("/", ".")
        package = package.replace("_group_", f"{_GLOBAL}.{self.folder(base).replace('/', '.')}")
        keys = (*at, *filter(None, package.split(".")))
        return keys[len(keys) - keys[::-1].index(_GLOBAL) :] if _GLOBAL in keys else keys

    def key(self, base: str, at: tuple[str, ...]) -> str:
        """Return how a command names the choice: by its group, and by its package if that is not the group's own."""
        folder, package = self.folder(base), ".".join(self.target(base, at))
        return folder if package == folder.replace("/", ".") else f"{folder}@{package or _GLOBAL}"


@dataclass(eq=False)
class _Family:
    """The choices of one composition, and the files that it read."""

    first: Source
    # By the key of a group; no names remove it.
    choices: dict[str, tuple[str, ...]]
    # Further folders with configs.
    search: tuple[str, ...]
    # The choices that were made.
    known: dict[str, str] = field(default_factory=dict)
    parts: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)


# Called by every dialect that may know the file, and again for each version.
@lru_cache(maxsize=16)
def composed(source: Source, choices: tuple[Choice, ...] = ()) -> Composed | None:
    """Return the first document with its `defaults:` applied; None if the file is no mapping. choices: made on the
    command line (`model_engine=megatron`), as far as they are of groups.
    """
    root = mapping_of(source)
    if root is None:
        return None
    listed = root.get("defaults")
    made = {choice.key: choice.names for choice in choices if not choice.added}
    family = _Family(source, made, _search_path(source, root))
    added = {choice.key: _entry_of(choice) for choice in choices if choice.added}
    added = {key: entry for key, entry in added.items() if any(_file(family, path) for path in entry.paths(""))}
    tree = reduce(merged, _in_order(root, "", (), family, (source.path,), tuple(added.values())))
    if family.missing and listed is not None:
        # Shows interpolation that a missing key may be set in a file of the list.
        tree = merged(tree, nested(("defaults",), listed))
    if family.parts:
        tree = reread(tree)
    chosen = frozenset({*(choice.key for choice in choices if choice.key in family.known), *added})
    return Composed(tree, tuple(dict.fromkeys(family.parts)), tuple(dict.fromkeys(family.missing)), chosen)


def _entry_of(choice: Choice) -> _Entry:
    group, _, package = choice.key.partition("@")
    return _Entry(group, choice.names, package or None)


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


def _in_order(
    root: Node, base: str, at: tuple[str, ...], family: _Family, seen: tuple[str, ...], added: tuple[_Entry, ...] = ()
) -> list[Node]:
    """Return a config and what its list names, each under its keys, the first to be merged first.

    base: its folder from that of the first config.
    """
    content = nested(at, Node({key: node for key, node in root.items() if key != "defaults"}, root.place, root.key))
    listed = root.get("defaults")
    if listed is not None and not isinstance(listed.value, tuple):
        return [nested(at, root)]
    entries = [*_entries(listed)] if listed is not None else []
    if None not in entries:
        entries.append(None)
    entries += added
    for entry in entries:
        if entry is not None and entry.override:
            family.choices.setdefault(entry.key(base, at), entry.names)
    parts = [[content] if entry is None else [] for entry in entries]
    # What follows a choice waits for it; and a later entry may override the choice of an earlier one.
    for place in sorted(range(len(entries)), key=lambda place: (_follows(entries[place]), -place)):
        entry = entries[place]
        if entry is not None and not entry.override:
            parts[place] = _read(entry, base, at, family, seen)
    return [node for part in parts for node in part]


def _follows(entry: _Entry | None) -> bool:
    return entry is not None and any("${" in name for name in entry.names)


def _read(entry: _Entry, base: str, at: tuple[str, ...], family: _Family, seen: tuple[str, ...]) -> list[Node]:
    """Return what the files of an entry hold, in order."""
    key, names = entry.key(base, at), entry.names
    if entry.is_choice:
        names = family.choices.get(key, names)
        family.known[key] = names[0] if len(names) == 1 else ""
    nodes: list[Node] = []
    for path in replace(entry, names=names).paths(base):
        followed = _CHOICE.sub(lambda match: family.known.get(match[1]) or match[0], path)
        file = _file(family, followed) if "${" not in followed else None
        root = _mapping(file) if file is not None and file.path not in seen and len(seen) <= DEEPEST else None
        if file is None or root is None:
            # Hydra brings its own groups along, which say how it starts and logs.
            if not (file is None and (entry.optional or followed.startswith("hydra/"))):
                family.missing.append(_yaml_name(followed))
            continue
        family.parts.append(file.path)
        target = entry.target(base, at, _header(file.text))
        nodes += _in_order(root, followed.rpartition("/")[0], target, family, (*seen, file.path))
    return nodes


def _file(family: _Family, path: str) -> Source | None:
    """Return the config at a path from the first config's folder, or from another folder with configs."""
    name = _yaml_name(path)
    places = (family.first.neighbour(place) for place in (name, *(f"{folder}/{name}" for folder in family.search)))
    return next((file for file in places if file is not None), None)


def _yaml_name(path: str) -> str:
    return path if path.endswith((".yaml", ".yml")) else f"{path}.yaml"


def _mapping(file: Source) -> Node | None:
    """Return the content of a config; one that is empty, or all comment, is an empty mapping."""
    root = mapping_of(file)
    if root is None and not file.outside and _CONTENT.search(file.text) is None:
        return Node({}, Place(file.path, 1, 1, ""))
    return root


def _header(text: str) -> str | None:
    """Return the package of a config from the comment before its first key."""
    for line in text.split("\n", _HEADER_LINES)[:_HEADER_LINES]:
        header = _PACKAGE.match(line)
        if header is not None:
            return header[1]
        if line.strip() and not line.lstrip().startswith("#"):
            return None
    return None


def _entries(listed: Node) -> Iterator[_Entry | None]:
    """Yield one entry per line of the list; None is `_self_`."""
    for node in listed.elements():
        if node.value == "_self_":
            yield None
        elif not isinstance(node.value, dict):
            name, _, package = _text(node).partition("@")
            group, _, last = name.rpartition("/")
            if name:
                yield _Entry(group or name[: name.startswith("/")], (last,), package or None, is_choice=False)
        for key, choice in node.items():
            *words, last = key.split() or [""]
            group, _, package = last.partition("@")
            names = tuple(filter(None, map(_text, choice.elements() or (choice,))))
            if group:
                yield _Entry(group, names, package or None, "optional" in words, "override" in words)


def _text(node: Node) -> str:
    """Return the name that a list writes, with the choices that it follows, no keys of the config; empty for null."""
    return node.text.strip("\"'") if "${" in node.text else node.value if isinstance(node.value, str) else ""
