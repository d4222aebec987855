"""What a node of a cluster does with a cell: Ray sets variables of its own, and the driver may have other paths."""

import os
import sys
from pathlib import Path
from typing import Any

import pytest

from rlaudit.engines.cells import ray_node
from rlaudit.engines.cells.cell import Cell, describe
from rlaudit.engines.hardware.accelerator import detect
from rlaudit.engines.hardware.accelerator_identity import accelerator_identity
from rlaudit.errors import NotFinished
from rlaudit.files.own_sources import SAME_ON_EVERY_NODE, sources_digest

SCRIPT = """
import os

def run(job, channel):
    return {"threads": os.environ.get("OMP_NUM_THREADS"), "ray": "RAY_JOB_ID" in os.environ}
"""


def cell(folder: Path, **job: Any) -> Cell:
    script = folder / "script.py"
    script.write_text(SCRIPT)
    identity = {"accelerator": accelerator_identity(detect(cpu=True))}
    return Cell({"script": str(script), **job}, (sys.executable,), {}, 60.0, identity)


def result_of(folder: Path, asked: Cell, **more: str) -> Any:
    secrets = describe(folder / asked.key, asked)
    of_the_driver = {**asked.identity["accelerator"]["variables"], **more}
    return ray_node.run(folder / asked.key, secrets, of_the_driver).result


def test_a_path_that_the_node_does_not_see_is_named(tmp_path: Path) -> None:
    for job in ({"model": "/nowhere/model"}, {"trainer": {"command": ["/nowhere/python"]}}):
        with pytest.raises(NotFinished, match="does not see /nowhere/"):
            result_of(tmp_path / "drafts", cell(tmp_path, **job))
    with pytest.raises(NotFinished, match="does not see /nowhere/run") as refused:
        ray_node.run(Path("/nowhere/run"), (), {})
    assert "--run-dir" in str(refused.value.hint)


def test_what_ray_sets_reaches_no_engine_and_what_the_driver_has_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    asked = cell(tmp_path)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.setenv("RAY_JOB_ID", "01000000")
    result = result_of(tmp_path / "drafts", asked)
    assert result["threads"] is None and result["ray"] is False
    assert os.environ["OMP_NUM_THREADS"] == "1"
    with pytest.raises(NotFinished, match="planned for another machine"):
        result_of(tmp_path / "drafts", asked, OMP_NUM_THREADS="3")


def test_a_node_tells_its_accelerator_and_refuses_another_rlaudit() -> None:
    assert ray_node.look(True, sources_digest()) == detect(cpu=True)
    with pytest.raises(NotFinished, match="its rlaudit is not the one that runs this command") as refused:
        ray_node.look(True, "of other sources")
    assert refused.value.hint == SAME_ON_EVERY_NODE
