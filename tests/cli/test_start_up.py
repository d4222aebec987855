"""`--help` and `explain` import what they print: what another command needs would take half a second."""

import json
import subprocess
import sys

import pytest

from rlaudit.cli.app import run
from rlaudit.cli.commands import COMMANDS, app
from rlaudit.discover import offered
from rlaudit.statistics.measurement.measure import all_metrics

# Each takes longer than a page.
HEAVY = {
    "jsonschema",
    "matplotlib",
    "numpy",
    "orjson",
    "pandas",
    "platformdirs",
    "pyarrow",
    "pydantic",
    "rich",
    "scipy",
}
SCRIPT = """
import json, sys
from rlaudit.cli.app import run
code = run(sys.argv[1:])
print(json.dumps([code, sorted(sys.modules)]), file=sys.stderr)
"""


def imported_by(*words: str) -> set[str]:
    done = subprocess.run([sys.executable, "-c", SCRIPT, *words], capture_output=True, text=True, check=True)
    code, modules = json.loads(done.stderr.splitlines()[-1])
    assert code == 0 and done.stdout
    return set(modules)


def test_the_help_imports_no_command() -> None:
    modules = imported_by("--help")
    assert not modules & HEAVY
    assert not modules & {place.partition(":")[0] for place, _ in COMMANDS.values()}


@pytest.mark.parametrize(
    "name",
    [
        "trust",
        "raw-logprobs",  # a rule and a cause
        "rounded-processed-logprobs",  # an advisory
        "suppression-unused",
        "k3",
        "prefix-caching",
        "stale-prefix-kv",
        "0.26.0",
        "0.8.5..0.18.1",
        "verl",
        "reward",
    ],
)
def test_a_page_imports_neither_a_parser_nor_what_it_describes(name: str) -> None:
    assert not imported_by("explain", name) & {*HEAVY, "typer", "click"}


def test_the_list_of_commands_says_what_each_says_of_itself() -> None:
    import click
    import typer

    group = typer.main.get_command(app)
    for name, (_, line) in COMMANDS.items():
        command = group.get_command(click.Context(group), name)
        assert command.get_short_help_str(limit=1000) == line


def test_a_page_has_the_values_of_the_metric_as_it_runs(capsys: pytest.CaptureFixture[str]) -> None:
    for name, metric in all_metrics().items():
        assert run(["explain", name]) == 0
        page = capsys.readouterr().out
        for text in (metric.formula, f"{metric.unit}; {metric.clipping}", metric.reads):
            assert text in page


def test_a_file_that_binds_no_offer_has_none() -> None:
    assert offered("statistics/metrics", "__init__", "METRIC") is None
    assert offered("statistics/metrics", "../discover", "METRIC") is None
    assert offered("statistics/metrics", "k3", "CAUSE") is None
