"""`rlaudit ablate --executor ray` on a cluster of three nodes of this machine, with engines that are stand-ins."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from laboratories import ONE_FACTOR, V1, Laboratory, laboratory_in

pytest.importorskip("ray", reason="Ray is not installed: pip install 'rlaudit[ray]'")
from ray_clusters import cluster_of

pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.timeout(600)]
OF_THE_COST = {"seconds", "cell_seconds", "set_up_seconds", "peak_memory_mib", "tokens_per_second"}
BLOCKS = [ONE_FACTOR, {"name": "again", "candidate": {"version": V1}, "repeats": 1}]


def found(report: Any) -> Any:
    if isinstance(report, dict):
        return {name: found(value) for name, value in report.items() if name not in OF_THE_COST}
    return [found(one) for one in report] if isinstance(report, list) else report


@pytest.fixture(scope="module")
def clustered(tmp_path_factory: pytest.TempPathFactory, engine_cache: Path) -> Iterator[tuple[Laboratory, Any]]:
    with laboratory_in(tmp_path_factory.mktemp("clustered"), engine_cache) as laboratory, cluster_of(3) as cluster:
        yield laboratory, cluster


def on(cluster: Any) -> list[str]:
    return ["--executor", f"ray:{cluster.address}"]


def test_the_report_is_that_of_one_machine(clustered: tuple[Laboratory, Any]) -> None:
    laboratory, cluster = clustered
    recipe = laboratory.recipe(*BLOCKS)
    far = laboratory.ablate(recipe, *on(cluster))
    print(far.stderr)
    assert far.report["arms"]
    assert not list(laboratory.run_dir.glob(".on-ray-*"))
    assert not [path for path in laboratory.run_dir.glob("cells/*") if path.is_symlink()]
    shutil.rmtree(laboratory.run_dir)
    near = laboratory.ablate(recipe)
    assert far.exit_code == near.exit_code
    assert found(far.report) == found(near.report)
