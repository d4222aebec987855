"""`rlaudit ablate --executor ray` on a cluster of three nodes of this machine, with engines that are stand-ins."""

import json
import os
import shutil
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from killable import alive, assert_gone
from laboratories import ONE_FACTOR, V1, Laboratory, Signpost, laboratory_in, without_cost

from rlaudit.engines.cells.cell import Cell, finished
from rlaudit.engines.cells.executor import Asked
from rlaudit.engines.cells.guardian import descendants
from rlaudit.engines.cells.launch import Outcome
from rlaudit.engines.cells.on_ray import Cluster
from rlaudit.engines.cells.seal import Damage

pytest.importorskip("ray", reason="Ray is not installed: pip install ray")
from ray_clusters import STORE_BYTES, cluster_of, kill_node, running_node, workers, workers_on

pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.timeout(600)]
BLOCKS = [ONE_FACTOR, {"name": "again", "candidate": {"version": V1}, "repeats": 1}]


@pytest.fixture(scope="module")
def clustered(tmp_path_factory: pytest.TempPathFactory, engine_cache: Path) -> Iterator[tuple[Laboratory, Any]]:
    with laboratory_in(tmp_path_factory.mktemp("clustered"), engine_cache) as laboratory, cluster_of(3) as cluster:
        yield laboratory, cluster


def on(cluster: Any) -> list[str]:
    return ["--executor", f"ray:{cluster.address}"]


@pytest.fixture
def sickness(clustered: tuple[Laboratory, Any]) -> Iterator[Path]:
    """While it is there, engines hang; and the run directory of the last test is gone."""
    laboratory, _ = clustered
    shutil.rmtree(laboratory.run_dir, ignore_errors=True)
    path = laboratory.folder / "sickness"
    path.touch()
    yield path
    path.unlink(missing_ok=True)


def hanging(laboratory: Laboratory, sickness: Path, signpost: Signpost, arms: int = 1) -> Path:
    """A recipe of arms whose engines hang for ever once they have begun to."""
    variables = {
        "FAKE_VLLM_AILMENT": "hangs",
        "FAKE_VLLM_WHILE": str(sickness),
        "FAKE_VLLM_REACHED": str(signpost.path),
    }
    sick = {"name": "sick", "candidate": {"version": V1}, "repeats": arms - 1, "environment_variables": variables}
    return laboratory.recipe(sick)


def test_the_report_is_that_of_one_machine(clustered: tuple[Laboratory, Any]) -> None:
    laboratory, cluster = clustered
    recipe = laboratory.recipe(*BLOCKS)
    far = laboratory.ablate(recipe, *on(cluster))
    assert far.report["arms"]
    assert not list(laboratory.run_dir.glob(".on-ray-*"))
    shutil.rmtree(laboratory.run_dir)
    near = laboratory.ablate(recipe)
    assert far.exit_code == near.exit_code
    assert without_cost(far.report) == without_cost(near.report)


def test_what_a_lost_node_ran_is_started_again_elsewhere_and_said(
    clustered: tuple[Laboratory, Any], sickness: Path, signpost: Signpost
) -> None:
    laboratory, cluster = clustered
    with laboratory.start(hanging(laboratory, sickness, signpost), *on(cluster)) as process:
        signpost.wait()
        node = running_node(cluster)
        engines = [one for worker in workers_on(node) for one in descendants(worker)]
        sickness.unlink()
        kill_node(cluster, node)
        out, err = process.communicate()
    cluster.add_node(num_cpus=1, object_store_memory=STORE_BYTES)
    assert "is started again" in err
    # What Ray's own processes have to say of it is no report.
    assert process.returncode in (0, 1) and out.startswith("vLLM 0.18.1\n") and "raylet" not in out, err
    assert len(engines) >= 3
    assert_gone(engines)


def test_what_a_killed_worker_ran_is_started_again_and_its_engine_is_gone(
    clustered: tuple[Laboratory, Any], sickness: Path, signpost: Signpost
) -> None:
    laboratory, cluster = clustered
    with laboratory.start(hanging(laboratory, sickness, signpost), *on(cluster)) as process:
        signpost.wait()
        victim = next(worker for worker in workers(cluster) if descendants(worker))
        engines = [one for one in descendants(victim) if one.session != os.getsid(victim)]
        assert len(engines) >= 3
        sickness.unlink()
        os.kill(victim, signal.SIGKILL)
        assert_gone(engines)
        _, err = process.communicate()
    assert "is started again" in err
    assert process.returncode in (0, 1), err


def test_when_the_driver_is_killed_no_engine_survives_and_the_same_command_goes_on(
    clustered: tuple[Laboratory, Any], sickness: Path, signpost: Signpost
) -> None:
    laboratory, cluster = clustered
    recipe = hanging(laboratory, sickness, signpost)
    with laboratory.start(recipe, *on(cluster)) as process:
        signpost.wait()
        engines = [one for worker in workers(cluster) for one in descendants(worker)]
        assert engines
        process.kill()
    assert_gone(engines)
    sickness.unlink()
    again = laboratory.ablate(recipe, *on(cluster))
    assert again.exit_code in (0, 1)
    # The prompts' token ids, the trainer's and beside the engine, and the trainer's trial.
    assert again.report["run"]["cells_kept"] == 3
    assert not list(laboratory.run_dir.glob(".on-ray-*"))


def test_ctrl_c_ends_what_runs_on_every_node(
    clustered: tuple[Laboratory, Any], sickness: Path, signpost: Signpost
) -> None:
    laboratory, cluster = clustered
    with laboratory.start(hanging(laboratory, sickness, signpost, 2), *on(cluster)) as process:
        signpost.wait()
        engines = [one for worker in workers(cluster) for one in descendants(worker)]
        process.send_signal(signal.SIGINT)
        out, err = process.communicate()
    # Ctrl-C is answered when the engines are gone, not before.
    assert alive([one for one in engines if one.session != os.getsid(0)]) == []
    assert process.returncode == 130 and out == "" and "Traceback" not in err


def test_what_a_cell_fills_elsewhere_is_sealed_where_it_lies_in_the_end(
    clustered: tuple[Laboratory, Any], sickness: Path
) -> None:
    laboratory, cluster = clustered
    run_dir, weights = laboratory.run_dir, laboratory.run_dir / "checkpoints" / "version-1"
    weights.mkdir(parents=True)
    script = laboratory.folder / "fills.py"
    script.write_text(f"def run(job, channel):\n    open({str(weights / 'w')!r}, 'w').write('1')\n    return {{}}\n")
    cell = Cell({"script": str(script)}, (sys.executable,), {}, 600.0, {}, writes=(weights,))
    with Cluster.connect(cluster.address, cpu=True).executor(run_dir / "cells", print) as executor:
        assert next(executor.run([Asked(cell, "fills")])).status == "ok"
    assert isinstance(finished(run_dir / "cells", cell), Outcome)
    (weights / "w").write_text("2")
    assert isinstance(finished(run_dir / "cells", cell), Damage)


def test_two_drivers_share_a_cluster(clustered: tuple[Laboratory, Any], sickness: Path) -> None:
    laboratory, cluster = clustered
    recipe = laboratory.recipe(*BLOCKS)
    second = laboratory.folder / "second"
    with (
        laboratory.start(recipe, *on(cluster)) as one,
        laboratory.start(recipe, *on(cluster), "--run-dir", str(second)) as other,
    ):
        ends = [process.communicate()[1] for process in (one, other)]
    assert one.returncode == other.returncode in (0, 1), ends
    reports = [json.loads((folder / "report.json").read_text()) for folder in (laboratory.run_dir, second)]
    assert without_cost(reports[0]) == without_cost(reports[1])


def test_a_cluster_that_is_not_there_is_said_at_once(laboratory: Laboratory) -> None:
    for address in ("127.0.0.1:1", "nowhere"):
        run = laboratory.ablate(laboratory.recipe(*BLOCKS), "--executor", f"ray:{address}")
        assert run.exit_code == 3 and f"no Ray cluster at {address}" in run.stderr


def test_options_that_exclude_each_other_and_words_that_name_nothing(laboratory: Laboratory) -> None:
    recipe = laboratory.recipe(*BLOCKS)
    assert laboratory.ablate(recipe, "--executor", "ray", "--jobs", "2").exit_code == 2
    assert laboratory.ablate(recipe, "--executor", "slurm").exit_code == 2
