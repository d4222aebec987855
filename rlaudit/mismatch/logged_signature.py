"""Signatures of semantic causes from logs alone (`logged_semantics.py`)."""

from rlaudit.mismatch.cause import Signature
from rlaudit.mismatch.logged_semantics import TEMPERATURE_TOLERANCE, Estimate, temperature_ratio
from rlaudit.mismatch.token_evidence import TokenEvidence


def logged_signature(found: Estimate, what: str, named: bool, because: str) -> Signature:
    """An estimate as a signature. Of k2 no share is stated: without scores it cannot be recomputed."""
    return Signature(found.p_value, found.value, found.low, found.high, what, named, because)


def temperature_signature(evidence: TokenEvidence, dishonest: bool) -> Signature | None:
    """Whether the temperatures of both sides differ, and by whose fault; None without top logprobs of both.

    dishonest: asked for rollouts that report another temperature than they sample at; otherwise for a trainer that
    recomputes at another one than rollouts report.
    """
    found = temperature_ratio(evidence)
    if found is None:
        return None
    reported = evidence.trainer.temperature / found.value if found.value > 0 else float("inf")
    honest = abs(reported / evidence.sampling.temperature - 1) < TEMPERATURE_TOLERANCE
    named = found.convicts(TEMPERATURE_TOLERANCE, null=1.0) and honest != dishonest
    because = (
        f"top logprobs of both sides differ by the factor {found.value:.3f} [{found.low:.3f}, {found.high:.3f}]: "
        f"reported at T={reported:.3g}, sampled at T={evidence.sampling.temperature:g}, trainer at "
        f"T={evidence.trainer.temperature:g}"
    )
    return logged_signature(found, "T of the trainer / T reported", named, because)
