"""Shifted, shortened and re-tokenised sequences are found, named one by one, and never taken for engine noise."""

from dataclasses import replace

import numpy as np
import pytest
from token_tables import table, with_columns, with_trainer

from rlaudit.tokens.alignment import Misalignment, alignment_report
from rlaudit.tokens.lag_path import lag_paths, unrelated_cost


def shifted(batch, sequences, shift, first=0):
    """The trainer's logprobs of these sequences come `shift` tokens later, from `first` on."""
    trainer_T = batch.trainer_logprobs_T.copy()
    for sequence in sequences:
        rows = slice(batch.offsets[sequence] + first, batch.offsets[sequence + 1])
        trainer_T[rows] = np.roll(trainer_T[rows], shift)
    return with_trainer(batch, trainer_T)


def versions(batch, first):
    """Weights that change at token `first` of every sequence."""
    return {"rollout_version": (batch.position_T >= first).astype(np.int64)}


@pytest.mark.parametrize("noise", [1e-5, 0.02, 0.3])
def test_noise_of_any_usual_size_is_aligned(noise):
    report = alignment_report(table(noise=noise))
    assert not report.refused
    assert report.messages == ()


@pytest.mark.parametrize("shift", [-3, -1, 1, 2])
def test_a_shift_of_whole_sequences_is_found_with_its_lag(shift):
    report = alignment_report(shifted(table(), range(40), shift))
    assert report.refused
    assert {one.kind for one in report.misaligned} == {Misalignment.OFF_BY_ONE}
    assert {one.lag for one in report.misaligned} == {shift}


def test_one_shifted_sequence_of_forty_is_named():
    report = alignment_report(shifted(table(), [17], 1))
    assert [(one.sequence, one.name) for one in report.misaligned] == [(17, "prompt 8, sample 1")]
    assert "prompt 8, sample 1" in report.messages[0]


def test_a_shift_from_a_resume_on_is_a_dropped_token():
    batch = table(length=60)
    batch = shifted(table(length=60, columns=versions(batch, 30)), [3, 4, 9], -1, first=30)
    report = alignment_report(batch)
    assert {one.sequence for one in report.of_kind(Misalignment.TOKEN_DROPPED)} == {3, 4, 9}
    assert all(abs(one.first - 30) <= 2 and one.at_a_resume for one in report.misaligned)


def test_a_shift_soon_after_the_beginning_is_not_one_of_the_whole_sequence():
    report = alignment_report(shifted(table(length=80, peaked=0.0), range(0, 40, 4), -1, first=6))
    assert report.counts == {Misalignment.TOKEN_DROPPED: 10}


def test_a_shift_far_from_any_resume_is_another_tokenisation():
    batch = table(length=60)
    report = alignment_report(shifted(table(length=60, columns=versions(batch, 5)), [3, 4, 9], -1, first=30))
    assert {one.sequence for one in report.of_kind(Misalignment.RETOKENISED)} == {3, 4, 9}


def test_without_versions_it_is_said_that_the_place_of_a_resume_is_not_known():
    report = alignment_report(shifted(table(length=60), [3], -1, first=30))
    assert report.misaligned[0].at_a_resume is None
    assert any("rollout_version" in line for line in report.not_tested)


def test_agreement_that_no_shift_restores_is_another_tokenisation():
    batch = table(length=60)
    trainer_T = batch.trainer_logprobs_T.copy()
    rows = slice(batch.offsets[5] + 20, batch.offsets[6])
    trainer_T[rows] = np.random.default_rng(1).permutation(trainer_T[rows])
    report = alignment_report(with_trainer(batch, trainer_T))
    assert [one.sequence for one in report.of_kind(Misalignment.RETOKENISED)] == [5]


def test_a_mismatch_as_large_as_a_wrong_temperature_is_not_a_shift():
    batch = table()
    assert not alignment_report(with_trainer(batch, 2.0 * batch.rollout_logprobs_T)).refused


def test_missing_trainer_logprobs_are_no_evidence_of_a_shift():
    batch = table()
    trainer_T = batch.trainer_logprobs_T.copy()
    trainer_T[::2] = np.nan
    assert not alignment_report(with_trainer(batch, trainer_T)).refused


def test_reports_of_two_parts_add_up():
    first, second = alignment_report(shifted(table(seed=1), [2], 1)), alignment_report(table(seed=2))
    both = first + second
    assert both.sequences == 80
    assert both.misaligned == first.misaligned


def test_a_path_says_from_which_token_on():
    batch = shifted(table(length=50), [0], 1, first=20)
    unrelated = unrelated_cost(batch.rollout_logprobs_T, batch.trainer_logprobs_T)
    path = lag_paths(batch.rollout_logprobs_T, batch.trainer_logprobs_T, batch.offsets[:2], unrelated)[0]
    assert [stretch.lag for stretch in path] == [0, 1]
    assert abs(path[1].first - 20) <= 2


@pytest.mark.parametrize("written", [0.0, np.nan])
def test_tokens_that_a_tool_wrote_say_nothing_of_a_shift(written):
    batch = table(length=60)
    tool_T = (batch.position_T >= 20) & (batch.position_T < 35)
    unlikely_T = -np.random.default_rng(3).exponential(6.0, batch.tokens)
    batch = with_trainer(batch, np.where(tool_T, unlikely_T, batch.trainer_logprobs_T))
    rollout_T = np.where(tool_T, written, batch.rollout_logprobs_T)
    batch = replace(with_columns(batch, loss_mask=~tool_T), rollout_logprobs_T=rollout_T)
    assert not alignment_report(batch).refused
    report = alignment_report(shifted(batch, [7], 1))
    assert [(one.sequence, one.kind) for one in report.misaligned] == [(7, Misalignment.OFF_BY_ONE)]


def unlike(batch, spans):
    """Other tokens' logprobs on the trainer's side: in sequence s from token `first` to before `end`."""
    rng = np.random.default_rng(8)
    trainer_T = batch.trainer_logprobs_T.copy()
    for sequence, (first, end) in spans.items():
        rows = slice(batch.offsets[sequence] + first, batch.offsets[sequence] + end)
        trainer_T[rows] = -rng.exponential(2.0, end - first)
    return with_trainer(batch, trainer_T)


def test_agreement_that_comes_back_unshifted_was_never_another_tokenisation():
    batch = table(length=80)
    lost = {5: (30, 80), 6: (30, 80)}
    assert {one.sequence for one in alignment_report(unlike(batch, lost)).misaligned} == {5, 6}
    assert not alignment_report(unlike(batch, {5: (30, 60), 6: (30, 60)})).refused


def test_engines_that_agree_badly_everywhere_are_not_called_retokenised_where_they_are_worst():
    lost = {5: (50, 80), 6: (50, 80), 7: (60, 80)}
    assert alignment_report(unlike(table(length=80, noise=0.05, peaked=0.0), lost)).refused
    assert not alignment_report(unlike(table(length=80, noise=0.9, peaked=0.0), lost)).refused


@pytest.mark.parametrize(("noise", "drawn", "refused"), [(0.15, False, True), (0.25, True, False), (0.01, True, True)])
def test_tokens_that_the_trainer_only_finds_unlikely_are_other_tokens_only_if_both_sides_were_very_near(
    noise, drawn, refused
):
    """A ban or a filter moves what comes before as well."""
    batch, others_T = table(length=80, noise=noise, peaked=0.0), table(seed=7, length=80, peaked=0.0).trainer_logprobs_T
    late_T, rng = (batch.sequence_T < 4) & (batch.position_T >= 40), np.random.default_rng(8)
    if drawn:
        sure_T = np.where(late_T, -0.4 * rng.random(batch.tokens), batch.rollout_logprobs_T)
        batch, others_T = replace(batch, rollout_logprobs_T=sure_T), -2.5 - rng.exponential(1.0, batch.tokens)
    report = alignment_report(with_trainer(batch, np.where(late_T, others_T, batch.trainer_logprobs_T)))
    assert report.refused == refused


def lost_throughout(batch, first=0):
    """Logprobs of other tokens on the trainer's side in half of the sequences, from token `first` on."""
    others_T = table(seed=7, length=int(batch.lengths_S[0])).trainer_logprobs_T
    lost_T = (batch.sequence_T % 2 == 0) & (batch.position_T >= first)
    return with_trainer(batch, np.where(lost_T, others_T, batch.trainer_logprobs_T))


def test_rows_with_nothing_in_common_from_the_first_token_on_have_a_name_of_their_own():
    whole, late = (alignment_report(lost_throughout(table(length=60), first)).counts for first in (0, 20))
    assert set(whole) == {Misalignment.UNRELATED} and set(late) == {Misalignment.RETOKENISED}
    assert min(*whole.values(), *late.values()) >= 19


@pytest.mark.parametrize("lag", [None, 2])
@pytest.mark.parametrize("head", [0.0, 0.8])
def test_agreement_is_neither_lost_nor_shifted_where_there_was_none_before(head, lag):
    batch, changed_S = table(length=60), range(0, 40, 2)
    batch = lost_throughout(batch, first=30) if lag is None else shifted(batch, changed_S, lag, first=30)
    beginning_T = (batch.sequence_T % 2 == 0) & (batch.position_T < 30)
    noise_T = head * np.random.default_rng(2).standard_normal(batch.tokens)
    batch = with_trainer(batch, batch.trainer_logprobs_T + np.where(beginning_T, noise_T, 0.0))
    assert alignment_report(batch).refused == (head == 0.0)


def test_rows_that_the_trainer_finds_unlikely_are_of_other_weights_and_not_of_other_sequences():
    batch, of_others_T = table(length=60), table(seed=7, length=60).trainer_logprobs_T
    for times, refused in ((1.0, True), (4.0, False)):
        trainer_T = np.where(batch.sequence_T < 5, times * of_others_T, batch.trainer_logprobs_T)
        assert alignment_report(with_trainer(batch, trainer_T)).refused == refused


@pytest.mark.parametrize(("least", "refused"), [(0.2, False), (1.0, True)])
def test_the_far_end_of_a_mismatch_of_many_rows_is_no_row_of_others(least, refused):
    batch, rng = table(prompts=100, samples=4, length=16), np.random.default_rng(3)
    share_S = np.where(rng.random(batch.sequences) < 0.4, rng.uniform(least, 1.1, batch.sequences), 0.0)
    share_T, other_T = np.minimum(share_S, 1.0)[batch.sequence_T], rng.permutation(batch.trainer_logprobs_T)
    report = alignment_report(with_trainer(batch, share_T * other_T + (1 - share_T) * batch.trainer_logprobs_T))
    assert report.refused == refused


@pytest.mark.parametrize(("prompts", "length", "first"), [(20, 60, 20), (200, 22, 4)])
def test_weights_that_differ_from_a_place_on_are_not_other_tokens(prompts, length, first):
    batch = table(prompts=prompts, length=length)
    differs_T = (batch.sequence_T % 2 == 0) & (batch.position_T >= first)
    noise_T = 2.0 * np.random.default_rng(2).standard_normal(batch.tokens)
    trainer_T = np.where(differs_T, 1.3 * batch.rollout_logprobs_T + noise_T, batch.trainer_logprobs_T)
    assert not alignment_report(with_trainer(batch, trainer_T)).refused


def test_shifts_both_ways_are_another_tokenisation_and_one_way_a_lost_token():
    batch = table(length=60)
    one_way, both = (shifted(shifted(batch, range(10), 1, 30), range(10, 20), shift, 30) for shift in (1, -1))
    assert alignment_report(one_way).counts == {Misalignment.TOKEN_DROPPED: 20}
    assert alignment_report(both).counts == {Misalignment.RETOKENISED: 20}


def test_so_few_of_many_suspects_are_chance():
    few = alignment_report(shifted(table(), [3, 4], 1))
    assert few.refused and not replace(few, suspects=1000).refused
    assert not alignment_report(shifted(table(), [3], 1)).refused


def test_a_shift_whose_first_tokens_are_all_certain_may_be_of_the_whole_sequence():
    batch = table(length=40)
    sides = [side.reshape(batch.sequences, -1).copy() for side in (batch.rollout_logprobs_T, batch.trainer_logprobs_T)]
    sure = -0.02 * np.random.default_rng(5).random((batch.sequences, 12))
    for side in sides:
        side[::2, :12] = sure[::2]
    batch = with_trainer(replace(batch, rollout_logprobs_T=sides[0].ravel()), sides[1].ravel())
    batch = shifted(shifted(batch, range(1, 40, 2), 1), range(0, 40, 2), 1, first=12)
    assert alignment_report(batch).counts == {Misalignment.OFF_BY_ONE: 40}


def test_tokens_without_a_counterpart_say_nothing_for_a_lag():
    """A lag under which tokens that are far apart are compared with nothing is not supported by them."""
    batch = table(prompts=100, length=16)
    rollout, trainer = (
        side.reshape(batch.sequences, -1).copy() for side in (batch.rollout_logprobs_T, batch.trainer_logprobs_T)
    )
    rollout[:40, 9:13], rollout[:40, 13:] = -0.01, -3.0
    trainer[:40, 9], trainer[:40, 10:] = -2.0, -0.02
    assert not alignment_report(
        with_trainer(replace(batch, rollout_logprobs_T=rollout.ravel()), trainer.ravel())
    ).refused


def starting_sure(batch, tokens):
    """Both sides are nearly certain of the first tokens of every sequence, as of a phrase that all begin with."""
    sure_T = -0.4 * np.random.default_rng(5).random(batch.tokens)
    rollout_T = np.where(batch.position_T < tokens, sure_T, batch.rollout_logprobs_T)
    trainer_T = np.where(batch.position_T < tokens, 0.999 * sure_T, batch.trainer_logprobs_T)
    return with_trainer(replace(batch, rollout_logprobs_T=rollout_T), trainer_T)


def test_shifts_that_begin_at_any_of_the_first_tokens_have_one_name():
    batch = table(length=120, peaked=0.0)
    for sequence in range(40):
        batch = shifted(batch, [sequence], -1, first=sequence // 3)
    assert alignment_report(batch).counts == {Misalignment.TOKEN_DROPPED: 40}


def test_a_shift_after_sure_tokens_that_do_not_fit_it_is_not_of_the_whole_sequence():
    batch = shifted(starting_sure(table(length=200, peaked=0.0), 12), range(0, 40, 4), -1, first=12)
    assert alignment_report(batch).counts == {Misalignment.TOKEN_DROPPED: 10}


def test_a_shift_that_begins_at_a_resume_is_a_lost_token_even_if_few_tokens_stand_before_it():
    batch = starting_sure(table(length=80, peaked=0.0), 4)
    batch = shifted(replace(batch, token_columns=versions(batch, 4)), range(0, 40, 4), -1, first=4)
    assert alignment_report(batch).counts == {Misalignment.TOKEN_DROPPED: 10}
