"""After a process has died the last steps of all requests are in its ring; after an orderly end there is none."""

import json
import os
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from recorded_commands import ROOT
from trainings_with_a_stand_in import ENGINES, FAKES, HERE, Place, place, run

from rlaudit.recorder.deaths import death_sentences, shown_steps
from rlaudit.recorder.last_steps import LastSteps, last_steps
from rlaudit.recorder.recorded_process import Process
from rlaudit.recorder.recording import open_recording

DYING = HERE / "dying.py"
STEPS = 9
FORKED = "V1, forked core"
# Which process dies and how, and the exit code of the front end.
DEATHS = [
    ("V1", "front end", "SIGSEGV", -11),
    ("V1", "front end", "null pointer", -11),
    ("V1", "engine core", "null pointer", -11),
    (FORKED, "front end", "SIGSEGV", -11),
    (FORKED, "front end", "SIGKILL", -9),
    (FORKED, "engine core", "SIGSEGV", 3),
    (FORKED, "engine core", "null pointer", 3),
]
Seen = list[dict[str, Any]]


def died(engine: str, who: str, how: str, code: int, folder: Path, **settings: Any) -> tuple[Place, Seen]:
    """Run a training to its death; return what its front end had seen until then, by step."""
    here = place(folder, **settings)
    ended = run(who, how, folder / "seen", STEPS, recorded=here, engine=engine, program=DYING)
    assert ended.code == code, ended.stderr
    return here, [json.loads(line) for line in (folder / "seen").read_text().splitlines()]


def rings(here: Place) -> list[tuple[Process, LastSteps]]:
    found = [(process, last_steps(process)) for process in open_recording(here.out).processes]
    return [(process, kept) for process, kept in found if kept is not None]


def counted(rows: Seen) -> list[tuple[int, int]]:
    """Return the requests and tokens of each step."""
    return [(len(row), sum(len(ids) for ids, _ in row.values())) for row in rows]


def steps_of(kept: LastSteps) -> list[tuple[int, int]]:
    return [(step.requests, step.tokens) for step in kept.steps]


@pytest.mark.parametrize(("engine", "who", "how", "code"), DEATHS)
def test_the_last_steps_are_those_that_the_front_end_saw(
    engine: str, who: str, how: str, code: int, tmp_path: Path
) -> None:
    here, seen = died(engine, who, how, code, tmp_path)
    kept = next(kept for process, kept in rings(here) if process.engines)
    assert len(seen) == (STEPS if who == "front end" else STEPS - 1)
    assert steps_of(kept) == counted(seen) and kept.lost == ()
    assert [step.step for step in kept.steps] == list(range(len(seen)))
    requests = {name for row in seen for name in row}
    assert sum(step.ended for step in kept.steps) + kept.in_flight == len(requests)
    assert not here.written().of_kind("failed") and not here.written().of_kind("dropped")


@pytest.mark.parametrize(("engine", "who", "how", "code"), [row for row in DEATHS if row[1] == "engine core"])
def test_of_a_dead_engine_core_the_batch_is_named_that_it_did_not_finish(
    engine: str, who: str, how: str, code: int, tmp_path: Path
) -> None:
    here, _ = died(engine, who, how, code, tmp_path)
    (kept,) = [kept for process, kept in rings(here) if process.workers]
    batch = kept.computing
    assert batch is not None and batch.batch == STEPS and batch.error is None
    front = next(kept for process, kept in rings(here) if process.engines)
    assert batch.requests == front.in_flight > 0
    recording = open_recording(here.out)
    children = [child.code for process in recording.processes for child in process.children]
    assert children == ([] if engine == "V1" else [-11])


def test_a_batch_that_raised_is_kept_with_its_error_and_no_secret(tmp_path: Path) -> None:
    here, _ = died("V1", "engine core", "error", 3, tmp_path)
    ((_, kept),) = rings(here)
    assert kept.left and kept.computing is not None and "a kernel failed" in (kept.computing.error or "")
    assert "hf_AbCd" not in kept.file.read_bytes().decode(errors="replace")
    assert kept.in_flight > 0


@pytest.mark.parametrize("how", ["SIGSEGV", "error"])
def test_v0_keeps_its_batches_up_to_the_one_that_died(how: str, tmp_path: Path) -> None:
    here, _ = died("V0", "engine core", how, 3 if how == "error" else -11, tmp_path)
    ((_, kept),) = rings(here)
    assert kept.computing is not None and kept.computing.batch == STEPS
    assert [batch.batch for batch in kept.batches] == list(range(1, STEPS + 1)) and not kept.steps
    assert kept.batches[0].requests == 24 and kept.computing.requests == kept.in_flight and kept.lost == ()


@pytest.mark.parametrize("engine", ENGINES)
def test_an_orderly_end_leaves_no_ring(engine: str, tmp_path: Path) -> None:
    here = place(tmp_path)
    assert run(2, 3, recorded=here, engine=engine).code == 0
    assert not list(here.out.glob("*.ring"))
    assert not here.written().of_kind("child")


def test_a_ring_that_is_full_keeps_the_last_steps(tmp_path: Path) -> None:
    program = f"""
import sys; sys.path.insert(0, {str(HERE)!r})
import vllm, dying
from vllm.sampling_params import SamplingParams
from vllm.v1.engine.output_processor import OutputProcessor
from types import SimpleNamespace
llm = vllm.LLM()
processor = llm.llm_engine.output_processor
asked = SamplingParams(max_tokens=10**6)
for name in ("early", "late"):
    processor.add_request(SimpleNamespace(request_id=name, prompt_token_ids=[1, 2, 3], sampling_params=asked,
                                          cache_salt=None, lora_request=None), None)
def output(name, token):
    return SimpleNamespace(request_id=name, new_token_ids=[token], new_logprobs=None, finish_reason=None,
                           stop_reason=None, num_cached_tokens=0)
for step in range(5000):
    processor.process_outputs([output("early", step), output("late", -step)], engine_core_timestamp=float(step))
dying.die("SIGKILL")
"""
    here = place(tmp_path, ring=100_000)
    assert run(recorded=here, program=program).code == -9
    ((_, kept),) = rings(here)
    assert kept.file.stat().st_size <= 100_000
    steps = [step.step for step in kept.steps]
    assert steps == list(range(steps[0], 5000)) and len(steps) > 150
    assert {(step.requests, step.tokens, step.ended) for step in kept.steps} == {(2, 2, 0)} and kept.in_flight == 2


def test_what_is_damaged_is_left_out_and_nothing_stops_at_it(tmp_path: Path) -> None:
    here, seen = died("V1", "front end", "SIGKILL", -9, tmp_path)
    ((process, kept),) = rings(here)
    whole = kept.file.read_bytes()
    assert steps_of(kept) == counted(seen)
    source = random.Random(30)
    for _ in range(500):
        damaged = bytearray(whole)
        if source.random() < 0.3:
            del damaged[source.randrange(len(whole)) :]
        else:
            for _ in range(source.choice((1, 1, 8))):
                damaged[source.randrange(len(damaged))] = source.randrange(256)
        kept.file.write_bytes(damaged)
        found = last_steps(process)
        assert found is not None and len(found.steps) <= len(seen)
        list(death_sentences(open_recording(here.out), [process]))
        list(shown_steps([process]))


@pytest.mark.parametrize(
    "body",
    [
        b"[]", b"{", b'{"kind": 7}', b'{"kind": "step"}', b'{"kind": "step", "number": 0, "at": 1, "step": 1}',
        b'{"kind": "step", "number": 0, "at": 1e308, "in_flight": 1, "step": 1, "requests": 1, "tokens": 1, "ended":0}',
        b'{"kind": "batch", "number": 0, "at": NaN, "in_flight": 1, "batch": 1, "requests": 1, "tokens": 1}',
        b'{"kind": "batch", "number": 0, "at": 1, "in_flight": 1, "batch": 1, "requests": -1, "tokens": 1}',
        b'{"kind": "computed", "number": 0, "at": 1, "in_flight": 1, "batch": 5}', b'{"kind": "left", "number": "0"}',
    ],
)  # fmt: skip
def test_a_line_that_holds_something_else_is_left_out(body: bytes, tmp_path: Path) -> None:
    here, _ = died("V1", "front end", "SIGKILL", -9, tmp_path)
    ((process, kept),) = rings(here)
    kept.file.write_bytes(body + b"\n")
    found = last_steps(process)
    assert found is not None and not found.batches and not found.steps
    list(death_sentences(open_recording(here.out), [process]))
    list(shown_steps([process]))


NO_RING = {
    "--redact": ("_settings['redact'] = True", "--redact"),
    "a file system of other hosts": ("_ring.LOCAL = frozenset()", "which may hold up a step"),
    "a slow disk": ("_ring.SLOW_SECONDS = _ring.MOST_SLOW_SECONDS = 0.0", "the disk held up steps"),
    "a full disk": ("_ring.os.pwrite = lambda *given: 1", "the disk is full"),
}


@pytest.mark.parametrize("why", NO_RING)
def test_without_a_ring_it_is_said_why_and_the_rest_is_recorded(why: str, tmp_path: Path) -> None:
    here, (setting, said) = place(tmp_path), NO_RING[why]
    program = f"""
import vllm, training
vllm.LLM()
import rlaudit_recorder
_settings, _ring = rlaudit_recorder._settings, rlaudit_recorder._ring
{setting}
training.main(1, 2)
"""
    alone = run(1, 2)
    ended = run(recorded=here, program=program)
    assert (ended.code, ended.stdout, ended.stderr) == (0, alone.stdout, "")
    written = here.written()
    (dropped,) = written.of_kind("dropped")
    assert dropped["what"] == "the last steps of all requests" and said in dropped["why"]
    assert not list(here.out.glob("*.ring")) and written.of_kind("sequence") and not written.of_kind("failed")


def test_a_request_that_is_called_like_a_secret_is_masked_in_the_ring(tmp_path: Path) -> None:
    program = f"""
import sys; sys.path.insert(0, {str(HERE)!r})
import os, vllm, dying
from vllm.sampling_params import SamplingParams
dying.compute("engine core", "SIGKILL", 3)
vllm.LLM().generate([[1, 2, 3]], SamplingParams(n=2, max_tokens=30), prefix=os.environ["VLLM_API_KEY"])
"""
    here, key = place(tmp_path), "Qz07vNw5553LpX"
    assert run(recorded=here, program=program, VLLM_API_KEY=key).code == -9
    ((_, kept),) = rings(here)
    assert kept.steps and kept.batches and key.encode() not in kept.file.read_bytes()


def test_a_forked_child_leaves_its_parents_ring_alone(tmp_path: Path) -> None:
    program = f"""
import sys; sys.path.insert(0, {str(HERE)!r})
import os, vllm, dying
from vllm.sampling_params import SamplingParams
llm = vllm.LLM()
llm.generate([[1, 2, 3]], SamplingParams(n=2, max_tokens=5, seed=1))
if os.fork() == 0:
    llm.generate([[4, 5, 6]], SamplingParams(n=2, max_tokens=5, seed=2))
    sys.exit(0)
os.wait()
dying.die("SIGKILL")
"""
    here = place(tmp_path)
    assert run(recorded=here, program=program).code == -9
    # The child has ended in order.
    ((process, kept),) = rings(here)
    assert kept.steps[0].requests == 2 and [step.step for step in kept.steps] == list(range(len(kept.steps)))
    assert kept.lost == ()
    assert process.name == "MainProcess" and not kept.in_flight


def test_record_and_inspect_say_who_died_and_show_the_last_steps(
    tmp_path: Path, json_report: Callable[..., Any]
) -> None:
    paths = os.pathsep.join(map(str, (ROOT, FAKES, HERE)))
    environment = {**os.environ, **ENGINES[FORKED], "PYTHONPATH": paths}
    training = [sys.executable, str(DYING), "engine core", "SIGSEGV", str(tmp_path / "seen"), str(STEPS)]
    words = [sys.executable, "-m", "rlaudit", "record", "--into", str(tmp_path / "out"), "--", *training]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 3, done.stderr
    assert "was ended by signal 11 (SIGSEGV)" in done.stderr and "had not returned" in done.stderr
    (config,) = json_report("inspect", str(tmp_path / "out"))["configs"]
    rows = config["last_steps"]
    assert [row["number"] for row in rows if row["what"] == "step"] == list(range(STEPS - 1))
    assert [row["state"] for row in rows if row["what"] == "batch"] == ["returned"] * (STEPS - 1) + ["had not returned"]
    assert next(row["requests"] for row in rows if row["what"] == "step") == 24
    assert any("signal 11" in sentence for sentence in config["recorded"])


TWO_THREADS = f"""
import sys; sys.path.insert(0, {str(HERE)!r})
import threading, vllm, dying, rlaudit_recorder
from vllm.sampling_params import SamplingParams
sys.setswitchinterval(1e-6)
llm = vllm.LLM()
llm.generate([[999]], SamplingParams(max_tokens=2, seed=0))
def calls():
    while not over:
        rlaudit_recorder._ring.note(rlaudit_recorder._process, "put", "load")
over = []
other = threading.Thread(target=calls)
other.start()
given = 0
for number in range(20):
    given += sum(len(one[2]) for one in llm.generate([[number, 1]] * 4, SamplingParams(max_tokens=20, seed=number)))
over.append(True)
other.join()
print(given, flush=True)
dying.die("SIGKILL")
"""


def test_two_threads_that_write_at_once_lose_nothing(tmp_path: Path) -> None:
    here = place(tmp_path)
    ended = run(recorded=here, program=TWO_THREADS)
    assert ended.code == -9, ended.stderr
    ((_, kept),) = rings(here)
    assert kept.lost == () and kept.steps[0].step == 0
    # The last two are those of the request before the threads were two.
    assert sum(step.tokens for step in kept.steps) - 2 == int(ended.stdout) and kept.loads
