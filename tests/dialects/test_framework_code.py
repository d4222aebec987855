from pathlib import Path

import pytest
from declared_text import read

from rlaudit.unknown import Unknown

SAID = """\
package: {folder: toy}
engine:
  max_num_seqs: {key: "@seqs", default: 64, at: {toy/worker.py: "max_num_seqs: int = 64"}}
  seed: {value: 0, at: {toy/older.py: "seed=0", toy/worker.py: "seed = 0"}}
  dtype: {value: bfloat16}
"""
CONFIG = "sampler: {b: 1}\n"


def copy(tmp_path: Path, text: str) -> None:
    (tmp_path / "toy").mkdir()
    (tmp_path / "toy" / "worker.py").write_text(text)


def test_without_a_copy_of_the_framework_facts_are_those_of_the_dialect(tmp_path: Path) -> None:
    engine = read(tmp_path, SAID, CONFIG).engine
    assert (engine["max_num_seqs"].value, engine["seed"].value) == (64, 0)


def test_a_copy_that_has_the_words_is_named_with_the_line(tmp_path: Path) -> None:
    copy(tmp_path, "class Worker:\n    max_num_seqs: int  =  64\n    seed = 0\n")
    config = read(tmp_path, SAID, CONFIG)
    assert (config.engine["max_num_seqs"].value, config.engine["seed"].value) == (64, 0)
    assert config.decided["max_num_seqs"].endswith("toy/worker.py:2")


def test_a_fact_whose_words_are_gone_is_open_and_never_the_default(tmp_path: Path) -> None:
    copy(tmp_path, "class Worker:\n    max_num_seqs: int = 512\n    seed = 0\n")
    engine = read(tmp_path, SAID, CONFIG).engine
    assert isinstance(engine["max_num_seqs"].value, Unknown)
    assert "worker.py" in engine["max_num_seqs"].value.reason
    assert engine["seed"].value == 0


def test_what_the_config_writes_is_not_looked_up(tmp_path: Path) -> None:
    copy(tmp_path, "nothing = 1\n")
    engine = read(tmp_path, SAID, "sampler: {seqs: 8}\n").engine
    assert engine["max_num_seqs"].value == 8
    assert engine["dtype"].value == "bfloat16"


EITHER = """\
package: {folder: toy}
engine:
  logprobs_mode:
    - {value: processed_logprobs, copy has: {toy/worker.py: 'logprobs_mode="processed_logprobs"'}}
    - {nothing: true, copy has: {toy/worker.py: "options.update(given)"}}
    - {open: it depends on the release}
  seed: {value: 0, at: {toy/worker.py: "seed=0"}}
"""


def test_a_clause_of_copies_holds_in_one_that_has_its_words(tmp_path: Path) -> None:
    copy(tmp_path, 'LLM(\n  seed=0, logprobs_mode="processed_logprobs")\n')
    config = read(tmp_path, EITHER, CONFIG)
    assert config.engine["logprobs_mode"].value == "processed_logprobs"
    assert config.decided["logprobs_mode"].endswith("worker.py:2")


@pytest.mark.parametrize(
    ("text", "is_open"), [("options.update(given)", False), ("options = given", True), (None, True)]
)
def test_elsewhere_it_is_what_the_other_clauses_say(tmp_path: Path, text: str | None, is_open: bool) -> None:
    if text is not None:
        copy(tmp_path, text)
    mode = read(tmp_path, EITHER, CONFIG).engine.get("logprobs_mode")
    assert isinstance(mode.value, Unknown) if is_open and mode is not None else mode is None


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
