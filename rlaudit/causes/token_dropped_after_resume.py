"""A token was lost on the way: aligned up to a resume, shifted from there on.

Covered: one shift from some token on; with versions per token, at a change of the weights. Without versions, any single
shift by one counts, and the report says so. Another tokenisation shifts at other places, and more than once.
Source: vLLM 42043, 42042 and 42117 (async scheduling, pause with mode=keep, clear_cache=True).
"""

from functools import partial

from rlaudit.causes.attribution.alignment_signature import alignment_signature
from rlaudit.causes.attribution.cause import Cause, Stage
from rlaudit.layers import Layer
from rlaudit.meaning.least_data import OF_AGREEMENT
from rlaudit.tokens.alignment import Misalignment

CAUSE = Cause(
    name=Misalignment.TOKEN_DROPPED.value,
    title="A token lost at a resume",
    layer=Layer.INFERENCE_PATH,
    stage=Stage.ALIGNMENT,
    least=OF_AGREEMENT,
    signature=partial(alignment_signature, kind=Misalignment.TOKEN_DROPPED),
    falsifier="sequences that were never paused are shifted as well",
    next="pause with clear_cache=False or turn async scheduling off, and look at the tokens around a resume",
    factor="async-scheduling",
)
