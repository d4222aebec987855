"""The packages of a trainer's environment: torch by the driver, transformers by the model, and others.

rlaudit pins them to releases that were tried; `--trainer-python` takes any others.
"""

from dataclasses import dataclass

from packaging.version import Version

from rlaudit.engines.hardware.driver import driver_runs
from rlaudit.vllm.builds import recorded_torch

NEWEST_TORCH = Version("2.13.0")


@dataclass(frozen=True)
class TransformersRelease:
    """A release of transformers that was tried."""

    version: str
    # The day after the upload of the latest package with which it was tried.
    as_of: str
    # transformers 5 writes rotary frequencies to `rope_parameters`. 4.57.6 ignores it and takes 10,000 for
    # `rope_theta`: other logprobs, and no error.
    reads_rope_parameters: bool


# Oldest first: the first that supports a model scores it. 4.57.6 is the last of transformers 4.
TRANSFORMERS = (
    TransformersRelease("4.57.6", "2026-10-25", reads_rope_parameters=False),
    TransformersRelease("5.23.0", "2026-11-20", reads_rope_parameters=True),
)
# `gguf` is for the conversion of the default model, `accelerate` for that and for models on several GPUs. Tokenizers of
# Llama-like models may import `sentencepiece` and `protobuf`.
_BESIDES = ("safetensors", "numpy<2.4", "gguf", "accelerate", "sentencepiece", "protobuf")


def torch_for(driver_cuda: str) -> str:
    """Return the newest torch for a driver that offers this CUDA (as `12.8`); the newest of all if it is empty.

    If the driver runs none, the result is the least demanding one, which the refusal of the driver then names.
    """
    tried = {version: cuda for version, cuda in recorded_torch().items() if version <= NEWEST_TORCH}
    runs = [version for version, cuda in tried.items() if not driver_cuda or driver_runs(driver_cuda, cuda)]
    lowest = min(Version(cuda).major for cuda in tried.values())
    return str(max(runs or [version for version, cuda in tried.items() if Version(cuda).major == lowest]))


def requirements(transformers: str, torch: str) -> tuple[str, ...]:
    """Return the packages to install. torch: empty for the newest."""
    return (f"transformers=={transformers}", f"torch=={torch or NEWEST_TORCH}", *_BESIDES)


def as_of(transformers: str) -> str | None:
    """Return the day as of which to resolve the other packages; None for a release that was never tried.

    The trainer is then the same next year.
    """
    return next((release.as_of for release in TRANSFORMERS if release.version == transformers), None)
