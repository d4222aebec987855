"""A cell is submitted, and answers later."""

import sys
from pathlib import Path
from typing import Any

from rlaudit.engines.cells.cell import Cell
from rlaudit.engines.cells.executor import OneAtATime
from rlaudit.engines.cells.launch import PACKAGE, WORKER, shipped
from rlaudit.engines.hardware.gpu_memory import GpuMemory
from rlaudit.engines.vllm.engine import ENGINE

SCRIPT = """
def run(job, channel):
    channel.emit("progress", done=1, total=1)
    return {"answer": job["question"]}
"""


def cell_in(folder: Path, question: int) -> Cell:
    script = folder / "script.py"
    script.write_text(SCRIPT)
    return Cell({"script": str(script), "question": question}, (sys.executable,), {}, 60.0, {})


def test_a_cell_runs_when_its_result_is_asked_for_and_once(tmp_path: Path) -> None:
    events: list[dict[str, Any]] = []
    cells = tmp_path / "cells"
    cell = cell_in(tmp_path, 42)
    submitted = OneAtATime(cells, GpuMemory(())).submit(cell, "a question", events.append)
    assert not cells.exists()
    assert submitted.result().result["answer"] == 42
    said = len(events)
    assert {"done": 1, "total": 1}.items() <= next(one for one in events if one["event"] == "progress").items()
    assert submitted.result().status == "ok" and len(events) == said


def test_a_job_names_a_shipped_script_by_its_place_in_the_package() -> None:
    named = shipped(ENGINE.generate)
    assert named == "engines/vllm/scripts/generate.py"
    assert (PACKAGE / named).is_file() and PACKAGE in WORKER.parents


def test_a_script_of_somebody_else_is_named_by_its_whole_path(tmp_path: Path) -> None:
    assert shipped(tmp_path / "script.py") == str(tmp_path / "script.py")
