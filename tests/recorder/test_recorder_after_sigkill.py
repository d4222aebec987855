"""A process that is killed leaves files of whole lines, but possibly the last, and what is missing can be counted."""

import signal
import statistics
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from recorder_folder import Record, Written, parsed
from trainings_with_a_stand_in import place, run, surroundings, words

from rlaudit.recording.recording import open_recording

MOMENTS = 20
# Which process is killed, of an engine that starts how, and about how many calls of the recorder's functions it makes.
KILLED_ONES = {
    "its only process": ("V1", 5000),
    "front end": ("V1, forked core", 3700),
    "engine core": ("V1, forked core", 400),
}
# Starts once, forks a training for each moment, and kills one of its processes in the middle of what the recorder does:
# after so many calls of its functions, in whatever thread.
PROGRAM = """
import os, random, signal, sys, threading
import rlaudit_recorder
import numpy, training, vllm.llm, vllm.v1.engine.async_llm  # imported once

files = {rlaudit_recorder.__file__}

def kill_after(calls):
    left, this = [calls], os.getpid()  # a child has the same profiler
    def count(frame, event, argument):
        if event == "call" and frame.f_code.co_filename in files and os.getpid() == this:
            left[0] -= 1
            if left[0] <= 0:
                os.kill(os.getpid(), signal.SIGKILL)
    threading.setprofile(count)
    sys.setprofile(count)

moments, out, killed, most_calls = int(sys.argv[1]), sys.argv[2], sys.argv[3], int(sys.argv[4])
chosen = random.Random(28)
for moment in range(moments):
    calls = chosen.randrange(1, most_calls)
    child = os.fork()
    if child == 0:
        os.environ["RLAUDIT_RECORD"] = os.path.join(out, str(moment))
        sys.stdout = open(os.devnull, "w")
        if killed == "engine core":
            os.register_at_fork(after_in_child=lambda: kill_after(calls))
        else:
            kill_after(calls)
        try:
            training.main(2, 4)
        except (EOFError, OSError):  # the engine core is gone
            sys.exit(3)
        sys.exit(0)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


@dataclass(frozen=True)
class Killed:
    """The recordings of trainings one process of which was killed, each at a moment of its own."""

    process: str
    folders: list[Path]

    def files(self) -> Iterator[list[bytes]]:
        """Yield the lines of each file; the last is what follows the last line break."""
        for folder in self.folders:
            for file in folder.glob("*.jsonl"):
                yield file.read_bytes().split(b"\n")


@pytest.fixture(scope="module", params=KILLED_ONES)
def killed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Killed:
    """Trainings that were killed at seeded moments."""
    here, (engine, most_calls) = place(tmp_path_factory.mktemp("killed")), KILLED_ONES[request.param]
    command = words(MOMENTS, here.out, request.param, most_calls, program=PROGRAM)
    # It ends when the last process that it started has closed its output.
    done = subprocess.run(command, env=surroundings(here, engine), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    codes = [int(line) for line in done.stdout.split()]
    # Which call is the last one, the threads decide: some have ended before.
    after_the_kill = 3 if request.param == "engine core" else -signal.SIGKILL
    folders = [here.out / str(moment) for moment, code in enumerate(codes) if code == after_the_kill]
    assert len(codes) == MOMENTS and len(folders) > MOMENTS * 0.8
    return Killed(request.param, folders)


def in_order(records: list[Record]) -> bool:
    """Return whether a process came to an orderly end."""
    return any(record["kind"] == "totals" and record["ended"] for record in records)


def test_every_line_but_possibly_the_last_is_whole(killed: Killed) -> None:
    read = [parsed(lines[:-1]) for lines in killed.files()]
    assert len(read) > MOMENTS * 0.8
    assert all(records[0]["kind"] == "process" for records in read if records)
    # The moments are spread: how far, the threads decide.
    assert len({len(records) for records in read}) > 1


def test_the_other_process_ends_its_file_in_order(killed: Killed) -> None:
    read = [records for records in (parsed(lines[:-1]) for lines in killed.files()) if records]
    # That started all front ends; each engine core has a parent of its own.
    program = statistics.mode(records[0]["parent"] for records in read)
    others = [records for records in read if (records[0]["parent"] == program) == (killed.process == "engine core")]
    assert killed.process == "its only process" or len(others) > MOMENTS * 0.8
    assert all(in_order(records) for records in others)
    assert any(not in_order(records) for records in read)


def test_what_a_file_names_it_has_brought_before(killed: Killed) -> None:
    for lines in killed.files():
        written = Written({"": parsed(lines[:-1])})
        requests = written.of_kind("request")
        assert {record["prompt"] for record in requests} <= {record["prompt"] for record in written.of_kind("prompt")}
        ended = {record["request"] for record in written.of_kind("sequence")}
        assert ended <= {record["request"] for record in requests}


def test_every_one_opens_and_says_what_is_missing(killed: Killed) -> None:
    for folder in killed.folders:
        if any(file.stat().st_size for file in folder.glob("*.jsonl")):
            assert open_recording(folder).missing


# Counts are due every ten seconds; here that never comes.
RESTS = """
import json, os, signal, time
import rlaudit_recorder, vllm
from vllm.sampling_params import SamplingParams

rlaudit_recorder.TOTALS_SECONDS = 1e9
vllm.LLM(model="a-model").generate([[1, 2, 3], [4, 5, 6]], SamplingParams(n=4))
while True:
    time.sleep(0.1)
    file = rlaudit_recorder._process.file
    if any(json.loads(line)["kind"] == "totals" for line in open(file)):
        os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_process_that_is_killed_while_it_rests_has_its_counts(tmp_path: Path) -> None:
    here = place(tmp_path)
    assert run(recorded=here, program=RESTS).code == -signal.SIGKILL
    written = here.written()
    assert written.total("requests") == written.total("sequences") == 8
