"""Rows that fit another sequence's, among samples that begin alike, and what only looks so."""

from dataclasses import replace

import numpy as np
import pytest
from token_tables import table, with_trainer

from rlaudit.tokens.row_fits import NO_ROWS, RowFits
from rlaudit.tokens.row_fits import rows_of_others as among
from rlaudit.tokens.token_batch import TokenBatch

PROMPTS, SAMPLES, LENGTH, SHARED = 24, 4, 60, 30
ROWS = (PROMPTS * SAMPLES, LENGTH)


def rows_of_others(batch: TokenBatch) -> tuple[RowFits, list[int]]:
    return among(batch, range(batch.sequences))


def groups(noise: float = 0.01) -> TokenBatch:
    """Samples of one prompt that hold the same tokens up to half of their length."""
    batch = table(prompts=PROMPTS, samples=SAMPLES, length=LENGTH, noise=noise)
    sides = [batch.rollout_logprobs_T.copy(), batch.trainer_logprobs_T.copy()]
    for logprobs_T in sides:
        by_prompt = logprobs_T.reshape(PROMPTS, SAMPLES, LENGTH)
        by_prompt[:, 1:, :SHARED] = by_prompt[:, :1, :SHARED]
    return replace(batch, rollout_logprobs_T=sides[0], trainer_logprobs_T=sides[1])


def in_another_order(batch: TokenBatch, within: bool) -> TokenBatch:
    """Each trainer's row where that of the next sample, or of the next prompt, was."""
    rows = batch.trainer_logprobs_T.reshape(PROMPTS, SAMPLES, LENGTH)
    return with_trainer(batch, np.roll(rows, 1, axis=1 if within else 0).ravel())


@pytest.mark.parametrize("within", [True, False])
@pytest.mark.parametrize("noise", [0.01, 0.2])
def test_rows_in_another_order_are_found_among_samples_that_begin_alike(within: bool, noise: float) -> None:
    rows, fitting = rows_of_others(in_another_order(groups(noise), within))
    assert rows.sequences == ROWS[0] and rows.fitting == len(fitting) > 0.6 * rows.looked_for > 0.3 * ROWS[0]


def test_rows_that_meet_or_only_differ_much_fit_no_other() -> None:
    for noise in (0.01, 0.2, 0.5):
        assert not rows_of_others(groups(noise))[1]


def test_a_sample_that_begins_alike_is_not_the_row_of_one_with_other_tokens() -> None:
    batch = groups()
    trainer_SL = batch.trainer_logprobs_T.reshape(ROWS).copy()
    rng = np.random.default_rng(5)
    for row in trainer_SL[::2]:
        place = int(rng.integers(5, 20))
        row[place:] = -rng.exponential(1.0, LENGTH - place)
    rows, fitting = rows_of_others(with_trainer(batch, trainer_SL.ravel()))
    assert rows.looked_for > 20 and len(fitting) <= 0.05 * rows.looked_for


def test_numbers_that_were_put_in_make_no_row_apart() -> None:
    batch = groups()
    rollout_SL = batch.rollout_logprobs_T.reshape(ROWS).copy()
    rollout_SL[:, SHARED : SHARED + 10] = 0.0
    assert rows_of_others(replace(batch, rollout_logprobs_T=rollout_SL.ravel()))[0].looked_for == 0


def test_counts_of_batches_add_up() -> None:
    rows, _ = rows_of_others(in_another_order(groups(), within=False))
    assert rows + NO_ROWS == rows and (rows + rows).looked_for == 2 * rows.looked_for
