"""What is looked for in all of a log, not in the sample that causes are looked for in: rows that do not meet."""

import numpy as np
from compare_tokens import compare
from token_tables import table, with_trainer

from rlaudit.diagnosis.compare_settings import CompareSettings
from rlaudit.diagnosis.read_log import NAMED
from rlaudit.meaning.candidates import RAW
from rlaudit.tokens.alignment import Misalignment


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
    assert alignment.messages[0].startswith("80 of 80 sequences") and alignment.messages[0].endswith("and 75 more)")
