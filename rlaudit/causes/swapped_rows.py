"""The rows of one side stand beside others of the other side: only one side of a batch was put in another order.

Covered: whole rows, all or some, if both sides of each are in the log, near each other. Told from another tokenisation
and from large mismatches by the row of another sequence, which fits as only an engine and its trainer do.
Not covered: rows that fit no other (of another batch, or shifted as well), and sequences of fewer than eight tokens.
Source: verl 4232 (a batch that is sorted by length for its ranks, and what is kept beside it in the old order).
"""

import math

from scipy.special import bdtrc

from rlaudit.attribution.alignment_signature import CERTAIN, proportion_interval
from rlaudit.attribution.cause import Cause, NotTested, Outcome, Signature, Stage
from rlaudit.layers import Layer
from rlaudit.meaning.least_data import OF_AGREEMENT
from rlaudit.meaning.token_evidence import TokenEvidence
from rlaudit.tokens.alignment import Misalignment

NAME = Misalignment.SWAPPED.value
FEWEST_SEQUENCES = 2
# Of the rows that were looked for: with text that was tokenised again some fit the row of a sample that begins alike.
LEAST_SHARE_OF_ROWS = 0.2
SURELY_NOT_CHANCE = 1e-3


def signature(evidence: TokenEvidence) -> Outcome:
    """Return the share of sequences whose rollout logprobs fit the trainer's row of another sequence."""
    if evidence.alignment is None:
        return NotTested("alignment was not looked at")
    rows = evidence.alignment.rows
    low, high = proportion_interval(rows.fitting, rows.sequences)
    by_chance = float(bdtrc(rows.fitting - 1, rows.looked_for, CERTAIN)) if rows.fitting else 1.0
    return Signature(
        p_value=max(by_chance, math.ulp(0.0)),
        effect=rows.fitting / max(rows.sequences, 1),
        low=low,
        high=high,
        effect_of="share of sequences",
        large=rows.fitting >= max(FEWEST_SEQUENCES, LEAST_SHARE_OF_ROWS * rows.looked_for),
        because=f"in {rows.fitting} of {rows.sequences} sequences the rollout's logprobs fit the trainer's row of "
        f"another sequence far better than their own (of {rows.looked_for} that end apart and were looked for)",
        leans=rows.fitting == 1 and by_chance < SURELY_NOT_CHANCE,
    )


CAUSE = Cause(
    name=NAME,
    title="Swapped rows",
    layer=Layer.SEMANTIC,
    stage=Stage.ALIGNMENT,
    least=OF_AGREEMENT,
    signature=signature,
    falsifier="rows that meet once both sides are joined by the prompt's and the sample's id",
    next="join both sides by id instead of by place, and compare again; look at what sorts or balances the batch",
)
