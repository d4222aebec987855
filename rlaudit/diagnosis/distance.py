"""Layer 2's verdict on figures: is the engine farther from the trainer than it may be? And what layer 3 is left with.

    semantic        do the logprobs mean what the trainer assumes? Nothing below is a distance before that.
    inference path  does the *backend* differ: is the engine farther from the trainer than the yardstick lets it be?
    objective       what is left that the *objective* has to correct?

The yardstick of the inference path, the first of these that there is:

MARGIN       The user's own margin on k3, in nats. It wins over the others.
REFERENCE    The engine that runs today, judged on the same prompts: the candidate's k3 is at most TIMES the
             reference's, plus what no range of the objective can feel (`non_inferiority.py`). A bfloat16 engine is
             about 1e-3 nats from a bfloat16 trainer on its own; that is no difference of the *migration*, so no worse
             than today is a match. What it clips is printed, and is layer 3's to judge: that layer is where today's
             mismatch, which a migration did not make, counts. A reference serves under two conditions. What its
             own logprobs mean has to be known: scored under that meaning, at the sampling temperature, raw logprobs are
             a distance as well. And one that is surely farther off than is usual for its dtype vouches only for a
             candidate that is not: otherwise the verdict is open, and says so.
CONSEQUENCE  Without either, what the user's clip range feels: more than NOTICEABLE_CLIPPING of tokens or sequences
             pushed out of it by the mismatch alone is a mismatch, surely less is a match (`consequence.py`). Layer 3
             would count the same events; it is reached only where this passes. A mismatch here means: there is more
             than the objective should have to bear, and nothing says that it was there before. Rounding does that as
             well: up to ORDINARY, evenly over the tokens and without a cause that shows, it is the noise of a healthy
             engine and nothing is found (`judge_path.py`); up to what is usual for the dtype the verdict is open.

So the two layers never count the same events: with a reference or a margin layer 2 asks for a difference and layer 3
for a consequence; without them layer 2 asks for the consequence, and layer 3 has nothing to add.

How far apart a healthy engine and a healthy trainer usually are, by dtype, is shown beside the verdict in each case.
Published figures differ by model, temperature and kernel, so it decides only whether a reference is itself an oddity,
and whether what a clip range feels without a reference can be rounding. Dense models; mixtures of experts and FP8 are
seen about ten times as far apart (Miles and slime: k3 1e-3 to 1e-1; NeMo-RL gates FP8 at 4e-3).

float32   1e-11 on CPUs (examples/vllm/v0-to-v1: 1.3e-11 and 4.0e-11), 2.4e-6 with TF32 attention and fused kernels
          (Fast-LLM pull request 525: RMS .0022).
bfloat16  1e-5 to 1e-3 for dense models (Miles and slime), 4.7e-4 to 8e-4 (Fast-LLM pull request 525: RMS .0306 to
          .0408), 6.4e-4 (R3), 1.3e-3 to 2.0e-3 at T=0.7 (examples/vllm/v0-to-v1); prime-rl merges below 1e-2.
float16   the same 24 times closer (arXiv 2510.26788: KL 7.64 and .32).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from rlaudit.diagnosis.consequence import Consequence, Measurements, consequence, unfelt_k2
from rlaudit.layers import Verdict
from rlaudit.statistics.measurement.contrast import judge
from rlaudit.statistics.measurement.measure import Measurement, Tally, all_metrics
from rlaudit.statistics.measurement.metric import Clip, ObjectiveSettings
from rlaudit.statistics.measurement.non_inferiority import NonInferiority, non_inferiority
from rlaudit.statistics.resample import REPLICATES

FLOAT16_CLOSER = 24.0
# k3, nats: twice the largest that is published of a dense pair in bfloat16 (2.0e-3, below).
ORDINARY = 4e-3


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
    """Return the usual distance of an engine and a trainer in these dtypes; None if a dtype has no published figure."""
    places = [place for place, usual in enumerate(USUAL) if usual.dtype in (engine, trainer)]
    dtypes = {usual.dtype for usual in USUAL}
    return USUAL[max(places)] if places and {engine, trainer} <= dtypes else None


METRIC = "k3"


class Yardstick(StrEnum):
    """What a distance was judged by."""

    MARGIN = "margin"
    REFERENCE = "reference"
    CONSEQUENCE = "consequence"


@dataclass(frozen=True, eq=False)
class Reference:
    """The engine that runs today."""

    name: str
    k3: Measurement
    tally: Tally
    # On what its logprobs mean.
    semantic: Verdict
    # Whether a candidate can be judged by it: scored under what its logprobs mean, or by logs without a mismatch.
    serves: bool
    # Of its dtype, if known.
    usual: UsualDistance | None = None

    @property
    def odd(self) -> bool:
        """Whether it is surely farther from the trainer than is usual for its dtype."""
        return self.usual is not None and self.k3.low is not None and self.k3.low > self.usual.high


@dataclass(frozen=True, eq=False)
class Distance:
    """A judged distance."""

    # By `yardstick`.
    verdict: Verdict
    yardstick: Yardstick
    k3: Measurement
    # k3 (nats) that the yardstick is known to let pass.
    tolerated: float
    # For any yardstick.
    consequence: Consequence
    settings: ObjectiveSettings
    usual: UsualDistance | None = None
    # Set even if it could not serve.
    reference: Reference | None = None
    # How it compares, if the yardstick is a reference.
    against: NonInferiority | None = None
    # Whether it is no farther than the reference, but the reference cannot vouch for it.
    withheld: bool = False

    @property
    def ordinary(self) -> bool:
        """Whether it is as far as a healthy engine, surely no farther than is usual, and nothing better is known."""
        known = self.k3.value is not None and self.k3.reliable and self.yardstick is Yardstick.CONSEQUENCE
        return known and (self.k3.value or 0.0) <= ORDINARY and _within(self.k3, self.usual)

    @property
    def usual_at_most(self) -> bool:
        """Whether it is not surely farther than is usual, and nothing better is known."""
        if self.usual is None or self.k3.low is None or self.yardstick is not Yardstick.CONSEQUENCE:
            return False
        return self.k3.low <= self.usual.high

    @property
    def reported(self) -> "ReportedDistance":
        """What a report holds of it."""
        return ReportedDistance(
            verdict=self.verdict,
            yardstick=self.yardstick,
            tolerated=self.tolerated,
            consequence=self.consequence.verdict,
            clips=self.settings.clips,
            usual=None if self.usual is None else (self.usual.low, self.usual.high),
            reference=None if self.reference is None else self.reference.name,
            reference_odd=None if self.reference is None else self.reference.odd,
            against=self.against,
        )


@dataclass(frozen=True)
class ReportedDistance:
    """How far the engine is from the trainer by the yardstick of the inference path; k3 in nats.

    reference_odd: whether the reference is surely farther from the trainer than is usual for its dtype.
    """

    verdict: Verdict
    yardstick: Yardstick
    tolerated: float
    consequence: Verdict
    clips: Sequence[Clip]
    usual: tuple[float, float] | None
    reference: str | None
    reference_odd: bool | None
    against: NonInferiority | None


@dataclass(frozen=True, eq=False)
class Candidate:
    """The engine in question."""

    measurements: Measurements
    tally: Tally
    # Tokens of its shortest sequence.
    shortest: int
    # k2 below which nothing can be seen.
    noise: float = 0.0
    usual: UsualDistance | None = None


def judge_distance(
    candidate: Candidate,
    settings: ObjectiveSettings,
    margin: float | None = None,
    reference: Reference | None = None,
    *,
    replicates: int = REPLICATES,
    seed: int = 0,
) -> Distance:
    """Return how far the candidate is, by the first yardstick that is known. margin: the user's, nats of k3."""
    k3 = candidate.measurements[METRIC]
    felt = consequence(candidate.measurements, settings)
    blank: Mapping[str, Any] = {
        "k3": k3,
        "consequence": felt,
        "settings": settings,
        "usual": candidate.usual,
        "reference": reference,
    }
    if margin is not None:
        verdict = judge(k3.low, k3.high, margin, reliable=k3.reliable)
        return Distance(verdict, Yardstick.MARGIN, tolerated=margin, **blank)
    floor = max(candidate.noise, unfelt_k2(candidate.measurements, settings, candidate.shortest))
    if reference is None or not reference.serves:
        surely = felt.verdict is Verdict.MATCH and k3.high is not None
        tolerated = max(floor, k3.high or 0.0) if surely else floor
        verdict = felt.verdict if k3.reliable or felt.verdict is Verdict.MISMATCH else Verdict.INCONCLUSIVE
        return Distance(verdict, Yardstick.CONSEQUENCE, tolerated=tolerated, **blank)
    metric = all_metrics()[METRIC]
    against = non_inferiority(candidate.tally, reference.tally, metric, floor, replicates=replicates, seed=seed)
    no_farther = against.verdict is Verdict.MATCH
    withheld = no_farther and reference.odd and not (_within(k3, reference.usual) or felt.verdict is Verdict.MATCH)
    return Distance(
        Verdict.INCONCLUSIVE if withheld else against.verdict,
        Yardstick.REFERENCE,
        tolerated=against.allowed or floor,
        against=against,
        withheld=withheld,
        **blank,
    )


def _within(k3: Measurement, usual: UsualDistance | None) -> bool:
    return usual is not None and k3.high is not None and k3.high <= usual.high
