import ast
from typing import Any

import pytest
from extract_catalogue.reader import BEYOND, unset_value
from extract_catalogue.variables import variables
from vllm_sources import tree_of

ENVS = """
    import os
    from typing import TYPE_CHECKING

    if TYPE_CHECKING:
        VLLM_WRONG: str = ""
        VLLM_RANK: int = 0
        VLLM_LOCAL_RANK: int = -1
        VLLM_COMPILE: bool = False
        VLLM_ODD: int = 7

    def use_compile() -> bool:
        return torch.version > "2"

    environment_variables = {
        "VLLM_WRONG": lambda: os.getenv("VLLM_WRONG", "127.0.0.1"),
        "VLLM_RANK": lambda: int(os.getenv("VLLM_RANK", "0")),
        "VLLM_LOCAL_RANK": lambda: int(os.getenv("VLLM_LOCAL_RANK", sys.modules[__name__].VLLM_RANK)),
        "VLLM_COMPILE": use_compile,
        "VLLM_ODD": lambda: odd.number(os.getenv("VLLM_ODD")),
        "VLLM_MODE": env_with_choices("VLLM_MODE", "fast", ["fast", "slow"]),
    }
"""


def read(text: str) -> Any:
    return unset_value(ast.parse(text, mode="eval").body, lambda _name: BEYOND)


@pytest.mark.parametrize(
    ("reader", "value"),
    [
        ("lambda: os.getenv('A')", None),
        ("lambda: os.environ.get('A', 'x').lower()", "x"),
        ("lambda: bool(int(os.getenv('A', '1')))", True),
        ("lambda: os.environ.get('A', '0') == '1'", False),
        ("lambda: os.getenv('A', 'False').lower() in ('true', '1')", False),
        ("lambda: int(os.environ['A']) if 'A' in os.environ else None", None),
        ("lambda: None if 'A' not in os.environ else 1", None),
        ("lambda: maybe_convert_int(os.getenv('A', None))", None),
        ("lambda: float(os.getenv('A', '0.4')) * 2", 0.8),
        ("lambda: os.getenv('A', '').split(',') if os.getenv('A') else []", []),
        ("lambda: os.getenv('A') or 'fallback'", "fallback"),
        ("env_with_choices('A', 'fast', ['fast'])", "fast"),
    ],
)
def test_a_reader_is_read_as_in_an_empty_environment(reader: str, value: object) -> None:
    assert read(reader) == value


@pytest.mark.parametrize("reader", ["use_compile", "lambda: f(os.getenv('A'))", "lambda: os.cpu_count() or 1"])
def test_a_reader_that_runs_other_code_is_beyond_reading(reader: str) -> None:
    assert read(reader) is BEYOND


def test_the_reader_counts_and_not_the_annotation_beside_it() -> None:
    found = variables(tree_of(envs=ENVS))
    assert found["VLLM_WRONG"][:2] == ["127.0.0.1", "str"]
    assert found["VLLM_LOCAL_RANK"][0] == 0
    assert found["VLLM_MODE"][3:] == ["fast", "slow"]


def test_an_annotation_is_trusted_only_where_no_function_of_the_release_decides() -> None:
    found = variables(tree_of(envs=ENVS))
    assert found["VLLM_COMPILE"][0] == {"expression": "use_compile"}
    assert found["VLLM_ODD"][0] == 7


def test_a_release_without_the_table_is_an_error_and_not_an_empty_catalogue() -> None:
    with pytest.raises(LookupError, match="environment_variables"):
        variables(tree_of(envs="X = 1"))
