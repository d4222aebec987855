"""Curves of any log as event files, read back."""

from pathlib import Path

import numpy as np
import pytest

from rlaudit.cli.app import run
from rlaudit.curves.curve import run_of
from rlaudit.curves.event_files import write_event_files
from rlaudit.curves.open_run import open_run

LOG = "step,rl/reward,a b\n" + "".join(f"{step},{step / 7},{-step}\n" for step in (1, 128, 300000))


def test_what_is_written_is_read_back_with_float32_values(tmp_path: Path) -> None:
    (tmp_path / "run one.csv").write_text(LOG)
    read = run_of(open_run(str(tmp_path / "run one.csv"), None), None)
    (path,) = write_event_files(tmp_path / "board", [read])
    again = run_of(open_run(str(path.parent), None), None)
    assert not again.problems
    assert set(again.curves) == set(read.curves)
    for key, curve in read.curves.items():
        assert again.curves[key].steps.tolist() == curve.steps.tolist()
        assert np.array_equal(again.curves[key].values, curve.values.astype(np.float32))


def test_runs_of_one_name_have_folders_of_their_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "log.csv").write_text("step,reward\n" + "".join(f"{n},{n % 3}\n" for n in range(40)))
    logs = [str(tmp_path / folder / "log.csv") for folder in ("a", "b")]
    run(["curves", *logs, "--tensorboard", str(tmp_path / "board"), "--fail-on", "never"])
    assert len({path.parent for path in (tmp_path / "board").rglob("*tfevents*")}) == 2
