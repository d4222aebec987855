"""A loss mask beside the stretches that the policy sampled."""

from dataclasses import replace

import numpy as np
import pytest
from logged_tokens import logged

from rlaudit.tokens.checks.loss_mask_off_spans import look
from rlaudit.tokens.first_look import first_look

SEQUENCES, LENGTH, BEGIN, END = 80, 40, 12, 18


def with_tool(late=0, late_at_end=0, number=0.0, sequences=SEQUENCES):
    """A log whose tokens BEGIN to END a tool has returned, with a mask that begins and ends this much late."""
    batch = logged(noise=0.01)
    inside_T = (batch.position_T >= BEGIN) & (batch.position_T < END) & (batch.sequence_T < sequences)
    masked_T = (batch.position_T >= BEGIN + late) & (batch.position_T < END + late_at_end)
    masked_T &= batch.sequence_T < sequences
    rollout_T = np.where(inside_T, number, batch.rollout_logprobs_T)
    return replace(batch, rollout_logprobs_T=rollout_T, token_columns={"loss_mask": ~masked_T})


@pytest.mark.parametrize("number", [0.0, np.nan, -100.0])
@pytest.mark.parametrize(
    ("late", "late_at_end", "trained", "left_out"),
    [(1, 1, SEQUENCES, SEQUENCES), (-1, -1, SEQUENCES, SEQUENCES), (2, 0, 2 * SEQUENCES, 0), (0, -1, SEQUENCES, 0)],
)
def test_a_mask_that_counts_tokens_of_a_tool_is_found(late, late_at_end, trained, left_out, number):
    (finding,) = look(with_tool(late, late_at_end, number))
    assert finding.mask_off
    assert f"the mask counts {trained} tokens" in finding.because
    assert f"leaves out {left_out} sampled ones" in finding.because


def test_a_mask_in_place_is_silent():
    assert list(look(with_tool())) == []


def test_a_mask_that_only_leaves_out_sampled_tokens_may_be_meant():
    assert list(look(with_tool(-1, 1))) == []


def test_a_log_without_a_mask_is_silent():
    assert list(look(logged())) == []


def test_masks_of_whole_sequences_are_silent():
    batch = with_tool()
    mask_T = batch.token_columns["loss_mask"] & (batch.sequence_T % 3 > 0)
    assert list(look(replace(batch, token_columns={"loss_mask": mask_T}))) == []


def test_a_few_stretches_are_too_few():
    assert list(look(with_tool(1, 1, sequences=5))) == []


def test_tokens_that_were_not_sampled_are_left_out_of_the_figures():
    batch = with_tool(1, 1)
    left = first_look([batch]).applied(batch)
    assert int((left.counts_T & (batch.rollout_logprobs_T == 0.0)).sum()) == 0
