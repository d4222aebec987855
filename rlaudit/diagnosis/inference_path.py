"""The sentences about layer 2: the logprobs mean the same; do they come from the same numbers? Nothing parses them.

An ablation names a factor as a cause only if its change was seen to take effect, to exceed the noise of repeats and to
remove at least 30 % of the k2 to explain; a comparison names it by signature only, and a named cause is the one to
ablate first. What is left is "unexplained", never "precision". Weights that are not what updates sent are a cause that
was read from memory and needs no statistics. If they are what was sent, updates that the engine's dtype rounds away
may be a cause (`rounded_updates.py`).
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rlaudit.causes.attribution.attribute import Attribution, NamedCause
from rlaudit.causes.attribution.cause import NotTested
from rlaudit.diagnosis import rounded_updates
from rlaudit.diagnosis.consequence import NOTICEABLE_CLIPPING
from rlaudit.diagnosis.distance import ORDINARY, Distance, Reference, UsualDistance, Yardstick
from rlaudit.diagnosis.effect import Effect, EffectVerdict
from rlaudit.diagnosis.judge_path import SHIFTS, Decided, InferencePath
from rlaudit.diagnosis.judgement import PATH_METRIC
from rlaudit.layers import Judgement, Layer, Verdict, judged_as
from rlaudit.recording.recorded_weights import RecordedWeights
from rlaudit.statistics.estimate import figure
from rlaudit.statistics.measurement.measure import Measurement
from rlaudit.statistics.measurement.metric import Clip
from rlaudit.statistics.measurement.non_inferiority import NonInferiority
from rlaudit.statistics.resample import FEWEST_PROMPTS
from rlaudit.text.counted import counted

# A comparison of logs needs no laboratory.
if TYPE_CHECKING:
    from rlaudit.diagnosis.effects import Floor
    from rlaudit.diagnosis.measured import MeasuredArm
    from rlaudit.diagnosis.remedy import Remedy

NAMES_A_CAUSE = (EffectVerdict.REMOVES, EffectVerdict.REDUCES)
MARGIN_OF_A_RECIPE = "equivalence_margin of the recipe"
MARGIN_OF_A_COMMAND = "--margin"
NOT_AS_SENT = "weights-not-as-sent"
LAYER_1_FIRST = "fix layer 1 (semantic) first"
# What an open semantic layer leaves open.
PROVIDED = "if both sides' logprobs mean the same, "
# At most so many reasons why causes could not be tested are shown; the report's JSON has all.
SHOWN = 4
# At most so many causes are named if they were all left for one reason.
NAMED = 4
# Why a distance that is usual for a dtype is a mismatch.
FEW_TOKENS = "a few tokens make most of the mismatch, while rounding spreads over all tokens"
YOUR_RANGE = "the clip range that you stated is so narrow that rounding alone may be the reason"
WRONG_IF_UNNAMED = "an ablation that changes one setting brings k3 below the limit: then that setting is the cause"
# Of so many prompts without an event, each with a chance of 1 %, one would have shown it in 95 of 100 batches.
ENOUGH = 300
# Prompts: more than a batch of a training holds.
MOST_ASKED = 10_000
ROWS = {Clip.TOKENS: "tokens", Clip.SEQUENCES: "sequences"}
OBJECTIVES = {Clip.TOKENS: "PPO", Clip.SEQUENCES: "GSPO"}


@dataclass(frozen=True)
class _Explained:
    """What accounts for a distance."""

    causes: tuple[str, ...]
    because: str
    falsifier: str
    next: str
    # How to get more tokens.
    more_tokens: str


def say_path_of_arm(
    judged: "tuple[MeasuredArm, Distance] | None",
    effects: Sequence[Effect],
    floor: "Floor",
    remedy: "Callable[[str, str], Remedy]",
) -> Judgement:
    """Judge a block of an ablation, in sentences.

    judged: the arm with clean semantics, and how far it is; None if no arm has clean semantics. remedy: what sets a
    factor to a level.
    """
    if judged is None:
        return judged_as(
            Layer.INFERENCE_PATH,
            Verdict.NOT_TESTED,
            "in no arm do the logprobs mean what the trainer assumes. The two engines are compared above, with what "
            "each one's logprobs mean taken into account",
            following=LAYER_1_FIRST,
        )
    arm, distance = judged
    moved = [effect for effect in effects if effect.metric == PATH_METRIC]
    evidence = (
        *_figures_of(distance, arm.title, MARGIN_OF_A_RECIPE),
        f"noise of repeats: k2 up to {floor[PATH_METRIC].value:.3g}, {floor[PATH_METRIC].because}",
        *(_effect_line(effect) for effect in moved),
    )
    causes = [effect for effect in moved if effect.verdict in NAMES_A_CAUSE]
    judgement = _by_distance(distance, evidence, _by_intervention(causes, remedy))
    is_open = judgement.verdict is Verdict.INCONCLUSIVE
    return replace(judgement, cause=None, causes=(), falsifier="") if is_open else judgement


def say_path(
    path: InferencePath,
    distance: Distance,
    attribution: Attribution,
    semantic: Verdict,
    weights: RecordedWeights | None,
) -> Judgement:
    """Judge a comparison, in sentences. semantic: the verdict of the layer before."""
    named = attribution.named_of(Layer.INFERENCE_PATH)
    evidence = (
        *_figures_of(distance, "", MARGIN_OF_A_COMMAND),
        *(f"{cause.name} (adjusted p {cause.adjusted_p:.1g}): {cause.signature.because}" for cause in named),
        *_untested(attribution),
    )
    judgement = _say(path, distance, attribution, semantic, evidence)
    if judgement.verdict is Verdict.MISMATCH:
        judgement = replace(judgement, fits=attribution.fits or None)
    return _with_weights(judgement, path, weights)


def _say(
    path: InferencePath, distance: Distance, attribution: Attribution, semantic: Verdict, evidence: tuple[str, ...]
) -> Judgement:
    named = attribution.named_of(Layer.INFERENCE_PATH)
    explained = _by_signature(named, attribution)
    provided = "" if semantic.passes else PROVIDED
    match path.decided:
        case Decided.ORDINARY | Decided.USUAL | Decided.NONE_SEEN:
            return _by_rounding(path, distance, provided, evidence)
        case Decided.MEANING_FIRST:
            beneath = (
                f". With the logprobs corrected for this difference, {attribution.because}" if path.corrected else ""
            )
            return judged_as(
                Layer.INFERENCE_PATH,
                Verdict.NOT_TESTED,
                f"the semantic layer must pass first, since what the logprobs mean changes every figure here{beneath}",
                evidence=evidence if path.corrected else (),
                following=LAYER_1_FIRST,
            )
        case Decided.SHIFTED:
            return judged_as(
                Layer.INFERENCE_PATH,
                Verdict.MISMATCH,
                f"{provided}{attribution.because}",
                causes=explained.causes,
                evidence=evidence,
                falsifier=explained.falsifier,
                following=explained.next,
            )
        case Decided.ONE_SHIFT:
            hanging = " and ".join(name for name in attribution.leaning if name in SHIFTS)
            because = (
                f"{hanging} shows in a single sequence, which is too little to decide. "
                f"{_as_sentence(_because(distance))}"
            )
            return judged_as(
                Layer.INFERENCE_PATH, Verdict.INCONCLUSIVE, because, evidence=evidence, following="more sequences"
            )
        case Decided.DISTANCE:
            seen = f". {_as_sentence(attribution.because)}" if named else ""
            judgement = _by_distance(distance, evidence, explained, provided, seen)
            why = _not_rounding(judgement.verdict, distance, attribution)
            return replace(judgement, because=f"{judgement.because}. {_as_sentence(why)}") if why else judgement


def _by_rounding(path: InferencePath, distance: Distance, provided: str, evidence: tuple[str, ...]) -> Judgement:
    """Say that rounding may have made it: next to nothing, of an ordinary size, or of one that some engines show."""
    usual = distance.usual
    assert usual is not None
    moved = _clipped(distance)
    if path.decided is Decided.NONE_SEEN:
        most = 100 * distance.consequence.most
        because = (
            f"a mismatch that moves more than {most:.1f} % {_of_rows(distance)} out of the clip range would show "
            "here, and none shows"
        )
        step, falsifier = _settles(distance, "more tokens"), _falsifier(distance)
    elif path.decided is Decided.ORDINARY:
        because = (
            f"k3 {_with_interval(distance.k3)} nats is what rounding makes in a healthy {usual.dtype} engine (up to "
            f"{ORDINARY:g}), and no cause shows. Rounding of this size moves {moved} with any engine"
        )
        step = "compare with today's engine (--before ROLLOUTS), which shows smaller faults as well"
        falsifier = f"k3 is above {ORDINARY:g} nats with more tokens"
    else:
        because = (
            f"k3 {_with_interval(distance.k3)} nats is more than most healthy {usual.dtype} engines show (up to "
            f"{ORDINARY:g}), but perhaps not more than all of them (up to {usual.high:g}). This mismatch moves "
            f"{moved}. A fault without a pattern would look the same"
        )
        step = "compare with today's engine (--before ROLLOUTS), or set your margin (--margin)"
        falsifier = ""
    return judged_as(
        Layer.INFERENCE_PATH,
        path.verdict,
        f"{provided}{because}",
        evidence=evidence,
        falsifier=falsifier,
        following=step,
    )


def _not_rounding(verdict: Verdict, distance: Distance, attribution: Attribution) -> str:
    """Say why a distance that is usual for a dtype does not pass as rounding; "" if that is not the question."""
    usual, path = distance.usual, Layer.INFERENCE_PATH
    if usual is None or not distance.usual_at_most or verdict is Verdict.MATCH or attribution.named_of(path):
        return ""
    if verdict is Verdict.MISMATCH:
        return YOUR_RANGE if distance.settings.stated else FEW_TOKENS
    if distance.settings.stated or not distance.k3.reliable:
        return ""
    if leaning := attribution.leaning_of(path):
        return f"a few prompts decide whether {' and '.join(leaning)} shows"
    if distance.ordinary:
        return FEW_TOKENS
    return (
        f"the k3 of {_with_interval(distance.k3)} nats may be more than rounding makes (in most engines up to "
        f"{ORDINARY:g}, in none over {usual.high:g})"
    )


def _with_weights(judgement: Judgement, path: InferencePath, weights: RecordedWeights | None) -> Judgement:
    """Return the judgement with what was read of the weights."""
    if weights is not None and weights.faults:
        return _as_sent(judgement, weights.faults)
    rounded = path.rounded
    if rounded is None:
        return judgement
    line = rounded.reason if isinstance(rounded, NotTested) else rounded.because
    if not path.names_rounding:
        return replace(judgement, evidence=(*judgement.evidence, f"not named: {rounded_updates.NAME} ({line})"))
    causes = (*judgement.causes, rounded_updates.NAME)
    return replace(
        judgement,
        cause=" and ".join(causes),
        causes=causes,
        because=f"{judgement.because}; {rounded_updates.NAME}: {line}",
        falsifier=judgement.falsifier if judgement.causes else rounded_updates.FALSIFIER,
        next=judgement.next if judgement.causes else rounded_updates.NEXT,
    )


def _as_sent(judgement: Judgement, faults: Sequence[str]) -> Judgement:
    """Say that weights are not what updates sent: a mismatch has that cause, and nothing matches."""
    sentence = "; ".join(f"the engine's weights {fault}" for fault in faults)
    evidence = (*(f"{NOT_AS_SENT}: read from the engine's memory: {fault}" for fault in faults), *judgement.evidence)
    confirm = "after one update, compare a logprob of the same prompt in the engine with the trainer's own"
    if judgement.verdict is Verdict.MISMATCH:
        causes = (NOT_AS_SENT, *judgement.causes)
        return replace(
            judgement,
            cause=" and ".join(causes),
            causes=causes,
            because=f"{sentence}. {_as_sentence(judgement.because)}",
            evidence=evidence,
            falsifier="a new reading of the engine's weights gives what was sent",
            next=confirm,
        )
    if judgement.verdict.passes:
        because = f"{sentence}, but these tokens do not show it. {_as_sentence(judgement.because)}"
        return replace(judgement, verdict=Verdict.INCONCLUSIVE, because=because, evidence=evidence, next=confirm)
    return replace(judgement, because=f"{judgement.because}. {_as_sentence(sentence)}", evidence=evidence)


def _by_distance(
    distance: Distance, evidence: tuple[str, ...], explained: _Explained, provided: str = "", seen: str = ""
) -> Judgement:
    """Say how far it is. provided: what an open semantic layer leaves open. seen: what a match leaves standing."""
    because, verdict = _because(distance), distance.verdict
    if verdict is Verdict.MATCH:
        return judged_as(
            Layer.INFERENCE_PATH,
            verdict,
            f"{because}{seen}",
            evidence=evidence,
            falsifier=_falsifier(distance),
        )
    mismatch = verdict is Verdict.MISMATCH
    return judged_as(
        Layer.INFERENCE_PATH,
        verdict,
        f"{provided}{because}. {_as_sentence(explained.because)}" if mismatch else f"{provided}{because}",
        causes=explained.causes if mismatch else (),
        evidence=evidence,
        falsifier=explained.falsifier,
        following=explained.next if mismatch else _settles(distance, explained.more_tokens),
    )


def _by_intervention(causes: Sequence[Effect], remedy: "Callable[[str, str], Remedy]") -> _Explained:
    more_tokens = "more tokens: raise samples, prompts or max_tokens"
    if not causes:
        return _Explained(
            (),
            "no factor that took effect changes the mismatch, so the mismatch is unexplained",
            WRONG_IF_UNNAMED,
            "try another factor with --factor NAME, from this list: rlaudit list factors",
            more_tokens,
        )
    named = "; ".join(f"{effect.factor}={effect.level} {effect.verdict} ({effect.because})" for effect in causes)
    left = max(0.0, 1 - max(effect.share or 0.0 for effect in causes))
    return _Explained(
        (causes[0].factor,),
        f"{named}. {100 * left:.0f} % of the mismatch (k2) stays unexplained",
        "k3 does not fall in an arm in which only this factor is set",
        remedy(causes[0].factor, causes[0].level).step,
        more_tokens,
    )


def _by_signature(named: Sequence[NamedCause], attribution: Attribution) -> _Explained:
    # If the whole is too small for signatures, that is the reason.
    because = f"no cause was looked for, since k2 is not above {attribution.margin:.2g} nats^2"
    if attribution.named or attribution.unexplained is not None:
        because = attribution.because
    if not named:
        step = f"run an ablation of the config, since this log shows no cause{_wanted(attribution)}"
        if attribution.tells:
            step = f"to settle which it is: {'; '.join(attribution.tells)}"
        return _Explained((), because, WRONG_IF_UNNAMED, step, "more tokens")
    names = tuple(cause.name for cause in named)
    return _Explained(names, because, named[0].falsifier, named[0].next, "more tokens")


def _wanted(attribution: Attribution) -> str:
    """Name the columns of the log that causes could not be tested without."""
    columns = [untested.column for untested in attribution.not_tested if untested.column is not None]
    listed = ", ".join(dict.fromkeys(columns))
    return f". Or log the columns that the untested causes need: {listed}" if columns else ""


def _untested(attribution: Attribution) -> tuple[str, ...]:
    """List the causes that the data could not tell, grouped by the reason."""
    by_reason: dict[tuple[bool, bool, str], list[str]] = {}
    for untested in attribution.not_tested:
        by_reason.setdefault((untested.left, untested.column is not None, untested.reason), []).append(untested.name)
    # Missing columns come after what the present ones lack: the next step names them, too.
    reasons = sorted(by_reason, key=lambda reason: reason[:2])
    lines = [
        f"not tested: {_which(by_reason[reason], left=reason[0])}. {_as_sentence(reason[2])}" for reason in reasons
    ]
    left = [name for reason in reasons[SHOWN:] for name in by_reason[reason]]
    return (*lines[:SHOWN], *([f"not tested either (reasons in the JSON report): {', '.join(left)}"] if left else []))


def _which(names: Sequence[str], *, left: bool) -> str:
    # The JSON report has the names of all that were left.
    return "all other causes" if left and len(names) > NAMED else ", ".join(names)


def _effect_line(effect: Effect) -> str:
    text = f"{effect.factor}={effect.level}: {effect.verdict}"
    if effect.first is not None:
        text += f"; set alone, it changes k2 by {figure(effect.first.difference, effect.first.low, effect.first.high)}"
    if effect.last is not None:
        text += f"; left out of parity, by {figure(effect.last.difference, effect.last.low, effect.last.high)}"
    if effect.interacts:
        text += ". These two changes disagree, so this factor interacts with another one"
    return text if effect.first is not None else f"{text} ({effect.because})"


def _figures_of(distance: Distance, name: str, margin_from: str) -> tuple[str, ...]:
    """Return figures, the yardstick, the consequence and what is usual.

    name: of the arm that was measured, "" for a comparison. margin_from: the setting that holds the user's margin.
    """
    k3 = distance.k3
    lines = [
        f"{f'{name}: ' if name else ''}k3 {_with_interval(k3)} nats; {counted(k3.tokens, 'token')} in "
        f"{counted(k3.sequences, 'sequence')}"
    ]
    if distance.reference is not None:
        lines.append(_reference(distance.reference))
    if distance.yardstick is Yardstick.MARGIN:
        lines.append(f"your margin: {distance.tolerated:g} nats ({margin_from})")
    if distance.against is not None:
        lines.append(_against(distance.against))
    lines.append(_felt(distance))
    if distance.usual is not None:
        lines.append(_usual(distance.usual, distance.k3))
    return tuple(lines)


def _because(distance: Distance) -> str:
    """Say why the verdict is what it is."""
    return {
        Yardstick.MARGIN: _because_margin,
        Yardstick.REFERENCE: _because_reference,
        Yardstick.CONSEQUENCE: _because_consequence,
    }[distance.yardstick](distance)


def _falsifier(distance: Distance) -> str:
    """Say when a match is wrong."""
    held = {
        Yardstick.MARGIN: f"k3 is above {distance.tolerated:g} nats",
        Yardstick.REFERENCE: f"k3 is above {distance.tolerated:.3g} nats, while the reference's k3 stays below",
        Yardstick.CONSEQUENCE: f"the mismatch moves more than {100 * NOTICEABLE_CLIPPING:.0f} % {_of_rows(distance)} "
        "out of the clip range",
    }[distance.yardstick]
    return f"with more tokens, longer completions or other prompts, {held}"


def _settles(distance: Distance, more_tokens: str) -> str:
    """Say what would settle an inconclusive verdict."""
    if distance.withheld:
        return (
            "look for a fault of the reference (settings, dtype), or name a healthy reference. If this model is always "
            "that far off, set --margin"
        )
    if distance.yardstick is Yardstick.CONSEQUENCE and _far_sequences(distance):
        return "state your objective: --gspo-epsilon LOW HIGH if it clips sequences, --ppo-epsilon LOW HIGH if tokens"
    least = _prompts_needed(distance) or _prompts_to_decide(distance)
    return f"{more_tokens}: {least}" if least else more_tokens


def _far_sequences(distance: Distance) -> bool:
    """Return whether sequences surely leave GSPO's range, and it is not known whether the objective has one."""
    share = distance.consequence.shares.get(Clip.SEQUENCES)
    noticed = share is not None and share.low is not None and share.low > NOTICEABLE_CLIPPING
    return noticed and not distance.settings.stated


def let_pass(distance: Distance | None) -> str:
    """Name the mismatch that this layer lets pass, for the layer after it."""
    if distance is None or distance.yardstick is Yardstick.CONSEQUENCE:
        return "that passes the layers above"
    return "within your margin" if distance.yardstick is Yardstick.MARGIN else "no larger than the reference's"


def _with_interval(measurement: Measurement) -> str:
    return figure(measurement.value, measurement.low, measurement.high)


def _at_most(share: Measurement, bound: float) -> str:
    at_most = f"at most {100 * bound:.2g} %"
    return f"{100 * share.value:.3g} % ({at_most})" if share.value else at_most


def _in_percent(share: Measurement) -> str:
    if share.value is None or share.low is None or share.high is None:
        return _with_interval(share)
    return f"{100 * share.value:.3g} % [{100 * share.low:.3g} %, {100 * share.high:.3g} %]"


def _reference(reference: Reference) -> str:
    line = f"{reference.name}: k3 {_with_interval(reference.k3)} nats"
    if not reference.serves:
        why = (
            "its logprobs mean something else than its trainer assumes"
            if reference.semantic is Verdict.MISMATCH
            else "what its logprobs mean is not settled"
        )
        return f"{line}; {why}, so this reference cannot serve as a yardstick"
    if reference.odd and reference.usual is not None:
        return f"{line}, which is more than is usual for {reference.usual.dtype} (up to {reference.usual.high:.3g})"
    return line


def _against(against: NonInferiority) -> str:
    how = "paired by prompt" if against.paired else "over other prompts"
    ratio = "k3 is " if against.ratio is None else f"k3 is {against.ratio:.3g} times the reference's k3, and "
    limit = f"{against.times:g} x the reference's k3 + {against.floor:.2g} nats"
    used = figure(against.used, against.low, against.high)
    return f"{ratio}{used} times the limit ({how}, {counted(against.clusters, 'prompt')}). The limit is {limit}"


def _felt(distance: Distance) -> str:
    felt, settings = distance.consequence, distance.settings
    ranges = {
        Clip.TOKENS: (settings.ppo_epsilon_low, settings.ppo_epsilon_high),
        Clip.SEQUENCES: (settings.gspo_epsilon_low, settings.gspo_epsilon_high),
    }
    shares = []
    for clip, share in felt.shares.items():
        low, high = ranges[clip]
        bound = felt.at_most[clip]
        tells = math.isfinite(bound) and (share.high is None or bound < share.high)
        # A bound by k2 is the narrower one where few tokens, or none, leave the range.
        moved = _at_most(share, bound) if tells else _in_percent(share)
        shares.append(f"{moved} of {ROWS[clip]} out of {OBJECTIVES[clip]}'s clip range {1 - low:g} to {1 + high:g}")
    return f"the mismatch alone moves {', and '.join(shares)}"


def _usual(usual: UsualDistance, k3: Measurement) -> str:
    line = (
        f"rounding to {usual.dtype} alone usually makes a k3 of {usual.low:.2g} to {usual.high:.2g} nats in dense "
        "models (ten times that with experts or FP8)"
    )
    if k3.low is not None and k3.low > usual.high:
        return f"{line}; this k3 is larger"
    return (
        f"{line}, so a k3 of this size is no evidence of a fault"
        if k3.high is not None and k3.high <= usual.high
        else line
    )


def _clipped(distance: Distance) -> str:
    """Return the largest share that leaves a clip range, with the range."""
    settings = distance.settings
    ranges = {
        Clip.TOKENS: (settings.ppo_epsilon_low, settings.ppo_epsilon_high),
        Clip.SEQUENCES: (settings.gspo_epsilon_low, settings.gspo_epsilon_high),
    }
    clip, share = max(distance.consequence.shares.items(), key=lambda entry: entry[1].value or 0.0)
    low, high = ranges[clip]
    return f"{100 * (share.value or 0.0):.1f} % of {ROWS[clip]} out of the clip range {1 - low:g} to {1 + high:g}"


def _because_margin(distance: Distance) -> str:
    if distance.verdict is Verdict.MATCH:
        return f"the whole interval of k3 is below your margin of {distance.tolerated:g} nats"
    if distance.verdict is Verdict.MISMATCH:
        return f"the whole interval of k3 is above your margin of {distance.tolerated:g} nats"
    return f"the interval of k3 includes your margin of {distance.tolerated:g} nats{_why(distance.k3.reason)}"


def _because_reference(distance: Distance) -> str:
    against = distance.against
    assert against is not None
    used = f"k3 is {figure(against.used, against.low, against.high)} times the limit, which today's engine sets"
    if distance.withheld:
        return f"{used}. But today's engine is farther off than is usual for its dtype, so it may have the same fault"
    if distance.verdict is Verdict.MATCH:
        felt = distance.consequence.verdict is not Verdict.MATCH
        clipped = ". Layer 3 judges how much a mismatch of this size clips" if felt else ""
        return f"{used}{clipped}"
    if distance.verdict is Verdict.MISMATCH:
        return used
    return f"{used}, so it is not decided whether k3 is within the limit{_why(against.reason)}"


def _because_consequence(distance: Distance) -> str:
    felt = distance.consequence
    far = {
        clip: f"{_in_percent(share)} of {ROWS[clip]}"
        for clip, share in felt.shares.items()
        if share.low is not None and share.low > NOTICEABLE_CLIPPING
    }
    over = list(far.values())
    alone = "" if distance.reference is None else " (the reference cannot serve as a yardstick)"
    least = f"{100 * NOTICEABLE_CLIPPING:.0f} % {_of_rows(distance)}"
    if distance.verdict is Verdict.MATCH:
        return f"the mismatch between rollout and trainer moves less than {least} out of the clip range{alone}"
    if distance.verdict is Verdict.MISMATCH and over:
        return f"the mismatch alone pushes {' and '.join(over)} out of the clip range{alone}"
    if _far_sequences(distance):
        pushed = f"the mismatch alone pushes {' and '.join(over)} out of a range that GSPO clips"
        return f"{pushed}, but you did not state your objective{alone}"
    return (
        f"these tokens do not decide whether the mismatch alone pushes {least} out of the clip range"
        f"{_why(distance.k3.reason)}{alone}"
    )


def _of_rows(distance: Distance) -> str:
    """Say of what a share is that leaves a clip range."""
    return f"of {' or '.join(ROWS[clip] for clip in distance.consequence.shares)}"


def _as_sentence(clause: str) -> str:
    """Begin a sentence with a clause; the names of metrics stay as they are spelt."""
    return clause if clause.startswith(("k2 ", "k3 ")) else f"{clause[0].upper()}{clause[1:]}"


def _why(reason: str | None) -> str:
    return f" ({reason})" if reason else ""


def _prompts_needed(distance: Distance) -> str:
    """Return how many prompts without an event would rule NOTICEABLE_CLIPPING out."""
    unseen = [share for share in distance.consequence.shares.values() if share.value is not None and share.value <= 0.0]
    if distance.yardstick is not Yardstick.CONSEQUENCE or len(unseen) < len(distance.consequence.shares):
        return ""
    return f"{ENOUGH} prompts without a clipped one rule out {100 * NOTICEABLE_CLIPPING:.0f} %. Or name a reference"


def _prompts_to_decide(distance: Distance) -> str:
    """Return how many prompts like these would bring the share's interval to one side of NOTICEABLE_CLIPPING.

    An interval's half is one over the root of the number of prompts.
    """
    if distance.yardstick is not Yardstick.CONSEQUENCE:
        return ""
    needed = 0.0
    for clip, share in distance.consequence.shares.items():
        if share.value is None or share.low is None or share.high is None:
            return ""
        high = min(share.high, distance.consequence.at_most[clip])
        if not share.low <= NOTICEABLE_CLIPPING <= high:
            continue
        end = high if share.value < NOTICEABLE_CLIPPING else share.low
        apart = abs(share.value - NOTICEABLE_CLIPPING)
        needed = max(needed, share.clusters * ((end - share.value) / apart) ** 2 if apart else math.inf)
    if not needed:
        return ""
    if needed > MOST_ASKED:
        return f"more than {MOST_ASKED} prompts, so rather compare with today's engine (--before ROLLOUTS)"
    least = max(math.ceil(needed), FEWEST_PROMPTS)
    return f"about {least} prompts like these, or compare with today's engine (--before ROLLOUTS)"
