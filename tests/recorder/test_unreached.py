"""Which processes of a command are not recorded, and how that is known."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from recorded_commands import environment, record_words

from rlaudit.engines.cells.guardian import descendants
from rlaudit.recording.unreached import Onlooker, why_unreached

FOLDER = Path("/out/recorder")
REACHED = {"PYTHONPATH": f"{FOLDER}:/other", "RLAUDIT_RECORD": "/out"}
WAITS = "print('ready', flush=True); input()"


@pytest.mark.parametrize(
    "line",
    [
        "python train.py",
        "/usr/bin/python3.11 -u -m trl.cli grpo -I",
        "python -c code -I",
        "python -W ignore -X dev train.py -E",
        "python -Wignore -bb train.py",
        "python",
        "python - -I",
        "bash -E run.sh",
        "srun python train.py",
        "apptainer exec image.sif python -I train.py",
    ],
)
def test_a_process_with_both_variables_is_reached(line):
    assert why_unreached(line.split(), REACHED, FOLDER) is None


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("python -I train.py", "-I leaves PYTHONPATH out"),
        ("python3 -E train.py", "-E leaves PYTHONPATH out"),
        ("/opt/env/bin/python3.12 -sE -m train", "-E leaves PYTHONPATH out"),
        ("python -uIc code", "-I leaves PYTHONPATH out"),
        ("python -W ignore -X dev -I train.py", "-I leaves PYTHONPATH out"),
        ("python --check-hash-based-pycs never -I train.py", "-I leaves PYTHONPATH out"),
        ("python -S train.py", "-S leaves sitecustomize out, and only vLLM's own door is left"),
        ("docker run image python train.py", "what runs in its containers is not recorded"),
        ("/usr/bin/ssh node1 python train.py", "what it starts on other hosts is not recorded"),
        ("python /opt/env/bin/ray job submit -- python train.py", "the job that it submits is not recorded"),
    ],
)
def test_a_command_line_that_leaves_the_recorder_out_says_why(line, why):
    assert why_unreached(line.split(), REACHED, FOLDER) == why


@pytest.mark.parametrize(
    ("environment", "why"),
    [
        ({"PYTHONPATH": "/other", "RLAUDIT_RECORD": "/out"}, "its PYTHONPATH lacks the recorder's folder"),
        ({"RLAUDIT_RECORD": "/out"}, "its PYTHONPATH lacks the recorder's folder"),
        ({"PYTHONPATH": str(FOLDER)}, "its environment lacks RLAUDIT_RECORD"),
        (None, "its PYTHONPATH lacks the recorder's folder"),
    ],
)
def test_a_python_whose_environment_was_changed_says_what_it_lacks(environment, why):
    assert why_unreached(["python", "train.py"], environment, FOLDER) == why
    assert why_unreached(["bash", "train.sh"], environment, FOLDER) is None


class Below:
    """Processes below a test, each waiting for a line, seen by an onlooker."""

    def __init__(self, folder):
        self.folder = folder
        self.onlooker = Onlooker(folder)
        self.onlooker.look(os.getpid())
        self.running = []
        self.of_other_tests = [one.pid for one in descendants(os.getpid())]

    def start(self, *words, **environment):
        running = subprocess.Popen(
            [sys.executable, *words],
            env={"PYTHONPATH": str(self.folder), "RLAUDIT_RECORD": "/out", **environment},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.running.append(running)
        assert running.stdout.readline() == "ready\n"
        self.onlooker.look(os.getpid())
        return running.pid

    def named(self, *recorded):
        # The test itself is the command, and has no recorder.
        recorded = [os.getpid(), *self.of_other_tests, *recorded]
        return [(one.pid, one.why) for one in self.onlooker.unreached(recorded)]

    def end(self):
        for running in self.running:
            running.communicate("\n")


@pytest.fixture
def below(tmp_path):
    found = Below(tmp_path)
    yield found
    found.end()


def test_running_processes_are_looked_at(below, tmp_path):
    reached = below.start("-c", WAITS)
    isolated = below.start("-I", "-c", WAITS)
    moved = below.start("-c", WAITS, PYTHONPATH=str(tmp_path / "other"))
    assert below.named() == [
        (isolated, "-I leaves PYTHONPATH out"),
        (moved, "its PYTHONPATH lacks the recorder's folder"),
    ]
    assert below.named(isolated) == [(moved, "its PYTHONPATH lacks the recorder's folder")]
    assert below.onlooker.alive([reached, 1]) == [reached]


def test_grandchildren_are_looked_at_and_remembered_when_they_have_ended(below):
    script = f"import subprocess, sys; subprocess.run([sys.executable, '-I', '-c', {WAITS!r}])"
    below.start("-c", script)
    ((pid, _),) = below.named()
    below.end()
    below.running.clear()
    below.onlooker.look(os.getpid())
    assert below.named() == [(pid, "-I leaves PYTHONPATH out")]
    assert below.onlooker.alive([pid]) == []


def test_other_processes_of_the_machine_are_left_alone(tmp_path):
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as command:
        onlooker = Onlooker(tmp_path)
        words = [sys.executable, "-I", "-c", WAITS]
        with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
            other.stdout.readline()
            onlooker.look(command.pid)
            assert onlooker.unreached([]) == []
            other.communicate(b"\n")
        command.communicate()


def test_record_names_a_python_that_leaves_the_variables_out(tmp_path):
    # It ends by a signal that is passed on, and rlaudit looks before it passes anything on.
    code = "import signal; signal.signal(signal.SIGUSR1, exit); print('ready', flush=True); signal.pause()"
    with subprocess.Popen(
        record_words(tmp_path, "--", sys.executable, "-I", "-c", code),
        cwd=tmp_path,
        env=environment(tmp_path),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as running:
        assert running.stdout.readline() == "ready\n"
        running.send_signal(signal.SIGUSR1)
        said = running.communicate()[1]
    assert f"not reached: {sys.executable} -I -c" in said
    assert "-I leaves PYTHONPATH out" in said
