"""What a recording's reader makes of its files: whole ones, and what is missing in the others."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from written_recording import WrittenProcess, lines_of, put_lines

from rlaudit.errors import NotFinished
from rlaudit.recording.recording import is_recording, open_recording


def small(folder: Path, ended: bool = True) -> Path:
    process = WrittenProcess(folder)
    process.engine(model_config={"logprobs_mode": "raw_logprobs"})
    process.sampling(0, temperature=0.7)
    process.sampled([1, 2, 3], [7, 8], [-0.5, -1.0])
    process.reset()
    with process.rpc("reload_weights", in_flight=3) as number:
        process.load()
    process.put("repeats", call=number, count=4, end=process.now + 1, errors=1)
    return process.write(ended)


def place_of(lines: list[bytes], kind: str) -> int:
    return next(place for place, line in enumerate(lines) if json.loads(line)["kind"] == kind)


def said(folder: Path) -> str:
    return "\n".join(open_recording(folder).missing)


def test_a_whole_recording_misses_nothing(tmp_path: Path) -> None:
    recording = open_recording(small(tmp_path / "r"))
    assert recording.missing == ()
    (process,) = recording.processes
    assert process.versions["vllm"] == "0.18.1"
    assert process.engines[0].effective == {"model_config": {"logprobs_mode": "raw_logprobs"}}
    assert process.sampling[0]["temperature"] == 0.7
    assert process.totals.by_sampling == {0: 1}


def test_beginnings_ends_and_repeats_of_a_call_become_one(tmp_path: Path) -> None:
    (process,) = open_recording(small(tmp_path / "r")).processes
    reset, rpc = process.calls
    assert (reset.name, reset.result, reset.count, reset.method) == ("reset_prefix_cache", True, 1, None)
    assert (rpc.method, rpc.in_flight, rpc.count) == ("reload_weights", 3, 5)
    assert rpc.end > process.loads[0].end > process.loads[0].begin > rpc.begin
    assert process.loads[0].inside == rpc.number
    assert process.tensors[process.loads[0].tensors].names == ("embed", "head")


@pytest.mark.parametrize("has_room", [True, False])
def test_a_sequence_knows_its_request_and_its_prompt_also_without_room_for_temporary_files(
    has_room: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(28, "No space left on device")

    if not has_room:
        monkeypatch.setattr(os, "pwrite", refuse)
    (process,) = open_recording(small(tmp_path / "r")).processes
    (sequence,) = process.sequences
    assert sequence.asked is process.requests[0]
    columns = (sequence.prompt_ids, sequence.ids, sequence.logprobs, sequence.ids.part(1, 1))
    assert [list(column.read()) for column in columns] == [[1, 2, 3], [7, 8], [-0.5, -1.0], [8]]


def test_a_recording_is_read_once_until_it_changes(tmp_path: Path) -> None:
    folder = small(tmp_path / "r")
    first = open_recording(folder)
    assert open_recording(folder) is first
    put_lines(folder, lines_of(folder)[:-1])
    assert open_recording(folder) is not first


def test_a_single_file_is_a_recording_too_and_other_files_are_none(tmp_path: Path) -> None:
    (file,) = small(tmp_path / "r").glob("*.jsonl")
    assert is_recording(file) and open_recording(file).processes[0].pid == 100
    (tmp_path / "other.jsonl").write_text('{"prompt_id": 1, "schema": "rlaudit-recording/1"}\n')
    (tmp_path / "empty.jsonl").write_text("")
    os.mkfifo(tmp_path / "pipe.jsonl")
    assert not any(is_recording(one) for one in (tmp_path, tmp_path / "pipe.jsonl", tmp_path / "nothing"))
    with pytest.raises(NotFinished):
        open_recording(tmp_path)


def test_what_lies_beside_the_files_or_may_not_be_read_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, opening = small(tmp_path / "r"), os.open
    os.mkfifo(folder / "pipe.jsonl")
    (folder / "circle.jsonl").symlink_to("circle.jsonl")
    (folder / "folder.jsonl").mkdir()
    for name in ("other", "secret"):
        (folder / f"{name}.jsonl").write_text("{}\n")

    def refuse(path: Any, *args: Any, **kwargs: Any) -> int:
        if str(path).endswith("secret.jsonl"):
            raise PermissionError(13, "Permission denied")
        return opening(path, *args, **kwargs)

    monkeypatch.setattr(os, "open", refuse)
    missing = open_recording(folder).missing
    assert all(any(f"{name}.jsonl" in one for one in missing) for name in ("pipe", "circle", "folder", "other"))
    assert any("secret.jsonl" in one and "Permission denied" in one for one in missing)


def test_another_version_of_the_schema_is_refused_by_name(tmp_path: Path) -> None:
    folder = small(tmp_path / "r")
    put_lines(folder, [line.replace(b"rlaudit-recording/1", b"rlaudit-recording/2") for line in lines_of(folder)])
    assert is_recording(folder)
    with pytest.raises(NotFinished, match="rlaudit-recording/2"):
        open_recording(folder)


def test_every_cut_opens_and_says_what_is_missing(tmp_path: Path) -> None:
    whole = b"".join(lines_of(small(tmp_path / "r", ended=False)))
    assert "no orderly end" in said(tmp_path / "r")
    for end in range(whole.index(b"\n") + 1, len(whole) - 1, 37):
        assert "no orderly end" in said(put_lines(tmp_path / "cut", [whole[:end]]))


def test_calls_loads_and_requests_without_an_end_are_counted(tmp_path: Path) -> None:
    process = WrittenProcess(tmp_path / "r")
    process.request([1, 2])
    process.begin("vllm.v1.engine.core:EngineCore.collective_rpc", method="update_weights")
    process.put("load", load=1, side="begin", names=["embed"], in_flight=None)
    missing = said(process.write(ended=False))
    for part in ("calls have no end", "loads of weights have no end", "kept requests have no tokens"):
        assert f"1 of 1 {part}" in missing


def test_what_the_recorder_says_itself_is_passed_on(tmp_path: Path) -> None:
    process = WrittenProcess(tmp_path / "r")
    process.lines[1]["hooked"] = [one for one in process.lines[1]["hooked"] if "pause_" not in one]
    process.put("dropped", what="tokens", why="the limit of 10 bytes is reached")
    process.put("failed", hook="load_weights", error="ValueError: x")
    missing = said(process.write())
    assert "could not record pauses" in missing
    assert "the limit of 10 bytes is reached" in missing
    assert "failed in load_weights" in missing


@pytest.mark.parametrize(
    ("kind", "fields", "name"),
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
def test_a_field_that_is_not_as_it_has_to_be_is_named_with_its_line(
    kind: str, fields: dict[str, Any], name: str, tmp_path: Path
) -> None:
    folder = small(tmp_path / "r")
    lines = lines_of(folder)
    place = place_of(lines, kind)
    lines[place] = json.dumps({**json.loads(lines[place]), **fields}).encode() + b"\n"
    missing = open_recording(put_lines(folder, lines)).missing
    assert any(name in one and f".jsonl:{place + 1}:" in one for one in missing), missing


def test_a_number_that_is_taken_is_named(tmp_path: Path) -> None:
    folder = small(tmp_path / "r")
    lines = lines_of(folder)
    missing = said(
        put_lines(folder, [*lines[:-1], lines[place_of(lines, "event")], lines[place_of(lines, "tensors")], lines[-1]])
    )
    assert "a call whose number is taken" in missing and "a set of tensors whose number is taken" in missing


def test_a_line_that_was_cut_off_costs_only_itself(tmp_path: Path) -> None:
    folder = small(tmp_path / "r")
    lines = lines_of(folder)
    put_lines(folder, [*lines[:4], lines[4][:20] + b"\n", b"[" * 100_000 + b"\n", b"\xff\x00\n", *lines[5:]])
    assert "no JSON object is left out (and 2 more)" in said(folder)
    assert open_recording(folder).processes[0].totals.ended
