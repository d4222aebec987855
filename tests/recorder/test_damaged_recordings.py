"""Recordings that something happened to: every one is read as far as it goes, and what is not read is named."""

import json
from functools import partial
from pathlib import Path

import pytest
from mutated_recordings import mutated
from recorded_worlds import World

import rlaudit.diagnosis.compare_settings
import rlaudit.diagnosis.compare_tables
from rlaudit.cli.app import run
from rlaudit.errors import NotFinished, RlauditError
from rlaudit.recording.recording import open_recording

MUTATIONS = 300
# What a comparison rests on: a line of these that is lost has to be missed.
NEEDED = (
    *("prompt", "request", "sequence", "sampling", "steps", "trainer"),
    *("load", "tensors", "event", "hooks", "totals"),
)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = World(raw=True, prompts=10, samples=2, tokens=12, updates=2, temperature=0.5).write(
        tmp_path_factory.mktemp("whole")
    )
    return next(folder.glob("*.jsonl")).read_bytes().splitlines(keepends=True)


@pytest.fixture(scope="module", autouse=True)
def few_replicates():
    settings = partial(rlaudit.diagnosis.compare_settings.CompareSettings, replicates=20)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rlaudit.diagnosis.compare_settings, "CompareSettings", settings)
        yield


@pytest.fixture(scope="module")
def clean(whole, tmp_path_factory):
    code, report = compared(whole, tmp_path_factory.mktemp("clean"))
    assert code == 1
    return report


def compared(lines: list[bytes], folder: Path):
    folder.mkdir(exist_ok=True)
    (folder / "node-100-0a1b2c3d.jsonl").write_bytes(b"".join(lines))
    out = folder / "report.json"
    out.unlink(missing_ok=True)
    code = run(["compare", str(folder), "--quiet", "--output", f"json:{out}"])
    return code, json.loads(out.read_text()) if out.exists() else None


@pytest.mark.parametrize("block", range(6))
def test_no_mutation_is_a_bug_or_a_silent_verdict(tmp_path, whole, clean, block, capsys):
    kinds = [json.loads(line)["kind"] for line in whole]
    per_block = MUTATIONS // 6
    for seed in range(block * per_block, (block + 1) * per_block):
        lines = mutated(whole, seed)
        code, report = compared(lines, tmp_path / "r")
        assert code in (0, 1, 2, 3), f"seed {seed}: {capsys.readouterr().err}"
        try:
            open_recording(tmp_path / "r")
        except RlauditError as error:
            assert isinstance(error, NotFinished)
            assert report is None
        lost = {kind for line, kind in zip(whole, kinds, strict=True) if kind in NEEDED and line not in lines}
        if report is not None and lost and code in (0, 1):
            said = set(report["not_seen"]) - set(clean["not_seen"])
            sampled = report["comparisons"][0]["tokens"] != clean["comparisons"][0]["tokens"]
            assert said or not sampled, f"seed {seed}: {lost} lost, and nothing is said"


@pytest.mark.parametrize("kind", NEEDED)
def test_a_lost_line_is_missed(tmp_path, whole, clean, kind):
    for place in [place for place, line in enumerate(whole) if json.loads(line)["kind"] == kind][:3]:
        code, report = compared([*whole[:place], *whole[place + 1 :]], tmp_path / "r")
        said = [] if report is None else set(report["not_seen"]) - set(clean["not_seen"])
        assert code in (2, 3) or said, place


@pytest.mark.parametrize("text", [b"\xff\xfe\n", b"{}\n", b'{"kind":1}\n', b"[" * 50_000 + b"\n"])
def test_a_line_that_became_something_else_is_a_fault(tmp_path, whole, text):
    place = next(place for place, line in enumerate(whole) if json.loads(line)["kind"] == "sequence")
    code, _ = compared([*whole[:place], text, *whole[place + 1 :]], tmp_path / "r")
    assert code == 3
