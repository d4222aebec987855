"""A repository of toys."""

import json
from pathlib import Path
from typing import Any

import pytest
import toy_dialect


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> toy_dialect.Desk:
    """An empty repository, the working directory, in which only toys are known."""
    toy_dialect.install(monkeypatch, tmp_path)
    return toy_dialect.Desk(tmp_path, capsys)


@pytest.fixture
def ablation() -> dict[str, Any]:
    """The report of a real ablation."""
    path = Path(__file__).parents[2] / "examples" / "vllm" / "v0-to-v1" / "report.json"
    loaded: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return loaded
