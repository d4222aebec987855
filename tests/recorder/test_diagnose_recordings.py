"""`rlaudit diagnose OLD NEW` of two recordings is the migration; of one, the training alone."""

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from mutated_recordings import mutated
from recorded_worlds import V0, counted, effective, engine, process_of, training

from rlaudit.cli.app import run

WORLD: dict[str, Any] = {"updates": 2, "prompts": 48, "samples": 2, "tokens": 12}


@pytest.fixture(scope="module")
def trainings(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """V0, V1 with raw logprobs as the published migration had it, V1 with processed ones, and one without a trainer."""
    folder = tmp_path_factory.mktemp("trainings")
    training(folder / "old", "0.8.5", V0, **WORLD)
    training(folder / "new", "0.10.2", raw=True, mode="RAW_LOGPROBS", **WORLD)
    training(folder / "mended", "0.10.2", mode="PROCESSED_LOGPROBS", seed=1, **WORLD)
    training(folder / "hotter", "0.10.2", mode="PROCESSED_LOGPROBS", temperature=1.0, **WORLD)
    training(folder / "unscored", "0.10.2", mode="RAW_LOGPROBS", raw=True, trainer=False, updates=1, prompts=2,
             samples=1, tokens=4)  # fmt: skip
    return folder


@pytest.fixture
def diagnose(trainings: Path, monkeypatch: pytest.MonkeyPatch, json_report: Callable[..., Any]) -> Callable[..., Any]:
    """The JSON report of recordings."""
    monkeypatch.chdir(trainings)
    return partial(json_report, "diagnose")


def verdicts(report: Any) -> list[str]:
    return [layer["verdict"] for layer in report["layers"]]


def alone(report: Any) -> dict[str, Any]:
    return {one["path"]: one["layers"] for one in report["trainings"]["recordings"]}


def differing(report: Any) -> dict[str, Any]:
    return {one["name"]: one for one in report["trainings"]["differences"]}


def test_the_published_migration_is_raw_logprobs_of_the_new_engine_alone(diagnose: Any) -> None:
    report = diagnose("old", "new")
    semantic = report["layers"][0]
    assert (semantic["verdict"], semantic["causes"], report["exit_code"]) == ("mismatch", ["raw-logprobs"], 1)
    assert alone(report)["old"]["semantic"] == "nothing found" and alone(report)["new"]["semantic"] == "mismatch"
    assert semantic["falsifier"] and "processed_logprobs" in semantic["next"] and "rlaudit ablate" in semantic["next"]
    assert verdicts(report)[1:] == ["not tested", "not tested"]
    # What differs, as it ran and as it was written.
    found = differing(report)
    assert (found["vllm"]["old"], found["vllm"]["new"]) == ("0.8.5", "0.10.2")
    assert (found["engine"]["old"], found["engine"]["new"]) == ("V0", "V1")
    assert (found["logprobs_semantics"]["old"], found["logprobs_semantics"]["new"]) == ("processed", "raw")
    assert found["distributed_executor_backend"]["old_written"] == "external_launcher"
    assert (found["enable_prefix_caching"]["old"], found["enable_prefix_caching"]["new"]) == (False, True)
    assert "torch" not in found and report["trainings"]["same"] == ["sampling", "update"]
    assert any("logprobs_semantics" in line for line in report["layers"][0]["evidence"])
    assert any("enable_prefix_caching" in line for line in report["layers"][1]["evidence"])


def test_with_processed_logprobs_nothing_is_found(diagnose: Any) -> None:
    report = diagnose("old", "mended")
    assert verdicts(report)[:2] == ["nothing found", "match"] and report["layers"][0]["cause"] is None


def test_sampling_parameters_that_requests_brought_are_compared(diagnose: Any) -> None:
    report = diagnose("mended", "hotter")
    temperature = differing(report)["temperature"]
    assert (temperature["old"], temperature["new"], temperature["layer"]) == (0.7, 1.0, "semantic")


def test_how_weights_were_updated_is_compared(diagnose: Any, trainings: Path) -> None:
    for name, result in (("resets", True), ("refuses", False)):
        process = process_of(trainings / name)
        engine(process, effective())
        process.sampling()
        for _ in range(3):
            process.request([1, 2])
            process.step(4)
            process.load()
            process.call("vllm.v1.engine.core:EngineCore.reset_prefix_cache", result=result)
        process.write()
    found = differing(diagnose("resets", "refuses"))["resets_prefix_cache"]
    assert (found["old"], found["new"], found["layer"]) == (True, False, "inference path")


def test_one_recording_is_judged_alone_with_its_configuration(diagnose: Any) -> None:
    report = diagnose("new")
    assert report["layers"][0]["causes"] == ["raw-logprobs"] and report["trainings"]["differences"] == []
    assert any("raw-logprobs" in line for line in report["layers"][0]["evidence"])
    assert [one["role"] for one in report["trainings"]["recordings"]] == ["alone"]
    assert any("weight updates by load_weights" in line for line in report["trainings"]["recordings"][0]["seen"])


def test_without_tokens_that_can_be_judged_no_layer_matches(diagnose: Any) -> None:
    report = diagnose("old", "unscored")
    assert report["exit_code"] == 3 and "match" not in verdicts(report)
    assert any("unscored: its tokens are not judged" in line for line in report["not_seen"])
    assert differing(report)["engine"]["new"] == "V1"


def test_an_old_recording_whose_tokens_cannot_be_judged_leaves_the_new_one_alone(diagnose: Any) -> None:
    report = diagnose("unscored", "new")
    assert report["layers"][0]["causes"] == ["raw-logprobs"]
    assert any("unscored: its tokens are not judged" in line for line in report["not_seen"])


def test_a_recording_of_an_unknown_release_is_judged_by_its_tokens(diagnose: Any, trainings: Path) -> None:
    training(trainings / "built", "dev", raw=True, mode="RAW_LOGPROBS", **WORLD)
    report = diagnose("old", "built")
    assert report["layers"][0]["causes"] == ["raw-logprobs"] and report["trainings"]["differences"] == []
    assert any("built: its configuration is not judged" in line for line in report["not_seen"])


def test_what_is_missing_in_each_recording_is_named_beside_its_verdict(diagnose: Any, trainings: Path) -> None:
    training(trainings / "killed", "0.10.2", raw=True, mode="RAW_LOGPROBS", **WORLD)
    (file,) = (trainings / "killed").glob("*.jsonl")
    file.write_bytes(file.read_bytes()[:-40])
    report = diagnose("old", "killed")
    assert report["layers"][0]["verdict"] == "mismatch"
    assert any(line.startswith("killed: ") and "no orderly end" in line for line in report["not_seen"])
    # Once, though the inspection of the engines lacks it as well.
    assert len([line for line in report["not_seen"] if "no orderly end" in line]) == 1
    assert any("no orderly end" in line for line in report["trainings"]["recordings"][1]["missing"])


def test_three_recordings_are_refused(
    trainings: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(trainings)
    assert run(["diagnose", "old", "new", "mended"]) == 2
    assert "3 recordings" in capsys.readouterr().err


def test_recordings_stand_beside_other_reports(diagnose: Any, capsys: pytest.CaptureFixture[str]) -> None:
    run(["compare", "new", "--output", "json:compare.json", "--quiet"])
    report = diagnose("old", "new", "compare.json")
    assert [one["path"] for one in report["sources"]] == ["new", "new", "compare.json"]
    assert "compare.json agrees" in report["layers"][0]["because"]


def test_every_format_draws_a_migration(trainings: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(trainings)
    forms = ("text", "markdown", "html", "concise", "sarif", "junit", "github")
    run(["diagnose", "old", "new", "--output=json:drawn.json", *(f"--output={form}:drawn.{form}" for form in forms)])
    run(["report", "drawn.json", *(f"--output={form}:again.{form}" for form in forms)])
    for form in forms:
        drawn = Path(f"drawn.{form}").read_text()
        assert "raw-logprobs" in drawn
        assert Path(f"again.{form}").read_text() == drawn, form


def test_a_migration_reads_in_order(
    trainings: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(trainings)
    run(["diagnose", "old", "new"])
    text = capsys.readouterr().out
    assert text.startswith("Migration old (vLLM 0.8.5) -> new (vLLM 0.10.2)\n")
    titles = ["1. semantic", "Each recording by itself", "Releases", "Configuration of the engine", "Not seen"]
    assert sorted(titles, key=text.index) == titles


@pytest.mark.parametrize("seed", range(12))
def test_a_damaged_recording_never_ends_in_a_bug_nor_in_a_verdict_that_hides_it(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    training(Path("run"), "0.18.1", updates=2, prompts=4, samples=2, tokens=6)
    (file,) = Path("run").glob("*.jsonl")
    file.write_bytes(b"".join(mutated(file.read_bytes().splitlines(keepends=True), seed)))
    for command in (["inspect", "run"], ["diagnose", "run"], ["diagnose", "run", "run"]):
        code = run([*command, "--output", "json"])
        written = capsys.readouterr().out
        assert code in {0, 1, 2, 3}
        if written:
            report = json.loads(written)
            judged = any(layer["verdict"] != "not tested" for layer in report["layers"])
            assert report["not_seen"] or not judged


def test_an_engine_that_did_not_start_has_no_tokens_and_is_said_to(diagnose: Any, trainings: Path) -> None:
    process = process_of(trainings / "failed", "0.10.2")
    engine(process, None, "ValueError: no")
    counted(process, {})
    report = diagnose("old", "failed")
    assert report["exit_code"] == 3
    assert any("did not start: ValueError: no" in line for line in report["trainings"]["recordings"][1]["seen"])
