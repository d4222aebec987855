"""A cell is asked for, and answers later."""

import sys
from pathlib import Path
from typing import Any

from rlaudit.engines.cells.cell import Cell
from rlaudit.engines.cells.executor import Asked, OneAtATime
from rlaudit.engines.cells.launch import PACKAGE, WORKER, shipped
from rlaudit.engines.hardware.gpu_memory import GpuMemory
from rlaudit.engines.inside.engine import ENGINE

SCRIPT = """
def run(job, channel):
    channel.emit("progress", done=1, total=1)
    return {"answer": job["question"]}
"""


def cell_in(folder: Path, question: int) -> Cell:
    script = folder / "script.py"
    script.write_text(SCRIPT)
    return Cell({"script": str(script), "question": question}, (sys.executable,), {}, 600.0, {})


def test_a_cell_runs_when_its_outcome_is_asked_for(tmp_path: Path) -> None:
    events: list[dict[str, Any]] = []
    cells = tmp_path / "cells"
    cell = cell_in(tmp_path, 42)
    asked = Asked(cell, "a question")
    outcomes = OneAtATime(cells, GpuMemory(())).run([asked], lambda which, event: events.append({**event, "of": which}))
    assert not cells.exists()
    assert next(outcomes).result["answer"] == 42
    heard = next(one for one in events if one["event"] == "progress")
    assert {"done": 1, "total": 1, "of": asked}.items() <= heard.items()


def test_a_job_names_a_shipped_script_by_its_place_in_the_package() -> None:
    named = shipped(ENGINE.generate)
    assert named == "engines/inside/scripts/generate.py"
    assert (PACKAGE / named).is_file() and PACKAGE in WORKER.parents


def test_a_script_of_somebody_else_is_named_by_its_whole_path(tmp_path: Path) -> None:
    assert shipped(tmp_path / "script.py") == str(tmp_path / "script.py")
