"""A file to read settings from, parsed at most once in each syntax."""

from collections.abc import Collection
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from stat import S_ISREG
from typing import TYPE_CHECKING

from rlaudit.rollout_config.node import Node

if TYPE_CHECKING:
    from rlaudit.rollout_config.python_text import Call
    from rlaudit.rollout_config.shell_text import Command

LARGEST_BYTES = 2_000_000
_YAML = {".yaml", ".yml", ".json"}
_SHELL = {".sh", ".bash", ".slurm", ".sbatch"}


@dataclass(frozen=True, eq=False)
class Source:
    """A file's text. `path` is as the user gave it, for messages; `neighbours` may be opened for inheritance.

    Every syntax is empty where the file is not written in it; what is, and does not parse, raises that syntax's
    Unreadable error (a ValueError).
    """

    path: str
    text: str
    _calls: dict[frozenset[str], "tuple[Call, ...]"] = field(default_factory=dict, repr=False)

    @property
    def suffix(self) -> str:
        """Lower-case, with the dot."""
        return Path(self.path).suffix.lower()

    @cached_property
    def yaml(self) -> tuple[Node, ...]:
        """The documents of a YAML or JSON file, with OmegaConf's interpolations resolved."""
        from rlaudit.rollout_config.interpolation import interpolate

        return tuple(interpolate(root) for root in self.plain_yaml) if "${" in self.text else self.plain_yaml

    @cached_property
    def plain_yaml(self) -> tuple[Node, ...]:
        """The documents of a YAML or JSON file, with `${...}` as any other text."""
        from rlaudit.rollout_config.yaml_text import parse_plain_yaml

        return parse_plain_yaml(self.text, self.path) if self.suffix in _YAML else ()

    @cached_property
    def toml(self) -> Node | None:
        """The root table of a TOML file."""
        from rlaudit.rollout_config.toml_text import parse_toml

        return parse_toml(self.text, self.path) if self.suffix == ".toml" else None

    @property
    def root(self) -> Node | None:
        """The first YAML document, or the TOML root."""
        return self.toml or (self.yaml[0] if self.yaml else None)

    @property
    def is_shell(self) -> bool:
        """Whether the file is a shell script, by its ending or its first line."""
        if self.suffix in _SHELL:
            return True
        first = self.text[:200].partition("\n")[0]
        return first.startswith("#!") and any(shell in first for shell in ("sh", "srun"))

    @cached_property
    def commands(self) -> "tuple[Command, ...]":
        """The commands of a shell script."""
        from rlaudit.rollout_config.shell_text import commands

        return commands(self.text, self.path) if self.is_shell else ()

    def calls(self, names: Collection[str]) -> "tuple[Call, ...]":
        """The calls of any of `names` in a Python file."""
        wanted = frozenset(names)
        if self.suffix != ".py" or not any(name in self.text for name in wanted):
            return ()
        if wanted not in self._calls:
            from rlaudit.rollout_config.python_text import calls

            self._calls[wanted] = calls(self.text, self.path, wanted)
        return self._calls[wanted]

    def neighbour(self, relative: str) -> "Source | None":
        """A file beside this one (for `defaults:`), or None where it is not there or too large."""
        path = Path(self.path).parent / relative
        try:
            # Devices and pipes have no size and no end.
            found = path.stat()
            if not S_ISREG(found.st_mode) or found.st_size > LARGEST_BYTES:
                return None
            # Not read_text: it would turn \r\n into \n, and with it every offset of an edit.
            return Source(str(path), path.read_bytes().decode("utf-8"))
        except (OSError, UnicodeDecodeError, ValueError):
            return None
