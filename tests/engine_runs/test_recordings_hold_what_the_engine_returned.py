"""A recording of real engines on a CPU holds the ids and logprobs that RequestOutput held, and changes neither.

Two to four engine starts a release: samples of one prompt, stop strings and stop tokens in one process, or from two
workers that share the weights; requests of every output kind at once, one of them left by its reader, over an engine
core of its own (V0 has none). With 0.32.0 the first again, without the recorder. 0.10.2 in one process, with a trainer:
test_recorded_training.py.
"""

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from recorded_run import ONE_PROCESS, model_in
from recorded_run import ran as run_in
from recorded_truth import differences
from recorder_folder import Written, read, write_recorder
from tiny_updates import built

from rlaudit.recording.shipped.rlaudit_recorder import PARTS

pytestmark = pytest.mark.engine

PROGRAM = Path(__file__).with_name("sampled_requests.py")
PAIR = {"tensor_parallel_size": 2, "distributed_executor_backend": "mp"}
# Loop, arguments of the engine, variables.
STARTS: dict[str, tuple[str, dict[str, Any], dict[str, str]]] = {
    "one process": ("sync", {}, ONE_PROCESS),
    "a core of its own": ("async", {}, {}),
    # Bound by hand: a machine with one NUMA node has no second one for the second worker.
    "two workers": ("sync", PAIR, {"VLLM_CPU_OMP_THREADS_BIND": "0|0"}),
}
# What these releases lack.
ABSENT = {"0.8.5": {"pauses", "resumptions"}, "0.10.2": {"pauses", "resumptions"}, "0.32.0": set()}
# The CPU build of 0.8.5 lacks what two workers of one host share their tensors with (torch.ops._C.init_shm_manager).
TWO_WORKERS = ("0.10.2", "0.32.0")
HELD_IN = {"one process": ("0.8.5", "0.32.0"), "a core of its own": tuple(ABSENT), "two workers": TWO_WORKERS}
PAIRS = [(version, start) for start, versions in HELD_IN.items() for version in versions]


@dataclass(frozen=True)
class Ran:
    """What the engine returned, and what was recorded meanwhile, if anything."""

    returned: list[dict[str, Any]]
    written: Written


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("recorded")


@cache
def ran(version: str, start: str, folder: Path, recorded: bool = True) -> Ran:
    """Run the requests once through an engine of this release."""
    (loop, arguments, more), environment = STARTS[start], built(version)
    place = folder / f"{version}, {start}, {'recorded' if recorded else 'alone'}"
    job = {"model": str(model_in(folder)), "loop": loop, "engine_args": {"enforce_eager": True, **arguments}}
    place.mkdir()
    (place / "job.json").write_text(json.dumps(job))
    words = (PROGRAM, place / "job.json", place / "returned.json")
    recorder = write_recorder(place / "recorder") if recorded else None
    done = run_in(environment, *words, recorder=recorder, out=place / "out", at=place, more=more)
    assert "rlaudit recorder:" not in done.stderr
    return Ran(json.loads((place / "returned.json").read_text()), read(place / "out"))


@pytest.mark.parametrize(("version", "start"), PAIRS)
def test_recorded_tokens_and_logprobs_are_those_that_were_returned(version: str, start: str, folder: Path) -> None:
    found = ran(version, start, folder)
    assert len(found.returned) >= 22
    assert {sample["finish"] for sample in found.returned} >= {"stop", "length"}
    assert differences(found.returned, found.written) == []
    assert found.written.of_kind("failed") == found.written.of_kind("dropped") == []


@pytest.mark.parametrize("version", ABSENT)
def test_a_request_whose_reader_left_ends_in_an_abort(version: str, folder: Path) -> None:
    found = ran(version, "a core of its own", folder)
    assert [one["finish"] for one in found.written.of_kind("sequence")].count("abort") == found.written.total("aborted")
    assert found.written.total("requests") == found.written.total("sequences") + found.written.total("aborted")


@pytest.mark.parametrize(("version", "absent"), ABSENT.items())
def test_every_part_that_the_release_has_is_hooked_in_some_process(
    version: str, absent: set[str], folder: Path
) -> None:
    found = ran(version, "a core of its own", folder)
    hooked = found.written.hooked()
    assert {part for part, targets in PARTS.items() if not hooked.intersection(targets)} == absent
    assert [record["side"] for record in found.written.of_kind("event") if "reset_prefix" in record["what"]]
    assert {record["dtypes"].keys() == {"torch.float32"} for record in found.written.of_kind("model")} == {True}


@pytest.mark.parametrize("version", TWO_WORKERS)
def test_each_worker_writes_its_own_file(version: str, folder: Path) -> None:
    files = ran(version, "two workers", folder).written.files.values()
    workers = [sum(record["kind"] == "worker" for record in records) for records in files]
    assert [count for count in workers if count] == [1, 1]


def test_with_and_without_the_recorder_tokens_and_logprobs_are_the_same_to_the_bit(folder: Path) -> None:
    recorded = ran("0.32.0", "one process", folder).returned
    assert ran("0.32.0", "one process", folder, recorded=False).returned == recorded
