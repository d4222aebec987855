"""Whether a replay is the run that was recorded, and how far each arm is from the reference on the recorded tokens.

Every arm was asked for its logprob of the same recorded tokens (recorded_tokens.py). The reference is the recorded
release with the checkpoint's weights: of tokens that were sampled from the first weights it must return what was
recorded, as far as a prefill and a decode of one dtype agree. If it does not, something decided those logprobs that the
replay lacks (an adapter, other weights, a plug-in), and no arm is judged.
Of the other arms the same tokens are a paired comparison with the reference: what moves is the engine, not the sample.
How far a prefill and a decode of one engine are apart is known from tokens that it sampled and was then asked for
again.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from rlaudit.arrays import Floats
from rlaudit.diagnosis.distance import METRIC, USUAL
from rlaudit.laboratory.studies.arms.plan import BlockPlan, Role
from rlaudit.laboratory.studies.arms.rollout import MOST_ASKED_AGAIN, counts_what_was_sampled
from rlaudit.laboratory.studies.arms.run import FinishedArm, FinishedRun
from rlaudit.layers import Judgement, Verdict
from rlaudit.measurement.measure import Measurement, measure
from rlaudit.measurement.metric import ObjectiveSettings
from rlaudit.tokens.pairs import LogprobPairs

Measurements = Mapping[str, Measurement]
# Of a resolved configuration, what names a place or a process and computes nothing.
NONE_REPORTED = "no recorded token of the first weights was reported again"
PENALTIES = "with a presence or frequency penalty none can be asked for by itself"
COMPUTES_NOTHING = frozenset({"default_sampling_params", "max_model_len"})


@dataclass(frozen=True, kw_only=True)
class Replay:
    """A judged replay: recorded tokens, asked for again.

    verdict: whether the reference returned what was recorded. recorded: the reference against the recording, None
    without a token to tell by. arms: each against the reference. prefill_against_decode: an engine's own tokens as it
    decoded them, against a prefill of the same tokens. differing: what the reference resolved otherwise, recorded and
    replayed. not_reported: tokens that an arm did not report, which are in none of its figures. coverage: how many
    prompts, completions and tokens_of_first_weights were asked again, of how many.
    """

    verdict: Verdict
    because: str
    recorded: Measurements | None
    arms: Mapping[str, Measurements]
    prefill_against_decode: Mapping[str, Measurements] | None = None
    differing: Mapping[str, Sequence[Any]]
    not_reported: Mapping[str, int]
    coverage: Mapping[str, Sequence[int]] | None = None


def judge_replay(run: FinishedRun, block: BlockPlan) -> Replay | None:
    """Judge a block whose prompts are a recording's; None for other prompts, or without a reference that finished."""
    whole = run.setup.prompts.recorded
    arms = {arm.arm.role: arm for arm in run.of_block(block).values() if arm.ok}
    reference = arms.get(Role.REFERENCE)
    if whole is None or reference is None:
        return None
    requests = whole.first(block.settings.prompts_used or len(whole.prompts), block.settings.max_tokens)
    asked = requests.tokens(MOST_ASKED_AGAIN[run.setup.accelerator.kind])
    asked_of = [(one.prompt, one.sample) for one, _ in asked]
    coverage = {
        "prompts": [len(requests.prompts), requests.of_prompts],
        "completions": [len(requests.prompts) * block.settings.samples, requests.of_sequences],
        "tokens_of_first_weights": [len(asked), sum(len(one.token_ids) for one in whole.completions)],
    }
    measured = partial(
        _measured,
        settings=run.plan.recipe.objective.as_settings(),
        seed=run.plan.recipe.seed,
        prompts=len(whole.prompts),
    )
    reported = {
        arm.arm.name: _floats(arm.result["recorded_logprobs"])
        for arm in run.of_block(block).values()
        if arm.result.get("recorded_logprobs")
    }
    own_T = reported.pop(reference.arm.name, None)
    if own_T is None:
        because = f"{NONE_REPORTED}: {PENALTIES}" if counts_what_was_sampled(block.settings.sampling) else NONE_REPORTED
        return Replay(
            verdict=Verdict.NOT_TESTED,
            because=because,
            recorded=None,
            arms={},
            prefill_against_decode={},
            differing={},
            not_reported={},
            coverage=coverage,
        )
    recorded = measured(own_T, np.array([one.logprobs[place] for one, place in asked]), asked_of)
    verdict, because = _verdict(recorded, str(reference.result["resolved"]["dtype"]))
    return Replay(
        verdict=verdict,
        because=because,
        recorded=recorded,
        arms=_there((name, measured(values_T, own_T, asked_of)) for name, values_T in reported.items()),
        prefill_against_decode=_there(
            (arm.arm.name, measured(*_decoded_and_prefilled(arm)))
            for arm in run.of_block(block).values()
            if arm.arm.role in (Role.REFERENCE, Role.CANDIDATE) and arm.result.get("own_logprobs")
        ),
        differing=_differing(arms.get(Role.RECORDED), reference),
        not_reported={
            name: missing
            for name, values_T in {reference.arm.name: own_T, **reported}.items()
            if (missing := int(np.isnan(values_T).sum()))
        },
        coverage=coverage,
    )


def not_judged(replay: Replay, judgement: Judgement) -> Judgement:
    """Return a layer's judgement without its verdict: it is of another run than the recorded one."""
    because = f"the replay is not the recorded run: {replay.because}"
    return replace(
        judgement,
        verdict=Verdict.INCONCLUSIVE,
        because=because,
        cause=None,
        causes=(),
        next="give the replay what it lacks (the adapter, the weights, what was left out: see what was not seen)",
    )


def _floats(reported: Sequence[float | None]) -> Floats:
    """Return (T,) what an engine reported, NaN of what it did not report."""
    return np.array([np.nan if one is None else one for one in reported], dtype=np.float64)


def _decoded_and_prefilled(arm: FinishedArm) -> tuple[Floats, Floats, list[tuple[int, int]]]:
    """Return (T,) and (T,) of an engine's own tokens, and the prompt and sample of each."""
    again = arm.result["own_logprobs"]
    return (
        _floats([one["decoded"] for one in again]),
        _floats([one["prefilled"] for one in again]),
        [(one["prompt"], one["sample"]) for one in again],
    )


def _there(found: Iterable[tuple[str, Measurements | None]]) -> dict[str, Measurements]:
    return {name: measurements for name, measurements in found if measurements is not None}


def _measured(
    values_T: Floats,
    against_T: Floats,
    completion_T: Sequence[tuple[int, int]],
    settings: ObjectiveSettings,
    seed: int,
    prompts: int,
) -> Measurements | None:
    """Return the metrics of one side against the other on the tokens that both have; None without any.

    completion_T: the prompt and the sample that each is of.
    """
    both_T = np.isfinite(values_T) & np.isfinite(against_T)
    if not both_T.any():
        return None
    numbers: dict[tuple[int, int], int] = {}
    for completion, is_there in zip(completion_T, both_T, strict=True):
        if is_there:
            numbers.setdefault(completion, len(numbers))
    sequence_T = np.array([numbers.get(completion, -1) for completion in completion_T])[both_T]
    order = np.argsort(sequence_T, kind="stable")
    pairs = LogprobPairs(
        rollout_logprobs_T=values_T[both_T][order],
        trainer_logprobs_T=against_T[both_T][order],
        sequence_T=sequence_T[order],
        prompt_S=np.array([prompt for prompt, _ in numbers]),
        prompts=prompts,
    )
    return measure(pairs, settings, seed=seed)


def _verdict(recorded: Measurements | None, dtype: str) -> tuple[Verdict, str]:
    """Judge by the value: these are the recorded tokens themselves, and no sample of others."""
    if recorded is None:
        return Verdict.NOT_TESTED, NONE_REPORTED
    found = recorded[METRIC]
    usual = next((one for one in USUAL if one.dtype == dtype), USUAL[-1])
    figure = f"k3 {found.value:.3g} nats over {found.tokens} recorded tokens of {found.sequences} completions"
    if found.value is not None and found.value <= usual.high:
        return Verdict.MATCH, f"the reference returns what was recorded ({figure}; {usual.high:g} in {usual.dtype})"
    return (
        Verdict.MISMATCH,
        f"the reference does not return what was recorded ({figure}, and at most {usual.high:g} is usual in "
        f"{usual.dtype}): other weights, an adapter or something else decided those logprobs that is not here",
    )


def _differing(recorded: FinishedArm | None, reference: FinishedArm) -> dict[str, tuple[object, object]]:
    if recorded is None:
        return {}
    then, now = recorded.result["resolved"], reference.result["resolved"]
    return {
        name: (then[name], now[name])
        for name in sorted(then.keys() & now.keys() - COMPUTES_NOTHING)
        if then[name] is not None and str(then[name]).lower() != str(now[name]).lower()
    }
