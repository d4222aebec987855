"""Starts uv, the tool that builds engine environments, and raises its explanation if it fails.

The binary comes with rlaudit's installation; a test passes another one.
"""

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from rlaudit.engines.environments.pip_configuration import PackageSources
from rlaudit.errors import NotFinished

# Characters of uv's explanation; the rest only repeats the requirements.
LONGEST = 1000


class UvError(Exception):
    """uv ended with a failure, in its own words."""


@dataclass(frozen=True)
class Uv:
    """uv, with the user's package sources."""

    binary: Path
    sources: PackageSources

    def run(self, *words: str | Path) -> str:
        """Run one uv command and return its output. Raises UvError if it fails."""
        environ = {key: value for key, value in os.environ.items() if key not in {"VIRTUAL_ENV", "PYTHONHOME"}}
        environ.update(self.sources.uv_variables(environ), UV_NO_PROGRESS="1", NO_COLOR="1")
        ended = subprocess.run(
            [self.binary, *words],
            env=environ,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )
        if ended.returncode != 0:
            explanation = " ".join((ended.stderr or ended.stdout).split()).removeprefix("error: ")
            raise UvError(explanation[:LONGEST] or f"uv ended with code {ended.returncode}")
        return ended.stdout

    def pip(self, command: str, python: Path, *words: str | Path) -> str:
        """Run `uv pip COMMAND` for the interpreter `python`, with the user's indexes."""
        sources = self.sources.uv_arguments() if command in {"install", "compile"} else []
        return self.run("pip", command, "--quiet", "--python", python, *sources, *words)

    def version(self) -> str:
        """Return uv's version, for the record."""
        return self.run("--version").strip()


def find_uv() -> Path:
    """Return the uv binary of rlaudit's installation, else the one on PATH. Raises NotFinished without one."""
    try:
        import uv

        return Path(uv.find_uv_bin())
    except (ImportError, FileNotFoundError):
        path = shutil.which("uv")
    if path is None:
        raise NotFinished("uv, which builds engine environments, is not installed", "pip install uv")
    return Path(path)
