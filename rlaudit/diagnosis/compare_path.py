"""The inference path of a comparison: how far the numbers are apart, and which signatures say why.

Logs convict by signature only: a named cause is the one to ablate first, and what no signature accounts for stays
"unexplained", never "precision".
"""

from rlaudit.attribution.attribute import Attribution
from rlaudit.diagnosis import distance_words as words
from rlaudit.diagnosis.distance import Distance
from rlaudit.diagnosis.judgement import Judgement
from rlaudit.layers import Layer, Verdict
from rlaudit.tokens.alignment import Misalignment

SHOWN = 4
MISSING = "column "
SHIFTS = frozenset({Misalignment.TOKEN_DROPPED.value, Misalignment.RETOKENISED.value})


def judge_path(distance: Distance, attribution: Attribution, semantic: Judgement, corrected: bool) -> Judgement:
    """distance: of all tokens. corrected: whether the attribution is of what the right meaning leaves over."""
    named = [cause for cause in attribution.named if cause.layer is Layer.INFERENCE_PATH]
    evidence = (
        *words.evidence(distance, "", "--margin"),
        *(f"{cause.name}: {cause.signature.because}; adjusted p {cause.adjusted_p:.1g}" for cause in named),
        *_untested(attribution),
    )
    if semantic.verdict is Verdict.MISMATCH:
        beneath = f"; under the meaning that fits: {attribution.because}" if corrected else ""
        return Judgement(
            Layer.INFERENCE_PATH,
            Verdict.NOT_TESTED,
            None,
            f"the semantic layer comes first: a difference of meaning is in every figure{beneath}",
            evidence if corrected else (),
            next="mend the semantic layer first",
        )
    shifted = [cause.name for cause in named if cause.name in SHIFTS]
    verdict = Verdict.MISMATCH if shifted else distance.verdict
    hanging = [name for name in attribution.leaning if name in SHIFTS]
    if hanging and verdict is Verdict.MATCH:
        because = f"{' and '.join(hanging)} in one sequence, which decides nothing alone; {words.because(distance)}"
        return Judgement(Layer.INFERENCE_PATH, Verdict.INCONCLUSIVE, None, because, evidence, next="more sequences")
    if verdict is Verdict.MATCH:
        seen = f"; {attribution.because}" if named else ""
        return Judgement(
            Layer.INFERENCE_PATH,
            verdict,
            None,
            f"{words.because(distance)}{seen}",
            evidence,
            words.falsifier(distance),
        )
    provided = "" if semantic.verdict is Verdict.MATCH else "provided that the logprobs mean the same: "
    if verdict is Verdict.INCONCLUSIVE:
        because, step = f"{provided}{words.because(distance)}", words.settles(distance, "more tokens")
    else:
        because = f"{provided}{attribution.because if shifted else f'{words.because(distance)}; {_told(attribution)}'}"
        step = (
            named[0].next
            if named
            else f"rlaudit ablate: no signature in these columns names a cause{_wanted(attribution)}"
        )
    return Judgement(
        Layer.INFERENCE_PATH,
        verdict,
        " and ".join(cause.name for cause in named) or None,
        because,
        evidence,
        named[0].falsifier if named else "a factor whose arm brings the distance within what is let pass",
        step,
    )


def _told(attribution: Attribution) -> str:
    """What signatures say; where the whole is too small for them, that."""
    looked = attribution.named or attribution.unexplained is not None
    return attribution.because if looked else f"causes are not looked for up to a k2 of {attribution.margin:.2g} nats^2"


def _wanted(attribution: Attribution) -> str:
    """Columns of the log that causes could not be tested without."""
    lacking = [one for one in attribution.not_tested if one.reason.startswith(MISSING)]
    columns = dict.fromkeys(one.reason.removeprefix(MISSING).split(" ")[0] for one in lacking)
    return f"; or log {', '.join(columns)}, which {len(lacking)} causes could not be tested without" if columns else ""


def _untested(attribution: Attribution) -> tuple[str, ...]:
    """Causes that the data could not tell, grouped by the reason."""
    by_reason: dict[str, list[str]] = {}
    for one in attribution.not_tested:
        by_reason.setdefault(one.reason, []).append(one.name)
    # What a column more in the log would tell comes first: that is in the reader's hands.
    reasons = sorted(by_reason, key=lambda reason: not reason.startswith(MISSING))
    lines = [f"not tested: {', '.join(by_reason[reason])} ({reason})" for reason in reasons]
    return (*lines[:SHOWN], *([f"not tested: {len(lines) - SHOWN} more reasons"] if len(lines) > SHOWN else []))
