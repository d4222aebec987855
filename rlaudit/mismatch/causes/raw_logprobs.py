"""Logprobs reported before temperature and filters, while tokens are sampled after them.

Covered: with scores, any report that leaves processing out; with top logprobs of both sides, another temperature.
Told from a trainer at the wrong temperature by the tokens: they follow the trainer's meaning, not the reported one.
Not covered: T=1 without filters and penalties, where raw and processed are the same numbers.
Source: vLLM 9453 and 42259, TRL 4159, prime-rl 697 (the mode's name does not tell: 0.10.0 left the temperature out).
"""

from rlaudit.layers import Layer
from rlaudit.mismatch.cause import Cause, NotTested, Outcome
from rlaudit.mismatch.logged_signature import temperature_signature
from rlaudit.mismatch.semantic_signature import RAW_LOGPROBS, semantic_signature
from rlaudit.mismatch.token_evidence import TokenEvidence


def signature(evidence: TokenEvidence) -> Outcome:
    """The semantic verdict; without scores the temperature between the top logprobs of both sides."""
    if evidence.semantics is not None:
        return semantic_signature(evidence, RAW_LOGPROBS)
    found = temperature_signature(evidence, dishonest=True)
    return found or NotTested("columns trainer_scores, or top ids and logprobs of both sides, are missing")


CAUSE = Cause(
    name=RAW_LOGPROBS,
    title="Raw logprobs",
    layer=Layer.SEMANTIC,
    needs=(),
    signature=signature,
    falsifier="reported logprobs that follow the sampling parameters on new tokens",
    next="set logprobs_mode=processed_logprobs (vLLM 0.10.2 and later) and compare again",
)
