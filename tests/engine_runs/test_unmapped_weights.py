"""No weight is read while its pages are protected: tensors of a trainer's torch, of which a read would be SIGSEGV."""

import signal
import sys
from pathlib import Path

import pytest

from rlaudit.engines.environments.environment import ensure
from rlaudit.engines.environments.environment_spec import trainer_spec

sys.path.append(str(Path(__file__).parents[1] / "recorder"))
from test_nothing_is_read_asleep import PROGRAM, awake_after_sleep

pytestmark = [pytest.mark.engine, pytest.mark.beside]


@pytest.mark.parametrize("reads_asleep", [False, True])
def test_pages_that_sleep_takes_away_are_not_touched(tmp_path: Path, reads_asleep: bool) -> None:
    environment = ensure(trainer_spec("cpu"), report=print)
    command = (*environment.command, str(PROGRAM), "torch")
    code, written = awake_after_sleep(tmp_path, *command, reads_asleep=reads_asleep)
    assert code == (-signal.SIGSEGV if reads_asleep else 0)
    assert reads_asleep or len(written.of_kind("weights")) == 3
