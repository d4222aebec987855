"""`compare --state`, `--shard` and `--merge`: a log in parts is the log, to the last bit."""

import json
import shutil

import numpy as np
import pandas as pd
import pytest
from test_compare import sampled

from rlaudit.cli.app import run
from rlaudit.diagnosis import compare_tables


@pytest.fixture
def log(tmp_path):
    """Seven files of one log; prompts come again in other files, one file has a broken line."""
    folder = tmp_path / "log"
    for number in range(1, 8):
        write(folder, number)
    with (folder / "step_3.jsonl").open("a") as file:
        file.write('{"prompt_id": 1\n')
    return folder


def write(folder, number):
    folder.mkdir(exist_ok=True)
    lines = [
        json.dumps({**record, "prompt_id": f"p{(record['prompt_id'] + 10 * number) % 90}", "step": number})
        for record in sampled(seed=number)
    ]
    (folder / f"step_{number}.jsonl").write_text("\n".join(lines) + "\n")


def report_of(out, *words):
    out.unlink(missing_ok=True)
    code = run(["compare", *map(str, words), "--quiet", "--output", f"json:{out}"])
    return code, json.loads(out.read_text()) if out.exists() else None


@pytest.fixture
def reading(monkeypatch):
    """Names of the files that are read from now on."""
    seen = []
    read = compare_tables._read

    def counted(table, file, *rest):
        seen.append(file.name)
        return read(table, file, *rest)

    monkeypatch.setattr(compare_tables, "_read", counted)
    return seen


def test_a_second_look_reads_nothing_and_a_new_file_costs_that_file(log, tmp_path, reading):
    out, state = tmp_path / "o.json", tmp_path / "state"
    alone = report_of(out, log)
    assert len(reading) == 7
    reading.clear()
    first = report_of(out, log, "--state", state)
    assert len(reading) == 7
    reading.clear()
    again = report_of(out, log, "--state", state)
    assert reading == []
    assert alone == first == again
    assert alone[1]["comparisons"][0]["files"] == 7
    # Evidence is shared among eight files now instead of four: everything is read once more, and then kept.
    write(log, 8)
    assert report_of(out, log, "--state", state) == report_of(out, log)
    reading.clear()
    write(log, 9)
    grown = report_of(out, log, "--state", state)
    assert reading == ["step_9.jsonl"]
    assert grown == report_of(out, log)
    assert grown[1]["comparisons"][0]["tokens"] > alone[1]["comparisons"][0]["tokens"]


def test_a_file_that_changed_is_read_again(log, tmp_path, reading):
    out, state = tmp_path / "o.json", tmp_path / "state"
    report_of(out, log, "--state", state)
    reading.clear()
    (log / "step_2.jsonl").write_text((log / "step_5.jsonl").read_text())
    assert report_of(out, log, "--state", state) == report_of(out, log)
    assert reading[0] == "step_2.jsonl"
    assert len(reading) == 1 + 7


@pytest.mark.parametrize("shards", [1, 3])
def test_shards_that_are_merged_are_the_single_run(log, tmp_path, shards):
    out = tmp_path / "o.json"
    told = ("--temperature", "1", "--ppo-epsilon", "0.1", "0.3")
    alone = report_of(out, log, *told)
    states = [tmp_path / f"state-{number}" for number in range(1, shards + 1)]
    for number, state in enumerate(states, 1):
        assert run(["compare", str(log), *told, "--shard", f"{number}/{shards}", "--state", str(state)]) == 0
    shutil.rmtree(log)
    merged = report_of(out, *(word for state in states for word in ("--merge", state)))
    assert merged == alone


def test_the_sidecar_is_told_to_whoever_merges(log, tmp_path):
    (log / "rollout.yaml").write_text("temperature: 0.5\n")
    alone = report_of(tmp_path / "o.json", log)
    assert run(["compare", str(log), "--shard", "1/1", "--state", str(tmp_path / "s")]) == 0
    shutil.rmtree(log)
    assert report_of(tmp_path / "o.json", "--merge", tmp_path / "s") == alone


def test_a_shard_that_is_missing_is_named_and_nothing_is_judged(log, tmp_path, capsys):
    assert run(["compare", str(log), "--shard", "2/3", "--state", str(tmp_path / "s")]) == 0
    assert report_of(tmp_path / "o.json", "--merge", tmp_path / "s") == (3, None)
    assert "5 of 7 files" in capsys.readouterr().err


def test_states_of_different_logs_are_not_put_together(log, tmp_path, capsys):
    assert run(["compare", str(log), "--shard", "1/2", "--state", str(tmp_path / "a")]) == 0
    write(log, 8)
    assert run(["compare", str(log), "--shard", "2/2", "--state", str(tmp_path / "b")]) == 0
    assert report_of(tmp_path / "o.json", "--merge", tmp_path / "a", "--merge", tmp_path / "b") == (2, None)
    assert "different logs" in capsys.readouterr().err


def test_a_part_that_is_damaged_is_read_again_and_is_no_part_of_a_merge(log, tmp_path, reading, capsys):
    out, state = tmp_path / "o.json", tmp_path / "s"
    alone = report_of(out, log, "--state", state)
    part = sorted((state / "parts").iterdir())[3]
    part.write_bytes(part.read_bytes()[:-100])
    assert report_of(out, "--merge", state) == (3, None)
    assert str(part) in capsys.readouterr().err
    reading.clear()
    assert report_of(out, log, "--state", state) == alone
    assert len(reading) == 1


def test_what_is_kept_is_no_older_engines_judge(log, tmp_path):
    other = tmp_path / "old"
    for number in range(1, 4):
        write(other, number)
    out = tmp_path / "o.json"
    alone = report_of(out, log, "--before", other)
    assert run(["compare", str(log), "--shard", "1/1", "--state", str(tmp_path / "s")]) == 0
    assert report_of(out, "--merge", tmp_path / "s", "--before", other) == alone
    assert alone[1]["comparisons"][1]["distance"]["against"]["paired"]


@pytest.mark.parametrize(
    "words",
    [
        (),
        ("LOG", "--merge", "S"),
        ("LOG", "--shard", "1/2"),
        ("LOG", "--shard", "3/2", "--state", "S"),
        ("LOG", "LOG", "--state", "S"),
        ("--merge", "EMPTY"),
    ],
)
def test_options_that_do_not_go_together_are_a_wrong_command_line(words, log, tmp_path):
    (tmp_path / "EMPTY").mkdir()
    places = {"LOG": str(log), "S": str(tmp_path / "s"), "EMPTY": str(tmp_path / "EMPTY")}
    assert run(["compare", *(places.get(word, word) for word in words)]) == 2


def tokens(prompts, first, seed, samples=2, length=4):
    """A token table with every kind of column that is kept: names, versions, rewards, lists, gaps."""
    rng = np.random.default_rng(seed)
    rows = prompts * samples * length
    rollout = -rng.exponential(0.5, rows)
    return pd.DataFrame(
        {
            "prompt_id": [f"p{first + row // (samples * length)}" for row in range(rows)],
            "sample_id": np.arange(rows) // length % samples,
            "position": np.arange(rows) % length,
            "token_id": rng.integers(0, 50, rows),
            "rollout_logprob": rollout,
            "trainer_logprob": np.minimum(rollout + 0.02 * rng.standard_normal(rows), 0.0),
            "rollout_version": np.repeat(rng.integers(0, 3, rows // length), length),
            "trainer_version": 3,
            "reward": np.repeat(rng.integers(0, 2, rows // length).astype(float), length),
            "trainer_entropy": rng.exponential(0.4, rows),
            "rollout_top_ids": [[1, 2]] * rows,
            "rollout_top_logprobs": [[-0.5, -1.5]] * rows,
        }
    )


def test_more_prompts_than_have_numbers_of_their_own_merge_to_the_same_bits(tmp_path):
    # The second file has more prompts than there are numbers, and shares some with the others.
    log = tmp_path / "log"
    log.mkdir()
    for number, (prompts, first) in enumerate(((300, 0), (4500, 200), (300, 4600))):
        tokens(prompts, first, number).to_parquet(log / f"step_{number}.parquet", row_group_size=10_000)
    out = tmp_path / "o.json"
    alone = report_of(out, log)
    for number in (1, 2):
        assert run(["compare", str(log), "--shard", f"{number}/2", "--state", str(tmp_path / f"s{number}")]) == 0
    assert report_of(out, "--merge", tmp_path / "s1", "--merge", tmp_path / "s2") == alone
    found = alone[1]["comparisons"][0]
    assert found["measurements"]["k3"]["clusters"] == 4096
    assert any("random groups" in note for note in found["notes"])
    whole = pd.concat(pd.read_parquet(file) for file in sorted(log.iterdir()))
    log_ratio = whole.trainer_logprob - whole.rollout_logprob
    assert found["measurements"]["k2"]["value"] == pytest.approx(0.5 * (log_ratio**2).mean(), rel=1e-9)
