"""`ablate --bisect`: the release that moves a figure, and then the setting of it, on stand-ins of seven releases."""

import pytest
from laboratories import ONE_FACTOR, V0, V1, Laboratory, Run, interpreter_with_fakes

from rlaudit.engines.environments.environment_spec import EnvironmentSpec

# The stand-in runs V0 up to 0.10 and V1, with raw logprobs, from 0.11 on. That 0.9.2 runs V0 on a CPU is refused.
RELEASES = (V0, "0.9.0", "0.9.2", "0.11.2", "0.12.0", "0.15.1", V1)
METRIC = "mean_ratio_minus_one"


@pytest.fixture(scope="module")
def given(shared_laboratory: Laboratory) -> list[str]:
    interpreters = shared_laboratory.folder / "interpreters"
    commands = [
        f"{one}={interpreter_with_fakes(interpreters / one, EnvironmentSpec('vllm', one, 'cpu'))}" for one in RELEASES
    ]
    return [word for command in commands for word in ("--python", command)]


@pytest.fixture(scope="module")
def bisected(shared_laboratory: Laboratory, given: list[str]) -> Run:
    recipe = shared_laboratory.recipe({**ONE_FACTOR, "parity": ["logprobs-mode"]}, name="bisected")
    return shared_laboratory.ablate(recipe, "--bisect", METRIC, *given)


def test_the_neighbours_are_found_and_ablated(bisected: Run) -> None:
    assert bisected.exit_code == 1, bisected.stderr
    found = bisected.report["bisection"]
    assert (found["metric"], found["neighbours"]) == (METRIC, ["0.9.0", "0.11.2"])
    assert found["unmeasured"] == ["0.9.2"] and "0.9.2: mean_ratio_minus_one was not measured: " in bisected.stderr
    assert bisected.report["versions"] == {"from": "0.9.0", "to": "0.11.2"}
    assert bisected.arm("candidate")["environment"] == "vllm 0.11.2"
    assert bisected.effects() == {"logprobs-mode=processed": "removes the mismatch"}
    assert "raw logprobs" in bisected.layer("semantic")["cause"]


def test_fewer_releases_are_measured_than_there_are_and_each_is_shown_with_its_interval(bisected: Run) -> None:
    measured = bisected.report["bisection"]["measured"]
    assert [measured[0]["version"], measured[-1]["version"]] == [V0, V1] and len(measured) < len(RELEASES)
    assert all(one["low"] <= one["value"] <= one["high"] for one in measured)
    assert {one["version"]: one["engine"] for one in measured}.items() >= {(V0, "V0"), (V1, "V1")}
    assert "The release that moves it" in bisected.stdout
    assert all(one["version"] in bisected.stdout for one in measured)
    assert any(line.startswith("enable_prefix_caching") for line in bisected.report["bisection"]["moved"])


def test_ends_that_agree_are_an_answer(shared_laboratory: Laboratory, given: list[str]) -> None:
    block = {**ONE_FACTOR, "reference": {"version": "0.12.0"}, "candidate": {"version": V1}}
    ran = shared_laboratory.ablate(
        shared_laboratory.recipe(block, name="agreeing"), "--bisect", METRIC, "--output", "text", *given[8:]
    )
    assert ran.exit_code == 0, ran.stderr
    assert "the ends agree in mean ratio - 1" in ran.stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--bisect", "k4"], "no such metric"),
        (["--bisect", METRIC, "--python", "/usr/bin/python3"], "VERSION=COMMAND"),
    ],
)
def test_what_cannot_be_bisected_is_refused(shared_laboratory: Laboratory, words: list[str], said: str) -> None:
    ran = shared_laboratory.ablate(shared_laboratory.recipe(ONE_FACTOR, name="refused"), *words)
    assert ran.exit_code == 2 and said in ran.stderr


def test_a_release_without_the_cure_is_named_with_it(shared_laboratory: Laboratory, given: list[str]) -> None:
    """0.9.2 runs V1 on a GPU and has no logprobs_mode."""
    block = {**ONE_FACTOR, "candidate": {"version": "0.9.2", "environment_variables": {"FAKE_VLLM_GPU": "1"}}}
    ran = shared_laboratory.ablate(shared_laboratory.recipe(block, name="early"), *given[:2], *given[4:6])
    assert ran.layer("semantic")["next"].startswith("not possible before vLLM 0.10.2: logprobs_mode=processed")


def test_an_end_keeps_the_engine_that_its_recipe_names(shared_laboratory: Laboratory, given: list[str]) -> None:
    block = {**ONE_FACTOR, "candidate": {"version": "0.9.2", "engine": "V0"}}
    recipe = shared_laboratory.recipe(block, name="named-engine")
    ran = shared_laboratory.ablate(recipe, "--bisect", METRIC, "--output", "text", *given[:6])
    assert ran.exit_code == 0, ran.stderr
    assert "the ends agree in mean ratio - 1" in ran.stdout
