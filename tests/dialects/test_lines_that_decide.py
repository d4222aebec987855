"""A copy of a framework with every line of its dialect: a value whose line is taken out of it is not known any more."""

from pathlib import Path

import pytest
from readings import SECTIONS, Table, read, rows, tables

from rlaudit.configs.dialects.framework_code import places
from rlaudit.configs.dialects.spec import shipped, spec_at
from rlaudit.settings.rollout_config import RolloutConfig, Setting


def most_known(table: Table) -> Table:
    """The row with the most values that are known."""
    alone = (row for _, row in rows(table) if row["reads"] == "one" and not row["files"])
    return max(alone, key=lambda row: sum(value != "open" for name in SECTIONS for value in row[name].values()))


ROWS = [
    pytest.param(name, most_known(table), id=name)
    for name, table in tables().items()
    if "folder" in spec_at(shipped()[name]).declared.get("package", {})
]


def every_line(name: str) -> dict[str, str]:
    """A copy with the words of every place, each on a line of its own."""
    files: dict[str, dict[str, None]] = {}
    for _, at in spec_at(shipped()[name]).places:
        for file, words in places(at):
            files.setdefault(file, {})[" ".join(words.split())] = None
    return {file: "".join(f"{line}\n" for line in lines) for file, lines in files.items()}


def setting_of(config: RolloutConfig, name: str) -> Setting | None:
    found = (section.get(name) for section in (config.engine, config.sampling, config.environment, config.trainer))
    return next((one for one in found if one is not None), None)


@pytest.mark.parametrize(("framework", "row"), ROWS)
def test_a_value_does_not_outlive_the_line_that_decides_it(tmp_path: Path, framework: str, row: Table) -> None:
    vllm = row["vllm"][0] if isinstance(row["vllm"], list) else row["vllm"]
    copy = every_line(framework)
    whole = {**row, "files": {**row["files"], **copy}}
    _, (config,) = read(framework, whole, vllm, tmp_path / "whole")
    for number, (name, at) in enumerate(config.decided.items()):
        setting, (path, _, line) = setting_of(config, name), at.rpartition(":")
        file = next((file for file in copy if path.endswith(file)), None)
        if file is None or setting is None or not setting.known or setting.place is not None:
            continue
        kept = [text if index != int(line) else "" for index, text in enumerate(copy[file].splitlines(), 1)]
        files = {**whole["files"], file: "\n".join(kept)}
        _, (again,) = read(framework, {**row, "files": files}, vllm, tmp_path / str(number))
        left, other = setting_of(again, name), again.decided.get(name, "").partition(f"/{number}/")[2]
        is_decided_elsewhere = bool(other) and other != at.partition("/whole/")[2]
        assert left is None or not left.known or is_decided_elsewhere, name
