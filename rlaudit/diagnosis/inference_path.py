"""Layer 2: the logprobs mean the same; do they come from the same numbers?

Judged by a distance (`distance.py`) on figures under a clean meaning. An ablation names a factor as a cause only when
taking it away was seen to engage, to exceed the noise floor and to remove at least 30 % of the excess k2; a comparison
convicts by signature only, and a named cause is the one to ablate first. What is left is "unexplained", never
"precision".
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rlaudit.attribution.attribute import Attribution, NamedCause
from rlaudit.diagnosis import words
from rlaudit.diagnosis.distance import Distance
from rlaudit.diagnosis.effect import Effect, EffectVerdict
from rlaudit.diagnosis.judgement import PATH_METRIC
from rlaudit.layers import Judgement, Layer, Verdict, judged_as
from rlaudit.statistics.estimate import figure
from rlaudit.tokens.alignment import Misalignment

# A comparison of logs needs no laboratory.
if TYPE_CHECKING:
    from rlaudit.diagnosis.effects import Floor
    from rlaudit.diagnosis.measured import MeasuredArm

CONVICTED = (EffectVerdict.REMOVES, EffectVerdict.REDUCES)
MARGIN_OF_A_RECIPE = "equivalence_margin of the recipe"
MARGIN_OF_A_COMMAND = "--margin"
SHIFTS = frozenset({Misalignment.TOKEN_DROPPED.value, Misalignment.RETOKENISED.value})
# Reasons why causes could not be tested that a reader is shown at most; the report's JSON has all.
SHOWN = 4
# Causes that are named one by one where all of them were left for one reason.
NAMED = 4
UNREFUTED = "a factor whose arm brings the distance within what is let pass"


@dataclass(frozen=True)
class _Explained:
    """What accounts for a distance. said: of the causes, after the distance. more: how to get more tokens."""

    causes: tuple[str, ...]
    said: str
    falsifier: str
    next: str
    more: str


def judge_path_of_arm(
    judged: "tuple[MeasuredArm, Distance] | None", effects: Sequence[Effect], floor: "Floor"
) -> Judgement:
    """Judge one block of an ablation. judged: the arm with clean semantics, and how far it is; None if none has."""
    if judged is None:
        return judged_as(
            Layer.INFERENCE_PATH,
            Verdict.NOT_TESTED,
            "no arm of this block has clean semantics, and before that its numbers cannot be compared",
            following="mend the semantic layer first",
        )
    arm, distance = judged
    moved = [effect for effect in effects if effect.metric == PATH_METRIC]
    evidence = (
        *words.evidence(distance, arm.title, MARGIN_OF_A_RECIPE),
        f"noise floor of k2: {floor.value[PATH_METRIC]:.3g} ({floor.because[PATH_METRIC]})",
        *(_effect_line(effect) for effect in moved),
    )
    causes = [effect for effect in moved if effect.verdict in CONVICTED]
    found = _by_distance(distance, evidence, _by_intervention(causes))
    return replace(found, cause=None, causes=(), falsifier="") if found.verdict is Verdict.INCONCLUSIVE else found


def judge_path(distance: Distance, attribution: Attribution, semantic: Judgement, corrected: bool) -> Judgement:
    """Judge a comparison. corrected: whether the attribution is of what the right meaning leaves over."""
    named = [cause for cause in attribution.named if cause.layer is Layer.INFERENCE_PATH]
    evidence = (
        *words.evidence(distance, "", MARGIN_OF_A_COMMAND),
        *(f"{cause.name}: {cause.signature.because}; adjusted p {cause.adjusted_p:.1g}" for cause in named),
        *_untested(attribution),
    )
    if semantic.verdict is Verdict.MISMATCH:
        beneath = f"; under the meaning that fits: {attribution.because}" if corrected else ""
        return judged_as(
            Layer.INFERENCE_PATH,
            Verdict.NOT_TESTED,
            f"the semantic layer comes first: a difference of meaning is in every figure{beneath}",
            evidence=evidence if corrected else (),
            following="mend the semantic layer first",
        )
    provided = "" if semantic.verdict is Verdict.MATCH else "provided that the logprobs mean the same: "
    explained = _by_signature(named, attribution)
    if any(cause.name in SHIFTS for cause in named):
        because = f"{provided}{attribution.because}"
        return judged_as(
            Layer.INFERENCE_PATH,
            Verdict.MISMATCH,
            because,
            causes=explained.causes,
            evidence=evidence,
            falsifier=explained.falsifier,
            following=explained.next,
        )
    hanging = [name for name in attribution.leaning if name in SHIFTS]
    if hanging and distance.verdict is Verdict.MATCH:
        because = f"{' and '.join(hanging)} in one sequence, which decides nothing alone; {words.because(distance)}"
        return judged_as(
            Layer.INFERENCE_PATH, Verdict.INCONCLUSIVE, because, evidence=evidence, following="more sequences"
        )
    return _by_distance(distance, evidence, explained, provided, f"; {attribution.because}" if named else "")


def _by_distance(
    distance: Distance, evidence: tuple[str, ...], explained: _Explained, provided: str = "", seen: str = ""
) -> Judgement:
    """Judge by a distance. provided: what an open semantic layer leaves open. seen: what a match does not take back."""
    because, verdict = words.because(distance), distance.verdict
    if verdict is Verdict.MATCH:
        return judged_as(
            Layer.INFERENCE_PATH,
            verdict,
            f"{because}{seen}",
            evidence=evidence,
            falsifier=words.falsifier(distance),
        )
    mismatch = verdict is Verdict.MISMATCH
    return judged_as(
        Layer.INFERENCE_PATH,
        verdict,
        f"{provided}{because}; {explained.said}" if mismatch else f"{provided}{because}",
        causes=explained.causes,
        evidence=evidence,
        falsifier=explained.falsifier,
        following=explained.next if mismatch else words.settles(distance, explained.more),
    )


def _by_intervention(causes: Sequence[Effect]) -> _Explained:
    more = "more tokens: raise samples, prompts or max_tokens"
    if not causes:
        return _Explained(
            (),
            "no factor that engaged moves it: unexplained residual",
            UNREFUTED,
            "add the factors that were not tried to the recipe (rlaudit list factors)",
            more,
        )
    named = "; ".join(f"{effect.factor}={effect.level} {effect.verdict} ({effect.because})" for effect in causes)
    left = max(0.0, 1 - max(effect.share or 0.0 for effect in causes))
    return _Explained(
        (causes[0].factor,),
        f"{named}; {left:.0%} of the excess k2 stays unexplained",
        "an arm with that factor set whose k3 does not fall",
        f"set {causes[0].factor}={causes[0].level} and audit again",
        more,
    )


def _by_signature(named: Sequence[NamedCause], attribution: Attribution) -> _Explained:
    # Where the whole is too small for signatures, that is what there is to say.
    looked = attribution.named or attribution.unexplained is not None
    told = attribution.because if looked else f"causes are not looked for up to a k2 of {attribution.margin:.2g} nats^2"
    if not named:
        step = f"rlaudit ablate: no signature in these columns names a cause{_wanted(attribution)}"
        return _Explained((), told, UNREFUTED, step, "more tokens")
    names = tuple(cause.name for cause in named)
    return _Explained(names, told, named[0].falsifier, named[0].next, "more tokens")


def _wanted(attribution: Attribution) -> str:
    """Columns of the log that causes could not be tested without."""
    lacking = [one.column for one in attribution.not_tested if one.column is not None]
    columns = ", ".join(dict.fromkeys(lacking))
    return f"; or log {columns}, which {len(lacking)} causes could not be tested without" if lacking else ""


def _untested(attribution: Attribution) -> tuple[str, ...]:
    """List the causes that the data could not tell, grouped by the reason."""
    by_reason: dict[tuple[bool, bool, str], list[str]] = {}
    for one in attribution.not_tested:
        by_reason.setdefault((one.column is None, one.left, one.reason), []).append(one.name)
    # What a column more in the log would tell comes first: that is in the reader's hands.
    reasons = sorted(by_reason, key=lambda reason: reason[:2])
    lines = [f"not tested: {_which(by_reason[one], left=one[1])} ({one[2]})" for one in reasons]
    return (*lines[:SHOWN], *([f"not tested: {len(lines) - SHOWN} more reasons"] if len(lines) > SHOWN else []))


def _which(names: Sequence[str], *, left: bool) -> str:
    # The JSON report has the names of all that were left.
    return "all other causes" if left and len(names) > NAMED else ", ".join(names)


def _effect_line(effect: Effect) -> str:
    text = f"{effect.factor}={effect.level}: {effect.verdict}"
    if effect.first is not None:
        text += f"; first effect on k2 {figure(effect.first.difference, effect.first.low, effect.first.high)}"
    if effect.last is not None:
        text += f", last {figure(effect.last.difference, effect.last.low, effect.last.high)}"
    if effect.interacts:
        text += ", the two disagree: it interacts with another factor"
    return text if effect.first is not None else f"{text} ({effect.because})"
