"""The files of examples/clusters: their rlaudit lines parse, with the variables that each scheduler sets."""

import re
import shlex
import subprocess

import pytest
import yaml
from documented_commands import ROOT

from rlaudit.cli.app import run
from rlaudit.engines.cells.shard import Shard

FOLDER = ROOT / "examples" / "clusters"
# As the second of four jobs sees them.
SET = {
    "SLURM_ARRAY_TASK_ID": "2", "SLURM_ARRAY_TASK_COUNT": "4", "JOB_COMPLETION_INDEX": "1",
    "SKYPILOT_NODE_RANK": "1", "SKYPILOT_NUM_NODES": "4",
}  # fmt: skip


def scripts(name):
    """What a file has a shell run."""
    text = (FOLDER / name).read_text(encoding="utf-8")
    if name.endswith(".yaml"):
        documents = list(yaml.safe_load_all(text))
        if "run" in documents[0]:
            return [documents[0]["run"]]
        return [
            line
            for document in documents
            for container in document["spec"]["template"]["spec"]["containers"]
            for line in container["args"]
        ]
    return [text]


def lines(name):
    """The words of its rlaudit lines, with their variables filled in by the shell."""
    found = [
        line[line.index("rlaudit ablate") :]
        for script in scripts(name)
        for line in script.replace("\\\n", " ").splitlines()
        if "rlaudit ablate" in line and not line.lstrip().startswith("#")
    ]
    told = [
        subprocess.run(
            ["bash", "-euc", f"printf '%s\\n' {line}"], env=SET, capture_output=True, text=True, check=True, cwd="/"
        ).stdout
        for line in found
    ]
    return [shlex.split(words) for words in told]


NAMES = sorted(path.name for path in FOLDER.iterdir())
LINES = [(name, words) for name in NAMES for words in lines(name)]


def test_every_scheduler_that_is_spoken_of_has_a_file():
    assert NAMES == ["kubernetes-job.yaml", "ray-job.sh", "skypilot.yaml", "slurm-array.sbatch", "slurm-report.sbatch"]
    assert {name for name, _ in LINES} == set(NAMES)


@pytest.mark.parametrize(("name", "words"), LINES)
def test_a_line_of_a_cluster_file_is_understood(name, words, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    plain = [word for word in words[1:] if word != "/bucket"]
    if "--executor" in plain:
        place = plain.index("--executor")
        assert plain[place + 1] == "ray"
        del plain[place : place + 2]
    assert run([*plain, "--cpu", "--dry-run"]) == 0
    assert "engine starts:" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["slurm-array.sbatch", "kubernetes-job.yaml", "skypilot.yaml"])
def test_jobs_count_from_one_to_all(name):
    (shares,) = ([words[words.index("--shard") + 1]] for words in lines(name) if "--shard" in words)
    assert [Shard.parse(share) for share in shares] == [Shard(2, 4)]


@pytest.mark.parametrize("name", [name for name in NAMES if name.startswith(("slurm", "ray"))])
def test_the_scripts_are_bash(name):
    subprocess.run(["bash", "-n", str(FOLDER / name)], check=True)


def test_an_array_has_as_many_tasks_as_it_says():
    text = (FOLDER / "slurm-array.sbatch").read_text()
    assert re.search(r"^#SBATCH --array=1-\d+$", text, re.MULTILINE)
