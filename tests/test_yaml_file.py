"""Recipes are files of strangers too: what would fill the memory or never end is refused, with the reason."""

import os
from pathlib import Path

import pytest

from rlaudit.cli.app import run
from rlaudit.errors import UsageError
from rlaudit.files.yaml_file import MOST_BYTES, read_yaml_file

BOMB = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 10)}]\n" for level in range(1, 12)
)
HOSTILE = {
    "aliases that repeat each other": (BOMB, "more than 100000 values"),
    "lists in lists": ("a: " + "[" * 4_000 + "]" * 4_000, "nested"),
    "a list in a hundred lists": ("a: " + "[" * 120 + "]" * 120, "nested more than 100 deep"),
    "a large file": ("a: " + "x" * MOST_BYTES, "larger than 1 MB"),
    "bytes that are no text": ("a: \udcff", "not readable"),
    "an alias of what it is in": ("&a [*a]", "nested more than 100 deep"),
}


@pytest.mark.parametrize(("text", "reason"), HOSTILE.values(), ids=HOSTILE)
def test_what_no_recipe_is_is_refused_with_the_reason(text: str, reason: str, tmp_path: Path) -> None:
    path = tmp_path / "hostile.yaml"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(UsageError, match=reason):
        read_yaml_file(path)
    assert run(["ablate", str(path), "--dry-run"]) == 2


def test_aliases_that_repeat_little_are_what_they_stand_for(tmp_path: Path) -> None:
    path = tmp_path / "plain.yaml"
    path.write_text("shared: &shared {a: 1}\nblocks: [*shared, *shared]\n")
    assert read_yaml_file(path)["blocks"] == [{"a": 1}, {"a": 1}]


def test_a_pipe_or_a_device_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.yaml")
    for path in (tmp_path / "pipe.yaml", Path("/dev/zero"), tmp_path):
        with pytest.raises(UsageError, match="not a regular file"):
            read_yaml_file(path)
