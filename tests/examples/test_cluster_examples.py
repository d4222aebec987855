"""The files of examples/clusters: their rlaudit lines parse, with the variables that each scheduler sets."""

import shlex
import subprocess

import pytest
import yaml
from documented_commands import ROOT

from rlaudit.cli.app import run

FOLDER = ROOT / "examples" / "clusters"
# As the first of four nodes sees them.
SET = {"SLURM_JOB_ID": "4711", "SKYPILOT_NODE_RANK": "0"}


def script(name):
    """What a file has a shell run."""
    text = (FOLDER / name).read_text(encoding="utf-8")
    if not name.endswith(".yaml"):
        return text
    document = yaml.safe_load(text)
    return document["run"] if "run" in document else document["spec"]["entrypoint"]


def lines(name):
    """The words of its rlaudit lines, with their variables filled in by the shell."""
    found = [
        line[line.index("rlaudit ablate") :]
        for line in script(name).replace("\\\n", " ").splitlines()
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
    assert NAMES == ["kubernetes-rayjob.yaml", "ray-job.sh", "skypilot.yaml", "slurm.sbatch"]
    assert {name for name, _ in LINES} == set(NAMES)


@pytest.mark.parametrize(("name", "words"), LINES)
def test_a_line_of_a_cluster_file_is_understood_and_goes_through_ray(name, words, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    place = words.index("--executor")
    assert words[place + 1].partition(":")[0] == "ray"
    assert run([*words[1:place], *words[place + 2 :], "--cpu", "--dry-run"]) == 0
    assert "engine starts:" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["ray-job.sh", "slurm.sbatch"])
def test_the_scripts_are_bash(name):
    subprocess.run(["bash", "-n", str(FOLDER / name)], check=True)
