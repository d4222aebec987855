import dataclasses

import numpy as np
import pytest
from simulated_pairs import honest_pairs

from rlaudit.statistics.measurement.measure import measure, measure_tally, tally
from rlaudit.statistics.measurement.metric import ObjectiveSettings
from rlaudit.statistics.measurement.quantiles import Quantile, abs_log_ratio_bins, replicate_counts
from rlaudit.statistics.measurement.running_tally import RunningTally
from rlaudit.statistics.resample import cluster_weights, replicate_sums


def chunks(pairs, sequences):
    for first in range(0, pairs.sequences, sequences):
        yield pairs.keep((pairs.sequence_T >= first) & (pairs.sequence_T < first + sequences))


def test_chunks_summed_one_after_the_other_measure_like_the_whole():
    pairs = honest_pairs(0, prompts=20)
    running = RunningTally(4096)
    for chunk in chunks(pairs, 12):
        running.add(running.part(chunk))
    whole = measure(pairs)
    for name, found in measure_tally(running.tally()).items():
        assert (found.tokens, found.sequences, found.clusters) == (pairs.tokens, 80, 20)
        for end in ("value", "low", "high"):
            wanted = getattr(whole[name], end)
            assert getattr(found, end) == (wanted if wanted is None else pytest.approx(wanted, rel=1e-9)), (name, end)


def test_what_one_chunk_lacks_is_unavailable_as_a_whole():
    pairs = honest_pairs(0, prompts=8)
    running = RunningTally(8)
    running.add(running.part(dataclasses.replace(pairs, entropy_T=np.full(pairs.tokens, 1.3))))
    running.add(running.part(pairs))
    entropy = measure_tally(running.tally(), replicates=50)["entropy"]
    assert entropy.value is None
    assert entropy.reason == "the trainer's entropy was not recorded"


def test_a_broken_chunk_is_refused():
    pairs = honest_pairs(0, prompts=2)
    with pytest.raises(ValueError, match="not comparable"):
        RunningTally(2).part(dataclasses.replace(pairs, trainer_logprobs_T=np.full(pairs.tokens, np.nan)))


@pytest.mark.parametrize("prompts", [8, 60])
@pytest.mark.parametrize("shares", [(0.5, 0.99), (0.01,), (0.999,)])
def test_quantiles_of_replicates_are_the_same_with_bins_merged(prompts, shares):
    pairs = honest_pairs(3, prompts=prompts)
    bins = abs_log_ratio_bins(pairs, ObjectiveSettings())
    counts_PJ = np.zeros((prompts, bins.count))
    np.add.at(counts_PJ, (pairs.prompt_T, bins.bin_T), 1.0)
    weights_BP = cluster_weights(prompts, 500)
    wanted = [Quantile(share) for share in shares]
    merged_BJ, whole_BJ = replicate_counts(weights_BP, counts_PJ, wanted), replicate_sums(weights_BP, counts_PJ)
    np.testing.assert_array_equal(merged_BJ.sum(axis=1), whole_BJ.sum(axis=1))
    for one in wanted:
        np.testing.assert_array_equal(one(merged_BJ), one(whole_BJ))


def test_bins_kept_around_a_quantile_that_jumps_are_widened_to_all():
    # One prompt in eight has everything at another size: replicates without it jump over the bins of the pilot.
    counts_PJ = np.zeros((8, 1000))
    counts_PJ[:, 100] = 10.0
    counts_PJ[0, 900] = 71.0
    weights_BP = cluster_weights(8, 2000)
    half = Quantile(0.5)
    np.testing.assert_array_equal(
        half.bins(replicate_counts(weights_BP, counts_PJ, [half])), half.bins(replicate_sums(weights_BP, counts_PJ))
    )


def test_bins_without_a_search_are_those_of_a_search():
    magnitudes = np.concatenate(
        [
            [0.0, 1e-300, 1e-8, 99.9, 100.0, 1e9, np.inf],
            np.geomspace(1e-9, 200.0, 20_000),
            np.random.default_rng(0).random(5000),
        ]
    )
    growth, lowest = 1.015, 1e-8
    inner = int(np.ceil(np.log(100.0 / lowest) / np.log(growth)))
    edges = lowest * np.power(growth, np.arange(inner + 1, dtype=np.float64))
    on_edges = np.concatenate([magnitudes, edges, np.nextafter(edges, 0), np.nextafter(edges, 1e9)])
    searched = np.searchsorted(edges, on_edges, side="right") + 1
    searched[on_edges == 0] = 0

    class Pairs:
        abs_log_ratio_T = on_edges

    np.testing.assert_array_equal(abs_log_ratio_bins(Pairs, ObjectiveSettings()).bin_T, searched)


def test_tallies_and_running_tallies_hold_the_same_sums():
    pairs = honest_pairs(1, prompts=10)
    running = RunningTally(10)
    running.add(running.part(pairs))
    whole = tally(pairs)
    for columns, sums_PJ in running.tally().sums.items():
        np.testing.assert_array_equal(sums_PJ, whole.sums[columns])


def test_prompts_with_few_gaps_are_handed_on_as_a_range_wherever_it_begins():
    pairs = honest_pairs(1, prompts=60)
    running = RunningTally(60)
    running.add(running.part(pairs.keep(np.isin(pairs.prompt_S[pairs.sequence_T], [40, 41, 43]))))
    assert running.compact().prompts.tolist() == [40, 41, 42, 43]
