"""Names of training logs, against what frameworks call the metrics of a comparison."""

import re
from pathlib import Path

import numpy as np
import pytest

from rlaudit.curves.curve import Curve, Run
from rlaudit.curves.logged_metric import Clip, Group, Weights
from rlaudit.curves.metric_names import KNOWN, known_metric
from rlaudit.curves.pairing import pair_up

# What a dashboard's curve is called where it is not exactly the metric.
RENAMED = {
    "ppo_clip_fraction": "clip_fraction",
    "gspo_clip_fraction": "clip_fraction",
    "mean_ratio_minus_one": "mean_ratio",
    "ess_token": "effective_sample_size",
    "tail_fraction_2": "share_corrected",
}
ALIASES = [
    ("entropy", "PipelineRL", "rl/entropy"),
    ("entropy", "TRL", "entropy"),
    ("entropy", "prime-rl", "entropy/all/mean"),
    ("entropy", "verl", "actor/entropy"),
    ("ess_token", "PipelineRL", "rl/ess"),
    ("ess_token", "verl", "rollout_corr/rollout_is_eff_sample_size"),
    ("gspo_clip_fraction", "PipelineRL", "rl/clamp_log_ratio_new_old_indicator"),
    ("k1", "OpenRLHF", "train/vllm_kl"),
    ("k1", "Tinker", "optim/kl_sample_train_v1"),
    ("k1", "ms-swift", "rollout_correction/kl"),
    ("k1", "slime", "mismatch_kl"),
    ("k1", "verl", "rollout_corr/kl"),
    ("k2", "Tinker", "optim/kl_sample_train_v2"),
    ("k3", "NeMo-RL", "train/gen_kl_error"),
    ("k3", "PipelineRL", "rl/kl_new_old"),
    ("k3", "ms-swift", "rollout_correction/k3_kl"),
    ("k3", "prime-rl", "mismatch_kl/all/mean"),
    ("k3", "slime", "mismatch_k3_kl"),
    ("k3", "verl", "rollout_corr/k3_kl"),
    ("mean_abs_log_ratio", "PipelineRL", "rl/mean_abs_log_ratio_new_old"),
    ("mean_abs_log_ratio", "SkyRL", "policy/rollout_train_logprobs_abs_diff_mean"),
    ("mean_abs_log_ratio", "TRL", "sampling/sampling_logp_difference/mean"),
    ("mean_abs_log_ratio", "open-instruct", "debug/vllm_vs_local_logprob_diff_mean"),
    ("mean_abs_log_ratio", "slime", "train/train_rollout_logprob_abs_diff"),
    ("mean_ratio_minus_one", "NeMo-RL", "train/sampling_importance_ratio"),
    ("mean_ratio_minus_one", "PipelineRL", "rl/ratio_new_old"),
    ("mean_ratio_minus_one", "ROLL", "actor/train_infer_ratio_token_mean@sum"),
    ("mean_ratio_minus_one", "TRL", "sampling/importance_sampling_ratio/mean"),
    ("mean_ratio_minus_one", "verl", "rollout_corr/rollout_is_mean"),
    ("ppo_clip_fraction", "PipelineRL", "rl/clamp_log_ratio_new_old_indicator"),
    ("probs_diff_mean", "verl", "training/rollout_probs_diff_mean"),
    ("tail_fraction_2", "verl", "rollout_corr/rollout_is_ratio_fraction_high"),
    ("token_mult_prob_error", "NeMo-RL", "train/token_mult_prob_error"),
]


@pytest.mark.parametrize(("name", "framework", "alias"), ALIASES, ids=str)
def test_what_a_framework_calls_a_metric_is_read_as_that_metric(name: str, framework: str, alias: str) -> None:
    found = known_metric(alias)
    assert found is not None
    if alias == "mismatch_kl":
        assert found.canonical == "k1"
        return
    assert found.canonical in (name, RENAMED.get(name), "mean_weight", "probs_correlation")
    assert framework in found.framework or found.group in (Group.POLICY, Group.REWARD)


def test_names_that_collide_are_kept_apart() -> None:
    prime, slime = known_metric("mismatch_kl/all/mean"), known_metric("mismatch_kl")
    assert prime is not None
    assert slime is not None
    assert (prime.canonical, slime.canonical) == ("k3", "k1")
    product, geometric = known_metric("rollout_corr/chi2_seq"), known_metric("rollout_correction/chi2_seq")
    assert product is not None
    assert geometric is not None
    assert product.canonical == geometric.canonical
    assert product.meaning != geometric.meaning


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
