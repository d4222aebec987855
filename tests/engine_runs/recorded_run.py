"""A program in the interpreter of an engine or a trainer, below the recorder or without it."""

import os
import subprocess
import sys
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

from recorder_folder import variables
from tiny_checkpoint import write_tiny
from word_tokenizer import write_tokenizer

from rlaudit.engines.environments.environment_spec import Environment
from rlaudit.engines.environments.pip_configuration import read_package_sources
from rlaudit.engines.environments.uv import Uv, find_uv
from rlaudit.engines.inside.scripts.tiny_model import VOCABULARY

QUIET = {"VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_CPU_CI_ENV": "1", "VLLM_LOGGING_LEVEL": "WARNING", "HF_HUB_OFFLINE": "1"}
ONE_PROCESS = {"VLLM_ENABLE_V1_MULTIPROCESSING": "0"}
PATIENCE_SECONDS = 600


@cache
def model_in(folder: Path) -> Path:
    """A random model with a tokenizer."""
    model = write_tiny(folder / "model")
    write_tokenizer(model, VOCABULARY)
    return model


def without_settings(*more: str) -> dict[str, str]:
    """The variables of this process but those that would change a run. more: beginnings of others."""
    changing = ("VLLM_", "PYTHON", "RLAUDIT_", *more)
    return {name: value for name, value in os.environ.items() if not name.startswith(changing)}


def ran(
    environment: Environment,
    *words: object,
    recorder: Path | None = None,
    out: Path | None = None,
    paths: Iterable[Path] = (),
    at: Path | None = None,
    more: Mapping[str, str] | None = None,
) -> "subprocess.CompletedProcess[str]":
    """Run words to their end, which has to be in order. recorder: the folder, which writes into `out`.

    paths: where Python looks behind it. more: variables.
    """
    on = variables(recorder, out) if recorder and out else {}
    found = [*filter(None, [on.get("PYTHONPATH")]), *map(str, paths)]
    on |= {"PYTHONPATH": os.pathsep.join(found)} if found else {}
    done = subprocess.run(
        [*environment.command, *map(str, words)],
        env={**without_settings(), **QUIET, **environment.variables, **(more or {}), **on},
        cwd=at,
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_SECONDS,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    return done


def installed(environment: Environment, folder: Path, *packages: str) -> Path:
    """Install packages, and nothing of what they need, into a folder for the environment's interpreter."""
    uv = Uv(find_uv(), read_package_sources())
    uv.pip("install", Path(environment.command[0]), "--no-deps", "--target", folder, *packages)
    return folder


def recorded(
    environment: Environment, folder: Path, into: str, *words: object, options: Iterable[str] = (), **more: str
) -> "subprocess.CompletedProcess[str]":
    """Run words under `rlaudit record`, in the folder. options: of the command. more: variables."""
    kept = {name: value for name, value in os.environ.items() if name not in ("VLLM_PLUGINS", "RLAUDIT_RECORD")}
    record = [sys.executable, "-m", "rlaudit", "record", "--into", into, *options, "--"]
    return subprocess.run(
        [*record, *environment.command, *map(str, words)],
        env={**kept, **environment.variables, **more},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
