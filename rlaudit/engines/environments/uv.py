"""Starts uv, the tool that builds engine environments, and raises its explanation if it fails.

The user's own settings count (`~/.config/uv/uv.toml`, `/etc/uv/uv.toml`, `UV_*`). Those of a project do not: uv looks
for `uv.toml` and `[tool.uv]` in the working directory, which may be a stranger's checkout, and in all folders above.
Source: uv documentation, "Configuration files", https://docs.astral.sh/uv/concepts/configuration-files

The binary comes with rlaudit's installation; a test passes another one.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from rlaudit.engines.environments.pip_configuration import PackageSources
from rlaudit.errors import NotFinished

# Characters of uv's explanation; the rest only repeats the requirements.
LONGEST = 1000
# The project in which uv runs. uv's search ends at a folder that holds this, and no other folder can name it a member.
_PROJECT = "[tool.uv]\nmanaged = false\n"


class UvError(Exception):
    """uv ended with a failure, in its own words."""


@dataclass(frozen=True)
class Uv:
    """uv, with the user's package sources."""

    binary: Path
    sources: PackageSources

    def venv(self, minor: str, prefix: Path) -> None:
        """Make a virtual environment of this Python, such as `3.11`. Raises UvError if it fails."""
        # A shim of pyenv, mise or asdf on PATH picks its Python by files of the working directory.
        self._run("venv", "--quiet", "--no-project", "--python", minor, prefix.absolute(), elsewhere=True)

    def pip(self, command: str, python: Path, *words: str | Path) -> str:
        """Run `uv pip COMMAND` for the interpreter `python`, with the user's indexes. Raises UvError if it fails.

        Relative paths in the user's variables and in pip's configuration are those of the working directory.
        """
        sources = self.sources.uv_arguments() if command in {"install", "compile"} else []
        return self._run("pip", command, "--quiet", "--python", python, *sources, *words)

    def version(self) -> str:
        """Return uv's version, for the record."""
        return self._run("--version").strip()

    def _run(self, *words: str | Path, elsewhere: bool = False) -> str:
        """Run one uv command in an empty project, and return its output. elsewhere: in its folder, too."""
        environ = {key: value for key, value in os.environ.items() if key not in {"VIRTUAL_ENV", "PYTHONHOME"}}
        environ.update(self.sources.uv_variables(environ), UV_NO_PROGRESS="1", NO_COLOR="1")
        # uv looks for a Python on PATH before it downloads one: the one that runs rlaudit need not be on it.
        environ["PATH"] = os.pathsep.join((*filter(None, [environ.get("PATH")]), str(Path(sys.base_prefix, "bin"))))
        with tempfile.TemporaryDirectory(prefix="rlaudit-uv-") as project:
            Path(project, "pyproject.toml").write_text(_PROJECT, encoding="utf-8")
            ended = subprocess.run(
                [self.binary.absolute(), "--project", project, *words],
                cwd=project if elsewhere else None,
                env=_with_absolute_paths(environ) if elsewhere else environ,
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


def _with_absolute_paths(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables, with the files and folders that the user names for uv as absolute paths."""
    return {
        name: str(Path(value).absolute())
        if value and name.startswith(("UV_", "SSL_")) and name.endswith(("_FILE", "_DIR"))
        else value
        for name, value in environ.items()
    }


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
