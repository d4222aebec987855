"""What Triton needs of the machine to compile kernels when an engine starts: a C compiler, and Python's headers.

A wheel brings neither, and the engine says so only deep inside its start. Source: triton/runtime/build.py of Triton 3.2
to 3.8, which takes CC, else gcc, else clang, and the include directory of the interpreter.
"""

import os
import subprocess

from rlaudit.engines.environments.environment_spec import Command
from rlaudit.errors import NotFinished
from rlaudit.parse_json import parse_json

_SECONDS_TO_LOOK = 60
_LOOK = """
import json, os, shutil, sysconfig
asked = os.environ.get("CC")
compilers = [asked] if asked else ["gcc", "clang"]
missing = [] if any(shutil.which(name) for name in compilers) else ["a C compiler: " + " or ".join(compilers)]
scheme = sysconfig.get_default_scheme() if hasattr(sysconfig, "get_default_scheme") else "posix_prefix"
# Debian's own scheme is for packages that pip installs; the headers stay with the system's.
headers = sysconfig.get_paths("posix_prefix" if scheme == "posix_local" else scheme)["include"]
if not os.path.exists(os.path.join(headers, "Python.h")):
    missing.append("Python's headers: " + os.path.join(headers, "Python.h"))
print(json.dumps(missing))
"""


def missing_for_triton(command: Command) -> tuple[str, ...]:
    """What of it is not there for an interpreter on this machine, by name. Raises NotFinished when it does not run."""
    environ = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    try:
        told = subprocess.run(
            [*command, "-s", "-c", _LOOK], env=environ, capture_output=True, text=True, check=True,
            timeout=_SECONDS_TO_LOOK, stdin=subprocess.DEVNULL,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError) as error:
        raise NotFinished(f"{command[0]} does not run: {error}") from None
    return tuple(parse_json(told.stdout))


def said_of_missing(missing: tuple[str, ...]) -> tuple[str, ...]:
    """The note for what is missing; nothing for nothing."""
    return (f"Triton compiles kernels at the engine's start and lacks here {'; '.join(missing)}",) if missing else ()
