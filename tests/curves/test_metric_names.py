"""Names of training logs, against what frameworks call the metrics of a comparison."""

import re
from pathlib import Path

import numpy as np
import pytest

from rlaudit.curves.curve import Curve, Run
from rlaudit.curves.logged_metric import Clip, Group, Weights
from rlaudit.curves.metric_names import KNOWN, known_metric
from rlaudit.curves.pairing import pair_up

# Key of a log, what rlaudit calls the quantity, a framework that logs it so.
NAMES = [
    ("rl/clamp_log_ratio_new_old_indicator", "clip_fraction", "PipelineRL"),
    ("rl/ess", "effective_sample_size", "PipelineRL"),
    ("rollout_corr/rollout_is_eff_sample_size", "effective_sample_size", "verl"),
    ("actor/entropy", "entropy", "verl"),
    ("entropy", "entropy", "TRL"),
    ("entropy/all/mean", "entropy", "prime-rl"),
    ("rl/entropy", "entropy", "PipelineRL"),
    ("mismatch_kl", "k1", "slime"),
    ("optim/kl_sample_train_v1", "k1", "Tinker"),
    ("rollout_corr/kl", "k1", "verl"),
    ("rollout_correction/kl", "k1", "ms-swift"),
    ("train/vllm_kl", "k1", "OpenRLHF"),
    ("optim/kl_sample_train_v2", "k2", "Tinker"),
    ("mismatch_k3_kl", "k3", "slime"),
    ("mismatch_kl/all/mean", "k3", "prime-rl"),
    ("rl/kl_new_old", "k3", "PipelineRL"),
    ("rollout_corr/k3_kl", "k3", "verl"),
    ("rollout_correction/k3_kl", "k3", "ms-swift"),
    ("train/gen_kl_error", "k3", "NeMo-RL"),
    ("debug/vllm_vs_local_logprob_diff_mean", "mean_abs_log_ratio", "open-instruct"),
    ("policy/rollout_train_logprobs_abs_diff_mean", "mean_abs_log_ratio", "SkyRL"),
    ("rl/mean_abs_log_ratio_new_old", "mean_abs_log_ratio", "PipelineRL"),
    ("sampling/sampling_logp_difference/mean", "mean_abs_log_ratio", "TRL"),
    ("train/train_rollout_logprob_abs_diff", "mean_abs_log_ratio", "slime"),
    ("actor/train_infer_ratio_token_mean@sum", "mean_ratio", "ROLL"),
    ("rl/ratio_new_old", "mean_ratio", "PipelineRL"),
    ("train/sampling_importance_ratio", "mean_ratio", "NeMo-RL"),
    ("rollout_corr/rollout_is_mean", "mean_weight", "verl"),
    ("sampling/importance_sampling_ratio/mean", "mean_weight", "TRL"),
    ("training/rollout_probs_diff_mean", "probs_diff_mean", "verl"),
    ("rollout_corr/rollout_is_ratio_fraction_high", "share_corrected", "verl"),
    ("train/token_mult_prob_error", "token_mult_prob_error", "NeMo-RL"),
]


@pytest.mark.parametrize(("key", "canonical", "framework"), NAMES, ids=str)
def test_a_key_is_read_as_what_its_framework_means_by_it(key: str, canonical: str, framework: str) -> None:
    found = known_metric(key)
    assert found is not None
    assert found.canonical == canonical and framework in found.framework


def test_one_quantity_by_two_definitions_is_not_one_meaning() -> None:
    product, geometric = known_metric("rollout_corr/chi2_seq"), known_metric("rollout_correction/chi2_seq")
    assert product is not None and geometric is not None
    assert product.canonical == geometric.canonical and product.meaning != geometric.meaning


def test_what_was_logged_after_clipping_says_so() -> None:
    for key in ("sampling/importance_sampling_ratio/mean", "rollout_corr/rollout_is_mean", "behave_imp_weight"):
        found = known_metric(key)
        assert found is not None
        assert found.clip is Clip.AFTER


def test_every_logprob_metric_says_whose_logprobs_and_whether_clipped() -> None:
    for metric in KNOWN:
        if metric.group is Group.LOGPROBS:
            assert metric.weights is not Weights.NONE
            assert metric.clip is not Clip.NONE


def test_every_pattern_is_an_expression_and_none_takes_all() -> None:
    for metric in KNOWN:
        assert not re.fullmatch(metric.pattern, "my/own/metric")


def test_an_unknown_name_is_unknown() -> None:
    assert known_metric("my/own/metric") is None


def run_with(*keys: str) -> Run:
    curves = {key: Curve(key, np.arange(30), np.arange(30.0)) for key in keys}
    return Run("run", (Path("run"),), "CSV", "step", curves, ())


def test_two_names_of_one_meaning_are_compared() -> None:
    pairing = pair_up([run_with("rollout_corr/kl")], run_with("offpolicy/kl"), ())
    assert [(pair.reference_key, pair.candidate_key) for pair in pairing.pairs] == [("rollout_corr/kl", "offpolicy/kl")]


def test_two_names_of_two_meanings_are_not_and_the_difference_is_said() -> None:
    pairing = pair_up([run_with("rollout_corr/k3_kl")], run_with("mismatch_kl/all/mean"), ())
    assert pairing.pairs == ()
    ((name, why),) = pairing.unknown
    assert name == "rollout_corr/k3_kl"
    assert "rollout's weights" in why
    assert "current policy" in why


def test_a_metric_of_one_side_alone_is_unknown() -> None:
    pairing = pair_up([run_with("rl/reward", "rl/kl_new_old")], run_with("rl/reward", "rl/entropy"), ())
    assert dict(pairing.unknown) == {"rl/kl_new_old": "not in the candidate", "rl/entropy": "only in the candidate"}


def test_known_metrics_are_compared_and_other_keys_are_named() -> None:
    keys = ("rl/reward", "my_loss", "train/learning_rate", "timing_s/step", "epoch")
    pairing = pair_up([run_with(*keys)], run_with(*keys), ())
    assert [pair.reference_key for pair in pairing.pairs] == ["rl/reward"]
    assert pairing.left == ("my_loss",)


def test_without_a_known_name_everything_but_bookkeeping_is_compared() -> None:
    keys = ("my_loss", "learning_rate", "time/step")
    pairing = pair_up([run_with(*keys)], run_with(*keys), ())
    assert [pair.reference_key for pair in pairing.pairs] == ["my_loss"]


def test_a_metric_may_be_asked_for_by_its_canonical_name() -> None:
    keys = ("rl/reward", "rl/kl_new_old", "my_loss")
    pairing = pair_up([run_with(*keys)], run_with(*keys), ["k3", "my_loss"])
    assert [pair.reference_key for pair in pairing.pairs] == ["rl/kl_new_old", "my_loss"]


def test_a_metric_asked_for_and_absent_is_unknown() -> None:
    assert pair_up([run_with("a")], run_with("a"), ["b"]).unknown == (("b", "not in run, run"),)
