"""The recorded trainings under examples/recorded, read with the commands beside them."""

import json
import re
from pathlib import Path

import pytest
from transcripts import change

RECORDED = Path(__file__).parents[2] / "examples" / "recorded"
CASES = sorted(path.parent for path in RECORDED.glob("*/command.txt"))
MIGRATION = RECORDED / "trl-0.8.5-to-0.10.2"
# Where a machine keeps what is its own.
OWN = re.compile(r"/(tmp|root|home|work|mnt|var|Users)\b")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_recorded_training_prints_what_stands_beside_it(
    case: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    different = change(case, tmp_path, monkeypatch, capsys)
    assert not different, different


def test_raw_logprobs_are_named_wherever_the_new_engine_is_read_and_nothing_else() -> None:
    commands = dict(re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", _expected(MIGRATION), re.MULTILINE))
    assert len(commands) == len((MIGRATION / "command.txt").read_text(encoding="utf-8").splitlines())
    for command, printed in commands.items():
        mismatches = re.findall(r"^\d\. .*MISMATCH.*$", printed, re.MULTILINE)
        new = " v1" in command and not command.startswith("rlaudit inspect")
        assert mismatches == (["1. semantic  MISMATCH: raw-logprobs"] if new else []), command


def test_a_recording_holds_no_path_and_no_name_of_the_machine_that_made_it() -> None:
    for file in filter(Path.is_file, RECORDED.rglob("*")):
        text = file.read_text(encoding="utf-8")
        assert not OWN.search(text), (file, OWN.search(text))
        if file.suffix == ".jsonl":
            assert file.name.startswith("host-") and json.loads(text.splitlines()[0])["host"] == "host"


def test_the_recordings_are_small() -> None:
    sizes = [path.stat().st_size for path in RECORDED.rglob("*.jsonl")]
    assert sizes and sum(sizes) <= 1_500_000


def _expected(case: Path) -> str:
    return (case / "expected.txt").read_text(encoding="utf-8")
