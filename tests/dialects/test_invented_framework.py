"""A framework that does not exist, as somebody's own dialect: own keys, a wrapper, a dropped false, a moved default."""

from pathlib import Path

import pytest
from packaging.version import Version

from rlaudit.cli.app import run
from rlaudit.configs.dialects.declared import named_dialect
from rlaudit.configs.source import Source
from rlaudit.configs.syntax.spelling import apply
from rlaudit.settings.rollout_config import RolloutConfig
from rlaudit.unknown import Unknown

DIALECT = """\
marks: [lorikeet]
title: Lorikeet
about: "`lorikeet.sampler` in YAML, or `--sampler.KEY value` after `lorikeet-train`."

read: v3
package: {folder: lorikeet, names: [lorikeet-rl]}
files:
  yaml: {}
  flags: {programs: [lorikeet-train]}
layouts:
  file: {root: lorikeet.sampler}
  command:
    has: [sampler.tp, sampler.eager, sampler.prefix_cache]
    renames: {tp: sampler.tp, eager: sampler.eager, prefix_cache: sampler.prefix_cache, slots: sampler.slots}
release:
  by keys: [{if: "@overlap is set", since: 3.0.0, because: sampler.overlap exists since 3.0.0}]

engine:
  tensor_parallel_size: {key: "@tp", default: 1}
  # lorikeet/engine.py builds flags with `if value`, so a written false is dropped.
  enforce_eager:
    - {if: "@eager == false", key: "@eager", lost: false dropped, because: "flags are built with `if value`"}
    - {key: "@eager"}
  enable_prefix_caching: {key: "@prefix_cache"}
  max_num_seqs: {key: "@slots", default: 64, moved: {3.0.0: 256}, at: {lorikeet/engine.py: "slots: int = 256"}}
  async_scheduling: {key: "@overlap"}
  "*": {key: "@more"}
sampling:
  temperature: {key: "@heat", default: 1.0}
trainer:
  divides_by_temperature: {value: true}
  weight_updates: {value: between rollouts}
write: {fields: "@", others: "@more"}
"""
CONFIG = "lorikeet:\n  sampler:\n    tp: 2\n    eager: false\n    prefix_cache: true\n    heat: 0.7\n"
SCRIPT = "#!/bin/bash\nexport VLLM_USE_V1=1\nlorikeet-train --sampler.tp 2 --sampler.eager true\n"


def config_of(tmp_path: Path, text: str, name: str = "run.yaml") -> RolloutConfig:
    path, file = tmp_path / "lorikeet.yaml", tmp_path / name
    path.write_text(DIALECT)
    file.write_text(text)
    dialect = named_dialect(path)
    source = Source(str(file), text)
    assert dialect.recognise(source)
    (found,) = dialect.read(source, Version("0.18.1"))
    return found


def test_its_wrapper_is_read_from_a_script(tmp_path: Path) -> None:
    config = config_of(tmp_path, SCRIPT, "run.sh")
    assert config.engine["tensor_parallel_size"].value == 2
    assert config.engine["enforce_eager"].value is True
    assert config.environment["VLLM_USE_V1"].value == "1"


def test_its_default_that_moved_is_open_until_a_key_or_a_pin_tells_the_release(tmp_path: Path) -> None:
    assert isinstance(config_of(tmp_path, CONFIG).engine["max_num_seqs"].value, Unknown)
    assert config_of(tmp_path, CONFIG + "    overlap: true\n").engine["max_num_seqs"].value == 256
    pinned = tmp_path / "pinned"
    pinned.mkdir()
    (pinned / "requirements.txt").write_text("lorikeet-rl==2.1\n")
    assert config_of(pinned, CONFIG).engine["max_num_seqs"].value == 64


def test_a_fix_is_written_in_its_own_spelling(tmp_path: Path) -> None:
    edits = config_of(tmp_path, CONFIG).write("enable_prefix_caching", False)
    assert edits is not None
    assert "prefix_cache: false" in apply(CONFIG, edits)
    added = config_of(tmp_path, CONFIG).write("async_scheduling", False)
    assert added is not None
    assert "overlap: false" in apply(CONFIG, added)


def test_an_argument_that_only_a_mapping_takes_is_no_option_of_its_launcher(tmp_path: Path) -> None:
    text = CONFIG + "    more: {block_size: 32}\n"
    edits = config_of(tmp_path, text).write("generation_config", "vllm")
    assert edits is not None
    assert "more: {block_size: 32, generation_config: vllm}" in apply(text, edits)
    assert config_of(tmp_path, SCRIPT, "run.sh").write("generation_config", "vllm") is None


def test_inspect_judges_it_as_any_other(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config_of(tmp_path, CONFIG)
    words = ["inspect", "--dialect", str(tmp_path / "lorikeet.yaml"), str(tmp_path / "run.yaml")]
    assert run([*words, "--from", "0.8.5", "--to", "0.18.1"]) == 0
    printed = capsys.readouterr().out
    assert "Lorikeet" in printed
    assert "raw-logprobs" in printed
