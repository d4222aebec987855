"""Tables in which chance has nothing to work on: they show nothing, under whichever kernel a processor sums.

CI runs this folder under several (OPENBLAS_CORETYPE): replicates of one cluster differ by the order of sums alone, and
differences that are all the same leave an error that is rounding.
"""

from dataclasses import replace

import numpy as np
from compare_tokens import compare
from honest_tables import ENTROPIES, Shape, Size, honest_table
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rlaudit.causes.attribution.attribute import all_causes
from rlaudit.diagnosis.compare_settings import CompareSettings
from rlaudit.layers import Layer, Verdict
from rlaudit.meaning.candidates import Semantics

PLAIN = Semantics()
FAST = CompareSettings(replicates=200)
SLOW_ON_PURPOSE = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
seeds = st.integers(0, 2**16)
lengths = st.sampled_from([1, 2, 9, 40])
# As a float, so that sums over tokens round: of the size of agreement, of an engine's noise, and beyond any.
constants = st.sampled_from([1e-12, 1e-7, 0.1, -0.1, 1 / 3, -5.0])


def judged(table):
    found = compare([table], PLAIN, PLAIN, FAST)
    return found.attribution, {one.layer: one for one in found.layers}


def apart_by(table, apart_T):
    """The same table whose trainer is that far from the rollout."""
    return replace(table, trainer_logprobs_T=table.rollout_logprobs_T + apart_T)


def honest_noise(table, seed, size):
    """Noise that leaves the mean ratio at 1."""
    return size * np.random.default_rng(seed).standard_normal(table.tokens) - size**2 / 2


@SLOW_ON_PURPOSE
@given(seeds, st.integers(1, 4), lengths, st.sampled_from(Shape), st.sampled_from(ENTROPIES))
def test_one_prompt_shows_nothing(seed, samples, length, shape, entropy):
    attribution, layers = judged(honest_table(seed, Size(1, samples, length), shape, entropy))
    assert attribution.names == frozenset()
    assert samples > 1 or attribution.verdict is Verdict.INCONCLUSIVE
    assert Verdict.MISMATCH not in {one.verdict for one in layers.values()}


@SLOW_ON_PURPOSE
@given(seeds, st.integers(1, 3), lengths, st.sampled_from(Shape), st.sampled_from(ENTROPIES))
def test_two_prompts_show_nothing(seed, samples, length, shape, entropy):
    attribution, layers = judged(honest_table(seed, Size(2, samples, length), shape, entropy))
    assert attribution.names == frozenset()
    assert layers[Layer.SEMANTIC].verdict is not Verdict.MISMATCH


@SLOW_ON_PURPOSE
@given(seeds, st.sampled_from([1, 2, 8, 20]), lengths, st.sampled_from(ENTROPIES), st.booleans())
def test_no_difference_at_all_shows_nothing(seed, prompts, length, entropy, ties):
    shape = Shape.TIES if ties else Shape.EQUAL
    attribution, layers = judged(apart_by(honest_table(seed, Size(prompts, 2, length), shape, entropy), 0.0))
    assert attribution.names == frozenset()
    assert Verdict.MISMATCH not in {one.verdict for one in layers.values()}


@SLOW_ON_PURPOSE
@given(seeds, st.sampled_from([1, 2, 8, 20]), lengths, constants, st.booleans())
def test_one_difference_at_every_token_is_called_that_and_no_cause(seed, prompts, length, constant, by_prompt):
    # Without a base model: rollouts are nearer to one that stands still than a trainer that was moved away is.
    table = honest_table(seed, Size(prompts, 2, length), Shape.EQUAL, 1.0, columns=False)
    # Low enough that no difference makes a logprob above 0; and so unlikely a token is not drawn twice.
    table = replace(
        table, rollout_logprobs_T=table.rollout_logprobs_T - 6.0, token_id_T=np.arange(table.tokens, dtype=np.int64)
    )
    sign_S = np.where(table.prompt_S % 2, -1.0, 1.0) if by_prompt else np.ones(table.sequences)
    attribution, layers = judged(apart_by(table, constant * sign_S[table.sequence_T]))
    assert attribution.names == frozenset()
    assert layers[Layer.SEMANTIC].cause not in all_causes()


@SLOW_ON_PURPOSE
@given(seeds, st.sampled_from([1, 2, 8, 20]), lengths, st.sampled_from([-1e-9, -0.7, -30.0]), st.booleans())
def test_tokens_that_are_all_as_likely_show_nothing(seed, prompts, length, logprob, noisy):
    table = honest_table(seed, Size(prompts, 2, length), Shape.EQUAL, 1.0, columns=False)
    table = replace(table, rollout_logprobs_T=np.full(table.tokens, logprob))
    room = -np.expm1(logprob)
    attribution, _ = judged(apart_by(table, honest_noise(table, seed, 0.05 * room) if noisy else 0.0))
    assert attribution.names == frozenset()
