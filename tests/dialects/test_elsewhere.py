"""Sections that another file decides, configs that set up no rollouts, and arguments that only some vLLM gets."""

from pathlib import Path

import pytest
from declared_text import HEAD, read
from packaging.version import Version

from rlaudit.configs.elsewhere import Elsewhere
from rlaudit.configs.source import Source
from rlaudit.dialects.declared import dialect_at
from rlaudit.settings.rollout_config import Loss, RolloutConfig
from rlaudit.unknown import Unknown

SERVER = """\
engine:
  seed: {key: "@seed", default: 3}
elsewhere:
  engine: {if: "@mode == server", because: another command starts it%s}
"""
CONFIG = "sampler: {mode: server, seed: 1}\n"


def test_what_is_written_of_a_section_that_is_decided_elsewhere_stays_and_defaults_go(tmp_path: Path) -> None:
    config = read(tmp_path, SERVER % "", CONFIG)
    assert isinstance(config.engine, Elsewhere) and config.engine["seed"].value == 1
    assert not read(tmp_path, SERVER % "", "sampler: {mode: server}\n").engine


def test_what_is_written_of_it_is_lost_if_the_dialect_says_so(tmp_path: Path) -> None:
    config = read(tmp_path, SERVER % ", lost: not passed", CONFIG)
    assert not config.engine and isinstance(config.engine.get("seed").value, Unknown)
    assert [(lost.name, lost.loss, lost.certain) for lost in config.lost] == [("seed", Loss.NOT_PASSED, True)]


def test_a_section_that_may_be_decided_elsewhere_is_open(tmp_path: Path) -> None:
    config = read(tmp_path, SERVER % ", lost: not passed", "sampler: {mode: '${oc.env:MODE}', seed: 1}\n")
    assert isinstance(config.engine, Elsewhere)
    assert not config.lost and not config.engine["seed"].known


@pytest.mark.parametrize(
    ("config", "known"), [("{on: true}", True), ("{on: false}", False), ("{on: '${oc.env:ON}'}", True)]
)
def test_a_config_without_rollouts_is_not_recognised(tmp_path: Path, config: str, known: bool) -> None:
    path = tmp_path / "toy.yaml"
    path.write_text(HEAD + 'rollouts if: "@on"\n')
    assert dialect_at(path).recognise(Source("run.yaml", f"sampler: {config}\n")) is known


GUARDED = """\
engine:
  logprobs_mode: {key: "@mode", default: processed_logprobs}
  seed: {key: "@seed"}
guarded: {arguments: [logprobs_mode], because: the sampler leaves it out}
"""


def test_a_guarded_argument_is_lost_with_a_vllm_that_has_it_not(tmp_path: Path) -> None:
    old = read(tmp_path, GUARDED, "sampler: {mode: raw_logprobs, seed: 1}\n", "0.8.5")
    assert [(lost.name, lost.loss) for lost in old.lost] == [("logprobs_mode", Loss.UNKNOWN_KEY)]
    assert "logprobs_mode" not in old.engine and old.engine["seed"].value == 1
    assert "logprobs_mode" not in read(tmp_path, GUARDED, "sampler: {}\n", "0.8.5").engine
    assert read(tmp_path, GUARDED, "sampler: {}\n").engine["logprobs_mode"].value == "processed_logprobs"


PASSED_ON = """\
engine:
  "*": {key: "@more"}
  seed: {value: 0, because: the sampler}
"""


def test_a_text_of_json_is_the_mapping_that_it_spells_and_the_codes_own_arguments_win(tmp_path: Path) -> None:
    config = read(tmp_path, PASSED_ON, """sampler: {more: '{"seed": 5, "dtype": "half"}'}\n""")
    assert config.engine["seed"].value == 0 and config.engine["dtype"].value == "half"
    assert [(lost.name, lost.loss) for lost in config.lost] == [("seed", Loss.OVERRULED)]


@pytest.mark.parametrize(
    ("command", "call"),
    [("swift rlhf --mode x", "trainer"), ("/opt/bin/swift serve --mode x", "server"),
     ("python -m cli.rlhf --mode x", "module"), ("fast rlhf --mode x", None),
     ("swift sft rlhf --mode x", None)],
)  # fmt: skip
def test_a_program_may_be_two_words_of_a_command(tmp_path: Path, command: str, call: str | None) -> None:
    path = tmp_path / "toy.yaml"
    programs = "{swift rlhf: trainer, swift serve: server, cli.rlhf: module}"
    path.write_text(
        f"marks: [mode]\ntitle: Toy\n\nread: r1\nfiles: {{flags: {{programs: {programs}}}}}\nlayouts: {{only: {{}}}}\n"
        "options: [mode]\nnot seen: [{if: call == trainer, say: trainer}, {if: call == server, say: server},"
        " {if: call == module, say: module}]\n"
    )
    configs = dialect_at(path).read(Source("run.sh", command + "\n"), Version("0.18.1"))
    assert [config.not_seen for config in configs] == ([] if call is None else [(call,)])


@pytest.mark.parametrize("home", ["old/trainer.py", "new/trainer.py"])
def test_a_word_for_a_file_that_moved_stands_for_each_of_its_places(tmp_path: Path, home: str) -> None:
    said = (
        "package: {folder: toy}\nsources: {trainer: [toy/new/trainer.py, toy/old/trainer.py]}\n"
        "engine: {seed: {value: 0, because: code, at: {trainer: seed=0}}}\n"
    )
    code = tmp_path / "toy" / home
    code.parent.mkdir(parents=True)
    code.write_text("make(seed=0)\n")
    config: RolloutConfig = read(tmp_path, said, "sampler: {}\n")
    assert config.engine["seed"].value == 0 and config.decided["seed"].endswith(f"{home}:1")
    code.write_text("make()\n")
    (tmp_path / "again").mkdir()
    (tmp_path / ".git").mkdir()
    (tmp_path / "again" / "toy").symlink_to(tmp_path / "toy")
    assert isinstance(read(tmp_path / "again", said, "sampler: {}\n").engine["seed"].value, Unknown)


def test_a_mapping_of_variables_is_the_environment(tmp_path: Path) -> None:
    config = read(
        tmp_path,
        'environment: {VLLM_Y: {key: "@on"}, "*": {key: "@env", command: yields}}\n',
        "sampler: {on: true, env: {VLLM_X: '1'}}\n",
    )
    assert (config.environment["VLLM_X"].value, config.environment["VLLM_Y"].value) == ("1", "1")


@pytest.mark.parametrize(("vllm", "known"), [("0.15.1", False), ("0.16.0", True)])
def test_a_milestone_of_vllm_is_asked_for_by_its_name(vllm: str, known: bool, tmp_path: Path) -> None:
    said = "trainer: {pause_mode: {if: vllm >= PAUSE_TAKES_A_MODE, value: keep, because: its code}}\n"
    assert ("pause_mode" in read(tmp_path, said, "sampler: {}\n", vllm).trainer) is known


def test_a_config_is_shown_at_the_section_that_the_dialect_names(tmp_path: Path) -> None:
    config = read(tmp_path, "shown at: '@engine | @other'\n", "sampler:\n  other: {a: 1}\n  engine:\n    b: 1\n")
    assert config.place is not None and config.place.line == 3


@pytest.mark.parametrize("older", [True, False])
def test_fields_are_written_only_if_the_dialect_says_so(tmp_path: Path, older: bool) -> None:
    said = 'engine: {seed: {key: "sampler.parts.seed"}}\nwrite: {fields: "", fields if: "@older"}\n'
    config = f"sampler:\n  older: {str(older).lower()}\n  parts:\n    a: 1\n"
    edits = read(tmp_path, said, config).write("seed", 7)
    assert (edits is not None and edits[0].replacement.strip() == "seed: 7") if older else edits is None
