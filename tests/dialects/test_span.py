from pathlib import Path

import pytest
from declared_text import HEAD, read

from rlaudit.configs.dialects.schema import faults
from rlaudit.settings.rollout_config import Loss
from rlaudit.unknown import Unknown

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
    assert "nothing here says whether Toy is 0.8.0 or later" in value.reason


FIELDS = """\
package: {folder: toy, names: [toy-rl]}
release:
  fields:
    "@newer": {since: 0.7.0}
    "@older": {before: 0.9.0}
  runs with vllm:
    - {if: vllm >= 0.12.0, since: 0.8.0, because: toy before 0.8.0 does not import with vLLM 0.12.0}
    - {if: vllm < 0.10.0, before: 0.8.0, because: toy 0.8.0 passes what vLLM 0.10.0 brought}
  admits vllm: {0.8.0: 0.12.0, 0.9.0: 0.18.1}
  admits by: the vllm extra of toy
engine:
  seed: {key: "@seed", default: 0, moved: {0.9.0: 42}}
  dtype: {key: "@older"}
"""


def test_the_first_release_that_asks_for_a_vllm_is_taken_and_earlier_ones_that_run_are_named(tmp_path: Path) -> None:
    config = read(tmp_path, FIELDS, "sampler: {newer: 1}\n", "0.18.1")
    assert config.releases is not None and str(config.releases.oldest) == "0.9.0"
    assert any("the vllm extra of toy" in said and "from 0.8.0 on" in said for said in config.not_seen)
    assert config.engine["seed"].value == 42
    assert isinstance(read(tmp_path, FIELDS, "sampler: {newer: 1}\n", "0.12.0").engine["seed"].value, Unknown)


@pytest.mark.parametrize(("vllm", "certain"), [("0.18.1", [False]), ("0.12.0", []), ("0.8.5", [])])
def test_a_key_that_no_release_for_a_vllm_has_stops_it(tmp_path: Path, vllm: str, certain: list[bool]) -> None:
    config = read(tmp_path, FIELDS, "sampler: {older: 1}\n", vllm)
    assert [one.certain for one in config.lost] == certain
    assert all((one.name, one.loss) == ("dtype", Loss.REFUSED) for one in config.lost)


@pytest.mark.parametrize(("pin", "vllm", "refused"), [
    ("0.7.1", "0.18.1", True), ("0.8.2", "0.18.1", False), ("0.9.0", "0.8.5", True), ("0.6.0", "0.18.1", False),
])  # fmt: skip
def test_a_pin_that_has_every_key_and_does_not_run_is_refused(
    tmp_path: Path, pin: str, vllm: str, refused: bool
) -> None:
    (tmp_path / "requirements.txt").write_text(f"toy-rl=={pin}\n")
    config = read(tmp_path, FIELDS, "sampler: {newer: 1}\n", vllm)
    assert (config.refused_pin is not None) is refused
    if pin == "0.8.2":
        assert config.engine["seed"].value == 0


def test_a_release_that_yaml_would_take_for_a_number_is_a_fault(tmp_path: Path) -> None:
    (tmp_path / "toy.yaml").write_text(HEAD + "release: {fields: {a: {since: 1.10}}}\n")
    assert any("1.10.0" in fault for fault in faults(tmp_path / "toy.yaml"))
