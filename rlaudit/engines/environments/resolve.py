"""Resolves an environment to a list of exact versions, by the first of several plans that works.

The plans differ in two ways. First, where torch comes from: CPU builds pin `torch==X+cpu`, which PyTorch's own index
has, and maybe a find-links folder or a mirror; else the plain `torch==X` works as well, but is larger. Second, as of
which day: a release that is resolved today gets dependencies with which it was never tried. So it is resolved as of its
release day if the index states upload dates, else under caps that are known to work.
"""

import urllib.error
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from packaging.requirements import Requirement
from packaging.version import Version

from rlaudit.engines.environments.environment_spec import EnvironmentSpec
from rlaudit.engines.environments.uv import Uv, UvError
from rlaudit.errors import NotFinished
from rlaudit.vllm.builds import recorded_torch

TORCH_INDEX = "https://download.pytorch.org/whl/cpu/"
_SECONDS_TO_PROBE = 4

# Required by the CPU builds without a version, published on PyTorch's index only, and imported by no text model.
NOT_NEEDED_FOR_TEXT = ("torchaudio", "torchvision", "torchcodec")

# Imported when an engine starts, but required by the releases' metadata on Python 3.12 and later only: on 3.11 other
# packages used to require it (0.8.5: "No module named 'setuptools'" while loading the model).
ALSO_NEEDED = ("setuptools",)

# Files of these may come from a find-links directory or from PyTorch's index, which state no upload dates. With a date
# uv ignores undated files, except of packages that are exempt.
UNDATED = ("torch", *NOT_NEEDED_FOR_TEXT, "triton")

_DIGEST = " --hash="

# A CPU build pins torch to a build that only PyTorch's index has, and triton to match.
PINNED = ("torch", "triton")

# From the first of these releases to before the second, importing a CPU build tunes Triton's kernels, and Triton fails
# without a GPU ("0 active drivers", vllm/model_executor/layers/mamba/ops). Without Triton they run.
_STOP_AT_TRITON = (Version("0.9.2"), Version("0.10.2"))

# (first vLLM release without these constraints, constraints, why). Used only if the index states no upload dates, so
# that it cannot be resolved as of the release day.
_CAPS = (
    (
        "0.9.0",
        ("transformers==4.51.3", "numpy<2.3", "setuptools<80"),
        "transformers 5 removed what vLLM 0.8 imports; numba of the time refuses numpy 2.3",
    ),
    (
        "0.11.0",
        ("transformers<4.56", "numpy<2.3", "setuptools<80"),
        "vLLM 0.9 and 0.10 predate transformers 4.56",
    ),
    ("0.19.0", ("transformers<5", "setuptools<81"), "vLLM pinned transformers below 5 until then"),
)


@dataclass(frozen=True)
class Plan:
    """One way to resolve."""

    arguments: tuple[str, ...] = ()
    overrides: tuple[str, ...] = ()
    constraints: tuple[str, ...] = ()
    # What differs from a plain installation; empty if nothing does.
    note: str = ""


@dataclass(frozen=True)
class Resolution:
    """The exact versions to install, and the plan that resolved to them."""

    # `name==version`, with the SHA-256 digests of its files on the index: no other file is installed.
    requirements: tuple[str, ...]
    plan: Plan

    @property
    def lock(self) -> tuple[str, ...]:
        """The requirements without their digests."""
        return tuple(line.partition(_DIGEST)[0] for line in self.requirements)

    @property
    def without_hash(self) -> tuple[str, ...]:
        """The requirements for which the index or folder states no digest."""
        return tuple(line for line in self.requirements if _DIGEST not in line)


def plans(
    spec: EnvironmentSpec,
    pins: Sequence[str],
    as_of: str | None,
    caps: Sequence[str],
    torch_index_reachable: bool,
) -> list[Plan]:
    """Return the ways to try, best first.

    pins: the release's torch and triton without a local part (`torch==2.6.0`), empty if it pins no torch. A plain torch
    requires another triton than the CPU builds from 0.11.0 on were built with. as_of: an ISO date or None. The date
    does not apply to the engine itself: CPU builds were packaged later.
    """
    first, after = _STOP_AT_TRITON
    stops = spec.is_engine and spec.build == "cpu" and first <= Version(spec.version) < after
    without_triton = ("triton ; sys_platform == 'never'",) if stops else ()
    pins = [pin for pin in pins if not (stops and pin.startswith("triton=="))]
    drop = (*(f"{name} ; sys_platform == 'never'" for name in NOT_NEEDED_FOR_TEXT), *without_triton)
    dropped = f"left out: {', '.join(NOT_NEEDED_FOR_TEXT)} (no text model needs them)"
    dropped += "; triton (this release does not start with it where there is no GPU)" if stops else ""
    undated: list[Plan] = []
    if spec.build == "cuda":
        # `torch==2.13.0` also matches `2.13.0+cpu`, which would count as newer if a folder or a mirror has it.
        undated.append(Plan(constraints=tuple(f"torch!={version}+cpu" for version in recorded_torch())))
    else:
        if torch_index_reachable:
            undated.append(Plan(arguments=("--torch-backend", "cpu"), overrides=without_triton))
        undated.append(Plan(overrides=drop, note=dropped))
        if pins:
            note = f"PyTorch's CPU index was not reachable: plain {pins[0]} of the configured index; {dropped}"
            undated.append(Plan(overrides=(*drop, *pins), note=note))
    dated: list[Plan] = []
    if as_of:
        date_arguments: tuple[str, ...] = ("--exclude-newer", as_of)
        for name in (spec.distribution, *UNDATED):
            date_arguments += ("--exclude-newer-package", f"{name}=false")
        dated = [replace(plan, arguments=(*plan.arguments, *date_arguments)) for plan in undated]
    return dated + [replace(plan, constraints=(*plan.constraints, *caps)) for plan in undated]


def caps(vllm_version: str) -> tuple[str, ...]:
    """Return constraints under which this release resolves to packages that work with it."""
    for before, constraints, _why in _CAPS:
        if Version(vllm_version) < Version(before):
            return constraints
    return ()


def resolve(uv: Uv, python: Path, requirements: Sequence[str], to_try: Sequence[Plan], folder: Path) -> Resolution:
    """Return the resolution of the first plan that resolves.

    Raises NotFinished with uv's explanation of the last plan.
    """
    last = "nothing was tried"
    requirements_file = _write(folder / "requirements.txt", requirements)
    for plan in to_try:
        overrides = _write(folder / "overrides.txt", plan.overrides)
        constraints = _write(folder / "constraints.txt", plan.constraints)
        words: list[str | Path] = [*plan.arguments, "--override", overrides, "--constraint", constraints]
        try:
            return compiled(uv, python, plan, *words, requirements_file)
        except UvError as error:
            last = str(error)
    raise NotFinished(f"{' '.join(requirements)} cannot be resolved here: {last}")


def compiled(uv: Uv, python: Path, plan: Plan, *words: str | Path) -> Resolution:
    """Return the resolution by `uv pip compile` with these arguments. Raises UvError."""
    text = uv.pip("compile", python, "--no-header", "--no-annotate", "--generate-hashes", *words)
    lines = (" ".join(line.split()) for line in text.replace("\\\n", " ").splitlines())
    return Resolution(tuple(line for line in lines if line and not line.startswith(("#", "-"))), plan)


def install(uv: Uv, python: Path, resolution: Resolution, folder: Path) -> None:
    """Install what was resolved, and nothing else.

    The plan's constraints apply again, as a local version (`2.13.0+cpu`) matches an exact pin here, too.
    """
    plan = resolution.plan
    backend = plan.arguments[:2] if plan.arguments[:1] == ("--torch-backend",) else ()
    lock = _write(folder / "lock.txt", resolution.requirements)
    constraints = _write(folder / "constraints.txt", plan.constraints)
    uv.pip("install", python, "--no-deps", *backend, "--constraint", constraints, "--requirement", lock)


def own_pins(metadata: str, environment: dict[str, str]) -> tuple[str, ...]:
    """Return the torch that a wheel's METADATA pins, `torch==2.6.0` for `torch==2.6.0+cpu`, and its triton.

    Empty if it pins no torch.
    """
    pins: dict[str, str] = {}
    for line in metadata.splitlines():
        if not line:
            break
        if not line.startswith("Requires-Dist:"):
            continue
        requirement = Requirement(line.partition(":")[2].strip())
        if requirement.name not in PINNED or (requirement.marker and not requirement.marker.evaluate(environment)):
            continue
        for specifier in requirement.specifier:
            if specifier.operator == "==":
                pins.setdefault(requirement.name, f"{requirement.name}=={specifier.version.partition('+')[0]}")
    return tuple(pins[name] for name in PINNED if name in pins) if "torch" in pins else ()


def torch_index_is_reachable(address: str = TORCH_INDEX) -> bool:
    """Return whether PyTorch's index answers quickly: uv would retry for long."""
    try:
        request = urllib.request.Request(address, method="HEAD")
        with urllib.request.urlopen(request, timeout=_SECONDS_TO_PROBE):
            return True
    except urllib.error.HTTPError:
        return True
    except OSError:
        return False


def _write(file: Path, lines: Sequence[str]) -> Path:
    file.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return file
