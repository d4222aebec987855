"""The files of examples/ci are what their CI reads, and their rlaudit lines run."""

import pytest
import yaml
from documented_commands import ROOT, command_lines, rlaudit_words, run_line

FILES = sorted((ROOT / "examples" / "ci").glob("*.yml"))


def scripts(document):
    """Everything that a job of either CI runs, as text."""
    if "jobs" in document:
        return [step["run"] for job in document["jobs"].values() for step in job["steps"] if "run" in step]
    return [line for job in document.values() if isinstance(job, dict) for line in job.get("script", [])]


LINES = [
    line
    for file in FILES
    for script in scripts(yaml.safe_load(file.read_text()))
    for line in command_lines(script)
    if line.startswith("rlaudit ")
]


def test_both_systems_have_an_example_that_inspects():
    assert [file.stem for file in FILES] == ["github-actions", "github-bump", "gitlab-ci"]
    assert sum(line.startswith("rlaudit inspect") for line in LINES) == 2


@pytest.mark.parametrize("line", LINES)
def test_a_line_of_a_job_runs(line, tmp_path, monkeypatch):
    words = rlaudit_words(line)
    assert run_line(line, tmp_path, monkeypatch) == {"inspect": 1, "ablate": 0, "compare": 0}[words[0]]
    written = [word.split(":", 1)[1] for word in words if ":" in word]
    if words[0] != "ablate":
        assert all((tmp_path / name).stat().st_size for name in written)
