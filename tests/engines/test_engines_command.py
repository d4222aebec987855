import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from rlaudit.cli.engines import app
from rlaudit.errors import UsageError


@pytest.fixture(autouse=True)
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


def test_an_empty_list_says_what_to_do_on_stderr_and_nothing_on_stdout() -> None:
    result = CliRunner().invoke(app, ["list"])
    assert result.exit_code == 0
    assert result.stdout == ""
    assert "rlaudit engines build VERSION" in result.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["remove"], "nothing to remove was named"),
        (["remove", "0.18.1"], "no engine environment '0.18.1'"),
        (["doctor"], "no engine environment is built"),
        (["build", "0.6.0", "--cpu"], "too old"),
        (["doctor", "--python", sys.executable], "holds no vLLM"),
    ],
)
def test_what_does_not_exist_is_a_usage_error(words: list[str], message: str) -> None:
    result = CliRunner().invoke(app, words)
    assert isinstance(result.exception, UsageError)
    assert message in str(result.exception)
