"""Pages and lists on a terminal: drawn, as wide as it is, and in a pager where git would page."""

from collections.abc import Mapping

import pytest
from terminal import on_a_terminal

from rlaudit.cli.app import run
from rlaudit.cli.names import TOPICS

# Marks what passes through it.
PAGER = "sed 's/^/paged: /'"


def paged(*words: str, rows: int = 1000, columns: int = 90, variables: Mapping[str, str] | None = None) -> str:
    text, code = on_a_terminal(*words, rows=rows, columns=columns, variables={"PAGER": PAGER, **(variables or {})})
    assert code == 0
    return text


def test_a_topic_is_drawn_on_a_terminal_and_is_its_markdown_in_a_pipe(capsys: pytest.CaptureFixture[str]) -> None:
    drawn = paged("explain", "recipes", variables={"NO_COLOR": "1"})
    assert not {"\x1b", "`", "|"} & set(drawn) and not drawn.startswith("#")
    assert all(len(line) <= 90 for line in drawn.splitlines())
    assert "\x1b" in paged("explain", "recipes")
    assert run(["explain", "recipes"]) == 0
    assert capsys.readouterr().out.startswith(TOPICS["recipes"].read_text(encoding="utf-8").rstrip("\n"))


def test_a_paragraph_of_a_page_fills_the_terminal() -> None:
    lines = paged("explain", "raw-logprobs", columns=90).splitlines()
    paragraph = lines[lines.index("Why it matters") + 1 : lines.index("Example") - 1]
    assert all(55 < len(line) <= 90 for line in paragraph[:-2])


def test_the_last_column_of_a_list_is_folded_beside_the_others() -> None:
    lines = paged("list", "factors", columns=80).splitlines()
    indents = {len(line) - len(line.lstrip()) for line in lines}
    assert len(indents) == 2 and max(indents) > 20 and max(map(len, lines)) <= 80


@pytest.mark.parametrize(
    ("words", "rows", "variables", "is_paged"),
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
    words: tuple[str, ...], rows: int, variables: dict[str, str], is_paged: bool
) -> None:
    shown = paged(*words, rows=rows, variables=variables)
    assert ("paged: " in shown) == is_paged
    assert ("arm" if "words" in words else "raw-logprobs") in shown
