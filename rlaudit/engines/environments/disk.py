"""What an environment takes on disk, at most."""

from rlaudit.engines.environments.environment_spec import TRAINER
from rlaudit.engines.vllm.engine import ENGINE

# GB by package and by the major CUDA of its torch ("" for a CPU torch): the unpacked files of all packages that the
# largest release of each kind resolves to, from the wheels' own lists (November 2026: vLLM 0.19.1 has 10.4 and 0.25.1
# has 9.7, both with precompiled FlashInfer; the trainer has 7.35 with torch 2.10.0 and 4.9 with 2.13.0), and 2 % for
# what an installation adds (0.18.1: 9.27 in the lists, 9.42 on disk). Hard links into uv's cache make a second
# environment far smaller, which cannot be known beforehand.
_AT_MOST = {
    (ENGINE.package.name, "12"): 10.7,
    (ENGINE.package.name, "13"): 9.9,
    (ENGINE.package.name, ""): 3.5,
    (TRAINER.name, "12"): 7.5,
    (TRAINER.name, "13"): 5.1,
    (TRAINER.name, ""): 3.5,
}


def gigabytes(package: str, cuda: str | None) -> float:
    """GB that an environment takes at most.

    `cuda` is that of its torch as `12.8`, empty for a CPU torch. For one that is not known (None), or newer than those
    that were measured, the largest of the package.
    """
    largest = max(size for (kind, _), size in _AT_MOST.items() if kind == package)
    return largest if cuda is None else _AT_MOST.get((package, cuda.partition(".")[0]), largest)
