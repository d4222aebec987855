"""A command's JSON report, as the tests of the readers ask for it."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from rlaudit.cli.app import run


@pytest.fixture
def json_report(capsys: pytest.CaptureFixture[str]) -> Callable[..., Any]:
    """Run a command line, and return its JSON report, which holds the exit code of the command."""

    def report(*words: str) -> Any:
        code = run([*words, "--output", "json"])
        found = json.loads(capsys.readouterr().out)
        assert found["exit_code"] == code
        return found

    return report
