"""`rlaudit.record`, in the process of a notebook: engines inside are recorded, and nothing else is."""

import json
import os
from pathlib import Path

import pytest
from recorder_folder import read
from trainings_with_a_stand_in import ENGINES, run

from rlaudit.recording.closing import has_engine
from rlaudit.recording.recording import open_recording

RECORDING = Path(__file__).parents[2] / "examples" / "recorded" / "trl-0.8.5-to-0.10.2" / "v0"
# Two recordings of one process, with use of the engine before, between and behind them.
NOTEBOOK = """
import json, os, sys
import rlaudit, vllm
from vllm.sampling_params import SamplingParams

prompts = [list(range(first, first + 10)) for first in range(4)]
variables, path = dict(os.environ), list(sys.path)

def use(llm):
    llm.generate(prompts, SamplingParams(n=4, max_tokens=12, logprobs=0, seed=1))

def built():
    return vllm.LLM(model="a-model", seed=7)

use(built())
for name in sys.argv[1:]:
    with rlaudit.record(name) as recording:
        llm = built()
        use(llm)
    lines = sum(file.read_text().count("\\n") for file in recording.glob("*.jsonl"))
    print(json.dumps([str(recording), lines, dict(os.environ) == variables, sys.path == path]))
    use(llm)
    use(built())
"""


@pytest.mark.parametrize("engine", ENGINES)
def test_each_context_has_the_engine_and_the_sequences_from_inside_it(engine: str, tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    ended = run(first, second, program=NOTEBOOK, engine=engine)
    assert (ended.code, ended.stderr) == (0, "")
    for folder, (out, _, same_variables, same_path) in zip((first, second), ended.printed, strict=True):
        assert (Path(out), same_variables, same_path) == (folder, True, True)
        written = read(folder)
        assert len(written.of_kind("sequence")) == 16
        assert len(written.of_kind("engine")) == 1
        assert has_engine(open_recording(folder))


def test_outside_the_contexts_nothing_is_written_and_no_thread_writes(tmp_path: Path) -> None:
    program = (
        NOTEBOOK
        + """
import threading, time
time.sleep(1)
print(json.dumps([thread.name for thread in threading.enumerate()]))
"""
    )
    ended = run(tmp_path / "out", program=program, engine="V1")
    assert "rlaudit-recorder" not in ended.printed[-1]


def test_first_lines_come_first_whichever_thread_begins(tmp_path: Path) -> None:
    program = """
import sys, threading, rlaudit
with rlaudit.record(sys.argv[1]):
    import rlaudit_recorder as recorder
    at_once = threading.Barrier(8)
    def put(number):
        at_once.wait()
        recorder.put("dropped", what="a", why=str(number))
    threads = [threading.Thread(target=put, args=(number,)) for number in range(8)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
"""
    run(tmp_path / "out", program=program)
    (file,) = read(tmp_path / "out").files.values()
    assert [record["kind"] for record in file[:3]] == ["process", "hooks", "dropped"]
    assert len([record for record in file if record["kind"] == "dropped"]) == 8


def test_this_processs_part_is_whole_when_the_context_ends(tmp_path: Path) -> None:
    ended = run(tmp_path / "out", program=NOTEBOOK, engine="V1")
    (file,) = read(tmp_path / "out").files.values()
    assert file[-1]["kind"] == "totals" and file[-1]["ended"]
    # Nothing was written behind it.
    assert ended.printed[0][1] == len(file)


def test_processes_that_start_inside_find_the_variables_and_others_do_not(tmp_path: Path) -> None:
    program = """
import json, os, sys, rlaudit
def said():
    print(json.dumps([os.environ.get(name) for name in ("RLAUDIT_RECORD", "PYTHONPATH")]))
said()
try:
    with rlaudit.record(sys.argv[1]):
        said()
        raise ZeroDivisionError
except ZeroDivisionError:
    said()
"""
    out = tmp_path / "out"
    before, inside, after = run(out, program=program).printed
    assert before == after and before[0] is None
    assert inside == [str(out), f"{out / 'recorder'}{os.pathsep}{before[1]}"]


def test_what_is_recorded_is_said_as_with_the_command(tmp_path: Path) -> None:
    program = "import sys, rlaudit\nwith rlaudit.record(sys.argv[1], prompts='1/4', limit='1GiB'): pass"
    assert run(tmp_path / "out", program=program).code == 0
    settings = json.loads((tmp_path / "out" / "recorder" / "settings.json").read_text())
    assert (settings["prompts"], settings["limit"]) == (4, 1 << 30)


REFUSED = {
    "is no share": "with rlaudit.record(place / 'a', prompts='many'): pass",
    "recorded already, into": "with rlaudit.record(place / 'a'), rlaudit.record(place / 'b'): pass",
    "a holds a recording": "(place / 'a' / 'b.jsonl').write_bytes(recorded)\nwith rlaudit.record(place / 'a'): pass",
    "without the trainer's function mine:logprobs": (
        "with rlaudit.record(place / 'a'): pass\n"
        "with rlaudit.record(place / 'b', trainer_function=['mine:logprobs']): pass"
    ),
}


@pytest.mark.parametrize("because", REFUSED)
def test_what_cannot_be_recorded_is_a_usage_error(because: str, tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    recorded = next(RECORDING.glob("*.jsonl"))
    program = f"""
import pathlib, rlaudit
place, recorded = pathlib.Path({str(tmp_path)!r}), pathlib.Path({str(recorded)!r}).read_bytes()
try:
    exec({REFUSED[because]!r})
except rlaudit.errors.UsageError as error:
    print(error)
"""
    ended = run(program=program)
    assert because in ended.stdout, ended.stderr
