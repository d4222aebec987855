"""Layer 3 of a comparison: what a clipping objective would do with the mismatch that is left."""

from rlaudit.diagnosis.clipping import ClippingWords, figures, judge_clipping
from rlaudit.diagnosis.consequence import Measurements
from rlaudit.diagnosis.distance import Distance
from rlaudit.diagnosis.distance_words import let_pass
from rlaudit.diagnosis.judgement import Judgement
from rlaudit.diagnosis.objective_split import ObjectiveSplit


def judge_objective(
    measurements: Measurements,
    split: ObjectiveSplit | None,
    earlier: tuple[Judgement, Judgement],
    distance: Distance,
) -> Judgement:
    """The layer's verdict.

    split: of the evidence, where there is any. distance: what the inference path was judged by.
    """
    above = "more than 1 % of tokens or sequences leave the clip range although both layers before it match"
    words = ClippingWords(
        match="less than 1 % of tokens and sequences leave the clip range: no correction is needed",
        unrefuted="clip fractions above 1 % on another batch",
        more="more sequences",
        cause=f"mismatch {let_pass(distance)} is still clipped",
        because=above if split is None else f"{above}: {split.recommendation.because}",
        next=_next(split),
        refuted="clip fractions that stay where they are with a correction on",
    )
    evidence = (figures(measurements), *_split_lines(split))
    return judge_clipping(measurements, earlier, distance.settings, evidence, words)


def _next(split: ObjectiveSplit | None) -> str:
    chosen = None if split is None else split.recommendation.cost
    if chosen is None:
        return "a clip range wider than the mismatch, or fresher rollouts"
    return f"switch on {chosen.title} and watch the share of tokens it touches ({chosen.touched:.2%} of these)"


def _split_lines(split: ObjectiveSplit | None) -> list[str]:
    if split is None:
        return []
    lines = []
    if split.update_share is not None and split.backend_share is not None:
        lines.append(
            f"of the mean squared log ratio the policy update makes {split.update_share:.0%} and the backend "
            f"{split.backend_share:.0%} (what is missing to 100 % is in their covariance)"
        )
    if split.staleness is not None:
        lines.append(f"staleness: {split.staleness.value:.0%} of the backend's k2 is absent from tokens of lag 0")
    touched = ", ".join(f"{cost.title} {cost.touched:.2%}" for cost in split.corrections)
    if touched:
        lines.append(f"share of tokens that a correction would touch: {touched}")
    return [*lines, *split.not_told]
