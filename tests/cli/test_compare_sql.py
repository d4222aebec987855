"""`compare --sql`: a query makes a token table of logs that are none."""

import json

import pandas as pd
import pytest
from test_compare import sampled

from rlaudit.cli.app import run

pytest.importorskip("duckdb", reason="the extra sql is not installed")
QUERY = """
    SELECT uid AS prompt_id, n AS sample_id, unnest(range(len(lp)))::int AS position,
           unnest(ids) AS token_id, unnest(lp) AS rollout_logprob, unnest(theirs) AS trainer_logprob
    FROM log WHERE split = 'train'
"""


def odd(record, split="train"):
    """A log that calls everything otherwise."""
    return {
        "uid": f"p{record['prompt_id']}", "n": record["sample_id"], "ids": record["token_id"],
        "lp": record["rollout_logprob"], "theirs": record["trainer_logprob"], "split": split,
    }  # fmt: skip


def write(path, records):
    path.parent.mkdir(exist_ok=True)
    if path.suffix == ".parquet":
        pd.DataFrame(records).to_parquet(path)
    else:
        path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def compared(out, *words):
    out.unlink(missing_ok=True)
    code = run(["compare", *map(str, words), "--quiet", "--temperature", "1", "--output", f"json:{out}"])
    return code, json.loads(out.read_text()) if out.exists() else None


@pytest.mark.parametrize("ending", ["jsonl", "parquet"])
def test_a_query_over_a_folder_is_the_table_it_makes(tmp_path, ending):
    records = [{**record, "prompt_id": f"p{record['prompt_id']}"} for record in sampled()]
    names = ("prompt_id", "sample_id", "token_id", "rollout_logprob", "trainer_logprob")
    plain = write(tmp_path / f"plain.{'jsonl'}", [{name: record[name] for name in names} for record in records])
    log = [odd(record) for record in sampled()]
    half = len(log) // 2
    write(tmp_path / "log" / f"a.{ending}", log[:half])
    write(tmp_path / "log" / f"b.{ending}", [*log[half:], odd(next(sampled(seed=9)), "test")])
    code, found = compared(tmp_path / "o.json", tmp_path / "log", "--sql", QUERY)
    wanted_code, wanted = compared(tmp_path / "o.json", plain)
    assert code == wanted_code
    assert found["comparisons"][0]["measurements"] == wanted["comparisons"][0]["measurements"]
    assert found["comparisons"][0]["path"] == str(tmp_path / "log")


@pytest.mark.parametrize(
    "query, said",
    [
        ("SELEC uid FROM log", "syntax error"),
        ("SELECT nothing FROM log", "nothing"),
        ("SELECT uid AS prompt_id FROM log", "sample_id"),
        ("SELECT * FROM elsewhere", "elsewhere"),
    ],
)
def test_a_query_that_fails_or_makes_no_token_table_is_a_wrong_command_line(tmp_path, query, said, capsys):
    path = write(tmp_path / "t.jsonl", [odd(record) for record in sampled()][:4])
    assert compared(tmp_path / "o.json", path, "--sql", query) == (2, None)
    assert said in capsys.readouterr().err


def test_files_of_several_kinds_and_other_ways_of_naming_columns_are_refused(tmp_path, capsys):
    write(tmp_path / "log" / "a.jsonl", [odd(next(sampled()))])
    write(tmp_path / "log" / "b.parquet", [odd(next(sampled()))])
    assert compared(tmp_path / "o.json", tmp_path / "log", "--sql", QUERY) == (2, None)
    assert "several kinds" in capsys.readouterr().err
    path = tmp_path / "log" / "a.jsonl"
    assert compared(tmp_path / "o.json", path, "--sql", QUERY, "--groups", "uid") == (2, None)
    assert compared(tmp_path / "o.json", path, "--sql", QUERY, "--state", tmp_path / "s") == (2, None)


def test_a_file_that_is_cut_off_is_not_queried_in_part(tmp_path, capsys):
    path = write(tmp_path / "t.parquet", [odd(record) for record in sampled()])
    path.write_bytes(path.read_bytes()[:-100])
    assert compared(tmp_path / "o.json", path, "--sql", QUERY)[1] is None
    assert str(path) in capsys.readouterr().err
