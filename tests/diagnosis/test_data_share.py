"""What a verdict rests on: no match over a remnant, no verdict turned by one row."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from compare_tokens import compare
from logged_tokens import logged

from rlaudit.diagnosis.compare_settings import CompareSettings
from rlaudit.diagnosis.judgement import held, supported
from rlaudit.layers import Layer, Verdict, judged_as
from rlaudit.meaning.candidates import Semantics
from rlaudit.tokens.data_share import MOST_LEFT_OUT, DataShare
from rlaudit.tokens.fault import Fault, FaultKind, Faults

FAST = CompareSettings(replicates=200)
WHOLE = DataShare(100, 0, 1000, 0)


def compared(batch, faults=None, **more):
    return compare([batch], Semantics(), Semantics(), FAST, faults=faults or Faults(), **more)


def judged(verdict):
    return judged_as(Layer.SEMANTIC, verdict, "nothing is apart", evidence=("a line",), falsifier="a bias")


@pytest.mark.parametrize(
    ("share", "verdict"),
    [
        (WHOLE, Verdict.MATCH),
        (DataShare(95, 5, 950, 50), Verdict.MATCH),
        (DataShare(94, 6, 1000, 0), Verdict.INCONCLUSIVE),
        (DataShare(99, 1, 900, 100), Verdict.INCONCLUSIVE),
        (DataShare(100, 0, 1000, 0, unread=True), Verdict.INCONCLUSIVE),
    ],
)
def test_a_match_needs_nearly_all_sequences_and_tokens_of_what_was_given(share, verdict):
    for pair in ((share, WHOLE), (WHOLE, share)):
        found = supported(judged(Verdict.MATCH), *pair)
        assert found.verdict is verdict is held(Verdict.MATCH, *pair)
        assert "nothing is apart" in found.because
        assert any(str(share) in line for line in found.evidence) is not share.whole


@pytest.mark.parametrize("verdict", [Verdict.MISMATCH, Verdict.INCONCLUSIVE, Verdict.NOT_TESTED])
def test_every_other_verdict_stands_whatever_was_left_out(verdict):
    found = supported(judged(verdict), DataShare(1, 99, 1, 99), WHOLE)
    assert (found.verdict, found.because) == (verdict, "nothing is apart")
    assert ("fix what was left out" in found.next) is (verdict is Verdict.INCONCLUSIVE)


@pytest.mark.parametrize(("broken", "verdict"), [(4, Verdict.MATCH), (5, Verdict.INCONCLUSIVE), (79, None)])
def test_honest_tokens_match_until_too_many_sequences_are_broken(broken, verdict):
    batch = logged(noise=1e-4)
    batch.rollout_logprobs_T[batch.offsets[:broken]] = 0.5
    found = compared(batch)
    assert (found.evidence.share.sequences, found.evidence.share.sequences_left_out) == (80 - broken, broken)
    assert found.evidence.share.tokens_left_out == 40 * broken
    assert Verdict.MATCH not in found.verdicts or broken <= MOST_LEFT_OUT * 80
    if verdict is not None:
        assert found.verdicts[0] is verdict


def test_what_was_left_out_before_the_comparison_counts_as_well():
    faults = Faults()
    faults.add(Fault(Path("t.jsonl"), FaultKind.NO_TRAINER, "no partner"), sequences=80, count=80)
    found = compared(logged(noise=1e-4), faults)
    assert found.evidence.share.left_out == 0.5
    assert found.verdicts == (Verdict.INCONCLUSIVE, Verdict.INCONCLUSIVE, Verdict.NOT_TESTED)
    assert (found.evidence.share.sequences, found.evidence.share.sequences_left_out) == (80, 80)


def test_a_sample_in_which_causes_can_hardly_be_looked_for_supports_no_match():
    batch = logged(noise=1e-4)
    old_T = batch.trainer_logprobs_T.copy()
    old_T[batch.offsets[:40]] = 0.5
    sample = replace(batch, token_columns={**batch.token_columns, "old_logprob": old_T})
    faults = Faults()
    found = compared(batch, faults, sample=[sample])
    assert found.evidence.share.whole
    assert found.verdicts[0] is Verdict.INCONCLUSIVE
    looked_at = found.evidence.looked_at
    assert (looked_at.sequences, looked_at.sequences_left_out) == (40, 40)
    assert (faults.count, faults.sequences_left_out) == (40, 0)


# Values of each column that no sound log holds, and gaps: what one row may do to a table.
COLUMNS = ("rollout_logprob", "trainer_logprob", "trainer_entropy", "old_logprob", "rollout_version", "advantage")
VALUES = (np.nan, np.inf, -np.inf, 1e300, -1e160, 9999.5, -9999.5)
# As a stream of all columns; or as of a Parquet file: figures of all rows and few columns, causes from a sample.
WAYS = [(value, True) for value in VALUES] + [(np.nan, False), (-1e300, False)]


def with_a_row(batch, column, value, place):
    columns = {
        "old_logprob": batch.trainer_logprobs_T,
        "rollout_version": np.full(batch.tokens, 2.0),
        "advantage": np.full(batch.tokens, 0.5),
        **batch.token_columns,
    }
    if column.endswith("logprob") and column != "old_logprob":
        field = f"{column}s_T"
        changed = getattr(batch, field).copy()
        changed[place] = value
        return replace(batch, token_columns=columns, **{field: changed})
    changed = columns[column].copy()
    changed[place] = value
    return replace(batch, token_columns={**columns, column: changed})


@pytest.mark.parametrize("column", COLUMNS)
@pytest.mark.parametrize(("value", "streamed"), WAYS)
def test_no_impossible_value_and_no_gap_in_one_row_turns_a_verdict(column, value, streamed):
    for batch, expected in HONEST_AND_NOT:
        damaged, faults, sample = with_a_row(batch, column, value, 1234), Faults(), None
        if not streamed:
            entropy = {"trainer_entropy": damaged.token_columns["trainer_entropy"]}
            damaged, sample = replace(damaged, token_columns=entropy), [damaged]
        found = compared(damaged, faults, sample=sample)
        assert found.verdicts == expected
        assert {one.column for one in faults.shown} <= {column}
        assert faults.count <= 1


HIDDEN = logged(temperature=0.7, reported_at=1.0, trainer_at=1.0, noise=0.01)
HONEST_AND_NOT = (
    (logged(noise=1e-4), (Verdict.MATCH,) * 3),
    (HIDDEN, (Verdict.MISMATCH, Verdict.NOT_TESTED, Verdict.NOT_TESTED)),
)
