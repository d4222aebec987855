"""Ids and one logprob a token, nothing else: what `compare` says of the semantic layer from samples of one prompt."""

from dataclasses import replace

import numpy as np
import pytest
from compare_tokens import compare
from worlds.sibling_tree import at, tree

from rlaudit.diagnosis.compare_settings import CompareSettings
from rlaudit.layers import Verdict
from rlaudit.meaning.broken_groups import Broken
from rlaudit.meaning.candidates import RAW, Semantics
from rlaudit.meaning.from_siblings import prompts_needed
from rlaudit.meaning.meaning import Kind
from rlaudit.meaning.sibling_words import mismatch_in_siblings
from rlaudit.meaning.words import NOT_WITHOUT

FAST = CompareSettings(replicates=200)
AT_07 = Semantics(temperature=0.7)
HONEST = at()


def said(sampler, report, trainer, asked=RAW, trained=RAW, prompts=192, samples=16, seed=1):
    batch = tree(
        np.random.default_rng(seed),
        prompts,
        samples,
        sampler=sampler,
        report=report,
        trainer=trainer,
        sharpness=(1.0, 9.0),
        noise=1e-3,
    )
    found = compare([batch], asked, trained, FAST)
    return found.meaning.kind, found


def test_an_honest_log_matches():
    kind, found = said(HONEST, HONEST, HONEST, prompts=512)
    assert kind is Kind.AGREE
    assert found.verdicts[0] is Verdict.MATCH
    # Samples of a prompt show it.
    assert NOT_WITHOUT not in found.not_seen


def test_too_few_samples_rule_nothing_out_and_it_is_known_how_many_would():
    for samples, would_do in ((16, True), (4, False)):
        kind, found = said(HONEST, HONEST, HONEST, prompts=48, samples=samples)
        assert kind in {Kind.UNTOLD, Kind.NOTHING}
        assert (prompts_needed(found.evidence.siblings.report) is not None) == would_do


@pytest.mark.parametrize("hidden", [at(top_p=0.98), at(top_k=20), at(min_p=0.02), at(0.95), at(1.05)])
def test_no_deviation_that_matters_passes_where_a_sound_log_would_be(hidden):
    _, found = said(hidden, HONEST, HONEST, prompts=512)
    assert found.verdicts[0] is not Verdict.MATCH


def test_a_penalty_that_was_requested_and_that_both_sides_leave_out_is_named():
    asked = Semantics(repetition_penalty=1.3)
    kind, found = said(at(repetition_penalty=1.3), HONEST, HONEST, asked=asked)
    assert kind is Kind.LEFT_OUT
    assert found.layers[0].causes == ("penalty",)
    assert "repetition_penalty=1" in found.layers[0].next
    hidden, _ = said(at(0.7), HONEST, HONEST, asked=asked)
    assert hidden is Kind.HIDDEN_SAMPLING


def test_a_flatter_sampler_is_not_said_to_draw_the_same_token_more_often():
    _, found = said(at(1.4), HONEST, HONEST)
    report = found.evidence.siblings.report
    agreeing_more = replace(report, excess=replace(report.excess, value=abs(report.excess.value)))
    words = mismatch_in_siblings(Kind.HIDDEN_SAMPLING, replace(found.evidence.siblings, report=agreeing_more)).because
    assert "likely tokens less often" in words and "more often" not in words


def test_raw_logprobs_are_named_where_a_temperature_was_asked_for():
    kind, found = said(at(0.7), HONEST, at(0.7), asked=AT_07, trained=AT_07)
    assert found.verdicts[0] is Verdict.MISMATCH
    assert kind is Kind.RAW_REPORT


@pytest.mark.parametrize(("hidden", "kind"), [(at(top_p=0.8), Kind.HIDDEN_FILTER), (at(0.7), Kind.HIDDEN_SAMPLING)])
def test_what_neither_side_knows_of_is_told_from_the_tokens(hidden, kind):
    told, found = said(hidden, HONEST, HONEST)
    assert told is kind
    assert found.verdicts[0] is Verdict.MISMATCH


def test_a_trainer_at_another_temperature_is_told():
    kind, found = said(at(0.7), at(0.7), at(0.75), asked=AT_07, trained=AT_07)
    assert found.verdicts[0] is Verdict.MISMATCH
    assert kind in {Kind.TRAINER, Kind.UNEXPLAINED_BIAS}


def test_samples_that_are_no_siblings_show_nothing_and_the_report_says_why():
    batch = tree(np.random.default_rng(3), 192, 16, sampler=HONEST, report=HONEST, noise=1e-3)
    scrambled = replace(batch, token_id_T=np.random.default_rng(4).integers(0, 50_000, batch.tokens))
    found = compare([scrambled], RAW, RAW, FAST)
    assert found.verdicts[0] is Verdict.NOTHING_FOUND and found.limits.inverse_temperature is None
    assert Broken.OTHER_CONTEXTS in found.evidence.siblings.broken
    assert Broken.OTHER_CONTEXTS.value in found.layers[0].evidence
    alone = compare([replace(scrambled, trainer_logprobs_T=np.full(batch.tokens, np.nan))], RAW, RAW, FAST)
    assert (alone.meaning.kind, alone.verdicts[0]) == (Kind.UNTOLD, Verdict.INCONCLUSIVE)
    # What they leave open is not known either: no size of it is said.
    assert "% off" not in alone.layers[0].because


def test_copies_may_be_a_greedy_sampler_and_show_nothing_to_pass():
    batch = tree(np.random.default_rng(3), 192, 1, sampler=HONEST, report=HONEST, trainer=HONEST, noise=1e-3)
    four = batch.take(np.repeat(np.arange(batch.sequences), 4))
    found = compare([four], RAW, RAW, FAST)
    assert (found.meaning.kind, found.verdicts[0]) == (Kind.COPIED, Verdict.INCONCLUSIVE)


def test_two_samples_of_other_prompts_say_nothing():
    batch = tree(np.random.default_rng(5), 400, 1, sampler=HONEST, report=HONEST, noise=1e-3)
    assert compare([batch], RAW, RAW, FAST).evidence.siblings is None


@pytest.mark.parametrize(("apart", "kind"), [(0.02, Kind.TRAINER), (0.5, Kind.OFF_TRAINER)])
def test_a_temperature_is_named_only_if_the_log_ratio_follows_the_logprobs(apart, kind):
    batch = tree(np.random.default_rng(1), 192, 16, sampler=HONEST, report=HONEST, trainer=at(1.25), noise=1e-3)
    noise_T = np.random.default_rng(2).standard_normal(batch.tokens) * -np.expm1(batch.rollout_logprobs_T)
    trainer_T = np.minimum(batch.trainer_logprobs_T + apart * noise_T, 0.0)
    found = compare([replace(batch, trainer_logprobs_T=trainer_T)], RAW, RAW, FAST)
    semantic = found.layers[0]
    assert (found.meaning.kind, semantic.verdict) == (kind, Verdict.MISMATCH)
    assert semantic.fits == (("trainer-temperature", "wrong-weights") if kind is Kind.OFF_TRAINER else None)
    assert bool(semantic.causes) == (kind is Kind.TRAINER)
