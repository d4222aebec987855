"""Every row of logs.yaml: what is read of the text of a log.

The `file`, and the `files` beside it, lie in a folder; `log` is what is opened of it, if not the file. `curves` are the
values by step of metrics, and of no other ones with `only`. `says` are words of its problems; an empty list is none.
`reader` recognises it, `step` is what it counts. A log that `fails`, or is `refused` as a wrong command line, says why.
"""

from pathlib import Path
from typing import Any

import pytest
from yaml_tables import table_of

from rlaudit.curves.curve import run_of, step_keys
from rlaudit.curves.open_run import known_readers, open_run
from rlaudit.errors import NotFinished, UsageError

Row = dict[str, Any]
TABLE = table_of(__file__)
ROWS = [
    pytest.param(rows[0].get("every", {}) | row, id=f"{sentence} {number}")
    for sentence, rows in TABLE.items()
    for number, row in enumerate((one for one in rows if "every" not in one), 1)
]


@pytest.mark.parametrize("row", ROWS)
def test_a_log_is_read_as_the_table_says(row: Row, tmp_path: Path) -> None:
    for name, text in {**row.get("files", {}), row["file"]: row["text"]}.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(text.encode())
    within = row.get("log", row["file"])
    path = f"{tmp_path}{within}" if within.startswith("#") or not within else f"{tmp_path}/{within}"
    for key, error in (("fails", NotFinished), ("refused", UsageError)):
        if key in row:
            with pytest.raises(error) as raised:
                open_run(path, None)
            assert [words for words in row[key] if words not in str(raised.value)] == []
            return
    log = open_run(path, None)
    run = run_of(log, step_keys([log], None)[0])
    found = {key: dict(zip(one.steps.tolist(), one.values.tolist(), strict=True)) for key, one in run.curves.items()}
    assert row["curves"] == (found if row.get("only") else {key: found[key] for key in row["curves"]})
    problems = "\n".join(map(str, run.problems))
    assert [words for words in row.get("says", ()) if words not in problems] == [], problems
    assert row.get("says") != [] or not problems
    assert log.reader.name == row.get("reader", log.reader.name)
    assert run.step_name == row.get("step", run.step_name)


def test_every_reader_is_tried_here_or_in_the_readers_of_bytes() -> None:
    tried = {row.values[0].get("reader") for row in ROWS} - {None}
    assert set(known_readers()) == {*tried, "mlflow", "parquet", "tensorboard", "trackio", "wandb", "wandb-offline"}


def test_the_topic_on_logs_has_an_example_of_every_reader() -> None:
    topic = (Path(__file__).parents[2] / "rlaudit" / "topics" / "logs.md").read_text(encoding="utf-8")
    assert [name for name in known_readers() if f"`{name}`" not in topic] == []
