"""`rlaudit ablate --jobs`: the same report, however many cells run at once."""

import os
import signal
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from laboratories import ONE_FACTOR, V1, Laboratory, Signpost, processes_of, wait_for_processes

# What a run cost, and where its cells lie.
OF_THE_CLOCK = {"seconds", "cell_seconds", "set_up_seconds", "peak_memory_mib", "tokens_per_second"}


@pytest.fixture
def own_cores() -> Iterator[list[int]]:
    """The cores that this process may use, given back afterwards."""
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < 2:
        pytest.skip("two cells at once on a processor need two cores")
    yield cores
    os.sched_setaffinity(0, cores)


def without_times(told: Any) -> Any:
    if isinstance(told, dict):
        return {name: without_times(value) for name, value in told.items() if name not in OF_THE_CLOCK}
    return [without_times(one) for one in told] if isinstance(told, list) else told


def overlap(*cells: Path) -> bool:
    """Whether two cells were under way at the same time."""
    begun, sealed = ([(cell / name).stat().st_mtime for cell in cells] for name in ("job.json", "seal.json"))
    return max(begun) < min(sealed)


def two_blocks() -> list[dict[str, Any]]:
    """Two blocks that share the trainer's settings, so that a batch waits for both."""
    return [ONE_FACTOR, {**ONE_FACTOR, "name": "again", "repeats": 1, "parity": ["logprobs-mode"]}]


def test_the_report_is_the_same_with_one_and_with_two_at_once(laboratory: Laboratory, own_cores: list[int]) -> None:
    recipe = laboratory.recipe(*two_blocks())
    two = laboratory.ablate(recipe, "--jobs", "2")
    half = len(own_cores) // 2
    os.sched_setaffinity(0, own_cores[:half])
    laboratory.run_dir.rename(laboratory.folder / "two")
    one = laboratory.ablate(recipe, "--jobs", "1")
    assert two.exit_code == one.exit_code
    assert two.report["arms"]
    assert without_times(two.report) == without_times(one.report)
    cells = [path.parent for path in (laboratory.folder / "two").glob("cells/*/seal.json")]
    assert any(overlap(one, other) for one, other in combinations(cells, 2))


def test_the_trainer_scores_one_block_while_another_one_samples(laboratory: Laboratory, own_cores: list[int]) -> None:
    slower = {"name": "other", "candidate": {"version": V1}, "repeats": 4, "sampling": {"temperature": 1.0}}
    run = laboratory.ablate(laboratory.recipe(ONE_FACTOR, slower), "--jobs", "2")
    assert run.report["arms"]
    sampled = [path.parent for path in laboratory.run_dir.glob("cells/*/samples.jsonl")]
    scored = [path.parent for path in laboratory.run_dir.glob("cells/*/scores.npz")]
    assert any(overlap(one, other) for one in sampled for other in scored)


def test_more_at_once_than_there_are_cores_is_refused_before_anything_starts(laboratory: Laboratory) -> None:
    cores = len(os.sched_getaffinity(0))
    run = laboratory.ablate(laboratory.recipe(ONE_FACTOR), "--jobs", str(cores + 1))
    assert run.exit_code == 3 and f"Give at most --jobs {cores}" in run.stderr
    assert laboratory.ablate(laboratory.recipe(ONE_FACTOR), "--jobs", "many").exit_code == 2


def test_ctrl_c_ends_every_engine_that_runs(laboratory: Laboratory, signpost: Signpost, own_cores: list[int]) -> None:
    variables = {"FAKE_VLLM_AILMENT": "hangs", "FAKE_VLLM_REACHED": str(signpost.path)}
    sick = {"candidate": {"version": V1}, "repeats": 1, "environment_variables": variables}
    with laboratory.start(laboratory.recipe({"name": "sick", **sick}), "--jobs", "2") as process:
        signpost.wait()
        # rlaudit; two guardians, the worker and the engine's process for each of two cells.
        assert len(wait_for_processes(laboratory.folder, 9)) >= 7
        os.kill(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert processes_of(laboratory.folder) == []
    assert process.returncode == 130 and out == "" and "Traceback" not in err
