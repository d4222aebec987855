"""The scoring script's own tests, run where it runs: in a trainer's environment, which has torch and no pytest."""

import importlib.util
import os
import subprocess
from pathlib import Path

import pytest

from rlaudit.engines.environments.environment import ensure
from rlaudit.engines.environments.environment_spec import trainer_spec

pytestmark = [pytest.mark.engine, pytest.mark.beside]

SCORE_TESTS = Path(__file__).parents[1] / "trainer"
PYTEST_NEEDS = ("pytest", "_pytest", "pytest_timeout", "py", "pluggy", "iniconfig", "packaging", "pygments")


def lend_pytest(folder: Path) -> None:
    """Links to the packages of this interpreter's pytest, and to nothing else of it."""
    for name in PYTEST_NEEDS:
        found = importlib.util.find_spec(name)
        assert found is not None
        assert found.origin is not None
        origin = Path(found.origin)
        source = origin.parent if origin.name == "__init__.py" else origin
        (folder / (name if source.is_dir() else source.name)).symlink_to(source)


def test_scores_are_right_under_the_trainers_own_torch_and_transformers(tmp_path: Path) -> None:
    trainer = ensure(trainer_spec("cpu"), report=print)
    lend_pytest(tmp_path)
    plugins = ["-p", "no:cacheprovider", "-p", "pytest_timeout"]
    command = [*trainer.command, "-m", "pytest", "-q", *plugins, "--noconftest", str(SCORE_TESTS)]
    environment = {**os.environ, **trainer.variables, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run(command, cwd=SCORE_TESTS, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-2000:]
    assert "skipped" not in done.stdout
