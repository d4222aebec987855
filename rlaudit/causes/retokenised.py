"""The trainer tokenised the text again and got other tokens.

Covered: differing ids where both are known; otherwise agreement that is lost within a sequence and that no single
shift at a resume restores. Told from engine noise by the lost correlation.
Source: rllm 816 and 898; return_token_ids exists for this.
"""

from functools import partial

from rlaudit.attribution.alignment_signature import alignment_signature
from rlaudit.attribution.cause import Cause, Stage
from rlaudit.layers import Layer
from rlaudit.meaning.least_data import OF_AGREEMENT
from rlaudit.tokens.alignment import Misalignment

CAUSE = Cause(
    name=Misalignment.RETOKENISED.value,
    title="Re-tokenised text",
    layer=Layer.SEMANTIC,
    stage=Stage.ALIGNMENT,
    least=OF_AGREEMENT,
    signature=partial(alignment_signature, kind=Misalignment.RETOKENISED),
    falsifier="equal token ids on both sides",
    next="pass token ids in and out (return_token_ids) instead of text",
)
