"""The sentences about layer 1: do the reported logprobs mean what the trainer assumes? Nothing parses them.

The verdict is that of a meaning (`rlaudit/meaning`), or, for a table, of a cause if a signature names one. Of an
ablation the candidate is judged: the reference shows whether it was so before, the parity arm whether the fixes help
it. A factor is named as the cure only if setting it alone makes the meaning match.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from rlaudit.causes import wrong_weights
from rlaudit.causes.attribution.attribute import Attribution, all_causes, because_of
from rlaudit.causes.attribution.cause import Stage
from rlaudit.causes.attribution.semantic_signatures import FILTERS_NOT_REPLAYED, TRAINER_TEMPERATURE, semantic_names
from rlaudit.diagnosis.effect import DUMMY, Effect
from rlaudit.diagnosis.judgement import SEMANTIC_METRIC
from rlaudit.layers import Judgement, Layer, Verdict, judged_as
from rlaudit.meaning.candidates import FILTERS, RAW, Semantics
from rlaudit.meaning.meaning import Kind, LoggedFigures, Meaning, ScoredFigures
from rlaudit.meaning.words import UNEXPLAINED, conclusion_of, evidence_of_logs, ratio_line
from rlaudit.statistics.estimate import figure
from rlaudit.statistics.measurement.measure import Measurement
from rlaudit.text.counted import counted

# A comparison of logs needs no laboratory.
if TYPE_CHECKING:
    from rlaudit.diagnosis.measured import MeasuredArm
    from rlaudit.diagnosis.remedy import Remedy
    from rlaudit.laboratory.studies.arms.plan import Arm, BlockPlan
    from rlaudit.laboratory.studies.arms.run import FinishedArm

# What fits a trainer that is off the sampler along no line.
OFF_TRAINER = (TRAINER_TEMPERATURE, wrong_weights.NAME)
# What turns a filter off in every release: vLLM 0.8.5 refuses a top_k of 0 (sampling_params.py:411).
OFF = {"top_k": "-1", "top_p": "1", "min_p": "0"}
ALONE, CHANGES_NOTHING = "alone", "alone, which changes nothing"
NEXT_OF_SCORES = {
    Verdict.MISMATCH: "give both sides the same sampling parameters and logprobs mode, then compare again",
    Verdict.INCONCLUSIVE: "more tokens",
}


def say_meaning(meaning: Meaning, attribution: Attribution | None, ratio: Measurement | None) -> Judgement:
    """Judge a comparison, in sentences. attribution: of its causes. ratio: mean ratio - 1 of all tokens.

    Both are None if no trainer has scored the tokens.
    """
    figures, line = meaning.figures, () if ratio is None else (ratio_line(ratio),)
    named = () if attribution is None else attribution.named_of(Layer.SEMANTIC)
    names = [cause.name for cause in named]
    logged = isinstance(figures, LoggedFigures)
    # Of tokens that no sampler reported the report says nothing.
    apart = any(all_causes()[name].stage is Stage.ALIGNMENT for name in names)
    if logged and meaning.kind.misreports and ratio is not None and not apart:
        # The engine's report does not fit the tokens: that comes first, no matter what the trainer computes.
        others = [name for name in names if name != conclusion_of(meaning).cause]
        explained = (f"seen as well, and explained by this: {', '.join(others)}",) if others else ()
        return judgement_of(meaning, (*line, *explained))
    if named:
        return judged_as(
            Layer.SEMANTIC,
            Verdict.MISMATCH,
            because_of(named),
            causes=tuple(names),
            words="" if logged or apart else conclusion_of(meaning).cause or "",
            evidence=line,
            falsifier=named[0].falsifier,
            following=step_of(named[0].name, meaning.requested),
        )
    if isinstance(figures, LoggedFigures):
        return judgement_of(meaning, evidence_of_logs(figures))
    return judgement_of(meaning, line, NEXT_OF_SCORES.get(meaning.verdict, ""))


def judgement_of(meaning: Meaning, evidence: tuple[str, ...] = (), step: str = "") -> Judgement:
    """Return a meaning as a judgement. step: the next step, if it is not the meaning's."""
    words = conclusion_of(meaning)
    cause = words.cause or ""
    explained = cause and meaning.kind not in UNEXPLAINED
    names = _names(meaning)
    return judged_as(
        Layer.SEMANTIC,
        meaning.verdict,
        words.because,
        causes=(names or (cause,)) if explained else (),
        words=cause,
        evidence=evidence,
        falsifier=words.falsifier,
        following=step or words.next,
        fits=OFF_TRAINER if meaning.kind is Kind.OFF_TRAINER else (),
    )


def step_of(cause: str, requested: Semantics) -> str:
    """Return what to do about a cause: in vLLM's own words if what was requested of it says which."""
    filters = [name for name in FILTERS if getattr(requested, name) != getattr(RAW, name)]
    if cause == FILTERS_NOT_REPLAYED and filters:
        off = " and ".join(f"{name}={OFF[name]}" for name in filters)
        on = " and ".join(f"{name}={getattr(requested, name):g}" for name in filters)
        return f"sample with {off}, or apply {on} in the trainer as well"
    if cause == TRAINER_TEMPERATURE and requested.temperature != RAW.temperature:
        return f"divide the trainer's logits by {requested.temperature:g} before the log softmax"
    return all_causes()[cause].next


def _names(meaning: Meaning) -> Sequence[str]:
    """Return the causes that a comparison of the same tokens names."""
    figures = meaning.figures
    return semantic_names(meaning, figures).in_order if isinstance(figures, ScoredFigures) else ()


def say_meaning_of_arms(
    block: "BlockPlan",
    measured: "Mapping[str, MeasuredArm]",
    effects: Sequence[Effect],
    arms: "Mapping[str, FinishedArm]",
    cures: "Sequence[Arm]",
    remedy: "Callable[[str, str], Remedy]",
) -> Judgement:
    """Judge a block of an ablation, in sentences, by its candidate.

    arms: of the block, measured or not. cures: those in which one change takes the mismatch away. remedy: what sets a
    factor to a level.
    """
    candidate = measured.get("candidate")
    if candidate is None:
        return _without_candidate(arms.get("candidate"))
    meaning = candidate.meaning
    shown = [measured[name] for name in ("reference", *block.judged) if name in measured]
    evidence = [_line(arm) for arm in shown]
    step = ""
    if meaning.verdict is Verdict.MISMATCH:
        evidence += [
            f"{effect.factor}={effect.level} {ALONE if effect.factor != DUMMY else CHANGES_NOTHING}: "
            f"{effect.verdict} ({effect.because})"
            for effect in effects
            if effect.metric == SEMANTIC_METRIC and effect.first is not None
        ]
        absent = [arm.arm for arm in arms.values() if arm.status == "unsupported"]
        remedies = [remedy(arm.factor, arm.level) for arm in cures or absent if arm.factor and arm.level]
        steps = [cure.tried if cures else cure.step for cure in remedies]
        step = (
            "; or ".join(dict.fromkeys(steps))
            or next((step_of(name, meaning.requested) for name in _names(meaning) if name in all_causes()), "")
            or "no factor of this recipe fixes it alone: compare sampling parameters and the trainer's temperature"
        )
    elif meaning.verdict is Verdict.INCONCLUSIVE:
        step = "more tokens: raise samples or max_tokens"
    return judgement_of(meaning, tuple(evidence), step)


def _without_candidate(candidate: "FinishedArm | None") -> Judgement:
    because, step = "the candidate has no figures", ""
    if candidate is not None and candidate.failure is not None:
        because += f" ({candidate.status}, {candidate.failure.boundary}: {candidate.failure.message})"
        step = "fix what stopped the candidate, then give the same command again: arms that ended well are kept"
    return judged_as(Layer.SEMANTIC, Verdict.NOT_TESTED, because, following=step)


def _line(arm: "MeasuredArm") -> str:
    ratio, k3 = arm.measurements[SEMANTIC_METRIC], arm.measurements["k3"]
    return (
        f"{arm.name} (vLLM {arm.finished.arm.treatment.version}): {arm.meaning.verdict.value}; mean ratio - 1 "
        f"{figure(ratio.value, ratio.low, ratio.high)}, k3 {figure(k3.value, k3.low, k3.high)}, "
        f"{counted(k3.tokens, 'token')} in {counted(k3.sequences, 'sequence')}"
    )
