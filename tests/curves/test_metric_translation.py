"""`rlaudit list metrics` and `rlaudit explain`: one quantity, its many names, and what is usual."""

import pytest

from rlaudit.cli.app import run
from rlaudit.curves.metric_names import BANDS, KNOWN
from rlaudit.curves.metric_translation import readable_keys


@pytest.fixture
def listed(capsys: pytest.CaptureFixture[str]) -> str:
    assert run(["list", "metrics"]) == 0
    return capsys.readouterr().out


def block(listed: str, name: str) -> list[str]:
    return next(part for part in listed.split("\n\n") if part.startswith(f"{name}:")).splitlines()


def test_every_name_of_a_logprob_metric_is_listed_with_its_framework(listed: str) -> None:
    for metric in KNOWN:
        if metric.group.value in ("logprobs", "correction", "objective"):
            (line,) = {
                line
                for line in listed.splitlines()
                if f"{metric.framework}: {readable_keys(metric.pattern)[0]}" in line
            }
            assert line.startswith("    ")


def test_sign_level_clipping_and_policy_are_said_where_they_differ(listed: str) -> None:
    k3 = {line.split(":")[0].strip(): line for line in block(listed, "k3")}
    assert k3["slime"].endswith(": as here")
    assert "average over tokens, then over sequences, of r - 1 - log r" in k3["PipelineRL"]
    assert "current policy" in k3["prime-rl"]
    assert "clamps it at 10" in k3["ms-swift, rLLM"]
    assert any("after clipping" in line for line in block(listed, "mean_weight") if "TRL" in line)
    assert "signed" in block(listed, "probs_difference")[1]


def test_a_name_that_two_frameworks_use_for_two_things_is_under_both(listed: str) -> None:
    assert any("prime-rl: mismatch_kl/[all/]mean" in line for line in block(listed, "k3"))
    assert any("slime: [train/]mismatch_kl:" in line for line in block(listed, "k1"))


def test_every_band_has_a_source_and_belongs_to_a_metric_that_is_listed(listed: str) -> None:
    for name, bands in BANDS.items():
        lines = block(
            listed, {"mean_ratio": "mean_ratio_minus_one", "effective_sample_size": "ess_token"}.get(name, name)
        )
        for band in bands:
            assert f"    band: {band.values}: {band.means} ({band.source})" in lines
            assert band.source


def test_the_list_is_plain_lines_without_fields_to_be_filled(listed: str) -> None:
    assert "\x1b" not in listed
    assert "{" not in listed


@pytest.mark.parametrize(
    ("key", "meaning"),
    [
        ("rollout_corr/kl", "k1 in verl, rLLM"),
        ("mismatch_kl/all/mean", "k3 in prime-rl"),
        ("train/mismatch_kl", "k1 in slime"),
        ("rl/reward", "reward in PipelineRL"),
    ],
)
def test_a_key_of_a_dashboard_can_be_explained(key: str, meaning: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain", key]) == 0
    assert f"{key} is {meaning}" in capsys.readouterr().out


def test_a_metric_is_explained_with_its_names_elsewhere(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain", "token_mult_prob_error"]) == 0
    printed = capsys.readouterr().out
    assert "Elsewhere:" in printed
    assert "below 1.05" in printed
    assert run(["explain", "chi2_token"]) == 0
    assert "minus 1" in capsys.readouterr().out


def test_what_nothing_is_called_is_an_error_that_names_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain", "token_mult_prob_eror"]) == 2
    assert "token_mult_prob_error" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("pattern", "keys"),
    [
        (r"(rollout_corr|offpolicy)/kl", ("rollout_corr/kl", "offpolicy/kl")),
        (r"(train/)?vllm_kl", ("[train/]vllm_kl",)),
        (r"(.*/)?task_reward(/avg)?", ("[.../]task_reward[/avg]",)),
        (r"objective/scores|scores", ("objective/scores", "scores")),
        (r"(train/)?completions?(/mean)?_length", ("[train/]completion[s][/mean]_length",)),
    ],
)
def test_a_pattern_is_written_as_a_person_would(pattern: str, keys: tuple[str, ...]) -> None:
    assert readable_keys(pattern) == keys
