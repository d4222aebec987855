"""What a probed server's logprobs mean, and whether that is what the trainer assumes.

`known` parameters are those that the answers tell of. A rollout's report has those of its sampling parameters that the
server reports, so its meaning is known for any request, and is held against what the trainer computes.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from packaging.version import Version

from rlaudit.causes.attribution.semantic_signatures import RAW_LOGPROBS, causes_of_parameters
from rlaudit.diagnosis.semantic import step_of
from rlaudit.layers import Judgement, Layer, Verdict, judged_as, untested
from rlaudit.meaning.candidates import RAW, Semantics
from rlaudit.probe.course import Probed
from rlaudit.text.enumerated import enumerated
from rlaudit.vllm.milestones import PROCESSED_IS_FINAL

if TYPE_CHECKING:
    from rlaudit.diagnosis.compare_sampling import Meanings

NO_TRAINER = "no trainer was named"
NAME_ONE = "name the trainer: --config run.sh, or --temperature T and --trainer-temperature T"
NOT_MEASURED = "a probe has no logprobs of the trainer"


def layers_of(probed: Probed, meanings: "Meanings | None") -> list[Judgement]:
    """Return the judgement of each layer. meanings: the rollouts' request and the trainer, None if none was named."""
    semantic = untested(Layer.SEMANTIC, NO_TRAINER, NAME_ONE) if meanings is None else _semantic(probed, meanings)
    later = (Layer.INFERENCE_PATH, Layer.OBJECTIVE)
    return [semantic, *(untested(layer, NOT_MEASURED, _command(probed)) for layer in later)]


def _command(probed: Probed) -> str:
    """Return what scores live samples as the trainer would."""
    return f"rlaudit probe {probed.who.address} --score MODEL"


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
    unknown = [parameter.name for parameter in asked if parameter.in_report is None]
    mixed = [parameter.name for parameter in asked if parameter.mixed]
    dropped = [parameter.name for parameter in asked if parameter.in_draws is False]
    unsure = [parameter.name for parameter in asked if parameter.in_draws is None]
    apart = [name for name in reported.differences(trainer) if name not in unknown]
    hidden = [answer.checked.answer for answer in probed.checks if answer.name == "draws" and answer.checked.found]

    def judged(verdict: Verdict, because: str, **words: Any) -> Judgement:
        return judged_as(Layer.SEMANTIC, verdict, because, evidence=evidence, **words)

    if mixed:
        return judged(
            Verdict.MISMATCH,
            f"some answers include {enumerated(mixed)} in their logprobs and others do not: several servers share "
            "this address",
            words="replicas that differ",
            falsifier="one server behind the address",
            following="probe each replica at its own address, and start them all alike",
        )
    if dropped:
        return judged(
            Verdict.MISMATCH,
            f"the server does not apply {enumerated(dropped)}: its draws do not change",
            words=f"{enumerated(dropped)} not applied",
            falsifier="draws that change with the parameter",
            following="look at what stands between the client and vLLM: a router, a gateway, a plug-in",
        )
    if apart:
        is_left_out = any(getattr(reported, name) != getattr(sampling, name) for name in apart)
        causes = (RAW_LOGPROBS,) if is_left_out else tuple(sorted(causes_of_parameters(apart)))
        return judged(
            Verdict.MISMATCH,
            f"the reported logprobs are those of {reported.describe()}, and the trainer computes those of "
            f"{trainer.describe()}",
            causes=causes,
            falsifier="reported logprobs that change with the parameter as the trainer's do",
            following=raw_step(probed.who.release) if is_left_out else step_of(causes[0], sampling),
        )
    if hidden:
        return judged(
            Verdict.MISMATCH,
            f"with every parameter neutral, {hidden[0]}",
            words="hidden sampling",
            falsifier="draws with the frequencies of the reported distribution",
            following="look for a plug-in or a logits processor of the server",
        )
    if unknown:
        return judged(
            Verdict.INCONCLUSIVE,
            f"it is not known whether the reported logprobs include {enumerated(unknown)}",
            following=f"sample without {enumerated(unknown)}, or {_command(probed)}",
        )
    return judged(
        Verdict.NOTHING_FOUND if unsure else Verdict.MATCH,
        f"the reported logprobs are what the trainer computes: those of {reported.describe()}"
        + (f". It is not known whether draws change with {enumerated(unsure)}" if unsure else ""),
        falsifier="reported logprobs that leave out a parameter of the request",
    )


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
    unknown = [name for name in reports[None] if name not in mixed]
    lines = []
    if lacks and not has:
        lines.append(f"The logprobs are raw: they leave out {named(lacks, probed)}.")
        lines.append(
            "Such logprobs fit a trainer that leaves the same out; another trainer only at temperature 1 "
            "without filters."
        )
    elif has and not lacks:
        lines.append(f"The logprobs are processed: they include {named(has, probed)}.")
    elif has and lacks:
        lines.append(f"The logprobs include {enumerated(has)}, and leave out {enumerated(lacks)}.")
    dropped = [parameter.name for parameter in probed.parameters if parameter.in_draws is False]
    if dropped:
        lines.append(f"The server does not apply {enumerated(dropped)}: something before the sampler drops it.")
    if mixed:
        lines.append(f"Some answers include {enumerated(mixed)} and others do not: several servers share this address.")
    lines += [
        f"{_sentence(answer.checked.answer)}."
        for answer in probed.checks
        if answer.checked.found and answer.name in LEADS
    ]
    if unknown:
        lines.append(f"Not known: {enumerated(unknown)}; the reasons are below.")
    return lines


def named(names: Sequence[str], probed: Probed) -> str:
    """Return the names, one word if they are all."""
    return "every sampling parameter" if len(names) == len(probed.parameters) else enumerated(names)


# Checks whose finding changes what a rollout means.
LEADS = ("draws", "left-out")


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}"
