"""Builds one environment in an empty directory: interpreter, packages, repairs, health check."""

import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from packaging.markers import default_environment

from rlaudit.engines.environments import trainer_packages
from rlaudit.engines.environments.describe import Interpreter, describe
from rlaudit.engines.environments.environment_spec import TRAINER, Command, Environment, EnvironmentSpec
from rlaudit.engines.environments.health import check
from rlaudit.engines.environments.package_index import choose_release
from rlaudit.engines.environments.refusals import needs_of_lock, refusal
from rlaudit.engines.environments.resolve import (
    ALSO_NEEDED,
    Plan,
    Resolution,
    caps,
    compiled,
    install,
    own_pins,
    plans,
    resolve,
    torch_index_is_reachable,
)
from rlaudit.engines.environments.uv import Uv, UvError
from rlaudit.engines.hardware.driver import offered_cuda
from rlaudit.engines.inside.engine import ENGINE
from rlaudit.engines.inside.preload import preload_for
from rlaudit.errors import NotFinished

Report = Callable[[str], None]

# GB by package and by the major CUDA of its torch ("" for a CPU torch). It is the size of the unpacked packages of the
# largest release of each kind, from the wheels' own lists (November 2026: vLLM 0.19.1 has 10.4 and 0.25.1 has 9.7, both
# with precompiled FlashInfer; the trainer has 7.35 with torch 2.10.0 and 4.9 with 2.13.0), and 2 % for what an
# installation adds (0.18.1: 9.27 in the lists, 9.42 on disk). Hard links into uv's cache make a second environment far
# smaller, but that cannot be predicted.
_AT_MOST = {
    (ENGINE.package.name, "12"): 10.7,
    (ENGINE.package.name, "13"): 9.9,
    (ENGINE.package.name, ""): 3.5,
    (TRAINER.name, "12"): 7.5,
    (TRAINER.name, "13"): 5.1,
    (TRAINER.name, ""): 3.5,
}


@dataclass(frozen=True)
class Built:
    """A finished environment, and the record of its build for the state file."""

    environment: Environment
    record: dict[str, Any] = field(default_factory=dict)


def build(spec: EnvironmentSpec, directory: Path, uv: Uv, report: Report) -> Built:
    """Build `spec` in `directory`, which must be empty. The result counts only once it is recorded.

    Raises UsageError for a release that does not exist, NotFinished if anything cannot be downloaded or installed.
    """
    try:
        return _build(spec, directory, uv, report)
    except UvError as error:
        raise NotFinished(f"{spec.name} could not be built: {error}") from None


def _build(spec: EnvironmentSpec, directory: Path, uv: Uv, report: Report) -> Built:
    if spec.is_engine:
        release = choose_release(spec, uv.sources)
        minor, as_of = release.python, release.as_of
        requirements = [release.requirement, *ALSO_NEEDED]
    else:
        import platform

        minor = platform.python_version().rpartition(".")[0]
        requirements = [*trainer_packages.requirements(spec.version, spec.torch)]
        as_of = trainer_packages.as_of(spec.version)
    report(f"{spec.name}: resolving for Python {minor}" + (f" as of {as_of}" if as_of else ""))
    prefix = directory / "venv"
    uv.venv(minor, prefix)
    python = prefix / "bin" / "python"

    pins: tuple[str, ...] = ()
    if spec.is_engine and spec.build == "cpu":
        # The wheel's metadata pins torch. It is read after installation, which works with any index.
        requirement = directory / "release.txt"
        requirement.write_text(requirements[0] + "\n", encoding="utf-8")
        install(uv, python, compiled(uv, python, Plan(), "--no-deps", requirement), directory)
        pins = _pinned_torch(describe((str(python),)), spec.distribution, minor)
    version_caps = caps(spec.version) if spec.is_engine else ()
    reachable = spec.build == "cpu" and torch_index_is_reachable()
    to_try = plans(spec, pins, as_of, version_caps, reachable)
    resolution = resolve(uv, python, requirements, to_try, directory)
    dated = "--exclude-newer" in resolution.plan.arguments

    _check_torch(spec, resolution)
    _check_disk(spec, resolution, directory)
    report(f"{spec.name}: installing {len(resolution.lock)} packages")
    install(uv, python, resolution, directory)

    report(f"{spec.name}: checking that it imports")
    notes = [resolution.plan.note] if resolution.plan.note else []
    if as_of and not dated:
        under = ", ".join(version_caps) or "no caps"
        notes.append(f"nothing resolves as of {as_of} here: resolved as of today, under {under}")
    command = (str(python),)
    health = check(spec, command, inside=directory)
    notes += health.repairs
    frozen = tuple(uv.pip("freeze", python).split("\n"))
    environment = environment_at(spec, directory, command, describe(command), tuple(notes), frozen)
    record = {
        "as_of": as_of if dated else None,
        "overrides": list(resolution.plan.overrides),
        "constraints": list(resolution.plan.constraints),
        "unchecked": list(health.unchecked),
        "without_hash": list(resolution.without_hash),
        "uv": uv.version(),
    }
    return Built(environment, record)


def environment_at(
    spec: EnvironmentSpec,
    directory: Path,
    command: Command,
    interpreter: Interpreter,
    notes: tuple[str, ...] = (),
    lock: tuple[str, ...] = (),
) -> Environment:
    """Return the environment of an interpreter, with the variables that a cell needs.

    directory: the folder for a stand-in library. lock: empty for the packages that the interpreter lists.
    """
    variables: dict[str, str] = {}
    if spec.is_engine and spec.build == "cpu":
        preload = preload_for(interpreter.site_packages, interpreter.prefix, directory / "preload")
        variables, notes = preload.variables, (*notes, *preload.notes)
    locked = tuple(line.strip() for line in lock or interpreter.lock if line.strip())
    return Environment(spec, directory, command, variables, locked, notes, interpreter.versions)


def gigabytes(package: str, cuda: str | None) -> float:
    """Return the GB that an environment takes at most.

    cuda: that of its torch, as `12.8`, empty for a CPU torch. For an unknown one (None), or one newer than those
    measured, the result is the largest of the package.
    """
    largest = max(size for (kind, _), size in _AT_MOST.items() if kind == package)
    return largest if cuda is None else _AT_MOST.get((package, cuda.partition(".")[0]), largest)


def _pinned_torch(interpreter: Interpreter, distribution: str, minor: str) -> tuple[str, ...]:
    folder = next(interpreter.site_packages.glob(f"{distribution.replace('-', '_')}-*.dist-info"))
    environment = {key: str(value) for key, value in default_environment().items()}
    environment.update(python_version=minor, python_full_version=interpreter.versions["python"])
    return own_pins((folder / "METADATA").read_text(encoding="utf-8"), environment)


def _check_torch(spec: EnvironmentSpec, resolution: Resolution) -> None:
    """Check the torch that was resolved: earlier only the recorded torch of the release was checked."""
    if spec.build == "cpu":
        return
    needed = needs_of_lock(resolution.lock)
    if needed is None:
        raise NotFinished(
            f"{spec.name} would get a torch without CUDA here: none of its packages brings the CUDA runtime",
            "Name an index that has torch as PyPI has it before any folder or mirror with CPU builds.",
        )
    refused = refusal(spec, needed, offered_cuda())
    if refused is not None:
        raise NotFinished(refused.message, refused.hint)


def _check_disk(spec: EnvironmentSpec, resolution: Resolution, directory: Path) -> None:
    torch = needs_of_lock(resolution.lock)
    needed_gb = gigabytes(spec.package, torch.cuda if torch else "")
    free_gb = shutil.disk_usage(directory).free / 1e9
    if free_gb < needed_gb:
        raise NotFinished(
            f"{spec.name} takes up to {needed_gb:.1f} GB and {directory.parent} has {free_gb:.1f} GB free",
            "Free some space, or point RLAUDIT_CACHE_DIR at a larger disk (uv's cache too: UV_CACHE_DIR).",
        )
