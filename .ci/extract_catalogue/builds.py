"""Records what the published wheels of a release hold, and which CUDA the torch they pin was built for.

Read from the wheels' own file lists and metadata on the configured index, in parts: no wheel is downloaded.
"""

import ast
import json
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from zipfile import ZipFile

from packaging.markers import default_environment
from packaging.version import Version

from extract_catalogue.remote_wheel import open_wheel
from rlaudit.engines.engine import Build
from rlaudit.engines.environments.environment_spec import EnvironmentSpec
from rlaudit.engines.environments.package_index import choose_release, releases
from rlaudit.engines.environments.pip_configuration import PackageSources, read_package_sources
from rlaudit.engines.environments.resolve import own_pins
from rlaudit.errors import NotFinished, UsageError
from rlaudit.vllm.builds import FILE

_COMPILED = re.compile(r"vllm/(\w+)(\.[\w-]+)*\.so")
# Where a release imports its operators. The CUDA platform does so while it is imported itself, and does not start
# without them; what it imports under `try` or `suppress` it can do without (`vllm._qutlass_C`). The CPU build imports
# one of several modules, by instruction set, and goes on without one that does not load.
_IMPORTED_IN = {
    "cuda": ("vllm/platforms/cuda.py",),
    "cpu": ("vllm/platforms/cpu.py", "vllm/platforms/interface.py", "vllm/_custom_ops.py"),
}


def record_builds(versions: Sequence[str], into: Path) -> None:
    """Write the builds of these releases, and the torch releases of today, into the catalogue's folder."""
    path = into / FILE
    known = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {"vllm": {}, "torch": {}}
    sources = read_package_sources()
    for version in versions:
        known["vllm"][version] = _builds(version, sources)
        print(f"vLLM {version}: " + "; ".join(f"{kind}: {b['wheel']}" for kind, b in known["vllm"][version].items()))
    for torch, release in releases("torch", sources).items():
        oldest = min(Version(build["torch"]) for builds in known["vllm"].values() for build in builds.values())
        if torch >= oldest and torch.local is None and str(torch) not in known["torch"]:
            wheel = next((wheel for wheel in release.wheels if wheel.url.startswith("http")), None)
            if wheel is not None:
                known["torch"][str(torch)] = _cuda_of_torch(open_wheel(wheel.url, sources.certificates))
    _write(known, path)


def compiled_modules(names: Sequence[str]) -> list[str]:
    """The compiled files directly under `vllm/` of a wheel's file list."""
    return sorted(name.removeprefix("vllm/") for name in names if _COMPILED.fullmatch(name))


def imported_modules(wheel: ZipFile, build: Build) -> list[str]:
    """The compiled modules of the wheel that the release's own Python imports for its operators."""
    names = wheel.namelist()
    compiled = {_COMPILED.fullmatch(name)[1] for name in names if _COMPILED.fullmatch(name)}  # type: ignore[index]
    imported = {
        module
        for file in _IMPORTED_IN[build]
        if file in names
        for module in _imports(ast.parse(wheel.read(file)), guarded=build == "cpu")
    }
    return sorted(f"vllm.{name}" for name in compiled if f"vllm.{name}" in imported)


def _builds(version: str, sources: PackageSources) -> dict[str, Any]:
    found: dict[str, Any] = {}
    builds: tuple[Build, ...] = ("cuda", "cpu")
    for build in builds:
        try:
            chosen = choose_release(EnvironmentSpec("vllm", version, build), sources)
        except UsageError:
            continue  # not every release has a build for the CPU
        published = releases(chosen.distribution, sources)[chosen.version].wheel_for(chosen.python)
        if published is None:
            raise NotFinished(f"{chosen.requirement} has no wheel for Python {chosen.python}")
        with open_wheel(published.url, sources.certificates) as wheel:
            found[build] = {
                "wheel": published.filename,
                "modules": compiled_modules(wheel.namelist()),
                "imports": imported_modules(wheel, build),
                "torch": _torch_of(wheel, chosen.python),
            }
    return found


def _torch_of(wheel: ZipFile, python: str) -> str | None:
    name = next(name for name in wheel.namelist() if re.fullmatch(r"[^/]+\.dist-info/METADATA", name))
    environment = {key: str(value) for key, value in default_environment().items()}
    environment.update(python_version=python, sys_platform=sys.platform)
    pins = own_pins(wheel.read(name).decode("utf-8"), environment)
    return pins[0].partition("==")[2] if pins else None


def _cuda_of_torch(wheel: ZipFile) -> str | None:
    """`torch/version.py` says for which CUDA it was built: `cuda: Optional[str] = '12.4'`; None for a CPU build."""
    with wheel:
        module = ast.parse(wheel.read("torch/version.py"))
    for node in module.body:
        if isinstance(node, ast.AnnAssign) and ast.unparse(node.target) == "cuda" and node.value is not None:
            said = ast.literal_eval(node.value)
            return str(said) if said else None
    return None


def _imports(node: ast.AST, guarded: bool) -> Iterator[str]:
    """The modules imported below a node; in functions, under `try` and under `with` only where `guarded`."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import):
            yield from (alias.name for alias in child.names)
        elif guarded or not isinstance(child, ast.FunctionDef | ast.Try | ast.With):
            yield from _imports(child, guarded)


def _write(known: dict[str, Any], path: Path) -> None:
    """One release a line, oldest first."""
    sections = []
    for section, entries in known.items():
        ordered = sorted(entries.items(), key=lambda entry: Version(entry[0]))
        lines = ",\n".join(f"{json.dumps(name)}:{json.dumps(entry)}" for name, entry in ordered)
        sections.append(f"{json.dumps(section)}:{{\n{lines}\n}}")
    path.write_text("{\n" + ",\n".join(sections) + "\n}\n", encoding="utf-8")
