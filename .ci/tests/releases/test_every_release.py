"""A recipe that names many releases: each is measured by itself, on stand-ins, and the report says what moves where."""

import copy
import io
import json
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import pytest
import yaml
from laboratories import V0, V1, V1_WITH_FLOAT32_HEAD, Laboratory, Run, interpreter_with_fakes
from pydantic import TypeAdapter
from releases import every_release
from releases.__main__ import main

from rlaudit.cli.app import run
from rlaudit.engines.environments.environment_spec import EnvironmentSpec
from rlaudit.engines.hardware.accelerator import Accelerator
from rlaudit.errors import RlauditError
from rlaudit.report.parts.releases import Releases
from rlaudit.report.rendering.release_spans import spans_of_property as spans

MISSING = "0.9.2"  # its stand-in loads V0, which this release does not on a CPU
RELEASES = [V0, MISSING, V1, V1_WITH_FLOAT32_HEAD]
BLOCKS = [
    {"name": "plain", "factors": {"logprobs-mode": "processed"}, "parity": ["logprobs-mode"], "repeats": 0},
    {"name": "filters", "candidate": {"levels": {"logprobs-mode": "processed"}}, "repeats": 0},
]


def releases(measured: Run) -> Releases:
    return TypeAdapter(Releases).validate_python(measured.report["releases"])


def write_recipe(laboratory: Laboratory, versions: Any, name: str) -> Path:
    path = laboratory.recipe(*BLOCKS, name=name)
    path.write_text(yaml.safe_dump({**yaml.safe_load(path.read_text()), "versions": versions}))
    return path


def measure(laboratory: Laboratory, recipe: Path, *words: str, folder: Path | None = None) -> Run:
    """Run the command line in this process."""
    folder = folder or laboratory.run_dir
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        try:
            code = main([str(recipe), "--cpu", "--run-dir", str(folder), *words])
        except RlauditError as error:
            print(error, file=sys.stderr)
            code = error.exit_code
    written = folder / "report.json"
    return Run(
        code, out.getvalue(), err.getvalue(), folder, json.loads(written.read_text()) if written.exists() else {}
    )


@pytest.fixture(scope="module")
def given(shared_laboratory: Laboratory) -> list[str]:
    interpreters = shared_laboratory.folder / "of-each-release"
    commands = [
        f"{release}={interpreter_with_fakes(interpreters / release, EnvironmentSpec('vllm', release, 'cpu'))}"
        for release in RELEASES
    ]
    return [word for command in commands for word in ("--python", command)]


@pytest.fixture(scope="module")
def measured(shared_laboratory: Laboratory, given: list[str]) -> Run:
    return measure(shared_laboratory, write_recipe(shared_laboratory, RELEASES, "each"), *given)


def test_a_release_that_cannot_be_had_does_not_stop_the_others_and_is_not_finished(measured: Run) -> None:
    assert measured.exit_code == 3, measured.stderr
    found = {one["version"]: one for one in measured.report["releases"]["measured"]}
    assert list(found) == RELEASES
    assert [version for version, one in found.items() if not one["cells"]] == [MISSING]
    assert found[MISSING]["why"]


def test_where_a_property_moves_is_known_and_printed(measured: Run) -> None:
    document = releases(measured)
    (v0, v1) = spans(document.measured, "plain/candidate/logprobs")
    assert (v0.versions, v0.cell.word) == ([V0], "processed")
    assert (v1.versions, v1.cell.word) == ([V1, V1_WITH_FLOAT32_HEAD], "raw")
    far = spans(document.measured, "plain/candidate/mean_ratio_minus_one")
    assert [one.versions[0] for one in far] == [V0, V1]
    assert f"{V1} to {V1_WITH_FLOAT32_HEAD}" in measured.stdout


def test_a_release_stands_beside_the_one_before_on_the_tokens_that_both_drew(measured: Run) -> None:
    document = releases(measured)
    (seeds,) = spans(document.measured, "plain/candidate/seeds")
    assert seeds.versions == [V0, V1, V1_WITH_FLOAT32_HEAD]  # the stand-ins have one sampler
    moved = {span.versions[0]: span.cell for span in spans(document.measured, "plain/candidate/moved")}
    assert list(moved) == [V1_WITH_FLOAT32_HEAD]  # the release before V1 could not be had


def test_the_page_draws_a_field_for_each_release(shared_laboratory: Laboratory, measured: Run) -> None:
    path = shared_laboratory.folder / "each.html"
    assert run(["report", str(measured.folder), "--output", f"html:{path}"]) == 3
    page = path.read_text()
    assert "What moves, release by release" in page and "plain, candidate: logprobs" in page
    assert all(release in page for release in RELEASES)


def test_a_level_that_a_release_has_no_argument_for_is_left_out_of_its_candidate(measured: Run) -> None:
    found = spans(releases(measured).measured, "filters/candidate/logprobs")
    assert [(one.versions, one.cell.word) for one in found] == [([V0, V1, V1_WITH_FLOAT32_HEAD], "processed")]


def test_a_finished_release_is_not_run_again(shared_laboratory: Laboratory, measured: Run, given: list[str]) -> None:
    again = measure(shared_laboratory, shared_laboratory.folder / "each.yaml", *given)
    assert again.report["releases"]["properties"] == measured.report["releases"]["properties"]
    assert " ok " not in again.stderr


def test_what_another_machine_measured_of_the_same_recipe_is_taken_over(
    shared_laboratory: Laboratory, measured: Run, given: list[str], tmp_path: Path
) -> None:
    document = copy.deepcopy(measured.report)
    for one in document["releases"]["measured"]:
        one["on"] = "cpu, another processor"
    (tmp_path / "report.json").write_text(json.dumps(document))

    def here(recipe: Path, *more: str) -> Releases:
        measure(shared_laboratory, recipe, *more, *given, folder=tmp_path)
        return TypeAdapter(Releases).validate_python(json.loads((tmp_path / "report.json").read_text())["releases"])

    fewer = write_recipe(shared_laboratory, [V0, V1], "fewer")
    found = here(fewer)
    assert {one.on for one in found.measured} == {"cpu, another processor"}
    assert [one.cells for one in found.measured] == [
        one.cells for one in releases(measured).measured if one.version in (V0, V1)
    ]
    assert not (tmp_path / V0).exists()

    asked_otherwise = here(fewer, "--samples", "1")
    assert {one.on for one in asked_otherwise.measured}.isdisjoint({"cpu, another processor"})
    assert (tmp_path / V0).exists()


def test_the_report_grows_with_each_release_and_keeps_what_others_measured(
    shared_laboratory: Laboratory, measured: Run, given: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    document = copy.deepcopy(measured.report)
    document["releases"]["measured"] = [one for one in document["releases"]["measured"] if one["version"] != V0]
    (tmp_path / "report.json").write_text(json.dumps(document))
    seen: list[list[str]] = []

    def write(path: Path, content: bytes) -> None:
        written = json.loads(content)["releases"]["measured"]
        seen.append([one["version"] for one in written if one["cells"]])
        path.write_bytes(content)

    monkeypatch.setattr(every_release, "write_atomically", write)
    recipe = write_recipe(shared_laboratory, [V0, V1, V1_WITH_FLOAT32_HEAD], "growing")
    measure(shared_laboratory, recipe, *given, folder=tmp_path)
    assert seen == [[V0, V1, V1_WITH_FLOAT32_HEAD]] * 3


@pytest.mark.parametrize(
    ("was_there", "keep", "removed"),
    [(False, False, ["vllm-0.18.1-cpu"]), (False, True, []), (True, False, [])],
    ids=["built for it", "built and kept", "there before"],
)
def test_an_environment_that_was_built_for_a_release_goes_with_it(
    was_there: bool, keep: bool, removed: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = iter([object() if was_there else None, object()])
    gone: list[str] = []
    monkeypatch.setattr(every_release, "locate", lambda spec: next(found))
    monkeypatch.setattr(every_release, "remove", gone.append)
    with every_release._removed_afterwards(V1, Accelerator("cpu", "a processor", (), "", 2, 24_000), keep):
        assert gone == []
    assert gone == removed


@pytest.mark.parametrize(
    ("versions", "complaint"),
    [("0.18.1..new", "OLDEST..NEWEST"), ("0.18.2..0.18.9", "no release"), ([], "Give --versions")],
)
def test_what_cannot_be_measured_is_refused(shared_laboratory: Laboratory, versions: Any, complaint: str) -> None:
    ran = measure(shared_laboratory, write_recipe(shared_laboratory, versions, "refused-releases"))
    assert ran.exit_code == 2 and complaint in ran.stderr


def test_a_dry_run_says_how_many_releases_there_are(shared_laboratory: Laboratory) -> None:
    planned = write_recipe(shared_laboratory, "0.8.5..0.18.1", "planned-releases")
    ran = measure(shared_laboratory, planned, "--dry-run")
    assert ran.exit_code == 0 and ran.stderr.startswith("23 releases: 0.8.5, ")
    ran = measure(shared_laboratory, planned, "--versions", f"{V1},{V0}", "--dry-run")
    assert ran.stderr.startswith(f"2 releases: {V0}, {V1}\n")
    assert f"vLLM {V1}" in ran.stdout and V0 not in ran.stdout
