"""Options of a command line as a dialect reads them."""

from pathlib import Path

import pytest
from packaging.version import Version

from rlaudit.configs.dialects.declared import dialect_at
from rlaudit.configs.source import Source
from rlaudit.configs.syntax.spelling import apply
from rlaudit.settings.place import Edit
from rlaudit.settings.rollout_config import RolloutConfig

TOY = """\
marks: [toy.py]
title: Toy

read: r1
files:
  flags:
    programs: [toy.py]
layouts:
  dotted: {has: [engine.size]}
  flat: {renames: {engine.size: size, engine.enforce_eager: eager}}
engine:
  tensor_parallel_size: {key: "@engine.size", default: 1}
  enforce_eager: {key: "@engine.enforce_eager", default: false}
  enable_prefix_caching: {key: caching, truth: true, default: true}
  max_model_len: {key: prompt | answer, sum: [prompt|100, answer|100]}
  hf_overrides: {key: overrides}
environment:
  "*": {command: yields}
options: ["*band*", size]
unknown options: {named: "*eng*", because: no option that was read}
write: {fields: "@"}
"""


def read(tmp_path: Path, command: str, more: dict[str, str] | None = None) -> RolloutConfig:
    """Return what a command sets up."""
    (tmp_path / "toy.yaml").write_text(TOY)
    for name, text in (more or {}).items():
        (tmp_path / name).write_text(text)
    text = f"{command}\n"
    (tmp_path / "run.sh").write_text(text)
    (found,) = dialect_at(tmp_path / "toy.yaml").read(Source(str(tmp_path / "run.sh"), text), Version("0.18.1"))
    return found


def edited(config: RolloutConfig, command: str, name: str, value: object) -> str | None:
    """Return the command with an argument written."""
    edits: tuple[Edit, ...] | None = config.write(name, value)
    return None if edits is None else apply(f"{command}\n", edits).strip()


@pytest.mark.parametrize(
    ("options", "name", "value"),
    [
        ("--engine.size 4", "tensor_parallel_size", 4),
        ("--size 4", "tensor_parallel_size", 4),
        ("--size=4 --size 8", "tensor_parallel_size", 8),
        ("", "tensor_parallel_size", 1),
        ("--no-caching", "enable_prefix_caching", False),
        ("--caching", "enable_prefix_caching", True),
        ("--caching false", "enable_prefix_caching", False),
        ("--prompt 300", "max_model_len", 400),
        ("--prompt 300 --answer 50", "max_model_len", 350),
        ("--prompt $N", "max_model_len", "open"),
        ("""--overrides '{"a": {"b": [1]}}'""", "hf_overrides", {"a": {"b": [1]}}),
    ],
)
def test_an_option_arrives_as_its_words_say(tmp_path: Path, options: str, name: str, value: object) -> None:
    setting = read(tmp_path, f"python toy.py {options}").engine[name]
    assert (setting.value if setting.known else "open") == value


@pytest.mark.parametrize("ends", ["1", "0.5 2.0"])
def test_every_word_of_an_interval_is_one_text(tmp_path: Path, ends: str) -> None:
    config = read(tmp_path, f"python toy.py --band {ends} --size 2")
    assert str(config.options["band"].value) == ends and config.engine["tensor_parallel_size"].value == 2


@pytest.mark.parametrize("unread", ["$ALL", "run.yaml", '"$A" --size 2'])
def test_without_what_other_words_hold_a_default_is_open(tmp_path: Path, unread: str) -> None:
    engine = read(tmp_path, f"python toy.py {unread}").engine
    assert not engine["enable_prefix_caching"].known and not engine["enforce_eager"].known


@pytest.mark.parametrize("added", ['"$@"', "${@:2}", "train"])
def test_what_a_user_adds_leaves_the_defaults(tmp_path: Path, added: str) -> None:
    assert read(tmp_path, f"python toy.py {added}").engine["enable_prefix_caching"].value is True


def test_an_option_that_no_entry_names_is_said(tmp_path: Path) -> None:
    config = read(tmp_path, "python toy.py --engine.size 1 --engine.sise 2")
    assert "engine.sise was not read: no option that was read" in config.not_seen


@pytest.mark.parametrize(
    ("command", "size", "eager"),
    [
        ("python toy.py --engine.size 1", "python toy.py --engine.size 2", "--engine.enforce_eager"),
        ("python toy.py --size 1", "python toy.py --size 2", "--eager"),
    ],
)
def test_a_fix_is_spelt_as_the_command_spells_its_options(tmp_path: Path, command: str, size: str, eager: str) -> None:
    config = read(tmp_path, command)
    assert edited(config, command, "tensor_parallel_size", 2) == size
    assert edited(config, command, "enforce_eager", True) == f"{command} {eager}"
    assert edited(config, command, "enforce_eager", False) is None


def test_an_interpolation_of_yaml_that_holds_the_second_word_of_a_program_is_no_script(tmp_path: Path) -> None:
    dialect = tmp_path / "toy.yaml"
    dialect.write_text(TOY.replace("toy.py", "toy rollout").replace("[toy rollout]\ntitle", "[toy]\ntitle"))
    text = "toy: {tokenizer: '${rollout.model}'}\nrun: |\n  toy rollout --engine.size 2\n"
    source = Source(str(tmp_path / "job.yaml"), text)
    (found,) = dialect_at(dialect).read(source, Version("0.18.1"))
    assert found.engine["tensor_parallel_size"].value == 2
    assert not source.refusals


@pytest.mark.parametrize(
    ("command", "call"),
    [("toy rlhf --size 1", "trainer"), ("/opt/bin/toy serve --size 1", "server"),
     ("python -m cli.rlhf --size 1", "module"), ("fast rlhf --size 1", None), ("toy sft rlhf --size 1", None),
     ("python src/my_rlhf_run.py --size 1", "script"), ("python src/my_sft_rlhf.sh --size 1", None)],
)  # fmt: skip
def test_a_program_may_be_two_words_of_a_command_or_have_any_text_for_a_star(
    tmp_path: Path, command: str, call: str | None
) -> None:
    programs = "{toy rlhf: trainer, toy serve: server, cli.rlhf: module, '*rlhf*.py': script}"
    said = TOY.replace("[toy.py]\nl", f"{programs}\nl").replace("[toy.py]", "[rlhf, serve]")
    said += "not seen: [{if: 'call in (trainer, server, module, script)', say: x}]\n"
    (tmp_path / "toy.yaml").write_text(said)
    configs = dialect_at(tmp_path / "toy.yaml").read(Source("run.sh", command + "\n"), Version("0.18.1"))
    assert [config.not_seen for config in configs] == ([] if call is None else [("x",)])
