"""Which engine an arm is: the one it says, or the arm fails before anything is sampled."""

import json
from typing import Any

import pytest
from laboratories import V0, V1, Laboratory, Run

# The stand-in of 0.8.5 chooses as on a GPU: V1, unless it is told otherwise.
ON_A_GPU = {"FAKE_VLLM_GPU": "yes"}
BLOCK: dict[str, Any] = {
    "name": "engines",
    "reference": {"version": V0, "engine": "V0", "environment_variables": ON_A_GPU},
    "candidate": {"version": V1},
    "factors": {"engine-version": [f"{V0} V0", f"{V0} V1"]},
    "repeats": 0,
    "arms": [
        {"name": "nothing said, as on a GPU", "version": V0, "environment_variables": ON_A_GPU},
        {"name": "nothing said", "version": V0},
        {"name": "V1 said, as on a GPU", "version": V0, "engine": "V1", "environment_variables": ON_A_GPU},
        {"name": "V1 said", "version": V0, "engine": "V1"},
    ],
}


@pytest.fixture(scope="module")
def engines(shared_laboratory: Laboratory) -> Run:
    return shared_laboratory.ablate(shared_laboratory.recipe(BLOCK))


@pytest.mark.parametrize(
    ("name", "engine"),
    [
        ("reference", "V0"),
        ("candidate", "V1"),
        ("nothing said", "V0"),
        ("V1 said, as on a GPU", "V1"),
        (f"candidate + engine-version={V0} V0", "V0"),
    ],
)
def test_an_arm_runs_the_engine_that_it_says(engines: Run, name: str, engine: str) -> None:
    arm = engines.arm(name)
    assert (arm["status"], arm["resolved"]["engine"]) == ("ok", engine)


def test_the_report_has_the_variable_that_chose_the_engine(engines: Run) -> None:
    assert engines.arm("reference")["variables"]["VLLM_USE_V1"] == "0"
    assert engines.arm("V1 said")["variables"]["VLLM_USE_V1"] == "1"
    assert "VLLM_USE_V1" not in engines.arm("candidate")["variables"]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        (
            "nothing said, as on a GPU",
            ("vLLM loaded V1, but rlaudit expects V0: ", "the platform is a CPU", "Write `engine: V0` or `engine: V1`"),
        ),
        (
            "V1 said",
            (
                "vLLM refuses the engine V1 here (VLLM_USE_V1=1 is not supported with device type=cpu)",
                "but the recipe asks for V1. Write `engine: V0` where V0 is meant",
            ),
        ),
        (f"candidate + engine-version={V0} V1", ("vLLM refuses the engine V1 here",)),
    ],
)
def test_an_arm_whose_engine_is_the_other_one_fails_and_says_what_to_do(
    engines: Run, name: str, words: tuple[str, ...]
) -> None:
    arm = engines.arm(name)
    assert (arm["status"], arm["error"]["boundary"], arm["measurements"]) == ("failed", "engine", {})
    assert all(word in arm["error"]["message"] for word in words)
    assert engines.exit_code == 3


def test_nothing_is_sampled_of_the_wrong_engine_and_what_was_loaded_is_told_all_the_same(engines: Run) -> None:
    cell = engines.folder / "cells" / engines.arm("nothing said, as on a GPU")["cell"]
    assert not (cell / "samples.jsonl").exists()
    events = [json.loads(line) for line in (cell / "events.jsonl").read_text().splitlines()]
    (loaded,) = [event for event in events if event["event"] == "loaded"]
    assert loaded["resolved"]["engine"] == "V1"


def test_the_wrong_engine_is_tried_again_and_never_kept(engines: Run, shared_laboratory: Laboratory) -> None:
    again = shared_laboratory.ablate(shared_laboratory.folder / "recipe.yaml")
    assert again.arm("nothing said, as on a GPU")["status"] == "failed"
    # Three arms fail, and two of them are one cell.
    assert again.report["run"]["cells_run"] == 2


def test_raw_logprobs_of_a_v1_without_modes_are_not_put_down_to_v0(engines: Run) -> None:
    seen = engines.arm("V1 said, as on a GPU")["observed"]["logprobs-mode"]
    assert seen["level"] == "raw"
    assert "V0" not in seen["because"]
    assert "V0 has one mode, processed" in engines.arm("reference")["observed"]["logprobs-mode"]["because"]


def test_a_dry_run_says_which_engine_each_arm_is(laboratory: Laboratory) -> None:
    said = laboratory.ablate(laboratory.recipe(BLOCK), "--dry-run").stdout
    assert f"vLLM {V0:<8} V0             reference" in said
    assert f"vLLM {V0:<8} V0 by default  nothing said" in said
    assert f"vLLM {V0:<8} V1, which will not start (the platform is a CPU) V1 said" in said
    assert f"vLLM {V1:<8} V1             candidate" in said
