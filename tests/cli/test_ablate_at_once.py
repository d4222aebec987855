"""`rlaudit ablate --jobs`: the same report, however many cells run at once."""

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from laboratories import ONE_FACTOR, V1, Laboratory, Signpost, processes_of, wait_for_processes, without_cost


@pytest.fixture
def own_cores() -> Iterator[list[int]]:
    """The cores that this process may use, given back afterwards."""
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < 2:
        pytest.skip("two cells at once on a processor need two cores")
    yield cores
    os.sched_setaffinity(0, cores)


def overlap(*cells: Path) -> bool:
    """Whether two cells were under way at the same time."""
    begun, sealed = ([(cell / name).stat().st_mtime for cell in cells] for name in ("job.json", "seal.json"))
    return max(begun) < min(sealed)


@contextmanager
def opened_by(gate: Path, laboratory: Laboratory, phase: str, cells: int) -> Iterator[None]:
    """Make the gate, for which engines wait by FAKE_VLLM_UNTIL, once so many cells have come to a phase."""
    given_up = threading.Event()

    def come() -> int:
        return sum(f'"{phase}"' in file.read_text() for file in laboratory.run_dir.glob("cells/*/events.jsonl"))

    def watch() -> None:
        while not given_up.is_set() and come() < cells:
            time.sleep(0.01)
        gate.touch()

    watching = threading.Thread(target=watch)
    watching.start()
    try:
        yield
    finally:
        given_up.set()
        watching.join()


def two_blocks() -> list[dict[str, Any]]:
    """Two blocks that share the trainer's settings, so that a batch waits for both."""
    return [ONE_FACTOR, {**ONE_FACTOR, "name": "again", "repeats": 1, "parity": ["logprobs-mode"]}]


def test_the_report_is_the_same_with_one_and_with_two_at_once(laboratory: Laboratory, own_cores: list[int]) -> None:
    gate = laboratory.folder / "gate"
    recipe = laboratory.recipe(*two_blocks(), environment_variables={"FAKE_VLLM_UNTIL": str(gate)})
    # Engines go on when two of them are there, however slow the machine is.
    with opened_by(gate, laboratory, "generate", 2):
        two = laboratory.ablate(recipe, "--jobs", "2")
    half = len(own_cores) // 2
    os.sched_setaffinity(0, own_cores[:half])
    laboratory.run_dir.rename(laboratory.folder / "two")
    one = laboratory.ablate(recipe, "--jobs", "1")
    assert two.exit_code == one.exit_code
    assert two.report["arms"]
    assert without_cost(two.report) == without_cost(one.report)
    cells = [path.parent for path in (laboratory.folder / "two").glob("cells/*/seal.json")]
    assert any(overlap(one, other) for one, other in combinations(cells, 2))


def test_the_trainer_scores_one_block_while_another_one_samples(laboratory: Laboratory, own_cores: list[int]) -> None:
    gate = laboratory.folder / "gate"
    # The last of the second block samples when the trainer's trial and the score of the first block have begun.
    late = {"name": "late", "environment_variables": {"FAKE_VLLM_UNTIL": str(gate)}}
    other = {"name": "other", "candidate": {"version": V1}, "repeats": 0, "sampling": {"temperature": 1.0}}
    with opened_by(gate, laboratory, "score", 2):
        run = laboratory.ablate(laboratory.recipe(ONE_FACTOR, {**other, "arms": [late]}), "--jobs", "2")
    assert run.arm("late")["status"] == "ok"
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
        assert len(wait_for_processes(laboratory.folder, 9)) == 9
        os.kill(process.pid, signal.SIGINT)
        out, err = process.communicate()
    assert processes_of(laboratory.folder) == []
    assert process.returncode == 130 and out == "" and "Traceback" not in err
