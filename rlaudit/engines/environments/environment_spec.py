"""What an engine environment has to hold, and what one that exists holds.

vLLM releases cannot share an interpreter: each has a directory of its own, named after what it has to hold.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from packaging.version import InvalidVersion, Version

from rlaudit.engines.engine import Build, Package
from rlaudit.engines.environments import trainer_packages
from rlaudit.engines.vllm.engine import ENGINE
from rlaudit.errors import UsageError

TRAINER = Package(
    name="trainer",
    title="trainer",
    distributions={"cuda": "transformers", "cpu": "transformers"},
    imports=("torch", "transformers", "safetensors.torch"),
    needed=("torch", "transformers"),
    option="--trainer-python",
)
PACKAGES = {one.name: one for one in (ENGINE.package, TRAINER)}
# An interpreter, or a command line in front of one (`apptainer exec --nv vllm.sif python3`), word by word.
Command = tuple[str, ...]


@dataclass(frozen=True)
class EnvironmentSpec:
    """One engine at one version, or the trainer at one transformers version, and one `torch` where that is a choice.

    `command` starts an interpreter that already holds the packages (`--python`); then nothing is built.
    Raises UsageError for a version that cannot be one, or a vLLM older than the oldest supported release.
    """

    package: str
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
        if self.is_engine and version < ENGINE.oldest:
            raise UsageError(f"{self.holds.title} {self.version} is too old: rlaudit knows {ENGINE.oldest} and later")

    @property
    def name(self) -> str:
        """The environment's stable name, such as `vllm-0.8.5-cpu`; it is also its directory's name."""
        torch = f"-torch{self.torch}" if self.torch else ""
        name = f"{self.package}-{Version(self.version)}{torch}-{self.build}"
        # Where a given one lies makes no other cell of it; what it holds does (Environment.lock).
        return f"{name}-given" if self.command else name

    @property
    def holds(self) -> Package:
        """What its interpreter must hold."""
        return PACKAGES[self.package]

    @property
    def is_engine(self) -> bool:
        """Whether it samples; the trainer does not."""
        return self.package == ENGINE.package.name

    @property
    def distribution(self) -> str:
        """The package on the index; CPU builds may have one of their own."""
        return self.holds.distributions[self.build]


def engine_spec(version: str, build: Build, command: Command = ()) -> EnvironmentSpec:
    """Return the environment of an engine of this release."""
    return EnvironmentSpec(ENGINE.package.name, version, build, command)


def trainer_spec(build: Build, driver_cuda: str = "", transformers: str = "") -> EnvironmentSpec:
    """Return the environment that scores rollouts: the transformers a model needs, and on a GPU the newest torch for a
    driver that offers this CUDA. What is not known is taken to be the usual.
    """
    torch = trainer_packages.torch_for(driver_cuda) if build == "cuda" else ""
    return EnvironmentSpec(TRAINER.name, transformers or trainer_packages.TRANSFORMERS[0].version, build, torch=torch)


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
