"""The loss mask does not stand where the policy sampled: it counts tokens of a tool and leaves out sampled ones.

Covered: masks that begin or end a few tokens off around stretches that no sampler reported, as the first look at a log
finds them (`tokens/checks/loss_mask_off_spans.py`).
Not covered: masks of whole turns, and logs that have computed logprobs of the tokens of tools.
Source: ms-swift 8427; verl's agent loops, whose response_mask marks what the policy sampled.
"""

import math

from rlaudit.causes.attribution.cause import Cause, Outcome, Signature, Stage
from rlaudit.layers import Layer
from rlaudit.meaning.least_data import OF_AGREEMENT
from rlaudit.meaning.token_evidence import TokenEvidence


def signature(evidence: TokenEvidence) -> Outcome:
    """Return what the first look found of the mask."""
    if not evidence.mask_off:
        return Signature(1.0, 0.0, 0.0, 0.0, "masks", False, "no loss mask is off what was sampled")
    return Signature(math.ulp(0.0), 1.0, 1.0, 1.0, "masks", True, "; ".join(evidence.mask_off))


CAUSE = Cause(
    name="mask-off-sampled-span",
    title="A loss mask beside what was sampled",
    layer=Layer.SEMANTIC,
    stage=Stage.ALIGNMENT,
    least=OF_AGREEMENT,
    signature=signature,
    falsifier="the tokens at the edges of the mask were sampled",
    next="build the mask from the spans that the engine sampled, token by token, and compare again",
)
