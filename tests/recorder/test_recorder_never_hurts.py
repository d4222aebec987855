"""Whatever goes wrong in the recorder, a training prints what it prints without it."""

import ast
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from trainings_with_a_stand_in import ENGINES, SAID, Ended, Place, place, run

from rlaudit.recording.shipped import rlaudit_recorder

RECORDER = Path(rlaudit_recorder.__file__)
SOURCE = RECORDER.read_text()
V0, WEIGHTS = (RECORDER.with_name(f"rlaudit_{name}.py") for name in ("v0", "weights"))
# Those in front of a hooked method and behind it.
HANDLERS = sorted({one.__name__ for pair in rlaudit_recorder._HANDLERS.values() for one in pair if one is not None})
CALLS = ["call_begins", "call_ends", "_in_flight"]
# What reads weights needs torch: tests/engine_runs/test_weights_are_what_was_sent.py.
OF_WEIGHTS = [
    "_device_ends", "_model_ends", "_load_begins", "_load_ends", "_note_tensor", "_note_sent", "put_load", "_set_of",
    "_sleep_begins", "_wake_ends", "_served_of", "_share", "_place",
]  # fmt: skip
INNER = [
    "put", "is_full", "_line", "_write", "start_writer", "_write_queued", "_begin_file", "put_steps", "close_runs",
    "_put_totals", "finish", "requested", "_sampling", "_prompt_if_kept", "_plain", "_versions", "_boot", "_cached",
    "_sampled", "_hook_module", "_hook_method", "note_hook", "failed", "error_text", "_after_fork", "drop",
    "_encoded", "find_spec",
]  # fmt: skip
ARGUMENTS = (1, 3)


def sabotaged(file: Path, function: str) -> str:
    """Return the text of a file of the recorder's with one function that raises whenever it is called."""
    lines = file.read_text().splitlines(keepends=True)
    functions = [node for node in ast.walk(ast.parse("".join(lines))) if isinstance(node, ast.FunctionDef)]
    (found,) = [node for node in functions if node.name == function]
    # Within what the function itself catches.
    first = next((node.body[0] for node in found.body if isinstance(node, ast.Try)), found.body[0])
    lines.insert(first.lineno - 1, " " * first.col_offset + f"raise RuntimeError('sabotage of {function}')\n")
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


def raising(function: str, folder: Path, file: Path = RECORDER) -> Place:
    here = place(folder)
    (here.folder / file.name).write_text(sabotaged(file, function))
    return here


HOOKS = [
    *(("V1", RECORDER, function) for function in (*HANDLERS, *CALLS)),
    *(("V1", WEIGHTS, function) for function in OF_WEIGHTS),
    *(("V0", V0, function) for function in ("_note_group", "_requested", "_aborts_end", "_step", "_take_tokens")),
]


@pytest.mark.parametrize(("engine", "file", "function"), HOOKS, ids=lambda one: getattr(one, "stem", one))
def test_a_hook_that_raises_is_named_in_the_recording_and_nowhere_else(
    engine: str, file: Path, function: str, without: Callable[[str], Ended], tmp_path: Path
) -> None:
    here = raising(function, tmp_path, file)
    assert run(*ARGUMENTS, recorded=here, engine=engine) == without(engine)
    first = here.written().of_kind("failed")[0]
    assert f"RuntimeError: sabotage of {function}" in first["error"]


@pytest.mark.parametrize("function", INNER)
def test_nothing_inside_the_recorder_reaches_the_training(
    function: str, without: Callable[[str], Ended], tmp_path: Path
) -> None:
    engine = "V1, forked core" if "fork" in function else "V1"
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


DAMAGES: dict[str, Callable[[Path], object]] = {
    "cut": lambda folder: (folder / "rlaudit_recorder.py").write_text(SOURCE[: len(SOURCE) // 2]),
    "no Python": lambda folder: (folder / "rlaudit_recorder.py").write_bytes(bytes(range(256))),
    "empty": lambda folder: (folder / "rlaudit_recorder.py").write_text(""),
    "raises": lambda folder: (folder / "rlaudit_recorder.py").write_text("raise RuntimeError('sabotage')"),
    "no secrets": lambda folder: (folder / "rlaudit_secrets.py").unlink(),
    "no trainer": lambda folder: (folder / "rlaudit_trainer.py").unlink(),
    "no weights": lambda folder: (folder / "rlaudit_weights.py").unlink(),
    "no V0": lambda folder: (folder / "rlaudit_v0.py").unlink(),
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
