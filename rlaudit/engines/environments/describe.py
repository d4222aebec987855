"""Asks an interpreter for its version, packages and visible paths, through any command in front of it."""

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
from rlaudit.files.parse_json import parse_json

# The worker and the scripts that it loads use its syntax (worker.py). vLLM 0.8.5 is the last engine that runs on it.
OLDEST_PYTHON = (3, 9)
# Long enough to import an engine from a slow disk, but not to fetch an image first.
SECONDS_TO_ANSWER = 300.0
_SCRIPT = Path(__file__).with_name("describe_interpreter.py")
# Put before a program for `-c`: it leaves out the working directory, which may be a stranger's checkout, before any
# other import; the command in front still runs in it. `-I` would leave out the PYTHONPATH of an interpreter that is
# a script, too, and Python 2, which has to say that it is too old, does not know it.
WITHOUT_WORKING_FOLDER = "import sys;sys.path[:]=filter(None,sys.path);"
# One line without quotes or significant blanks: conda's `run` refuses arguments of more than one line.
_LOADER = WITHOUT_WORKING_FOLDER + "import binascii;exec(binascii.unhexlify(sys.argv[1]))"
_MARKER = "rlaudit-interpreter "
_LINES_OF_COMPLAINT = 3
_LONGEST_COMPLAINT = 400


@dataclass(frozen=True)
class Interpreter:
    """An interpreter's description of itself."""

    # Of Python and of the packages that decide a logprob.
    versions: Mapping[str, str]
    # `name==version` of Python and of every installed package.
    lock: tuple[str, ...]
    site_packages: Path
    prefix: Path
    # The CUDA that torch was built for, empty for none; None if torch is missing or does not state it.
    torch_cuda: str | None = None
    # Variables that the command sets and a cell does not get.
    dropped: Mapping[str, str] = field(default_factory=dict)
    # The requested paths that it cannot use.
    out_of_sight: tuple[str, ...] = ()
    # The first error among the requested imports.
    import_error: str | None = None


def describe(
    command: Command,
    folder: Path | None = None,
    to_read: Sequence[Path] = (),
    imports: Sequence[str] = (),
) -> Interpreter:
    """Ask an interpreter for its packages, and whether it can use `folder` and the paths `to_read`, and the imports.

    Raises NotFinished if it does not run or does not answer, UsageError if its Python is too old or if more than one
    starts.
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
        "read": [str(path) for path in to_read],
        "import": list(imports),
    }
    token_files = [] if folder is None else [folder / token, folder / f"{token}.answer"]
    try:
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
            token_files[0].write_text(token)
        answer = _answer(command, name, questions)
    finally:
        for file in token_files:
            file.unlink(missing_ok=True)
    if answer["too_old"]:
        oldest = ".".join(map(str, OLDEST_PYTHON))
        raise UsageError(
            f"{name} is Python {answer['python']}, expected {oldest} or later", "Name another interpreter."
        )
    return Interpreter(
        versions={"python": answer["python"], **answer["versions"]},
        lock=(f"python=={answer['python']}", *answer["lock"]),
        site_packages=Path(answer["site_packages"]),
        prefix=Path(answer["prefix"]),
        torch_cuda=answer["torch_cuda"],
        dropped=answer["dropped"],
        out_of_sight=tuple(answer["out_of_sight"]),
        import_error=answer["import_error"],
    )


def _answer(command: Command, name: str, questions: Mapping[str, Any]) -> dict[str, Any]:
    _require_program(command, name)
    program = _SCRIPT.read_bytes().hex()
    with tempfile.TemporaryDirectory(prefix="rlaudit-describe-") as scratch:
        output, errors, usage = (Path(scratch) / file for file in ("stdout", "stderr", "usage.json"))
        with output.open("wb") as stdout, errors.open("wb") as stderr:
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
            for line in output.read_text(encoding="utf-8", errors="replace").splitlines()
            if _MARKER in line
        ]
        if not in_time:
            raise NotFinished(
                f"{name} did not answer within {SECONDS_TO_ANSWER:.0f} s", "An image is best fetched beforehand."
            )
        if not answers:
            code = parse_json(usage.read_text())["exit_code"] if usage.exists() else None
            complaint = _last_lines(errors) or _last_lines(output) or "it said nothing"
            raise NotFinished(
                f"{name} does not run a Python interpreter: it {_ending(code)}; {complaint}",
                f"Expected to work by hand: {name} -c 'print(1)'. An image that has an entrypoint needs "
                "--entrypoint python3.",
            )
    if len(answers) > 1:
        raise UsageError(
            f"{name} starts {len(answers)} interpreters, expected one", "Ask for one task: srun --ntasks=1."
        )
    answer: dict[str, Any] = parse_json(answers[0])
    return answer


def _require_program(command: Command, name: str) -> None:
    if shutil.which(command[0]) is not None:
        return
    exists = Path(command[0]).exists()
    why = f"{command[0]} cannot be executed" if exists else f"there is no program {command[0]}"
    raise NotFinished(f"{name} does not run: {why}", "Name a Python interpreter, or a command line in front of one.")


def _ending(code: int | None) -> str:
    if code is None:
        return "could not be started"
    return f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with code {code}"


def _last_lines(file: Path) -> str:
    lines = [" ".join(line.split()) for line in file.read_text(encoding="utf-8", errors="replace").splitlines()]
    return " / ".join([line for line in lines if line][-_LINES_OF_COMPLAINT:])[:_LONGEST_COMPLAINT]
