"""No weight is read while an engine sleeps: its memory is unmapped, and a read would end the process.

Tensors are stand-ins that abort it; with real pages: tests/engine_runs/test_unmapped_weights.py.
"""

import os
import signal
import subprocess
import sys
from pathlib import Path

from recorder_folder import Written, read, variables, write_recorder

PROGRAM = Path(__file__).with_name("asleep.py")


def awake_after_sleep(folder: Path, *command: str, reads_asleep: bool = False) -> tuple[int, Written]:
    """Run the program; return its code and the recording. reads_asleep: without what keeps the recorder from it."""
    recorder = write_recorder(folder / "recorder")
    if reads_asleep:
        file = recorder / "rlaudit_weights.py"
        text = file.read_text()
        assert "served.asleep or " in text
        file.write_text(text.replace("served.asleep or ", ""))
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "RLAUDIT"))}
    done = subprocess.run(
        [*(command or (sys.executable, str(PROGRAM)))],
        env={**kept, **variables(recorder, folder / "out")},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode < 0 or "awake" in done.stdout, done.stderr
    return done.returncode, read(folder / "out")


def test_weights_are_read_before_sleep_and_after_it(tmp_path: Path) -> None:
    code, written = awake_after_sleep(tmp_path)
    assert code == 0 and not written.of_kind("failed")
    assert len(written.of_kind("weights")) == 3
    assert len(written.events("worker.sleep")) == len(written.events("worker.wake_up")) / 2 == 2


def test_a_recorder_that_reads_asleep_would_end_the_process(tmp_path: Path) -> None:
    code, _ = awake_after_sleep(tmp_path, reads_asleep=True)
    assert code == -signal.SIGABRT
