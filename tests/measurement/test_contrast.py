import dataclasses
import json

import numpy as np
import pytest
from simulated_pairs import honest_pairs

from rlaudit.layers import Verdict
from rlaudit.statistics.measurement.contrast import contrast, judge
from rlaudit.statistics.measurement.measure import all_metrics, measure
from rlaudit.text.plain import plain
from rlaudit.tokens.pairs import LogprobPairs

METRICS = all_metrics()


def with_more_noise(pairs: LogprobPairs, added: float, seed: int = 9) -> LogprobPairs:
    noise_T = added * np.random.default_rng(seed).standard_normal(pairs.tokens)
    lower = pairs.rollout_logprobs_T - 1.0
    return dataclasses.replace(pairs, rollout_logprobs_T=lower, trainer_logprobs_T=lower + pairs.log_ratio_T + noise_T)


def test_the_difference_is_first_minus_second() -> None:
    pairs = honest_pairs(0, prompts=40)
    noisier = with_more_noise(pairs, 0.1)
    found = contrast(noisier, pairs, METRICS["k2"], replicates=500)
    assert found.difference == pytest.approx(
        measure(noisier)["k2"].value - measure(pairs)["k2"].value  # type: ignore[operator]
    )
    assert found.low is not None
    assert found.low > 0
    assert found.low < 0.005 < found.high  # type: ignore[operator]


def test_pairing_by_prompt_narrows_the_interval() -> None:
    pairs = honest_pairs(0, prompts=40)
    paired = contrast(with_more_noise(pairs, 0.03), pairs, METRICS["k2"])
    alone = measure(pairs)["k2"]
    assert paired.high - paired.low < 0.2 * (alone.high - alone.low)  # type: ignore[operator]


def test_an_arm_against_itself_differs_by_exactly_nothing() -> None:
    pairs = honest_pairs(0, prompts=40)
    for name, metric in METRICS.items():
        found = contrast(pairs, pairs, metric, replicates=100)
        if name != "entropy" and not name.startswith("ess"):
            assert (found.low, found.difference, found.high) == (0.0, 0.0, 0.0), name


def test_only_prompts_of_both_arms_are_compared() -> None:
    pairs = honest_pairs(0, prompts=40)
    half = pairs.keep(pairs.prompt_T < 20)
    found = contrast(with_more_noise(pairs, 0.1), half, METRICS["k2"], replicates=100)
    assert (found.clusters, found.sequences) == (20, 80)
    assert found.second == pytest.approx(measure(half)["k2"].value)
    shorter = dataclasses.replace(half, prompts=20)
    assert contrast(pairs, shorter, METRICS["k2"], replicates=100).clusters == 20


def test_arms_without_a_common_prompt_have_no_difference() -> None:
    pairs = honest_pairs(0, prompts=4)
    found = contrast(pairs.keep(pairs.prompt_T < 2), pairs.keep(pairs.prompt_T >= 2), METRICS["k2"])
    assert found.difference is None
    assert found.reason == "the arms share no prompt"


def test_a_metric_that_one_arm_lacks_has_no_difference() -> None:
    pairs = honest_pairs(0, prompts=4)
    recorded = dataclasses.replace(pairs, entropy_T=np.ones(pairs.tokens))
    found = contrast(recorded, pairs, METRICS["entropy"])
    assert found.difference is None
    assert found.reason == "the trainer's entropy was not recorded"
    json.dumps(plain(found), allow_nan=False)


def test_paired_intervals_cover_the_planted_difference() -> None:
    covered = 0
    for seed in range(100):
        pairs = honest_pairs(seed, prompts=40)
        found = contrast(
            with_more_noise(pairs, 0.05, seed=1000 + seed), pairs, METRICS["k2"], replicates=500, seed=seed
        )
        covered += found.low <= 0.05**2 / 2 <= found.high  # type: ignore[operator]
    assert covered >= 87


@pytest.mark.parametrize(
    ("low", "high", "reliable", "verdict"),
    [
        (-0.5, 0.9, True, Verdict.MATCH),
        (-1.0, 1.0, True, Verdict.MATCH),
        (1.1, 2.0, True, Verdict.MISMATCH),
        (-2.0, -1.1, True, Verdict.MISMATCH),
        (0.5, 1.5, True, Verdict.INCONCLUSIVE),
        (-2.0, 2.0, True, Verdict.INCONCLUSIVE),
        (-0.1, 0.1, False, Verdict.INCONCLUSIVE),
        (1.1, 2.0, False, Verdict.INCONCLUSIVE),
        (1.6, 2.0, False, Verdict.MISMATCH),
        (None, None, True, Verdict.INCONCLUSIVE),
    ],
)
def test_verdicts_against_a_margin_of_one(
    low: float | None, high: float | None, reliable: bool, verdict: Verdict
) -> None:
    assert judge(low, high, 1.0, reliable=reliable) is verdict


def test_a_margin_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="margin"):
        judge(0.0, 0.0, 0.0)
