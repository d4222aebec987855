"""Layer 2: the logprobs mean the same; do they come from the same numbers?

Judged on an arm whose semantics are clean: the candidate, or else the parity arm. Figures are of the residual, against
the equivalence margin of the recipe. A factor is named as a cause only when taking it away was seen to engage, to
exceed the noise floor and to remove at least 30 % of the excess k2; whatever is left is "unexplained", never
"precision".
"""

from collections.abc import Mapping, Sequence

from rlaudit.diagnosis.effects import PATH_METRIC, Effect, FactorEffect, Floor
from rlaudit.diagnosis.judgement import Judgement, figure
from rlaudit.diagnosis.measured import MeasuredArm
from rlaudit.experiment.plan import BlockPlan
from rlaudit.layers import Layer, Verdict
from rlaudit.mismatch.contrast import judge
from rlaudit.mismatch.evidence import Measurement, all_metrics, measure

CONVICTED = (Effect.REMOVES, Effect.REDUCES)


def judge_inference_path(
    block: BlockPlan,
    measured: Mapping[str, MeasuredArm],
    effects: Sequence[FactorEffect],
    floor: Floor,
    margin: float,
) -> Judgement:
    """The inference path of one block, on the first of candidate and parity arm whose semantics are clean."""
    arm = next(
        (measured[name] for name in block.judged if name in measured and measured[name].semantically_clean),
        None,
    )
    if arm is None:
        return Judgement(
            Layer.INFERENCE_PATH,
            Verdict.NOT_TESTED,
            None,
            "no arm of this block has clean semantics, and before that its numbers cannot be compared",
            next="mend the semantic layer first",
        )
    k3 = _residual_k3(arm)
    verdict = judge(k3.low, k3.high, margin, reliable=k3.reliable)
    moved = [effect for effect in effects if effect.metric == PATH_METRIC]
    causes = [effect for effect in moved if effect.verdict in CONVICTED]
    explained = max((effect.share or 0.0 for effect in causes), default=0.0)
    evidence = [
        f"{arm.name} (vLLM {arm.finished.arm.treatment.version}, {arm.finished.result['resolved']['dtype']}): k3 "
        f"{figure(k3.value, k3.low, k3.high)} nats against a margin of {margin:g}; {k3.tokens} tokens in "
        f"{k3.sequences} sequences",
        f"noise floor of k2: {floor.value[PATH_METRIC]:.3g} ({floor.because[PATH_METRIC]})",
        *(_line(effect) for effect in moved),
    ]
    if verdict is Verdict.MATCH:
        return Judgement(
            Layer.INFERENCE_PATH,
            verdict,
            None,
            f"k3 of {arm.name} is below {margin:g} nats with its whole interval",
            tuple(evidence),
            falsifier=f"k3 above {margin:g} nats with more tokens, longer completions or other prompts",
        )
    named = "; ".join(f"{effect.factor}={effect.level} {effect.verdict.value} ({effect.because})" for effect in causes)
    left = (
        f"{max(0.0, 1 - explained):.0%} of k2 stays unexplained"
        if causes
        else "no factor that engaged moves it: unexplained residual"
    )
    return Judgement(
        Layer.INFERENCE_PATH,
        verdict,
        causes[0].factor if causes and verdict is Verdict.MISMATCH else None,
        f"{named}; {left}" if named else left,
        tuple(evidence),
        falsifier="an arm with that factor set whose k3 does not fall"
        if causes
        else "a factor whose arm brings k3 below the margin",
        next=_next_step(verdict, causes, k3),
    )


def _residual_k3(arm: MeasuredArm) -> Measurement:
    metrics = all_metrics()
    return measure(arm.residual, metrics=[metrics["k3"]])["k3"]


def _next_step(verdict: Verdict, causes: Sequence[FactorEffect], k3: Measurement) -> str:
    if verdict is Verdict.INCONCLUSIVE:
        why = f" ({k3.reason})" if k3.reason else ""
        return f"more tokens: the interval reaches over the margin{why}; raise samples or max_tokens"
    if causes:
        return f"set {' and '.join(f'{effect.factor}={effect.level}' for effect in causes[:1])} and audit again"
    return "add the factors that were not tried to the recipe (rlaudit list factors)"


def _line(effect: FactorEffect) -> str:
    text = f"{effect.factor}={effect.level}: {effect.verdict.value}"
    if effect.first is not None:
        text += f"; first effect on k2 {figure(effect.first.difference, effect.first.low, effect.first.high)}"
    if effect.last is not None:
        text += f", last {figure(effect.last.difference, effect.last.low, effect.last.high)}"
    if effect.interacts:
        text += ", the two disagree: it interacts with another factor"
    return text if effect.first is not None else f"{text} ({effect.because})"
