"""Recordings that something happened to: every one is read as far as it goes, and what is not read is named."""

import json
import random
from functools import partial
from pathlib import Path

import pytest
from recorded_worlds import World

import rlaudit.diagnosis.compare_settings
import rlaudit.diagnosis.compare_tables
from rlaudit.cli.app import run
from rlaudit.errors import NotFinished, RlauditError
from rlaudit.recorder.recording import open_recording

MUTATIONS = 300
# What a comparison rests on: a line of these that is lost has to be missed.
NEEDED = (
    *("prompt", "request", "sequence", "sampling", "steps", "trainer"),
    *("load", "tensors", "event", "hooks", "totals"),
)
STRANGE = (
    *(None, True, -1, 0, 3, 2**31, 2**63, 10**400, 1e308, float("nan"), float("inf")),
    *("", "A", "AAAA", "/w==", "\u0000", "rlaudit-recording/9"),
    *([], [[]], ["x"], [[0, 1 << 40, 1 << 40]], {}, {"number": "x", "trainable": 7}),
)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = World(raw=True, prompts=10, samples=2, tokens=12, updates=2, temperature=0.5).write(
        tmp_path_factory.mktemp("whole")
    )
    return next(folder.glob("*.jsonl")).read_bytes().splitlines(keepends=True)


@pytest.fixture
def few_replicates(monkeypatch):
    settings = partial(rlaudit.diagnosis.compare_settings.CompareSettings, replicates=20)
    monkeypatch.setattr(rlaudit.diagnosis.compare_settings, "CompareSettings", settings)


def compared(lines: list[bytes], folder: Path):
    folder.mkdir(exist_ok=True)
    (folder / "node-100-0a1b2c3d.jsonl").write_bytes(b"".join(lines))
    out = folder / "report.json"
    out.unlink(missing_ok=True)
    code = run(["compare", str(folder), "--quiet", "--output", f"json:{out}"])
    return code, json.loads(out.read_text()) if out.exists() else None


def mutated(lines: list[bytes], seed: int) -> list[bytes]:
    """One to three things that happen to files, or that somebody does to them."""
    draw = random.Random(seed)
    changed = list(lines)
    for _ in range(draw.randint(1, 3)):
        place = draw.randrange(len(changed))
        line = changed[place]
        kind = draw.choice(("field", "field", "field", "bytes", "cut", "end", "twice", "gone", "moved", "joined"))
        if kind == "field":
            changed[place] = with_a_strange_field(line, draw)
        elif kind == "bytes":
            at = draw.randrange(len(line))
            changed[place] = line[:at] + draw.randbytes(draw.randint(1, 40)) + line[at + draw.randint(0, 40) :]
        elif kind == "cut":
            changed[place] = line[: draw.randrange(len(line))] + b"\n" * draw.randint(0, 1)
        elif kind == "end":
            whole = b"".join(changed)
            changed = whole[: draw.randrange(len(whole) // 2, len(whole))].splitlines(keepends=True)
        elif kind == "twice":
            changed.insert(draw.randrange(len(changed)), line)
        elif kind == "gone":
            del changed[place]
        elif kind == "moved":
            changed.insert(draw.randrange(len(changed)), changed.pop(place))
        else:
            changed[place] = line.rstrip(b"\n")
    return changed


def with_a_strange_field(line: bytes, draw: random.Random) -> bytes:
    try:
        record = json.loads(line)
    except ValueError:
        return line
    if not isinstance(record, dict) or not record:
        return line
    name = draw.choice(sorted(record))
    if draw.random() < 0.2:
        del record[name]
    elif isinstance(record[name], str) and draw.random() < 0.3:
        record[name] = record[name][: draw.randrange(len(record[name]) + 1)]
    else:
        record[name] = draw.choice(STRANGE)
    return json.dumps(record).encode() + b"\n"


@pytest.mark.parametrize("block", range(6))
def test_no_mutation_is_a_bug_or_a_silent_verdict(tmp_path, whole, few_replicates, block, capsys):
    code, clean = compared(whole, tmp_path / "clean")
    assert code == 1
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
def test_a_lost_line_is_missed(tmp_path, whole, few_replicates, kind):
    _, clean = compared(whole, tmp_path / "r")
    for place in [place for place, line in enumerate(whole) if json.loads(line)["kind"] == kind][:3]:
        code, report = compared([*whole[:place], *whole[place + 1 :]], tmp_path / "r")
        said = [] if report is None else set(report["not_seen"]) - set(clean["not_seen"])
        assert code in (2, 3) or said, place


@pytest.mark.parametrize("kind", NEEDED)
@pytest.mark.parametrize("text", [b"\xff\xfe\n", b"{}\n", b'{"kind":1}\n', b"[" * 50_000 + b"\n"])
def test_a_line_that_became_something_else_is_a_fault(tmp_path, whole, few_replicates, kind, text):
    place = next(place for place, line in enumerate(whole) if json.loads(line)["kind"] == kind)
    code, _ = compared([*whole[:place], text, *whole[place + 1 :]], tmp_path / "r")
    assert code == 3
