"""A worker does not wait for an engine whose process is gone: it ends, and says so last in its log."""

import subprocess
import sys
from pathlib import Path

import pytest

from rlaudit.engines.inside.engine import ENGINE

SCRIPT = next(file for file in ENGINE.generate_with if file.stem == "engine_processes")
WORKER = """
import multiprocessing, os, signal, sys, time
sys.path.insert(0, {folder!r})
import engine_processes

engine_processes.SECONDS_TO_SAY_WHY = 0.2

if __name__ == "__main__":
    core = multiprocessing.get_context("spawn").Process(target=time.sleep, args=(60,), name="EngineCore")
    core.start()
    with engine_processes.needed():
        if {dies}:
            os.kill(core.pid, signal.SIGKILL)
            time.sleep(50)
    core.kill()
    time.sleep(0.6)
    print("finished")
"""


@pytest.mark.parametrize(("dies", "code"), [(True, 1), (False, 0)], ids=["dies", "is stopped when it is done"])
def test_a_worker_ends_with_a_process_of_its_engine_only_while_it_is_needed(
    tmp_path: Path, dies: bool, code: int
) -> None:
    program = tmp_path / "worker.py"
    program.write_text(WORKER.format(folder=str(SCRIPT.parent), dies=dies))
    ended = subprocess.run([sys.executable, str(program)], capture_output=True, text=True, timeout=40, check=False)
    assert ended.returncode == code
    assert ("EngineCore was ended" in ended.stderr) is dies
    assert ("finished" in ended.stdout) is not dies
