"""What a trainer's environment holds: which torch, by the driver, which transformers, by the model, and what besides.

The trainer is rlaudit's own choice, so it is pinned to releases that were tried; `--trainer-python` takes any other.
"""

from dataclasses import dataclass

from packaging.version import Version

from rlaudit.engines.hardware.driver import driver_runs
from rlaudit.vllm.builds import recorded_torch

# The newest torch that the trainer was tried with.
NEWEST_TORCH = Version("2.13.0")


@dataclass(frozen=True)
class TransformersRelease:
    """A release of transformers, and the day after the latest of the packages it was tried with.

    `reads_rope_parameters`: transformers 5 writes rotary frequencies there. 4.57.6 passes over it and takes 10,000 for
    `rope_theta`: other logprobs, and no error.
    """

    version: str
    as_of: str
    reads_rope_parameters: bool


# Oldest first: the first that knows a model scores it. 4.57.6 is the last of transformers 4.
TRANSFORMERS = (
    TransformersRelease("4.57.6", "2026-10-25", reads_rope_parameters=False),
    TransformersRelease("5.23.0", "2026-11-20", reads_rope_parameters=True),
)
# `gguf` is for the one conversion of the default model, `accelerate` for that and for models on several GPUs;
# `sentencepiece` and `protobuf` are what tokenizers of Llama-like models may ask for.
_BESIDES = ("safetensors", "numpy<2.4", "gguf", "accelerate", "sentencepiece", "protobuf")


def torch_for(driver_cuda: str) -> str:
    """Return the newest torch for a driver that offers this CUDA (as `12.8`); the newest of all if that is unknown.

    For a driver that runs none, the one that asks least of it: the driver is then refused by that torch's name.
    """
    tried = {version: cuda for version, cuda in recorded_torch().items() if version <= NEWEST_TORCH}
    runs = [version for version, cuda in tried.items() if not driver_cuda or driver_runs(driver_cuda, cuda)]
    lowest = min(Version(cuda).major for cuda in tried.values())
    return str(max(runs or [version for version, cuda in tried.items() if Version(cuda).major == lowest]))


def requirements(transformers: str, torch: str) -> tuple[str, ...]:
    """Return what to install; `torch` is empty for the newest."""
    return (f"transformers=={transformers}", f"torch=={torch or NEWEST_TORCH}", *_BESIDES)


def as_of(transformers: str) -> str | None:
    """Return the day to resolve everything else for, so that the trainer is the same next year; None for a release that
    was never tried."""
    return next((release.as_of for release in TRANSFORMERS if release.version == transformers), None)
