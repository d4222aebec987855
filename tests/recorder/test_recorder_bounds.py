"""What the recorder keeps is chosen by prompt and bounded: on the disk, in memory, and in the number of lines."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from recorder_folder import Written, numbers
from trainings_with_a_stand_in import DISK, Place, place, run

# Requests of many prompts, two samples each; its first argument is where the prompts begin, its second how many.
MANY = """
import sys, rlaudit_recorder, vllm
from vllm.sampling_params import SamplingParams
rlaudit_recorder.KEPT_BYTES = 0
first, count = map(int, sys.argv[1:3])
llm = vllm.LLM()
for prompt in range(first, first + count):
    llm.generate([[prompt, 1, 2]], SamplingParams(n=2, max_tokens=4, logprobs=0))
    if prompt % 50 == 0:
        llm.llm_engine.reset_prefix_cache()
"""

# A disk that takes so many seconds for each block of lines.
SLOW_DISK = f"""
import os, time
{DISK}
def before(data):
    time.sleep(float(os.environ["DISK"]))
"""


def kept_prompts(here: Place) -> dict[int, int]:
    """Return how many samples of each prompt are kept."""
    written = here.written()
    prompts = {record["prompt"]: int(numbers(record["ids"], "<i4")[0]) for record in written.of_kind("prompt")}
    return Counter(prompts[record["prompt"]] for record in written.of_kind("sequence"))


def test_groups_are_kept_whole_and_two_runs_keep_the_same_prompts(tmp_path: Path) -> None:
    one, two = place(tmp_path / "one", prompts=8), place(tmp_path / "two", prompts=8)
    assert run(0, 600, recorded=one, program=MANY).code == 0
    assert run(300, 600, recorded=two, program=MANY).code == 0
    kept, again = kept_prompts(one), kept_prompts(two)
    assert set(kept.values()) == set(again.values()) == {2}
    # The first 64 of a run are kept whatever their hash.
    assert set(range(64)) <= set(kept) and set(range(300, 364)) <= set(again)
    shared = {prompt for prompt in kept if prompt >= 364}
    assert shared == {prompt for prompt in again if 364 <= prompt < 600}
    assert 0.5 < len(shared) / ((600 - 364) / 8) < 2
    assert one.written().total("sequences") == 1200


def test_a_prompt_that_comes_again_is_decided_alike(tmp_path: Path) -> None:
    here = place(tmp_path, prompts=10**9)
    again = MANY + "\nllm.generate([[first, 1, 2], [first + count - 1, 1, 2]], SamplingParams(n=2))\n"
    assert run(0, 100, recorded=here, program=again).code == 0
    kept = kept_prompts(here)
    assert kept[0] == 4 and set(kept) == set(range(64))
    assert len(here.written().of_kind("prompt")) == 64


@pytest.mark.parametrize("seconds_a_write", [0, 0.5])
def test_at_the_limit_tokens_end_and_calls_go_on(tmp_path: Path, seconds_a_write: float) -> None:
    here = place(tmp_path, limit=60_000, prompts=1)
    assert run(0, 1000, recorded=here, program=SLOW_DISK + MANY, DISK=str(seconds_a_write)).code == 0
    written = here.written()
    (dropped,) = written.of_kind("dropped")
    assert dropped["what"] == "tokens" and "60000 bytes" in dropped["why"]
    sequences = written.of_kind("sequence")
    assert 0 < len(sequences) < 1000
    assert max(record["at"] for record in sequences) < dropped["at"] + 1
    assert len(written.events("reset_prefix_cache")) == 20
    assert written.total("sequences") == 2000
    # What waits for the disk counts; counts and calls go on, and are small.
    assert sum(file.stat().st_size for file in here.out.iterdir()) < 150_000


def test_lists_of_sampling_parameters_end(tmp_path: Path) -> None:
    here = place(tmp_path)
    program = """
import rlaudit_recorder, vllm
from vllm.sampling_params import SamplingParams
rlaudit_recorder.MOST_SAMPLING = 10
llm = vllm.LLM()
for number in range(30):
    llm.generate([[1, 2]], SamplingParams(temperature=1 + number / 100, seed=number, max_tokens=2))
"""
    assert run(recorded=here, program=program).code == 0
    written = here.written()
    assert len(written.of_kind("sampling")) == 10
    assert [record["what"] for record in written.of_kind("dropped")] == ["sampling parameters"]
    assert len(written.of_kind("sequence")) == 30


def test_distinct_parameters_are_written_once_seeds_aside(tmp_path: Path) -> None:
    here = place(tmp_path)
    program = """
import vllm
from vllm.sampling_params import SamplingParams
llm = vllm.LLM()
for number in range(5):
    llm.generate([[1, 2]], SamplingParams(temperature=0.7, seed=number, max_tokens=2))
"""
    assert run(recorded=here, program=program).code == 0
    (sampling,) = here.written().of_kind("sampling")
    assert sampling["parameters"]["temperature"] == 0.7 and "seed" not in sampling["parameters"]
    assert [record["sampling"] for record in here.written().of_kind("request")] == [0] * 5


# Steps of a token each, fifty a request.
LONG = """
import json, resource, sys, time
import rlaudit_recorder
from types import SimpleNamespace
from vllm.engine.arg_utils import EngineArgs
from vllm.sampling_params import SamplingParams
from vllm.v1.engine.output_processor import OutputProcessor

class Processor:
    def __init__(self): self.request_states = {}
    def add_request(self, request, prompt, parent_req=None, request_index=0):
        self.request_states[request.request_id] = None
    def process_outputs(self, outputs, stamp, iteration_stats):
        for output in outputs:
            if output.finish_reason: del self.request_states[output.request_id]

for name in ("add_request", "process_outputs"):
    rlaudit_recorder.wrap(Processor, name, name, *rlaudit_recorder._HANDLERS[name])
rlaudit_recorder.KEPT_BYTES = 1 << 20
EngineArgs().create_engine_config()
processor, parameters = Processor(), SamplingParams()
def output(name, last):
    return SimpleNamespace(request_id=name, new_token_ids=[7], new_logprobs=None, stop_reason=None,
                           finish_reason="length" if last else None, num_cached_tokens=0)
found, requests, each = [], int(sys.argv[1]), 50
for request in range(requests):
    name, prompt = "request-%d" % request, [request, 1, 2, 3]
    processor.add_request(SimpleNamespace(request_id=name, prompt_token_ids=prompt, sampling_params=parameters,
                                          lora_request=None), None)
    first, last = [output(name, False)], [output(name, True)]
    for step in range(each):
        processor.process_outputs(last if step == each - 1 else first, float(request), None)
    if request % (requests // 10) == 0:
        while rlaudit_recorder._process.queued > rlaudit_recorder._process.taken:
            time.sleep(0.001)
        pages = int(open("/proc/self/statm").read().split()[1])
        found.append(pages * resource.getpagesize())
print(json.dumps(found))
"""


def test_hundreds_of_thousands_of_steps_do_not_grow_memory(tmp_path: Path) -> None:
    here, requests = place(tmp_path, prompts=64), 8_000
    ended = run(requests, recorded=here, program=LONG)
    assert (ended.code, ended.stderr) == (0, "")
    resident = json.loads(ended.stdout)
    # What is remembered of each kept prompt, 400 bytes, and what Python frees late.
    assert resident[-1] - resident[3] < 1 << 20, resident
    assert here.written().total("tokens") == requests * 50


def test_tokens_in_flight_are_bounded(tmp_path: Path) -> None:
    program = """
import rlaudit_recorder, vllm
from vllm.sampling_params import SamplingParams
rlaudit_recorder.MOST_HELD_TOKENS = 50
llm = vllm.LLM()
llm.generate([[prompt] for prompt in range(30)], SamplingParams(max_tokens=40, seed=1))
llm.generate([[1, 2]], SamplingParams(max_tokens=4))
"""
    here = place(tmp_path)
    assert run(recorded=here, program=program).code == 0
    written = here.written()
    assert [record["what"] for record in written.of_kind("dropped")] == ["sequences in flight"]
    assert written.total("sequences") == 31
    assert whole(written) and len(written.of_kind("sequence")) < 31


def whole(written: Written) -> bool:
    """Return whether every sequence that is kept has all of its tokens."""
    counted: list[Any] = [
        (len(numbers(one["ids"], "<i4")), sum(count * each for _, count, each in one["steps"]))
        for one in written.of_kind("sequence")
    ]
    return all(ids == steps for ids, steps in counted)


HANGS = f"""
{DISK}
import sys, threading, rlaudit_recorder, vllm
from vllm.sampling_params import SamplingParams
rlaudit_recorder.MOST_QUEUED_BYTES = 20_000
released, main = threading.Event(), threading.current_thread()
def before(data):
    if threading.current_thread() is not main:
        released.wait()
llm = vllm.LLM()
llm.generate([[prompt] for prompt in range(200)], SamplingParams(max_tokens=8))
print(rlaudit_recorder._process.queued - rlaudit_recorder._process.taken)
if len(sys.argv) > 1:
    released.set()
"""


def test_a_disk_that_does_not_keep_up_costs_records_and_no_memory(tmp_path: Path) -> None:
    here = place(tmp_path)
    ended = run("goes on", recorded=here, program=HANGS)
    assert (ended.code, ended.stderr) == (0, "")
    # The first record of each kind that is dropped is said beyond the bound.
    assert 19_000 < int(ended.stdout) < 22_000
    written = here.written()
    assert {record["why"] for record in written.of_kind("dropped")} == {"the disk does not keep up"}
    assert written.total("sequences") == 200 > len(written.of_kind("sequence"))


def test_a_disk_that_hangs_does_not_keep_the_training_from_its_end(tmp_path: Path) -> None:
    ended = run(recorded=place(tmp_path), program=HANGS)
    assert (ended.code, ended.stderr) == (0, "")


# Steps of V0 are noted by its groups; none of their prompts is kept.
LONG_V0 = """
import json, resource, sys, time
import rlaudit_recorder, vllm
from vllm.sampling_params import SamplingParams
rlaudit_recorder.KEPT_GROUPS = rlaudit_recorder.KEPT_BYTES = 0
llm, held = vllm.LLM(), []
now = [0.0]
time.monotonic = lambda: now.__setitem__(0, now[0] + 0.01) or now[0]
for request in range(400):
    llm.generate([[request]], SamplingParams(max_tokens=40, seed=request))
    held.append(len(rlaudit_recorder._process.steps))
print(max(held))
"""


def test_steps_of_v0_are_written_though_no_sequence_is_kept(tmp_path: Path) -> None:
    here = place(tmp_path, prompts=10**9)
    ended = run(recorded=here, program=LONG_V0, engine="V0")
    assert (ended.code, ended.stderr) == (0, "")
    written = here.written()
    assert int(ended.stdout) <= 1000 and written.of_kind("sequence") == []
    assert sum(len(numbers(steps["tokens"], "<i4")) for steps in written.of_kind("steps")) > 2000
    assert written.total("sequences") == 400
