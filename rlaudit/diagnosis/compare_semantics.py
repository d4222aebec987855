"""The semantic layer of a comparison: from the trainer's scores where they are there, from logs alone otherwise.

Logs convict and rarely acquit. Sampled-token logprobs show a bias (mean ratio) and nothing of what the sampler left
out; top logprobs of both sides show a temperature; the trainer's entropy shows whether the tokens are as sharp as the
trainer believes, and with it a filter that is not light. Only with that a match can be said, and only where no test
would convict with some prompts left out (`left_out.py`): no single row turns a mismatch into a match, or back.
"""

import math

import numpy as np
from scipy.special import log_ndtr

from rlaudit.attribution.attribute import Attribution, all_causes
from rlaudit.attribution.least_data import OF_A_BIAS
from rlaudit.attribution.token_evidence import TokenEvidence
from rlaudit.diagnosis.judgement import Judgement, figure
from rlaudit.layers import Layer, Verdict
from rlaudit.meaning.constant_shift import constant_shift
from rlaudit.meaning.honesty import ALPHA, GREEDY_EFFECT, MEAN_RATIO_EFFECT, TEMPERATURE_EFFECT
from rlaudit.meaning.logged_semantics import one_sidedness, temperature_ratio
from rlaudit.meaning.reported_calibration import first_choice_excess
from rlaudit.meaning.semantic_case import FEWEST_SEQUENCES, FEWEST_TOKENS
from rlaudit.meaning.semantic_signature import RAW_LOGPROBS
from rlaudit.meaning.semantics import SemanticEvidence
from rlaudit.meaning.sharpness import Sharpness, sharpness
from rlaudit.measurement.measure import Measurement

CANNOT_TELL = (
    "a filter that tokens were sampled through while raw logprobs were reported: no difference of logprobs shows it",
    "penalties and logit biases that both sides leave out",
)
UNEXPLAINED_BIAS = "unexplained bias"
UNEXPLAINED_SHIFT = "unexplained constant shift"
# A mismatch that was measured and has no cause yet.
UNEXPLAINED = frozenset({UNEXPLAINED_BIAS, UNEXPLAINED_SHIFT})
NOT_WITHOUT = "the temperature of the sampler: that needs trainer_entropy, top logprobs of both sides, or --score MODEL"


def sharpness_of(evidence: TokenEvidence) -> Sharpness | None:
    """Against the trainer's entropies; None where nobody recorded them."""
    entropy_T = evidence.columns.get("trainer_entropy")
    if entropy_T is None or not np.isfinite(entropy_T).all() or evidence.clusters < 2:
        return None
    return sharpness(
        evidence.trainer_logprobs_T, np.asarray(entropy_T, dtype=np.float64), evidence.cluster_T, evidence.clusters
    )


def judge_semantics(
    evidence: TokenEvidence,
    attribution: Attribution,
    semantics: SemanticEvidence | None,
    ratio: Measurement,
) -> Judgement:
    """The layer's verdict. ratio: mean ratio - 1 of all tokens."""
    shifted = [cause for cause in attribution.named if cause.layer is Layer.SEMANTIC]
    if semantics is None and not (evidence.alignment and evidence.alignment.refused):
        dishonest = _dishonest(evidence, ratio, [cause.name for cause in shifted])
        if dishonest is not None:
            return dishonest
    if semantics is not None and not shifted:
        return Judgement(
            Layer.SEMANTIC,
            semantics.verdict,
            semantics.cause,
            semantics.because,
            (_ratio_line(ratio),),
            semantics.falsifier,
            _next(semantics.verdict),
        )
    if shifted:
        return Judgement(
            Layer.SEMANTIC,
            Verdict.MISMATCH,
            semantics.cause if semantics is not None and semantics.cause else " and ".join(c.name for c in shifted),
            "; ".join(f"{cause.name}: {cause.signature.because}" for cause in shifted),
            (_ratio_line(ratio),),
            shifted[0].falsifier,
            shifted[0].next,
        )
    return _from_logs(evidence, attribution, ratio)


def not_told(evidence: TokenEvidence, semantics: SemanticEvidence | None) -> tuple[str, ...]:
    """What these data cannot tell of the meaning of logprobs."""
    if semantics is not None:
        return semantics.not_told
    if sharpness_of(evidence) is None and temperature_ratio(evidence) is None:
        return (NOT_WITHOUT, *CANNOT_TELL)
    return CANNOT_TELL


def _dishonest(evidence: TokenEvidence, ratio: Measurement, signatures: list[str]) -> Judgement | None:
    """Tokens that the engine's own report does not fit; whatever the trainer says, that comes first."""
    found = first_choice_excess(evidence)
    if found is None or not found.convicts(GREEDY_EFFECT):
        return None
    kind = "sharper" if found.value > 0 else "flatter"
    # Which way the request moves the raw distribution.
    asked = evidence.sampling
    sharpens, flattens = asked.temperature < 1.0 or asked.filtered, asked.temperature > 1.0 or asked.penalised
    left_out = sharpens if found.value > 0 else flattens
    other = [f"seen as well, and explained by this: {', '.join(signatures)}"] if signatures else []
    return Judgement(
        Layer.SEMANTIC,
        Verdict.MISMATCH,
        RAW_LOGPROBS if left_out else "dishonest logprobs",
        f"tokens are {kind} than the engine reports: the first choice is sampled {found.value:+.1%} "
        f"[{found.low:+.1%}, {found.high:+.1%}] more often than its reported mass"
        + (f", as with raw logprobs of tokens sampled at {asked.name}" if left_out else ""),
        (_ratio_line(ratio), *other),
        "the same share on tokens whose reported logprobs are processed",
        "set logprobs_mode=processed_logprobs (vLLM 0.10.2 and later) and compare again",
    )


def _from_logs(evidence: TokenEvidence, attribution: Attribution, ratio: Measurement) -> Judgement:
    sharp = sharpness_of(evidence)
    said = _figures(evidence, sharp, ratio)
    if _off(ratio):
        return _bias(evidence, ratio, said)
    if sharp is not None and sharp.convicts(TEMPERATURE_EFFECT, ALPHA):
        kind = "sharper" if sharp.inverse_step > 0 else "flatter"
        return Judgement(
            Layer.SEMANTIC,
            Verdict.MISMATCH,
            "hidden sampling parameters",
            f"tokens are {kind} than the trainer's distribution, as if sampled at "
            f"{1 / max(0.1, 1 + sharp.inverse_step):.2f} times its temperature: another one, or a filter unknown to it",
            said,
            "the same test on tokens sampled with every sampling parameter written out (generation_config=vllm)",
            "score a sample with --score MODEL: its support tests tell temperature and filters apart",
        )
    why = _open(evidence, attribution, sharp, ratio)
    if why is not None:
        return Judgement(
            Layer.SEMANTIC, Verdict.INCONCLUSIVE, None, f"nothing convicts, but {why}", said, next="more tokens"
        )
    if sharp is None:
        return Judgement(
            Layer.SEMANTIC,
            Verdict.INCONCLUSIVE,
            None,
            "nothing convicts, and a mean ratio of 1 acquits nobody: sampled-token logprobs do not tell what the "
            "tokens were drawn from",
            said,
            next="log trainer_entropy, or score a sample with --score MODEL",
        )
    return Judgement(
        Layer.SEMANTIC,
        Verdict.MATCH,
        None,
        f"reported logprobs are honest on average and tokens are as sharp as the trainer believes "
        f"({evidence.tokens} tokens in {len(evidence.cluster_S)} sequences)",
        said,
        "a mean ratio off 1 by over 1 %, or support tests below 1e-6 with --score MODEL",
    )


def _figures(evidence: TokenEvidence, sharp: Sharpness | None, ratio: Measurement) -> tuple[str, ...]:
    lines = [_ratio_line(ratio)]
    if sharp is not None:
        lines.append(
            f"tokens against the trainer's entropy: 1/T of the sampler is {sharp.inverse_step:+.2%} off "
            f"(z {sharp.score.score:.1f})"
        )
    factor = temperature_ratio(evidence)
    if factor is not None:
        lines.append(
            f"top logprobs of both sides: T of the trainer / T reported is {factor.value:.3f} "
            f"[{factor.low:.3f}, {factor.high:.3f}]"
        )
    return tuple(lines)


def _bias(evidence: TokenEvidence, ratio: Measurement, said: tuple[str, ...]) -> Judgement:
    """A mean ratio that is surely off 1; where prompts are too few to convict by it, by nothing else either."""
    shift = constant_shift(evidence)
    if shift is None:
        side = one_sidedness(evidence)
        shape = f"{side:.0%} of the squared difference lies in tokens that the trainer finds less likely"
    else:
        shape = f"the trainer's logprob is the reported one {shift:+.3g} nats at every token, as no sampler makes it"
    if not _surprising(ratio):
        return Judgement(
            Layer.SEMANTIC,
            Verdict.INCONCLUSIVE,
            None,
            f"{_ratio_line(ratio)}: too few to convict by; {shape}",
            said,
            next=f"more tokens: {OF_A_BIAS.prompts} prompts in {OF_A_BIAS.sequences} sequences at least",
        )
    if shift is not None:
        return Judgement(
            Layer.SEMANTIC,
            Verdict.MISMATCH,
            UNEXPLAINED_SHIFT,
            f"{_ratio_line(ratio)}: {shape}",
            said,
            "log ratios that differ from token to token on a new batch",
            "compare the normalisers of both sides for one token: padded vocabulary, base of the logarithm, an offset",
        )
    return Judgement(
        Layer.SEMANTIC,
        Verdict.MISMATCH,
        UNEXPLAINED_BIAS,
        f"{_ratio_line(ratio)}: the reported logprobs are not those of the sampler; {shape}",
        said,
        "a mean ratio of 1 on a new batch",
        "score a sample with --score MODEL: it tells which meaning the reported logprobs follow",
    )


def _open(evidence: TokenEvidence, attribution: Attribution, sharp: Sharpness | None, ratio: Measurement) -> str | None:
    """Why nobody is acquitted although nothing convicts; None where that is all there is to say."""
    causes = all_causes()
    leaning = [name for name in attribution.leaning if causes[name].layer is Layer.SEMANTIC]
    first = first_choice_excess(evidence)
    if first is not None and first.leans(GREEDY_EFFECT):
        leaning.append("the share of first choices")
    if sharp is not None and sharp.leans(TEMPERATURE_EFFECT, ALPHA):
        leaning.append("the sharpness of the tokens")
    if leaning:
        return f"{' and '.join(leaning)} would with some prompts left out: it hangs on a few of them"
    if evidence.tokens < FEWEST_TOKENS or len(evidence.cluster_S) < FEWEST_SEQUENCES:
        return (
            f"{evidence.tokens} tokens in {len(evidence.cluster_S)} sequences are too few to acquit "
            f"(needed: {FEWEST_TOKENS} in {FEWEST_SEQUENCES})"
        )
    return None if _unbiased(ratio) else "the interval of the mean ratio reaches over 1 % either way"


def _z(ratio: Measurement) -> float:
    if ratio.value is None or ratio.low is None or ratio.high is None:
        return 0.0
    if ratio.high <= ratio.low:
        return math.copysign(math.inf, ratio.value)  # all prompts agree; what rounding moves is in the interval
    # Student's reach for few prompts is in the interval already, so a normal reading of it is conservative.
    return ratio.value * 2 * 1.96 / (ratio.high - ratio.low)


def _off(ratio: Measurement) -> bool:
    """Whether all of the interval, which holds the value without any one prompt, is off 1 to one side."""
    low, high = ratio.low or 0.0, ratio.high or 0.0
    return low > MEAN_RATIO_EFFECT or high < -MEAN_RATIO_EFFECT


def _surprising(ratio: Measurement) -> bool:
    ln_p = math.log(2.0) + float(log_ndtr(-abs(_z(ratio))))
    return ln_p < math.log(ALPHA) and ratio.reliable


def _unbiased(ratio: Measurement) -> bool:
    inside = ratio.low is not None and ratio.high is not None
    return inside and max(abs(ratio.low or 0.0), abs(ratio.high or 0.0)) <= MEAN_RATIO_EFFECT


def _ratio_line(ratio: Measurement) -> str:
    return (
        f"mean ratio - 1 is {figure(ratio.value, ratio.low, ratio.high)}, {ratio.tokens} tokens in {ratio.sequences} "
        f"sequences of {ratio.clusters} prompts"
    )


def _next(verdict: Verdict) -> str:
    return {
        Verdict.MISMATCH: "give both sides the same sampling parameters and logprobs mode, then compare again",
        Verdict.INCONCLUSIVE: "more tokens",
    }.get(verdict, "")
