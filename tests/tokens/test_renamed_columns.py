"""`compare --columns THEIRS=OURS`: tables with other names are read as ours are."""

import contextlib
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from rlaudit.cli.app import run
from rlaudit.tokens.renamed_columns import guessed_columns

NAMES = {"prompt_id": "uid", "sample_id": "n", "rollout_logprob": "logps", "trainer_logprob": "old logps"}
GIVEN = [word for ours, theirs in NAMES.items() for word in ("--columns", f"{theirs}={ours}")]


def rows(by_token: bool) -> pd.DataFrame:
    rng = np.random.default_rng(2)
    found = []
    for prompt in range(40):
        for sample in range(2):
            rollout = -rng.exponential(1.0, 12)
            trainer = np.minimum(rollout + 0.01 * rng.standard_normal(12), 0)
            if by_token:
                found += [
                    (prompt, sample, place, *both) for place, both in enumerate(zip(rollout, trainer, strict=True))
                ]
            else:
                found.append((prompt, sample, list(range(12)), rollout.tolist(), trainer.tolist()))
    return pd.DataFrame(found, columns=["prompt_id", "sample_id", "position", "rollout_logprob", "trainer_logprob"])


def write(table: pd.DataFrame, path: Path) -> Path:
    if path.suffix == ".parquet":
        table.to_parquet(path, row_group_size=100)
    else:
        table.to_json(path, orient="records", lines=True)
    return path


def report(folder: Path, *words: str) -> dict:
    """The comparison of tables that lie in a folder."""
    with contextlib.chdir(folder):
        run(["compare", *words, "--temperature", "1", "--quiet", "--output", "json:out.json"])
        return json.loads(Path("out.json").read_text())


@pytest.mark.parametrize("by_token", [True, False])
@pytest.mark.parametrize("kind", ["parquet", "jsonl"])
def test_a_table_with_other_names_is_compared_as_one_with_ours(tmp_path: Path, by_token: bool, kind: str) -> None:
    for name in ("ours", "theirs"):
        (tmp_path / name).mkdir()
    table = f"table.{kind}"
    write(rows(by_token), tmp_path / "ours" / table)
    # A column that has our name and was not meant is not read.
    write(rows(by_token).rename(columns=NAMES).assign(rollout_logprob=7.0), tmp_path / "theirs" / table)
    found = report(tmp_path / "ours", table)
    assert found["comparisons"][0]["compared_tokens"] == 960
    assert report(tmp_path / "theirs", table, *GIVEN) == found


@pytest.mark.parametrize("kind", ["parquet", "jsonl"])
def test_a_trainers_table_of_the_same_writer_is_read_by_the_names_that_it_has(tmp_path: Path, kind: str) -> None:
    table = rows(by_token=False).rename(columns=NAMES)
    write(table.drop(columns="old logps"), tmp_path / f"rollouts.{kind}")
    write(table.drop(columns="logps"), tmp_path / f"trainer.{kind}")
    found = report(tmp_path, f"rollouts.{kind}", f"trainer.{kind}", *GIVEN)
    assert found["comparisons"][0]["compared_tokens"] == 960


WELL_KNOWN = {
    "prompt_id": "uid", "sample_id": "sample_index", "rollout_logprob": "rollout_log_probs",
    "trainer_logprob": "train_log_probs",
}  # fmt: skip


@pytest.mark.parametrize("kind", ["parquet", "jsonl"])
def test_well_known_names_need_no_option_and_the_report_says_what_was_taken(tmp_path: Path, kind: str) -> None:
    write(rows(by_token=True).rename(columns=WELL_KNOWN), tmp_path / f"theirs.{kind}")
    (comparison,) = report(tmp_path, f"theirs.{kind}")["comparisons"]
    assert comparison["compared_tokens"] == 960
    (note,) = [note for note in comparison["notes"] if "--columns" in note]
    assert "rollout_log_probs as rollout_logprob" in note and "uid as prompt_id" in note


@pytest.mark.parametrize("name", ["old_log_probs", "actor_logprobs", "logprobs"])
def test_a_name_that_either_side_may_have_is_not_guessed(name: str) -> None:
    assert "trainer_logprob" not in guessed_columns([*NAMES, name]).theirs
    assert "rollout_logprob" not in guessed_columns(["uid", name]).theirs


def test_of_two_names_for_one_column_none_is_guessed() -> None:
    both = ["uid", "group_id", "sample_index", "rollout_log_probs"]
    assert set(guessed_columns(both).theirs) == {"sample_id", "rollout_logprob"}


def test_what_names_no_column_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(rows(by_token=False).rename(columns=NAMES), tmp_path / "theirs.parquet")
    for given, said in (
        (["logps"], "is no THEIRS=OURS"),
        (["logps=logprob"], "there are: prompt_id, sample_id, rollout_logprob"),
        (["logps=rollout_logprob", "n=rollout_logprob"], "names rollout_logprob twice"),
        ([*GIVEN[1::2], "nobody=advantage"], "names 'nobody', which no table has"),
        (["logps=rollout_logprob"], "nothing there is sample_id"),
    ):
        words = [word for one in given for word in ("--columns", one)]
        assert run(["compare", str(path), "--temperature", "1", *words]) == 2
        assert said in capsys.readouterr().err


@pytest.mark.parametrize("kind", ["parquet", "jsonl"])
@pytest.mark.parametrize("given", [[], ["--columns", "rollout_logprobs=rollout_logprob"]])
def test_lists_may_be_named_in_the_plural(kind: str, given: list[str], tmp_path: Path) -> None:
    table = rows(by_token=False)
    plural = table.rename(columns={"rollout_logprob": "rollout_logprobs", "trainer_logprob": "trainer_logprobs"})
    write(table, tmp_path / f"ours.{kind}")
    write(plural, tmp_path / f"plural.{kind}")
    ours = report(tmp_path, f"ours.{kind}")
    theirs = report(tmp_path, f"plural.{kind}", *given)
    assert theirs["comparisons"][0]["measurements"] == ours["comparisons"][0]["measurements"]
