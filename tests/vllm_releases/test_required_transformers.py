"""What releases of vLLM require of transformers was read for every release that is known."""

import itertools

import pytest
from packaging.version import Version

from rlaudit.vllm.catalogue import known_versions
from rlaudit.vllm.transformers import LAST_READ, REQUIRED, required_transformers


def test_the_wheel_of_the_newest_known_release_was_read() -> None:
    assert known_versions()[-1] == LAST_READ, "read Requires-Dist: transformers in the METADATA of its wheel"


def test_every_entry_is_of_a_known_release_and_differs_from_the_one_before() -> None:
    assert set(REQUIRED) <= set(known_versions())
    written = list(REQUIRED.values())
    assert all(old != new for old, new in itertools.pairwise(written))


@pytest.mark.parametrize(
    ("vllm", "transformers", "runs"),
    [
        ("0.10.2", "4.57.6", True),
        # Its metadata has no upper limit, and its tokenizers call what transformers 5 lacks.
        ("0.10.2", "5.19.0", False),
        ("0.18.1", "5.0.0", False),
        ("0.19.1", "4.57.6", True),
        ("0.19.1", "5.4.0", False),
        ("0.19.1", "5.6.0", True),
        ("0.24.0", "4.57.6", False),
        ("0.32.0", "5.20.0", False),
    ],
)
def test_a_release_runs_with_what_it_was_written_for(vllm: str, transformers: str, runs: bool) -> None:
    assert required_transformers(Version(vllm)).runs_with(Version(transformers)) is runs
