"""What an engine environment must have installed, and what an existing one has.

vLLM releases cannot share an interpreter: each has its own directory, named after its required packages.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from packaging.version import InvalidVersion, Version

from rlaudit.engines.engine import Build, Package
from rlaudit.engines.environments import trainer_packages
from rlaudit.engines.inside.engine import ENGINE
from rlaudit.errors import UsageError

TRAINER = Package(
    name="trainer",
    title="trainer",
    distributions={"cuda": "transformers", "cpu": "transformers"},
    imports=("torch", "transformers", "safetensors.torch"),
    needed=("torch", "transformers"),
    option="--trainer-python",
)
PACKAGES = {package.name: package for package in (ENGINE.package, TRAINER)}
# An interpreter, or a command line in front of one (`apptainer exec --nv vllm.sif python3`), word by word.
Command = tuple[str, ...]


@dataclass(frozen=True)
class EnvironmentSpec:
    """One engine at one version, or the trainer at one transformers version.

    Raises UsageError for an invalid version, or a vLLM older than the oldest supported release.
    """

    package: str
    version: str
    build: Build
    # Starts a given interpreter (`--python`); then nothing is built.
    command: Command = ()
    # Of the trainer on a GPU; empty if the package decides.
    torch: str = ""

    def __post_init__(self) -> None:
        try:
            version = Version(self.version)
        except InvalidVersion:
            raise UsageError(
                f"{self.version!r} is not a version of {self.package}", "Write a release such as 0.18.1."
            ) from None
        if self.is_engine and version < ENGINE.oldest:
            raise UsageError(f"{self.holds.title} {self.version} is too old: rlaudit knows {ENGINE.oldest} and later")

    @property
    def name(self) -> str:
        """The environment's stable name, such as `vllm-0.8.5-cpu`; it is also its directory's name."""
        torch = f"-torch{self.torch}" if self.torch else ""
        name = f"{self.package}-{Version(self.version)}{torch}-{self.build}"
        # The path of a given one is no part of a cell's identity; its packages are (Environment.lock).
        return f"{name}-given" if self.command else name

    @property
    def holds(self) -> Package:
        """The packages that its interpreter must have."""
        return PACKAGES[self.package]

    @property
    def is_engine(self) -> bool:
        """Whether it samples; the trainer does not."""
        return self.package == ENGINE.package.name

    @property
    def distribution(self) -> str:
        """The name on the package index; CPU builds may have another."""
        return self.holds.distributions[self.build]


def engine_spec(version: str, build: Build, command: Command = ()) -> EnvironmentSpec:
    """Return the environment of an engine of this release."""
    return EnvironmentSpec(ENGINE.package.name, version, build, command)


def trainer_spec(build: Build, driver_cuda: str = "", transformers: str = "") -> EnvironmentSpec:
    """Return the environment that scores rollouts.

    driver_cuda: what the driver offers; on a GPU it decides the torch. transformers: the version that the model needs.
    Empty ones mean the defaults.
    """
    torch = trainer_packages.torch_for(driver_cuda) if build == "cuda" else ""
    return EnvironmentSpec(TRAINER.name, transformers or trainer_packages.TRANSFORMERS[0].version, build, torch=torch)


@dataclass(frozen=True)
class Environment:
    """An environment that is built and passed its health check."""

    spec: EnvironmentSpec
    directory: Path
    # Starts its interpreter.
    command: Command
    # To be set for its processes.
    variables: Mapping[str, str] = field(default_factory=dict)
    # `name==version` of every installed package, and of Python if the interpreter was given.
    lock: tuple[str, ...] = ()
    # What was done to make it run, for the user.
    notes: tuple[str, ...] = ()
    # Of the packages that decide a logprob.
    versions: Mapping[str, str] = field(default_factory=dict)
