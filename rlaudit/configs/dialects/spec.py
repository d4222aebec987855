"""A dialect as it is written: `frameworks/NAME.yaml`.

    marks: [inference_engine, [generator, engine_init_kwargs]]     # words of which a file has one, or all of a list
    title: SkyRL
    about: Overrides on a command line, or YAML.                   # the first sentence of `explain`
    mentioned as: [skyrl]                                          # words by which a file without a config is named

    read: a956457                          # the revision that was read, for messages
    sources: {trainer: [a/trainer.py, b/trainer.py]}        # words for files in `at:` that releases have moved
    package: {folder: skyrl, names: [skyrl], repositories: [NovaSky-AI/SkyRL]}
    files: {yaml: {defaults: hydra}, overrides: {prefix: generator.}}       # how configs are written (`front_ends.py`)
    layouts: {newer: {root: generator.inference_engine}, older: {root: generator, has: [...], renames: {...}}}
      # the first that fits: what stands at its root, with one of the keys below it that `has` lists. `renames` says how
      # a key of this dialect is spelt in it
    kinds: {rloo: normalize_advantages is set}     # `call`, in place of the program's or the class's word
    rollouts if: use_vllm                          # else the config is none
    conditions: {asynchronous: trainer.fully_async is set}                  # names for conditions (`condition.py`)
    release: {...}                                 # what tells the release (`span.py`)
    shown at: inference | orchestrator             # where a config stands that is more than its layout's root
    backend: {key: "@backend", default: vllm}      # read if it begins with vllm; a fork's if it is another word
    model: actor.model_path | pretrain             # the key that names the model
    offline: true                          # the engine is an LLM in the program; `bare`: an AsyncLLM or LLMEngine that
                                           # the framework builds. Conditions, else false: a server
    engine: {ARGUMENT: CLAUSES, ...}       # what becomes each argument of vLLM, in vLLM's names (`clause.py`);
                                           # likewise `sampling`, `environment`, `trainer` (facts), `objective`
    neutral sampling: {if: ..., because: ...}      # what `sampling` lacks has SamplingParams' own values: requests are
                                           # made in code, where the model's generation_config.json decides nothing
    lost: [{key: ..., as: not passed, because: ...}]                        # what is written and never arrives
      # `unless: V`: except where it is written as V;
      # or {others of: "@vllm_cfg", but: [...]}: keys of a mapping that nothing here names; `arguments: true`: of vLLM's
    guarded: {because: ...}                # arguments are passed only to a vLLM that has them
    elsewhere: {engine: {if: ..., because: ...}}                            # decided by another file (`elsewhere.py`)
    nulls arrive if: CONDITION             # else a null of the engine's keys is nothing; without it as if not written
    falses: [...]                          # which written falses never arrive (`falses.py`)
    options: [trainer.algorithm.use_tis, "*clip*"]                          # the framework's own switches, listed
    unknown options: {named: "*vllm*", because: ...}       # so named, and nowhere in the dialect
    rest: "@"                              # a section of which everything else that is written is listed
    other engines: {besides: [policy]}             # sections with an engine that are named and not judged, but these
    not seen: [{if: ..., say: ...}]
    write: {others: "@engine_init_kwargs"}                                  # where a fix goes (`writing.py`)
    hooks: [F.NAME]                        # functions (reading) of the Python file F.py beside it, run last

Needed are `marks`, `title`, `read`, `files` and `layouts`; with `extends`, the first two.
`extends: verl` takes another dialect's entries, section by section, and replaces those that it has itself; a null takes
an entry out. The lines before the first blank one are the head, all that is read for files without its marks. Another
program of the framework has a file of its own, `NAME.PROGRAM.yaml`.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import islice
from pathlib import Path
from typing import Any

import yaml

from rlaudit.configs.dialects.clause import clauses
from rlaudit.configs.dialects.framework_code import At, filled
from rlaudit.configs.dialects.tree import Layout
from rlaudit.errors import UsageError
from rlaudit.files.read_regular import read_regular
from rlaudit.vllm.pins.pin import Package

FRAMEWORKS = Path(__file__).parent / "frameworks"
LARGEST_BYTES = 500_000
# Lines: a head is read for every file that is inspected.
_LONGEST_HEAD = 50
# libyaml reads a dialect in a millisecond, PyYAML's own loader in ten.
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
# Keys that hold places of the framework's code.
_OF_THE_CODE = {"at", "copy has"}
_OF_CLAUSES = ("engine", "sampling", "environment", "trainer", "objective")
# Sections that an extending dialect replaces entry by entry.
_BY_ENTRY = (*_OF_CLAUSES, "conditions", "layouts", "files", "release")


@dataclass(frozen=True, eq=False)
class Spec:
    """One dialect."""

    name: str
    path: Path
    # Everything that the file and what it extends say.
    declared: Mapping[str, Any]

    @property
    def title(self) -> str:
        """The framework's name as its developers write it."""
        return str(self.declared["title"])

    @cached_property
    def layouts(self) -> tuple[Layout, ...]:
        """The arrangements of keys, the first that fits wins."""
        return tuple(
            Layout(name, layout.get("root", ""), tuple(layout.get("has", ())), layout.get("renames", {}))
            for name, layout in self.declared["layouts"].items()
        )

    @cached_property
    def package(self) -> Package | None:
        """How files of pins spell the framework; None if they are not searched."""
        package = self.declared.get("package", {})
        return package_of(package) if "names" in package else None

    @cached_property
    def places(self) -> tuple[tuple[str, At], ...]:
        """Every `at:` with the name of the setting that it decides. A default that moved has several."""
        calls = tuple(
            dict.fromkeys((*self.declared.get("files", {}).get("calls", {}).values(), *self.declared.get("kinds", ())))
        )
        return tuple(
            (name, filled(clause["at"], value, *(calls or ("",))))
            for name, clause in _places(self.declared, "")
            for value in (clause.get("default", clause.get("value")), *clause.get("moved", {}).values())
        )

    @cached_property
    def keys(self) -> frozenset[str]:
        """Every path that the dialect reads."""
        return frozenset(_keys(self.declared))

    def keys_below(self, path: str) -> set[str]:
        """Return the keys of a mapping that the dialect reads."""
        prefix = path if path in {"", "@"} else f"{path}."
        return {key.removeprefix(prefix).partition(".")[0] for key in self.keys if key.startswith(prefix)}

    @cached_property
    def arguments(self) -> Mapping[str, str]:
        """The arguments of vLLM by the keys whose values they are."""
        return {
            path.strip(): name for name, entry in self.declared.get("engine", {}).items() if name != "*"
            for clause in clauses(entry) if "sum" not in clause for path in clause.get("key", "").split("|")
        }  # fmt: skip

    @cached_property
    def words(self) -> frozenset[str]:
        """Every name in the dialect."""
        return frozenset(re.findall(r"[\w.-]+", repr(self.declared)))

    @cached_property
    def markers(self) -> tuple[str, ...]:
        """Files by which a copy of the framework is known."""
        named = self.declared.get("package", {}).get("files", ())
        return tuple(dict.fromkeys((*named, *(file for _, at in self.places for file in at))))

    def may_change(self, condition: str) -> bool:
        """Return whether a condition is on settings that are found while a config is read."""
        return "$" in condition or any(name in condition for name in self._of_settings)

    @cached_property
    def _of_settings(self) -> tuple[str, ...]:
        return tuple(name for name, text in self.declared.get("conditions", {}).items() if "$" in str(text))

    def hook(self, name: str) -> Any:
        """Return the function `FRAMEWORK.NAME` of the Python file beside a dialect."""
        import importlib

        home, _, function = name.partition(".")
        return getattr(importlib.import_module(f"rlaudit.configs.dialects.frameworks.{home}"), function)


def package_of(entry: Mapping[str, Any]) -> Package:
    """Return how files of pins spell a framework."""
    return Package(tuple(entry["names"]), tuple(entry.get("repositories", ())))


def shipped() -> dict[str, Path]:
    """Return the dialects of this package by name."""
    return {path.stem: path for path in sorted(FRAMEWORKS.glob("*.yaml")) if "." not in path.stem}


@lru_cache(maxsize=64)
def programs_of(path: Path) -> tuple[Path, ...]:
    """Return a dialect's file and those of the framework's other programs, if it is one of this package."""
    return (path, *(sorted(FRAMEWORKS.glob(f"{path.stem}.*.yaml")) if path.parent == FRAMEWORKS else ()))


@dataclass(frozen=True)
class Head:
    """The first lines of a dialect, by which a file is recognised."""

    title: str
    about: str
    # Groups of words. A file has all words of one group.
    marks: tuple[tuple[str, ...], ...]
    # Words that name the framework in a file without a config.
    mentioned_as: tuple[str, ...]
    # The highest wins if several dialects recognise a file: a fork is built on another framework.
    specific: int

    def marks_it(self, text: str) -> bool:
        """Return whether a text may be written in the dialect."""
        return any(all(word in text for word in words) for words in self.marks)


@lru_cache(maxsize=64)
def head_of(path: Path) -> Head:
    """Read the lines of a dialect before the first blank one. Raises UsageError if they lack marks or a title."""
    lines = []
    try:
        with path.open(encoding="utf-8") as file:
            for line in islice(file, _LONGEST_HEAD):
                if not line.strip():
                    break
                lines.append(line)
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: {getattr(error, 'strerror', error)}", "name a dialect's YAML file") from None
    head = _parsed("".join(lines), path)
    marks = head.get("marks")
    if not isinstance(marks, list) or not marks or not isinstance(head.get("title"), str):
        raise UsageError(f"{path}:1: a dialect begins with its marks and its title", "see `rlaudit explain dialects`")
    specific = 20 if "extends" in head else 10
    groups = tuple((mark,) if isinstance(mark, str) else tuple(mark) for mark in marks)
    return Head(head["title"], str(head.get("about", "")), groups, tuple(head.get("mentioned as", ())), specific)


@lru_cache(maxsize=64)
def spec_at(path: Path) -> Spec:
    """Read a dialect. Raises UsageError, with the line, if it is no YAML mapping or extends an unknown dialect."""
    dialect = mapping_at(path)
    extended = dialect.get("extends")
    if extended is not None:
        base = shipped().get(extended)
        if base is None:
            raise UsageError(f"{path}: it extends {extended}, which is no dialect", f"known: {', '.join(shipped())}")
        inherited = spec_at(base).declared
        # The code of one package decides nothing for the configs of another.
        is_other = dialect.get("package", {}).get("folder") not in {None, inherited["package"].get("folder")}
        dialect = over(without_places(inherited) if is_other else inherited, dialect)
    return Spec(path.stem.partition(".")[0], path, _located(dialect, dialect.get("sources", {})))


def mapping_at(path: Path) -> dict[str, Any]:
    """Return what a dialect's own file says. Raises UsageError."""
    try:
        text = read_regular(path, LARGEST_BYTES, "no dialect").decode("utf-8")
    except (OSError, ValueError) as error:
        raise UsageError(f"{path}: {error}", "name a dialect's YAML file") from None
    return _parsed(text, path)


def _parsed(text: str, path: Path) -> dict[str, Any]:
    try:
        dialect = yaml.load(text, Loader=_LOADER)
    except (ValueError, yaml.YAMLError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        line = f":{mark.line + 1}" if mark is not None else ""
        why = getattr(error, "problem", None) or str(error).partition("\n")[0]
        raise UsageError(f"{path}{line}: {why}", "see `rlaudit explain dialects`") from None
    if not isinstance(dialect, dict):
        raise UsageError(f"{path}: a dialect is a mapping", "see `rlaudit explain dialects`")
    return dialect


def over(base: Mapping[str, Any], extending: Mapping[str, Any]) -> dict[str, Any]:
    """Return a dialect that extends `base`: its own entries, then those that it inherits."""
    whole = {name: entry for name, entry in {**base, **extending}.items() if entry is not None}
    for section in _BY_ENTRY:
        if section in base and isinstance(extending.get(section), dict):
            entries = {**base[section], **extending[section]}
            whole[section] = {name: entry for name, entry in entries.items() if entry is not None}
    return whole


def without_places(dialect: Mapping[str, Any]) -> dict[str, Any]:
    """Return a dialect whose values are decided by another package than the one that is looked up."""

    def elsewhere(entry: Any) -> Any:
        if isinstance(entry, list):
            return [elsewhere(clause) for clause in entry]
        return entry and {**{key: part for key, part in entry.items() if key != "nowhere"}, "at": {}}

    sections = {
        section: {name: elsewhere(entry) for name, entry in dialect[section].items()}
        for section in _OF_CLAUSES
        if section in dialect
    }
    return {**{key: part for key, part in dialect.items() if key not in {"sources", "falses"}}, **sections}


def _located(part: Any, sources: Mapping[str, Sequence[str]]) -> Any:
    """Return a dialect whose `at:` name files in place of the words for them."""
    if isinstance(part, list):
        return [_located(child, sources) for child in part]
    if not isinstance(part, dict):
        return part
    return {
        key: {file: words for name, words in child.items() for file in sources.get(name, (name,))}
        if key in _OF_THE_CODE and isinstance(child, dict) else _located(child, sources)
        for key, child in part.items()
    }  # fmt: skip


def _keys(part: Any) -> Iterator[str]:
    """Return every path that a `key:` names."""
    for name, child in part.items() if isinstance(part, dict) else ():
        if name == "key" and isinstance(child, str):
            yield from (path.strip() for path in child.split("|"))
        yield from _keys(child)
    for child in part if isinstance(part, list) else ():
        yield from _keys(child)


def _places(part: Any, name: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Return every clause with an `at:` that names a place."""
    if isinstance(part, dict):
        if isinstance(part.get("at"), dict) and part["at"]:
            yield name, part
        for key, child in part.items():
            yield from _places(
                child, name if key in {"if", "at"} or (name and "." in name) else f"{name}{'.' * bool(name)}{key}"
            )
    elif isinstance(part, list):
        for child in part:
            yield from _places(child, name)
