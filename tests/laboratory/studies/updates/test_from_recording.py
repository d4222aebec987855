"""The updates of a recording as a recipe: their pause, their cache, their way of loading."""

from pathlib import Path

import pytest
from written_recording import WrittenProcess

from rlaudit.engines.hardware.accelerator import Accelerator
from rlaudit.engines.hardware.nvidia_driver import Device
from rlaudit.errors import UsageError
from rlaudit.laboratory.from_file import experiment_of
from rlaudit.laboratory.recipe import Experiment
from rlaudit.laboratory.studies.updates.recipe import update_recipe_of
from rlaudit.vllm.catalogue import known_versions

CPU = Accelerator("cpu", "a processor", (), "", 2, 24_000)
ONE_GPU = Accelerator("cuda", "H100", (Device(0, "GPU-a", "H100", 81_559, "sm90"),), "570", 16, 128_000)
ASYNC, CORE = "vllm.v1.engine.async_llm:AsyncLLM", "vllm.v1.engine.core:EngineCore"
EFFECTIVE = {"model_config": {"dtype": "torch.float32"}, "cache_config": {"enable_prefix_caching": True}}


def recording(folder: Path, updates: int = 2, mode: str | None = "keep", reset: bool = False, flying: int = 3) -> Path:
    front = WrittenProcess(folder)
    front.engine(**EFFECTIVE)
    front.sampling()
    request = front.request([1, 2, 3])
    steps = [[front.step(1), 1, 1]]
    for _ in range(updates):
        if mode is not None:
            front.call(f"{ASYNC}.pause_generation", mode=mode, clear_cache=False)
        call = front.begin(f"{CORE}.collective_rpc", in_flight=flying, method="reload_weights")
        front.now += 0.01
        front.end(call, f"{CORE}.collective_rpc")
        if reset:
            front.call(f"{CORE}.reset_prefix_cache", result=True)
        if mode is not None:
            front.call(f"{ASYNC}.resume_generation")
        steps.append([front.step(1), 1, 1])
    front.sequence(request, [1, 2, 3], [5] * (updates + 1), [-0.5] * (updates + 1), steps)
    return front.write()


def experiment(path: Path, accelerator: Accelerator = ONE_GPU, to: str | None = "0.32.0") -> Experiment:
    return experiment_of(path, None, to, "a/model", accelerator, updates=True)


def test_the_protocol_goes_to_both_releases_and_the_next_is_cleared_as_well(tmp_path: Path) -> None:
    made = experiment(recording(tmp_path))
    before, after = made.document["weight_updates"]["engines"]
    shared = {"path": "reload_weights", "modes": ["keep"], "prefix_caching": ["on"]}
    assert before == {"version": "0.18.1", "clear_cache": [False], **shared}
    assert after == {"version": "0.32.0", "clear_cache": [False, True], **shared}
    assert "2 of 2 recorded ones" in made.changed[0]
    update_recipe_of(dict(made.document), tmp_path / "recipe.yaml")


def test_a_cache_that_was_reset_by_a_call_of_its_own_is_cleared(tmp_path: Path) -> None:
    for engine in experiment(recording(tmp_path, reset=True)).document["weight_updates"]["engines"]:
        assert engine["clear_cache"] == [True]


def test_what_cannot_be_repeated_as_it_was_is_named(tmp_path: Path) -> None:
    made = experiment(recording(tmp_path, mode=None, reset=True, flying=0))
    assert [engine["modes"] for engine in made.document["weight_updates"]["engines"]] == [["keep"], ["keep"]]
    assert any("no request in flight" in sentence for sentence in made.changed)
    assert any("there was no pause" in sentence for sentence in made.changed)


def test_a_recording_without_an_update_has_nothing_to_repeat(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no update"):
        experiment(recording(tmp_path, updates=0))


def test_without_a_release_to_go_to_it_is_the_newest_and_that_is_said_first(tmp_path: Path) -> None:
    made = experiment(recording(tmp_path), to=None)
    newest = str(known_versions()[-1])
    assert made.changed[0].startswith(f"to vLLM {newest}, ")
    assert made.document["weight_updates"]["engines"][1]["version"] == newest
