"""A gradient step of the training loop against TRL's loss, which is fetched for the test and not kept."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from rlaudit.engines.environments.environment import ensure
from rlaudit.engines.environments.environment_spec import trainer_spec
from rlaudit.engines.environments.pip_configuration import read_package_sources
from rlaudit.engines.environments.uv import Uv, find_uv
from rlaudit.laboratory.studies.canary.run import TRAIN

pytestmark = [pytest.mark.engine, pytest.mark.beside]

# Of its losses only the source is used: the release need not fit what the trainer's environment holds.
RELEASE = "trl==0.25.1"
FLOAT32_ROUNDING = 1e-5


def test_values_and_gradients_of_every_objective_are_trls_to_float32_rounding(tmp_path: Path) -> None:
    uv = Uv(find_uv(), read_package_sources())
    uv.pip("install", Path(sys.executable), "--no-deps", "--target", tmp_path, RELEASE)
    trainer = ensure(trainer_spec("cpu"), report=print)
    command = [*trainer.command, str(Path(__file__).with_name("trl_loss.py")), str(TRAIN)]
    command.append(str(tmp_path / "trl" / "trainer" / "grpo_trainer.py"))
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert len(found) == 5
    for case in found:
        assert case["ours"] == pytest.approx(case["theirs"], rel=FLOAT32_ROUNDING, abs=1e-7), case
        assert case["gradient"] > 0
        assert case["apart"] <= FLOAT32_ROUNDING * case["gradient"], case
