"""Whether a replay is the run that was recorded, and how far each arm is from the reference on the recorded tokens.

Every arm reported its logprob of the same recorded tokens (recorded_tokens.py). The reference is the recorded release
with the checkpoint's weights: for tokens that were sampled from the first weights it must return what was recorded, as
far as a prefill and a decode of one dtype agree. If it does not, something decided those logprobs that the replay lacks
(an adapter, other weights, a plug-in), and no arm is judged.
The other arms are compared with the reference on the same tokens: what moves is the engine, not the sample.
"""

from collections.abc import Mapping, Sequence
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
from rlaudit.statistics.measurement.measure import Measurement, measure
from rlaudit.statistics.measurement.metric import ObjectiveSettings
from rlaudit.tokens.pairs import LogprobPairs

Measurements = Mapping[str, Measurement]
NONE_REPORTED = "no recorded token of the first weights was reported again"
PENALTIES = "with a presence or frequency penalty no token can be requested by itself"
# Of a resolved configuration, what names a place or a process and computes nothing.
COMPUTES_NOTHING = frozenset({"default_sampling_params", "max_model_len"})


@dataclass(frozen=True, kw_only=True)
class Replay:
    """A judged replay: the logprobs of recorded tokens, requested again."""

    # Whether the reference returned what was recorded.
    verdict: Verdict
    because: str
    # The reference against the recording; None if no token has both.
    recorded: Measurements | None
    # Each against the reference.
    arms: Mapping[str, Measurements]
    # What the reference resolved otherwise, recorded and replayed.
    differing: Mapping[str, Sequence[Any]]
    # Tokens that an arm did not report, which are in none of its figures.
    not_reported: Mapping[str, int]
    # How many prompts, completions and tokens_of_first_weights were requested again, of how many.
    coverage: Mapping[str, Sequence[int]] | None = None


def judge_replay(run: FinishedRun, block: BlockPlan) -> Replay | None:
    """Judge a block whose prompts are a recording's; None for other prompts, or without a reference that finished."""
    recording = run.setup.prompts.recorded
    arms = {arm.arm.role: arm for arm in run.of_block(block).values() if arm.ok}
    reference = arms.get(Role.REFERENCE)
    if recording is None or reference is None:
        return None
    requests = recording.first(block.settings.prompts_used or len(recording.prompts), block.settings.max_tokens)
    tokens = requests.tokens(MOST_ASKED_AGAIN[run.setup.accelerator.kind])
    completion_T = [(completion.prompt, completion.sample) for completion, _ in tokens]
    coverage = {
        "prompts": [len(requests.prompts), requests.of_prompts],
        "completions": [len(requests.prompts) * block.settings.samples, requests.of_sequences],
        "tokens_of_first_weights": [len(tokens), sum(len(sequence.token_ids) for sequence in recording.completions)],
    }
    measured = partial(
        _measured,
        settings=run.plan.recipe.objective.as_settings(),
        seed=run.plan.recipe.seed,
        prompts=len(recording.prompts),
    )
    reported = {
        arm.arm.name: _floats(arm.result["recorded_logprobs"])
        for arm in run.of_block(block).values()
        if arm.result.get("recorded_logprobs")
    }
    reference_T = reported.pop(reference.arm.name, None)
    if reference_T is None:
        because = f"{NONE_REPORTED}: {PENALTIES}" if counts_what_was_sampled(block.settings.sampling) else NONE_REPORTED
        return Replay(
            verdict=Verdict.NOT_TESTED,
            because=because,
            recorded=None,
            arms={},
            differing={},
            not_reported={},
            coverage=coverage,
        )
    recorded_T = np.array([completion.logprobs[place] for completion, place in tokens])
    recorded = measured(reference_T, recorded_T, completion_T)
    arms_measured = {name: measured(arm_T, reference_T, completion_T) for name, arm_T in reported.items()}
    verdict, because = _verdict(recorded, str(reference.result["resolved"]["dtype"]))
    return Replay(
        verdict=verdict,
        because=because,
        recorded=recorded,
        arms={name: arm for name, arm in arms_measured.items() if arm is not None},
        differing=_differing(arms.get(Role.RECORDED), reference),
        not_reported={
            name: missing
            for name, values_T in {reference.arm.name: reference_T, **reported}.items()
            if (missing := int(np.isnan(values_T).sum()))
        },
        coverage=coverage,
    )


def not_judged(replay: Replay, judgement: Judgement) -> Judgement:
    """Return a layer's judgement without its verdict: it is of another run than the recorded one."""
    return replace(
        judgement,
        verdict=Verdict.INCONCLUSIVE,
        because=f"the replay is not the recorded run: {replay.because}",
        cause=None,
        causes=(),
        next="give the replay what it lacks (the adapter, the weights, what was left out: see what was not seen)",
    )


def _floats(reported: Sequence[float | None]) -> Floats:
    """Return (T,) what an engine reported, NaN for what it did not report."""
    return np.array([np.nan if logprob is None else logprob for logprob in reported], dtype=np.float64)


def _measured(
    values_T: Floats,
    against_T: Floats,
    completion_T: Sequence[tuple[int, int]],
    settings: ObjectiveSettings,
    seed: int,
    prompts: int,
) -> Measurements | None:
    """Return the metrics of one side against the other on the tokens that both have; None if there are none.

    completion_T: the prompt and the sample of each token.
    """
    both_T = np.isfinite(values_T) & np.isfinite(against_T)
    if not both_T.any():
        return None
    numbers: dict[tuple[int, int], int] = {}
    for completion, is_known in zip(completion_T, both_T, strict=True):
        if is_known:
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
    k3 = recorded[METRIC]
    usual = next((distance for distance in USUAL if distance.dtype == dtype), USUAL[-1])
    figure = f"k3 {k3.value:.3g} nats over {k3.tokens} recorded tokens of {k3.sequences} completions"
    if k3.value is not None and k3.value <= usual.high:
        return Verdict.MATCH, f"the reference returns what was recorded ({figure}; {usual.high:g} in {usual.dtype})"
    return (
        Verdict.MISMATCH,
        f"the reference does not return what was recorded ({figure}; usual in {usual.dtype} is at most "
        f"{usual.high:g}): the recorded run had other weights, an adapter or something else that is not here",
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
