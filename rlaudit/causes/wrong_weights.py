"""The rollout runs other weights than the trainer believes: an unmerged adapter, a partial sync, the base model.

Covered: rollout logprobs that lie between the trainer's and a base model's. The log ratio is -slope (base - trainer),
with slope 1 if the rollout is the base model. Needs base-model logprobs of the same tokens (`base_logprob`).
Not covered: weights that are wrong in another way. They show as consistent errors per token id, which rule out
precision (`body_precision.py`).
Source: TRL 5312 (weights not pushed again after sleep), Xiaomi and prime-rl practice of comparing weights byte by byte.
"""

import numpy as np

from rlaudit.causes.attribution.cause import Cause, NotTested, Outcome
from rlaudit.causes.attribution.part_signature import signature_of
from rlaudit.layers import Layer
from rlaudit.meaning.least_data import OF_A_VARIANCE
from rlaudit.meaning.token_evidence import TokenEvidence

NAME = "wrong-weights"


def signature(evidence: TokenEvidence) -> Outcome:
    """Return the slope of the log ratio on the difference between base model and trainer."""
    excess = evidence.excess
    if excess is None or excess.base is None or excess.slope_on_base is None:
        return NotTested("base model and trainer have the same logprobs")
    correlation = float(np.sign(excess.slope_on_base))
    leaning = signature_of(
        evidence,
        excess.base,
        f"looks as if the engine used the base model's weights ({excess.slope_on_base:.2f} times the differences that "
        "these make)",
    )
    if correlation > 0:
        return leaning
    return NotTested(
        f"the rollout is farther from the base model than the trainer is (slope {excess.slope_on_base:.2f})"
    )


CAUSE = Cause(
    name=NAME,
    title="Wrong weights (partial sync, unmerged adapter)",
    layer=Layer.INFERENCE_PATH,
    needs=("base_logprob",),
    least=OF_A_VARIANCE,
    signature=signature,
    falsifier="checksums of the weights are the same on both sides",
    next="compare weight checksums of trainer and engine, tensor by tensor",
)
