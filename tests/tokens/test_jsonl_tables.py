import gzip
import json

import numpy as np
import pyarrow as pa
import pytest
from table_files import as_sequences, rows, whole, write_lines

from rlaudit.tokens.fault import Faults
from rlaudit.tokens.json_lines import parsed


def test_one_line_per_token_reads_like_one_line_per_sequence(tmp_path):
    frame = rows(advantage=0.5)
    tokens = whole(write_lines(tmp_path / "t.jsonl", frame.to_dict("records")))
    sequences = whole(write_lines(tmp_path / "s.jsonl", as_sequences(frame)))
    for batch in (tokens, sequences):
        np.testing.assert_allclose(batch.rollout_logprobs_T, frame.rollout_logprob)
        assert batch.prompt_names_S.tolist() == [0, 0, 1, 1, 2, 2]
        assert batch.lengths_S.tolist() == [3, 4, 5] * 2
        assert batch.token_columns["advantage"].tolist() == [0.5] * 24


def test_lists_may_be_named_in_the_plural(tmp_path):
    record = {"prompt_id": 0, "sample_id": 0, "rollout_logprobs": [-1.0, -2.0], "trainer_logprobs": [-1.0, -2.5]}
    assert whole(write_lines(tmp_path / "s.jsonl", [record])).trainer_logprobs_T.tolist() == [-1.0, -2.5]


def test_bad_lines_are_named_and_the_rest_is_used(tmp_path):
    good = [json.dumps(record) for record in as_sequences(rows())]
    path = tmp_path / "s.jsonl"
    path.write_text("\n".join([good[0], "{not json", good[1], "[1, 2]", '{"prompt_id": 9}', good[2], good[3][:40]]))
    faults = Faults()
    batch = whole(path, faults)
    assert batch.sequences == 3
    said = faults.lines()
    assert [line.split(": ")[0] for line in said] == [f"{path}:{number}" for number in (2, 4, 5, 7)]
    assert "not JSON" in said[0]
    assert "not an object" in said[1]
    assert "no prompt_id, sample_id and rollout_logprob" in said[2]
    assert "the last line is cut off after 40 bytes" in said[3]


def test_lines_of_the_other_schema_are_named_as_mixed(tmp_path):
    frame = rows()
    lines = [*as_sequences(frame), *frame.iloc[:2].to_dict("records")]
    faults = Faults()
    assert whole(write_lines(tmp_path / "s.jsonl", lines), faults).sequences == 6
    assert all(
        "this line is one token, the file's first is one sequence: mixed schemas" in one for one in faults.lines()
    )
    assert faults.count == 2


def test_lists_of_unequal_length_are_named(tmp_path):
    records = list(as_sequences(rows()))
    records[1]["trainer_logprob"].pop()
    faults = Faults()
    assert whole(write_lines(tmp_path / "s.jsonl", records), faults).sequences == 5
    assert "s.jsonl:2: prompt 0, sample 1: trainer_logprob has 3 entries, rollout_logprob has 4" in faults.lines()[0]


def test_what_is_not_a_number_is_named(tmp_path):
    records = list(as_sequences(rows()))
    records[0]["rollout_logprob"][1] = "minus one"
    faults = Faults()
    assert whole(write_lines(tmp_path / "s.jsonl", records), faults).sequences == 5
    assert "holds what is not a number" in faults.lines()[0]


def test_a_token_that_is_missing_among_token_lines_is_named(tmp_path):
    faults = Faults()
    batch = whole(write_lines(tmp_path / "t.jsonl", rows().drop(index=4).to_dict("records")), faults)
    assert batch.sequences == 5
    assert "positions are not 0, 1, 2" in faults.lines()[0]


def test_values_per_sequence_are_kept_and_repeated_where_they_are_per_token(tmp_path):
    record = {
        "prompt_id": "a", "sample_id": 0, "rollout_logprob": [-1.0, -2.0], "trainer_logprob": [-1.0, -2.0],
        "reward": 1.5, "advantage": -0.5, "prompt_token_ids": [5, 6, 7],
    }  # fmt: skip
    batch = whole(write_lines(tmp_path / "s.jsonl", [record]))
    assert batch.sequence_columns["reward"].tolist() == [1.5]
    assert batch.token_columns["advantage"].tolist() == [-0.5, -0.5]
    assert batch.prompt_token_ids_S[0].tolist() == [5, 6, 7]


def zstandard(content):
    return pa.compress(content, codec="zstd", asbytes=True)


@pytest.mark.parametrize(("ending", "packer"), [("gz", gzip.compress), ("zst", zstandard)])
def test_packed_files_are_unpacked_of_one_piece_or_several(tmp_path, ending, packer):
    path = tmp_path / f"s.jsonl.{ending}"
    lines = "".join(json.dumps(one) + "\n" for one in as_sequences(rows())).encode()
    path.write_bytes(packer(lines))
    assert whole(path).sequences == 6
    half = len(lines) // 2
    path.write_bytes(packer(lines[:half]) + packer(lines[half:]))
    assert whole(path).sequences == 6


@pytest.mark.parametrize("columns", [{}, {"loss_mask": [True, False, True]}])
def test_a_sequence_without_a_loss_mask_counts_in_full(tmp_path, columns):
    plain = {"prompt_id": 0, "sample_id": 0, "rollout_logprob": [-1.0] * 3, "trainer_logprob": [-1.0] * 3}
    batch = whole(write_lines(tmp_path / "s.jsonl", [plain, {**plain, "sample_id": 1, **columns}]))
    assert batch.counts_T.tolist() == [True] * 3 + columns.get("loss_mask", [True] * 3)


@pytest.mark.parametrize(
    "line",
    [
        b'{"prompt_id": 340282366920938463463374607431768211455, "x": 1}',
        b'[{"group_id": 340282366920938463463374607431768211455}, {"group_id": 1}]',
        b'{"a": [NaN, -Infinity, Infinity]}',
        b'{"a": 1e400, "b": -0, "c": 0.1, "d": 1.7976931348623157e308}',
        b'{"a": "\\ud800"}',
        b'{"a": 1, "a": 2}',
        b'"text"',
    ],
)
def test_a_line_is_what_the_standard_library_makes_of_it(line):
    assert repr(parsed(line)) == repr(json.loads(line))


@pytest.mark.parametrize("line", [b"{", b'{"a": tru}', b"\xff"])
def test_what_is_no_json_is_said_by_the_standard_library(line):
    with pytest.raises(ValueError) as expected:
        json.loads(line)
    with pytest.raises(expected.type) as found:
        parsed(line)
    assert str(found.value) == str(expected.value)
