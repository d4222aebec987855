"""The environment of a program that `ray job submit` starts: its runtime environment, without the shell's variables.

`--runtime-env-json` has it on the command line, `--runtime-env` in a YAML file, whose path is relative to the folder in
which the script is started: it is searched beside the script and in the folders above it.
"""

from collections.abc import Sequence

from rlaudit.configs.arguments import by_name
from rlaudit.configs.draft import Draft
from rlaudit.configs.source import Source
from rlaudit.configs.syntax.flags import flags
from rlaudit.configs.syntax.node import Node, within
from rlaudit.configs.syntax.shell_command import Command
from rlaudit.settings.rollout_config import Loss
from rlaudit.unknown import Unknown

_JSON, _FILE = "--runtime-env-json", "--runtime-env"
_NOT_HANDED_ON = "`ray job submit` does not hand the shell's variables to the job"
# Variables that change what vLLM computes.
PREFIXES = ("VLLM_", "NCCL_")


def submission(command: Command) -> Sequence[Node]:
    """Return the words of `ray job submit ...` in front of the job's program; none for any other command."""
    words = command.words
    at = next((at for at, word in enumerate(words) if word.value == "submit"), None)
    if at is None or at < 2 or [word.value for word in words[at - 2 : at]] != ["ray", "job"]:
        return ()
    end = next((end for end, word in enumerate(words) if end > at and word.value == "--"), len(words))
    return words[:end]


def take_job_environment(draft: Draft, source: Source, command: Command, prefixes: tuple[str, ...] = PREFIXES) -> bool:
    """Add the environment of a submitted job. Return False if the command submits none."""
    words = submission(command)
    if not words:
        return False
    options = by_name(flags(words))
    runtime, option = options.get("runtime_env_json"), _JSON
    if runtime is None and (file_option := options.get("runtime_env")) is not None:
        runtime, option = _of_file(draft, source, file_option), _FILE
    of_job = within(runtime, "env_vars")
    for part in (runtime, of_job):
        if part is not None and isinstance(part.value, Unknown):
            draft.not_seen.append(f"the variables of {option} are not known: {part.value.reason}")
    for name, node in command.variables.items():
        if name.startswith(prefixes):
            draft.lose(name, node, Loss.NOT_PASSED, _NOT_HANDED_ON)
    for name, node in of_job.items() if of_job is not None else ():
        if name.startswith(prefixes) and name not in draft.environment:
            draft.environment.by_file(name, node)
    return True


def take_program_environment(draft: Draft, program: Source, prefixes: tuple[str, ...] = PREFIXES) -> None:
    """Add what a program gives the workers of its cluster: `ray.init(runtime_env={"env_vars": {...}})`."""
    try:
        dictionaries = program.dictionaries("env_vars")
    except (ValueError, RecursionError):
        return
    for runtime in dictionaries:
        variables = runtime.get("env_vars")
        for name, node in variables.items() if variables is not None else ():
            if name.startswith(prefixes):
                draft.environment.by_file(name, node, note=f"the runtime environment of {program.path}")


def _of_file(draft: Draft, source: Source, name: Node) -> Node:
    if not isinstance(name.value, str):
        return name
    file = source.above(name.value)
    try:
        root = file.root if file is not None else None
    except (ValueError, RecursionError):
        root = None
    if file is None or root is None:
        return Node(Unknown(f"{name.value} is not found from here"), name.place)
    draft.parts = tuple(dict.fromkeys((*draft.parts, file.path)))
    return root
