"""Layer 1: do the reported logprobs mean what the trainer assumes?

Three distributions are kept apart: what tokens were sampled from, what the logprobs report, and what the trainer
computes (`meaning/semantics.py`). The candidate is judged; reference and parity arm say whether it was so before, and
whether the fixes mend it. A factor is named as the cure only when setting it alone makes the meaning match.
"""

from collections.abc import Mapping, Sequence

from rlaudit.diagnosis.effects import SEMANTIC_METRIC, FactorEffect
from rlaudit.diagnosis.judgement import Judgement, figure
from rlaudit.diagnosis.measured import MeasuredArm
from rlaudit.laboratory.studies.arms.plan import BlockPlan, Role
from rlaudit.layers import Layer, Verdict


def judge_semantics(
    block: BlockPlan, measured: Mapping[str, MeasuredArm], effects: Sequence[FactorEffect]
) -> Judgement:
    """The semantic layer of one block, by its candidate."""
    candidate = measured.get("candidate")
    if candidate is None:
        return Judgement(Layer.SEMANTIC, Verdict.NOT_TESTED, None, "the candidate has no figures")
    semantics = candidate.semantics
    evidence = [_line(measured[name]) for name in ("reference", *block.judged) if name in measured]
    cures = curing_factors(block, measured)
    if semantics.verdict is Verdict.MISMATCH:
        evidence += [
            f"{effect.factor}={effect.level} alone: {effect.verdict.value} ({effect.because})"
            for effect in effects
            if effect.metric == SEMANTIC_METRIC and effect.first is not None
        ]
    next_step = ""
    if semantics.verdict is Verdict.MISMATCH:
        next_step = (
            f"set {' or '.join(cures)} (see the parity settings), then audit again"
            if cures
            else "no factor of this recipe mends it alone: compare sampling parameters and the trainer's temperature"
        )
    elif semantics.verdict is Verdict.INCONCLUSIVE:
        next_step = "more tokens: raise samples or max_tokens"
    return Judgement(
        layer=Layer.SEMANTIC,
        verdict=semantics.verdict,
        cause=semantics.cause,
        because=semantics.because,
        evidence=tuple(evidence),
        falsifier=semantics.falsifier,
        next=next_step,
    )


def curing_factors(block: BlockPlan, measured: Mapping[str, MeasuredArm]) -> list[str]:
    """`factor=level` of the arms that this one change takes out of the mismatch."""
    return [
        f"{arm.factor}={arm.level}"
        for arm in block.with_role(Role.FIRST)
        if arm.name in measured and measured[arm.name].semantics.verdict is not Verdict.MISMATCH
    ]


def _line(arm: MeasuredArm) -> str:
    ratio, k3 = arm.measurements[SEMANTIC_METRIC], arm.measurements["k3"]
    return (
        f"{arm.name} (vLLM {arm.finished.arm.treatment.version}): {arm.semantics.verdict.value}; mean ratio - 1 "
        f"{figure(ratio.value, ratio.low, ratio.high)}, k3 {figure(k3.value, k3.low, k3.high)}, "
        f"{k3.tokens} tokens in {k3.sequences} sequences"
    )
