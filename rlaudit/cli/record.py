"""`rlaudit record -- COMMAND`: what a training really asks of vLLM, written down while it runs."""

import contextlib
import itertools
import json
import os
import re
import shlex
import shutil
import tempfile
import time
from pathlib import Path
from typing import Annotated

import typer

from rlaudit.cli.examples import epilog, unwrapped
from rlaudit.errors import NotFinished, UsageError
from rlaudit.recording.folder import (
    COPY,
    Settings,
    check_python_path,
    is_folder,
    place_folder,
    refuse_redacting,
    variables,
    write_folder,
)
from rlaudit.recording.own_programs import path_without
from rlaudit.recording.run import check_command, run
from rlaudit.recording.unreached import Onlooker
from rlaudit.recording.writers import is_private, refuse_planted
from rlaudit.secrets import learn_text
from rlaudit.text.say import answer, say

# The recorder lies in the recording: on a shared file system the processes of other nodes find both.
_FOLDER = "recorder"
_RECORDINGS = "recordings"
_NO_ENGINE = 3
_UNITS = {
    **{"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12},
    **{"ki": 1 << 10, "mi": 1 << 20, "gi": 1 << 30, "ti": 1 << 40},
}
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([kmgt]i?)?b?", re.IGNORECASE)
_SHARE = re.compile(r"(?:1/)?([1-9]\d*)")
_FUNCTION = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*:[^\W\d]\w*(?:\.[^\W\d]\w*)*")

app = typer.Typer(add_completion=False, rich_markup_mode=None)


# Options after the first word of the command belong to the command, with or without `--` before it.
@app.command("record", context_settings={"allow_interspersed_args": False}, epilog=unwrapped(epilog("record")))
def record(
    command: Annotated[
        list[str] | None, typer.Argument(metavar="COMMAND", help="Any command with its options; it runs unchanged.")
    ] = None,
    into: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Write the recording there. Default: a new folder in ./recordings."),
    ] = None,
    prompts: Annotated[
        str,
        typer.Option(
            metavar="1/N",
            help="Once the recording has 64 MiB, record only 1 prompt in N; `all` records every prompt. The training "
            "is not changed.",
        ),
    ] = "1/16",
    limit: Annotated[
        str,
        typer.Option(metavar="SIZE", help="Keep no more tokens when the recording has this size, as 500MB or 2GiB."),
    ] = "2GB",
    logprobs: Annotated[
        bool,
        typer.Option(
            "--logprobs",
            help="Also record logprobs that the training does not request. The engine has to compute them, which takes "
            "about 1 % of a step and rules out a fused sampler.",
        ),
    ] = False,
    trainer_function: Annotated[
        list[str] | None,
        typer.Option(
            metavar="MODULE:NAME",
            help="Your function that makes the trainer's logprobs of logits and token ids; repeatable.",
        ),
    ] = None,
    redact: Annotated[bool, typer.Option("--redact", hidden=True)] = False,
    export: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Run nothing: write the folder that records, for containers and clusters, and print its variables.",
        ),
    ] = None,
    merge: Annotated[
        bool,
        typer.Option(
            "--merge",
            help="Run nothing: copy the recordings of nodes without a shared folder, named in the place of COMMAND, "
            "into the folder --into.",
        ),
    ] = False,
    redacted_copy: Annotated[
        bool,
        typer.Option(
            "--redacted-copy",
            help="Run nothing: copy a recording into a new folder, both named in the place of COMMAND, to give it "
            "away. Hashes stand for token ids, text, names and paths. `compare` works on the copy, `--score` does not.",
        ),
    ] = False,
) -> int:
    """Record what a training asks of vLLM and what it gets.

    Runs any command unchanged; `rlaudit explain recorder` says what recording costs.
    The exit code is the command's, but 3 if the command ends with 0 and no vLLM engine was recorded.
    `rlaudit explain recording` prints what a recording holds.
    """
    if redact:
        raise UsageError(f"--redact is gone: record without it, then run {COPY}")
    settings = Settings(
        _one_in(prompts), _bytes(limit), logprobs, tuple(_function(name) for name in trainer_function or ())
    )
    if redacted_copy:
        return _redacted_copy(command or [])
    refuse_redacting(export or (into / _FOLDER if into is not None else None), os.environ)
    if export is not None:
        if command:
            raise UsageError("--export writes a folder and runs no command", "leave out one of the two")
        return _export(export, settings, into)
    if merge:
        return _merge(command or [], into)
    if not command:
        raise UsageError("no command to record", "rlaudit record -- python train.py, or --export DIR")
    _pass_over_own_programs(command[0])
    check_command(command[0])
    return _record(command, _place(into), settings)


def _pass_over_own_programs(word: str) -> None:
    path = path_without(os.environ, word)
    if path is not None:
        own = {name: shutil.which(name) for name in (word, "python")}
        # Also for this process, which finds the command by its own PATH.
        os.environ["PATH"] = path
        theirs = {name: shutil.which(name) for name in own}
        programs = [f"{name} is {theirs[name] or 'not found'}" for name in own if own[name] != theirs[name]]
        say(f"rlaudit's own environment, without vLLM, is left out of PATH: {', '.join(programs)}")


def _record(command: list[str], out: Path, settings: Settings) -> int:
    wanted = out / _FOLDER
    folder = place_folder(wanted, settings, os.environ)
    say(f"recording into {out}")
    if folder != wanted:
        say(
            f"others may write in {wanted.parent} or above it: the recorder lies in {folder}\n"
            "  processes on other hosts are recorded if they see that folder; otherwise name one of yours with --into"
        )
    onlooker = Onlooker(folder)
    environment = {**os.environ, **variables(folder, out, os.environ)}
    code = run(command, environment, onlooker.look)
    return _close(out, code, onlooker)


def _close(out: Path, code: int, onlooker: Onlooker) -> int:
    """Print the end of the recording, and return the exit code."""
    from rlaudit.recording.closing import closing, has_engine, recorded_here
    from rlaudit.recording.recording import is_recording, open_recording

    recording = None
    if is_recording(out):
        try:
            recording = open_recording(out)
        except NotFinished as error:
            say(str(error))
    recorded = recorded_here(recording)
    unreached = onlooker.unreached(recorded)
    for process in unreached:
        learn_text(" ".join(process.words))
    for sentence in closing(out, recording, unreached, onlooker.alive(recorded)):
        say(sentence)
    if code == 0 and not has_engine(recording):
        say(
            "no vLLM engine was recorded, so the exit code is 3, although the command ended with 0\n"
            "  an engine in a container, on another host or in a process that ran before is not seen from here:\n"
            "  rlaudit record --export DIR writes what records there"
        )
        return _NO_ENGINE
    return code


def _export(folder: Path, settings: Settings, into: Path | None) -> int:
    folder = _absolute(folder)
    refuse_planted(folder)
    if folder.is_dir() and any(folder.iterdir()) and not is_folder(folder):
        raise UsageError(f"{folder} holds something else, which could then be imported", "name a new folder")
    write_folder(folder, settings)
    if not is_private(folder):
        say(f"others may write in {folder.parent} or above it, and change what each Python of the training runs")
    # Written for a shell, so that it can be pasted or evaluated.
    path, out = shlex.quote(str(folder)), "OUT" if into is None else shlex.quote(str(_absolute(into)))
    answer(f"export PYTHONPATH={path}${{PYTHONPATH:+:$PYTHONPATH}}\nexport RLAUDIT_RECORD={out}")
    say(
        "set these for every process of the training, with the folder's path as that process sees it\n"
        "  OUT: a folder that each of them can write, and that holds no recording yet\n"
        f"  {folder} can be read by its owner alone; for processes of other users: chmod -R a+rX {path}\n"
        f"for the workers of a Ray cluster that runs already: ray.init(runtime_env={_runtime_env(folder, into)})"
    )
    return 0


def _runtime_env(folder: Path, into: Path | None) -> str:
    """Return the variables as JSON for Ray and `ray job submit --runtime-env-json`."""
    # Ray substitutes the worker's own PYTHONPATH (2.60, runtime_env.rst), so nothing on it is lost.
    path = f"{folder}{os.pathsep}${{PYTHONPATH}}"
    out = "OUT" if into is None else str(_absolute(into))
    return json.dumps({"env_vars": {"PYTHONPATH": path, "RLAUDIT_RECORD": out}})


def _merge(words: list[str], into: Path | None) -> int:
    from rlaudit.recording.closing import closing
    from rlaudit.recording.merge import merge
    from rlaudit.recording.recording import open_recording

    # Options after the first recording are not parsed, as they could be those of a command.
    if into is None and len(words) > 2 and words[-2] == "--into":
        *words, _, last = words
        into = Path(last)
    if into is None or len(words) < 2 or any(word.startswith("-") for word in words):
        raise UsageError("--merge takes recordings and a folder", "rlaudit record --merge A B --into C")
    out = _absolute(into)
    merged = merge([Path(word) for word in words], out)
    for sentence in (*merged, *closing(out, open_recording(out), (), ())):
        say(sentence)
    return 0


def _redacted_copy(words: list[str]) -> int:
    from rlaudit.tokens.recorded.redacted_rows import redact

    if len(words) != 2 or any(word.startswith("-") for word in words):
        raise UsageError("--redacted-copy takes a recording and a new folder", COPY)
    recording, out = (_absolute(Path(word)) for word in words)
    redact(recording, out)
    say(f"redacted copy in {out}; what stays, logprobs among it, is said by `rlaudit explain recording`")
    return 0


def _place(into: Path | None) -> Path:
    """Make the folder to record into. Raises UsageError if it holds a recording."""
    if into is None:
        return _new_folder(_absolute(Path(_RECORDINGS)))
    from rlaudit.recording.recording import is_recording

    out = _absolute(into)
    check_python_path(out)
    refuse_planted(out)
    if is_recording(out):
        raise UsageError(
            f"{out} holds a recording",
            "name another folder, or move it away. To record several commands together (a server, and its trainer), "
            f"run rlaudit record --export FOLDER --into {shlex.quote(str(into))} and set the variables it prints",
        )
    out.mkdir(mode=0o700, parents=True, exist_ok=True)
    with tempfile.TemporaryFile(dir=out):
        return out


def _new_folder(parent: Path) -> Path:
    check_python_path(parent)
    refuse_planted(parent)
    # With a umask of 0 it would be every user's, too.
    parent.mkdir(mode=0o775, parents=True, exist_ok=True)
    name = time.strftime("%Y%m%d-%H%M%S")
    for number in itertools.count(1):
        out = parent / (name if number == 1 else f"{name}-{number}")
        with contextlib.suppress(FileExistsError):
            out.mkdir(mode=0o700)
            return out
    raise AssertionError("numbers do not end")


def _absolute(path: Path) -> Path:
    return Path(os.path.abspath(path))  # noqa: PTH100 - Path.resolve would follow links, and other hosts see their targets elsewhere


def _one_in(share: str) -> int:
    match = _SHARE.fullmatch(share)
    # A bare number could be a share or a count, except 1, which is all either way.
    if share != "all" and (match is None or ("/" not in share and share != "1")):
        raise UsageError(f"--prompts {share!r} is no share", "write 1/16, or all")
    return 1 if match is None else int(match[1])


def _bytes(size: str) -> int:
    match = _SIZE.fullmatch(size.strip())
    count = int(float(match[1]) * _UNITS[(match[2] or "").lower()]) if match else 0
    if count < 1:
        raise UsageError(f"--limit {size!r} is no size", "write 2GB, 500MB or 1GiB")
    return count


def _function(name: str) -> str:
    if _FUNCTION.fullmatch(name) is None:
        raise UsageError(f"--trainer-function {name!r} is none", "write MODULE:NAME, as my_trainer.loss:token_logprobs")
    return name
