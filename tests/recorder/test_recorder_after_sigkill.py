"""A process that is killed leaves files of whole lines, but possibly the last, and what is missing can be counted."""

import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from recorder_folder import Written, parsed
from trainings_with_a_stand_in import place, surroundings, words

from rlaudit.recorder.recording import open_recording

MOMENTS = 50
# Starts once, forks a training for each moment, and kills it in the middle of what the recorder does: after so many
# calls of its functions, in whatever thread.
KILLED = """
import os, random, signal, sys, threading
import rlaudit_recorder
import numpy, training, vllm.llm, vllm.v1.engine.async_llm  # imported once

def killed_after(calls, out):
    left = [calls]
    def count(frame, event, argument):
        if event == "call" and frame.f_code.co_filename == rlaudit_recorder.__file__:
            left[0] -= 1
            if left[0] <= 0:
                os.kill(os.getpid(), signal.SIGKILL)
    os.environ["RLAUDIT_RECORD"] = out
    sys.stdout = open(os.devnull, "w")
    threading.setprofile(count)
    sys.setprofile(count)
    training.main(2, 4)
    os._exit(0)

chosen = random.Random(28)
for moment in range(int(sys.argv[1])):
    child = os.fork()
    if child == 0:
        killed_after(chosen.randrange(1, 6000), os.path.join(sys.argv[2], str(moment)))
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The recordings of trainings that were killed at seeded moments."""
    here = place(tmp_path_factory.mktemp("killed"))
    done = subprocess.run(
        words(MOMENTS, here.out, program=KILLED), env=surroundings(here), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    codes = [int(line) for line in done.stdout.split()]
    assert len(codes) == MOMENTS and codes.count(-signal.SIGKILL) > MOMENTS * 0.9
    return [here.out / str(moment) for moment in range(MOMENTS)]


def files(killed: list[Path]) -> Iterator[list[bytes]]:
    for folder in killed:
        for file in folder.glob("*.jsonl"):
            yield file.read_bytes().split(b"\n")


def test_every_line_but_possibly_the_last_is_whole(killed: list[Path]) -> None:
    read = [parsed(lines[:-1]) for lines in files(killed)]
    assert len(read) > MOMENTS * 0.8
    assert all(records[0]["kind"] == "process" for records in read if records)
    # The moments are spread: how far, the threads decide.
    assert len({len(records) for records in read}) > 1


def test_requests_without_an_end_are_countable(killed: list[Path]) -> None:
    unfinished = 0
    for lines in files(killed):
        written = Written({"": parsed(lines[:-1])})
        requests = {record["request"] for record in written.of_kind("request")}
        ended = {record["request"] for record in written.of_kind("sequence")}
        assert ended <= requests
        prompts = {record["prompt"] for record in written.of_kind("prompt")}
        assert {record["prompt"] for record in written.of_kind("request")} <= prompts
        unfinished += len(requests - ended)
    assert unfinished > 0


def test_every_one_opens_and_says_what_is_missing(killed: list[Path]) -> None:
    for folder in killed:
        if any(file.stat().st_size for file in folder.glob("*.jsonl")):
            assert open_recording(folder).missing
