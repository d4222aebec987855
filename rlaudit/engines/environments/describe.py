"""Asks an interpreter what it is, holds and sees, through any command that stands in front of it."""

import json
import secrets
import shlex
import shutil
import signal
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rlaudit.engines.cells.guarded import run_guarded
from rlaudit.engines.cells.inherited_variables import STRIPPED
from rlaudit.engines.cells.launch import cell_environment
from rlaudit.engines.environments.environment_spec import Command
from rlaudit.errors import NotFinished, UsageError
from rlaudit.parse_json import parse_json

# The worker and what it loads are written for it (worker.py); vLLM 0.8.5 is the last engine that runs on it.
OLDEST_PYTHON = (3, 9)
# Long enough to import an engine from a slow disk. An image that has to be fetched first takes longer.
SECONDS_TO_ANSWER = 300.0
_SCRIPT = Path(__file__).with_name("describe_interpreter.py")
# One line without a quote or a blank that matters: conda's `run` refuses arguments of more than one line.
_LOADER = "import sys,binascii;exec(binascii.unhexlify(sys.argv[1]))"
_MARKER = "rlaudit-interpreter "
_LINES_OF_COMPLAINT = 3
_LONGEST_COMPLAINT = 400


@dataclass(frozen=True)
class Interpreter:
    """What an interpreter says about itself.

    versions: Python's and those of the packages that decide a logprob. lock: `name==version` of everything installed,
    and Python's. torch_cuda: the CUDA that torch was built for, empty for none, None if torch does not say or is not
    there. dropped: variables that the command sets and a cell does not get. out_of_sight: the paths, of those that were
    asked about, that it cannot use. import_error: why a package, of those that were asked for, does not import.
    """

    versions: Mapping[str, str]
    lock: tuple[str, ...]
    site_packages: Path
    prefix: Path
    torch_cuda: str | None = None
    dropped: Mapping[str, str] = field(default_factory=dict)
    out_of_sight: tuple[str, ...] = ()
    import_error: str | None = None


def describe(
    command: Command,
    folder: Path | None = None,
    read: Sequence[Path] = (),
    imports: Sequence[str] = (),
) -> Interpreter:
    """Ask an interpreter what it holds, whether it can write into `folder` and read the paths, and import packages.

    Raises NotFinished when it does not run or does not answer, UsageError when its Python is too old or when more than
    one starts.
    """
    name = shlex.join(command)
    token = f".rlaudit-{secrets.token_hex(8)}"
    questions = {
        "marker": _MARKER,
        "loader": _LOADER,
        "oldest_python": OLDEST_PYTHON,
        "stray": STRIPPED,
        "folder": None if folder is None else str(folder.absolute()),
        "token": token,
        "read": [str(path) for path in read],
        "import": list(imports),
    }
    left = [] if folder is None else [folder / token, folder / f"{token}.answer"]
    try:
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
            left[0].write_text(token)
        told = _answer(command, name, questions)
    finally:
        for file in left:
            file.unlink(missing_ok=True)
    if told["too_old"]:
        oldest = ".".join(map(str, OLDEST_PYTHON))
        raise UsageError(f"{name} is Python {told['python']}, expected {oldest} or later", "Name another interpreter.")
    return Interpreter(
        versions={"python": told["python"], **told["versions"]},
        lock=(f"python=={told['python']}", *told["lock"]),
        site_packages=Path(told["site_packages"]),
        prefix=Path(told["prefix"]),
        torch_cuda=told["torch_cuda"],
        dropped=told["dropped"],
        out_of_sight=tuple(told["out_of_sight"]),
        import_error=told["import_error"],
    )


def _answer(command: Command, name: str, questions: Mapping[str, Any]) -> dict[str, Any]:
    _require_program(command, name)
    program = _SCRIPT.read_bytes().hex()
    with tempfile.TemporaryDirectory(prefix="rlaudit-describe-") as scratch:
        said, complained, usage = (Path(scratch) / file for file in ("stdout", "stderr", "usage.json"))
        with said.open("wb") as stdout, complained.open("wb") as stderr:
            in_time = run_guarded(
                [*command, "-s", "-c", _LOADER, program, json.dumps(questions).encode().hex()],
                cell_environment({}),
                usage,
                SECONDS_TO_ANSWER,
                stdout,
                stderr,
            )
        answers = [
            line.partition(_MARKER)[2]
            for line in said.read_text(encoding="utf-8", errors="replace").splitlines()
            if _MARKER in line
        ]
        if not in_time:
            raise NotFinished(
                f"{name} did not answer within {SECONDS_TO_ANSWER:.0f} s", "An image is best fetched beforehand."
            )
        if not answers:
            code = parse_json(usage.read_text())["exit_code"] if usage.exists() else None
            complaint = _last_lines(complained) or _last_lines(said) or "it said nothing"
            raise NotFinished(
                f"{name} does not run a Python interpreter: it {_ending(code)}; {complaint}",
                f"Expected to work by hand: {name} -c 'print(1)'. An image with an entrypoint of its own needs "
                "--entrypoint python3.",
            )
    if len(answers) > 1:
        raise UsageError(
            f"{name} starts {len(answers)} interpreters, expected one", "Ask for one task: srun --ntasks=1."
        )
    told: dict[str, Any] = parse_json(answers[0])
    return told


def _require_program(command: Command, name: str) -> None:
    if shutil.which(command[0]) is not None:
        return
    found = Path(command[0]).exists()
    why = f"{command[0]} cannot be executed" if found else f"there is no program {command[0]}"
    raise NotFinished(f"{name} does not run: {why}", "Name a Python interpreter, or a command line in front of one.")


def _ending(code: int | None) -> str:
    if code is None:
        return "could not be started"
    return f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with code {code}"


def _last_lines(file: Path) -> str:
    lines = [" ".join(line.split()) for line in file.read_text(encoding="utf-8", errors="replace").splitlines()]
    return " / ".join([line for line in lines if line][-_LINES_OF_COMPLAINT:])[:_LONGEST_COMPLAINT]
