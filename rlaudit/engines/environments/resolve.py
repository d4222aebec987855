"""Resolves an environment to a list of exact versions, by the first of several ways that works.

Two things vary. Where torch comes from: CPU builds pin `torch==X+cpu`, which only PyTorch's own index holds;
a find-links folder or a mirror may hold it too; else the plain `torch==X` does the same work with more to
download. And as of when: a release resolved today gets dependencies it was never tried with, so resolution
happens as of the release's day where the index tells upload dates, else under caps known to be good.
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

# Asked for by the CPU builds without a version, published on PyTorch's own index only, and imported by no
# text model.
NOT_NEEDED_FOR_TEXT = ("torchaudio", "torchvision", "torchcodec")

# Imported when an engine starts, but required by the releases' metadata on Python 3.12 and later only: on 3.11 it
# used to come along with other packages (0.8.5: "No module named 'setuptools'" while loading the model).
ALSO_NEEDED = ("setuptools",)

# Files of these may come from a find-links directory or from PyTorch's index, which state no upload date:
# uv would leave undated files out as soon as a date is given.
UNDATED = ("torch", *NOT_NEEDED_FOR_TEXT, "triton")

# Stands before each digest of a requirement.
_DIGEST = " --hash="

# What a CPU build pins to builds that only PyTorch's own index has, and to go with these.
PINNED = ("torch", "triton")

# The CPU builds from the first of these to before the second tune Triton's kernels while they are imported, for which
# Triton looks for a GPU ("0 active drivers", vllm/model_executor/layers/mamba/ops). Without Triton they run.
_STOP_AT_TRITON = (Version("0.9.2"), Version("0.10.2"))

# (first vLLM release it no longer applies to, constraints, why). Used only where the index serves no upload
# dates, so that a resolution as of the release date is not possible.
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
    """One way to resolve. `note` says what differs from a plain installation; empty when nothing does."""

    arguments: tuple[str, ...] = ()
    overrides: tuple[str, ...] = ()
    constraints: tuple[str, ...] = ()
    note: str = ""


@dataclass(frozen=True)
class Resolution:
    """Requirements of exact versions, each with the SHA-256 digests that the index has of its files, and the plan that
    led to them.

    Nothing is installed whose digest is another than when it was resolved.
    """

    requirements: tuple[str, ...]
    plan: Plan

    @property
    def lock(self) -> tuple[str, ...]:
        """The requirements without their digests."""
        return tuple(line.partition(_DIGEST)[0] for line in self.requirements)

    @property
    def without_hash(self) -> tuple[str, ...]:
        """What the index (or a folder) has no digest of."""
        return tuple(line for line in self.requirements if _DIGEST not in line)


def plans(
    spec: EnvironmentSpec,
    pins: Sequence[str],
    as_of: str | None,
    caps: Sequence[str],
    torch_index_reachable: bool,
) -> list[Plan]:
    """Return the ways to try, best first.

    `pins` are the release's own of torch and triton without a local part (`torch==2.6.0`), empty if it pins no torch. A
    plain torch requires another triton than the CPU builds from 0.11.0 on; the release's own is what they were built
    with. `as_of` an ISO date or None. The date does not bind the engine itself: CPU builds were packaged
    later.
    """
    first, after = _STOP_AT_TRITON
    stops = spec.is_engine and spec.build == "cpu" and first <= Version(spec.version) < after
    without = ("triton ; sys_platform == 'never'",) if stops else ()
    pins = [pin for pin in pins if not (without and pin.startswith("triton=="))]
    drop = (*(f"{name} ; sys_platform == 'never'" for name in NOT_NEEDED_FOR_TEXT), *without)
    dropped = f"left out: {', '.join(NOT_NEEDED_FOR_TEXT)} (no text model needs them)"
    dropped += "; triton (this release does not start with it where there is no GPU)" if without else ""
    torch: list[Plan] = []
    if spec.build == "cuda":
        # `torch==2.13.0` is met by `2.13.0+cpu` too, which counts as the newer where a folder or a mirror holds it.
        torch.append(Plan(constraints=tuple(f"torch!={version}+cpu" for version in recorded_torch())))
    else:
        if torch_index_reachable:
            torch.append(Plan(arguments=("--torch-backend", "cpu"), overrides=without))
        torch.append(Plan(overrides=drop, note=dropped))
        if pins:
            note = f"PyTorch's CPU index was not reachable: plain {pins[0]} of the configured index; {dropped}"
            torch.append(Plan(overrides=(*drop, *pins), note=note))
    dated: list[Plan] = []
    if as_of:
        for plan in torch:
            words: tuple[str, ...] = ("--exclude-newer", as_of)
            for name in (spec.distribution, *UNDATED):
                words += ("--exclude-newer-package", f"{name}=false")
            dated.append(replace(plan, arguments=(*plan.arguments, *words)))
    return dated + [replace(plan, constraints=(*plan.constraints, *caps)) for plan in torch]


def caps(vllm_version: str) -> tuple[str, ...]:
    """Return constraints under which this release is known to resolve to packages it works with."""
    for before, constraints, _why in _CAPS:
        if Version(vllm_version) < Version(before):
            return constraints
    return ()


def resolve(uv: Uv, python: Path, requirements: Sequence[str], ways: Sequence[Plan], folder: Path) -> Resolution:
    """Return the first plan that resolves, with every version exact.

    Raises NotFinished with what uv says of the last plan.
    """
    last = "nothing was tried"
    wanted = _write(folder / "requirements.txt", requirements)
    for plan in ways:
        overrides = _write(folder / "overrides.txt", plan.overrides)
        constraints = _write(folder / "constraints.txt", plan.constraints)
        words: list[str | Path] = [*plan.arguments, "--override", overrides, "--constraint", constraints]
        try:
            return compiled(uv, python, plan, *words, wanted)
        except UvError as error:
            last = str(error)
    raise NotFinished(f"{' '.join(requirements)} cannot be resolved here: {last}")


def compiled(uv: Uv, python: Path, plan: Plan, *words: str | Path) -> Resolution:
    """Return what `uv pip compile` makes of these words. Raises UvError."""
    text = uv.pip("compile", python, "--no-header", "--no-annotate", "--generate-hashes", *words)
    lines = (" ".join(line.split()) for line in text.replace("\\\n", " ").splitlines())
    return Resolution(tuple(line for line in lines if line and not line.startswith(("#", "-"))), plan)


def install(uv: Uv, python: Path, resolution: Resolution, folder: Path) -> None:
    """Install what was resolved, and nothing else.

    Under the plan's constraints again: a local version (`2.13.0+cpu`) meets an exact pin, here as in the resolution.
    """
    plan = resolution.plan
    backend = plan.arguments[:2] if plan.arguments[:1] == ("--torch-backend",) else ()
    lock = _write(folder / "lock.txt", resolution.requirements)
    constraints = _write(folder / "constraints.txt", plan.constraints)
    uv.pip("install", python, "--no-deps", *backend, "--constraint", constraints, "--requirement", lock)


def own_pins(metadata: str, environment: dict[str, str]) -> tuple[str, ...]:
    """Return the plain torch that a wheel's METADATA asks for, `torch==2.6.0` for `torch==2.6.0+cpu`, and its triton.

    Empty if it pins no torch.
    """
    found: dict[str, str] = {}
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
                found.setdefault(requirement.name, f"{requirement.name}=={specifier.version.partition('+')[0]}")
    return tuple(found[name] for name in PINNED if name in found) if "torch" in found else ()


def torch_index_is_reachable(address: str = TORCH_INDEX) -> bool:
    """Return whether PyTorch's own index answers. Asked once and quickly: uv would retry for long."""
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
