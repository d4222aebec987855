"""The evidence runs if what judges has changed since it was found, says what, and fails if a part does not hold."""

import json
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from evidence import __main__ as evidence
from evidence import judging, parts
from evidence.parts import Found


@pytest.fixture
def record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    path = tmp_path / "found.json"
    monkeypatch.setattr(evidence, "RECORD", path)
    packages = dict.fromkeys(judging.JUDGING, "same")
    monkeypatch.setattr(evidence, "digests", lambda: dict(packages))
    path.write_text(json.dumps({"date": "2026-11-28", "packages": packages}))
    yield path


def change(record: Path, package: str) -> None:
    document = json.loads(record.read_text())
    document["packages"][package] = "another"
    record.write_text(json.dumps(document))


def found(monkeypatch: pytest.MonkeyPatch, *, holds: bool) -> None:
    monkeypatch.setattr(evidence, "run_parts", lambda jobs: {"one": {"holds": holds, "figures": ["1 of 2"]}})


def test_it_stands_while_nothing_that_judges_changed(record: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert evidence.main([]) == 0
    assert capsys.readouterr().out == ("the evidence of 2026-11-28 stands: no package that judges has changed since\n")


@pytest.mark.parametrize(("holds", "code"), [(True, 0), (False, 1)])
def test_what_changed_is_named_and_only_a_part_that_does_not_hold_fails(
    record: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], holds: bool, code: int
) -> None:
    change(record, "rlaudit/meaning")
    before = record.read_text()
    found(monkeypatch, holds=holds)
    assert evidence.main([]) == code
    assert "changed since the evidence of 2026-11-28: rlaudit/meaning\n" in capsys.readouterr().out
    assert record.read_text() == before


@pytest.mark.parametrize("holds", [True, False])
def test_a_record_is_written_only_if_all_parts_hold(record: Path, monkeypatch: pytest.MonkeyPatch, holds: bool) -> None:
    change(record, "rlaudit/tokens")
    found(monkeypatch, holds=holds)
    assert evidence.main(["--record"]) == (0 if holds else 1)
    assert (json.loads(record.read_text())["packages"]["rlaudit/tokens"] == "same") == holds


def test_a_digest_changes_with_the_bytes_of_a_file_and_with_its_name(tmp_path: Path) -> None:
    for package in judging.JUDGING:
        (tmp_path / package).mkdir(parents=True)
    (tmp_path / "rlaudit" / "statistics" / "metrics").mkdir()
    file = tmp_path / "rlaudit" / "statistics" / "metrics" / "k9.py"
    seen = [judging.digests(tmp_path)]
    steps = (lambda: file.write_text("1"), lambda: file.write_text("2"), lambda: file.rename(file.with_name("k8.py")))
    for step in steps:
        step()
        seen.append(judging.digests(tmp_path))
    assert len({one["rlaudit/statistics"] for one in seen}) == 4
    assert len({one["rlaudit/causes"] for one in seen}) == 1


def test_the_packages_that_judge_are_packages_of_the_house() -> None:
    linter = tomllib.loads((judging.ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
    (layers,) = (one["layers"] for one in linter["contracts"] if "through the house" in one["name"])
    named = {package.strip().replace(".", "/") for layer in layers for package in layer.split("|")}
    assert {package for package in judging.JUDGING if package.startswith("rlaudit/")} <= named


def test_a_part_whose_bound_is_missed_does_not_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = ("64 x 1", "equal", 1.0, ("bos",), "mismatch")
    monkeypatch.setattr(parts.honest_nulls, "with_a_cause", lambda number, seed: wrong)
    assert parts.honest_tables(10) == Found(False, ["honest tables that get a cause: 10 of 10"])


def test_planted_causes_that_are_not_named_do_not_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    from evidence.selftest.trial import Trial

    monkeypatch.setattr(
        parts, "run_trials", lambda generator, labels, *_: [Trial(label, frozenset(), True, "") for label in labels]
    )
    found = parts.planted_faults(1)
    assert not found.holds and found.figures[0].startswith("recall at the top dose: 0 of ")
