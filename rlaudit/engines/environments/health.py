"""Checks that installed packages can be imported and can compile, and repairs a too new libstdc++ requirement.

If operators do not load vLLM only warns, and dies much later; here it is an error at once. The compiled modules of a
release are recorded (rlaudit/vllm/data/builds.json): `vllm._C` up to 0.23.0, `vllm._C_stable_libtorch` from 0.19.0 on,
and for the CPU one for each instruction set.

Triton compiles kernels when an engine starts. It needs a C compiler and Python's headers, which no wheel contains, and
fails deep inside the start without them. Source: triton/runtime/build.py of Triton 3.2 to 3.8, which takes CC, else
gcc, else clang, and the include directory of the interpreter.
"""

import os
import signal
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rlaudit.engines.environments.describe import WITHOUT_WORKING_FOLDER
from rlaudit.engines.environments.environment_spec import Command, EnvironmentSpec
from rlaudit.engines.environments.libstdcxx import NotHarmlessError, missing_version, weaken
from rlaudit.errors import NotFinished
from rlaudit.files.parse_json import parse_json
from rlaudit.vllm.builds import published_build

_SECONDS_TO_IMPORT = 300
_MOST_REPAIRS = 8
_LOAD_OPERATORS = (Path(__file__).parents[1] / "inside" / "scripts" / "load_operators.py").read_text(encoding="utf-8")
_IMPORT_TRAINER = "import torch, transformers, safetensors.torch\n"
_SECONDS_TO_LOOK = 60
_LOOK = """
import json, os, shutil, sysconfig
configured = os.environ.get("CC")
compilers = [configured] if configured else ["gcc", "clang"]
missing = [] if any(shutil.which(name) for name in compilers) else ["a C compiler: " + " or ".join(compilers)]
scheme = sysconfig.get_default_scheme() if hasattr(sysconfig, "get_default_scheme") else "posix_prefix"
# Debian's scheme posix_local is for packages that pip installs; the headers are in the system's scheme.
headers = sysconfig.get_paths("posix_prefix" if scheme == "posix_local" else scheme)["include"]
if not os.path.exists(os.path.join(headers, "Python.h")):
    missing.append("Python's headers: " + os.path.join(headers, "Python.h"))
print(json.dumps(missing))
"""


@dataclass(frozen=True)
class Health:
    """The result of a check that passed."""

    # Sentences for the notes.
    repairs: tuple[str, ...] = ()
    # Compiled modules that did not load only because the NVIDIA driver's library is missing.
    unchecked: tuple[str, ...] = ()


def check(spec: EnvironmentSpec, command: Command, inside: Path) -> Health:
    """Import the packages. inside: the environment's directory; only files below it are ever changed.

    Raises NotFinished with the last line of the failed import.
    """
    program = _program(spec)
    repairs: list[str] = []
    for _ in range(_MOST_REPAIRS):
        try:
            ended = _run(command, *program)
        except subprocess.TimeoutExpired:
            raise NotFinished(f"{spec.name}: importing took more than {_SECONDS_TO_IMPORT} s") from None
        if ended.returncode == 0:
            operators = parse_json(ended.stdout.strip().splitlines()[-1]) if program[0] is _LOAD_OPERATORS else {}
            return Health(tuple(repairs), tuple(operators.get("unchecked", ())))
        # The whole output counts: vLLM only warns about it, above the last line.
        missing = missing_version(ended.stderr)
        if missing is None or inside.resolve() not in missing.library.resolve().parents:
            raise NotFinished(f"{spec.name} does not import: {_last_words(ended)}")
        try:
            weaken(missing)
        except (NotHarmlessError, ValueError, OSError) as error:
            raise NotFinished(f"{spec.name} needs a newer libstdc++ ({missing.version}): {error}") from None
        repairs.append(
            f"{missing.library.name}: requirement of {missing.version} made weak (its symbol is never called)"
        )
    raise NotFinished(f"{spec.name} does not import after {_MOST_REPAIRS} repairs: {repairs[-1]}")


def note_of_unchecked(modules: Sequence[str]) -> tuple[str, ...]:
    """Return the note on modules that cannot be loaded without a driver; empty for none."""
    if not modules:
        return ()
    return (
        f"built without an NVIDIA driver (libcuda.so.1): {', '.join(modules)} is there, and is first loaded on a "
        "machine with a driver",
    )


def missing_for_triton(command: Command) -> tuple[str, ...]:
    """Return what Triton needs and this interpreter's machine lacks. Raises NotFinished if it does not run."""
    environ = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    try:
        ended = subprocess.run(
            [*command, "-s", "-c", WITHOUT_WORKING_FOLDER + _LOOK],
            env=environ, capture_output=True, text=True, check=True, timeout=_SECONDS_TO_LOOK, stdin=subprocess.DEVNULL,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError) as error:
        raise NotFinished(f"{command[0]} does not run: {error}") from None
    return tuple(parse_json(ended.stdout))


def note_of_missing(missing: tuple[str, ...]) -> tuple[str, ...]:
    """Return the note on what Triton lacks; empty for nothing."""
    return (f"Triton compiles kernels at the engine's start and lacks here {'; '.join(missing)}",) if missing else ()


def _program(spec: EnvironmentSpec) -> tuple[str, ...]:
    if spec.package == "trainer":
        return (_IMPORT_TRAINER,)
    build = published_build(spec.version, spec.build)
    return (_LOAD_OPERATORS, spec.build, *(build.imports if build else ()))


def _last_words(ended: "subprocess.CompletedProcess[str]") -> str:
    if ended.returncode < 0:
        return f"ended by {signal.Signals(-ended.returncode).name}"
    return (ended.stderr.strip().splitlines() or [f"ended with code {ended.returncode}"])[-1]


def _run(command: Command, program: str, *words: str) -> "subprocess.CompletedProcess[str]":
    environ = {key: value for key, value in os.environ.items() if not key.startswith(("VLLM_", "PYTHON"))}
    # Imports make folders for what they compile.
    with tempfile.TemporaryDirectory(prefix="rlaudit-") as scratch:
        return subprocess.run(
            [*command, "-s", "-c", WITHOUT_WORKING_FOLDER + program, *words],
            env={**environ, "TMPDIR": scratch, "PYTHONSAFEPATH": "1"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_SECONDS_TO_IMPORT,
            check=False,
        )
