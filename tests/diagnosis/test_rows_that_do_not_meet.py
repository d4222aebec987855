"""What is looked for in all of a log, not in the sample that causes are looked for in: rows that do not meet."""

from dataclasses import replace

import numpy as np
import pytest
from compare_tokens import PATH, compare
from token_tables import table, with_trainer

from rlaudit.diagnosis.compare import judged
from rlaudit.diagnosis.compare_settings import CompareSettings
from rlaudit.diagnosis.evidence import gather
from rlaudit.diagnosis.read_log import NAMED, is_searched, read_part, together
from rlaudit.layers import Verdict
from rlaudit.meaning.candidates import RAW
from rlaudit.tokens.alignment import Misalignment
from rlaudit.tokens.fault import Faults


def swapped(share: float, seed: int = 0):
    batch = table(seed, prompts=120, samples=2, length=40)
    rows = batch.trainer_logprobs_T.reshape(-1, 40).copy()
    moved = np.random.default_rng(seed).choice(len(rows), round(share * len(rows)), replace=False)
    rows[moved] = rows[np.roll(moved, 1)]
    return with_trainer(batch, rows.ravel())


def test_rows_whose_partner_is_not_in_the_sample_are_found():
    for share in (0.1, 0.9):
        found = compare([swapped(share)], RAW, RAW, CompareSettings(evidence_tokens=1000))
        assert found.layers[0].cause == "swapped-rows" and not found.layers[0].causes[1:]
        assert 0.7 * share * 240 < found.evidence.alignment.rows.fitting <= share * 240


def test_a_failure_of_more_sequences_than_are_named_is_counted_in_full():
    batches = [with_trainer(batch, np.roll(batch.trainer_logprobs_T, 1)) for batch in (table(0), table(1))]
    alignment = compare(batches, RAW, RAW).evidence.alignment
    assert len(alignment.misaligned) == NAMED and alignment.count_of(Misalignment.OFF_BY_ONE) == 80
    assert alignment.messages[0].startswith("in 80 of 80 sequences") and "and 78 more)" in alignment.messages[0]


def compared_files(batches, settings, sampled_from=1):
    """A log of several files, of which causes are searched for in one of so many."""
    parts = [read_part([batch], PATH, settings, Faults()) for batch in batches]
    log = together(parts, PATH, Faults(), settings, sampled_from=sampled_from)
    return judged(gather(log, RAW, RAW, settings, faults=Faults()))


@pytest.mark.parametrize("bad", range(4))
def test_shifted_sequences_of_any_file_decide_also_of_one_that_no_cause_is_searched_for_in(bad):
    files = [table(seed, prompts=10) for seed in range(4)]
    files[bad] = with_trainer(files[bad], np.roll(files[bad].trainer_logprobs_T.reshape(-1, 40), 1, axis=1).ravel())
    found = compared_files(files, CompareSettings(replicates=50), sampled_from=2)
    assert (found.verdicts[0], found.attribution.names) == (Verdict.MISMATCH, {"off-by-one"})
    signature = found.attribution.named[0].signature
    assert signature.because.startswith("in 20 of 80 sequences") and signature.low < signature.effect == 0.25
    assert found.evidence.counts.misaligned == {"off-by-one": 20}


def test_numbers_that_were_put_in_decide_in_any_file():
    files = [table(seed, prompts=10) for seed in range(4)]
    tool_T = (files[1].position_T >= 10) & (files[1].position_T < 25)
    files[1] = replace(files[1], rollout_logprobs_T=np.where(tool_T, 0.0, files[1].rollout_logprobs_T))
    found = compared_files(files, CompareSettings(replicates=50), sampled_from=4)
    assert found.attribution.names == {"placed-logprobs"} and found.verdicts[0] is Verdict.MISMATCH


def test_rows_of_other_files_are_found_there():
    rows = table(prompts=40).trainer_logprobs_T.reshape(80, 40)
    files = [table(prompts=40).take(range(first, first + 20)) for first in range(0, 80, 20)]
    moved = [with_trainer(files[place], rows[20 * place - 20 :][:20].ravel()) for place in range(1, 4)]
    found = compared_files([with_trainer(files[0], rows[60:].ravel()), *moved], CompareSettings(replicates=50))
    assert found.attribution.names == {"swapped-rows"} and found.evidence.alignment.rows.fitting > 40


def test_a_search_of_few_sequences_of_many_says_what_it_may_have_missed_and_matches_nothing():
    batch = table(prompts=60, length=50)
    part, whole = (compare([batch], RAW, RAW, CompareSettings(evidence_tokens=tokens)) for tokens in (500, 10_000))
    assert part.evidence.looked_at.missable > 0.1 and not part.evidence.looked_at.suffices
    assert "of 120 sequences: it may miss a fault in fewer than" in str(part.evidence.looked_at)
    assert whole.evidence.looked_at.whole and Verdict.MATCH in whole.verdicts and Verdict.MATCH not in part.verdicts


def test_files_that_are_searched_follow_no_rhythm():
    searched = [place for place in range(1024) if is_searched(place, 4)]
    assert 250 <= len(searched) <= 262 and {place % 8 for place in searched} == set(range(8))
