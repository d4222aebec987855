"""A repository of toys."""

from pathlib import Path

import pytest
import toy_dialect


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> toy_dialect.Desk:
    """An empty repository, the working directory, in which only toys are known."""
    toy_dialect.install(monkeypatch, tmp_path)
    return toy_dialect.Desk(tmp_path, capsys)
