"""How a framework's configs are written: each way makes the same tree of keys.

    files:
      yaml: {defaults: hydra}                      # or `paths`, files named relative to this one; or `none`
      overrides: {prefix: generator., base: true}     # Hydra's, over the config of --config, or the program's
      flags: {programs: [openrlhf.cli.train_ppo_ray]}       # `--option value`
      calls: {GRPOConfig: GRPO}                    # of a Python program; `call` in conditions is the word at the right;
                                                   # what may be among its `**more` is not known, and no default
      trees: {hook: F.NAME}                        # a function (source, spec) -> trees

A program of `flags` is the end of a word, a pattern of one (`*grpo*.py`), or two words: `swift rlhf`. As a mapping in
place of a list, each has the word that conditions know as `call`. An option is a key, with the dots that it has; a bare
`--no_x` is a false x, and several numbers after an option are one text. The file that `--config` names is read below
the options. What is not written is open if a word that is no option may hold some: a file, or a variable (`$OPTIONS`).
`base: true` of `overrides` reads them over the file that the command or the program starts from.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from rlaudit.configs.dialects.reading import sets_up_rollouts
from rlaudit.configs.dialects.spec import Spec
from rlaudit.configs.dialects.tree import Tree
from rlaudit.configs.hydra_defaults import Composed, composed
from rlaudit.configs.hydra_dotlist import Overridden, overridden
from rlaudit.configs.hydra_program import started_from
from rlaudit.configs.inherited_paths import inherited, overriding
from rlaudit.configs.merging import mapping_of, merged
from rlaudit.configs.source import Source
from rlaudit.configs.syntax.node import Node
from rlaudit.unknown import Unknown

if TYPE_CHECKING:
    from rlaudit.configs.syntax.flags import Flag
    from rlaudit.configs.syntax.shell_command import Command

Entry = Mapping[str, Any]
# What a user adds to the command.
_ADDED = re.compile(r"\$\{?[@*]")
_NUMBER = re.compile(r"-?[\d.]+")
_OWN_CONFIG = "the framework's own default config (--framework-source DIR names its folder)"
_FILES = (".yaml", ".yml", ".json")


def trees_of(source: Source, spec: Spec) -> Iterator[Tree]:
    """Yield every config of a file that is arranged as the dialect knows."""
    for way, entry in spec.declared["files"].items():
        for tree in _WAYS[way](source, spec, entry or {}):
            layout = next((layout for layout in spec.layouts if layout.section(tree.root) is not None), None)
            if layout is None:
                continue
            arranged = replace(tree, layout=layout)
            if sets_up_rollouts(spec, arranged, source) is not False:
                yield arranged


def _yaml(source: Source, spec: Spec, entry: Entry) -> Iterator[Tree]:
    """Yield the first document of a YAML or JSON file, with what it inherits."""
    written = mapping_of(source)
    if written is None:
        return
    reader: Callable[[Source], Composed | None] = inherited if entry.get("defaults") == "paths" else composed
    config = reader(source) if entry.get("defaults", "none") != "none" else Composed(written)
    if config is not None:
        yield Tree(config.root, written, parts=config.parts, missing=config.missing)


def _overrides(source: Source, spec: Spec, entry: Entry) -> Iterator[Tree]:
    """Yield commands that override a key with a prefix, on top of the config that they start from if it exists.

    A config file of the framework holds none, even if it interpolates `${prefix.key}`.
    """
    written = mapping_of(source)
    if written is not None and any(layout.root and layout.written(written) is not None for layout in spec.layouts):
        return
    for override in overridden(source, entry["prefix"]):
        base = _base(source, override) if entry.get("base") else Composed(override.root)
        yield Tree(base.root, override.root, override.command, parts=base.parts, missing=base.missing)


def _base(source: Source, override: Overridden) -> Composed:
    """Return a command on top of the config that it starts from: the file that it names, else the program's own."""
    composed = overriding(source, override) or started_from(source, override)
    return composed or Composed(override.root, missing=(_OWN_CONFIG,))


def _flags(source: Source, spec: Spec, entry: Entry) -> Iterator[Tree]:
    """Yield commands that start one of some programs, with their options, over those of the file that `--config` names.

    Variables are also those of a launcher in front of the program: `--env NAME=value`.
    """
    from rlaudit.configs.arguments import by_name
    from rlaudit.configs.command_lines import command_lines
    from rlaudit.configs.syntax.flags import flags

    listed = entry["programs"]
    programs: Mapping[str, str] = listed if isinstance(listed, dict) else dict.fromkeys(listed, "")
    # With the blank in front of the second word, `${rollout.model}` in YAML is no script.
    marks = (f"{' ' if ' ' in name else ''}{name.rpartition(' ')[2]}".rpartition("*")[2] for name in programs)
    for command in command_lines(source, *marks):
        for at in range(len(command.words)):
            name = next((program for program in programs if _starts(program, command.words[: at + 1])), None)
            if name is None:
                continue
            options = flags(command.words, at + 1)
            arguments = by_name((_with_interval(flag) for flag in options), negations=True)
            named = arguments.pop("config", None)
            beside = source.named_file(named)
            behind = mapping_of(beside) if beside is not None else None
            given = Node(arguments, command.place)
            root = given if behind is None else merged(behind, given)
            parts = (beside.path,) if beside is not None and behind is not None else ()
            missing = (str(named.text or named.value),) if named is not None and behind is None else ()
            yield Tree(root, given, _launched(command, at), at + 1, programs[name], parts=parts, missing=missing,
                       open=", ".join((*missing, *_holding_options(options))))  # fmt: skip
            break


def _starts(program: str, words: Sequence[Node]) -> bool:
    """Return whether words end with a program."""
    word, before = words[-1].value, words[-2].value if len(words) > 1 else None
    first, blank, last = program.rpartition(" ")
    if not isinstance(word, str) or not fnmatchcase(word, last if blank or "*" in last else f"*{last}"):
        return False
    return not blank or (isinstance(before, str) and PurePath(before).name == first)


def _with_interval(flag: "Flag") -> "Flag":
    """Return an option with all of its words as one text if they are numbers: `--threshold 0.5 5.0`."""
    if flag.value is None or not flag.more:
        return flag
    words = (flag.value, *flag.more)
    if not all(_NUMBER.fullmatch(word.text) for word in words):
        return flag
    text = " ".join(word.text for word in words)
    return replace(flag, value=replace(flag.value, value=text, text=text))


def _holding_options(options: "Iterable[Flag]") -> Iterator[str]:
    """Yield words in place of options that hold some: a config file, or a variable. `"$@"` only adds to them."""
    for flag in options:
        if flag.name or flag.value is None:
            continue
        word = flag.value
        is_variable = isinstance(word.value, Unknown) and not _ADDED.search(word.text)
        if is_variable or (isinstance(word.value, str) and word.value.endswith(_FILES)):
            yield word.text


def _launched(command: "Command", at: int) -> "Command":
    """Return a command with the variables that its launcher sets: `mason --env NAME=value ... -- program`."""
    from rlaudit.configs.syntax.flags import flags

    variables = dict(command.variables)
    for flag in flags(command.words[:at]):
        for word in (flag.value, *flag.more) if flag.name == "env" else ():
            if word is not None and isinstance(word.value, str) and "=" in word.value:
                name, _, value = word.value.partition("=")
                variables[name] = Node(value, word.place, flag.place, word.text)
    return replace(command, variables=variables)


def _calls(source: Source, spec: Spec, classes: Entry) -> Iterator[Tree]:
    """Yield the calls of a framework's config classes in a Python program."""
    if source.suffix != ".py" or not any(f"{name}(" in source.text for name in classes):
        return
    from rlaudit.configs.model_of_trainer import model_of_trainer

    try:
        calls = [(call, model_of_trainer(source, call.name)) for call in source.calls(classes)]
    except (ValueError, RecursionError):  # kept in source.refusals
        return
    for call, model in calls:
        given = Node(dict(call.arguments), call.place)
        root = given if model is None else Node({"model": model, **call.arguments}, call.place)
        yield Tree(root, given, call=classes[call.name], python_call=call, open=call.open)


def _hook(source: Source, spec: Spec, entry: Entry) -> Iterator[Tree]:
    """Yield the trees of a function in the dialect's Python file."""
    yield from spec.hook(entry["hook"])(source, spec)


_WAYS: Mapping[str, Callable[[Source, Spec, Entry], Iterator[Tree]]] = {
    "yaml": _yaml,
    "overrides": _overrides,
    "flags": _flags,
    "calls": _calls,
    "trees": _hook,
}
WAYS = tuple(_WAYS)
