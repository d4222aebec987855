"""What is said of layer 1 of an ablation: the candidate is judged.

The reference shows whether it was so before, the parity arm whether the fixes mend it. A factor is named as the cure
only when setting it alone makes the meaning match.
"""

from collections.abc import Mapping, Sequence

from rlaudit.diagnosis.effect import Effect
from rlaudit.diagnosis.judgement import SEMANTIC_METRIC
from rlaudit.diagnosis.measured import MeasuredArm
from rlaudit.diagnosis.semantic import said_of_layer
from rlaudit.laboratory.studies.arms.plan import BlockPlan, Role
from rlaudit.laboratory.studies.arms.run import FinishedArm
from rlaudit.layers import Judgement, Layer, Verdict, judged_as
from rlaudit.meaning.sibling_words import beside_scores
from rlaudit.statistics.estimate import figure


def say_meaning_of_arms(
    block: BlockPlan,
    measured: Mapping[str, MeasuredArm],
    effects: Sequence[Effect],
    arms: Mapping[str, FinishedArm],
) -> Judgement:
    """Say what was found of one block of an ablation, by its candidate. arms: of the block, measured or not."""
    candidate = measured.get("candidate")
    if candidate is None:
        return _without_candidate(arms.get("candidate"))
    meaning = candidate.meaning
    shown = [measured[name] for name in ("reference", *block.judged) if name in measured]
    evidence = [_line(arm) for arm in shown]
    evidence += [f"{arm.name}: {line}" for arm in shown for line in beside_scores(arm.meaning.kind, arm.siblings)]
    step = ""
    if meaning.verdict is Verdict.MISMATCH:
        evidence += [
            f"{effect.factor}={effect.level} alone: {effect.verdict} ({effect.because})"
            for effect in effects
            if effect.metric == SEMANTIC_METRIC and effect.first is not None
        ]
        cures = _curing_factors(block, measured)
        absent = [f"{arm.arm.factor}={arm.arm.level}" for arm in arms.values() if arm.status == "unsupported"]
        release = candidate.finished.arm.treatment.version
        step = (
            f"set {' or '.join(cures)} (see the parity settings), then audit again"
            if cures
            else f"vLLM {release} does not support {', '.join(absent)}: ablate a later release"
            if absent
            else "no factor of this recipe mends it alone: compare sampling parameters and the trainer's temperature"
        )
    elif meaning.verdict is Verdict.INCONCLUSIVE:
        step = "more tokens: raise samples or max_tokens"
    return said_of_layer(meaning, tuple(evidence), step)


def _without_candidate(candidate: FinishedArm | None) -> Judgement:
    because, step = "the candidate has no figures", ""
    if candidate is not None and candidate.failure is not None:
        because += f" ({candidate.status} at {candidate.failure.boundary}: {candidate.failure.message})"
        step = "mend what stopped the candidate, then give the same command again: arms that ended well are kept"
    return judged_as(Layer.SEMANTIC, Verdict.NOT_TESTED, because, following=step)


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
