"""examples/api: the test of a framework with the assertion, and a notebook."""

import runpy
from pathlib import Path

import pytest

from rlaudit.testing import assert_logprobs_agree

FOLDER = Path(__file__).parents[2] / "examples" / "api"
RECORDED = FOLDER.parent / "recorded" / "trl-0.8.5-to-0.10.2"


def test_the_recorded_pair_passes_on_v0_and_fails_on_v1_in_the_words_that_are_quoted() -> None:
    assert_logprobs_agree(RECORDED / "v0")
    with pytest.raises(AssertionError) as failure:
        assert_logprobs_agree(RECORDED / "v1")
    assert f"```\n{failure.value}\n```" in (FOLDER / "README.md").read_text(encoding="utf-8")


def test_the_example_of_a_test_expects_just_that() -> None:
    assert pytest.main(["-q", "-n", "0", "-p", "no:cacheprovider", str(FOLDER / "test_logprobs_agree.py")]) == 0


def test_the_notebook_prints_what_stands_beside_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(FOLDER)
    runpy.run_path("notebook.py")
    assert capsys.readouterr().out == (FOLDER / "notebook.txt").read_text(encoding="utf-8")
