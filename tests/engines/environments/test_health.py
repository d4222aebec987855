"""The check of an environment: what it imports leaves nothing in the temporary folder."""

import sys
import tempfile
from pathlib import Path

import pytest

from rlaudit.engines.environments import health
from rlaudit.engines.environments.environment_spec import trainer_spec

LEAVES_A_FOLDER = "import tempfile, pathlib; pathlib.Path(tempfile.gettempdir(), 'torchinductor').mkdir(); print('{}')"


def test_what_an_import_leaves_in_the_temporary_folder_goes_with_the_check(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setattr(health, "_program", lambda _spec: (LEAVES_A_FOLDER,))
    health.check(trainer_spec("cpu"), (sys.executable,), inside=tmp_path)
    assert list(tmp_path.iterdir()) == []
