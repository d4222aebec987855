"""An interpreter that the user brings, taken for what it says of itself (`--python`, `--trainer-python`)."""

import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from packaging.version import Version
from platformdirs import user_cache_path

from rlaudit.engines.cells.launch import PACKAGE
from rlaudit.engines.engine import Build, Package
from rlaudit.engines.environments.build import environment_at
from rlaudit.engines.environments.describe import Interpreter, describe
from rlaudit.engines.environments.environment_spec import TRAINER, Command, Environment, EnvironmentSpec
from rlaudit.errors import NotFinished, UsageError


def given_environment(
    package: Package,
    command: Command,
    release: str | None = None,
    build: Build | None = None,
    folder: Path | None = None,
    read: Sequence[Path] = (),
) -> Environment:
    """Return the environment behind a command, which is asked what it holds.

    `release` is the vLLM it should hold and `build` what the run is on; None takes what is there. `folder` is where
    cells will lie, `read` what they read besides rlaudit's own scripts: both must be seen inside a container as they
    are seen here. Raises UsageError when it holds something else or does not see them, NotFinished when it does not run
    or its packages do not import.
    """
    name = shlex.join(command)
    shared = () if folder is None else (PACKAGE, *read)
    interpreter = describe(command, folder, shared, package.imports)
    held = _held(package, interpreter, name)
    if release is not None and not _same_release(held, release):
        raise UsageError(
            f"{name} holds {package.name} {held}, not {release}",
            f"Name an interpreter that holds {release}: {package.option} {release}=COMMAND.",
        )
    _require_build(package, interpreter, build, name)
    if interpreter.out_of_sight:
        raise UsageError(_out_of_sight(name, interpreter.out_of_sight), _mounts(interpreter.out_of_sight))
    if interpreter.import_error is not None:
        raise NotFinished(
            f"{name} holds {package.name} {held}, which does not import: {interpreter.import_error}",
            _left_out(interpreter),
        )
    spec = EnvironmentSpec(package.name, release or held, build or _build_of(package, interpreter), command)
    left_out = _left_out(interpreter)
    notes = (left_out,) if left_out else ()
    environment = environment_at(spec, user_cache_path("rlaudit") / "given" / spec.name, command, interpreter, notes)
    return replace(environment, variables={**environment.variables, **_of_the_box(spec, interpreter)})


def _held(package: Package, interpreter: Interpreter, name: str) -> str:
    """Return the version of the package that names the environment."""
    versions = interpreter.versions
    missing = [needed for needed in package.needed if needed not in versions]
    held = package.held(versions)
    if held is None and package is not TRAINER:
        missing = [package.title, *missing]
    if missing or held is None:
        raise UsageError(
            f"{name} holds no {' and no '.join(missing)}",
            _left_out(interpreter) or f"Install it there, or leave out {package.option}.",
        )
    return Version(held).public


def _same_release(held: str, wanted: str) -> bool:
    """Return whether the version is the release; 0.8.5.post2 of the CPU build holds 0.8.5."""
    found = Version(held)
    return Version(wanted) == found or (not found.is_prerelease and Version(wanted) == Version(found.base_version))


def _build_of(package: Package, interpreter: Interpreter) -> Build:
    """Return what it was built for: vLLM's CPU build has a name or a local version of its own, else torch says it."""
    versions = interpreter.versions
    locals_of = [
        Version(versions[one]).local or "" for one in (package.distributions["cuda"], "torch") if one in versions
    ]
    for_cpu = package is not TRAINER and package.distributions["cpu"] in versions
    return "cpu" if for_cpu or interpreter.torch_cuda == "" or any("cpu" in one for one in locals_of) else "cuda"


def _require_build(package: Package, interpreter: Interpreter, wanted: Build | None, name: str) -> None:
    """Refuse another build: one for CUDA would use the GPU in a run that is on the CPU, and the other way round. A
    trainer moves to the device of its job."""
    found = _build_of(package, interpreter)
    if wanted is None or found == wanted or (package is TRAINER and wanted == "cpu"):
        return
    if wanted == "cuda":
        way_out = "Name one that was built for CUDA, or run on the CPU: --cpu."
    else:
        way_out = "Name one that was built for the CPU, or leave out --cpu on a machine with a GPU."
    raise UsageError(f"{name} holds a build for {found}, and this run is on {wanted}", way_out)


def _out_of_sight(name: str, paths: Sequence[str]) -> str:
    return f"{name} does not see {' and '.join(paths)}, which it must find there as they are here"


def _mounts(paths: Sequence[str]) -> str:
    docker = " ".join(f"-v {path}:{path}" for path in paths)
    return f"Mount them: docker run {docker}; apptainer exec --bind {','.join(paths)}. The first must be writable."


def _of_the_box(spec: EnvironmentSpec, interpreter: Interpreter) -> dict[str, str]:
    """V1's CPU workers ask for libraries by LD_PRELOAD (preload.py), which in a container only its image can name."""
    named = {name: value for name, value in interpreter.dropped.items() if name == "LD_PRELOAD"}
    return named if spec.build == "cpu" and not interpreter.site_packages.exists() else {}


def _left_out(interpreter: Interpreter) -> str | None:
    """Return what the command sets and an arm does not get, because no recipe declares it."""
    if not interpreter.dropped:
        return None
    return f"Left out, as no recipe declares it, is what the command sets: {', '.join(sorted(interpreter.dropped))}."
