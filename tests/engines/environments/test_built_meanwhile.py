"""Engines are installed by a process of their own while the model is made."""

import signal
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

import pytest
from laboratories import ONE_FACTOR, V0, V1, Laboratory

from rlaudit.engines.environments.built_meanwhile import built_meanwhile
from rlaudit.engines.environments.environment_spec import EnvironmentSpec, engine_spec
from rlaudit.errors import NotFinished

BUILDER = """#!{python}
import sys, time
from pathlib import Path
began, ended = Path(r"{folder}") / "began", Path(r"{folder}") / "ended"
began.with_suffix(".part").write_text(" ".join(sys.argv[1:]))
began.with_suffix(".part").rename(began)
try:
    time.sleep({seconds})
except KeyboardInterrupt:
    ended.write_text("interrupted")
else:
    ended.write_text("by itself")
"""


@pytest.fixture
def builder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    script = tmp_path / "builder"
    script.write_text(BUILDER.format(python=sys.executable, folder=tmp_path, seconds=60))
    script.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(script))
    return tmp_path


def until(path: Path) -> str:
    deadline = time.monotonic() + 60
    while not path.exists():
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return path.read_text()


@pytest.fixture(params=[signal.default_int_handler, signal.SIG_IGN], ids=["in a terminal", "in the background"])
def interrupts(request: pytest.FixtureRequest) -> Iterator[None]:
    before = signal.signal(signal.SIGINT, request.param)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interrupts")
def test_engines_are_built_while_something_else_is_done_and_not_longer(builder: Path) -> None:
    with built_meanwhile([engine_spec("0.8.5", "cpu"), engine_spec("0.18.1", "cpu")]):
        assert until(builder / "began") == "-P -m rlaudit engines build --cpu 0.8.5 0.18.1"
        assert not (builder / "ended").exists()
    assert (builder / "ended").read_text() == "interrupted"


def test_nothing_is_started_where_nothing_is_to_be_built(builder: Path) -> None:
    with built_meanwhile([]):
        pass
    assert not (builder / "began").exists()


def test_a_run_builds_its_engines_meanwhile_on_a_new_machine_and_on_no_other(
    laboratory: Laboratory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[list[str]] = []

    @contextmanager
    def heard(specs: Sequence[EnvironmentSpec]) -> Iterator[None]:
        asked.append(sorted(spec.version for spec in specs))
        yield

    def no_index(*_: object) -> NoReturn:
        raise NotFinished("could not be had: no index")

    monkeypatch.setattr("rlaudit.laboratory.run_setup.built_meanwhile", heard)
    assert laboratory.ablate(laboratory.recipe(ONE_FACTOR)).exit_code == 1
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "new"))
    monkeypatch.setattr("rlaudit.laboratory.run_setup.ensure", no_index)
    assert laboratory.ablate(laboratory.recipe(ONE_FACTOR, seed=1), "--run-dir", str(tmp_path / "other")).exit_code == 3
    assert asked == [[], sorted([V0, V1])]
