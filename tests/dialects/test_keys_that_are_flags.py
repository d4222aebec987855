"""Frameworks that build vLLM's command line: falses that are skipped, negations, and fixes that arrive."""

from pathlib import Path

import pytest
from declared_text import read

from rlaudit.settings.rollout_config import Loss, RolloutConfig
from rlaudit.unknown import Unknown

SAID = """\
release:
  by keys:
    - {if: "@old is set", before: 0.9.0, because: it is old}
    - {if: "@new is set", since: 0.9.0, because: it is new}
conditions: {flags: "@mode == server"}
engine:
  enable_prefix_caching: {key: "@prefixes", default: true}
  enforce_eager: {key: "@eager"}
  disable_custom_all_reduce: {value: true, because: the worker sets it}
  "*":
    - {if: "@old != 1", key: "@more", "null": nothing, flags: {if: flags, otherwise: it is no keyword}}
falses:
  - {if: not flags, arrives: true}
  - {if: release < 0.9.0, because: the serializer skips it, at: {toy/cli.py: "if v: flags.append"}}
  - {arrives: true}
lost: [{others of: "@more", if: "@old == 1", as: not passed, because: it is not read}]
rest: "@"
write:
  fields: "@"
  others: "@more"
  given once: not flags
  negation: {prefix: no_, unless: not flags}
  refused: [{argument: enforce_eager, value: true, if: "@mode == server"}]
"""


def config_of(tmp_path: Path, keys: str, more: str = "seed: 1", package: str = "") -> RolloutConfig:
    return read(tmp_path, f"{package}{SAID}", f"sampler:\n  {keys}\n  more:\n    {more}\n")


@pytest.mark.parametrize(
    ("keys", "arrives"),
    [
        ("mode: server\n  new: 1", True),
        ("mode: server\n  old: 2", False),
        ("mode: inside", True),
        ("mode: server", None),
    ],
)
def test_a_false_is_dropped_kept_or_open_by_release_and_kind_of_engine(
    tmp_path: Path, keys: str, arrives: bool | None
) -> None:
    config = config_of(tmp_path, f"{keys}\n  prefixes: false\n  eager: false")
    value = config.engine["enable_prefix_caching"].value
    assert isinstance(value, Unknown) if arrives is None else value is (False if arrives else None)
    losses = [(one.loss, one.certain) for one in config.lost if one.name == "enable_prefix_caching"]
    assert losses == ([] if arrives else [(Loss.FALSE_DROPPED, arrives is not None)])
    # vLLM takes this one by itself.
    assert config.engine["enforce_eager"].value is False


@pytest.mark.parametrize(("text", "value"), [("if v:\n    flags.append(v)", None), ("flags += no(v)", Unknown)])
def test_a_copy_without_the_line_that_drops_it_leaves_it_open(tmp_path: Path, text: str, value: object) -> None:
    (tmp_path / "toy").mkdir()
    (tmp_path / "toy/cli.py").write_text(text)
    keys = "mode: server\n  old: 2\n  prefixes: false"
    arrives = config_of(tmp_path, keys, package="package: {folder: toy}\n").engine["enable_prefix_caching"].value
    assert arrives is None if value is None else isinstance(arrives, Unknown)


@pytest.mark.parametrize(("mode", "value"), [("server", False), ("inside", None), ("$MODE", False)])
def test_a_negation_is_a_flag_and_no_keyword(tmp_path: Path, mode: str, value: bool | None) -> None:
    config = config_of(tmp_path, f"mode: '{mode}'", "no-async-scheduling: true\n    tp: 2\n    seed: null")
    assert config.engine["tensor_parallel_size"].value == 2 and "seed" not in config.engine
    if value is None:
        assert [one.loss for one in config.lost] == [Loss.UNKNOWN_KEY] and "async_scheduling" not in config.engine
    elif mode == "server":
        assert config.engine["async_scheduling"].value is False


@pytest.mark.parametrize(("mode", "there"), [("server", False), ("inside", True)])
def test_a_null_is_no_flag_and_a_keyword(tmp_path: Path, mode: str, there: bool) -> None:
    said = f"nulls arrive if: not flags\n{SAID}"
    engine = read(tmp_path, said, f"sampler: {{mode: {mode}, eager: null, prefixes: null}}\n").engine
    assert ("enforce_eager" in engine, "enable_prefix_caching" in engine) == (there, there)


def test_a_mapping_that_is_not_read_is_lost(tmp_path: Path) -> None:
    config = config_of(tmp_path, "mode: server\n  old: 1")
    assert [(one.name, one.loss) for one in config.lost] == [("seed", Loss.NOT_PASSED)] and "seed" not in config.engine


def test_fixes_are_written_so_that_they_arrive(tmp_path: Path) -> None:
    server, inside = (config_of(tmp_path, f"mode: {mode}") for mode in ("server", "inside"))
    edits = [(one.write("async_scheduling", False) or ())[0].replacement for one in (server, inside)]
    assert [edit.strip() for edit in edits] == ["no_async_scheduling: true", "async_scheduling: false"]
    assert server.write("enforce_eager", True) is None and inside.write("enforce_eager", True) is not None
    assert server.write("disable_custom_all_reduce", True) and not inside.write("disable_custom_all_reduce", True)


def test_what_no_setting_takes_up_is_listed(tmp_path: Path) -> None:
    options = config_of(tmp_path, "mode: server\n  eager: true\n  other: {deep: 3}").options
    assert options["sampler.other.deep"].value == 3 and "sampler.eager" not in options


def test_what_stands_in_the_packages_own_files_is_the_frameworks_word(tmp_path: Path) -> None:
    (tmp_path / "toy").mkdir()
    (tmp_path / "toy/cli.py").write_text("")
    (tmp_path / "toy/base.yaml").write_text("sampler: {eager: true, old: 2}\n")
    said = "package: {folder: toy, files: [toy/cli.py]}\nfiles: {yaml: {defaults: hydra}}\n"
    found = read(tmp_path, said + SAID, "defaults: [toy@_global_: base, _self_]\nsampler: {mode: inside}\n")
    assert found.engine["enforce_eager"].place is None and "base.yaml:1" in found.decided["enforce_eager"]
