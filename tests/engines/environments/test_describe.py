"""An interpreter behind any command: what it tells, what it does not see, and how a dead one is told."""

import sys
import time
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from rlaudit.engines.cells.guarded import run_guarded
from rlaudit.engines.environments import describe as describe_file
from rlaudit.engines.environments.describe import describe
from rlaudit.errors import NotFinished, UsageError


def shell(script: str, *words: str) -> tuple[str, ...]:
    """A command line in front of this interpreter."""
    return ("bash", "-c", script, "--", sys.executable, *words)


def test_an_interpreter_tells_its_python_and_every_distribution() -> None:
    told = describe((sys.executable,))
    assert told.versions["python"] == sys.version.split()[0]
    assert told.versions["numpy"] == np.__version__
    assert told.lock[0] == f"python=={sys.version.split()[0]}"
    assert f"numpy=={np.__version__}" in told.lock
    assert str(told.prefix) == sys.prefix


def test_what_stands_in_front_and_the_lines_that_it_prints_around_the_answer_change_nothing() -> None:
    noise = 'echo "INFO: mounting"; printf "{\\"python\\": 1}"; "$@"; echo bye; echo careful >&2'
    assert describe(shell(noise)).lock == describe(shell('exec "$@"')).lock == describe((sys.executable,)).lock


def test_variables_that_the_command_sets_and_no_recipe_declares_are_left_out_and_named(tmp_path: Path) -> None:
    (tmp_path / "numpy.py").write_text("raise ImportError('found on PYTHONPATH')")
    told = describe(("env", f"PYTHONPATH={tmp_path}", "VLLM_USE_V1=0", sys.executable), imports=["numpy"])
    assert told.dropped == {"PYTHONPATH": str(tmp_path), "VLLM_USE_V1": "0"}
    assert told.import_error is None


def test_what_it_cannot_read_or_write_is_named_and_nothing_is_left_behind(tmp_path: Path) -> None:
    told = describe((sys.executable,), tmp_path / "run", [Path("/nowhere"), tmp_path])
    assert told.out_of_sight == ("/nowhere",)
    assert list((tmp_path / "run").iterdir()) == []


def test_a_run_folder_that_is_another_one_inside_is_out_of_sight(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As in a container: the same path is there, and is not the same folder.
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    script = tmp_path / "script.py"
    script.write_text(describe_file._SCRIPT.read_text().replace('QUESTIONS["folder"],', f"{str(elsewhere)!r},"))
    monkeypatch.setattr(describe_file, "_SCRIPT", script)
    assert describe((sys.executable,), tmp_path / "run").out_of_sight == (str(elsewhere),)


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (("/nowhere/python",), "there is no program /nowhere/python"),
        (("bash", "-c", "echo no such image >&2; exit 125"), r"ended with code 125; no such image"),
        (("bash", "-c", "exit 127"), r"ended with code 127; it said nothing"),
        (("bash", "-c", "kill -9 $$"), "was ended by SIGKILL"),
        (("true",), "ended with code 0; it said nothing"),
        (("bash", "-c", "echo usage: serve MODEL"), "usage: serve MODEL"),
    ],
)
def test_a_command_that_starts_no_python_is_not_finished_and_its_own_words_are_told(
    command: tuple[str, ...], message: str
) -> None:
    with pytest.raises(NotFinished, match=message):
        describe(command)


def test_a_file_that_is_no_program_is_told_as_one(tmp_path: Path) -> None:
    text = tmp_path / "python"
    text.write_text("not a program")
    with pytest.raises(NotFinished, match="cannot be executed"):
        describe((str(text),))
    text.chmod(0o755)
    with pytest.raises(NotFinished, match=r"could not be started; .*Exec format error"):
        describe((str(text),))


def test_one_that_starts_two_interpreters_is_refused() -> None:
    with pytest.raises(UsageError, match="starts 2 interpreters, expected one"):
        describe(shell('"$@"; "$@"'))


def test_a_python_that_is_too_old_says_which_one_is_expected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(describe_file, "OLDEST_PYTHON", (9, 9))
    with pytest.raises(UsageError, match=rf"is Python {sys.version.split()[0]}, expected 9\.9 or later"):
        describe((sys.executable,))


def test_one_that_never_answers_is_ended_with_all_it_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pids = tmp_path / "pid"

    def wait_for_its_child() -> None:
        while not pids.exists() or not pids.read_text().endswith("\n"):
            time.sleep(0.01)

    monkeypatch.setattr(describe_file, "SECONDS_TO_ANSWER", 0.0)
    monkeypatch.setattr(describe_file, "run_guarded", partial(run_guarded, meanwhile=wait_for_its_child))
    with pytest.raises(NotFinished, match="did not answer within"):
        describe(("bash", "-c", f"sleep 600 & echo $! > {pids}; wait"))
    assert not Path(f"/proc/{pids.read_text().strip()}").exists()


def interpreter_with(folder: Path, modules: dict[str, str]) -> tuple[str, ...]:
    """An interpreter that finds these modules first, by a program of its own that the loader is handed to."""
    folder.mkdir()
    for name, text in modules.items():
        file = folder / f"{name}.py"
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
    program = folder / "python"
    lines = (f"#!{sys.executable}", "import sys", "loader = sys.argv[3]", 'sys.argv[:4] = ["-c"]', "exec(loader)")
    program.write_text("\n".join(lines))
    program.chmod(0o755)
    return (str(program),)


@pytest.mark.parametrize(("cuda", "expected"), [("'12.8'", "12.8"), ("None", "")])
def test_the_cuda_of_torch_is_read_without_loading_torch(tmp_path: Path, cuda: str, expected: str) -> None:
    modules = {"torch/__init__": "raise SystemExit('loaded')", "torch/version": f"cuda = {cuda}\n"}
    assert describe(interpreter_with(tmp_path / "one", modules)).torch_cuda == expected


def test_a_package_that_does_not_import_or_leaves_meanwhile_is_told_with_its_reason(tmp_path: Path) -> None:
    one = interpreter_with(tmp_path / "one", {"licensed": "raise SystemExit('no licence')"})
    assert describe(one, imports=["licensed"]).import_error == "SystemExit: no licence"
    gone = "ModuleNotFoundError: No module named 'no_such_package'"
    assert describe((sys.executable,), imports=["no_such_package"]).import_error == gone


def test_a_folder_of_that_name_where_rlaudit_was_started_is_not_what_a_cell_imports(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "vllm").mkdir()
    (tmp_path / "vllm" / "__init__.py").touch()
    monkeypatch.chdir(tmp_path)
    assert describe((sys.executable,), imports=["vllm"]).import_error == ("ModuleNotFoundError: No module named 'vllm'")
