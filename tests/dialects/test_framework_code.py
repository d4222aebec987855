from pathlib import Path

from declared_text import read

from rlaudit.configs.syntax.node import Unknown

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
