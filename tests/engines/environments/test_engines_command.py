import sys
from pathlib import Path

import pytest
from fake_nvml import FakeGpu, FakeNvml
from typer.testing import CliRunner

from rlaudit.cli.engines import app
from rlaudit.engines.environments.environment_spec import Environment, EnvironmentSpec
from rlaudit.errors import NotFinished, UsageError


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
        (["doctor", "0.26.0", "--python", f"0.26.0={sys.executable}"], "holds no vLLM"),
        (["doctor", "0.26.0", "--python", f"0.18.1={sys.executable}"], "no arm runs vLLM 0.18.1"),
    ],
)
def test_what_does_not_exist_is_a_usage_error(words: list[str], message: str) -> None:
    result = CliRunner().invoke(app, words)
    assert isinstance(result.exception, UsageError)
    assert message in str(result.exception)


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch) -> list[EnvironmentSpec]:
    """What is asked to be built, on a machine that hides its GPUs."""
    asked: list[EnvironmentSpec] = []

    def ensure(spec: EnvironmentSpec, report: object) -> Environment:
        asked.append(spec)
        return Environment(spec, Path("/e"), ("/e/bin/python",))

    monkeypatch.setattr("rlaudit.engines.environments.environment.ensure", ensure)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    FakeNvml(FakeGpu("GPU-a")).install(monkeypatch)
    return asked


def test_what_to_build_is_not_guessed_where_the_gpus_are_hidden(built: list[EnvironmentSpec]) -> None:
    result = CliRunner().invoke(app, ["build", "0.18.1"])
    assert isinstance(result.exception, NotFinished)
    assert "--cpu" in str(result.exception.hint)
    assert not built


@pytest.mark.parametrize("build", ["cpu", "cuda"])
def test_what_is_named_is_built_where_the_gpus_are_hidden(built: list[EnvironmentSpec], build: str) -> None:
    assert CliRunner().invoke(app, ["build", "0.18.1", f"--{build}"]).exit_code == 0
    assert [spec.build for spec in built] == [build]
