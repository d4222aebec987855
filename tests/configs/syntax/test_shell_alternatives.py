from pathlib import Path

import pytest

from rlaudit.cli.app import run
from rlaudit.configs.syntax.flags import Flag, flags, overrides
from rlaudit.configs.syntax.shell_text import commands
from rlaudit.unknown import Unknown


def open_words(text: str) -> list[str]:
    """Why each word of the last command that is not told is not."""
    return [word.value.reason for word in commands(text, "run.sh")[-1].words if isinstance(word.value, Unknown)]


def options(text: str) -> dict[str, Flag]:
    return {flag.name: flag for flag in flags(commands(text, "run.sh")[-1].words, 1)}


@pytest.mark.parametrize(
    "text",
    [
        'A=(--x 1)\nif c; then A+=(--y 2 --z); fi\nserve "${A[@]}" --w',
        'A="--x 1"\nif c; then A="$A --y 2 --z"; fi\nserve $A --w',
        'A="--x 1"\nif c; then A+=" --y=2 --z"; fi\nserve $A --w',
        'A=(--x 1)\ncase c in\n a) A=("${A[@]}" --y 2);;\n b) A+=(--y 2 --z);;\nesac\nserve "${A[@]}" --w',
        'A=(--x 1)\nf() {\n A+=(--y 2)\n [ c ] && A+=(--z)\n}\nserve "${A[@]}" --w',
        'A=(--x 1)\nwhile c; do\n case $1 in\n --z) A+=(--z);;\n --y) A+=(--y 2);;\n esac\ndone\nserve "${A[@]}" --w',
    ],
)
def test_options_of_a_condition_are_found_by_name_and_the_others_are_certain(text: str) -> None:
    found = options(text)
    assert set(found) == {"x", "y", "z", "w"}
    assert found["x"].value is not None and found["x"].value.value == "1"
    assert found["w"].value is None
    value, switch = found["y"].value, found["z"].value
    assert value is not None and isinstance(value.value, Unknown) and "--y is 2 under a condition" in value.value.reason
    assert found["z"].doubtful and switch is not None and isinstance(switch.value, Unknown)
    assert "--z stands under a condition" in switch.value.reason


def test_an_empty_text_is_no_option_yet() -> None:
    found = options('A=""\nif c; then A=(--x 1 --z); else A=(--x 2); fi\nserve --w ${A[@]}')
    assert set(found) == {"w", "x", "z"} and found["x"].value is not None
    assert "--x is 1 or 2 under a condition" in found["x"].value.value.reason


def test_overrides_of_a_condition_keep_their_keys_and_what_every_branch_would_set() -> None:
    text = 'case $M in\n a) E=(r.t=0.7 +r.k=[1,2]);;\n b) E=(r.t=1.0);;\nesac\nserve r.n=v "${E[@]}"'
    found = {flag.name: flag.value for flag in overrides(commands(text, "run.sh")[-1].words[1:])}
    assert set(found) == {"r.n", "r.t", "r.k"}
    assert found["r.t"] is not None and found["r.t"].value.reason == "r.t is 0.7 or 1.0 under a condition in line 1"


def test_a_word_of_a_condition_that_is_no_option_may_be_anything() -> None:
    assert open_words('A=(--x 1)\nif c; then A+=(more); fi\nserve "${A[@]}"') == [
        "A is extended under a condition in line 2"
    ]
    assert open_words("if c; then A=org/model; fi\nserve $A") == ["A is set to org/model under a condition in line 1"]


def test_a_value_is_said_with_what_each_branch_makes_of_it() -> None:
    text = "if c; then TP=4; elif d; then TP=2; else TP=1; fi\nserve --tp $TP"
    assert open_words(text) == ["TP is set to 4, 2 or 1 under a condition in line 1"]
    assert open_words("TP=4\nif c; then TP=$(nproc); fi\nserve --tp $TP") == ["TP is set under a condition in line 2"]


def test_branches_that_leave_the_same_value_leave_it_certain() -> None:
    assert open_words("A=--x\nif c; then A=--x; fi\nserve $A") == []


def test_a_replaced_array_holds_either_options() -> None:
    found = options('A=(--x 1)\nif c; then A=(--y 2); fi\nserve "${A[@]}"')
    assert all(isinstance(found[name].value.value, Unknown) for name in ("x", "y"))  # type: ignore[union-attr]


def test_settings_of_a_condition_are_listed_and_none_of_them_is_assumed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "run.sh").write_text(
        'A=()\nif [ "$E" ]; then A+=(--enforce-eager --logprobs-mode processed_logprobs); fi\n'
        'vllm serve org/model "${A[@]}"\n'
    )
    assert run(["inspect", "-v", "run.sh", "--from", "0.8.5", "--to", "0.18.1"]) == 0
    shown = capsys.readouterr().out
    assert "--enforce-eager stands under a condition in line 2" in shown
    assert "It is not known whether vLLM 0.18.1 returns raw or processed logprobs" in " ".join(shown.split())


def test_an_element_that_no_shell_knows_is_open() -> None:
    (reason,) = open_words("A=(1 2)\nserve ${A[@0]}")
    assert "${A[@0]}" in reason
