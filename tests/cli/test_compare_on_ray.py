"""`compare --executor ray`: the nodes of a cluster read a log, and the report is that of one machine."""

import pytest
from ray_clusters import cluster_of
from test_compare_states import log, report_of  # noqa: F401 - a fixture

from rlaudit.cli.app import run
from rlaudit.diagnosis import compare_tables


@pytest.fixture(scope="module")
def cluster():
    with cluster_of(3) as three:
        yield three


def test_the_nodes_of_a_cluster_read_what_one_machine_reads(cluster, log, tmp_path, monkeypatch):  # noqa: F811
    out, state = tmp_path / "o.json", tmp_path / "state"
    alone = report_of(out, log)
    # Nothing is left to read for the machine that asked.
    monkeypatch.setattr(compare_tables, "_read", None)
    code, report = report_of(out, log, "--state", state, "--executor", f"ray:{cluster.address}")
    assert (code, report) == alone
    assert not list(state.glob(".on-ray-*"))


def test_options_that_decide_what_is_read_are_said_to_the_nodes(cluster, log, tmp_path, monkeypatch):  # noqa: F811
    out, words = tmp_path / "o.json", ("--temperature", 0.7, "--ppo-epsilon", 0.1, 0.3, "--groups", "step")
    alone = report_of(out, log, *words)
    monkeypatch.setattr(compare_tables, "_read", None)
    ray = ("--state", tmp_path / "state", "--executor", f"ray:{cluster.address}")
    assert report_of(out, log, *words, *ray) == alone


def test_a_share_that_a_node_cannot_read_is_named(cluster, log, tmp_path, capsys):  # noqa: F811
    (log / "step_1.jsonl").write_text("{}\n" * 3)
    words = ["compare", str(log), "--columns", "nothing=rollout_logprob", "--state", str(tmp_path / "state")]
    assert run([*words, "--executor", f"ray:{cluster.address}"]) in {2, 3}
    assert "nothing" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "--state DIR"),
        (("--state", "s", "--shard", "1/2"), "leave out --shard"),
        (("--state", "s", "--executor", "slurm"), "local and ray"),
        (("--state", "s", "--executor", "ray:localhost:1"), "there is no Ray cluster"),
    ],
)
def test_a_cluster_needs_a_folder_that_its_nodes_see(words, said, log, tmp_path, monkeypatch, capsys):  # noqa: F811
    monkeypatch.chdir(tmp_path)
    executor = () if "--executor" in words else ("--executor", "ray")
    assert run(["compare", str(log), *executor, *words]) in {2, 3}
    assert said in capsys.readouterr().err


def test_parts_that_were_read_before_are_read_by_no_cluster(tmp_path, capsys):
    words = ["--merge", str(tmp_path), "--state", str(tmp_path), "--executor", "ray"]
    assert run(["compare", *words]) == 2
    assert "leave out --shard and --merge" in capsys.readouterr().err
