"""How far apart a healthy engine and a healthy trainer usually are, by dtype: what is printed beside a distance.

It convicts nobody: published figures differ by model, temperature and kernel. It only says whether a reference is
itself an oddity. Dense models; mixtures of experts and FP8 are seen about ten times as far apart (Miles and slime:
k3 1e-3 to 1e-1; NeMo-RL gates FP8 at 4e-3).

float32   1e-11 on CPUs (examples/vllm/v0-to-v1: 1.3e-11 and 4.0e-11), 2.4e-6 with TF32 attention and fused kernels
          (Fast-LLM pull request 525: RMS .0022).
bfloat16  1e-5 to 1e-3 for dense models (Miles and slime), 4.7e-4 to 8e-4 (Fast-LLM pull request 525: RMS .0306 to
          .0408), 6.4e-4 (R3), 1.3e-3 to 2.0e-3 at T=0.7 (examples/vllm/v0-to-v1); prime-rl merges below 1e-2.
float16   the same 24 times closer (arXiv 2510.26788: KL 7.64 and .32).
"""

from dataclasses import dataclass

FLOAT16_CLOSER = 24.0


@dataclass(frozen=True)
class UsualDistance:
    """k3 in nats, from and to, of a pair whose coarser side is `dtype`."""

    dtype: str
    low: float
    high: float


# From fine to coarse: of two sides the coarser one makes the distance.
USUAL = (
    UsualDistance("float32", 1e-11, 1e-5),
    UsualDistance("float16", 1e-5 / FLOAT16_CLOSER, 1e-2 / FLOAT16_CLOSER),
    UsualDistance("bfloat16", 1e-5, 1e-2),
)


def usual_distance(engine: str, trainer: str) -> UsualDistance | None:
    """Of an engine and a trainer in these dtypes; None for one that nobody has published a figure of."""
    known = [place for place, usual in enumerate(USUAL) if usual.dtype in (engine, trainer)]
    named = {usual.dtype for usual in USUAL}
    return USUAL[max(known)] if known and {engine, trainer} <= named else None
