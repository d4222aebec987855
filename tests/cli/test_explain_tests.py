"""The tests that a meaning is decided by, and the words of a report: what `explain` and `list` print of them."""

import re
from itertools import pairwise
from pathlib import Path

import pytest

from rlaudit.cli.app import run
from rlaudit.meaning.documented import ALL

EXAMPLES = Path(__file__).parents[2] / "examples"
REPORTS = sorted(EXAMPLES.rglob("report.json"))


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


@pytest.mark.parametrize("report", REPORTS, ids=lambda file: str(file.parent.relative_to(EXAMPLES)))
def test_every_label_of_a_rendered_report_is_explained(report: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(["report", str(report.parent), "--output", "markdown"])
    labels = _labels(capsys.readouterr().out.partition("## What the engines loaded")[0])
    assert len(labels) > 3
    assert [label for label in sorted(labels) if run(["explain", label]) != 0] == []


@pytest.mark.parametrize(
    ("name", "says"), [("enable_prefix_caching", "Levels: on, off"), ("ablate", "--help"), ("V0", "old engine")]
)
def test_an_argument_that_a_factor_sets_a_command_and_an_engine_are_explained(
    name: str, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["explain", name]) == 0
    assert says in capsys.readouterr().out


def _labels(page: str) -> set[str]:
    """Return the headings of tables, the words in bold, and the verdicts on factors.

    Names of arms are those of a recipe, and no words of rlaudit.
    """
    labels, arms, column = set(re.findall(r"\*\*([A-Z][^*]*?):?\*\*", page)), set(), None
    rows = [re.split(r" (?<!\\)\| ", line.strip("| ")) if line[:1] == "|" else None for line in page.splitlines()]
    heads: list[str] = []
    for row, below in pairwise(rows):
        if row and below and set(below[0]) == {"-"}:
            heads = row
            labels |= {cell.replace("\\|", "|") for cell in row}
            column = row.index("verdict") if "verdict" in row else None
        elif row and "-" not in row[0][:3]:
            arms |= {row[0]} if heads[0] == "arm" else set()
            labels |= {row[column].removesuffix(", interacts")} if column is not None else set()
    return {label.split(". ")[-1] for label in labels - arms if label}
