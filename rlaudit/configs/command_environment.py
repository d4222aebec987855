"""Variables that a command runs with, as far as they are vLLM's or NCCL's."""

from typing import TYPE_CHECKING

from rlaudit.configs.draft import Draft, by_file
from rlaudit.configs.hydra_dotlist import untold

if TYPE_CHECKING:
    from rlaudit.configs.syntax.shell_text import Command


def take_environment(draft: Draft, command: "Command") -> None:
    """Exports and prefixes in force; what the framework's own code sets before is replaced by it only if unset."""
    for name, node in command.variables.items():
        if name.startswith(("VLLM_", "NCCL_")):
            draft.environment[name] = by_file(name, node)
    draft.not_seen += untold(command)
