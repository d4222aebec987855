"""Pages and lists on a terminal: drawn, as wide as it is, and in a pager where git would page."""

import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios
from collections.abc import Mapping

import pytest

from rlaudit.cli.app import run
from rlaudit.cli.names import TOPICS

# Marks what passes through it.
PAGER = "sed 's/^/paged: /'"


def on_a_terminal(*words: str, rows: int = 1000, columns: int = 90, variables: Mapping[str, str] | None = None) -> str:
    ours, its = pty.openpty()
    fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    without = {"COLUMNS", "LINES", "PAGER", "NO_COLOR", "FORCE_COLOR"}
    environment = {name: value for name, value in os.environ.items() if name not in without}
    environment |= {"TERM": "xterm", "PAGER": PAGER, **(variables or {})}
    child = subprocess.Popen([sys.executable, "-m", "rlaudit", *words], stdout=its, stderr=its, env=environment)
    os.close(its)
    text = b""
    while True:
        try:
            part = os.read(ours, 65536)
        except OSError:  # the other end is closed
            break
        if not part:
            break
        text += part
    os.close(ours)
    assert child.wait() == 0
    return text.decode().replace("\r\n", "\n")


def test_a_topic_is_drawn_on_a_terminal_and_is_its_markdown_in_a_pipe(capsys: pytest.CaptureFixture[str]) -> None:
    drawn = on_a_terminal("explain", "recipes", variables={"NO_COLOR": "1"})
    assert not {"\x1b", "`", "|"} & set(drawn) and not drawn.startswith("#")
    assert all(len(line) <= 90 for line in drawn.splitlines())
    assert "\x1b" in on_a_terminal("explain", "recipes")
    assert run(["explain", "recipes"]) == 0
    assert capsys.readouterr().out.startswith(TOPICS["recipes"].read_text(encoding="utf-8").rstrip("\n"))


def test_a_paragraph_of_a_page_fills_the_terminal() -> None:
    lines = on_a_terminal("explain", "raw-logprobs", columns=90).splitlines()
    paragraph = lines[lines.index("Why it matters") + 1 : lines.index("Example") - 1]
    assert all(55 < len(line) <= 90 for line in paragraph[:-2])


def test_the_last_column_of_a_list_is_folded_beside_the_others() -> None:
    lines = on_a_terminal("list", "factors", columns=80).splitlines()
    indents = {len(line) - len(line.lstrip()) for line in lines}
    assert len(indents) == 2 and max(indents) > 20 and max(map(len, lines)) <= 80


@pytest.mark.parametrize(
    ("words", "rows", "variables", "paged"),
    [
        (("explain", "words"), 24, {}, True),
        (("list", "rules"), 24, {}, True),
        (("explain", "words"), 1000, {}, False),
        (("explain", "words"), 0, {}, False),
        (("explain", "words"), 24, {"TERM": "dumb"}, False),
        (("explain", "words"), 24, {"PAGER": "cat"}, False),
        (("explain", "words"), 24, {"PAGER": "no-such-pager"}, False),
    ],
    ids=str,
)
def test_a_page_longer_than_the_terminal_is_paged_where_git_pages(
    words: tuple[str, ...], rows: int, variables: dict[str, str], paged: bool
) -> None:
    shown = on_a_terminal(*words, rows=rows, variables=variables)
    assert ("paged: " in shown) == paged
    assert ("arm" if "words" in words else "raw-logprobs") in shown
