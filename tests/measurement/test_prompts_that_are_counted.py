from dataclasses import replace

import numpy as np
import pytest
from simulated_pairs import honest_pairs

from rlaudit.statistics.measurement.contrast import contrast
from rlaudit.statistics.measurement.measure import all_metrics, tally
from rlaudit.statistics.measurement.running_tally import PartTally, RunningTally

K2 = all_metrics()["k2"]


@pytest.mark.parametrize("places", [[0, 1, 2, 3], [5, 6, 7, 8], [3, 1, 0, 6], [2, 2, 0, 2], [2, 2, 2, 2]])
def test_rows_of_a_chunk_are_added_where_they_belong_also_several_to_one_prompt(places: list[int]) -> None:
    found = tally(honest_pairs(0, prompts=4), [K2])
    running = RunningTally(9, [K2])
    running.add(PartTally(np.array(places), found))
    wanted = np.zeros(9)
    for place, tokens in zip(places, found.tokens_P, strict=True):
        wanted[place] += tokens
    np.testing.assert_array_equal(running.tally().tokens_P, wanted)
    assert running.tally().sums[K2.columns].sum() == pytest.approx(found.sums[K2.columns].sum())


def test_a_prompt_counts_from_its_first_token() -> None:
    pairs = honest_pairs(0, prompts=12, completions=1)
    _, first_S = np.unique(pairs.sequence_T, return_index=True)
    one_each = pairs.keep(np.isin(np.arange(pairs.tokens), first_S))
    more = replace(one_each, trainer_logprobs_T=one_each.trainer_logprobs_T - 0.01)
    assert contrast(more, one_each, K2, replicates=50).clusters == 12


def test_capped_tokens_and_sequences_of_chunks_add_up_each_for_itself() -> None:
    found = replace(tally(honest_pairs(0, prompts=2), [K2]), capped_tokens=5, capped_sequences=2)
    running = RunningTally(2, [K2])
    for _ in range(3):
        running.add(PartTally(np.arange(2), found))
    assert (running.tally().capped_tokens, running.tally().capped_sequences) == (15, 6)
