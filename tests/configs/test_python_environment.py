"""Environment variables that a Python program sets for itself."""

import pytest

from rlaudit.configs.python_environment import python_environment, unread_variables_at
from rlaudit.configs.source import Source
from rlaudit.unknown import Unknown


def test_a_variable_that_is_set_to_what_the_environment_holds_is_open() -> None:
    source = Source("run.py", "import os\nos.environ['VLLM_X'] = os.environ.get('VLLM_X', '0')\n")
    assert isinstance(python_environment(source)["VLLM_X"].value, Unknown)


@pytest.mark.parametrize(
    ("line", "is_read"),
    [
        ("os.environ['VLLM_X'] = '2'", True),
        ("os.environ[name] = '2'", False),
        ("os.environ.update({'VLLM_X': '2'})", False),
        ("print(os.environ[name] == '2')", True),
    ],
)
def test_lines_that_set_variables_whose_names_are_not_read_are_known(line: str, is_read: bool) -> None:
    source = Source("run.py", f"import os\n{line}\n")
    assert unread_variables_at(source) == (set() if is_read else {2})


@pytest.mark.parametrize(("written", "value"), [("False", "0"), ("True", "1"), ("wanted", None)])
def test_vllms_own_function_chooses_the_engine(written: str, value: str | None) -> None:
    source = Source("run.py", f"from vllm.envs import set_vllm_use_v1\nset_vllm_use_v1({written})\n")
    chosen = python_environment(source)["VLLM_USE_V1"]
    assert chosen.place.line == 2
    assert isinstance(chosen.value, Unknown) if value is None else chosen.value == value
