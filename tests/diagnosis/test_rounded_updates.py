"""Updates that rounding hides are named where the mismatch follows them, and chance alone names them of nothing."""

import numpy as np
import pytest

from rlaudit.causes.attribution.attribute import ALPHA
from rlaudit.causes.attribution.cause import NotTested
from rlaudit.diagnosis.rounded_updates import updates_rounded_away
from rlaudit.meaning.token_evidence import TokenEvidence
from rlaudit.recording.recorded_weights import RecordedWeights, WeightsOfVersion

# As SmolLM2 was held in bfloat16 by vLLM 0.8.5 in eight steps of TRL 0.23.1 at a learning rate of 1e-5 (2026-11-24).
APART = np.array([0.0, 7.09e-5, 1.02e-4, 1.2e-4, 1.33e-4, 1.42e-4, 1.48e-4, 1.51e-4])
SEQUENCES, LENGTH, SIBLINGS = 32, 24, 4


def is_named(seed: int, growth: float, sharpens: bool = False, trainer: str | None = "torch.float32") -> bool:
    """Whether it is, of eight versions. growth: of the squared log ratios, from the first version to the last.

    sharpens: whether the policy becomes surer of its tokens, or less.
    """
    rng = np.random.default_rng(seed)
    version_T = np.repeat(np.arange(len(APART)), SEQUENCES * LENGTH)
    tokens = len(version_T)
    sequence_T = np.arange(tokens) // LENGTH
    probability_T = np.clip(rng.beta(0.7, 0.5, tokens), 1e-4, 0.9999)
    if sharpens:
        probability_T **= 1.2 - 0.1 * version_T
    of_prompt = np.exp(0.3 * rng.standard_normal(sequence_T[-1] // SIBLINGS + 1))[sequence_T // SIBLINGS]
    size_T = 0.25 * of_prompt * np.sqrt(1 + growth * np.square(APART / APART[-1])[version_T])
    log_ratio_T = size_T * (1 - probability_T) * rng.standard_normal(tokens)
    evidence = TokenEvidence(
        log_ratio_T=log_ratio_T,
        rollout_logprobs_T=np.log(probability_T),
        trainer_logprobs_T=np.minimum(np.log(probability_T) + log_ratio_T, 0.0),
        token_id_T=np.zeros(tokens, dtype=np.int64),
        position_T=np.arange(tokens) % LENGTH,
        sequence_T=sequence_T,
        cluster_S=np.arange(sequence_T[-1] + 1) // SIBLINGS,
        columns={"rollout_version": version_T + 1.0},
        tops={},
    )
    versions = tuple(WeightsOfVersion(place + 1, 100, 99, apart) for place, apart in enumerate(APART.tolist()))
    weights = RecordedWeights((), frozenset({"torch.bfloat16"}), frozenset({trainer}), versions)
    found = updates_rounded_away(weights, evidence, seed)
    return not isinstance(found, NotTested) and found.large and found.p_value < ALPHA


@pytest.mark.parametrize("sharpens", [False, True])
def test_a_mismatch_that_does_not_grow_is_never_theirs(sharpens: bool) -> None:
    assert not any(is_named(seed, growth=0.0, sharpens=sharpens) for seed in range(15))


def test_one_that_grows_with_them_is() -> None:
    assert sum(is_named(seed, growth=3.0) for seed in range(15)) >= 12


@pytest.mark.parametrize("trainer", [None, "torch.bfloat16"])
def test_a_trainer_that_is_not_known_to_be_wider_leaves_it_a_fact(trainer: str | None) -> None:
    assert not is_named(0, growth=3.0, trainer=trainer)
