"""A training of TRL's GRPO on a CPU under `rlaudit record`, and what TRL logged of it.

TRL is not installed with an engine: its packages lie in a folder, which PYTHONPATH puts before the engine's own.
"""

import ast
import os
import socket
from dataclasses import dataclass
from pathlib import Path

from recorded_run import installed, recorded
from tiny_checkpoint import write_tiny_llama

from rlaudit.engines.environments.environment_spec import Environment, trainer_spec
from rlaudit.engines.inside.engine import ENGINE
from rlaudit.engines.models.model import DEFAULT_MODEL, ensure_model

# What TRL 0.23.1 and 0.25.1 ask for and vLLM 0.8.5 or 0.10.2 pins lower; all else, torch first, is the engine's.
PACKAGES = (
    "transformers==4.56.2",
    "tokenizers==0.22.1",
    "huggingface-hub==0.36.2",
    "accelerate==1.10.1",
    "datasets==4.4.1",
    "pyarrow==21.0.0",
)
# Relative alone: over 0.8.5 the differences are 3e-6 themselves. Found on 2026-11-24: 2e-7 at most.
FLOAT32_ROUNDING = {"rel": 1e-5, "abs": 1e-10}


@dataclass(frozen=True)
class Trained:
    """How a recorded training ended, what it printed, and what rlaudit said beside it."""

    recording: Path
    code: int
    printed: str
    said: str

    @property
    def logged(self) -> list[dict[str, float]]:
        """What TRL logged of each step: the dictionaries that its trainer prints."""
        lines = [ast.literal_eval(line) for line in self.printed.splitlines() if line.startswith("{'loss'")]
        return [{name: value for name, value in line.items() if name.startswith("sampling/")} for line in lines]


def write_model(folder: Path) -> None:
    """Write `tiny-llama`, with the tokenizer of the default model."""
    tokenizer = ensure_model(DEFAULT_MODEL, trainer_spec("cpu"), report=print)
    write_tiny_llama(Path(tokenizer.path), folder / "tiny-llama")


def trained(
    folder: Path, into: str, engine: Environment, trl: str, *words: object, beside: tuple[Path, ...] = ()
) -> Trained:
    """Run a program on `tiny-llama`, with this release of TRL. beside: more folders for its path."""
    # Packages of each training's own: the engines need not have the same Python.
    packages = installed(engine, folder / f"packages-{into}", f"trl=={trl}", *PACKAGES)
    paths = [packages, *beside, os.environ.get("PYTHONPATH")]
    done = recorded(
        engine,
        folder,
        into,
        *words,
        **ENGINE.quiet,
        PYTHONPATH=os.pathsep.join(map(str, filter(None, paths))),
        VLLM_CPU_KVCACHE_SPACE="1",
        VLLM_CPU_OMP_THREADS_BIND="all",
        VLLM_CPU_CI_ENV="1",  # no inductor: it would compile for longer than the training takes
        HF_HUB_OFFLINE="1",
        MASTER_ADDR="127.0.0.1",
        MASTER_PORT=free_port(),  # TRL 0.23.1 would take 12345, whoever has it
    )
    return Trained(folder / into, done.returncode, done.stdout, done.stderr)


def free_port() -> str:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return str(one.getsockname()[1])
