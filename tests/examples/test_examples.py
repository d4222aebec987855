"""Every example is a real report; rendering its document again gives the file that stands beside it."""

from pathlib import Path

import pytest

from rlaudit.cli.app import run

EXAMPLES = Path(__file__).parents[2] / "examples"
# What many releases showed is tested by test_releases.py.
REPORTS = sorted(path for path in EXAMPLES.glob("*/*/report.json") if not (path.parent / "matrix.txt").exists())


def test_there_are_examples() -> None:
    assert REPORTS


@pytest.mark.parametrize("report", REPORTS, ids=lambda path: path.parent.name)
def test_an_example_renders_to_the_markdown_beside_it(report: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(["report", str(report), "--output", "markdown"])
    assert capsys.readouterr().out == report.with_name("report.md").read_text(encoding="utf-8")
