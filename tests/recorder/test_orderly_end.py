"""At an orderly end every line that waits is written, whatever fails or comes late meanwhile.

Lines were lost once on a machine with much else to do. Each program here brings about one way in which they can be.
"""

from pathlib import Path

import pytest
from trainings_with_a_stand_in import DISK, Place, place, run

TRAINED = """
import atexit, os, threading, time
import rlaudit_recorder as recorder
{before}
import training
training.main(2, 6)
def waiting(count):
    for number in range(count):
        recorder.put("failed", hook="waiting", error=str(number))
{last}
"""
# A disk that takes a fifth of a second for each batch of at most a thousand lines.
SLOW = f"""{DISK}
def before(data):
    time.sleep(0.2)
"""


def ended(folder: Path, last: str, before: str = "") -> Place:
    here = place(folder, prompts=1)
    done = run(recorded=here, program=TRAINED.format(before=before, last=last))
    assert done.code == 0, done.stderr
    return here


def waited(here: Place) -> list[int]:
    return [int(record["error"]) for record in here.written().of_kind("failed") if record["hook"] == "waiting"]


@pytest.mark.parametrize("part", ["close_runs", "put_steps", "_put_totals"])
def test_a_part_of_the_end_that_fails_keeps_no_line_from_being_written(part: str, tmp_path: Path) -> None:
    fails = f"def fails(process):\n    raise RuntimeError('changed during iteration')\nrecorder.{part} = fails"
    here = ended(tmp_path, SLOW + "waiting(500)\n" + fails)
    assert waited(here) == list(range(500))
    assert "changed during iteration" in {str(one["error"])[14:38] for one in here.written().of_kind("failed")}


def test_a_slow_disk_that_goes_on_writing_is_waited_for(tmp_path: Path) -> None:
    # Twelve batches take longer than the end waits for one; a busy machine may make one ten times as slow.
    here = ended(tmp_path, SLOW + "recorder.LAST_SECONDS = 2.0\nwaiting(12000)")
    assert waited(here) == list(range(12000))


def test_a_slow_disk_is_waited_for_so_long_and_no_longer(tmp_path: Path) -> None:
    # The disk begins when all eight batches wait: a busy machine would let it keep up with them.
    late = f"""{DISK}
ready = threading.Event()
def before(data):
    ready.wait()
    time.sleep(0.2)
"""
    here = ended(tmp_path, late + "recorder.MOST_LAST_SECONDS = 0.8\nwaiting(8000)\nready.set()")
    assert 0 < len(waited(here)) < 8000


def test_counts_that_the_writing_thread_was_about_to_write_are_not_the_last_ones(tmp_path: Path) -> None:
    late = """
put, entered, is_written = recorder.put, threading.Event(), threading.Event()
def late(kind, **fields):
    if kind == "totals" and threading.current_thread() is not threading.main_thread() and not fields["ended"]:
        entered.set()
        is_written.wait(10)
    put(kind, **fields)
    if kind == "totals" and fields["ended"]:
        is_written.set()
recorder.put = late
recorder._process.totals_written = None
assert entered.wait(10)
"""
    totals = ended(tmp_path, late).written().of_kind("totals")
    assert [one["ended"] for one in totals[-2:]] == [False, True]


def test_what_comes_behind_the_end_is_written_at_once(tmp_path: Path) -> None:
    # Registered before the recorder is, and so run behind it.
    before = "def leave():\n    waiting(3)\n    os._exit(0)\natexit.register(leave)"
    assert waited(ended(tmp_path, "", before)) == [0, 1, 2]


def test_two_threads_that_begin_at_once_have_one_queue_and_lose_nothing(tmp_path: Path) -> None:
    program = """
import queue, threading
import rlaudit_recorder as recorder
both = threading.Barrier(2)
class Queues:
    Empty = queue.Empty
    def SimpleQueue():
        both.wait(10)
        return queue.SimpleQueue()
recorder.queue = Queues
recorder.register()
recorder._begin_file(recorder._process)
def begins(number):
    recorder.start_writer(recorder._process)
    recorder.put("failed", hook="waiting", error=str(number))
threads = [threading.Thread(target=begins, args=(number,)) for number in range(2)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
names = [thread.name for thread in threading.enumerate()]
assert names.count("rlaudit-recorder") == 1
"""
    here = place(tmp_path)
    done = run(recorded=here, program=program)
    assert done.code == 0, done.stderr
    assert sorted(waited(here)) == [0, 1]
