"""Where rlaudit keeps what is large: one variable moves all of it, and only what is rlaudit's."""

import ast
from pathlib import Path

import pytest

from rlaudit.engines.environments.environment import root
from rlaudit.files.cache_folder import cache_folder

ROOT = Path(__file__).parents[1]


def test_the_variable_wins_over_the_users_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("RLAUDIT_CACHE_DIR", raising=False)
    assert cache_folder() == tmp_path / "cache" / "rlaudit"
    monkeypatch.setenv("RLAUDIT_CACHE_DIR", str(tmp_path / "large"))
    assert cache_folder() == tmp_path / "large"
    assert root().is_relative_to(tmp_path / "large")


@pytest.mark.parametrize(("value", "place"), [("~/x", "home/x"), ("x", "work/x"), ("", "cache/rlaudit")])
def test_a_home_and_the_working_folder_are_understood_and_nothing_is_no_folder(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, value: str, place: str
) -> None:
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("RLAUDIT_CACHE_DIR", value)
    assert cache_folder() == tmp_path / place


def test_no_other_file_names_the_users_cache() -> None:
    found = [
        file.name
        for file in (ROOT / "rlaudit").rglob("*.py")
        for node in ast.walk(ast.parse(file.read_bytes()))
        if isinstance(node, ast.alias) and node.name in {"user_cache_path", "user_cache_dir"}
    ]
    assert found == ["cache_folder.py"]
