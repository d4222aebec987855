"""What may stand in a dialect, checked with the line and the key of each fault.

Dialects of this package are checked by the tests; one that a user names, each time it is read.
"""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml
from packaging.version import InvalidVersion, Version

from rlaudit.configs.rollout_config import TRAINER
from rlaudit.dialects.clause import LOSSES
from rlaudit.dialects.condition import condition
from rlaudit.dialects.spec import LARGEST_BYTES, shipped
from rlaudit.did_you_mean import did_you_mean
from rlaudit.errors import UsageError
from rlaudit.read_regular import read_regular

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
Fault = tuple[yaml.Node, str]
Check = Callable[[yaml.Node], Iterator[Fault]]


def check(path: Path, *, has_hooks: bool) -> None:
    """Raise UsageError for the first fault of a dialect's own file, with how many there are. has_hooks: whether there
    may be Python beside it.
    """
    found = faults(path, has_hooks=has_hooks)
    if found:
        more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
        raise UsageError(f"{found[0]}{more}", "see `rlaudit explain dialects`")


def faults(path: Path, *, has_hooks: bool = True) -> list[str]:
    """Return every fault of a dialect's own file as `FILE:LINE: what`. A file that is no YAML has one, too."""
    try:
        written = read_regular(path, LARGEST_BYTES, "no dialect").decode("utf-8")
        root = yaml.compose(written, Loader=_LOADER)
    except (OSError, ValueError, yaml.YAMLError, RecursionError) as error:
        return [f"{path}: {str(error).partition(chr(10))[0]}"]
    if root is None:
        return [f"{path}:1: it is empty"]
    found = list(_dialect(root))
    if not has_hooks:
        found += [(key, f"{key.value}: no Python is run for a dialect that is named") for key in _hooks(root)]
    return [f"{path}:{node.start_mark.line + 1}: {what}" for node, what in found]


def _hooks(root: yaml.Node) -> Iterator[yaml.Node]:
    """Return every key that names a function."""
    for key, value in root.value if isinstance(root, yaml.MappingNode) else ():
        if key.value in {"hook", "hooks", "hooks in"}:
            yield key
        yield from _hooks(value)


def anything(_node: yaml.Node) -> Iterator[Fault]:
    """Accept every value."""
    yield from ()


def text(node: yaml.Node) -> Iterator[Fault]:
    """Accept a text or a number."""
    if not isinstance(node, yaml.ScalarNode) or node.tag == "tag:yaml.org,2002:null":
        yield node, "a text is expected"


def flag(node: yaml.Node) -> Iterator[Fault]:
    """Accept true and false."""
    if node.tag != "tag:yaml.org,2002:bool":
        yield node, "true or false is expected"


def number(node: yaml.Node) -> Iterator[Fault]:
    """Accept a number."""
    if node.tag not in {"tag:yaml.org,2002:int", "tag:yaml.org,2002:float"}:
        yield node, "a number is expected"


def release(node: yaml.Node) -> Iterator[Fault]:
    """Accept a release."""
    if not is_release(str(node.value)):
        yield node, f"{node.value!r} is no release"
    elif node.tag == "tag:yaml.org,2002:float":
        yield node, f"{node.value} is a number to YAML, which takes 1.10 for 1.1; write {node.value}.0"


def is_release(name: str) -> bool:
    """Return whether a text is a release."""
    try:
        Version(name)
    except InvalidVersion:
        return False
    return True


def holds(node: yaml.Node) -> Iterator[Fault]:
    """Accept a condition."""
    if not isinstance(node, yaml.ScalarNode):
        yield node, "a condition is expected"
        return
    try:
        condition(node.value)
    except (ValueError, RecursionError) as error:
        yield node, str(error)


def one_of(*words: str) -> Check:
    """Accept one of some words."""

    def check_word(node: yaml.Node) -> Iterator[Fault]:
        if node.value not in words:
            yield node, f"one of {', '.join(words)} is expected, found {node.value!r}"

    return check_word


def list_of(check_one: Check) -> Check:
    """Accept a list of what another check accepts."""

    def check_list(node: yaml.Node) -> Iterator[Fault]:
        if not isinstance(node, yaml.SequenceNode):
            yield node, "a list is expected"
            return
        for child in node.value:
            yield from check_one(child)

    return check_list


def one_or_more(check_one: Check) -> Check:
    """Accept what another check accepts, or a list of it."""
    several = list_of(check_one)
    return lambda node: several(node) if isinstance(node, yaml.SequenceNode) else check_one(node)


def mapping_of(check_value: Check, names: Callable[[str], bool] | None = None, what: str = "") -> Check:
    """Accept a mapping of names to what another check accepts; null takes an entry of an extended dialect out."""

    def check_mapping(node: yaml.Node) -> Iterator[Fault]:
        if not isinstance(node, yaml.MappingNode):
            yield node, "a mapping is expected"
            return
        for key, value in node.value:
            if names is not None and not names(key.value):
                yield key, f"{key.value} is no {what}"
            elif value.tag != "tag:yaml.org,2002:null":
                yield from check_value(value)

    return check_mapping


def or_null(check_one: Check) -> Check:
    """Accept null as well, which takes an entry of an extended dialect out."""
    return lambda node: iter(()) if node.tag == "tag:yaml.org,2002:null" else check_one(node)


def keys(known: Mapping[str, Check], *required: str) -> Check:
    """Accept a mapping with known keys."""

    def check_keys(node: yaml.Node) -> Iterator[Fault]:
        if not isinstance(node, yaml.MappingNode):
            yield node, f"a mapping with {', '.join(known)} is expected"
            return
        found = {str(key.value): (key, value) for key, value in node.value}
        listed = f"known: {', '.join(known)}"
        for name, (key, value) in found.items():
            if name not in known:
                yield key, f"{name} is no key here; {did_you_mean(name, known, listed)}"
            else:
                yield from known[name](value)
        for name in required:
            if name not in found:
                yield node, f"{name} is missing"

    return check_keys


_AT = mapping_of(one_or_more(text))
_REASON = {"because": text, "at": _AT}
_CLAUSE = keys(
    {
        "if": holds,
        "key": text,
        "default": anything,
        "moved": mapping_of(anything, is_release, "release"),
        "value": anything,
        "open": text,
        "among": list_of(anything),
        "nothing": flag,
        "since": release,
        "before": release,
        "lost": one_of(*LOSSES),
        "map": mapping_of(anything),
        "above": number,
        "text": flag,
        "truth": flag,
        "wrap": text,
        "json": flag,
        "up to": list_of(number),
        "null": anything,
        "fixes": flag,
        "mapping": mapping_of(anything),
        "same as": text,
        "sum": list_of(text),
        "product": list_of(text),
        "copy has": _AT,
        **_REASON,
    }
)
_SETTING = one_or_more(_CLAUSE)
# Replicas may also be counted: devices divided by the ranks of one engine.
_COUNTED = keys(
    {"if": holds, "devices": list_of(text), "ranks": list_of(text), "missing": text, **_REASON},
    "devices", "ranks", "because", "missing",
)  # fmt: skip
_PASSED_ON = keys(
    {
        "if": holds,
        "key": text,
        "unknown key": text,
        "front end": list_of(text),
        "overruled": keys({"arguments": list_of(text), "because": text}, "arguments", "because"),
        "json": flag,
        "null": one_of("nothing"),
        "lost": one_of(*LOSSES),
        "flags": keys({"if": holds, "otherwise": text, "alone": flag}, "if", "otherwise"),
        "command": one_of("wins", "yields"),
        "prefixes": list_of(text),
        **_REASON,
    }
)
_DECIDED = keys({"if": holds, "because": text}, "because")
_ELSEWHERE = keys(
    {"if": holds, "because": text, "lost": one_of(*LOSSES), "open": one_of("kept"), "keeps": list_of(text)},
    "because",
)  # fmt: skip


def _replicas(node: yaml.Node) -> Iterator[Fault]:
    """Accept a clause, or how engines are counted."""
    counted = isinstance(node, yaml.MappingNode) and any(key.value == "devices" for key, _ in node.value)
    yield from (_COUNTED if counted else _CLAUSE)(node)


_LOST = {"if": holds, "as": one_of(*LOSSES), **_REASON}
_LOST_KEY = keys({"key": text, "unless": anything, "name": text, **_LOST}, "key", "as", "because")
_LOST_OTHERS = keys(
    {"others of": text, "but": list_of(text), "arguments": flag, **_LOST}, "others of", "as", "because"
)  # fmt: skip


def _lost(node: yaml.Node) -> Iterator[Fault]:
    """Accept a key that never arrives, or all keys of a mapping that the dialect does not name."""
    others = isinstance(node, yaml.MappingNode) and any(key.value == "others of" for key, _ in node.value)
    yield from (_LOST_OTHERS if others else _LOST_KEY)(node)


def _section(names: Callable[[str], bool] | None = None, what: str = "") -> Check:
    """Accept settings by name, and `*` for a mapping that is passed on."""

    def check_section(node: yaml.Node) -> Iterator[Fault]:
        if not isinstance(node, yaml.MappingNode):
            yield node, "a mapping is expected"
            return
        for key, value in node.value:
            if key.value == "*":
                yield from one_or_more(_PASSED_ON)(value)
            elif key.value == "replicas" and what:
                yield from one_or_more(_replicas)(value)
            elif names is not None and not names(key.value):
                yield key, f"{key.value} is no {what}"
            elif value.tag != "tag:yaml.org,2002:null":
                yield from _SETTING(value)

    return check_section


_WAYS: Mapping[str, Check] = {
    "yaml": keys({"defaults": one_of("hydra", "paths", "none")}),
    "overrides": keys({"prefix": text, "base": one_of("program", "config", "none")}, "prefix"),
    "flags": keys(
        {
            "programs": anything,
            "switches": list_of(text),
            "negated": list_of(text),
            "intervals": list_of(text),
            "config": text,
            "variables": text,
        },
        "programs",
    ),
    "calls": mapping_of(text),
    "dictionary": keys({"key": text, "on": text}, "key", "on"),
    "toml": anything,
    "trees": keys({"hook": text}, "hook"),
}


def _without_nulls(root: yaml.Node) -> yaml.Node:
    """Return a dialect without the sections that it takes out of an extended one."""
    if not isinstance(root, yaml.MappingNode):
        return root
    entries = [(key, value) for key, value in root.value if value.tag != "tag:yaml.org,2002:null"]
    return yaml.MappingNode(root.tag, entries, root.start_mark, root.end_mark)


_FILES = keys({name: or_null(way) for name, way in _WAYS.items()})
_BOUND = {"since": release, "before": release}
_BOUNDS = list_of(keys({"if": holds, **_BOUND, "because": text}, "if", "because"))
_RELEASE = keys(
    {
        "of": text,
        "package": keys({"names": list_of(text), "repositories": list_of(text)}, "names"),
        "carried": mapping_of(release, is_release, "release"),
        "oldest": release,
        "fields if": holds,
        "fields": mapping_of(keys({"if": holds, **_BOUND, "name": text})),
        "by keys": _BOUNDS,
        "runs with vllm": _BOUNDS,
        "admits vllm": mapping_of(release, is_release, "release"),
        "admits by": text,
        "by vllm": _BOUNDS,
    }
)
_WRITE = keys(
    {
        "fields": text,
        "others": text,
        "fields if": holds,
        "others if": holds,
        "plus": anything,
        "only": list_of(text),
        "given once": holds,
        "negation": keys({"prefix": text, "unless": holds}, "prefix", "unless"),
        "refused": list_of(keys({"argument": text, "value": anything, "if": holds}, "argument", "value", "if")),
        "if": holds,
        "hook": text,
    }
)
_DIALECT = keys(
    {
        "marks": list_of(anything),
        "title": text,
        "about": text,
        "specific": number,
        "extends": text,
        "read": text,
        "package": keys(
            {"folder": text, "names": list_of(text), "repositories": list_of(text), "files": list_of(text)}
        ),
        "files": _FILES,
        "layouts": mapping_of(keys({"root": text, "has": list_of(anything), "renames": mapping_of(text)})),
        "sources": mapping_of(list_of(text)),
        "kinds": mapping_of(holds),
        "rollouts if": holds,
        "no rollouts if": holds,
        "place": text,
        "conditions": mapping_of(holds),
        "release": lambda node: _RELEASE(_without_nulls(node)),
        "defaults if": holds,
        "defaults else": text,
        "nulls arrive if": holds,
        "backend": keys({"key": text, "default": text, "also": list_of(text)}, "key"),
        "shown at": text,
        "model": text,
        "device": text,
        "offline": holds,
        "bare": holds,
        "engine": _section(),
        "sampling": _section(),
        "neutral sampling": _DECIDED,
        "environment": _section(),
        "trainer": _section(lambda name: name in TRAINER, "trainer fact"),
        "objective": _section(),
        "own trainer": keys({"modules": list_of(text)}, "modules"),
        "lost": list_of(_lost),
        "guarded": keys({"arguments": list_of(text), **_REASON}, "because"),
        "elsewhere": mapping_of(one_or_more(_ELSEWHERE), lambda name: name in {"engine", "sampling"}, "section"),
        "falses": list_of(keys({"if": holds, "arrives": flag, **_REASON})),
        "options": list_of(text),
        "unknown options": keys({"named": text, "because": text}, "named", "because"),
        "rest": text,
        "other engines": keys({"besides": list_of(text), "if": holds}, "besides"),
        "not seen": list_of(keys({"if": holds, "say": text}, "if", "say")),
        "write": _WRITE,
        "hooks": list_of(text),
        "hooks in": text,
    }
)  # fmt: skip


def _dialect(root: yaml.Node) -> Iterator[Fault]:
    yield from _DIALECT(_without_nulls(root))
    if not isinstance(root, yaml.MappingNode):
        return
    said = {key.value: value for key, value in root.value}
    base = said.get("extends")
    if base is not None and base.value not in shipped():
        yield base, f"{base.value} is no dialect; known: {', '.join(shipped())}"
    needed = ("marks", "title") if base is not None else ("marks", "title", "read", "files", "layouts")
    for name in needed:
        if name not in said:
            yield root, f"{name} is missing"
