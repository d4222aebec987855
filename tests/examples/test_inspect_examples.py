"""Every small config under examples/ is inspected with the commands beside it, and says what is written there."""

from pathlib import Path

import pytest
from transcripts import change

from rlaudit.inspection.read_configs import known_dialects

EXAMPLES = Path(__file__).parents[2] / "examples"
# These have tests of their own: tests/examples/test_case_studies.py and test_recorded_examples.py.
NO_CONFIGS = ("case-studies", "recorded")
CASES = sorted(path.parent for path in EXAMPLES.glob("*/*/command.txt") if path.parts[-3] not in NO_CONFIGS)
VLLM = {"vllm-serve", "vllm-config-file", "vllm-python", "vllm-server-report", "vllm-http", "vllm-mapping"}


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.parent.name}/{case.name}")
def test_an_example_prints_what_stands_beside_it(
    case: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    different = change(case, tmp_path, monkeypatch, capsys, exact=True)
    assert not different, different


def test_every_dialect_that_is_read_has_an_example() -> None:
    folders = {path.parts[-3].replace("-", "_") for path in EXAMPLES.glob("*/*/command.txt")} - {
        "case_studies",
        "own_dialect",
    }
    names = {**dict.fromkeys(VLLM, "vllm"), "vllm-recording": "recorded"}
    dialects = {names.get(name, name) for name in known_dialects()}
    assert folders == {name.replace("-", "_") for name in dialects}


def test_every_config_of_an_example_is_inspected_by_its_command() -> None:
    for case in CASES:
        commands = (case / "command.txt").read_text(encoding="utf-8")
        others = {"README.md", "command.txt", "expected.txt", "requirements.txt", "base.yaml"}
        for file in case.iterdir():
            assert file.name in others or file.name in commands, file


def test_the_examples_together_show_every_severity_and_a_clean_config() -> None:
    printed = "\n".join((case / "expected.txt").read_text(encoding="utf-8") for case in CASES)
    assert all(f": {severity} " in printed for severity in ("error", "warning", "note"))
    assert "0 errors, 0 warnings" in printed or "No findings" in printed or "[exit code 0]" in printed
