"""Edits that set an engine argument where and how a file spells it, and leave every other byte alone.

Each function makes a `RolloutConfig.write`; one file per syntax.
"""

from rlaudit.configs.syntax.call_edits import call_writer
from rlaudit.configs.syntax.command_edits import flags_writer, list_writer, shell_quoted
from rlaudit.configs.syntax.spelling import Spell, Write, apply, scalar_text
from rlaudit.configs.syntax.toml_edits import toml_writer
from rlaudit.configs.syntax.yaml_edits import yaml_writer

__all__ = [
    "Spell", "Write", "apply", "call_writer", "flags_writer", "list_writer", "scalar_text", "shell_quoted",
    "toml_writer", "yaml_writer",
]  # fmt: skip
