"""The tests that a meaning is decided by: what `explain` and `list` print of them."""

import pytest

from rlaudit.cli.app import run
from rlaudit.meaning.documented import ALL


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


@pytest.mark.parametrize("word", ["arm", "cell", "reference", "candidate", "parity", "block"])
def test_a_word_of_a_report_is_explained_as_the_topic_has_it(word: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain", word]) == 0
    explained = capsys.readouterr().out
    assert explained.startswith(f"{word}: ") and "rlaudit explain reading" in explained
