"""Whatever goes wrong in the recorder, a training prints what it prints without it."""

import ast
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from trainings_with_a_stand_in import DISK, ENGINES, SAID, Ended, Place, place, run

from rlaudit.recording.folder import RECORDER

SOURCE = RECORDER.read_text()
# What guards all others: it has nothing in it that may fail.
GUARDS = {"recorded", "exec_module"}
# Python itself says on stderr what these raise, in a thread, at a fork or at the end.
SAID_BY_PYTHON = {"_after_fork", "_keep_writing", "_end"}
# With one of these nothing is written, or not that something failed.
UNWRITTEN = {
    *("register", "put", "_begin_file", "_make_file", "_line", "_write", "_write_queued", "_keep_writing", "find_spec"),
    *("failed", "error_text", "_after_fork", "_end"),
}
# What this training never comes to: a disk or a limit, a recording that begins and ends within a process
# (test_record_function.py), and reading weights, which needs torch
# (tests/engine_runs/test_weights_are_what_was_sent.py).
NOT_REACHED = {
    *("this_process", "_say", "_give_up", "drop", "_take_hidden", "_step_begins", "_read_weights", "fingerprints"),
    *("_packed", "_same", "_part", "_counterpart", "_flat_places", "flat_places", "_on_the_host", "_rounded"),
    *("renamed", "begin", "stop", "trainer_functions"),
}
ARGUMENTS = (1, 3)


FILES = (RECORDER, *(RECORDER.with_name(f"rlaudit_{name}.py") for name in ("weights", "v0")))


def functions(file: Path) -> list[ast.FunctionDef]:
    """Every function of one of the recorder's files but its guards."""
    nodes = (node for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.FunctionDef))
    return [node for node in nodes if node.name not in GUARDS and not node.name.startswith("__")]


def sabotaged(file: Path, *functions: ast.FunctionDef) -> str:
    """Return the text of a file of the recorder's with functions that raise whenever they are called."""
    lines = file.read_text().splitlines(keepends=True)
    for function in sorted(functions, key=lambda node: node.lineno, reverse=True):
        # Within what the function itself catches.
        first = next((node.body[0] for node in function.body if isinstance(node, ast.Try)), function.body[0])
        lines.insert(first.lineno - 1, " " * first.col_offset + f"raise RuntimeError('sabotage of {function.name}')\n")
    return "".join(lines)


@pytest.fixture(scope="module")
def without() -> Callable[[str], Ended]:
    """What the training prints without a recorder, by engine."""
    ran: dict[str, Ended] = {}

    def ended(engine: str) -> Ended:
        if engine not in ran:
            ran[engine] = run(*ARGUMENTS, engine=engine)
            assert ran[engine].code == 0 and len(ran[engine].printed) > 10
        return ran[engine]

    return ended


@pytest.mark.parametrize("engine", ENGINES)
def test_a_recorded_training_prints_what_it_prints_without(
    engine: str, without: Callable[[str], Ended], tmp_path: Path
) -> None:
    assert run(*ARGUMENTS, recorded=place(tmp_path), engine=engine) == without(engine)


@pytest.mark.parametrize(
    ("file", "function"),
    [
        pytest.param(file, function, id=f"{file.stem}.{function.name}")
        for file in FILES
        for function in functions(file)
        if function.name not in NOT_REACHED
    ],
)
def test_a_function_that_raises_is_named_in_the_recording_and_nothing_of_it_reaches_the_training(
    file: Path, function: ast.FunctionDef, without: Callable[[str], Ended], tmp_path: Path
) -> None:
    engine = "V0" if file.stem == "rlaudit_v0" else "V1, forked core" if function.name == "_after_fork" else "V1"
    here = place(tmp_path)
    (here.folder / file.name).write_text(sabotaged(file, function))
    ended = run(*ARGUMENTS, recorded=here, engine=engine)
    shown = slice(2 if function.name in SAID_BY_PYTHON else 3)
    assert ended.by_the_program[shown] == without(engine).by_the_program[shown]
    failed = [record["error"] for record in here.written().of_kind("failed")]
    is_named = any(f"sabotage of {function.name} (" in error for error in failed)
    assert is_named is (function.name not in UNWRITTEN)


def test_the_training_comes_to_none_of_the_others(without: Callable[[str], Ended], tmp_path: Path) -> None:
    here = place(tmp_path)
    for file in FILES:
        others = [function for function in functions(file) if function.name in NOT_REACHED]
        (here.folder / file.name).write_text(sabotaged(file, *others))
    assert run(*ARGUMENTS, recorded=here).by_the_program == without("V1").by_the_program
    assert here.written().of_kind("failed") == []


@pytest.mark.parametrize("engine", ["V1", "V0"])
def test_a_full_disk_is_not_noticed(engine: str, without: Callable[[str], Ended], tmp_path: Path) -> None:
    here = place(tmp_path)
    limited = f"import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (6000, 6000)); import training; {MAIN}"
    ended = run(recorded=here, engine=engine, program=limited)
    assert ended.by_the_program == without(engine).by_the_program
    (file,) = here.out.iterdir()
    assert file.stat().st_size == 6000


MAIN = f"training.main(*{ARGUMENTS})"
NO_SPACE = f"""
import errno, training
{DISK}
writes = []
def before(data):
    writes.append(len(data))
    if len(writes) % 2 and len(writes) > 3:
        raise OSError(errno.ENOSPC, "No space left on device")
{MAIN}
"""


def test_a_disk_that_is_full_now_and_then_costs_lines_and_no_more(
    without: Callable[[str], Ended], tmp_path: Path
) -> None:
    here = place(tmp_path)
    assert run(recorded=here, program=NO_SPACE).by_the_program == without("V1").by_the_program
    written = here.written()
    lost = [record["why"] for record in written.of_kind("dropped")]
    assert lost and all(why.startswith("the disk refused ") for why in lost)


def nowhere(kind: str, folder: Path) -> str:
    (folder / "a file").write_text("")
    (folder / "read-only").mkdir(mode=0o500)
    return {"below a file": str(folder / "a file" / "out"), "a file": str(folder / "a file"), "in /proc": "/proc/out",
            "read-only": str(folder / "read-only" / "out")}[kind]  # fmt: skip


@pytest.mark.parametrize("kind", ["below a file", "a file", "in /proc", "read-only"])
def test_a_folder_that_cannot_be_written_is_said_once_on_stderr(
    kind: str, without: Callable[[str], Ended], tmp_path: Path
) -> None:
    if kind == "read-only" and os.access("/", os.W_OK):
        pytest.skip("this user may write everywhere")
    here = Place(place(tmp_path).folder, Path(nowhere(kind, tmp_path)))
    ended = run(*ARGUMENTS, recorded=here)
    assert ended.by_the_program == without("V1").by_the_program
    (said,) = ended.stderr.splitlines()
    assert said.startswith(SAID + "process ")


def test_a_folder_that_is_removed_in_the_middle_is_not_noticed(without: Callable[[str], Ended], tmp_path: Path) -> None:
    here = place(tmp_path)
    removes = f"""
import os, shutil, training
from vllm.v1.engine.core import EngineCore
reset = EngineCore.reset_prefix_cache

def remove():
    # A file that is written meanwhile makes rmtree fail.
    while os.path.exists(os.environ["RLAUDIT_RECORD"]):
        shutil.rmtree(os.environ["RLAUDIT_RECORD"], ignore_errors=True)

EngineCore.reset_prefix_cache = lambda self: (remove(), reset(self))[1]
{MAIN}
"""
    assert run(recorded=here, program=removes).by_the_program == without("V1").by_the_program
    assert not list(here.out.glob("*"))


# By what happens: which file of the recorder's holds what; None for one that is missing.
DAMAGES: dict[str, tuple[str, bytes | None]] = {
    "cut": ("rlaudit_recorder.py", SOURCE[: len(SOURCE) // 2].encode()),
    "no Python": ("rlaudit_recorder.py", bytes(range(256))),
    "empty": ("rlaudit_recorder.py", b""),
    "raises": ("rlaudit_recorder.py", b"raise RuntimeError('sabotage')"),
    **{f"no {name}": (f"rlaudit_{name}.py", None) for name in ("secrets", "trainer", "weights", "v0")},
    "no settings": ("settings.json", None),
    "damaged settings": ("settings.json", b'{"prompts": '),
    "settings of other types": ("settings.json", b'{"prompts": 0, "limit": "much", "trainer_functions": [1]}'),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_recorder_that_is_damaged_or_incomplete_is_not_noticed(
    damage: str, without: Callable[[str], Ended], tmp_path: Path
) -> None:
    here, (name, text) = place(tmp_path), DAMAGES[damage]
    if text is None:
        (here.folder / name).unlink()
    else:
        (here.folder / name).write_bytes(text)
    ended = run(*ARGUMENTS, recorded=here)
    # vLLM itself says which plug-in it cannot load.
    code, stdout, stderr = ended.by_the_program
    assert (code, stdout) == without("V1").by_the_program[:2]
    assert all(line.startswith("ERROR failed to load plugin") for line in stderr)


IMPORTERS = f"""
import sys, importlib.machinery, training

class Old:
    '''A finder of the old protocol, as some tools still have.'''
    def find_module(self, name, path=None):
        return None

class Sealed:
    '''A loader that takes no attribute.'''
    __slots__ = ("held",)
    def __init__(self, held): self.held = held
    def create_module(self, spec): return None
    def exec_module(self, module): self.held.exec_module(module)

class Sealing:
    def find_spec(self, name, path=None, target=None):
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is not None and name == "vllm.v1.engine.core":
            spec.loader = Sealed(spec.loader)
        return spec

import vllm.plugins
vllm.plugins.load_general_plugins()
sys.meta_path.insert(1, Sealing())
if sys.version_info < (3, 12):
    import warnings
    warnings.simplefilter("ignore")  # Python's own about the old protocol
    sys.meta_path.insert(1, Old())
{MAIN}
"""


def test_loaders_and_finders_of_others_go_on_working(without: Callable[[str], Ended], tmp_path: Path) -> None:
    here = place(tmp_path)
    ended = run(recorded=here, program=IMPORTERS)
    assert ended.by_the_program == without("V1").by_the_program
    assert here.written().of_kind("sequence")
    # A loader that cannot be wrapped is left alone: its module is not recorded.
    assert not any("EngineCore." in target for target in here.written().hooked())


def test_the_recorder_is_python_of_3_9_and_fits_in_a_thousand_lines() -> None:
    for file in RECORDER.parent.glob("rlaudit_*.py"):
        ast.parse(file.read_text(), feature_version=(3, 9))
    assert len(SOURCE.splitlines()) <= 1000
