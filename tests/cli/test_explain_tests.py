"""The tests that a meaning is decided by, and the words of a report: what `explain` and `list` print of them."""

import re
from itertools import pairwise
from pathlib import Path

import pytest

from rlaudit.cli.app import run
from rlaudit.meaning.documented import ALL

EXAMPLES = Path(__file__).parents[2] / "examples"


def test_the_derivation_of_sibling_agreement_is_printed_with_its_weights_its_interval_and_what_breaks_it(capsys):
    assert run(["explain", "sibling-agreement"]) == 0
    said = capsys.readouterr().out
    for part in ("has mean 0", "What is estimated", "weight", "interval", "copies", "Layer: semantic", "Needs: token"):
        assert part in said


@pytest.mark.parametrize("name", ALL)
def test_every_test_is_listed_with_its_layer_and_what_it_needs(name, capsys):
    assert run(["list", "tests"]) == 0
    (line,) = [one for one in capsys.readouterr().out.splitlines() if one.split()[0] == name]
    assert str(ALL[name].layer) in line
    assert ALL[name].needs in line


@pytest.mark.parametrize("word", ["arm", "cell", "Median |d|", "nothing found", "took effect", "exit codes"])
def test_a_word_of_a_report_is_explained_as_the_topic_has_it(word: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain", word]) == 0
    explained = capsys.readouterr().out
    assert explained.startswith(f"{word}: ") and "rlaudit explain words" in explained


@pytest.mark.parametrize("example", ["vllm/v0-to-v1", "verl/a-real-move"])
def test_every_label_of_a_rendered_report_is_explained(example: str, capsys: pytest.CaptureFixture[str]) -> None:
    run(["report", str(EXAMPLES / example), "--output", "markdown"])
    labels = _labels(capsys.readouterr().out.partition("## What the engines loaded")[0])
    assert len(labels) > 12
    assert [label for label in sorted(labels) if run(["explain", label]) != 0] == []


def _labels(page: str) -> set[str]:
    """Return the headings of tables, the words in bold, and the verdicts on factors."""
    labels, column = set(re.findall(r"\*\*([A-Z][^*]*?):?\*\*", page)), None
    rows = [re.split(r" (?<!\\)\| ", line.strip("| ")) if line[:1] == "|" else None for line in page.splitlines()]
    for row, below in pairwise(rows):
        if row and below and set(below[0]) == {"-"}:
            labels |= {cell.replace("\\|", "|") for cell in row}
            column = row.index("verdict") if "verdict" in row else None
        elif row and column is not None and "-" not in row[0][:3]:
            labels.add(row[column].removesuffix(", interacts"))
    return {label.split(". ")[-1] for label in labels if label}
