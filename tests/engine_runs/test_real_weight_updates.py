"""Weights of the real 0.18.1 updated in flight: two minutes, and gigabytes of environments."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from rlaudit.cli.app import run
from rlaudit.report.schema import report_schema

pytestmark = pytest.mark.engine

RECIPE = Path(__file__).with_name("small-weight-update.yaml")


def engine_processes() -> set[int]:
    """Every process that has this release's extension module loaded, whatever it calls itself."""
    found = set()
    for maps in Path("/proc").glob("[0-9]*/maps"):
        try:
            if "vllm-0.18.1-cpu" in maps.read_text():
                found.add(int(maps.parent.name))
        except OSError:
            continue
    return found


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("runs") / "small"
    before = engine_processes()
    code = run(["ablate", str(RECIPE), "--cpu", "--run-dir", str(folder), "--output", f"text:{folder}/report.txt"])
    document: dict[str, Any] = json.loads((folder / "report.json").read_text())
    assert code == document["exit_code"] == 1
    assert engine_processes() <= before, "an engine process outlived its cell"
    return document


def case(report: dict[str, Any], name: str) -> dict[str, Any]:
    found: dict[str, Any] = next(one for one in report["weight_updates"]["cases"] if one["name"] == name)
    return found


def test_old_keys_and_values_are_served_unless_they_are_cleared(report: dict[str, Any]) -> None:
    kept = case(report, "mode=keep, clear_cache=False")["staleness"]
    cleared = case(report, "mode=keep, clear_cache=True")
    assert kept["verdict"] == "mismatch" and kept["excess"]["low"] > 1e-3
    assert cleared["staleness"]["verdict"] == "match" and cleared["staleness"]["excess"]["high"] < 1e-4
    assert cleared["in_flight"]["completed"] == 32


def test_the_tied_head_is_named_where_reload_weights_does_not_reach_it(report: dict[str, Any]) -> None:
    parts = case(report, "mode=keep, clear_cache=True")["parts"]
    if "avx512f" not in Path("/proc/cpuinfo").read_text():
        # 0.18.1 multiplies by a packed copy of the head only where its oneDNN kernels are built in, which is AVX-512.
        assert parts["verdict"] == "match"
        return
    assert parts["verdict"] == "mismatch"
    assert parts["read_back"]["old"] == ["lm_head.weight"]
    assert parts["k3_under"]["read"]["high"] < 1e-6 < parts["k3_under"]["new"]["low"]


def test_an_adapter_of_the_old_name_is_served_the_old_ones_keys_and_values(report: dict[str, Any]) -> None:
    in_place, renamed = case(report, "loaded in place"), case(report, "new name and number")
    assert in_place["parts"]["verdict"] == renamed["parts"]["verdict"] == "match"
    assert in_place["staleness"]["verdict"] == "mismatch" and in_place["staleness"]["excess"]["low"] > 1e-3
    assert renamed["staleness"]["verdict"] == "match" and renamed["staleness"]["excess"]["high"] < 1e-4


def test_the_report_follows_the_published_schema(report: dict[str, Any]) -> None:
    assert not list(jsonschema.Draft202012Validator(report_schema()).iter_errors(report))
