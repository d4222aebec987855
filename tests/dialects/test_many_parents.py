"""Configs that inherit from many files: each is opened once."""

from pathlib import Path

import pytest
from reading import read_file

from rlaudit.configs.dialects.declared import declared
from rlaudit.configs.source import Source

DIALECT = declared()["nemo_rl"]
ALONE = "policy:\n  generation:\n    backend: vllm\n    vllm_cfg: {tensor_parallel_size: 2}\n"


def test_a_parent_named_many_times_is_opened_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    neighbour = Source.neighbour
    monkeypatch.setattr(Source, "neighbour", lambda self, name: opened.append(name) or neighbour(self, name))
    (tmp_path / "base.yaml").write_text(ALONE)
    child = tmp_path / "mine.yaml"
    child.write_text(f"defaults: [{', '.join(['base.yaml'] * 3000)}]\npolicy:\n  generation:\n    vllm_cfg: {{}}\n")
    config = read_file(DIALECT, child, "0.25.1")
    assert opened == ["base.yaml"] and len(config.parts) == 1


def test_files_that_share_their_parents_take_no_longer_than_they_are_many(tmp_path: Path) -> None:
    for number in range(11):
        listed = ", ".join(f"{number + 1}{letter}.yaml" for letter in "abcdef")
        for letter in "abcdef":
            (tmp_path / f"{number}{letter}.yaml").write_text(f"defaults: [{listed}]\nx: {number}\n")
    for letter in "abcdef":
        (tmp_path / f"11{letter}.yaml").write_text(ALONE)
    config = read_file(DIALECT, tmp_path / "0a.yaml", "0.25.1")
    assert len(config.parts) == 66
