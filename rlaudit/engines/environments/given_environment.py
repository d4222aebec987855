"""An interpreter that the user gives (`--python`, `--trainer-python`), which describes itself."""

import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from packaging.version import Version

from rlaudit.engines.cells.launch import PACKAGE
from rlaudit.engines.engine import Build, Package
from rlaudit.engines.environments.build import environment_at
from rlaudit.engines.environments.describe import Interpreter, describe
from rlaudit.engines.environments.environment_spec import TRAINER, Command, Environment, EnvironmentSpec
from rlaudit.errors import NotFinished, UsageError
from rlaudit.files.cache_folder import cache_folder


def given_environment(
    package: Package,
    command: Command,
    release: str | None = None,
    build: Build | None = None,
    folder: Path | None = None,
    to_read: Sequence[Path] = (),
) -> Environment:
    """Return the environment behind a command, from the interpreter's own description.

    release: the vLLM that it must have, None for any. build: that of the run, None for any. folder: holds the cells.
    to_read: what cells read besides rlaudit's scripts. A container must see these paths and the folder unchanged.
    Raises UsageError if it has other packages or does not see the paths, NotFinished if it does not run or its packages
    do not import.
    """
    name = shlex.join(command)
    shared = () if folder is None else (PACKAGE, *to_read)
    interpreter = describe(command, folder, shared, package.imports)
    version = _version_of(package, interpreter, name)
    if release is not None and not _same_release(version, release):
        raise UsageError(
            f"{name} holds {package.name} {version}, not {release}",
            f"Name an interpreter that holds {release}: {package.option} {release}=COMMAND.",
        )
    _require_build(package, interpreter, build, name)
    if interpreter.out_of_sight:
        raise UsageError(_out_of_sight(name, interpreter.out_of_sight), _mounts(interpreter.out_of_sight))
    if interpreter.import_error is not None:
        raise NotFinished(
            f"{name} holds {package.name} {version}, which does not import: {interpreter.import_error}",
            _left_out(interpreter),
        )
    spec = EnvironmentSpec(package.name, release or version, build or _build_of(package, interpreter), command)
    left_out = _left_out(interpreter)
    notes = (left_out,) if left_out else ()
    environment = environment_at(spec, cache_folder() / "given" / spec.name, command, interpreter, notes)
    return replace(environment, variables={**environment.variables, **_preload_of_image(spec, interpreter)})


def _version_of(package: Package, interpreter: Interpreter, name: str) -> str:
    """Return the version of the package. Raises UsageError if a needed one is missing."""
    versions = interpreter.versions
    missing = [needed for needed in package.needed if needed not in versions]
    version = package.held(versions)
    if version is None and package is not TRAINER:
        missing = [package.title, *missing]
    if missing or version is None:
        raise UsageError(
            f"{name} holds no {' and no '.join(missing)}",
            _left_out(interpreter) or f"Install it there, or leave out {package.option}.",
        )
    return Version(version).public


def _same_release(held: str, wanted: str) -> bool:
    """Return whether the version is the release; 0.8.5.post2 of the CPU build is 0.8.5."""
    version = Version(held)
    return Version(wanted) == version or (
        not version.is_prerelease and Version(wanted) == Version(version.base_version)
    )


def _build_of(package: Package, interpreter: Interpreter) -> Build:
    """Return the build: vLLM's CPU build differs in name or local version; otherwise torch decides."""
    versions = interpreter.versions
    locals_ = [
        Version(versions[name]).local or "" for name in (package.distributions["cuda"], "torch") if name in versions
    ]
    for_cpu = package is not TRAINER and package.distributions["cpu"] in versions
    return "cpu" if for_cpu or interpreter.torch_cuda == "" or any("cpu" in local for local in locals_) else "cuda"


def _require_build(package: Package, interpreter: Interpreter, wanted: Build | None, name: str) -> None:
    """Raise UsageError for another build: one for CUDA would use the GPU in a run on the CPU, and vice versa.

    A trainer for CUDA also runs on the CPU.
    """
    build = _build_of(package, interpreter)
    if wanted is None or build == wanted or (package is TRAINER and wanted == "cpu"):
        return
    if wanted == "cuda":
        way_out = "Name one that was built for CUDA, or run on the CPU: --cpu."
    else:
        way_out = "Name one that was built for the CPU, or leave out --cpu on a machine with a GPU."
    raise UsageError(f"{name} holds a build for {build}, and this run is on {wanted}", way_out)


def _out_of_sight(name: str, paths: Sequence[str]) -> str:
    return f"{name} cannot see {' and '.join(paths)}: mount them at the same paths"


def _mounts(paths: Sequence[str]) -> str:
    docker = " ".join(f"-v {path}:{path}" for path in paths)
    return f"Mount them: docker run {docker}; apptainer exec --bind {','.join(paths)}. The first must be writable."


def _preload_of_image(spec: EnvironmentSpec, interpreter: Interpreter) -> dict[str, str]:
    """Return the LD_PRELOAD of a container's image, which V1's CPU workers need (preload.py)."""
    preload = {name: value for name, value in interpreter.dropped.items() if name == "LD_PRELOAD"}
    return preload if spec.build == "cpu" and not interpreter.site_packages.exists() else {}


def _left_out(interpreter: Interpreter) -> str | None:
    """Return the note on variables that the command sets and an arm does not get, as no recipe declares them."""
    if not interpreter.dropped:
        return None
    return f"No arm gets what only the command sets and no recipe declares: {', '.join(sorted(interpreter.dropped))}."
