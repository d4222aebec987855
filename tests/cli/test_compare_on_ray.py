"""`compare --executor ray`: the nodes of a cluster read a log, and the report is that of one machine."""

import pandas as pd
import pytest
from ray_clusters import cluster_of
from test_compare_folders import log, report_of  # noqa: F401 - a fixture

from rlaudit.cli.app import run
from rlaudit.diagnosis import compare_tables, read_on_ray
from rlaudit.files.own_sources import SAME_ON_EVERY_NODE


@pytest.fixture(scope="module")
def cluster():
    with cluster_of(2) as two:
        yield two


def test_the_nodes_of_a_cluster_read_what_one_machine_reads(cluster, log, tmp_path, monkeypatch):  # noqa: F811
    out, words = tmp_path / "o.json", ("--temperature", 0.7, "--ppo-epsilon", 0.1, 0.3)
    alone = report_of(out, log, *words)
    # Nothing is left to read for the machine that asked.
    monkeypatch.setattr(compare_tables, "read_file", None)
    assert report_of(out, log, *words, "--executor", f"ray:{cluster.address}") == alone


def test_a_folder_that_is_named_from_here_is_found_by_the_nodes(cluster, log, tmp_path, monkeypatch):  # noqa: F811
    monkeypatch.chdir(tmp_path)
    out = tmp_path / "o.json"
    alone = report_of(out, log.name, "--before", log.name)
    assert report_of(out, log.name, "--before", log.name, "--executor", f"ray:{cluster.address}") == alone


def test_a_file_that_the_nodes_cannot_read_is_named(cluster, tmp_path, capsys):
    folder = tmp_path / "tables"
    folder.mkdir()
    row = {"prompt_id": 1, "sample_id": 0, "position": 0, "rollout_logprob": -1.0, "trainer_logprob": -1.0}
    pd.DataFrame([row]).to_parquet(folder / "step_1.parquet")
    # The columns are right, and the type of one is not.
    pd.DataFrame([{**row, "trainer_logprob": "much"}]).to_parquet(folder / "step_2.parquet")
    assert run(["compare", str(folder), "--executor", f"ray:{cluster.address}"]) == 2
    assert "step_2.parquet: column trainer_logprob holds" in capsys.readouterr().err


def test_a_node_with_another_rlaudit_reads_nothing_and_says_what_to_install(cluster, log, monkeypatch, capsys):  # noqa: F811
    monkeypatch.setattr(read_on_ray, "sources_digest", lambda: "of another commit")
    assert run(["compare", str(log), "--executor", f"ray:{cluster.address}"]) == 3
    said = capsys.readouterr().err
    assert "is not the one that runs this command" in said
    assert SAME_ON_EVERY_NODE in said


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("LOG", "--executor", "ray"), "joined to all rollouts at once"),
        (("--executor", "slurm"), "local and ray"),
        (("--executor", "ray:localhost:1"), "there is no Ray cluster"),
    ],
)
def test_what_a_cluster_cannot_do_is_said_before_anything_is_read(words, said, log, capsys):  # noqa: F811
    assert run(["compare", *(str(log) if word == "LOG" else word for word in (str(log), *words))]) in {2, 3}
    assert said in capsys.readouterr().err
