"""A copy of a framework beside a config, of a dialect made for a test."""

from pathlib import Path

import pytest
from declared_text import read
from packaging.version import Version

from rlaudit.configs.framework_source.checkout import Checkout
from rlaudit.unknown import Unknown

CONFIG = "sampler: {b: 1}\n"


def copy(tmp_path: Path, text: str) -> None:
    (tmp_path / "toy").mkdir()
    (tmp_path / "toy" / "worker.py").write_text(text)


DATED = """\
package: {folder: toy}
release:
  by keys:
    - {if: newer, since: 2.0.0, because: newer is there since 2.0}
    - {if: older, before: 2.0.0, because: older is gone from 2.0 on}
engine:
  seed:
    - {if: release >= 2.0.0, value: 7, at: {toy/worker.py: seed=7}}
    - {value: 1, at: {toy/worker.py: seed=1}}
"""


@pytest.mark.parametrize(
    ("key", "there", "wanted"),
    [
        ("newer", None, 7),
        ("older", None, 1),
        ("other", None, "open"),
        ("other", "seed=7", 7),
        ("other", "seed=1", 1),
        ("other", "seed=3", "open"),
        ("older", "seed=7", "open"),
    ],
)
def test_the_copy_says_what_a_release_would_and_without_one_the_release_does(
    tmp_path: Path, key: str, there: str | None, wanted: object
) -> None:
    if there is not None:
        copy(tmp_path, there)
    setting = read(tmp_path, DATED, f"{CONFIG}{key}: 1\n").engine["seed"]
    assert (setting.value if setting.known else "open") == wanted


DECIDES = """\
package: {folder: toy, files: [toy/worker.py]}
engine:
  seed: {value: 1}
  enforce_eager: {value: true, nowhere: cudagraphs|graphs}
  max_num_seqs: {value: 8, at: {}}
  max_model_len: {key: "@length", default: 99}
  quantization: {key: "@quantization"}
trainer:
  dtype: {value: bfloat16, at: {toy/worker.py: bf16}}
  head_dtype: {same as: $trainer.dtype}
"""


EVERY = {"seed", "enforce_eager", "max_num_seqs", "max_model_len", "quantization", "dtype", "head_dtype"}


@pytest.mark.parametrize(
    ("text", "open_ones"),
    [
        (None, set()),
        ("run(quantization, bf16)", {"seed", "max_model_len"}),
        ("run(quantization, bf16, graphs=True)", {"seed", "max_model_len", "enforce_eager"}),
        ("run(bf16)", {"seed", "max_model_len", "quantization"}),
        ("run(quantization)", {"seed", "max_model_len", "dtype", "head_dtype"}),
    ],
)
def test_beside_a_copy_a_value_needs_evidence(tmp_path: Path, text: str | None, open_ones: set[str]) -> None:
    if text is not None:
        copy(tmp_path, text)
    config = read(tmp_path, DECIDES, "sampler: {quantization: fp8}\n")
    settings = {**config.engine, **config.trainer}
    assert {name for name in EVERY if not settings[name].known} == open_ones


DROPS = """\
package: {folder: toy, files: [toy/worker.py]}
files: {yaml: {defaults: hydra}}
engine:
  enable_prefix_caching: {key: "@prefixes"}
  enforce_eager: {key: "@eager"}
falses: [{because: the serializer skips it, at: {toy/worker.py: "if v: flags.append"}}]
rest: "@"
"""


@pytest.mark.parametrize(("text", "value"), [("if v:\n    flags.append(v)", None), ("flags += no(v)", Unknown)])
def test_a_copy_without_the_line_that_drops_a_false_leaves_it_open(tmp_path: Path, text: str, value: object) -> None:
    copy(tmp_path, f"{text}\nengine(prefixes=config.prefixes)")
    config = read(tmp_path, DROPS, "sampler: {prefixes: false, other: {deep: 3}}\n")
    arrives = config.engine["enable_prefix_caching"].value
    assert arrives is None if value is None else isinstance(arrives, Unknown)
    assert config.options["sampler.other.deep"].value == 3 and "sampler.prefixes" not in config.options


def test_what_stands_in_the_packages_own_files_is_the_frameworks_word(tmp_path: Path) -> None:
    copy(tmp_path, "")
    (tmp_path / "toy/base.yaml").write_text("sampler: {eager: true, old: 2}\n")
    found = read(tmp_path, DROPS, "defaults: [toy@_global_: base, _self_]\nsampler: {mode: inside}\n")
    assert found.engine["enforce_eager"].place is None and "base.yaml:1" in found.decided["enforce_eager"]
    assert "sampler.old" not in found.options


@pytest.mark.parametrize(("name", "release"), [("toy", Version("0.2.0")), ("somebodys-recipe", None)])
def test_a_project_that_holds_a_copy_does_not_lend_it_its_release(
    tmp_path: Path, name: str, release: Version | None
) -> None:
    copy(tmp_path, "")
    (tmp_path / "pyproject.toml").write_text(f'[project]\nname = "{name}"\nversion = "0.2.0"\n')
    assert Checkout(str(tmp_path), "toy", (str(tmp_path),)).version == release
