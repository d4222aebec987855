"""What a node of a cluster does with a cell, whose driver may have other paths and Ray other variables."""

import json
import os
import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from laboratories import V1, build_engine_cache

from rlaudit.engines.cells import ray_node
from rlaudit.engines.cells.cell import Cell, describe
from rlaudit.engines.environments.environment import ensure
from rlaudit.engines.environments.environment_spec import Environment, engine_spec
from rlaudit.engines.hardware.accelerator import Accelerator, detect
from rlaudit.engines.hardware.accelerator_identity import accelerator_identity

SCRIPT = """
import os, sys

def run(job, channel):
    told = {"threads": os.environ.get("OMP_NUM_THREADS"), "ray": "RAY_JOB_ID" in os.environ}
    return {"interpreter": sys.executable, **told}
"""


@pytest.fixture
def driver(tmp_path: Path, engine_cache: Path, monkeypatch: pytest.MonkeyPatch) -> Environment:
    """The environment of the driver."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(engine_cache))
    return ensure(engine_spec(V1, "cpu"), lambda words: None)


def cell(folder: Path, environment: Environment | None, **job: Any) -> Cell:
    script = folder / "script.py"
    script.write_text(SCRIPT)
    return Cell(
        {"script": str(script), **job},
        (sys.executable,) if environment is None else environment.command,
        {},
        60.0,
        {"accelerator": accelerator_identity(detect(cpu=True))},
        environment=environment,
    )


def told(folder: Path, asked: Cell, **more: str) -> dict[str, Any]:
    secrets = describe(folder / asked.key, asked)
    of_the_driver = {**asked.identity["accelerator"]["variables"], **more}
    answer: dict[str, Any] = json.loads(ray_node.run(str(folder), asked.key, secrets, of_the_driver))
    return answer


def test_a_node_runs_the_cell_in_an_environment_of_its_own_with_the_same_packages(
    driver: Environment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    build_engine_cache(tmp_path / "cache")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    answer = told(tmp_path / "drafts", cell(tmp_path, driver))
    assert answer["outcome"]["status"] == "ok"
    assert answer["outcome"]["result"]["interpreter"].startswith(str(tmp_path / "cache"))


def test_other_packages_than_the_drivers_are_refused(driver: Environment, tmp_path: Path) -> None:
    older = replace(driver, lock=("torch==1.0",))
    answer = told(tmp_path / "drafts", cell(tmp_path, older))
    assert "holds other packages" in answer["refused"] and "XDG_CACHE_HOME" in answer["way_out"]


def test_a_path_that_the_node_does_not_see_is_named(tmp_path: Path) -> None:
    for job in ({"model": "/nowhere/model"}, {"trainer": {"command": ["/nowhere/python"]}}):
        assert "does not see /nowhere/" in told(tmp_path / "drafts", cell(tmp_path, None, **job))["refused"]


def test_what_ray_sets_reaches_no_engine_and_what_the_driver_has_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    asked = cell(tmp_path, None)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.setenv("RAY_JOB_ID", "01000000")
    result = told(tmp_path / "drafts", asked)["outcome"]["result"]
    assert result["threads"] is None and result["ray"] is False
    assert os.environ["OMP_NUM_THREADS"] == "1"
    other = told(tmp_path / "drafts", asked, OMP_NUM_THREADS="3")
    assert "planned for another machine" in other["refused"]


def test_a_node_tells_what_it_is_as_plain_data() -> None:
    told = json.loads(ray_node.look(True))
    assert Accelerator.of_document(told["accelerator"]) == detect(cpu=True)
    assert asdict(detect(cpu=True))["kind"] == told["accelerator"]["kind"]
