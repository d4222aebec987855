"""What a log without a finding would have shown, and from which limits on it may be said that nothing was found."""

import pytest
from compare_tokens import compare
from logged_tokens import logged

from rlaudit.diagnosis.compare_settings import CompareSettings
from rlaudit.layers import Verdict
from rlaudit.meaning.candidates import RAW
from rlaudit.meaning.limit_words import too_little, would_have_shown
from rlaudit.meaning.limits import Limits, shifted_limit, smallest_named, suspicious
from rlaudit.meaning.meaning import Kind

FEW = CompareSettings(replicates=200)


def judged(**table):
    return compare([logged(**table)], RAW, RAW, FEW)


@pytest.mark.parametrize("temperature", [0.9, 1.1])
def test_entropies_of_few_tokens_do_not_match_a_temperature_that_neither_side_knows(temperature):
    """Its interval reaches far over what matters, and 0 lies at its edge: a log of 2,000 tokens was called a match."""
    kinds = [
        judged(seed=seed, prompts=16, length=60, temperature=temperature, reported_at=1.0, trainer_at=1.0).meaning.kind
        for seed in range(2)
    ]
    assert not {Kind.AGREE, Kind.NOTHING} & set(kinds)


def test_entropies_match_where_a_temperature_five_percent_off_would_have_been_seen_and_find_nothing_before():
    many, fewer = judged(prompts=128, length=60), judged(prompts=18, length=24)
    assert many.meaning.kind is Kind.AGREE
    assert fewer.meaning.kind is Kind.NOTHING
    assert many.limits.inverse_temperature < 0.1 < fewer.limits.inverse_temperature


def test_sampled_logprobs_alone_find_nothing_and_name_the_column_that_shows_the_rest():
    found = judged(entropy=False, samples=1, prompts=64)
    semantic = found.layers[0]
    assert semantic.verdict is Verdict.NOTHING_FOUND
    assert "would show here: a mean ratio off by" in semantic.because and "of sequences" in semantic.because
    assert "trainer_entropy" in semantic.next
    assert found.limits.inverse_temperature is None and found.limits.cannot_show[0] in found.not_seen


def test_too_little_data_says_how_much_more_settles_it():
    semantic = judged(prompts=10, length=40).layers[0]
    assert semantic.verdict is Verdict.INCONCLUSIVE
    assert "too few to rule one out" in semantic.because and "prompts in place of these" in semantic.next


@pytest.mark.parametrize(("sequences", "shifted", "most"), [(512, 0, 0.006), (512, 2, 0.013), (1, 1, 1.0)])
def test_the_share_of_sequences_that_may_be_shifted_is_that_of_the_whole_log(sequences, shifted, most):
    assert shifted_limit(sequences, shifted) == pytest.approx(most, rel=0.1)


def test_a_limit_is_the_least_effect_or_what_the_error_makes_of_the_level():
    assert smallest_named(1e-4, 0.03, 64, 1e-4) == 0.03
    assert 4.0 < smallest_named(1.0, 0.03, 64, 1e-4) < 6.0 < smallest_named(1.0, 0.03, 8, 1e-4)
    assert suspicious(0.03, 0.01, 64, 0.03) and not suspicious(0.024, 0.01, 64, 0.03)
    assert not suspicious(0.01, 1e-4, 64, 0.03)


def test_limits_are_said_in_units_of_the_reader():
    said = would_have_shown(
        Limits(mean_ratio=0.013, inverse_temperature=0.04, shifted=0.004, mass=0.03, top_p=0.9199, top_k=20)
    )
    assert said == (
        "Faults from this size on would show here: a mean ratio off by 1.3 %, a temperature off by 4.2 % or "
        "logprobs shifted by a token in 0.4 % of sequences. So would a top-p that cuts 3 % of the probability. The "
        "drawn tokens rule out a top-p below 0.919 or a top-k below 20"
    )
    assert would_have_shown(Limits()) == ""
    needed = too_little(Limits(mean_ratio=0.04, inverse_temperature=0.6, shifted=0.2), prompts=20, sequences=40)
    assert [line.split(":")[0] for line in needed[:2]] == ["take about 80 prompts in place of these 20"] * 2
    assert needed[2].startswith("take about 80 sequences")
