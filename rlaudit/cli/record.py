"""`rlaudit record -- COMMAND`: what a training really asks of vLLM, written down while it runs."""

import json
import os
import shlex
import shutil
from pathlib import Path
from typing import Annotated

import typer

from rlaudit.cli.examples import epilog, unwrapped
from rlaudit.errors import NotFinished, UsageError
from rlaudit.recording.begin import Begun, absolute, begin, settings_of
from rlaudit.recording.folder import COPY, Settings, is_folder, refuse_redacting, write_folder
from rlaudit.recording.own_programs import path_without
from rlaudit.recording.run import check_command, run
from rlaudit.recording.unreached import Onlooker
from rlaudit.recording.writers import is_private, refuse_planted
from rlaudit.secrets import learn_text
from rlaudit.text.say import answer, say

_NO_ENGINE = 3

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
            help="Also record logprobs that the training does not request. The engine then computes them, which takes "
            "about 1 % of a step, and cannot use a fused sampler.",
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
            "away. Token ids, text, names and paths become hashes. `compare` can read the copy; its `--score` cannot.",
        ),
    ] = False,
) -> int:
    """Record what a training requests from vLLM, and what vLLM does.

    Runs any command unchanged; `rlaudit explain recorder` says what recording costs.
    The exit code is the command's; it is 3 if the command ends with 0 and no vLLM engine was recorded.
    `rlaudit explain recording` prints what a recording holds.
    """
    if redact:
        raise UsageError(f"--redact is gone: record without it, then run {COPY}")
    settings = settings_of(prompts, limit, logprobs, trainer_function or ())
    if redacted_copy:
        return _redacted_copy(command or [])
    if export is not None:
        refuse_redacting(export, os.environ)
        if command:
            raise UsageError("--export writes a folder and runs no command", "leave out one of the two")
        return _export(export, settings, into)
    if merge:
        return _merge(command or [], into)
    if not command:
        raise UsageError("no command to record", "rlaudit record -- python train.py, or --export DIR")
    _pass_over_own_programs(command[0])
    check_command(command[0])
    return _record(command, begin(into, settings, os.environ))


def _pass_over_own_programs(word: str) -> None:
    path = path_without(os.environ, word)
    if path is not None:
        own = {name: shutil.which(name) for name in (word, "python")}
        # Also for this process, which finds the command by its own PATH.
        os.environ["PATH"] = path
        theirs = {name: shutil.which(name) for name in own}
        programs = [f"{name} is {theirs[name] or 'not found'}" for name in own if own[name] != theirs[name]]
        say(f"rlaudit's own environment, without vLLM, is left out of PATH: {', '.join(programs)}")


def _record(command: list[str], begun: Begun) -> int:
    say(f"recording into {begun.out}")
    if begun.is_elsewhere:
        say(
            f"others may write in {begun.out} or above it: the recorder lies in {begun.recorder}\n"
            "  processes on other hosts are recorded if they see that folder; otherwise name one of yours with --into"
        )
    onlooker = Onlooker(begun.recorder)
    code = run(command, {**os.environ, **begun.variables}, onlooker.look)
    return _close(begun.out, code, onlooker)


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
    folder = absolute(folder)
    refuse_planted(folder)
    if folder.is_dir() and any(folder.iterdir()) and not is_folder(folder):
        raise UsageError(f"{folder} holds something else, which could then be imported", "name a new folder")
    write_folder(folder, settings)
    if not is_private(folder):
        say(f"others may write in {folder.parent} or above it, and change what each Python of the training runs")
    # Written for a shell, so that it can be pasted or evaluated.
    path, out = shlex.quote(str(folder)), "OUT" if into is None else shlex.quote(str(absolute(into)))
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
    out = "OUT" if into is None else str(absolute(into))
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
    out = absolute(into)
    merged = merge([Path(word) for word in words], out)
    for sentence in (*merged, *closing(out, open_recording(out), (), ())):
        say(sentence)
    return 0


def _redacted_copy(words: list[str]) -> int:
    from rlaudit.tokens.recorded.redacted_rows import redact

    if len(words) != 2 or any(word.startswith("-") for word in words):
        raise UsageError("--redacted-copy takes a recording and a new folder", COPY)
    recording, out = (absolute(Path(word)) for word in words)
    redact(recording, out)
    say(f"redacted copy in {out}; what stays, logprobs among it, is said by `rlaudit explain recording`")
    return 0
