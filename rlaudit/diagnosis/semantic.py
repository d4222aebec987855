"""Layer 1: do the reported logprobs mean what the trainer assumes?

A verdict is that of a meaning (`rlaudit/meaning`). Of a table it may be a cause's, where a signature names one. Of an
ablation the candidate is judged; reference and parity arm say whether it was so before, and whether the fixes mend it.
A factor is named as the cure only when setting it alone makes the meaning match.
"""

from collections.abc import Mapping, Sequence

from rlaudit.attribution.attribute import Attribution, because_of
from rlaudit.diagnosis.effects import SEMANTIC_METRIC, FactorEffect
from rlaudit.diagnosis.judgement import Judgement
from rlaudit.diagnosis.measured import MeasuredArm
from rlaudit.figure import figure
from rlaudit.laboratory.studies.arms.plan import BlockPlan, Role
from rlaudit.laboratory.studies.arms.run import FinishedArm
from rlaudit.layers import Layer, Verdict
from rlaudit.meaning.meaning import LoggedFigures, Meaning, RolloutFigures
from rlaudit.meaning.sibling_words import beside_scores, evidence_of_siblings
from rlaudit.meaning.words import UNEXPLAINED, evidence_of_logs, ratio_line
from rlaudit.measurement.measure import Measurement

NEXT_OF_SCORES = {
    Verdict.MISMATCH: "give both sides the same sampling parameters and logprobs mode, then compare again",
    Verdict.INCONCLUSIVE: "more tokens",
}


def judge_meaning(meaning: Meaning, attribution: Attribution, ratio: Measurement) -> Judgement:
    """The semantic layer of a comparison. ratio: mean ratio - 1 of all tokens."""
    figures, line = meaning.figures, (ratio_line(ratio),)
    named = [cause for cause in attribution.named if cause.layer is Layer.SEMANTIC]
    names = [cause.name for cause in named]
    logged = isinstance(figures, LoggedFigures)
    if logged and meaning.kind.dishonest:
        # Tokens that the engine's own report does not fit: whatever the trainer says, that comes first.
        more = (f"seen as well, and explained by this: {', '.join(names)}",) if names else ()
        return _judged(meaning, (*line, *more))
    if named:
        return Judgement(
            Layer.SEMANTIC,
            Verdict.MISMATCH,
            because_of(named),
            tuple(names) if logged or meaning.said.cause is None else (meaning.said.cause,),
            line,
            named[0].falsifier,
            named[0].next,
        )
    if isinstance(figures, LoggedFigures):
        return _judged(meaning, evidence_of_logs(figures))
    return _judged(meaning, line, NEXT_OF_SCORES.get(meaning.verdict, ""))


def judge_rollouts(meaning: Meaning) -> Judgement:
    """The semantic layer of rollouts that no trainer has scored."""
    assert isinstance(meaning.figures, RolloutFigures)
    return _judged(meaning, evidence_of_siblings(meaning.figures.siblings))


def judge_meaning_of_arms(
    block: BlockPlan,
    measured: Mapping[str, MeasuredArm],
    effects: Sequence[FactorEffect],
    arms: Mapping[str, FinishedArm],
) -> Judgement:
    """The semantic layer of one block of an ablation, by its candidate. arms: of the block, measured or not."""
    candidate = measured.get("candidate")
    if candidate is None:
        return _without_candidate(arms.get("candidate"))
    meaning = candidate.meaning
    judged = [measured[name] for name in ("reference", *block.judged) if name in measured]
    evidence = [_line(arm) for arm in judged]
    evidence += [f"{arm.name}: {line}" for arm in judged for line in beside_scores(arm.meaning.kind, arm.siblings)]
    step = ""
    if meaning.verdict is Verdict.MISMATCH:
        evidence += [
            f"{effect.factor}={effect.level} alone: {effect.verdict.value} ({effect.because})"
            for effect in effects
            if effect.metric == SEMANTIC_METRIC and effect.first is not None
        ]
        cures = _curing_factors(block, measured)
        step = (
            f"set {' or '.join(cures)} (see the parity settings), then audit again"
            if cures
            else "no factor of this recipe mends it alone: compare sampling parameters and the trainer's temperature"
        )
    elif meaning.verdict is Verdict.INCONCLUSIVE:
        step = "more tokens: raise samples or max_tokens"
    return _judged(meaning, tuple(evidence), step)


def _without_candidate(candidate: FinishedArm | None) -> Judgement:
    because, step = "the candidate has no figures", ""
    if candidate is not None and candidate.failure is not None:
        because += f" ({candidate.status} at {candidate.failure.boundary}: {candidate.failure.message})"
        step = "mend what stopped the candidate, then give the same command again: arms that ended well are kept"
    return Judgement(Layer.SEMANTIC, Verdict.NOT_TESTED, because, next=step)


def _judged(meaning: Meaning, evidence: tuple[str, ...], step: str = "") -> Judgement:
    words, cause = meaning.said, meaning.said.cause or ""
    explained = cause and meaning.kind not in UNEXPLAINED
    return Judgement(
        Layer.SEMANTIC,
        meaning.verdict,
        words.because,
        causes=(cause,) if explained else (),
        evidence=evidence,
        falsifier=words.falsifier,
        next=step or words.next,
        unexplained="" if explained else cause,
    )


def _curing_factors(block: BlockPlan, measured: Mapping[str, MeasuredArm]) -> list[str]:
    """`factor=level` of the arms that this one change takes out of the mismatch."""
    return [
        f"{arm.factor}={arm.level}"
        for arm in block.with_role(Role.FIRST)
        if arm.name in measured and measured[arm.name].meaning.verdict is not Verdict.MISMATCH
    ]


def _line(arm: MeasuredArm) -> str:
    ratio, k3 = arm.measurements[SEMANTIC_METRIC], arm.measurements["k3"]
    return (
        f"{arm.name} (vLLM {arm.finished.arm.treatment.version}): {arm.meaning.verdict.value}; mean ratio - 1 "
        f"{figure(ratio.value, ratio.low, ratio.high)}, k3 {figure(k3.value, k3.low, k3.high)}, "
        f"{k3.tokens} tokens in {k3.sequences} sequences"
    )
