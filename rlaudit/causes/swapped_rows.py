"""The rows of the two sides are in different orders, so each stands beside another sequence's.

Covered: whole rows, all or some, if both sides of enough of them are in the log. Another tokenisation or a large
mismatch has no such row: that of another sequence fits, as only an engine and its trainer do.
Not covered: rows that fit no other (`unrelated_rows.py`; or shifted as well), and sequences of fewer than eight tokens.
Source: verl 4232 (a batch that is sorted by length for its ranks, and what is kept beside it in the old order).
"""

from dataclasses import replace

from rlaudit.causes.attribution.alignment_signature import alignment_signature
from rlaudit.causes.attribution.cause import Cause, Outcome, Signature, Stage
from rlaudit.layers import Layer
from rlaudit.meaning.least_data import OF_AGREEMENT
from rlaudit.meaning.token_evidence import TokenEvidence
from rlaudit.tokens.alignment import Misalignment

NAME = Misalignment.SWAPPED.value
# Of the rows that were looked for: with text that was tokenised again some fit the row of a sample that begins alike.
LEAST_SHARE_OF_ROWS = 0.2


def signature(evidence: TokenEvidence) -> Outcome:
    """Return the share of sequences whose rollout logprobs fit the trainer's row of another sequence."""
    outcome = alignment_signature(evidence, Misalignment.SWAPPED)
    if not isinstance(outcome, Signature) or evidence.alignment is None:
        return outcome
    rows = evidence.alignment.rows
    large = outcome.large and rows.fitting >= LEAST_SHARE_OF_ROWS * rows.looked_for
    because = f"{outcome.because}: {rows.fitting} of {rows.looked_for} rows that end apart fit another row of the log"
    return replace(outcome, large=large, because=because if rows.looked_for else outcome.because)


CAUSE = Cause(
    name=NAME,
    title="Swapped rows",
    layer=Layer.SEMANTIC,
    stage=Stage.ALIGNMENT,
    least=OF_AGREEMENT,
    signature=signature,
    falsifier="rows differ as much once both sides are joined by the prompt's and the sample's id",
    next="join both sides by id instead of by place, and compare again; look at what sorts or balances the batch",
)
