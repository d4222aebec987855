"""What YAML cannot say of TRL: scripts of any name train with it, and flags of its server that are vLLM's."""

import ast
import re
from collections.abc import Iterator
from dataclasses import replace
from math import prod
from pathlib import PurePath
from typing import Any

from rlaudit.configs.arguments import by_name, truth
from rlaudit.configs.command_lines import command_lines
from rlaudit.configs.dialects.clause import Clause, clauses
from rlaudit.configs.dialects.reading import Reading, sets_up_rollouts
from rlaudit.configs.dialects.spec import Spec
from rlaudit.configs.dialects.tree import Tree
from rlaudit.configs.merging import mapping_of
from rlaudit.configs.program import TRAINING, program_source, trains, words_of
from rlaudit.configs.source import Source
from rlaudit.configs.syntax.flags import flags
from rlaudit.configs.syntax.node import Node
from rlaudit.configs.syntax.python_text import parse
from rlaudit.configs.syntax.shell_command import Command
from rlaudit.configs.syntax.unreadable import UnreadableText
from rlaudit.unknown import Unknown

_SUBCOMMANDS = {"grpo", "rloo"}
_LIBRARIES = ("trl", "unsloth")
_TRAINER = re.compile(r"\w*Trainer(?!Callback|State|Control|Config|Arguments|Mixin)\w*")
_OF_TRL = re.compile(r"\b(?:trl|unsloth)\.\w*Trainer\b")
_LAUNCHERS = {"accelerate", "torchrun", "python", "python3", "deepspeed", "trl"}
# Marks of a script that trains: one that evaluates has max_new_tokens as well, and none of a Trainer's arguments.
_OF_TRAINERS = {
    "num_generations", "max_completion_length", "reward_funcs", "vllm_mode", "vllm_gpu_memory_utilization",
    "vllm_server_host", "vllm_server_base_url", "vllm_device", "per_device_train_batch_size",
    "gradient_accumulation_steps", "num_train_epochs", "learning_rate", "max_steps", "config",
}  # fmt: skip


def command_lines_of_trainers(source: Source, spec: Spec) -> Iterator[Tree]:
    """Return the commands that start a trainer, each on the file that its `--config` names."""
    for command in command_lines(source, "use_vllm", "use-vllm", "trl ", "--config"):
        words = [word.value if isinstance(word.value, str) else "" for word in command.words]
        trees = (_started(source, spec, command, words, at) for at in range(len(words)))
        yield from [tree for tree in trees if tree is not None][:1]


def _started(source: Source, spec: Spec, command: Command, words: list[str], at: int) -> Tree | None:
    following = words[at + 1] if at + 1 < len(words) else ""
    is_subcommand = PurePath(words[at]).name == "trl" and following in _SUBCOMMANDS
    if not is_subcommand and not (_is_script(words, at) and _takes_options_of_a_trainer(command, at)):
        return None
    first = at + 1 + is_subcommand
    arguments = by_name(flags(command.words, first), negations=True)
    named = arguments.pop("config", None)
    beside = source.named_file(named)
    behind = mapping_of(beside) if beside is not None else None
    given = Node(arguments, command.place)
    missing = (str(named.text or named.value),) if named is not None and behind is None else ()
    alone = Tree(given, given, command, first, _kind(words[first - 1], arguments), missing=missing,
                 open="".join(missing))  # fmt: skip
    if "use_vllm" in arguments and truth(arguments["use_vllm"]) is False:
        return None
    if beside is None or behind is None:
        return alone if "use_vllm" in arguments else None
    by_itself = Tree(behind, behind, layout=spec.layouts[0])
    if "use_vllm" not in arguments and sets_up_rollouts(spec, by_itself, source) is False:
        return None
    return replace(alone, root=Node({**dict(behind.items()), **arguments}, command.place), parts=(beside.path,))


def _kind(script: str, arguments: dict[str, Node]) -> str:
    """Return the trainer that a script's name implies; empty if its options do."""
    name = script.lower()
    for word, kind in (("rloo", "rloo"), ("online_dpo", "online_dpo"), ("online-dpo", "online_dpo")):
        if word in name:
            return kind
    return "gold" if "gold" in name and "lmbda" in arguments else ""


def _is_script(words: list[str], at: int) -> bool:
    """Return whether a word is a program after a launcher, and nothing marks it as another framework's."""
    is_module = at > 0 and words[at - 1] == "-m"
    if not (words[at].endswith(".py") or is_module):
        return False
    if _LAUNCHERS.isdisjoint(PurePath(word).name for word in words[:at]):
        return False
    return not any("swift" in word or "--rlhf_type" in word for word in words)


def _takes_options_of_a_trainer(command: Command, at: int) -> bool:
    given = by_name(flags(command.words, at + 1))
    named = bool(words_of(str(command.words[at].value)) & TRAINING)
    return trains(command) and (named or bool(_OF_TRAINERS & given.keys()))


def batch(reading: Reading, _clause: Clause) -> Any:
    """Return how many sequences one generation of a colocated engine has."""
    parts = ["per_device_train_batch_size | 8", "vllm_tensor_parallel_size | 1"]
    if reading.tree.call != "online_dpo":
        parts.append("steps_per_generation | gradient_accumulation_steps | 1")
    sizes = [reading.value(part) for part in parts]
    unknown = next((size for size in sizes if isinstance(size, Unknown)), None)
    if unknown is None and all(isinstance(size, int) for size in sizes):
        return prod(sizes)
    of = "batch size * tensor parallel size * steps per generation, of which one is not known"
    return Unknown(f"{of}: {unknown.reason}" if unknown is not None else of)


def own_trainer(reading: Reading) -> None:
    """Leave open what another trainer decides, if the program trains with one that it does not take from TRL."""
    command = reading.tree.command
    program = reading.source if command is None else program_source(reading.source, command)
    trainers = _own_trainers(program) if program is not None else []
    script = str(command.words[reading.tree.options_at - 1].value) if command is not None else ""
    if trainers:
        reading.trainer = f"{' or '.join(trainers)}, which the program does not take from TRL"
    elif script and script not in _SUBCOMMANDS:
        what = f"whether {PurePath(script).name} trains with TRL's own trainer, as is taken here"
        reading.draft.not_seen.append(f"{what}; `rlaudit record` writes down how its engine is built")


def _own_trainers(program: Source) -> list[str]:
    """Return the trainer classes of a program, none of which TRL or unsloth has."""
    try:
        nodes = list(ast.walk(parse(program.text)))
    except UnreadableText:
        return []
    named = {getattr(node, "id", getattr(node, "name", "")) for node in nodes}
    imports = [node for node in nodes if isinstance(node, ast.ImportFrom)]
    taken = {alias.asname or alias.name: node for node in imports for alias in node.names}
    classes = {node.name for node in nodes if isinstance(node, ast.ClassDef)}
    trainers = [name for name in sorted(named & (taken.keys() | classes)) if _TRAINER.fullmatch(name)]
    modules = [taken[name].module or "" for name in trainers if name in taken and not taken[name].level]
    of_trl = _OF_TRL.search(program.text) or any(module.partition(".")[0] in _LIBRARIES for module in modules)
    return [] if of_trl else trainers


def further_flags(reading: Reading) -> None:
    """Hand flags that `trl vllm-serve` does not know on to `vllm serve`; TRL's older, own server stops at them."""
    engine = reading.spec.declared["engine"]
    declared = {clause["key"] for entry in engine.values() for clause in clauses(entry) if "key" in clause}
    is_own = reading.holds("release < 1.8.0") is True
    for name, node in reading.tree.root.items():
        if name in declared or name in {"model", "host", "port", "log_level", "config"}:
            continue
        if is_own:
            reading.draft.not_seen.append(f"--{name}: `trl vllm-serve` does not take it before TRL 1.11")
        else:
            reading.draft.engine.by_file(name, node, note="handed on to `vllm serve` from TRL 1.11 at the latest")
