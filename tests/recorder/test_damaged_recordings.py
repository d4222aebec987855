"""Recordings that something happened to: every one is read as far as it goes, and what is not read is named."""

import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from mutated_recordings import mutated
from recorded_worlds import World, training
from test_public_page import lived
from test_redaction import packed
from written_recording import lines_of, put_lines

import rlaudit.diagnosis.compare_settings
from rlaudit.cli.app import run
from rlaudit.errors import NotFinished
from rlaudit.recording.recording import open_recording

# What a comparison rests on: a line of these that is lost has to be missed.
NEEDED = (
    *("prompt", "request", "sequence", "sampling", "steps", "trainer"),
    *("load", "tensors", "event", "hooks", "totals"),
)


@pytest.fixture(scope="module", autouse=True)
def few_replicates() -> Iterator[None]:
    settings = partial(rlaudit.diagnosis.compare_settings.CompareSettings, replicates=20)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rlaudit.diagnosis.compare_settings, "CompareSettings", settings)
        yield


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> list[bytes]:
    world = World(raw=True, prompts=10, samples=2, tokens=12, updates=2, temperature=0.5)
    return lines_of(world.write(tmp_path_factory.mktemp("whole") / "r"))


@pytest.fixture(scope="module")
def clean(whole: list[bytes], tmp_path_factory: pytest.TempPathFactory) -> Any:
    code, report = compared(whole, tmp_path_factory.mktemp("clean"))
    assert code == 1
    return report


def compared(lines: list[bytes], folder: Path) -> tuple[int, Any]:
    out = put_lines(folder, lines) / "report.json"
    out.unlink(missing_ok=True)
    code = run(["compare", str(folder), "--quiet", "--output", f"json:{out}"])
    return code, json.loads(out.read_text()) if out.exists() else None


def test_no_mutation_is_a_bug_or_a_silent_verdict(
    tmp_path: Path, whole: list[bytes], clean: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    kinds = [json.loads(line)["kind"] for line in whole]
    for seed in range(100):
        lines = mutated(whole, seed)
        code, report = compared(lines, tmp_path / "r")
        assert code in (0, 1, 2, 3), f"seed {seed}: {capsys.readouterr().err}"
        if report is None:
            with suppress(NotFinished):
                open_recording(tmp_path / "r")
        lost = {kind for line, kind in zip(whole, kinds, strict=True) if kind in NEEDED and line not in lines}
        if report is not None and lost and code in (0, 1):
            said = set(report["not_seen"]) - set(clean["not_seen"])
            sampled = report["comparisons"][0]["tokens"] != clean["comparisons"][0]["tokens"]
            assert said or not sampled, f"seed {seed}: {lost} lost, and nothing is said"


@pytest.mark.parametrize("kind", NEEDED)
def test_a_lost_line_is_missed(tmp_path: Path, whole: list[bytes], clean: Any, kind: str) -> None:
    for place in [place for place, line in enumerate(whole) if json.loads(line)["kind"] == kind][:3]:
        code, report = compared([*whole[:place], *whole[place + 1 :]], tmp_path / "r")
        said = [] if report is None else set(report["not_seen"]) - set(clean["not_seen"])
        assert code in (2, 3) or said, place


@pytest.mark.parametrize("text", [b"\xff\xfe\n", b"{}\n", b'{"kind":1}\n', b"[" * 50_000 + b"\n"])
def test_a_line_that_became_something_else_is_a_fault(tmp_path: Path, whole: list[bytes], text: bytes) -> None:
    place = next(place for place, line in enumerate(whole) if json.loads(line)["kind"] == "sequence")
    assert compared([*whole[:place], text, *whole[place + 1 :]], tmp_path / "r")[0] == 3


def of_trl(folder: Path) -> Path:
    return training(folder, "0.18.1", updates=2, prompts=4, samples=2, tokens=6)


# What writes a recording, how many seeds damage it, the command, and its exit codes.
OTHERS: dict[str, tuple[Callable[[Path], Path], int, str, set[int]]] = {
    "inspect": (of_trl, 12, "inspect r", {0, 1, 2, 3}),
    "diagnose one": (of_trl, 6, "diagnose r", {0, 1, 2, 3}),
    "diagnose two": (of_trl, 6, "diagnose r r", {0, 1, 2, 3}),
    "the page": (lived, 40, "inspect r --output html:page.html --exit-zero", {0, 2, 3}),
    "a copy": (packed, 10, "record --redacted-copy r copy-{seed}", {0, 2, 3}),
}


@pytest.mark.parametrize("name", OTHERS)
def test_no_damage_is_a_bug_of_another_command_or_hidden_by_its_verdict(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    write, seeds, command, codes = OTHERS[name]
    lines = lines_of(write(Path("whole")))
    for seed in range(seeds):
        put_lines(Path("r"), mutated(lines, seed))
        Path("report.json").unlink(missing_ok=True)
        with_report = [] if name == "a copy" else ["--output", "json:report.json"]
        code = run([*command.format(seed=seed).split(), *with_report])
        assert code in codes, f"seed {seed}: {capsys.readouterr().err}"
        if name not in ("the page", "a copy") and Path("report.json").exists():
            report = json.loads(Path("report.json").read_text())
            judged = any(layer["verdict"] != "not tested" for layer in report["layers"])
            assert report["not_seen"] or not judged, seed
