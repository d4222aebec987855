"""`rlaudit.compare`: what the command says, of a table in any form, in silence."""

import inspect
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from small_rollouts import TEMPERATURE, small_rollouts
from table_files import as_sequences, rows

import rlaudit
from rlaudit.api.compare import Options
from rlaudit.cli.app import run
from rlaudit.errors import NotFinished, UsageError
from rlaudit.text.plain import plain

RAW = small_rollouts(0, 32, 4, 8, raw=True)
# Of a table: where it lies, and the name of its format.
PLACE = ("path", "format", "name")


def said(report: rlaudit.Report) -> dict[str, Any]:
    """All that a report says, apart from where the table was."""
    document = json.loads(json.dumps(plain(report)))
    for table in document["comparisons"]:
        for name in PLACE:
            table.pop(name)
    for figures in document["token_figures"]:
        figures.pop("name")
    return document


@pytest.fixture(scope="module")
def of_the_command(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("command")
    pq.write_table(pa.table(RAW), folder / "rollouts.parquet")
    words = ["compare", str(folder / "rollouts.parquet"), "--temperature", "0.7", "--quiet"]
    assert run([*words, "--output", f"json:{folder}/report.json"]) == 1
    document = json.loads((folder / "report.json").read_text())
    return said(document)


@pytest.mark.parametrize("form", ["dict", "arrays", "DataFrame", "Arrow", "batches", "sequences", "path"])
def test_a_table_in_any_form_has_the_report_of_the_command(
    form: str, of_the_command: dict[str, Any], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "rollouts.parquet"
    table = pa.table(RAW)
    forms = {
        "dict": lambda: RAW,
        "arrays": lambda: {name: np.asarray(values) for name, values in RAW.items()},
        "DataFrame": lambda: pd.DataFrame(RAW),
        "Arrow": lambda: table,
        # In pieces that end within a sequence.
        "batches": lambda: pa.Table.from_batches(table.to_batches(max_chunksize=100)),
        "sequences": lambda: pd.DataFrame(as_sequences(pd.DataFrame(RAW))),
        "path": lambda: pq.write_table(table, file) or str(file),
    }
    report = rlaudit.compare(forms[form](), temperature=TEMPERATURE)
    assert said(report) == of_the_command
    assert report["layers"][0].causes == ("raw-logprobs",)
    assert capfd.readouterr() == ("", "")


def test_an_array_of_two_dimensions_has_a_sequence_in_each_row() -> None:
    shaped = {name: np.asarray(values).reshape(128, 8) for name, values in RAW.items()}
    table = {
        "prompt_id": shaped["prompt_id"][:, 0],
        "sample_id": shaped["sample_id"][:, 0],
        "token_ids": shaped["token_id"],
        "rollout_logprobs": shaped["rollout_logprob"],
        "trainer_logprobs": shaped["trainer_logprob"],
    }
    report = rlaudit.compare(table, temperature=TEMPERATURE)
    assert report["comparisons"][0].compared_tokens == 1024
    assert report["layers"][0].cause == "raw-logprobs"


@pytest.mark.parametrize("padding", [0.0, np.nan])
def test_padding_that_the_loss_mask_marks_is_in_no_figure(padding: float) -> None:
    shaped = {name: np.asarray(values).reshape(128, 8) for name, values in RAW.items()}
    mask = np.arange(8) < np.random.default_rng(0).integers(3, 9, 128)[:, None]
    padded = {name: np.where(mask, shaped[name], padding) for name in ("rollout_logprob", "trainer_logprob")}
    names = {name: shaped[name][:, 0] for name in ("prompt_id", "sample_id")}
    report = rlaudit.compare({**names, **padded, "loss_mask": mask}, temperature=TEMPERATURE)
    without = pd.DataFrame(RAW)[mask.ravel()].drop(columns="token_id")
    assert report["comparisons"][0].compared_tokens == mask.sum()
    expected = rlaudit.compare(without, temperature=TEMPERATURE)["comparisons"][0].measurements
    assert report["comparisons"][0].measurements == expected


def test_tensors_are_read_as_the_numbers_that_they_hold() -> None:
    class Tensor:
        """As torch's in bfloat16, which numpy does not take."""

        def __init__(self, values: list[float]) -> None:
            self.values = values

        def tolist(self) -> list[float]:
            return self.values

        def __array__(self, *_: object, **__: object) -> None:
            raise TypeError("Got unsupported ScalarType BFloat16")

    tensors = {name: Tensor(values) for name, values in RAW.items()}
    assert rlaudit.compare(tensors)["comparisons"][0].compared_tokens == 1024


def test_what_is_not_said_is_taken_from_nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("rollout.yaml").write_text("temperature: 0.3\n")
    report = rlaudit.compare(RAW)
    assert report["comparisons"][0].sampling.temperature == 1
    assert any("the sampling temperature is not known" in sentence for sentence in report["not_seen"])


def test_a_trainer_may_have_a_table_of_its_own_and_its_own_names() -> None:
    frame = pd.DataFrame(RAW)
    keys = ["prompt_id", "sample_id", "position", "token_id"]
    trainer = frame[[*keys, "trainer_logprob"]].sample(frac=1, random_state=0).sort_values(keys[:3])
    rollouts = frame.drop(columns="trainer_logprob").rename(columns={"rollout_logprob": "logps"})
    report = rlaudit.compare(
        rollouts,
        trainer.rename(columns={"trainer_logprob": "theirs"}),
        columns={"logps": "rollout_logprob", "theirs": "trainer_logprob"},
        temperature=TEMPERATURE,
    )
    assert report["comparisons"][0].trainer_path == "trainer in memory"
    assert report["layers"][0].cause == "raw-logprobs"


def test_with_todays_rollouts_the_report_has_the_move() -> None:
    today = small_rollouts(1, 32, 4, 8)
    report = rlaudit.compare(RAW, before=today, temperature=TEMPERATURE)
    assert report["move"].changes[0].change == "broken"


def test_errors_are_rlaudits_own() -> None:
    with pytest.raises(UsageError, match="no such file"):
        rlaudit.compare("nowhere.parquet")
    with pytest.raises(UsageError, match="list is read as no table"):
        rlaudit.compare([1, 2])
    with pytest.raises(UsageError, match="nothing there is sample_id"):
        rlaudit.compare({"prompt_id": [0], "rollout_logprob": [-1.0]})
    with pytest.raises(UsageError, match="dict is read as no table"):
        rlaudit.compare({"prompt_id": [0, 1], "sample_id": [0]})
    with pytest.raises(NotFinished, match="trainer logprob"):
        rlaudit.compare(rows(3, 1).drop(columns=["trainer_logprob", "token_id"]))


def test_options_that_are_passed_on_are_those_of_the_function() -> None:
    parameters = inspect.signature(rlaudit.compare).parameters.values()
    assert {one.name for one in parameters if one.kind is one.KEYWORD_ONLY} == set(Options.__annotations__)
