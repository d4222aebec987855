from pathlib import Path
from typing import Any

import pytest
from declared_text import read

from rlaudit.settings.rollout_config import Origin
from rlaudit.unknown import Unknown

NOT_THERE: Any = object()
CASES = [
    ("{key: '@a'}", "a: 3", 3),
    ("{key: '@a'}", "b: 3", NOT_THERE),
    ("{key: '@a'}", "a: null", NOT_THERE),
    ("{key: '@a', default: 7}", "b: 3", 7),
    ("{key: '@a', default: 7}", "a: null", 7),
    ("{key: '@a', default: 7, 'null': keep}", "a: null", None),
    ("{key: '@a', default: 7, 'null': nothing}", "a: null", NOT_THERE),
    ("{key: '@a', 'null': -1}", "a: null", -1),
    ("{key: '@a | @b'}", "b: 3", 3),
    ("{key: '@a | @b'}", "{a: null, b: 3}", 3),
    ("{key: '@a', value: true}", "a: lora", True),
    ("{value: mp}", "a: 1", "mp"),
    ("{key: '@a', map: {bf16: bfloat16}}", "a: bf16", "bfloat16"),
    ("{key: '@a', map: {bf16: bfloat16}}", "a: half", "half"),
    ("{key: '@a', map: {bf16: bfloat16, otherwise: auto}}", "a: half", "auto"),
    ("{key: '@a', map: {true: bfloat16}}", "a: 1", 1),
    ("{key: '@a', above: 1}", "a: 2", True),
    ("{key: '@a', above: 1}", "a: 1", False),
    ("{key: '@a', truth: true}", "a: 'yes'", True),
    ("{sum: ['@a', '@b']}", "{a: 2, b: 3}", 5),
    ("{sum: ['@a', '@b | 7']}", "a: 2", 9),
    ("[{if: '@b > 2', value: ray}, {value: uni}]", "b: 3", "ray"),
    ("[{if: '@b > 2', value: ray}, {value: uni}]", "b: 1", "uni"),
    ("[{if: '@b > 2', nothing: true}, {value: uni}]", "b: 3", NOT_THERE),
    ("[{key: '@a'}, {key: '@b', above: 1}]", "b: 3", True),
    ("{if: '@a is written', value: 1}", "a: null", 1),
    ("{key: '@a', sum: ['@b|1', '@a']}", "a: 2", 3),
    ("{key: '@a', sum: ['@b|1', '@c|4']}", "b: 2", NOT_THERE),
    ("{key: '@a', same as: '@b'}", "{a: 2, b: 3}", 3),
    ("{if: '@a is not written', value: 1}", "b: 1", 1),
]


@pytest.mark.parametrize(("clause", "config", "arrives"), CASES)
def test_a_clause_says_what_arrives(tmp_path: Path, clause: str, config: str, arrives: Any) -> None:
    found = read(tmp_path, f"engine: {{x: {clause}}}\n", f"sampler:\n  {config}\n").engine.get("x")
    assert (NOT_THERE if found is None else found.value) == arrives


@pytest.mark.parametrize(
    "clause",
    [
        "{key: '@a'}",
        "{key: '@a', above: 1}",
        "{key: '@a', map: {1: 2}}",
        "{sum: ['@a', '@b | 7']}",
        "{key: '@b', open: only the worker knows}",
        "{open: only the worker knows}",
        "[{if: '@a > 2', value: ray}, {value: uni}]",
    ],
)
def test_what_is_not_known_stays_open(tmp_path: Path, clause: str) -> None:
    config = read(tmp_path, f"engine: {{x: {clause}}}\n", "sampler: {a: '???', b: 3}\n")
    assert isinstance(config.engine["x"].value, Unknown)


def test_clauses_that_agree_settle_what_their_conditions_leave_open(tmp_path: Path) -> None:
    said = "engine: {x: [{if: '@a > 2', value: mp}, {value: mp}]}\n"
    assert read(tmp_path, said, "sampler: {a: '???'}\n").engine["x"].value == "mp"


def test_clauses_that_differ_are_all_listed(tmp_path: Path) -> None:
    said = "engine: {x: [{if: '@a > 2', value: ray}, {if: '@a > 1', value: mp}, {value: uni}]}\n"
    value = read(tmp_path, said, "sampler: {a: '???'}\n").engine["x"].value
    assert value.among == ("ray", "mp", "uni")
    assert value.reason.startswith("the value is either ray or mp or uni, since ")


def test_origin_and_place_are_those_of_the_file_or_of_the_framework(tmp_path: Path) -> None:
    engine = read(tmp_path, "engine: {x: {key: '@a'}, y: {value: 1}}\n", "sampler:\n  a: 3\n").engine
    assert (engine["x"].origin, engine["y"].origin) == (Origin.FILE, Origin.FRAMEWORK)
    assert engine["x"].place is not None and engine["x"].place.line == 2
    assert engine["y"].place is None
