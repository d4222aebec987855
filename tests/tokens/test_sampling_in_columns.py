"""A Parquet table may say in columns how it was sampled, and with one row per sequence from which prompts."""

from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from table_files import rows

from rlaudit.tokens.exports.parquet_table import parts
from rlaudit.tokens.parquet import parquet_sample
from rlaudit.tokens.prompt_numbers import PromptNumbers


def part_of(folder: Path, groups: int | None = None, **columns: Any) -> Any:
    path = folder / "t.parquet"
    rows(**columns).to_parquet(path, index=False, row_group_size=groups)
    (part,) = parts(path)
    return part


def test_one_value_in_every_row_is_how_the_table_was_sampled(tmp_path: Path) -> None:
    part = part_of(tmp_path, groups=5, temperature=0.7, top_k=20)
    assert part.sampling == {"temperature": 0.7, "top_k": 20}
    assert part.not_seen == ()


def test_a_table_without_such_columns_says_nothing(tmp_path: Path) -> None:
    assert part_of(tmp_path).sampling == {}


@pytest.mark.parametrize("values", [[0.7] * 12 + [1.0] * 12, [0.7] * 23 + [None], ["warm"] * 24])
def test_several_values_or_no_numbers_are_not_taken_and_that_is_said(tmp_path: Path, values: list[Any]) -> None:
    part = part_of(tmp_path, groups=5, temperature=values)
    assert part.sampling == {}
    assert any("temperature" in line for line in part.not_seen)


@pytest.mark.parametrize(
    ("name", "prompt"),
    [("prompt_token_ids", [5, 6, 7]), ("prompt", "a text"), ("messages", [{"role": "user", "content": "a text"}])],
)
def test_prompts_of_whole_sequences_arrive_in_a_sample(tmp_path: Path, name: str, prompt: Any) -> None:
    path = tmp_path / "t.parquet"
    row = {"prompt_id": 0, "token_id": [1, 2], "rollout_logprob": [-1.0, -2.0], name: prompt}
    pd.DataFrame([{**row, "sample_id": sample} for sample in range(3)]).to_parquet(path, index=False)
    (batch,) = parquet_sample(path, 100, PromptNumbers())
    read = batch.prompt_token_ids_S if name == "prompt_token_ids" else batch.prompt_texts_S
    assert read is not None
    assert list(read[0]) == list(prompt)
