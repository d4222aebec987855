from dataclasses import replace

import numpy as np
import pytest
from compare_tokens import compare
from logged_tokens import logged

from rlaudit.diagnosis.compare_settings import CompareSettings
from rlaudit.errors import NotFinished
from rlaudit.layers import Verdict
from rlaudit.meaning.candidates import Semantics
from rlaudit.meaning.meaning import Kind
from rlaudit.meaning.words import CANNOT_TELL, NOT_WITHOUT
from rlaudit.statistics.measurement.measure import measure
from rlaudit.tokens.fault import Faults

PLAIN = Semantics()
FAST = CompareSettings(replicates=300)


def compared(batch, sampling=PLAIN, trainer=PLAIN, **arguments):
    """What is said of each layer is what was found of it."""
    found = compare([batch], sampling, trainer, FAST, **arguments)
    assert tuple(layer.verdict for layer in found.layers) == found.verdicts
    return found


def test_engines_that_agree_match_in_all_layers():
    found = compared(logged(noise=1e-4))
    assert found.verdicts == (Verdict.MATCH,) * 3
    assert found.evidence.counts.compared_tokens == 3200


@pytest.mark.parametrize("sequences", [1, 2, 80])
def test_bitwise_parity_is_a_match_with_figures_of_zero(sequences):
    batch = logged(noise=0.1).take(np.arange(sequences))
    found = compared(replace(batch, trainer_logprobs_T=batch.rollout_logprobs_T))
    assert (found.evidence.measurements["k3"].value, found.attribution.named) == (0.0, ())
    assert Verdict.MISMATCH not in found.verdicts


def test_tokens_without_a_choice_compare():
    batch = logged(noise=0.1)
    certain_T = np.zeros(batch.tokens)
    found = compared(replace(batch, rollout_logprobs_T=certain_T, trainer_logprobs_T=certain_T))
    assert found.evidence.measurements["k3"].value == 0.0


def test_figures_of_a_stream_are_those_of_the_whole():
    whole = logged(noise=0.05)
    parts = [whole.take(np.arange(first, first + 16)) for first in range(0, 80, 16)]
    streamed = compare(parts, PLAIN, PLAIN, FAST)
    for name, found in measure(whole.pairs(40), replicates=300).items():
        assert streamed.evidence.measurements[name].value == pytest.approx(found.value), name
        assert streamed.evidence.measurements[name].low == pytest.approx(found.low), name


def test_numbers_that_are_apart_are_an_inference_path_mismatch_and_nothing_is_named_by_elimination():
    found = compared(logged(noise=0.2))
    assert found.verdicts == (Verdict.MATCH, Verdict.MISMATCH, Verdict.NOT_TESTED)
    assert found.attribution.unexplained == 1.0
    assert found.layers[1].causes == ()


def test_raw_logprobs_are_seen_by_the_engines_own_first_choices():
    hot = Semantics(0.6)
    found = compared(logged(temperature=0.6, reported_at=1.0, tops=True), hot, hot)
    assert (found.verdicts[0], found.layers[0].cause) == (Verdict.MISMATCH, "raw-logprobs")
    assert found.verdicts[1] is Verdict.NOT_TESTED


@pytest.mark.parametrize("temperature", [0.6, 1.4])
def test_raw_logprobs_of_sampled_tokens_alone_are_named_by_a_mean_ratio_above_one(temperature):
    asked = Semantics(temperature)
    found = compared(logged(temperature=temperature, reported_at=1.0, entropy=False), asked, asked)
    assert (found.verdicts[0], found.layers[0].cause) == (Verdict.MISMATCH, "raw-logprobs")
    assert found.evidence.measurements["mean_ratio_minus_one"].low > 0.01


def test_a_mean_ratio_above_one_at_temperature_one_has_no_name():
    found = compared(logged(temperature=0.6, reported_at=1.0, trainer_at=0.6, entropy=False))
    assert (found.verdicts[0], found.meaning.kind) == (Verdict.MISMATCH, Kind.UNEXPLAINED_BIAS)


@pytest.mark.parametrize("sampled, trainer_at", [(0.7, 1.0), (0.7, 0.9)])
def test_a_trainer_at_another_temperature_is_told_from_a_wrong_report(sampled, trainer_at):
    asked = Semantics(sampled)
    batch = logged(temperature=sampled, trainer_at=trainer_at, tops=True, trainer_tops=True, noise=1e-3)
    found = compared(batch, asked, asked)
    assert (found.verdicts[0], found.layers[0].cause) == (Verdict.MISMATCH, "trainer-temperature")
    assert f"logits by {sampled:g}" in found.layers[0].next


def test_the_margin_of_the_verdict_is_that_of_the_causes():
    loose, strict = (
        compare([logged(noise=0.05)], PLAIN, PLAIN, replace(FAST, margin=margin)) for margin in (1e-2, 1e-5)
    )
    assert (loose.attribution.margin, strict.attribution.margin) == (1e-2, 1e-5)
    assert (loose.verdicts[1], strict.verdicts[1]) == (Verdict.MATCH, Verdict.MISMATCH)


def test_filters_that_the_trainer_does_not_replay_are_a_semantic_mismatch():
    whole = logged(top_p=0.8)
    kept = np.log(0.85)
    found = compared(
        replace(whole, rollout_logprobs_T=np.minimum(whole.rollout_logprobs_T - kept, 0)), Semantics(top_p=0.8)
    )
    assert found.verdicts[0] is Verdict.MISMATCH
    # In vLLM's own words, with the value that was requested.
    assert found.layers[0].next == "sample with top_p=1, or apply top_p=0.8 in the trainer as well"


def test_a_hidden_filter_shows_against_the_trainers_entropy():
    found = compared(logged(top_p=0.7, noise=1e-3))
    assert (found.verdicts[0], found.layers[0].cause) == (Verdict.MISMATCH, "hidden sampling parameters")


def test_entropies_that_tokens_do_not_fit_show_the_trainer_where_the_report_is_as_far_from_it():
    found = compared(logged(temperature=0.8, trainer_at=1.0, noise=1e-3), Semantics(0.8))
    assert found.layers[0].cause == "the trainer recomputes another temperature or filter"


def test_sampled_logprobs_alone_match_nothing_and_say_what_they_cannot_tell():
    found = compared(logged(noise=1e-4, entropy=False))
    assert found.verdicts[:2] == (Verdict.NOTHING_FOUND, Verdict.MATCH)
    assert found.meaning.kind is Kind.NOTHING
    assert set(found.not_seen) >= {NOT_WITHOUT, *CANNOT_TELL}


def test_few_tokens_are_inconclusive():
    found = compared(logged(prompts=4, samples=1, length=10, noise=1e-3))
    assert found.verdicts[0] is Verdict.INCONCLUSIVE
    assert "300 prompts without a clipped one rule out 1 %" in found.layers[1].next


def test_shifted_sequences_are_named_and_in_no_figure():
    whole = logged(noise=1e-3)
    shifted = whole.trainer_logprobs_T.copy()
    for sequence in range(0, 80, 2):
        own = slice(whole.offsets[sequence], whole.offsets[sequence + 1])
        shifted[own] = np.roll(shifted[own], 1)
    found = compared(replace(whole, trainer_logprobs_T=shifted))
    assert (found.verdicts[0], found.layers[0].cause) == (Verdict.MISMATCH, "off-by-one")
    assert found.evidence.counts.misaligned == {"off-by-one": 40}
    assert found.evidence.counts.compared_tokens == 1600
    assert found.evidence.measurements["k3"].value < 1e-4
    assert (found.evidence.alignment.misaligned[0].name, found.evidence.alignment.misaligned[0].first) == (
        "prompt 0, sample 0",
        0,
    )


def test_no_trainer_at_all_is_not_finished_and_says_what_to_do():
    whole = logged()
    whole.trainer_logprobs_T[:] = np.nan
    one_of_each_prompt = np.unique(whole.prompt_S, return_index=True)[1]
    with pytest.raises(NotFinished, match="none of 40 sequences has a trainer logprob") as refused:
        compared(whole.take(np.sort(one_of_each_prompt)))
    assert "--score MODEL" in str(refused.value)


def test_tokens_outside_a_replaying_trainers_filters_are_counted_and_have_no_ratio():
    whole = logged(noise=1e-4)
    whole.trainer_logprobs_T[5] = -np.inf
    faults = Faults()
    settings = replace(FAST, trainer_excludes=True)
    found = compare([whole], PLAIN, PLAIN, settings, faults=faults)
    assert (found.evidence.counts.impossible_tokens, found.evidence.counts.compared_tokens, faults.count) == (
        1,
        3199,
        0,
    )
    refused = Faults()
    assert compared(whole, faults=refused).evidence.counts.compared_tokens == 3160
    assert refused.count == 1


@pytest.mark.parametrize("tokens", [1, 40])
def test_one_sequence_shows_nothing(tokens):
    batch = logged(noise=0.0, length=tokens).take([0])
    found = compared(replace(batch, trainer_logprobs_T=batch.trainer_logprobs_T - 0.1))
    assert found.attribution.named == ()
    assert found.verdicts[0] is Verdict.INCONCLUSIVE


def test_a_table_in_which_every_sequence_is_shifted_is_named_and_has_no_figures():
    batch = logged(noise=1e-4, length=60)
    found = compared(replace(batch, trainer_logprobs_T=np.roll(batch.trainer_logprobs_T, 1)))
    assert (found.layers[0].cause, found.verdicts[0]) == ("off-by-one", Verdict.MISMATCH)
    assert (found.evidence.measurements["k3"].value, found.evidence.measurements["k3"].reason) == (
        None,
        "there is no token",
    )


def test_a_loss_mask_that_counts_nothing_is_said():
    batch = logged(length=10)
    with pytest.raises(NotFinished, match="the loss mask counts none of 800 tokens"):
        compared(replace(batch, token_columns={"loss_mask": np.zeros(batch.tokens, dtype=np.bool_)}))
