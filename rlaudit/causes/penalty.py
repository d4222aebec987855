"""A repetition, presence or frequency penalty, or a logit bias, on one side only.

Covered: with the trainer's scores (--score), penalties and a requested bias are applied to the scores, and the result
has to fit the reported logprobs. From logs alone, the log ratios of tokens that occurred before are shifted to one
side, not scattered.
Not covered: a bias that was not requested, and any bias from logs alone; bad words.
Source: generation_config.json defaults; vLLM 27878 (penalties lost with async scheduling in 0.11.0).
"""

from rlaudit.causes.attribution.cause import LEAST_SHARE, Cause, NotTested, Outcome, Stage
from rlaudit.causes.attribution.semantic_signatures import LEAST_SHIFT, PENALTY, logged_signature
from rlaudit.layers import Layer
from rlaudit.meaning.least_data import OF_A_MEAN
from rlaudit.meaning.log_statistics import seen_shift, too_high
from rlaudit.meaning.token_evidence import TokenEvidence
from rlaudit.meaning.token_tests import MEAN_RATIO_EFFECT

# Of the squares of seen tokens, by the lower end of the shift. A frequency penalty of 0.1 beside noise as large as its
# shift: 0.10 and more; older weights, whose updates move what is repeated too: 0.05 at most (simulated, 2026-11).
SURELY_EXPLAINED = 0.07


def signature(evidence: TokenEvidence) -> Outcome:
    """Return the log ratios of tokens seen before."""
    high = too_high(evidence)
    if high is not None and high.shows(MEAN_RATIO_EFFECT):
        return NotTested("the mean ratio is surely above 1: a penalty that was reported would leave it at 1")
    seen = seen_shift(evidence)
    if seen is None:
        return NotTested("the column token_id is missing, or too few tokens were sampled twice", "token_id")
    because = (
        f"divided by 1 - p, the log ratio of repeated tokens is {abs(seen.shift.value):.3g} nats "
        f"{'higher' if seen.shift.value > 0 else 'lower'} than that of new ones, as with a penalty on one side. This "
        "explains "
        f"{100 * seen.share:.0f} % of the mismatch (k2) at repeated tokens"
    )
    lifted = seen.shift.low > 0 and seen.share >= LEAST_SHARE
    # Squares of a shift: at the lower end of its interval it explains so much less.
    surely = lifted and seen.share * (seen.shift.low / seen.shift.value) ** 2 >= SURELY_EXPLAINED
    named, leans = seen.shift.shows(LEAST_SHIFT), seen.shift.leans(LEAST_SHIFT)
    return logged_signature(seen.shift, "shift of seen tokens, nats", surely and named, because, surely and leans)


CAUSE = Cause(
    name=PENALTY,
    title="Penalty or logit bias on one side",
    layer=Layer.SEMANTIC,
    stage=Stage.MEANING,
    least=OF_A_MEAN,
    signature=signature,
    falsifier="the log ratios stay the same with repetition_penalty=1, other penalties 0 and no logit_bias requested",
    next="request repetition_penalty=1 (or start with generation_config=vllm) and no logit_bias, then sample again",
)
