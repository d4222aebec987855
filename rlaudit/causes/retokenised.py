"""The trainer tokenised the text again and got other tokens.

Covered: differing ids where both are known; otherwise agreement that is lost within a sequence and that no single shift
at a resume restores. Unlike with engine noise, the correlation is lost.
Source: rllm 816 and 898; return_token_ids exists for this.
"""

from rlaudit.causes import placed_logprobs, swapped_rows
from rlaudit.causes.attribution.alignment_signature import alignment_signature
from rlaudit.causes.attribution.cause import Cause, NotTested, Outcome, Signature, Stage
from rlaudit.layers import Layer
from rlaudit.meaning.least_data import OF_AGREEMENT
from rlaudit.meaning.token_evidence import TokenEvidence
from rlaudit.tokens.alignment import Misalignment


def signature(evidence: TokenEvidence) -> Outcome:
    """Return the share of sequences in which the two sides hold other tokens."""
    for other in (placed_logprobs, swapped_rows):
        outcome = other.signature(evidence)
        if isinstance(outcome, Signature) and outcome.large:
            return NotTested(f"rows with {other.NAME} look retokenised as well")
    return alignment_signature(evidence, Misalignment.RETOKENISED)


CAUSE = Cause(
    name=Misalignment.RETOKENISED.value,
    title="Retokenised text",
    layer=Layer.SEMANTIC,
    stage=Stage.ALIGNMENT,
    least=OF_AGREEMENT,
    signature=signature,
    falsifier="in the training itself, both sides have the same token ids: then only the log was tokenised again",
    next="pass token ids in and out (return_token_ids) instead of text",
)
