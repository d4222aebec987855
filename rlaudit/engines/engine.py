"""What rlaudit must know of a kind of engine: to have it, to start it, and to tell what it cannot do.

There is one kind so far, vLLM (vllm/engine.py); no other file names it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from packaging.version import Version

Build = Literal["cuda", "cpu"]


@dataclass(frozen=True)
class Package:
    """What an interpreter must hold to be one of these.

    name: what its environments are called. title: the same in sentences. distributions: the package on the index that
    tells the version, for each build; the first that an interpreter holds counts. imports: what a cell imports first.
    needed: the packages without which the interpreter is none. option: what gives one on the command line.
    """

    name: str
    title: str
    distributions: Mapping[Build, str]
    imports: tuple[str, ...]
    needed: tuple[str, ...]
    option: str

    def held(self, versions: Mapping[str, str]) -> str | None:
        """Return the version among those of an interpreter; None if it holds none."""
        return next((versions[one] for one in self.distributions.values() if one in versions), None)


@dataclass(frozen=True)
class Engine:
    """One kind of engine.

    oldest: the first release that can be had. takes_uuids: the first that can be shown a GPU by its UUID. compiled_in:
    the variable that says in which folder compiled code is kept. bound_by: the one that names cores of the processor.
    settings: patterns of its own variables, which come from a recipe and never from the shell. quiet: variables of
    every process. on_cpu: variables of an engine without a GPU. generate, hand_over, update, train: the scripts that
    sample, that pass on what was recorded, that update weights meanwhile, and that sample for a training (see
    cells/worker.py); each with the files that it loads beside itself, which decide a result as it does.
    """

    package: Package
    oldest: Version
    takes_uuids: Version
    compiled_in: str
    bound_by: str
    settings: tuple[str, ...]
    quiet: Mapping[str, str]
    on_cpu: Mapping[str, str]
    generate: Path
    generate_with: tuple[Path, ...]
    hand_over: Path
    update: Path
    update_with: tuple[Path, ...]
    train: Path
    train_with: tuple[Path, ...]
