"""A whole audit, from recipe to report, on a stand-in engine that keeps old keys and values when it is not told to
forget them. Everything but the model is the product's own, in processes of its own."""

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from fake_engine import FAKES, carried_out
from releases.update_cells import update_cells

from rlaudit.diagnosis.updates.judge import JudgedCase
from rlaudit.laboratory import run_setup, scoring
from rlaudit.laboratory.prompts import PromptSet
from rlaudit.laboratory.studies.updates import checkpoints
from rlaudit.laboratory.studies.updates.plan import plan_updates
from rlaudit.laboratory.studies.updates.recipe import UpdateRecipe, update_recipe_of
from rlaudit.laboratory.studies.updates.run import FinishedUpdates, execute
from rlaudit.report.of_updates import document_of
from rlaudit.report.rendering.formats.json import FORMAT as JSON
from rlaudit.report.rendering.formats.markdown import FORMAT as MARKDOWN
from rlaudit.report.rendering.formats.text import FORMAT as TEXT
from rlaudit.report.report import Report
from rlaudit.report.schema import report_schema

HERE = Path(__file__).parent
ENGINE: dict[str, Any] = {
    "version": "0.18.1",
    "modes": ["keep", "wait", "abort"],
    "clear_cache": [True, False],
    "salted": True,
    "prefix_caching": ["on"],
}

ANSI = re.compile(r"\x1b\[[0-9;]*m")


def recipe_with(**engine: Any) -> UpdateRecipe:
    document = {
        "schema": "rlaudit-recipe/1",
        "environment_variables": {"PYTHONPATH": str(FAKES)},
        "weight_updates": {"engines": [{**ENGINE, **engine}], "drain_seconds": 600, "flight_tokens": 9},
    }
    return update_recipe_of(document, Path("recipe.yaml"))


def run_in(folder: Path, monkeypatch: pytest.MonkeyPatch, recipe: UpdateRecipe) -> FinishedUpdates:
    monkeypatch.setattr(run_setup, "TOKENIZE", HERE / "stand_ins" / "tokenize_prompts.py")
    monkeypatch.setattr(checkpoints, "DERIVE", HERE / "stand_ins" / "derive_checkpoints.py")
    monkeypatch.setattr(scoring, "SCORE", HERE / "stand_ins" / "score.py")
    prompts = PromptSet("numbers", tuple(str(number) for number in range(16)))
    run: FinishedUpdates = carried_out(folder, prompts, partial(plan_updates, recipe), execute)
    return run


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Report]:
    folder = tmp_path_factory.mktemp("course")
    with pytest.MonkeyPatch.context() as monkeypatch:
        run = run_in(folder, monkeypatch, recipe_with())
    document = document_of(run, Path("recipe.yaml"), fail_on_mismatch=True)
    yield document


def case(report: Report, name: str) -> JudgedCase:
    return next(one for one in report["weight_updates"].cases if one.name == name)


def test_a_matrix_of_releases_has_a_cell_for_what_each_case_shows(report: Report) -> None:
    words = {name: cell.word for name, _, cell in update_cells(report["weight_updates"].cases)}
    of_keep = {
        clear: {
            what: words.get(f"prefix-caching=on/mode=keep, clear_cache={clear}/{what}")
            for what in ("ran", "in_flight", "stale", "continuity")
        }
        for clear in (True, False)
    }
    begun = {"ran": "runs", "in_flight": "completed"}
    assert of_keep[True] == {**begun, "stale": "new weights only", "continuity": "go on where they were"}
    assert of_keep[False] == {**begun, "stale": "OLD KEYS AND VALUES", "continuity": None}
    assert words["prefix-caching=on/mode=abort, clear_cache=True/in_flight"] == "aborted"


@pytest.mark.parametrize("mode", ["keep", "wait", "abort"])
def test_stale_keys_are_found_without_clearing_and_not_found_with_it_or_with_salts(report: Report, mode: str) -> None:
    kept = case(report, f"mode={mode}, clear_cache=False").staleness
    cleared = case(report, f"mode={mode}, clear_cache=True").staleness
    assert kept and kept.verdict == "mismatch" and kept.excess.low > 0.01
    # So do salts of the version, which new requests have and old keys do not.
    salted = case(report, f"mode={mode}, clear_cache=False, salted").staleness
    for clean in (cleared, salted):
        assert clean and clean.verdict == "match" and clean.excess.high < 0.001


def test_requests_are_counted_by_mode(report: Report) -> None:
    ends = {mode: case(report, f"mode={mode}, clear_cache=True").in_flight for mode in ("keep", "wait", "abort")}
    assert (ends["keep"].completed, ends["wait"].completed, ends["abort"].aborted) == (32, 32, 32)
    assert ends["abort"].completed == 0


def test_every_token_in_flight_has_a_lag(report: Report) -> None:
    kept = case(report, "mode=keep, clear_cache=False")
    assert [group.lag for group in kept.lags] == [0, 1]
    assert sum(group.tokens for group in kept.lags) == 32 * 9


def test_the_report_begins_with_the_cheapest_clean_sequence_and_what_others_leave_behind(report: Report) -> None:
    right, stale, *_ = report["weight_updates"].to_use
    assert right == "Right: mode=keep, clear_cache=True on vLLM 0.18.1 (reload_weights)."
    assert "with mode=keep|wait|abort, clear_cache=False. Set clear_cache=True in pause_generation" in stale
    for written in (TEXT.render(report, None), MARKDOWN.render(report, None)):
        assert "float32, prompts numbers" in written.splitlines()[1] + written.splitlines()[2]
        assert written.index(right) < written.index("inference path")


def test_stale_keys_fail_the_audit(report: Report) -> None:
    assert report["exit_code"] == 1
    assert [layer.verdict for layer in report["layers"]] == ["not tested", "mismatch", "not tested"]


def test_every_format_holds_the_cases_the_findings_and_the_answer(report: Report) -> None:
    text = TEXT.render(report, None)
    assert all(one.name in text for one in report["weight_updates"].cases)
    assert all(one.message in text for one in report["findings"])
    end = ANSI.sub("", TEXT.render(report, 120)).rstrip().rsplit("In short\n", 1)[-1].splitlines()
    assert end[0] == f" {report['weight_updates'].to_use[0]}" and len(end) <= 40
    for begins in (" inference path MISMATCH", " error stale-kv: "):
        assert any(line.startswith(begins) for line in end)
    markdown = MARKDOWN.render(report, None)
    assert "`stale-kv`" in markdown and "| engine | sequence |" in markdown
    written = json.loads(JSON.render(report, None))
    assert not list(jsonschema.Draft202012Validator(report_schema()).iter_errors(written))


def test_a_clean_recipe_ends_with_0_and_is_not_run_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recipe = recipe_with(modes=["keep"], clear_cache=[True], salted=False)
    first = run_in(tmp_path, monkeypatch, recipe)
    again = run_in(tmp_path, monkeypatch, recipe)
    assert document_of(first, Path("recipe.yaml"), fail_on_mismatch=True)["exit_code"] == 0
    assert (again.bookkeeping.cells_run, again.bookkeeping.cells_kept) == (0, first.bookkeeping.cells_run)


def test_a_request_that_is_lost_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recipe = recipe_with(modes=["keep"], clear_cache=[True], salted=False)
    variables = {**recipe.environment_variables, "FAKE_AILMENT": "repeat"}
    run = run_in(tmp_path, monkeypatch, recipe.model_copy(update={"environment_variables": variables}))
    document = document_of(run, Path("recipe.yaml"), fail_on_mismatch=True)
    assert "requests-lost" in [one.rule for one in document["findings"]]


@pytest.fixture(scope="module")
def adapters(tmp_path_factory: pytest.TempPathFactory) -> Report:
    ways = ["new number", "same", "in place", "new name"]
    with pytest.MonkeyPatch.context() as monkeypatch:
        recipe = recipe_with(modes=[], salted=False, adapters=ways)
        run = run_in(tmp_path_factory.mktemp("adapters"), monkeypatch, recipe)
    return document_of(run, Path("recipe.yaml"), fail_on_mismatch=True)


def test_adapters_of_one_name_share_keys_and_values_and_those_of_one_number_are_one(adapters: Report) -> None:
    words = {name: cell.word for name, _, cell in update_cells(adapters["weight_updates"].cases)}
    assert {name: word for name, word in words.items() if name.endswith(("/parts", "/stale"))} == {
        "adapter/new number, old name/parts": "all new",
        "adapter/new number, old name/stale": "OLD KEYS AND VALUES",
        "adapter/old name and number/parts": "nothing was updated: the scores fit the old weights",
        "adapter/loaded in place/parts": "all new",
        "adapter/loaded in place/stale": "OLD KEYS AND VALUES",
        "adapter/new name and number/parts": "all new",
        "adapter/new name and number/stale": "new weights only",
    }


def test_of_adapters_the_clean_way_is_the_one_to_use_and_the_others_are_errors(adapters: Report) -> None:
    assert adapters["exit_code"] == 1
    assert adapters["weight_updates"].to_use[0] == "Right: new name and number on vLLM 0.18.1 (adapter)."
    errors = {one.rule: one.message for one in adapters["findings"] if one.severity == "error"}
    assert "requests get the old adapter with old name and number" in errors["part-not-updated"]
    assert "new number, old name; loaded in place" in errors["stale-kv"]
    assert "a lora_name that no other had" in errors["stale-kv"]
    text = TEXT.render(adapters, None)
    assert all(one.name in text for one in adapters["weight_updates"].cases)


def test_the_way_weights_came_is_told_on_a_gpu_as_on_a_cpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = run_in(tmp_path, monkeypatch, recipe_with(modes=["wait"], clear_cache=[True], salted=False))
    on_cuda = replace(run.setup, accelerator=replace(run.setup.accelerator, kind="cuda"))
    for found in (run, replace(run, setup=on_cuda)):
        document = document_of(found, Path("recipe.yaml"), fail_on_mismatch=True)
        assert "NCCL was not tested: no weights came over it" in document["not_seen"]
        (said,) = {case.transport for case in document["weight_updates"].cases}
        assert said == "read from disk; loaded by the engine's reload_weights, which finds the files itself"
        assert said in TEXT.render(document, None)
