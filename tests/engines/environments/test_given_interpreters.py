"""What `--python` and `--trainer-python` may say."""

from pathlib import Path

import pytest

from rlaudit.engines.environments.given_interpreters import given_interpreters
from rlaudit.errors import UsageError

BOTH = ("0.8.5", "0.18.1")


def test_each_release_has_its_own_command_split_as_a_shell_would() -> None:
    given = given_interpreters(["0.8.5=/old/bin/python", "v0.18.1=apptainer exec --nv 'my vllm.sif' python3"])
    assert given.for_releases(BOTH) == {
        "0.8.5": ("/old/bin/python",),
        "0.18.1": ("apptainer", "exec", "--nv", "my vllm.sif", "python3"),
    }


@pytest.mark.parametrize("text", ["/opt/a=b/bin/python", "env A=1 python", "python -X dev=1"])
def test_an_equals_sign_in_a_path_or_a_later_word_is_part_of_the_command(text: str) -> None:
    assert given_interpreters([text]).engine == tuple(text.split())


def test_a_command_without_a_release_is_for_the_only_one_and_a_release_without_one_is_left_to_rlaudit() -> None:
    assert given_interpreters(["python3"]).for_releases(["0.18.1"]) == {"0.18.1": ("python3",)}
    assert given_interpreters(["0.8.5=python3"]).for_releases(BOTH) == {"0.8.5": ("python3",)}
    assert not given_interpreters(None)
    assert given_interpreters(None, "python3")


def test_the_home_folder_is_found_where_no_shell_looks_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/one")
    given = given_interpreters(["0.8.5=~/old/bin/python"], "conda run -p ~/train python")
    assert given.by_release["0.8.5"] == ("/home/one/old/bin/python",)
    assert given.trainer == ("conda", "run", "-p", "/home/one/train", "python")
    assert Path(given.by_release["0.8.5"][0]).is_absolute()


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (["0.8.5=a", "0.8.5=b"], "names vLLM 0.8.5 twice"),
        (["0.8.5=a", "b"], "names no release beside other interpreters"),
        (["a", "b"], "names no release beside other interpreters"),
        (["0.8.x=a"], "'0.8.x' is not a vLLM release"),
        (["0.8.5='a"], "No closing quotation"),
        (["0.8.5="], "names no interpreter"),
        ([""], "names no interpreter"),
    ],
)
def test_what_cannot_be_meant_is_a_usage_error(texts: list[str], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        given_interpreters(texts)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0.9.0=python3", r"no arm runs vLLM 0\.9\.0\n.*0\.8\.5 and 0\.18\.1"),
        ("python3", r"--python 0\.8\.5=COMMAND --python 0\.18\.1=COMMAND"),
    ],
)
def test_a_release_that_no_arm_runs_or_none_where_two_are_needed_is_refused_with_those(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        given_interpreters([text]).for_releases(BOTH)
