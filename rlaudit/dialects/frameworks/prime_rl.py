"""What YAML cannot say of prime-rl: files of one section, the files of one run side by side, and its command line.

The file of a run has the sections inference, orchestrator and trainer; the file of one entry point has the content of
one of them at its root.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePath

from rlaudit.configs.arguments import of_word
from rlaudit.configs.command_lines import command_lines
from rlaudit.configs.engine_names import canonical
from rlaudit.configs.merging import merged, nested
from rlaudit.configs.source import Source
from rlaudit.configs.syntax.flags import flags
from rlaudit.configs.syntax.node import Node, entries
from rlaudit.configs.syntax.shell_command import Command
from rlaudit.dialects.reading import Reading
from rlaudit.dialects.spec import Spec
from rlaudit.dialects.tree import Tree

# Section -> the words for it in names of files, the longer first.
_SECTIONS: Mapping[str, tuple[str, ...]] = {
    "inference": ("inference", "infer"),
    "orchestrator": ("orchestrator", "orch"),
    "trainer": ("trainer", "train"),
}
_ENTRIES = ("rl", *_SECTIONS)
_INFERENCE_ONLY = {
    "vllm_extra", "enable_fp32_lm_head", "enable_fp32_router_logits", "use_deep_gemm", "kv_cache_offload",
    "weight_broadcast", "api_server_count",
}  # fmt: skip
_TRAINER_ONLY = {"optim", "loss", "ckpt", "weight_broadcast", "scheduler", "data"}


@dataclass(frozen=True, eq=False)
class _Started:
    """A command that starts prime-rl."""

    entry: str
    command: Command
    root: Node
    parts: tuple[str, ...]
    missing: tuple[str, ...]
    # Sections of which it names a file, or overrides a key.
    named: frozenset[str]
    overrides: bool


def trees(source: Source, spec: Spec) -> Iterator[Tree]:
    """Find the runs of a TOML file or of a script."""
    if source.suffix == ".toml":
        root = _toml(source)
        written = _sections(root) if root is not None else None
        if written is not None:
            root = _arranged(written)
            yield Tree(root, root)
        return
    for run in _runs(source):
        root = _arranged(run.root)
        yield Tree(root, root, run.command, parts=run.parts, missing=run.missing)


def _toml(source: Source) -> Node | None:
    try:
        return source.toml
    except (ValueError, RecursionError):  # kept in source.refusals
        return None


def _sections(root: Node) -> Node | None:
    """Return the sections of a prime-rl TOML, the root's own under its name; None for any other file."""
    inference, orchestrator, trainer = (_table(root, name) for name in _SECTIONS)
    if (orchestrator is not None and (inference is not None or trainer is not None)) or (
        inference is not None and (trainer is not None or _is_inference(inference))
    ):
        return root
    if inference is not None or orchestrator is not None or trainer is not None:
        return None
    if _is_inference(root):
        return nested(("inference",), root)
    return nested(("orchestrator",), root) if _is_orchestrator(root) else None


def _is_inference(table: Node) -> bool:
    names = set(dict(table.items()))
    if _table(table, "vllm") is not None:
        return bool(names & (_INFERENCE_ONLY | {"server", "deployment", "router", "slurm", "log"})) or len(names) == 1
    sized = bool({"tp", "dp"} & set(dict(entries(table.get("parallel")))))
    return _table(table, "model") is not None and (sized or bool(names & _INFERENCE_ONLY))


def _is_orchestrator(table: Node) -> bool:
    """Return whether a table samples for an environment, with a group size."""
    grouped = any(table.get(name) is not None for name in ("rollouts_per_example", "group_size", "batch_size"))
    sampling = table.get("train", "sampling") or _table(table, "sampling")
    places = (("env",), ("environment",), ("train", "env"), ("train", "source"))
    return grouped and sampling is not None and any(table.get(*path) is not None for path in places)


def _table(root: Node, name: str) -> Node | None:
    node = root.get(name)
    return node if node is not None and isinstance(node.value, dict) else None


def _arranged(root: Node) -> Node:
    """Return the sections with vLLM's spelling of pass-through keys, and with the rollouts' sampling as one table."""
    for table in ("vllm", "vllm_extra"):
        passed = root.get("inference", table)
        if passed is not None and isinstance(passed.value, dict):
            spelt = Node({canonical(name): node for name, node in passed.items()}, passed.place, passed.key)
            root = _with_node(root, ("inference", table), spelt)
    sampling: dict[str, Node] = {}
    for path in (("sampling",), ("train", "sampling")):
        for name, node in entries(root.get("orchestrator", *path)):
            sampling |= dict(node.items()) if name == "extra_body" else {name: node}
    return _with_node(root, ("sampling",), Node(sampling, root.place)) if sampling else root


def _with_node(root: Node, path: tuple[str, ...], node: Node) -> Node:
    """Return a tree with a node at a path."""
    if not path:
        return node
    below = _with_node(root.get(path[0]) or node, path[1:], node)
    return Node({**dict(root.items()), path[0]: below}, root.place, root.key)


def _runs(source: Source) -> Iterator[_Started]:
    """Yield the commands of a script, apart from those that only name one file: it is read by itself."""
    marks = (*(f"{entry} @" for entry in _ENTRIES), "--inference", "--orchestrator", "--vllm.")
    started = (_started(line, source) for line in command_lines(source, *marks))
    yield from (run for run in started if run is not None and (run.overrides or len(run.named) > 1))


def _started(command: Command, source: Source) -> _Started | None:
    """Return the overrides of a command over the files that it names by `@`."""
    entry_point = _entry(command)
    if entry_point is None:
        return None
    entry, at = entry_point
    words, section = command.words[at:], () if entry == "rl" else (entry,)
    tree, parts, missing, named = Node({}, command.place), list[str](), list[str](), set[str](section)
    for index, word in enumerate(words):
        name = words[index + 1].value if word.value == "@" and index + 1 < len(words) else None
        if not isinstance(name, str):
            continue
        before = words[index - 1].value if index else ""
        home = (before[2:],) if isinstance(before, str) and before[2:] in _SECTIONS else section
        beside = source.named_file(words[index + 1])
        root = _toml(beside) if beside is not None else None
        named |= set(home)
        if beside is None or root is None:
            missing.append(name)
        else:
            parts.append(beside.path)
            tree = merged(tree, nested(home, root))
    overrides = False
    for flag in flags(words):
        path = tuple(flag.name.split("."))
        is_file = flag.value is not None and flag.value.value == "@"
        if not flag.name or is_file or (flag.value is None and path[0] not in _SECTIONS):
            continue
        leaf = Node(True, flag.place, flag.place) if flag.value is None else of_word(flag.value, flag.place)
        overrides = overrides or bool(section) or path[0] in {*_SECTIONS, "vllm"}
        tree = merged(tree, nested((*section, *path), leaf))
    return _Started(entry, command, tree, tuple(parts), tuple(missing), frozenset(named), overrides)


def _entry(command: Command) -> tuple[str, int] | None:
    """Return the entry point that a command starts, and the index of its first option."""
    for at, word in enumerate(command.words):
        name = PurePath(word.value).name if isinstance(word.value, str) else ""
        if name in _ENTRIES and (at == 0 or command.words[at - 1].value == "run"):
            return name, at + 1
        if re.fullmatch(r"prime_rl\.(entrypoints|inference)\.\w+", name):
            return name.rpartition(".")[2].replace("server", "inference"), at + 1
    return None


def name_exceptions(reading: Reading) -> None:
    """Name environments that sample otherwise."""
    for path in (("env",), ("train", "env"), ("train", "source")):
        node = reading.tree.root.get("orchestrator", *path)
        for environment in node.elements() if node is not None else ():
            for sampling in (environment.get("sampling"), environment.get("env", "sampling")):
                if sampling is not None:
                    reading.draft.not_seen.append(f"{sampling.place.setting}: this environment samples differently")
