"""A script that starts a Python program of the tree with an engine of vLLM: the program, with what its command says.

Options that the program parses (argparse, Hugging Face's parser) have the value of the command line, others their
default. A program whose name says that it only evaluates is left out.
"""

from collections.abc import Iterator
from dataclasses import replace

from packaging.version import Version

from rlaudit.configs.arguments import by_name
from rlaudit.configs.dialect import Dialect
from rlaudit.configs.dialects.vllm.python import DIALECT as ONE_FILE
from rlaudit.configs.draft import by_file, unwritten
from rlaudit.configs.program import program_of, program_source, trains
from rlaudit.configs.ray_job import PREFIXES
from rlaudit.configs.rollout_config import RolloutConfig
from rlaudit.configs.source import Source
from rlaudit.configs.syntax.flags import flags
from rlaudit.configs.syntax.shell_command import Command
from rlaudit.configs.vllm_program import PROGRAM

NAME = "vllm-script"


def recognise(source: Source) -> bool:
    """Whether a script starts such a program."""
    return any(True for _ in _programs(source))


def _programs(source: Source) -> Iterator[tuple[Command, Source, Dialect]]:
    try:
        commands = source.commands
    except (ValueError, RecursionError):
        return
    for command in commands:
        program = program_source(source, command) if program_of(command) and trains(command) else None
        if program is None or program.suffix != ".py":
            continue
        started = Source(program.path, program.text, source.given, _options(command))
        reader = next((one for one in (ONE_FILE, PROGRAM) if one.recognise(started)), None)
        if reader is not None:
            yield command, started, reader


def _options(command: Command) -> dict[str, object]:
    """What the command says to its program, by the names under which argparse keeps it."""
    start = next(at for at, word in enumerate(command.words) if word.value == program_of(command)) + 1
    return {name.replace("-", "_"): node.value for name, node in by_name(flags(command.words, start)).items()}


def read(source: Source, vllm: Version) -> tuple[RolloutConfig, ...]:
    """The engines of every such program, in the order of the script."""
    return tuple(
        _started(source, command, program, config)
        for command, program, reader in _programs(source)
        for config in reader.read(program, vllm)
    )


def _started(source: Source, command: Command, program: Source, config: RolloutConfig) -> RolloutConfig:
    own = {name: by_file(name, node) for name, node in command.variables.items() if name.startswith(PREFIXES)}
    return replace(
        config,
        framework=NAME,
        path=source.path,
        environment={**own, **config.environment},
        parts=tuple(dict.fromkeys((*config.parts, program.path))),
        write=unwritten,
    )


SCRIPT = Dialect(NAME, "a script that starts a Python program with vLLM", 0, recognise, read)
