"""`rlaudit explain FRAMEWORK`: what is read of its configs, what is not, and what its releases change."""

import re

import pytest

from rlaudit.dialects.page import page_of
from rlaudit.dialects.spec import shipped


def part(page: str, title: str) -> str:
    (found,) = [text for text in page.split("\n\n") if text.startswith(title)]
    return found


def test_what_is_read_what_is_not_and_what_a_release_changes_stand_apart() -> None:
    page = page_of(shipped()["verl"])
    assert "max_num_seqs                   @max_num_seqs, else 1024, 256 from 0.9.0 on" in part(
        page, "What vLLM's engine"
    )
    not_read = part(page, "What is not read")
    assert "@pipeline_model_parallel_size: not passed; verl refuses it for vLLM" in not_read
    assert "distributed_executor_backend: a class of verl's own if the workers" in not_read
    assert "\n  0.9.0: max_num_seqs, seed, " in part(page, "What releases of verl change")
    assert "verl for vLLM 0.18.0 and later is v0.9.0 or newer" in part(page, "What tells the release")
    assert "  0.8.0: 0.16.0\n" in part(page_of(shipped()["axolotl"]), "The TRL that its releases bring")


@pytest.mark.parametrize("name", shipped())
def test_every_release_that_decides_something_is_named(name: str) -> None:
    page = page_of(shipped()[name])
    read = re.split("\n\nWhat (is not read|releases of)", page)[0]
    decided = re.findall(r"release (?:>=|<) ([\d.]*\d)| from (\d+\.\d+\.\d+) on", read)
    named = re.findall(r"^  ([\d.]+): [A-Za-z_]", page, re.MULTILINE)
    assert {release for pair in decided for release in pair if release} <= set(named)
    assert not re.search(r"^ +,|\bNone\b|\bmap \{", page, re.MULTILINE)
