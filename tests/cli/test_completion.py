"""What a shell is told to complete; `inspect` parses its own arguments and is completed all the same."""

import re

import pytest

from rlaudit.cli.app import run
from rlaudit.cli.inspect_arguments import arguments_parser


def completed(words, place, monkeypatch, capsys):
    monkeypatch.setenv("_RLAUDIT_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", str(place))
    assert run([]) == 0
    return set(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    "words, place, offered",
    [
        ("rlaudit insp", 1, {"inspect"}),
        ("rlaudit ablate --dry", 2, {"--dry-run"}),
        ("rlaudit rec", 1, {"record"}),
        ("rlaudit record --pro", 2, {"--prompts"}),
        ("rlaudit engines ", 2, {"build", "list", "doctor", "remove"}),
        ("rlaudit list rec", 2, {"recipes", "recipe-keys"}),
        ("rlaudit explain raw", 2, {"raw-logprobs"}),
        ("rlaudit explain 0.18", 2, {"0.18.0", "0.18.1"}),
        ("rlaudit ablate v0-", 2, {"v0-to-v1"}),
        ("rlaudit ablate x.yaml --factor fp32", 4, {"fp32-head"}),
        ("rlaudit compare t --output ma", 4, {"markdown"}),
        ("rlaudit inspect --select raw", 3, {"raw-logprobs"}),
        ("rlaudit inspect --to 0.20.", 3, {"0.20.0", "0.20.1", "0.20.2"}),
        ("rlaudit inspect --fail-for m", 3, {"move"}),
    ],
)
def test_commands_options_and_words_are_completed(words, place, offered, monkeypatch, capsys):
    assert completed(words, place, monkeypatch, capsys) == offered


def test_every_option_of_inspect_is_completed(monkeypatch, capsys):
    options = set(re.findall(r"--[a-z][a-z-]*", arguments_parser().format_help()))
    offered = completed("rlaudit inspect --", 2, monkeypatch, capsys)
    assert offered == options
