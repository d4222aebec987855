"""`rlaudit compare` over data as they should not be: every case has its exit code, and says file and place."""

import gzip
import json
import os
import resource
from pathlib import Path
from random import Random

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hostile_tables import honest_records

from rlaudit.cli.app import run
from rlaudit.tokens import json_lines
from rlaudit.tokens.json_lines import ZSTANDARD

RECORDS = honest_records(Random(1))


def lines(path, records):
    path.write_text("".join(json.dumps(one) + "\n" for one in records))
    return path


def compared(capsys, *arguments):
    code = run(["compare", *map(str, arguments), "--quiet"])
    said = capsys.readouterr()
    assert "Traceback" not in said.err
    return code, said.err


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"\x1f\x8b", "cannot be read: Compressed file ended"),
        (gzip.compress(b'{"prompt_id": 1}\n' * 500, mtime=0)[:40], "cannot be read"),
        (gzip.compress(b"{" * 3000, mtime=0)[:12] + b"\xff" * 30, "cannot be read"),
        (ZSTANDARD, "cannot be read"),
        (pa.compress(b'{"prompt_id": 1}\n' * 500, codec="zstd", asbytes=True)[:20], "cannot be read"),
        (ZSTANDARD + b"\xff" * 30, "cannot be read"),
    ],
)
def test_a_damaged_packed_file_is_an_audit_that_could_not_be_finished(tmp_path, capsys, content, said):
    path = tmp_path / "a.jsonl"
    path.write_bytes(content)
    code, told = compared(capsys, path)
    assert code == 3
    assert f"{path}" in told
    assert said in told


def test_a_line_without_end_is_an_error_of_its_file_and_takes_no_memory(tmp_path, capsys, monkeypatch):
    path = tmp_path / "bomb.jsonl.gz"
    with gzip.open(path, "wb", compresslevel=1) as file:
        file.write(b'{"prompt_id": 1, "sample_id": 1, "rollout_logprob": [')
        for _ in range(600):
            file.write(b"0," * (1 << 18))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    code, said = compared(capsys, path)
    assert code == 3
    assert f"{path}:1: a line of more than 64 MiB" in said
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 400 << 10


def test_a_line_of_too_many_values_is_named_and_what_came_before_is_used(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(json_lines, "MOST_VALUES", 1000)
    path = lines(tmp_path / "t.jsonl", [*RECORDS, {**RECORDS[0], "loss_mask": [1] * 4000}, *RECORDS[:3]])
    code, said = compared(capsys, path, "--allow-partial")
    assert code == 3
    assert f"{path}:{len(RECORDS) + 1}: a line of more than 1000 values" in said


@pytest.mark.parametrize("target", ["/dev/zero", "/proc/self/status", "/proc/self/mem"])
def test_files_that_the_kernel_makes_are_refused_by_name(tmp_path, capsys, target):
    link = tmp_path / "t.jsonl"
    link.symlink_to(target)
    code, said = compared(capsys, link)
    assert code == 2
    assert f"{link} is a" in said


def test_a_pipe_is_refused_and_not_waited_for(tmp_path, capsys):
    os.mkfifo(tmp_path / "t.jsonl")
    assert compared(capsys, tmp_path / "t.jsonl")[0] == 2
    lines(tmp_path / "u.jsonl", RECORDS)
    (tmp_path / "v.jsonl").symlink_to("/proc/kmsg")
    assert compared(capsys, tmp_path, "--allow-partial")[0] in {0, 1, 3}


@pytest.mark.parametrize("name", ["a" * 400, "a\0b", "a/" * 3000])
def test_a_path_that_no_file_can_have_is_a_bad_command_line(capsys, name):
    assert compared(capsys, name)[0] == 2


@pytest.mark.parametrize(
    "option",
    [
        ("--margin", "0"),
        ("--margin", "-1"),
        ("--margin", "nan"),
        ("--margin", "inf"),
        ("--temperature", "inf"),
        ("--temperature", "nan"),
        ("--trainer-temperature", "inf"),
        ("--top-p", "nan"),
        ("--repetition-penalty", "inf"),
    ],
)
def test_numbers_that_no_sampler_and_no_margin_can_have_are_a_bad_command_line(tmp_path, capsys, option):
    code, said = compared(capsys, lines(tmp_path / "t.jsonl", RECORDS), *option)
    assert code == 2
    assert option[0].removeprefix("--").replace("-", "_") in said.replace("--", "").replace("-", "_")


def table(path: Path, **columns: pa.Array) -> Path:
    """One row per token in row groups of 64, some columns replaced."""
    flat = {name: [value for one in RECORDS for value in one[name]] for name in ("rollout_logprob", "trainer_logprob")}
    rows = {name: pa.array(values) for name, values in flat.items()}
    for name in ("prompt_id", "sample_id"):
        rows[name] = pa.array([one[name] for one in RECORDS for _ in one["rollout_logprob"]])
    rows["position"] = pa.array([place for one in RECORDS for place, _ in enumerate(one["rollout_logprob"])])
    pq.write_table(pa.table({**rows, **columns}), path, row_group_size=64, compression="none")
    return path


TOKENS = sum(len(one["rollout_logprob"]) for one in RECORDS)


@pytest.mark.parametrize(
    "columns",
    [
        {"trainer_entropy": [None] + [1.0] * (TOKENS - 1)},
        {"trainer_entropy": [float("nan")] * TOKENS},
        {"old_logprob": pa.nulls(TOKENS, pa.float64())},
        {"old_logprob": pa.nulls(TOKENS)},
        {"rollout_version": [None] + [3] * (TOKENS - 1), "trainer_version": [4] * TOKENS},
        {"rollout_top_ids": [[]] * TOKENS, "rollout_top_logprobs": [[]] * TOKENS},
        {"rollout_top_ids": pa.nulls(TOKENS, pa.list_(pa.int64()))},
        {"rollout_top_logprobs": [[-0.5]] * TOKENS},
        {"token_id": [1.0, None] * (TOKENS // 2) + [2.0] * (TOKENS % 2)},
    ],
)
def test_gaps_in_optional_columns_stop_nothing(tmp_path, capsys, columns):
    arrays = {name: one if isinstance(one, pa.Array) else pa.array(one) for name, one in columns.items()}
    code, said = compared(capsys, table(tmp_path / "t.parquet", **arrays))
    assert code in {0, 1, 3}
    assert said == ""


@pytest.mark.parametrize("place", np.linspace(0.02, 0.98, 12).tolist())
def test_damaged_pages_are_named_by_their_file_or_change_a_value(tmp_path, capsys, place):
    path = table(tmp_path / "t.parquet")
    data = bytearray(path.read_bytes())
    begin = int(place * len(data))
    data[begin : begin + 40] = bytes(255 - one for one in data[begin : begin + 40])
    path.write_bytes(data)
    code, said = compared(capsys, path)
    assert code in {0, 1, 2, 3}
    assert code != 2 or str(path) in said


def test_a_rollout_table_needs_rollout_logprobs(tmp_path, capsys):
    own = [{name: one[name] for name in ("prompt_id", "sample_id", "trainer_logprob")} for one in RECORDS]
    path = lines(tmp_path / "t.jsonl", own)
    code, said = compared(capsys, path)
    assert code == 2
    assert "needs rollout_logprob as well" in said


def test_sequences_that_were_left_out_are_said_before_one_that_has_no_trainer_logprob(tmp_path, capsys):
    of_one_token = {"rollout_logprob": [-0.5], "token_id": [3]}
    records = [
        {
            "prompt_id": n,
            "sample_id": 0,
            "token_id": [1, 2],
            "rollout_logprob": [-0.5, -0.4],
            "trainer_logprob": [None, -0.4],
        }
        for n in range(3)
    ]
    records.append({"prompt_id": 3, "sample_id": 0, **of_one_token, "trainer_logprob": [None]})
    code, said = compared(capsys, lines(tmp_path / "log.jsonl", records), "--temperature", "1")
    assert code == 3
    assert "there is no sequence to compare; the first fault:" in said and "trainer_logprob" in said
