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


def with_lost(batch: TokenBatch, spans: list[tuple[int, int]], side: str = "trainer") -> TokenBatch:
    """Other numbers in a span of each sample, by its place in the group, on the trainer's side; zeros on the other."""
    logprobs_T = (batch.trainer_logprobs_T if side == "trainer" else batch.rollout_logprobs_T).copy()
    rows = logprobs_T.reshape(PROMPTS, SAMPLES, LENGTH)
    rng = np.random.default_rng(6)
    for sample, (first, end) in enumerate(spans):
        rows[:, sample, first:end] = 0.0 if side == "rollout" else -rng.exponential(1.5, (PROMPTS, end - first))
    return replace(batch, **{f"{side}_logprobs_T": logprobs_T})


def test_a_row_that_fits_but_for_its_end_is_not_the_same_row() -> None:
    batch = table(prompts=PROMPTS, samples=SAMPLES, length=LENGTH)
    copies = [np.repeat(side.reshape(PROMPTS, SAMPLES, LENGTH)[:, :1], SAMPLES, axis=1).ravel()
              for side in (batch.rollout_logprobs_T, batch.trainer_logprobs_T)]  # fmt: skip
    batch = replace(batch, rollout_logprobs_T=copies[0], trainer_logprobs_T=copies[1])
    rows, fitting = rows_of_others(with_lost(batch, [(2, LENGTH), (47, LENGTH), (47, LENGTH), (47, LENGTH)]))
    assert rows.looked_for > PROMPTS and not fitting


def test_rows_that_meet_again_at_their_end_are_not_looked_for() -> None:
    assert rows_of_others(with_lost(groups(), [(5, 40)] * SAMPLES))[0].looked_for == 0


def test_numbers_that_were_put_in_at_the_end_make_no_row_apart() -> None:
    assert rows_of_others(with_lost(groups(), [(35, LENGTH)] * SAMPLES, "rollout"))[0].looked_for == 0
