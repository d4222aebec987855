"""The trainer recomputes logprobs at another temperature than the rollouts were sampled and reported at.

Covered: with the trainer's scores (--score), any temperature. With top logprobs of both sides, the requested
temperature only. The mean ratio stays 1, so it does not show this cause. The temperature is fitted before stale
weights.
Source: verl 4252, prime-rl 697, ms-swift 8427.
"""

from rlaudit.causes.attribution.cause import Cause, NotTested, Outcome, Stage
from rlaudit.causes.attribution.semantic_signatures import TRAINER_TEMPERATURE, temperature_signature
from rlaudit.layers import Layer
from rlaudit.meaning.least_data import OF_A_MEAN
from rlaudit.meaning.token_evidence import TokenEvidence


def signature(evidence: TokenEvidence) -> Outcome:
    """Return the temperature between the top logprobs of both sides."""
    temperature = temperature_signature(evidence, of_report=False)
    return temperature or NotTested(
        "to test this, log trainer_scores, or log top ids and logprobs of both sides and sample without penalties and "
        "logit bias"
    )


CAUSE = Cause(
    name=TRAINER_TEMPERATURE,
    title="The trainer's temperature",
    layer=Layer.SEMANTIC,
    stage=Stage.MEANING,
    least=OF_A_MEAN,
    signature=signature,
    falsifier="the difference stays after the trainer's logits are divided by the sampling temperature",
    next="divide the trainer's logits by the sampling temperature before the log softmax",
)
