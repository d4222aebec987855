"""No Python that rlaudit starts runs a module of the working directory, which may be a stranger's checkout."""

import json
import os
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from rlaudit.engines.cells.launch import launch
from rlaudit.engines.cells.on_ray import connected
from rlaudit.engines.environments import built_meanwhile, health
from rlaudit.engines.environments.describe import describe
from rlaudit.engines.environments.environment_spec import engine_spec, trainer_spec

STARTS_OTHERS = """import multiprocessing, subprocess, sys
subprocess.run([sys.executable, "-c", "import json, socket"], check=True)
subprocess.run([sys.executable, "-m", "timeit", "-n1", "-r1"], check=True)
"""
SPAWNS = """import json, multiprocessing

def run(job, channel):
    child = multiprocessing.get_context("spawn").Process(target=json.dumps, args=({},))
    child.start()
    child.join()
    return {"code": child.exitcode}
"""


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The working directory: a folder with a module of each name of the standard library. None may run."""
    folder, ran = tmp_path / "checkout", tmp_path / "ran"
    folder.mkdir()
    for name in (*sys.stdlib_module_names, "numpy", "vllm", "torch", "rlaudit"):
        (folder / f"{name}.py").write_text(f"open({str(ran)!r}, 'a').write('{name} ')\n")
    monkeypatch.chdir(folder)
    yield folder
    assert not ran.exists(), ran.read_text()


@pytest.fixture(params=["python3.9", "python3.10", "this one"])
def python(request: pytest.FixtureRequest) -> str:
    if request.param == "this one":
        return sys.executable
    # Those that pyenv installed.
    found = [str(path) for path in Path("~/.pyenv/versions").expanduser().glob(f"*/bin/{request.param}")]
    return found[0] if found else pytest.skip(f"{request.param} is not installed")


@pytest.mark.usefixtures("checkout")
def test_an_interpreter_is_described(python: str) -> None:
    assert describe((python,), imports=["sqlite3"]).import_error is None
    # It starts again without variables that the command sets.
    assert describe(("env", "PYTHONSTARTUP=x", python)).dropped == {"PYTHONSTARTUP": "x"}


def test_a_package_that_starts_other_pythons_is_imported(checkout: Path) -> None:
    packages = checkout.parent / "packages"
    packages.mkdir()
    (packages / "starts_others.py").write_text(STARTS_OTHERS)
    shown = f"import sys; sys.path.append({str(packages)!r}); sys.argv.pop(0); sys.argv.pop(0); exec(sys.argv.pop(1))"
    command = (sys.executable, "-I", "-c", shown)
    assert describe(command, imports=["starts_others"]).import_error is None


def test_a_command_in_front_still_runs_in_the_working_directory(checkout: Path) -> None:
    (checkout / "mounted").touch()
    assert describe(("sh", "-c", 'test -e mounted && exec "$@"', "--", sys.executable)).versions


def test_a_relative_interpreter_is_that_of_the_working_directory(checkout: Path) -> None:
    (checkout / "bin").mkdir()
    (checkout / "bin/python").symlink_to(sys.executable)
    assert describe(("bin/python",)).versions == describe((os.path.realpath(sys.executable),)).versions


def test_a_built_environment_is_checked(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "_program", lambda _spec: (STARTS_OTHERS,))
    health.check(trainer_spec("cpu"), (sys.executable,), inside=checkout.parent)
    health.missing_for_triton((sys.executable,))


@pytest.mark.usefixtures("checkout")
def test_engines_are_built_by_the_rlaudit_that_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    started = []
    popen = built_meanwhile.subprocess.Popen
    monkeypatch.setattr(
        built_meanwhile.subprocess, "Popen", lambda *a, **k: started.append(popen(*a, **k)) or started[0]
    )
    with built_meanwhile.built_meanwhile([engine_spec("0.18.1", "cpu")]):
        # 3: the index does not answer.
        assert started[0].wait() == 3


def test_an_engine_starts_processes(checkout: Path, python: str) -> None:
    cell = checkout.parent / "cell"
    cell.mkdir()
    (cell / "script.py").write_text(SPAWNS)
    (cell / "job.json").write_text(json.dumps({"script": str(cell / "script.py")}))
    outcome = launch(cell, (python,), {}, 600.0)
    assert (outcome.status, outcome.result.get("code")) == ("ok", 0), outcome.failure


def test_ray_is_told_of_another_folder(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Ray puts the folder in which it is connected on the path of its workers.
    folders: list[Path] = []
    ray = SimpleNamespace(init=lambda *_, **__: folders.append(Path.cwd()))
    monkeypatch.setitem(sys.modules, "ray", ray)
    with socket.create_server(("127.0.0.1", 0)) as cluster:
        connected(f"127.0.0.1:{cluster.getsockname()[1]}")
    assert folders
    assert not folders[0].exists()
    assert Path.cwd() == checkout
