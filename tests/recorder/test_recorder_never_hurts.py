"""Whatever goes wrong in the recorder, a training prints what it prints without it."""

import ast
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from trainings_with_a_stand_in import ENGINES, SAID, Ended, Place, place, run

from rlaudit.recorder.shipped import rlaudit_recorder

SOURCE = Path(rlaudit_recorder.__file__).read_text()
HANDLERS = sorted({one.__name__ for pair in rlaudit_recorder._HANDLERS.values() for one in pair if one is not None})
CALLS = ["_call_begins", "_call_ends", "_load_begins", "_load_ends", "_model_ends", "_note_tensor", "_in_flight"]
INNER = [
    "put", "is_full", "_line", "_write", "_start_writer", "_write_queued", "_begin_file", "_put_steps", "_close_runs",
    "_put_totals", "_end", "_finish", "_requested", "_sampling", "_prompt_if_kept", "_plain", "_versions", "_boot",
    "_cached", "_sampled", "_step_of_v0", "_take_tokens_of_v0", "_hook_module", "_hook_method", "note_hook", "_failed",
    "_error", "_after_fork", "_put_load", "drop", "_encoded",
]  # fmt: skip
ARGUMENTS = (1, 3)


def sabotaged(function: str) -> str:
    """Return the recorder with one function that raises whenever it is called."""
    (found,) = [
        node for node in ast.walk(ast.parse(SOURCE)) if isinstance(node, ast.FunctionDef) and node.name == function
    ]
    lines, first = SOURCE.splitlines(keepends=True), found.body[0]
    indent = " " * first.col_offset
    lines.insert(first.lineno - 1, f"{indent}raise RuntimeError('sabotage of {function}')\n")
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


def raising(function: str, folder: Path) -> Place:
    here = place(folder)
    (here.folder / "rlaudit_recorder.py").write_text(sabotaged(function))
    return here


@pytest.mark.parametrize("function", [*HANDLERS, *CALLS])
def test_a_hook_that_raises_is_named_in_the_recording_and_nowhere_else(
    function: str, without: Callable[[str], Ended], tmp_path: Path
) -> None:
    here = raising(function, tmp_path)
    engine = "V0" if "group" in function or "v0" in function else "V1"
    assert run(*ARGUMENTS, recorded=here, engine=engine) == without(engine)
    failures = here.written().of_kind("failed")
    assert failures
    assert all(f"RuntimeError: sabotage of {function}" in failure["error"] for failure in failures)


@pytest.mark.parametrize("function", INNER)
def test_nothing_inside_the_recorder_reaches_the_training(
    function: str, without: Callable[[str], Ended], tmp_path: Path
) -> None:
    engine = "V0" if "v0" in function else "V1, forked core" if "fork" in function else "V1"
    ended = run(*ARGUMENTS, recorded=raising(function, tmp_path), engine=engine)
    assert (ended.code, ended.stdout) == without(engine).by_the_program[:2]
    # Python itself says on stderr what a hook of a fork raises.
    assert "sabotage" not in ended.stderr or function == "_after_fork" or ended.stderr.startswith(SAID)


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
import errno, os, io, builtins, training
opened, writes = builtins.open, []

class Full(io.FileIO):
    def write(self, data):
        writes.append(len(data))
        if len(writes) % 2 and len(writes) > 3:
            raise OSError(errno.ENOSPC, "No space left on device")
        return super().write(data)

def open_full(file, mode="r", *args, **kwargs):
    return Full(file, mode.replace("b", "")) if str(file).endswith(".jsonl") else opened(file, mode, *args, **kwargs)

builtins.open = open_full
{MAIN}
"""


def test_a_disk_that_is_full_now_and_then_costs_lines_and_no_more(
    without: Callable[[str], Ended], tmp_path: Path
) -> None:
    here = place(tmp_path)
    assert run(recorded=here, program=NO_SPACE).by_the_program == without("V1").by_the_program
    assert here.written().of_kind("process")


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


def test_a_folder_that_is_removed_in_the_middle_is_not_noticed(
    without: Callable[[str], Ended], tmp_path: Path
) -> None:
    here = place(tmp_path)
    removes = f"""
import os, shutil, training
from vllm.v1.engine.core import EngineCore
reset = EngineCore.reset_prefix_cache
EngineCore.reset_prefix_cache = lambda self: (shutil.rmtree(os.environ["RLAUDIT_RECORD"]), reset(self))[1]
{MAIN}
"""
    assert run(recorded=here, program=removes).by_the_program == without("V1").by_the_program
    assert not list(here.out.glob("*"))


DAMAGES: dict[str, Callable[[Path], object]] = {
    "cut": lambda folder: (folder / "rlaudit_recorder.py").write_text(SOURCE[: len(SOURCE) // 2]),
    "no Python": lambda folder: (folder / "rlaudit_recorder.py").write_bytes(bytes(range(256))),
    "empty": lambda folder: (folder / "rlaudit_recorder.py").write_text(""),
    "raises": lambda folder: (folder / "rlaudit_recorder.py").write_text("raise RuntimeError('sabotage')"),
    "no secrets": lambda folder: (folder / "rlaudit_secrets.py").unlink(),
    "no trainer": lambda folder: (folder / "rlaudit_trainer.py").unlink(),
    "no settings": lambda folder: (folder / "settings.json").unlink(),
    "damaged settings": lambda folder: (folder / "settings.json").write_text('{"prompts": '),
    "settings of other types": lambda folder: (folder / "settings.json").write_text(
        '{"prompts": 0, "limit": "much", "trainer_functions": [1]}'
    ),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_recorder_that_is_damaged_or_incomplete_is_not_noticed(
    damage: str, without: Callable[[str], Ended], tmp_path: Path
) -> None:
    here = place(tmp_path)
    DAMAGES[damage](here.folder)
    ended = run(*ARGUMENTS, recorded=here)
    # vLLM itself says which plug-in it cannot load.
    code, stdout, stderr = ended.by_the_program
    assert (code, stdout) == without("V1").by_the_program[:2]
    assert all(line.startswith("ERROR failed to load plugin") for line in stderr)


IMPORTERS = f"""
import sys, importlib.machinery, training

class Old:
    '''A finder of the old protocol, as some tools still have.'''

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

sys.meta_path.insert(0, Sealing())
{MAIN}
"""


def test_loaders_and_finders_of_others_go_on_working(without: Callable[[str], Ended], tmp_path: Path) -> None:
    ended = run(recorded=place(tmp_path), program=IMPORTERS)
    assert ended.by_the_program == without("V1").by_the_program


def test_the_recorder_is_python_of_3_9_and_fits_in_a_thousand_lines() -> None:
    ast.parse(SOURCE, feature_version=(3, 9))
    assert len(SOURCE.splitlines()) <= 1000
