"""A/A: whether an arm and its repeat report the same bytes for the same tokens.

Both get the same requests. They may sample other tokens; from the first of those on nothing is compared.
The share is that of the metric `bitwise`, between two equal engines: 0 if they compute the same twice, however far both
are from the trainer.
"""

from collections.abc import Iterator, Mapping

import numpy as np

from rlaudit.laboratory.studies.arms.plan import BlockPlan, Role
from rlaudit.laboratory.studies.arms.rollout import SampledSequence
from rlaudit.laboratory.studies.arms.run import FinishedRun
from rlaudit.statistics.measurement.measure import Measurement, all_metrics, measure
from rlaudit.tokens.pairs import LogprobPairs

METRIC = "bitwise"
REPEATS = (Role.CANDIDATE_AGAIN, Role.PARITY_AGAIN)


def bytes_of_repeats(run: FinishedRun, block: BlockPlan) -> Mapping[str, Measurement]:
    """Return the share of tokens whose bytes differ, for each repeat that ran, by its name."""
    arms = run.of_block(block)
    shares = {}
    for arm in block.arms:
        again, first = arms.get(arm.name), arms.get(arm.against or "")
        if arm.role in REPEATS and again is not None and first is not None and again.ok and first.ok:
            pairs = _pairs(first.sequences, again.sequences, len(run.prompt_token_ids))
            if pairs is not None:
                shares[arm.name] = measure(pairs, metrics=[all_metrics()[METRIC]], seed=run.plan.recipe.seed)[METRIC]
    return shares


def _pairs(first: tuple[SampledSequence, ...], again: tuple[SampledSequence, ...], prompts: int) -> LogprobPairs | None:
    """Return the logprobs of the tokens that both sampled, up to the first other one; None if there is none."""
    others = {(sequence.prompt, sequence.sample, sequence.round): sequence for sequence in again}
    shared = [
        (sequence, other, alike)
        for sequence in first
        if (other := others.get((sequence.prompt, sequence.sample, sequence.round))) is not None
        and (alike := sum(1 for _ in _alike(sequence.token_ids, other.token_ids)))
    ]
    if not shared:
        return None
    return LogprobPairs(
        rollout_logprobs_T=np.concatenate([sequence.logprobs[:alike] for sequence, _, alike in shared]),
        trainer_logprobs_T=np.concatenate([other.logprobs[:alike] for _, other, alike in shared]),
        sequence_T=np.repeat(np.arange(len(shared)), [alike for *_, alike in shared]),
        prompt_S=np.array([sequence.prompt for sequence, *_ in shared]),
        prompts=prompts,
    )


def _alike(first: tuple[int, ...], second: tuple[int, ...]) -> Iterator[int]:
    """Yield the tokens that both begin with."""
    for token, other in zip(first, second, strict=False):
        if token != other:
            return
        yield token
