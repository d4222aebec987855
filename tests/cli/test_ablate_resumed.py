"""Runs that were interrupted or had failures, and the same command line again."""

import os
import signal
from pathlib import Path
from typing import Any

from laboratories import V1, Laboratory, Signpost, processes_of, wait_for_processes, wait_for_the_end

SICK = {"FAKE_VLLM_AILMENT": "engine-core-dies"}


def blocks(**second: Any) -> list[dict[str, Any]]:
    """A block that is well, and one after it with an ailment of its own."""
    well = {"name": "well", "candidate": {"version": V1, "levels": {"logprobs-mode": "processed"}}, "repeats": 1}
    return [well, {"name": "second", "candidate": {"version": V1}, "repeats": 0, **second}]


def rollouts(run_dir: Path) -> set[str]:
    """Cells with samples that are whole."""
    return {
        path.parent.name for path in run_dir.glob("cells/*/result.json") if (path.parent / "samples.jsonl").exists()
    }


def test_a_failed_cell_is_tried_again_and_the_others_are_kept(laboratory: Laboratory) -> None:
    sickness = laboratory.folder / "sickness"
    sickness.touch()
    recipe = laboratory.recipe(*blocks(environment_variables={**SICK, "FAKE_VLLM_WHILE": str(sickness)}))
    first = laboratory.ablate(recipe)
    assert first.exit_code == 3
    kept = rollouts(laboratory.run_dir)
    sickness.unlink()
    second = laboratory.ablate(recipe)
    assert {arm["status"] for arm in second.report["arms"]} == {"ok"}
    # The trainer has scored these sequences already: both engines sample the same tokens.
    assert second.report["run"]["cells_run"] == 1
    assert kept < rollouts(laboratory.run_dir)


def test_when_rlaudit_is_killed_no_engine_survives_and_finished_cells_are_kept(
    laboratory: Laboratory, signpost: Signpost
) -> None:
    sickness = laboratory.folder / "sickness"
    sickness.touch()
    variables = {
        "FAKE_VLLM_AILMENT": "hangs",
        "FAKE_VLLM_WHILE": str(sickness),
        "FAKE_VLLM_REACHED": str(signpost.path),
    }
    recipe = laboratory.recipe(*blocks(environment_variables=variables))
    with laboratory.start(recipe) as process:
        signpost.wait()
        kept = rollouts(laboratory.run_dir)
        # rlaudit, two guardians, the worker, and the engine process that has a session of its own.
        engines = [pid for pid in wait_for_processes(laboratory.folder, 5) if pid != process.pid]
        assert len(engines) == 4
        process.kill()
    wait_for_the_end(engines)
    assert len(kept) == 2
    sickness.unlink()
    again = laboratory.ablate(recipe)
    # The prompts' token ids of the trainer and beside each engine, the trainer's trial, the scores of what decides, and
    # two rollouts.
    assert again.report["run"]["cells_kept"] == 4 + len(kept)
    assert kept < rollouts(laboratory.run_dir)


def test_ctrl_c_ends_the_engines_keeps_finished_cells_and_exits_with_130(
    laboratory: Laboratory, signpost: Signpost
) -> None:
    variables = {"FAKE_VLLM_AILMENT": "hangs", "FAKE_VLLM_REACHED": str(signpost.path)}
    with laboratory.start(laboratory.recipe(*blocks(environment_variables=variables))) as process:
        signpost.wait()
        os.kill(process.pid, signal.SIGINT)
        out, err = process.communicate()
    # Ctrl-C is answered when the engines are gone, not before.
    assert processes_of(laboratory.folder) == []
    assert process.returncode == 130
    assert out == ""
    assert "interrupted; finished cells are kept" in err
    assert "Traceback" not in err
    assert len(rollouts(laboratory.run_dir)) == 2


def test_another_seed_of_sampling_is_another_run_of_every_engine(laboratory: Laboratory) -> None:
    recipe = laboratory.recipe({"name": "seeded", "candidate": {"version": V1}, "repeats": 0})
    first = laboratory.ablate(recipe)
    second = laboratory.ablate(recipe, "--seed", "7")
    assert second.arm("candidate")["cell"] != first.arm("candidate")["cell"]
    # Only the prompts' token ids, the trainer's and beside the engine, and the trainer's trial are the same.
    assert second.report["run"]["cells_kept"] == 3
