"""What a probed server's logprobs mean, and whether that is what the trainer assumes.

`known` parameters are those that the answers tell of. A rollout's report has those of its sampling parameters that the
server reports, so its meaning is known for any request, and is held against what the trainer computes.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from packaging.version import Version

from rlaudit.causes.attribution.semantic_signatures import FILTERS_NOT_REPLAYED, TRAINER_TEMPERATURE
from rlaudit.diagnosis.semantic import step_of
from rlaudit.layers import Judgement, Layer, Verdict, judged_as, untested
from rlaudit.meaning.candidates import FILTERS, PENALTIES, RAW, Semantics
from rlaudit.probe.course import Probed
from rlaudit.text.enumerated import enumerated
from rlaudit.vllm.milestones import PROCESSED_IS_FINAL

if TYPE_CHECKING:
    from rlaudit.diagnosis.compare_sampling import Meanings

RAW_LOGPROBS, PENALTY = "raw-logprobs", "penalty"
NO_TRAINER = "no trainer was named"
NAME_ONE = "name the trainer: --config run.sh, or --temperature T and --trainer-temperature T"
NOT_MEASURED = "a probe has no logprobs of the trainer"
COMPARE = "log the trainer's logprobs beside the rollouts' and compare them, or run an ablation"


def layers_of(probed: Probed, meanings: "Meanings | None") -> list[Judgement]:
    """Return the judgement of each layer. meanings: the rollouts' request and the trainer, None if none was named."""
    semantic = untested(Layer.SEMANTIC, NO_TRAINER, NAME_ONE) if meanings is None else _semantic(probed, meanings)
    return [semantic, *(untested(layer, NOT_MEASURED, COMPARE) for layer in (Layer.INFERENCE_PATH, Layer.OBJECTIVE))]


def reported_of(probed: Probed, sampling: Semantics) -> Semantics:
    """Return what a report of such a request means: what the server is known to leave out of it is neutral."""
    left_out = [name for name in asked_of(sampling) if probed.parameter(name).in_report is False]
    return replace(sampling, **{name: getattr(RAW, name) for name in left_out})


def asked_of(sampling: Semantics) -> tuple[str, ...]:
    """Return the parameters of a request that are not neutral."""
    return sampling.differences(RAW, tolerance=0.0)


def _semantic(probed: Probed, meanings: "Meanings") -> Judgement:
    sampling, trainer = meanings.sampling, meanings.trainer
    asked = [probed.parameter(name) for name in asked_of(sampling)]
    evidence = tuple(f"{parameter.name}: {parameter.because}" for parameter in asked)
    reported = reported_of(probed, sampling)
    untold = [parameter.name for parameter in asked if parameter.in_report is None]
    mixed = [parameter.name for parameter in asked if parameter.mixed]
    dropped = [parameter.name for parameter in asked if parameter.in_draws is False]
    unsure = [parameter.name for parameter in asked if parameter.in_draws is None]
    apart = [name for name in reported.differences(trainer) if name not in untold]
    hidden = [answer.checked.answer for answer in probed.checks if answer.name == "draws" and answer.checked.found]

    def judged(verdict: Verdict, because: str, **words: Any) -> Judgement:
        return judged_as(Layer.SEMANTIC, verdict, because, evidence=evidence, **words)

    if mixed:
        return judged(
            Verdict.MISMATCH,
            f"some answers have {enumerated(mixed)} in the report and others not: several servers share this address",
            words="replicas that differ",
            falsifier="one server behind the address",
            following="probe each replica at its own address, and start them all alike",
        )
    if dropped:
        return judged(
            Verdict.MISMATCH,
            f"the server does not apply {enumerated(dropped)}: its draws do not follow",
            words=f"{enumerated(dropped)} not applied",
            falsifier="draws that follow it",
            following="look at what stands between the client and vLLM: a router, a gateway, a plug-in",
        )
    if apart:
        cause = _cause(apart, reported, sampling)
        return judged(
            Verdict.MISMATCH,
            f"the report is {reported.describe()}, the trainer computes {trainer.describe()}",
            causes=(cause,),
            falsifier="a report that changes with the parameter as the trainer's logprobs do",
            following=raw_step(probed.who.release) if cause == RAW_LOGPROBS else step_of(cause, sampling),
        )
    if hidden:
        return judged(
            Verdict.MISMATCH,
            f"with every parameter neutral, {hidden[0]}",
            words="hidden sampling",
            falsifier="draws that follow the reported distribution",
            following="look for a plug-in or a logits processor of the server",
        )
    if untold:
        return judged(
            Verdict.INCONCLUSIVE,
            f"whether the report has {enumerated(untold)} is not told",
            following=f"sample without {enumerated(untold)}, or {COMPARE}",
        )
    return judged(
        Verdict.NOTHING_FOUND if unsure else Verdict.MATCH,
        f"the report is what the trainer computes: {reported.describe()}"
        + (f"; whether draws follow {enumerated(unsure)} is not told" if unsure else ""),
        falsifier="a report that leaves out a parameter of the request",
    )


def _cause(apart: Sequence[str], reported: Semantics, sampling: Semantics) -> str:
    """Return the cause by its name in `explain`."""
    if reported != sampling and any(getattr(reported, name) != getattr(sampling, name) for name in apart):
        return RAW_LOGPROBS
    if set(apart) <= set(FILTERS):
        return FILTERS_NOT_REPLAYED
    if set(apart) <= {*PENALTIES, "logit_bias"}:
        return PENALTY
    return TRAINER_TEMPERATURE


def raw_step(release: str | None) -> str:
    """Return what makes a server report processed logprobs. release: of vLLM, None if it is another server."""
    if release is None or Version(release) >= PROCESSED_IS_FINAL:
        start = "start the server with" if release else "if it is vLLM, start it with"
        return f"{start} --logprobs-mode processed_logprobs"
    return f"vLLM {release} cannot report processed logprobs on V1: move to {PROCESSED_IS_FINAL} or later"


def answer_of(probed: Probed) -> list[str]:
    """Return in sentences what the logprobs of a server mean."""
    reports: dict[Any, list[str]] = {True: [], False: [], None: []}
    for parameter in probed.parameters:
        reports[parameter.in_report].append(parameter.name)
    has, lacks = reports[True], reports[False]
    mixed = [parameter.name for parameter in probed.parameters if parameter.mixed]
    untold = [name for name in reports[None] if name not in mixed]
    lines = []
    if lacks and not has:
        lines.append(f"The logprobs are raw: they leave out {_which(lacks, probed)}.")
        lines.append("A trainer that divides its logits by the temperature computes them only at temperature 1.")
    elif has and not lacks:
        lines.append(f"The logprobs are processed: they have {_which(has, probed)}.")
    elif has and lacks:
        lines.append(f"The logprobs have {enumerated(has)}, and leave out {enumerated(lacks)}.")
    dropped = [parameter.name for parameter in probed.parameters if parameter.in_draws is False]
    if dropped:
        lines.append(f"The server does not apply {enumerated(dropped)}: something before the sampler drops it.")
    if mixed:
        lines.append(f"Some answers have {enumerated(mixed)} and others not: several servers share this address.")
    lines += [
        f"{_sentence(answer.checked.answer)}."
        for answer in probed.checks
        if answer.checked.found and answer.name in LEADS
    ]
    if untold:
        lines.append(f"Not told: {enumerated(untold)} (the reasons are below).")
    return lines


def _which(names: Sequence[str], probed: Probed) -> str:
    whole = len(names) == len(probed.parameters)
    return "every sampling parameter" if whole else enumerated(names)


# Checks whose finding changes what a rollout means.
LEADS = ("draws", "left-out")


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}"
