"""`rlaudit explain FRAMEWORK`: what is read of its configs, what is not, and what its releases change."""

import re

import pytest

from rlaudit.configs.dialects.page import page_of
from rlaudit.configs.dialects.spec import shipped


def part(page: str, title: str) -> str:
    (found,) = [text for text in page.split("\n\n") if text.startswith(title)]
    return found


def test_what_is_read_what_is_not_and_what_a_release_changes_stand_apart() -> None:
    page = page_of(shipped()["verl"], in_full=True)
    assert "  data_parallel_size: {key: '@data_parallel_size'}" in part(page, "What vLLM's engine")
    assert "because: verl always says false" in part(page, "What is written and has no effect")
    assert "\n  0.9.0: max_num_seqs, seed, " in part(page, "What releases of verl change")
    assert "vLLM 0.18.0 and later need verl v0.9.0 or newer" in part(page, "What tells the release")


def test_the_page_begins_with_releases_and_with_where_an_argument_is_written() -> None:
    page = page_of(shipped()["verl"])
    assert "vLLM 0.18.0 and later need verl v0.9.0 or newer" in part(page, "Which verl goes with which vLLM")
    assert "any other argument: @engine_kwargs.vllm.NAME" in part(page, "How an argument of vLLM is written")
    assert "What vLLM's engine gets" not in page


@pytest.mark.parametrize("name", shipped())
def test_every_release_that_decides_something_is_named_and_no_line_of_code(name: str) -> None:
    page = page_of(shipped()[name], in_full=True)
    read, _, changes = page.partition("What releases of ")
    decided = re.findall(r"release (?:>=|<) ([\d.]*\d)", read)
    assert set(decided) <= set(re.findall(r"^  ([\d.]+): [A-Za-z_]", changes, re.MULTILINE))
    assert not re.search(r"[ {]at: ", page)
    assert "&id" not in page
