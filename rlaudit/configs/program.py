"""The Python program that a command starts, and whether its name says that it only generates or evaluates.

Such a program takes the options of a trainer's rollouts, but no trainer reads its logprobs.
"""

import re
from pathlib import PurePath

from rlaudit.configs.framework_source.checkout import checkout_of
from rlaudit.configs.source import Source
from rlaudit.configs.syntax.shell_command import Command

TRAINING = {"train", "trainer", "training", "ppo", "grpo", "rloo", "dpo", "xpo", "gold", "rl", "rlhf"}
NO_TRAINING = {
    "eval", "evals", "evaluate", "evaluation", "evaluations", "evaluator", "generate", "generation", "predict",
    "prediction", "infer", "inference", "bench", "benchmark", "benchmarks",
}  # fmt: skip
_LAUNCHERS = ("torch.", "accelerate.", "deepspeed.")


def program_of(command: Command) -> str:
    """Return the script's path, or the module after `-m`; empty if the command starts none."""
    words = [word.value if isinstance(word.value, str) else "" for word in command.words]
    for before, word in zip(["", *words], words, strict=False):
        if word.endswith(".py") or (before == "-m" and not word.startswith(_LAUNCHERS)):
            return word
    return ""


def words_of(program: str) -> set[str]:
    """Return the words of a program's name: grpo and vlm for `trl.scripts.grpo_vlm` and for `scripts/grpo_vlm.py`."""
    return set(re.findall(r"[a-z]+", PurePath(program.removesuffix(".py")).name.rpartition(".")[2].lower()))


def trains(command: Command) -> bool:
    """Return False only if the program's name says something else: `main_generation`, `run_eval`."""
    words = words_of(program_of(command))
    return bool(words & TRAINING) or not words & NO_TRAINING


def program_source(source: Source, command: Command) -> Source | None:
    """Return the file of the program that a command starts: in a package around the script, or at its path from the
    script's folder or one above.
    """
    program = program_of(command)
    if program.endswith(".py"):
        return source.above(program)
    path = f"{program.replace('.', '/')}.py"
    checkout = checkout_of(source, program.partition(".")[0], path) if program else None
    return checkout.file(path) if checkout is not None else None


def programs_beside(source: Source) -> tuple[Source, ...]:
    """Return the Python programs that a script starts, as far as they are at the named path, or beside the script."""
    names = dict.fromkeys(name for name in map(program_of, source.commands) if name.endswith(".py"))
    programs = (source.neighbour(name) or source.neighbour(PurePath(name).name) for name in names)
    return tuple(program for program in programs if program is not None)
