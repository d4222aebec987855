from typing import Any

import pytest
from simulated_audit import simulated_audit

from rlaudit.rules.audit.moved_default import restores


@pytest.mark.parametrize(
    ("example", "name", "value", "is_so"),
    [
        ({"from": "0.8.5", "engine": {"seed": 4}, "at_from": {"engine": {"seed": 3}}}, "seed", 3, True),
        ({"from": "0.8.5", "engine": {"seed": 4}, "at_from": {"engine": {"seed": 3}}}, "seed", 4, False),
        ({"from": "0.8.5", "engine": {"seed": {"unknown": "$SEED"}}}, "seed", 3, False),
        # An argument that the release before does not have.
        ({"from": "0.8.5"}, "async_scheduling", False, True),
        ({"from": "0.8.5"}, "async_scheduling", True, False),
        # Nothing migrates.
        ({"engine": {"seed": 3}}, "seed", 3, False),
    ],
)
def test_only_what_surely_runs_today_is_restored(example: dict[str, Any], name: str, value: Any, is_so: bool) -> None:
    assert restores(simulated_audit({"to": "0.18.1", **example}), name, value) is is_so


@pytest.mark.parametrize(
    ("model", "name", "by", "line", "setting"),
    [
        ("Qwen/Qwen2.5-7B", "model", (), 2, "model"),
        (None, "model", (), 1, "model"),
        (None, "seed", (), 2, "engine.seed"),
        (None, "dtype", (), 1, "dtype"),
        (None, "dtype", ("block_size", "seed"), 2, "dtype"),
        (None, "dtype", ("model",), 1, "dtype"),
        ("Qwen/Qwen2.5-7B", "dtype", ("model",), 2, "dtype"),
    ],
)
def test_a_setting_is_shown_where_it_is_written_else_where_what_decides_it_is(
    model: str | None, name: str, by: tuple[str, ...], line: int, setting: str
) -> None:
    place = simulated_audit({"to": "0.18.1", "engine": {"seed": 4}, "model": model}).place(name, by)
    assert (place.line, place.setting) == (line, setting)
