"""What rlaudit must know about a kind of engine to install it, to start it, and to recognise what it cannot do.

There is one kind so far, vLLM (engines/inside/engine.py); no other file names it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from packaging.version import Version

Build = Literal["cuda", "cpu"]


@dataclass(frozen=True)
class Package:
    """The packages that make an interpreter an engine, or a trainer."""

    # Begins the names of its environments.
    name: str
    # The name in sentences.
    title: str
    # The distribution whose version counts, by build; the first that an interpreter has.
    distributions: Mapping[Build, str]
    # Modules that a cell imports first.
    imports: tuple[str, ...]
    # Packages that the interpreter must have.
    needed: tuple[str, ...]
    # The command-line option that names such an interpreter.
    option: str

    def held(self, versions: Mapping[str, str]) -> str | None:
        """Return the installed version; None if it is not installed. versions: of an interpreter's distributions."""
        return next((versions[name] for name in self.distributions.values() if name in versions), None)


@dataclass(frozen=True)
class Engine:
    """One kind of engine. A field `*_with` has the files that a script (see cells/worker.py) loads besides itself."""

    package: Package
    # The first release that can be installed.
    oldest: Version
    # The first release that takes the UUID of a GPU.
    takes_uuids: Version
    # The variable that names the folder for compiled code.
    compiled_in: str
    # The variable that names cores of the processor.
    bound_by: str
    # Patterns of its variables, which come from a recipe and never from the shell.
    settings: tuple[str, ...]
    # Variables of every process.
    quiet: Mapping[str, str]
    # Variables of an engine without a GPU.
    on_cpu: Mapping[str, str]
    # Further variables of one that is not to compile.
    eager_on_cpu: Mapping[str, str]
    # The script that samples.
    generate: Path
    generate_with: tuple[Path, ...]
    # The script that passes on what was recorded.
    hand_over: Path
    # The script that updates weights while it samples.
    update: Path
    update_with: tuple[Path, ...]
    # The script that samples for a training.
    train: Path
    train_with: tuple[Path, ...]
