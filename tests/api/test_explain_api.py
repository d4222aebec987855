"""`rlaudit explain api` prints what the code says of each public name."""

import importlib
import inspect
from typing import Any

import pytest

import rlaudit
from rlaudit.cli.api_page import PUBLIC
from rlaudit.cli.app import run

# Those of a trainer are not here to be imported.
HERE = [name for name in PUBLIC if not name.startswith("rlaudit.callbacks.")]
FUNCTIONS = [name for name in HERE if name.rpartition(".")[2].islower()]


def public(name: str) -> Any:
    place, _, plain = name.rpartition(".")
    return getattr(importlib.import_module(place), plain)


@pytest.fixture(scope="module")
def page() -> str:
    from rlaudit.cli.api_page import api_page

    return api_page()


@pytest.mark.parametrize("name", HERE)
def test_a_public_name_is_there_with_the_docstring_that_it_has(name: str, page: str) -> None:
    assert f"\n{name}\n" in page
    assert inspect.getdoc(public(name)) in page


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_is_there_with_each_parameter(name: str, page: str) -> None:
    for parameter in inspect.signature(public(name)).parameters:
        assert f"{parameter}: " in page


@pytest.mark.parametrize("name", [*FUNCTIONS, "rlaudit.callbacks.GateCallback"])
def test_a_docstring_says_units_errors_and_source(name: str, page: str) -> None:
    about = page.partition(f"\n{name}\n")[2].partition("\nrlaudit.")[0]
    assert "Raises" in about and "Source:" in about


def test_every_name_of_the_package_is_on_the_page(page: str) -> None:
    named = {name.split(".")[1] for name in PUBLIC}
    assert named == {*rlaudit.__all__, "callbacks"} - {"__version__"}
    for name in named:
        assert f"    rlaudit.{name} " in page


def test_the_command_prints_it(page: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain", "api"]) == 0
    assert capsys.readouterr().out.startswith(page)
