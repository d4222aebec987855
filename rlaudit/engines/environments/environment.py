"""Engine environments: one directory per engine and version under the user's cache, built once.

    <user cache>/rlaudit/engines/vllm-0.8.5-cpu.lock    two processes that want the same one take turns
    <user cache>/rlaudit/engines/vllm-0.8.5-cpu/
        environment.json                written last: an environment without it does not exist
        20261121T033512-4711/           the build it names; others are leftovers of builds that were killed

A build never touches an earlier one, so that a killed process, or a uv that it left running, does no harm. The next
build or removal of the same name removes leftovers.
"""

import json
import os
import shutil
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from rlaudit.engines.environments.build import Built, build
from rlaudit.engines.environments.environment_spec import Environment, EnvironmentSpec
from rlaudit.engines.environments.given_environment import given_environment
from rlaudit.engines.environments.health import check, missing_for_triton, note_of_missing, note_of_unchecked
from rlaudit.engines.environments.pip_configuration import read_package_sources
from rlaudit.engines.environments.uv import Uv, find_uv
from rlaudit.engines.hardware.driver import driver_is_there
from rlaudit.errors import NotFinished, UsageError
from rlaudit.files.cache_folder import cache_folder
from rlaudit.files.parse_json import parse_json
from rlaudit.secrets import mask

STATE = "environment.json"
FORMAT = 1
_SECONDS_BEFORE_TELLING = 1.0


def root() -> Path:
    """Return the folder of all environments."""
    return cache_folder() / "engines"


def locate(spec: EnvironmentSpec) -> Environment | None:
    """Return the environment if it exists; None otherwise. Builds nothing.

    A given interpreter is asked for its packages. Raises UsageError if it has another version.
    """
    if spec.command:
        return given_environment(spec.holds, spec.command, spec.version, spec.build)
    return _read(root() / spec.name)


def ensure(spec: EnvironmentSpec, report: Callable[[str], None], uv: Path | None = None) -> Environment:
    """Return the environment, built first if it does not exist. report: gets the progress. uv: the binary.

    Raises UsageError for a release that does not exist, NotFinished if the environment cannot be built.
    """
    environment = _ready(spec, report, uv)
    if not spec.is_engine or spec.build != "cuda" or spec.command:
        return environment
    lacking = note_of_missing(missing_for_triton(environment.command))
    return replace(environment, notes=(*environment.notes, *lacking))


def _ready(spec: EnvironmentSpec, report: Callable[[str], None], uv: Path | None) -> Environment:
    home = root() / spec.name
    environment = locate(spec)
    if environment is not None and spec.command:
        return environment
    if environment is not None:
        with suppress(OSError):  # a shared cache may be read only
            os.utime(home / STATE)  # the time of its last use
        return _checked_with_driver(home, environment)
    home.parent.mkdir(parents=True, exist_ok=True)
    lock = _lock(home)
    try:
        lock.acquire(timeout=_SECONDS_BEFORE_TELLING)
    except Timeout:
        report(f"{spec.name}: another process is building it; waiting")
        lock.acquire()
    try:
        return _read(home) or _build_at(home, spec, report, Uv(uv or find_uv(), read_package_sources()))
    finally:
        lock.release()


def _checked_with_driver(home: Path, environment: Environment) -> Environment:
    """Complete the check of an environment that was built without a driver, if there is one now."""
    state = parse_json((home / STATE).read_text(encoding="utf-8"))
    if not state.get("unchecked") or not driver_is_there():
        return environment
    health = check(environment.spec, environment.command, inside=environment.directory)
    state.update(unchecked=list(health.unchecked), notes=[*state["notes"], *health.repairs])
    _write_state(home, state)
    return _read(home) or environment


def list_environments() -> list[Environment]:
    """Return every whole environment, by name."""
    homes = sorted(root().iterdir()) if root().is_dir() else []
    return [environment for home in homes if home.is_dir() and (environment := _read(home))]


def all_names() -> list[str]:
    """Return the names of all environments, leftovers of killed builds included."""
    return sorted(home.name for home in root().iterdir() if home.is_dir()) if root().is_dir() else []


def unused_names(days: float) -> list[str]:
    """Return the names of environments that no command used in the last `days`, and of leftovers."""
    oldest = time.time() - days * 86400
    states = {name: root() / name / STATE for name in all_names()}
    return [name for name, state in states.items() if not state.exists() or state.stat().st_mtime <= oldest]


@dataclass(frozen=True)
class Freed:
    """Bytes on disk that a removal gave back, and those that stay: of files that uv's cache, or another one, links."""

    freed: int
    shared: int


def remove(name: str) -> Freed:
    """Delete an environment and leftovers of its builds. Raises UsageError if there are none."""
    home = root() / name
    if name not in all_names():
        names = ", ".join(environment.spec.name for environment in list_environments()) or "none"
        raise UsageError(f"there is no engine environment {name!r}", f"Present: {names}.")
    with _lock(home):
        # The state goes first: `locate` must never return half an environment.
        (home / STATE).unlink(missing_ok=True)
        freed = _would_free(home)
        shutil.rmtree(home, ignore_errors=True)
    return freed


def _would_free(home: Path) -> Freed:
    sizes = {True: 0, False: 0}
    for folder, _, names in os.walk(home):
        for name in names:
            with suppress(OSError):
                status = Path(folder, name).lstat()
                sizes[status.st_nlink == 1] += status.st_blocks * 512
    return Freed(freed=sizes[True], shared=sizes[False])


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
    environment = _read(home)
    if environment is None:
        raise NotFinished(f"{spec.name} was removed while it was built", "Build it again.")
    return environment


def _write(home: Path, built: Built, seconds: float) -> None:
    environment = built.environment
    state = {
        "format": FORMAT,
        "spec": {
            "package": environment.spec.package,
            "version": environment.spec.version,
            "build": environment.spec.build,
            "torch": environment.spec.torch,
        },
        "directory": environment.directory.name,
        "python": environment.command[0],
        "variables": dict(environment.variables),
        "lock": list(environment.lock),
        "notes": list(environment.notes),
        "versions": dict(environment.versions),
        "built": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "seconds": seconds,
        **built.record,
    }
    _write_state(home, state)


def _write_state(home: Path, state: dict[str, Any]) -> None:
    part = home / f"{STATE}.part"
    part.write_text(json.dumps(mask(state), indent=1), encoding="utf-8")
    part.replace(home / STATE)


def _read(home: Path) -> Environment | None:
    """Return an environment from its state file; None without one, of another format, or without its interpreter."""
    try:
        state = parse_json((home / STATE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    if state.get("format") != FORMAT or not Path(state["python"]).exists():
        return None
    return Environment(
        spec=EnvironmentSpec(**state["spec"]),
        directory=home / state["directory"],
        command=(state["python"],),
        variables=state["variables"],
        lock=tuple(state["lock"]),
        notes=(*state["notes"], *note_of_unchecked(state.get("unchecked", ()))),
        versions=state["versions"],
    )


def _lock(home: Path) -> FileLock:
    return FileLock(home.with_name(home.name + ".lock"))
