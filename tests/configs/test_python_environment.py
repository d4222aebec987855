"""Environment variables that a Python program sets for itself."""

import pytest

from rlaudit.configs.python_environment import python_environment
from rlaudit.configs.source import Source
from rlaudit.unknown import Unknown


def test_a_variable_that_is_set_to_what_the_environment_holds_is_open() -> None:
    source = Source("run.py", "import os\nos.environ['VLLM_X'] = os.environ.get('VLLM_X', '0')\n")
    assert isinstance(python_environment(source)["VLLM_X"].value, Unknown)


@pytest.mark.parametrize(
    ("variables", "line", "value"),
    [
        ("{'VLLM_X': '1', 'A': b}", "os.environ[k] = v", "1"),
        ("SET", "os.environ[k] = str(v)", "2"),
        ("SET", "if k not in os.environ: os.environ[k] = v", "2"),
        ("elsewhere()", "os.environ[k] = v", None),
        ("SET", "print(k, v)", None),
    ],
)
def test_variables_that_a_loop_sets_are_those_of_its_dictionary(variables: str, line: str, value: str | None) -> None:
    text = f"import os\nSET = {{'VLLM_X': 2}}\nfor k, v in {variables}.items():\n    {line}\n"
    found = python_environment(Source("start.py", text), ("VLLM_",)).get("VLLM_X")
    assert (found.value if found is not None else None) == value


@pytest.mark.parametrize(("written", "value"), [("False", "0"), ("True", "1"), ("wanted", None)])
def test_vllms_own_function_chooses_the_engine(written: str, value: str | None) -> None:
    source = Source("run.py", f"from vllm.envs import set_vllm_use_v1\nset_vllm_use_v1({written})\n")
    chosen = python_environment(source)["VLLM_USE_V1"]
    assert chosen.place.line == 2
    assert isinstance(chosen.value, Unknown) if value is None else chosen.value == value
