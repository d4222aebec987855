"""The logprobs of one side belong to the neighbouring token, throughout a sequence.

Covered: shifts of one to three tokens (labels sliced [1:] on one side and [:-1] on the other). Only a shift
makes the two sides agree at another lag. Not covered: larger shifts, which look like unrelated tokens.
Source: ms-swift 8196.
"""

from functools import partial

from rlaudit.causes.attribution.alignment_signature import alignment_signature
from rlaudit.causes.attribution.cause import Cause, Stage
from rlaudit.layers import Layer
from rlaudit.meaning.least_data import OF_AGREEMENT
from rlaudit.tokens.alignment import Misalignment

CAUSE = Cause(
    name=Misalignment.OFF_BY_ONE.value,
    title="Off by one",
    layer=Layer.SEMANTIC,
    stage=Stage.ALIGNMENT,
    least=OF_AGREEMENT,
    signature=partial(alignment_signature, kind=Misalignment.OFF_BY_ONE),
    falsifier="both sides still differ after the labels of one side are moved by that lag",
    next="move the labels of one side by this lag, and compare again",
)
