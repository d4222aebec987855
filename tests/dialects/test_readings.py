"""Every row of the tables of `readings/`: what is read of a config, and that a fix that is written is read back."""

from pathlib import Path

import pytest
from readings import FIXES, Table, expected, read, rows, shown, tables

from rlaudit.configs.syntax.spelling import apply

ROWS = [
    pytest.param(name, row, id=f"{name}: {sentence}")
    for name, table in tables().items() for sentence, row in rows(table)
]  # fmt: skip


@pytest.mark.parametrize(("framework", "row"), ROWS)
def test_a_config_is_read_as_the_table_says(tmp_path: Path, framework: str, row: Table) -> None:
    releases = row["vllm"] if isinstance(row["vllm"], list) else [row["vllm"]]
    for vllm in releases:
        _, configs = read(framework, row, vllm, tmp_path)
        kind = "none" if not configs else "one" if len(configs) == 1 else "several"
        assert kind == row["reads"]
        for config in configs[:1]:
            found = shown(config)
            assert found == expected(row, found)
            assert [word for word in row["says"] if word not in " ".join(config.not_seen)] == []


@pytest.mark.parametrize(("framework", "row"), [one for one in ROWS if one.values[1]["reads"] == "one"])
def test_a_fix_that_is_written_is_read_back(tmp_path: Path, framework: str, row: Table) -> None:
    vllm = row["vllm"][0] if isinstance(row["vllm"], list) else row["vllm"]
    source, (config,) = read(framework, row, vllm, tmp_path)
    for name, value in FIXES.items():
        edits = config.write(name, value)
        if edits:
            again = {**row, "text": apply(source.text, edits)}
            setting = read(framework, again, vllm, tmp_path)[1][0].engine[name]
            # A copy may be without the line that hands it on: an inspection then offers no such fix.
            is_left = setting.place is None or (row["files"] and not setting.known)
            assert setting.value == value or is_left
