"""Honest tables with a column or tokens that are not what they claim: what `compare` makes of them, and of faults."""

from dataclasses import replace

import numpy as np
import pytest
from compare_tokens import compare
from drawn_tokens import drawn, without_ends
from logged_tokens import logged
from token_tables import table, with_columns, with_trainer

from rlaudit.diagnosis.compare_settings import CompareSettings
from rlaudit.layers import Verdict
from rlaudit.meaning.broken_groups import Broken
from rlaudit.meaning.candidates import Semantics
from rlaudit.meaning.log_statistics import sharpness_of
from rlaudit.meaning.token_evidence import token_evidence
from rlaudit.meaning.token_tests import ALPHA, TEMPERATURE_EFFECT
from rlaudit.tokens.first_look import first_look

FAST = CompareSettings(replicates=200)
SIDES = ("rollout", "trainer")


def compared(batch, temperature=1.0):
    asked = Semantics(temperature=temperature)
    return compare([batch], asked, asked, replace(FAST, first_look=first_look([batch])))


def named(found):
    return found.attribution.names


@pytest.mark.parametrize("entropies", [False, True])
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("sharper", [False, True])
def test_missing_ends_explain_a_little_and_not_a_lower_temperature(seed, sharper, entropies):
    world = {"prompts": 48, "samples": 8, "length": 40, "vocabulary": 20, "ends": 0.1, "entropies": entropies}
    whole = drawn(seed, power=1.7 if sharper else 1.0, **world)
    found = compared(without_ends(whole))
    assert (found.verdicts[0] is Verdict.MISMATCH) is sharper
    assert (Broken.WITHOUT_ENDS in found.evidence.siblings.broken) is not sharper
    assert any("lack a logprob of their end token" in line for line in found.not_seen)


@pytest.mark.parametrize("sharper", [False, True])
def test_forced_words_are_left_out_and_the_rest_is_judged(sharper):
    log = drawn(prompts=48, samples=8, forced=(5, 6), power=1.7 if sharper else 1.0)
    found = compared(log)
    assert (found.verdicts[0] is Verdict.MISMATCH) is sharper
    assert found.evidence.counts.compared_tokens == (log.position_T > 1).sum()


def test_entropies_that_were_never_filled_show_nothing():
    found = compared(with_columns(logged(noise=0.01), trainer_entropy=np.zeros(3200)))
    assert found.verdicts[0] is Verdict.NOTHING_FOUND
    assert found.meaning.figures.sharp is None


@pytest.mark.parametrize(("gaps", "said"), [(0, ""), (2000, "too many sequences have a gap in it")])
def test_entropies_that_are_recommended_although_they_were_logged_are_said_to_be_left_out_and_why(gaps, said):
    batch = logged(noise=0.01)
    entropy_T = np.where(np.arange(batch.tokens) < gaps, np.nan, batch.token_columns["trainer_entropy"])
    semantic = compared(with_columns(batch, trainer_entropy=entropy_T)).layers[0]
    assert semantic.verdict is Verdict.MATCH if not gaps else said in semantic.next
    zeros = compared(with_columns(batch, trainer_entropy=np.zeros(batch.tokens))).layers[0]
    assert "The trainer_entropy of this log is not used: " in zeros.next


def test_a_copied_trainer_column_shows_nothing_of_the_trainer():
    honest = drawn(prompts=24)
    found = compared(with_trainer(honest, honest.rollout_logprobs_T.copy()))
    assert found.verdicts[1:] == (Verdict.NOT_TESTED, Verdict.NOT_TESTED)
    assert "copy of rollout_logprob" in found.layers[1].because
    assert found.evidence.siblings.trainer is None


@pytest.mark.parametrize("side", ["rollout_logprobs_T", "trainer_logprobs_T"])
@pytest.mark.parametrize("base", [2, 10])
def test_another_base_is_named_and_no_temperature_is_taken_for_one(side, base):
    honest = table(noise=0.05)
    found = compared(replace(honest, **{side: getattr(honest, side) / np.log(base)}))
    assert named(found) >= {"other-base"}
    assert f"{side[:7]}_logprob is in base {base}" in found.layers[0].because
    hotter = logged(noise=0.01, trainer_at=np.log(base))
    assert "other-base" not in named(compared(hotter))


@pytest.mark.parametrize("side", ["rollout_logprobs_T", "trainer_logprobs_T"])
@pytest.mark.parametrize(
    "floored",
    [lambda logprobs_T: np.maximum(logprobs_T, -4.0), lambda logprobs_T: np.log(0.99 * np.exp(logprobs_T) + 0.01)],
)
def test_a_floor_is_named_and_wrong_weights_are_not_taken_for_one(side, floored):
    honest = table(noise=0.02, peaked=0.3)
    found = compared(replace(honest, **{side: floored(getattr(honest, side))}))
    assert named(found) == {"placed-logprobs"}
    assert "is never below" in found.layers[0].because
    apart_T = np.random.default_rng(0).normal(0, 1.5, honest.tokens)
    wrong = with_trainer(honest, np.minimum(honest.trainer_logprobs_T + apart_T, -0.001))
    assert "placed-logprobs" not in named(compared(wrong))


def test_numbers_that_both_sides_have_are_named_if_the_list_beside_them_has_no_room():
    honest = logged(noise=0.01, tops=True)
    tool_T = (honest.position_T >= 10) & (honest.position_T < 16) & (honest.sequence_T % 2 == 0)
    sides = {f"{side}_logprobs_T": np.where(tool_T, 0.0, getattr(honest, f"{side}_logprobs_T")) for side in SIDES}
    assert named(compared(replace(honest, **sides))) == {"placed-logprobs"}
    assert not named(compared(honest))


@pytest.mark.parametrize("name", [int, "s{}".format, lambda number: f"run/{1000 + number}"])
def test_samples_whose_ids_have_gaps_are_no_fair_sample(name):
    honest = drawn(prompts=24, samples=8)
    numbers_S = honest.sample_names_S if name is int else np.arange(honest.sequences)
    honest = replace(honest, sample_names_S=np.array([name(number) for number in numbers_S.tolist()]))
    kept = np.arange(1, honest.sequences, 2)
    assert Broken.GAPS in compared(honest.take(kept)).evidence.siblings.broken
    assert Broken.GAPS not in compared(honest).evidence.siblings.broken


def test_numbers_that_samples_of_other_prompts_have_are_no_gaps():
    honest = drawn(prompts=24, samples=8)
    in_turn_S = np.arange(honest.sequences).reshape(12, 8, 2).transpose(0, 2, 1).ravel()
    names_S = np.array([f"request-{number}" for number in in_turn_S.tolist()])
    assert Broken.GAPS not in compared(replace(honest, sample_names_S=names_S)).evidence.siblings.broken


def test_samples_that_are_too_sharp_and_have_gaps_are_neither_named_nor_let_pass():
    sharper = drawn(prompts=48, samples=16, power=1.7)
    found = compared(sharper.take(np.arange(1, sharper.sequences, 2)))
    assert found.verdicts[0] is Verdict.INCONCLUSIVE
    assert not named(found)


def test_a_choice_among_samples_is_said_to_look_like_a_hidden_temperature():
    hidden = compared(drawn(prompts=48, samples=8, power=1.7))
    assert hidden.verdicts[0] is Verdict.MISMATCH
    assert any("dropped by length, likelihood or ratio" in line for line in hidden.not_seen)


def test_entropies_show_nothing_where_missing_ends_would_explain_what_they_show():
    """Two tokens of 81 and 9 %, and an end of 10 % that is not logged."""
    batch = table(prompts=40)
    drawn_T = np.where(np.random.default_rng(0).random(batch.tokens) < 0.9, np.log(0.81), np.log(0.09))
    entropy = -sum(p * np.log(p) for p in (0.81, 0.09, 0.1))
    batch = with_columns(with_trainer(batch, drawn_T), trainer_entropy=np.full(batch.tokens, entropy))
    assert sharpness_of(token_evidence(batch)).shows(TEMPERATURE_EFFECT, ALPHA)
    assert sharpness_of(token_evidence(batch, ends_missing=0.1)) is None
    assert sharpness_of(token_evidence(batch, ends_missing=0.01)).shows(TEMPERATURE_EFFECT, ALPHA)
