"""A table of tokens as `DataFrame.to_csv` writes it says what the same table says in Parquet."""

from itertools import chain
from pathlib import Path

import pandas as pd
import pytest

from rlaudit.cli.app import run
from rlaudit.errors import UsageError
from rlaudit.tokens.fault import Faults
from rlaudit.tokens.open_table import open_tables
from rlaudit.tokens.prompt_numbers import PromptNumbers
from rlaudit.tokens.renamed_columns import AS_OURS, RenamedColumns

TABLE = Path(__file__).parents[2] / "rlaudit" / "demo" / "vllm-0.18.1-processed.parquet"


def written(folder: Path, name: str, **renamed: str) -> Path:
    path = folder / name
    frame = pd.read_parquet(TABLE).head(300).rename(columns=renamed)
    frame.to_csv(path, sep="\t" if name.endswith(".tsv") else ",")
    return path


def logprobs(path: Path, renamed: RenamedColumns = AS_OURS) -> list[float]:
    (table,) = open_tables(path, renamed=renamed)
    batches = list(table.batches(Faults(), PromptNumbers()))
    return [
        *chain.from_iterable(batch.rollout_logprobs_T for batch in batches),
        *chain.from_iterable(batch.trainer_logprobs_T for batch in batches),
    ]


@pytest.mark.parametrize("name", ["t.csv", "t.tsv"])
def test_it_holds_the_tokens_of_the_same_table_in_parquet(name: str, tmp_path: Path) -> None:
    pd.read_parquet(TABLE).head(300).to_parquet(tmp_path / "t.parquet")
    assert logprobs(written(tmp_path, name)) == pytest.approx(logprobs(tmp_path / "t.parquet"))


def test_its_columns_may_have_other_names_and_the_way_to_say_so_is_named(tmp_path: Path) -> None:
    path = written(tmp_path, "t.csv", rollout_logprob="new")
    with pytest.raises(UsageError, match=r"--columns COLUMN=rollout_logprob") as raised:
        open_tables(path)
    assert "it holds" in str(raised.value)
    assert len(logprobs(path, RenamedColumns({"rollout_logprob": "new"}))) == 600


def test_a_row_that_does_not_fit_the_header_is_named_with_its_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "t.csv"
    path.write_text("prompt_id,sample_id,rollout_logprob,trainer_logprob\n1,0,-1.0,-1.1\n1,0,-0.5\n")
    assert run(["compare", str(path), "--temperature", "1"]) == 3
    assert "t.csv:2: cannot be read further" in capsys.readouterr().err
