"""Logprobs reported before temperature and filters, while tokens are sampled after them.

Covered: with the trainer's scores (--score), logprobs that leave out temperature, filters or penalties. With top
logprobs of both sides, logprobs at another temperature. From sampled logprobs alone, logprobs that leave out the
temperature. This puts the mean ratio above 1 (1 + chi^2). Rows that do not belong together do so as well, but only
they move a token farther than its logprob allows. Under this cause the tokens were sampled at the trainer's
temperature. If the tokens were sampled at the temperature of the reported logprobs, the trainer's temperature is wrong
(cause trainer-temperature).
Not covered: T=1 without filters and penalties, where raw and processed are the same numbers.
Source: vLLM 9453 and 42259, TRL 4159, prime-rl 697 (vLLM 0.10.0 left the temperature out of processed logprobs, too).
"""

import math

import numpy as np

from rlaudit.arrays import Floats
from rlaudit.causes.attribution.cause import Cause, NotTested, Outcome, Stage
from rlaudit.causes.attribution.semantic_signatures import (
    RAW_LOGPROBS,
    logged_signature,
    temperature_signature,
)
from rlaudit.layers import Layer
from rlaudit.meaning.least_data import OF_A_MEAN
from rlaudit.meaning.log_statistics import too_high
from rlaudit.meaning.token_evidence import TokenEvidence
from rlaudit.meaning.token_tests import MEAN_RATIO_EFFECT
from rlaudit.tokens.column_range import LARGEST_VOCABULARY

# Nats beyond what a temperature can do, which engines seldom differ by; and of the tokens, so many that it is not what
# sets the sides apart. Raw logprobs: 0.003, beside older weights 0.012; other sequences' rows 0.7 (simulated, 2026-11).
BEYOND, MOST_BEYOND = 0.3, 0.1


def signature(evidence: TokenEvidence) -> Outcome:
    """Return the temperature between the top logprobs of both sides, or the mean ratio."""
    temperature = temperature_signature(evidence, of_report=True)
    if temperature is not None:
        return temperature
    high = too_high(evidence)
    if high is not None and evidence.sampling.temperature != 1.0:
        because = (
            f"at T={evidence.sampling.temperature:g}, mean ratio - 1 is {high.value:+.3g} [{high.low:+.3g}, "
            f"{high.high:+.3g}]; only logprobs without the temperature can raise the ratio above 1"
        )
        surely, leans = high.shows(MEAN_RATIO_EFFECT), high.leans(MEAN_RATIO_EFFECT)
        beyond = beyond_a_temperature(evidence.log_ratio_T, evidence.rollout_logprobs_T, evidence.sampling.temperature)
        if (surely or leans) and beyond > MOST_BEYOND:
            return NotTested(
                f"{100 * beyond:.0f} % of the tokens are farther apart than leaving out the temperature can move a "
                "token"
            )
        if surely or leans:
            return logged_signature(high, "mean ratio - 1", surely, because, leans)
    return NotTested(
        "to test this, log trainer_scores, or log top ids and logprobs of both sides and sample without penalties and "
        "logit bias"
    )


def beyond_a_temperature(log_ratio_T: Floats, raw_logprobs_T: Floats, temperature: float) -> float:
    """Return the share of tokens whose two logprobs are farther apart than raw ones and those at a temperature can be.

    At 1/T = a the log ratio is (a - 1) times the sum of the raw logprob and an entropy (Renyi's, of order a), which is
    between 0 and the logarithm of the vocabulary.
    """
    bend = 1.0 / temperature - 1.0
    ends = bend * raw_logprobs_T, bend * (raw_logprobs_T + math.log(LARGEST_VOCABULARY))
    beyond_T = np.maximum(np.minimum(*ends) - log_ratio_T, log_ratio_T - np.maximum(*ends)) > BEYOND
    return float(beyond_T.mean())


CAUSE = Cause(
    name=RAW_LOGPROBS,
    title="Raw logprobs",
    layer=Layer.SEMANTIC,
    stage=Stage.MEANING,
    least=OF_A_MEAN,
    signature=signature,
    falsifier="on new tokens the reported logprobs include the temperature and the filters",
    next="set logprobs_mode=processed_logprobs (vLLM 0.10.2 and later) and compare again",
    factor="logprobs-mode",
)
