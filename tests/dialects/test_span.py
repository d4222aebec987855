from pathlib import Path

import pytest
from declared_text import read

from rlaudit.configs.syntax.node import Unknown

RELEASE = """\
package: {folder: toy, names: [toy-rl], repositories: [me/toy]}
release:
  by keys:
    - {if: "@newer is set", since: 0.7.0, because: sampler.newer exists since 0.7.0}
    - {if: "@older is set", before: 0.7.0, because: sampler.older was removed in 0.7.0}
  by vllm:
    - {if: "vllm >= 0.18.0", since: 0.9.0, because: toy for vLLM 0.18.0 is 0.9.0 or later}
engine:
  seed: {key: "@seed", default: 0, moved: {0.8.0: 42}}
"""


def test_a_default_that_moved_follows_the_release_that_keys_and_vllm_leave(tmp_path: Path) -> None:
    assert read(tmp_path, RELEASE, "sampler: {older: 1}\n", "0.8.5").engine["seed"].value == 0
    assert read(tmp_path, RELEASE, "sampler: {newer: 1}\n", "0.18.1").engine["seed"].value == 42


def test_it_is_open_if_releases_on_both_sides_are_possible(tmp_path: Path) -> None:
    value = read(tmp_path, RELEASE, "sampler: {newer: 1}\n", "0.8.5").engine["seed"].value
    assert isinstance(value, Unknown)
    assert value.among == (0, 42)
    assert "0.7.0" in value.reason


def test_keys_win_over_the_release_of_vllm(tmp_path: Path) -> None:
    config = read(tmp_path, RELEASE, "sampler: {older: 1}\n", "0.18.1")
    assert config.releases is not None and str(config.releases.newest) == "0.7.0"


@pytest.mark.parametrize(("pin", "seed"), [("0.7.2", 0), ("0.8.1", 42)])
def test_a_pin_inside_the_span_decides(tmp_path: Path, pin: str, seed: int) -> None:
    (tmp_path / "requirements.txt").write_text(f"toy-rl=={pin}\n")
    assert read(tmp_path, RELEASE, "sampler: {newer: 1}\n", "0.8.5").engine["seed"].value == seed


def test_a_pin_outside_the_span_does_not(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("toy-rl==0.1.0\n")
    assert isinstance(read(tmp_path, RELEASE, "sampler: {newer: 1}\n", "0.8.5").engine["seed"].value, Unknown)
