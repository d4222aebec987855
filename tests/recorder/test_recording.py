import json
import os
from pathlib import Path

import pytest
from written_recording import WrittenProcess

from rlaudit.errors import NotFinished
from rlaudit.recording.recording import is_recording, open_recording

RESET = "vllm.v1.engine.core:EngineCore.reset_prefix_cache"
RPC = "vllm.v1.engine.core:EngineCore.collective_rpc"


def small(folder: Path, ended: bool = True) -> Path:
    process = WrittenProcess(folder)
    process.engine(model_config={"logprobs_mode": "raw_logprobs"})
    process.sampling(0, temperature=0.7)
    first = process.request([1, 2, 3])
    step = process.step(2)
    process.sequence(first, [1, 2, 3], [7, 8], [-0.5, -1.0], [[step, 1, 2]])
    process.call(RESET, result=True)
    number = process.begin(RPC, method="reload_weights", in_flight=3)
    process.load(inside=number)
    process.end(number, RPC)
    process.put("repeats", call=number, count=4, end=process.now + 1, errors=1)
    return process.write(ended)


def lines_of(folder: Path) -> list[bytes]:
    return next(folder.glob("*.jsonl")).read_bytes().splitlines(keepends=True)


def put_lines(folder: Path, lines: list[bytes]) -> None:
    next(folder.glob("*.jsonl")).write_bytes(b"".join(lines))


def changed(line: bytes, **fields: object) -> bytes:
    return json.dumps({**json.loads(line), **fields}).encode() + b"\n"


def place_of(lines: list[bytes], kind: str) -> int:
    return next(place for place, line in enumerate(lines) if json.loads(line)["kind"] == kind)


def test_a_whole_recording_misses_nothing(tmp_path):
    recording = open_recording(small(tmp_path / "r"))
    assert recording.missing == ()
    (process,) = recording.processes
    assert process.versions["vllm"] == "0.18.1"
    assert process.engines[0].effective == {"model_config": {"logprobs_mode": "raw_logprobs"}}
    assert process.sampling[0]["temperature"] == 0.7
    assert process.totals.by_sampling == {0: 1}


def test_beginnings_ends_and_repeats_of_a_call_become_one(tmp_path):
    (process,) = open_recording(small(tmp_path / "r")).processes
    reset, rpc = process.calls
    assert (reset.name, reset.result, reset.count, reset.method) == ("reset_prefix_cache", True, 1, None)
    assert (rpc.method, rpc.in_flight, rpc.count) == ("reload_weights", 3, 5)
    assert rpc.end > process.loads[0].end > process.loads[0].begin > rpc.begin
    assert process.loads[0].inside == rpc.number
    assert process.tensors[process.loads[0].tensors].names == ("embed", "head")


def test_a_sequence_knows_its_request_and_its_prompt(tmp_path):
    (process,) = open_recording(small(tmp_path / "r")).processes
    (sequence,) = process.sequences
    assert sequence.asked is process.requests[0]
    columns = (sequence.prompt_ids, sequence.ids, sequence.logprobs)
    assert [list(column.read()) for column in columns] == [[1, 2, 3], [7, 8], [-0.5, -1.0]]
    assert list(sequence.ids.part(1, 1).read()) == [8]


def test_without_room_for_temporary_files_a_recording_is_read_in_memory(tmp_path, monkeypatch):
    folder = small(tmp_path / "r")

    def refuse(*arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "pwrite", refuse)
    (process,) = open_recording(folder).processes
    assert list(process.sequences[0].ids.part(1, 1).read()) == [8]


def test_a_recording_is_read_once_until_it_changes(tmp_path):
    folder = small(tmp_path / "r")
    first = open_recording(folder)
    assert open_recording(folder) is first
    put_lines(folder, lines_of(folder)[:-1])
    assert open_recording(folder) is not first


def test_a_single_file_is_a_recording_too(tmp_path):
    file = next(small(tmp_path / "r").glob("*.jsonl"))
    assert is_recording(file)
    assert open_recording(file).processes[0].pid == 100


def test_other_files_are_no_recording(tmp_path):
    (tmp_path / "other.jsonl").write_text('{"prompt_id": 1, "schema": "rlaudit-recording/1"}\n')
    (tmp_path / "empty.jsonl").write_text("")
    os.mkfifo(tmp_path / "pipe.jsonl")
    assert not is_recording(tmp_path)
    assert not is_recording(tmp_path / "pipe.jsonl")
    assert not is_recording(tmp_path / "nothing")
    with pytest.raises(NotFinished):
        open_recording(tmp_path)


def test_what_lies_beside_the_files_is_named(tmp_path):
    folder = small(tmp_path / "r")
    os.mkfifo(folder / "pipe.jsonl")
    (folder / "circle.jsonl").symlink_to("circle.jsonl")
    (folder / "folder.jsonl").mkdir()
    (folder / "other.jsonl").write_text("{}\n")
    said = " ".join(open_recording(folder).missing)
    assert all(name in said for name in ("pipe.jsonl", "circle.jsonl", "folder.jsonl", "other.jsonl"))


def test_a_file_that_may_not_be_read_is_named(tmp_path, monkeypatch):
    folder = small(tmp_path / "r")
    (folder / "secret.jsonl").write_text("{}\n")
    opening = os.open

    def refuse(path, *args, **kwargs):
        if str(path).endswith("secret.jsonl"):
            raise PermissionError(13, "Permission denied")
        return opening(path, *args, **kwargs)

    monkeypatch.setattr(os, "open", refuse)
    assert any("secret.jsonl" in one and "Permission denied" in one for one in open_recording(folder).missing)


def test_another_version_of_the_schema_is_refused_by_name(tmp_path):
    folder = small(tmp_path / "r")
    lines = lines_of(folder)
    put_lines(folder, [changed(lines[0], schema="rlaudit-recording/2"), *lines[1:]])
    assert is_recording(folder)
    with pytest.raises(NotFinished, match="rlaudit-recording/2"):
        open_recording(folder)


def test_a_killed_process_is_said_to_have_no_end(tmp_path):
    folder = small(tmp_path / "r", ended=False)
    assert any("no orderly end" in one for one in open_recording(folder).missing)


def test_every_cut_opens_and_says_what_is_missing(tmp_path):
    whole = b"".join(lines_of(small(tmp_path / "r")))
    first = whole.index(b"\n") + 1
    for end in range(first, len(whole) - 1, 37):
        (tmp_path / "cut").mkdir(exist_ok=True)
        (tmp_path / "cut" / "a.jsonl").write_bytes(whole[:end])
        assert any("no orderly end" in one for one in open_recording(tmp_path / "cut").missing)


def test_calls_loads_and_requests_without_an_end_are_counted(tmp_path):
    process = WrittenProcess(tmp_path / "r")
    process.request([1, 2])
    process.begin(RPC, method="update_weights")
    process.put("load", load=1, side="begin", names=["embed"], in_flight=None)
    said = open_recording(process.write(ended=False)).missing
    assert any("1 of 1 calls have no end" in one for one in said)
    assert any("1 of 1 loads of weights have no end" in one for one in said)
    assert any("1 of 1 kept requests have no tokens" in one for one in said)


def test_what_the_recorder_says_itself_is_passed_on(tmp_path):
    process = WrittenProcess(tmp_path / "r")
    process.lines[1]["hooked"] = [one for one in process.lines[1]["hooked"] if "pause_" not in one]
    process.put("dropped", what="tokens", why="the limit of 10 bytes is reached")
    process.put("failed", hook="load_weights", error="ValueError: x")
    said = " ".join(open_recording(process.write()).missing)
    assert "no pauses recorded" in said
    assert "the limit of 10 bytes is reached" in said
    assert "failed in load_weights" in said


@pytest.mark.parametrize(
    ("kind", "fields", "said"),
    [
        ("sequence", {"ids": "AAA"}, "a sequence record with a ids that is none is left out"),
        ("sequence", {"ids": "****"}, "a sequence record with a ids that is none is left out"),
        ("sequence", {"logprobs": "****"}, "a logprobs that is none, which counts as unknown"),
        ("sequence", {"at": float("nan")}, "a at that is none"),
        ("sequence", {"steps": [[0, 0, 1]]}, "a steps that is none"),
        ("event", {"side": "middle"}, "a side that is none"),
        ("event", {"call": 10**30}, "a call that is none"),
        ("engine", {"kind": "engines"}, "unknown kind 'engines'"),
        ("load", {"load": None}, "a load that is none"),
    ],
)
def test_a_field_that_is_not_as_it_has_to_be_is_named_with_its_line(tmp_path, kind, fields, said):
    folder = small(tmp_path / "r")
    lines = lines_of(folder)
    place = place_of(lines, kind)
    lines[place] = changed(lines[place], **fields)
    put_lines(folder, lines)
    missing = open_recording(folder).missing
    assert any(said in one and f".jsonl:{place + 1}:" in one for one in missing), missing


def test_a_number_that_is_taken_is_named(tmp_path):
    folder = small(tmp_path / "r")
    lines = lines_of(folder)
    put_lines(folder, [*lines[:-1], lines[place_of(lines, "event")], lines[place_of(lines, "tensors")], lines[-1]])
    said = " ".join(open_recording(folder).missing)
    assert "a call whose number is taken" in said
    assert "a set of tensors whose number is taken" in said


def test_a_line_that_was_cut_off_costs_only_itself(tmp_path):
    folder = small(tmp_path / "r")
    lines = lines_of(folder)
    put_lines(folder, [*lines[:4], lines[4][:20] + b"\n", b"[" * 100_000 + b"\n", b"\xff\x00\n", *lines[5:]])
    missing = open_recording(folder).missing
    assert any("no JSON object is left out (and 2 more)" in one for one in missing)
    assert open_recording(folder).processes[0].totals.ended
