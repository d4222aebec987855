"""One cell in a process of its own: what is told of its end, and what reaches it from outside."""

import json
import os
import re
import subprocess
import sys
import time
import venv
from pathlib import Path
from typing import Any

import pytest
from killable import impatient_guardian
from laboratories import MARK, processes_of

from rlaudit.engines.cells import guarded
from rlaudit.engines.cells.launch import Event, Outcome, judge, launch


class Cell:
    """A cell directory with a script."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "cell"
        self.folder.mkdir()

    def run(self, body: str, timeout_seconds: float = 600.0, **keywords: Any) -> Outcome:
        """Run a script whose `run(job, channel)` has this body."""
        script = self.folder / "script.py"
        lines = "".join(f"    {line}\n" for line in body.splitlines())
        script.write_text(f"import os, signal, subprocess, sys\n\n\ndef run(job, channel):\n{lines}")
        (self.folder / "job.json").write_text(json.dumps({"script": str(script)}))
        command = (*keywords.pop("front", ()), sys.executable)
        variables = {MARK: str(self.folder), **keywords.pop("variables", {})}
        return launch(self.folder, command, variables, timeout_seconds, **keywords)

    def log(self) -> str:
        """What the cell printed."""
        return (self.folder / "log.txt").read_text()


@pytest.fixture
def cell(tmp_path: Path) -> Any:
    one = Cell(tmp_path)
    yield one
    assert processes_of(one.folder) == []


HANG = "channel.phase('generate')\nwhile True:\n    signal.pause()"
HANGS_WITH_A_DAEMON = "subprocess.Popen(['sleep', '600'], start_new_session=True)\n" + HANG
SEEN = "return {'seen': dict(os.environ), 'directory': os.getcwd()}"
CLEANED = ("env", "-i", "PATH=/usr/bin", f"{MARK}=none")


@pytest.fixture
def namespace() -> tuple[str, ...]:
    """What stands in front of the first process of a container."""
    words = ("unshare", "--map-root-user", "--pid", "--fork")
    if subprocess.run([*words, "true"], capture_output=True, check=False).returncode:
        pytest.skip("this machine lets nobody make a namespace of processes")
    return words


def interrupt(event: Event) -> None:
    if event["event"] == "phase":
        raise KeyboardInterrupt


def test_what_the_script_returns_is_the_result_and_its_steps_are_told_in_order(cell: Cell) -> None:
    told: list[Event] = []
    outcome = cell.run(
        "channel.phase('load')\nchannel.emit('progress', done=1, total=2)\nreturn {'answer': 42}", on_event=told.append
    )
    assert outcome.status == "ok"
    assert outcome.failure is None
    assert outcome.result["answer"] == 42
    assert outcome.usage["exit_code"] == 0
    assert [event["event"] for event in told] == ["started", "phase", "progress", "finished"]
    assert told[2]["done"] == 1


def test_what_the_cell_prints_goes_to_its_log_only(cell: Cell, capfd: pytest.CaptureFixture[str]) -> None:
    cell.run("print('noise'); os.system('echo noise of a child'); sys.stderr.write('more'); return {}")
    assert capfd.readouterr() == ("", "")
    for words in ("noise\n", "noise of a child", "more"):
        assert words in cell.log()


@pytest.mark.parametrize(
    ("body", "status", "boundary", "message"),
    [
        ("channel.phase('load')\nraise KeyError('layers.0')", "failed", "load", "KeyError: 'layers.0'"),
        ("channel.phase('load')\nsys.exit('no licence')", "failed", "load", "SystemExit: no licence"),
        ("raise channel.Unsupported('no such kernel')", "unsupported", "unsupported", "no such kernel"),
        ("raise MemoryError('Cannot allocate')", "failed", "out-of-memory", "MemoryError: Cannot allocate"),
        ("raise ValueError('one\\n  two\\n' + 'x' * 2000)", "failed", "launch", "ValueError: one two x{580}"),
        (
            "print('CppCompileError: ended with the worker', flush=True)\nos.kill(os.getpid(), signal.SIGKILL)",
            "failed",
            "died",
            r"the worker was ended by SIGKILL .*want of memory\)",
        ),
        (
            "print('ValueError: the last words', flush=True)\nos._exit(9)",
            "failed",
            "died",
            "the worker ended with code 9 and no result; last error: ValueError: the last words",
        ),
    ],
)
def test_a_cell_without_a_result_says_where_it_stopped_and_why(
    cell: Cell, body: str, status: str, boundary: str, message: str
) -> None:
    outcome = cell.run(body)
    assert outcome.failure is not None
    assert (outcome.status, outcome.failure.boundary) == (status, boundary)
    assert re.fullmatch(message, outcome.failure.message)


def test_an_engine_that_refuses_a_factor_in_its_own_words_while_it_starts_is_unsupported(cell: Cell) -> None:
    refusal = re.compile("batch.?invarian", re.IGNORECASE)
    refused = "channel.phase('load')\nraise RuntimeError('Batch invariance needs another GPU')"
    assert cell.run(refused, refusal=refusal).status == "unsupported"
    assert cell.run(refused).status == "failed"
    assert cell.run(refused.replace("load", "generate"), refusal=refusal).status == "failed"


def test_a_cell_past_its_time_is_ended_with_all_it_started_and_says_in_which_phase(cell: Cell) -> None:
    events = cell.folder / "events.jsonl"

    def wait_until_it_generates() -> bool:
        while not events.exists() or '"generate"' not in events.read_text():
            time.sleep(0.01)
        return False

    # It has no time at all, and is first looked at when it generates.
    outcome = cell.run(HANGS_WITH_A_DAEMON, timeout_seconds=0.0, cancelled=wait_until_it_generates)
    assert outcome.failure is not None
    assert outcome.failure.boundary == "timeout"
    assert outcome.failure.message == "no result after 0 s, in phase generate"
    assert outcome.usage["ended_by"] == "lease"


def test_ctrl_c_is_raised_again_when_the_cell_s_processes_are_gone(cell: Cell) -> None:
    with pytest.raises(KeyboardInterrupt):
        cell.run(HANGS_WITH_A_DAEMON, on_event=interrupt)
    assert processes_of(cell.folder) == []


def test_stray_engine_variables_of_the_shell_do_not_reach_a_cell(cell: Cell, monkeypatch: pytest.MonkeyPatch) -> None:
    stray = {"VLLM_USE_V1": "0", "PYTHONPATH": "/nowhere", "LD_PRELOAD": "", "CUDA_VISIBLE_DEVICES": "7"}
    stray |= {"VIRTUAL_ENV": "/v", "WANDB_API_KEY": "not an engine's"}
    for name, value in {**stray, "HF_TOKEN": "kept", "NCCL_SOCKET_IFNAME": "eth0"}.items():
        monkeypatch.setenv(name, value)
    result = cell.run("return {'seen': dict(os.environ), 'reversed': os.environ['HF_TOKEN'][::-1]}").result
    seen = result["seen"]
    assert not stray.keys() & seen.keys()
    # Programs of the engine's own environment are found first.
    assert seen["PATH"].split(":")[0] == str(Path(sys.executable).parent)
    assert (result["reversed"], seen["NCCL_SOCKET_IFNAME"]) == ("tpek", "eth0")
    # What the engine tells of a secret is written without it.
    assert seen["HF_TOKEN"] == "***"
    assert seen["VLLM_NO_USAGE_STATS"] == "1"


def test_behind_a_command_that_cleans_the_environment_a_cell_has_its_variables_all_the_same(
    cell: Cell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("LD_LIBRARY_PATH", "/a/path/of/this/machine")
    monkeypatch.setenv("HF_TOKEN", "secret")
    seen = cell.run(SEEN, front=CLEANED, variables={"VLLM_X": "1", "PYTHONHASHSEED": "7"}).result["seen"]
    assert (seen["VLLM_X"], seen["PYTHONHASHSEED"], seen["HF_HUB_OFFLINE"]) == ("1", "7", "1")
    assert seen[MARK] == str(cell.folder)
    assert seen["PATH"] == f"{Path(sys.executable).parent}:/usr/bin"
    assert not {"HF_TOKEN", "LD_LIBRARY_PATH"} & seen.keys()
    assert "secret" not in (cell.folder / "environment.json").read_text()


def test_what_is_read_when_python_starts_is_in_force_behind_a_command_too(cell: Cell) -> None:
    hashed, variables = "return {'hash': hash('a word')}", {"PYTHONHASHSEED": "7"}
    plain, cleaned = (cell.run(hashed, variables=variables, front=front).result["hash"] for front in ((), CLEANED))
    assert cleaned == plain


def test_what_a_launcher_adds_and_no_recipe_declares_does_not_reach_a_cell(cell: Cell) -> None:
    added = ("env", "VLLM_USE_V1=1", "PYTHONPATH=/nowhere", "CUDA_VISIBLE_DEVICES=1", "OTHER=kept")
    seen = cell.run(SEEN, front=added, variables={"CUDA_VISIBLE_DEVICES": "3"}).result["seen"]
    assert not {"VLLM_USE_V1", "PYTHONPATH", "RLAUDIT_SETTLED"} & seen.keys()
    assert (seen["OTHER"], seen["CUDA_VISIBLE_DEVICES"]) == ("kept", "3")


def test_what_a_launcher_sets_is_left_where_the_shell_has_another_value(
    cell: Cell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    assert cell.run(SEEN, front=("env", "OMP_NUM_THREADS=1")).result["seen"]["OMP_NUM_THREADS"] == "1"
    assert cell.run(SEEN, front=CLEANED).result["seen"]["OMP_NUM_THREADS"] == "3"


def test_what_stands_in_front_does_not_get_the_engine_s_variables(cell: Cell, tmp_path: Path) -> None:
    told = tmp_path / "told"
    front = ("bash", "-c", f'echo "${{VLLM_X-unset}}" > {told}; exec "$@"', "--")
    assert cell.run(SEEN, front=front, variables={"VLLM_X": "1"}).result["seen"]["VLLM_X"] == "1"
    assert told.read_text() == "unset\n"


def test_a_variable_that_is_set_otherwise_at_every_start_fails_the_cell_and_is_named(
    cell: Cell, tmp_path: Path
) -> None:
    venv.create(tmp_path / "venv", symlinks=True, with_pip=False)
    packages = next((tmp_path / "venv" / "lib").glob("python3*")) / "site-packages"
    (packages / "insists.pth").write_text("import os; os.environ['VLLM_USE_V1'] = '1'\n")
    (cell.folder / "job.json").write_text("{}")
    outcome = launch(cell.folder, (str(tmp_path / "venv" / "bin" / "python"),), {}, 600.0)
    assert outcome.failure is not None
    assert outcome.failure.boundary == "launch"
    assert "set otherwise each time this interpreter starts: VLLM_USE_V1" in outcome.failure.message


def test_a_relative_path_means_in_a_container_what_it_means_here(cell: Cell) -> None:
    seen = cell.run(SEEN, front=("env", "--chdir=/"))
    assert seen.result["directory"] == os.getcwd()  # noqa: PTH109


def test_the_first_process_of_a_container_ends_at_sigterm_with_all_that_is_in_it_or_with_its_own_result(
    cell: Cell, namespace: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outcome = cell.run("return {'pid': os.getpid()}", front=namespace)
    assert (outcome.status, outcome.usage["exit_code"]) == ("ok", 0)
    assert outcome.result["pid"] > 1
    # With this patience it would never be killed.
    monkeypatch.setattr(guarded, "GUARDIAN", impatient_guardian(tmp_path, guarded.GUARDIAN, 1e6))
    with pytest.raises(KeyboardInterrupt):
        cell.run(HANGS_WITH_A_DAEMON, front=namespace, on_event=interrupt)
    assert processes_of(cell.folder) == []


def test_an_engine_does_not_find_our_files_by_accident(cell: Cell) -> None:
    outcome = cell.run("import importlib.util\nreturn {'found': importlib.util.find_spec('guardian') is not None}")
    assert outcome.result["found"] is False


def test_a_file_written_through_the_channel_is_whole_or_not_there(cell: Cell) -> None:
    outcome = cell.run(
        "def rows():\n    yield {'row': 1}\n    raise ValueError('half way')\n"
        "channel.write_lines('samples.jsonl', rows())"
    )
    assert outcome.status == "failed"
    assert not (cell.folder / "samples.jsonl").exists()


def test_a_cell_without_a_result_did_not_finish_whatever_else_it_left(tmp_path: Path) -> None:
    (tmp_path / "samples.jsonl").write_text("{}\n")
    outcome = judge(tmp_path, phase="generate")
    assert outcome.status == "failed"
    assert outcome.failure is not None
    assert outcome.failure.boundary == "died"
