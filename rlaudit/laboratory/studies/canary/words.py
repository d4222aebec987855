"""What is said of an arm's layers, in sentences; nothing reads them back."""

from rlaudit.attribution.semantic_signatures import RAW_LOGPROBS, TRAINER_TEMPERATURE
from rlaudit.causes.stale_prefix_kv import NAME as STALE_PREFIX_KV
from rlaudit.causes.stale_weights import NAME as STALE_WEIGHTS
from rlaudit.causes.wrong_weights import NAME as WRONG_WEIGHTS
from rlaudit.laboratory.studies.canary.judge import CLIP_RATE, JudgedArm, Objective, Path, Semantic
from rlaudit.layers import Judgement, Layer, Verdict, judged_as, untested

CAUSES = {
    Semantic.RAW: RAW_LOGPROBS,
    Semantic.NOT_DIVIDED: TRAINER_TEMPERATURE,
    Path.NOTHING_NEW: STALE_WEIGHTS,
    Path.ONE_LATE: STALE_WEIGHTS,
    Path.STALE_CACHE: STALE_PREFIX_KV,
    Path.IN_PART: WRONG_WEIGHTS,
}
SEMANTIC = {
    Semantic.MEANT: "the logprobs are what the trainer takes them for",
    Semantic.RAW: "the engine returns raw logprobs, from before the temperature; the trainer divides by it",
    Semantic.NOT_DIVIDED: "the engine's logprobs are at the sampling temperature; the trainer does not divide by it",
    Semantic.SHIFTED: "the mean ratio is not 1 before any lag, and neither raw nor processed logprobs explain it",
}
PATHS = {
    Path.CLEAN: "the engine samples by the weights that the log names, before and after updates",
    Path.FROM_START: "engine and trainer are apart at the same weights, before any update: other arithmetic",
    Path.NOTHING_NEW: "the rollouts fit the weights of the start: no update arrives",
    Path.ONE_LATE: "the rollouts fit the weights of the update before",
    Path.STALE_CACHE: "clean before the first update and in the arm that clears its cache: keys and values of older "
    "weights are reused",
    Path.IN_PART: "clean before the first update; afterwards the rollouts fit neither the weights that the log names "
    "nor older ones: a part is not updated, or a cache is stale",
    Path.OLD_KEYS: "new requests are clean; those that an update met go on with keys and values of the weights before",
}
NEXT = {
    Semantic.RAW: "logprobs_mode=processed_logprobs",
    Semantic.NOT_DIVIDED: "divide the trainer's logits by the sampling temperature, or ask for raw logprobs",
    Semantic.SHIFTED: "rlaudit compare on rollouts of the first step",
    Path.FROM_START: "rlaudit ablate v0-to-v1: which setting of the arithmetic it is",
    Path.NOTHING_NEW: "rlaudit ablate weight-update: what each way of loading reaches",
    Path.ONE_LATE: "wait for an update to end before sampling goes on",
    Path.STALE_CACHE: "clear the prefix cache with every update",
    Path.IN_PART: "rlaudit ablate weight-update: which parameters it leaves out; or an arm that clears its cache",
    Path.OLD_KEYS: "clear_cache=True with the pause computes them again; to keep them, as PipelineRL does, is a choice "
    "to correct for",
    Objective.LAG: "a correction (TIS, MIS), or less lag",
}
FALSIFIERS = {
    Layer.SEMANTIC: "the same arm with the other meaning, and this difference still there at the first step",
    Layer.INFERENCE_PATH: "the same arm with this mended, and the difference still there",
    Layer.OBJECTIVE: "the same arm without lag, and the difference still there",
}


def layers_of(arm: JudgedArm) -> list[Judgement]:
    """Return the three layers of an arm, in order."""
    figures = [
        f"k3 of rollout and trainer at the weights that sampled: {arm.start:.2g} at the first step, at most "
        f"{arm.later:.2g} afterwards; the clip range feels {arm.felt:.2g}"
    ] if arm.start is not None and arm.later is not None else []  # fmt: skip
    if arm.semantic is Semantic.UNKNOWN:
        return [untested(layer, "no training of the arm ended") for layer in Layer]
    broken = arm.semantic is not Semantic.MEANT
    semantic = _judged(Layer.SEMANTIC, arm.semantic, SEMANTIC[arm.semantic], broken, [*figures, *_hidden(arm, broken)])
    if broken:
        return [semantic, *(untested(layer, "the semantic layer is open") for layer in list(Layer)[1:])]
    broken = arm.path is not Path.CLEAN
    evidence = [*figures, *_of_flights(arm), *_hidden(arm, broken)]
    path = _judged(Layer.INFERENCE_PATH, arm.path, PATHS[arm.path], broken, evidence)
    if broken:
        return [semantic, path, untested(Layer.OBJECTIVE, "the inference path is open")]
    lagging = arm.objective is Objective.LAG
    because = (
        f"rollouts are {arm.lag:.1f} updates old on average{_at_most(arm)}, as the log says; at the weights that "
        "sampled them nothing is left"
        if lagging
        else "nothing is left to correct"
    )
    return [semantic, path, _judged(Layer.OBJECTIVE, arm.objective, because, lagging, figures)]


def _judged(
    layer: Layer, kind: Semantic | Path | Objective, because: str, broken: bool, evidence: list[str]
) -> Judgement:
    cause = CAUSES.get(kind) if isinstance(kind, Semantic | Path) else None
    return judged_as(
        layer,
        Verdict.MISMATCH if broken else Verdict.MATCH,
        because,
        causes=[cause] if cause else [],
        evidence=evidence,
        falsifier=FALSIFIERS[layer] if broken else "",
        following=NEXT.get(kind, ""),
    )


def _at_most(arm: JudgedArm) -> str:
    return f" and no token more than {arm.max_lag}" if arm.max_lag else ""


def _of_flights(arm: JudgedArm) -> list[str]:
    """Return what became of requests that an update met."""
    if not arm.met:
        return []
    k3 = "no token of theirs came after it" if arm.flight is None else f"k3 {arm.flight:.2g} of their tokens after it"
    return [f"updates met {arm.met} requests in flight: {k3}"]


def _hidden(arm: JudgedArm, broken: bool) -> list[str]:
    """Say what a correction over a broken backend hides: the clip rate shows no mismatch, and the data have it."""
    if not broken or arm.correction is None:
        return []
    clipped = arm.level(CLIP_RATE, end=True)
    shown = "" if clipped is None else f": the clip rate shows {clipped:.2g}"
    return [f"{arm.correction} hides it from the curves{shown}; it mends nothing, and the backend comes first"]
