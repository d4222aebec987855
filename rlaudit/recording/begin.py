"""Where a recording goes and where its recorder lies, before anything is recorded.

Behind the command `rlaudit record` and the function `rlaudit.record`.
"""

import contextlib
import itertools
import os
import re
import shlex
import tempfile
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from rlaudit.errors import UsageError
from rlaudit.recording.folder import Settings, check_python_path, place_folder, refuse_redacting, variables
from rlaudit.recording.writers import refuse_planted

# The recorder lies in the recording: on a shared file system the processes of other nodes find both.
FOLDER = "recorder"
_RECORDINGS = "recordings"
_UNITS = {
    **{"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12},
    **{"ki": 1 << 10, "mi": 1 << 20, "gi": 1 << 30, "ti": 1 << 40},
}
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([kmgt]i?)?b?", re.IGNORECASE)
_SHARE = re.compile(r"(?:1/)?([1-9]\d*)")
_FUNCTION = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*:[^\W\d]\w*(?:\.[^\W\d]\w*)*")


@dataclass(frozen=True)
class Begun:
    """A recording to which nothing is written yet."""

    # Its folder.
    out: Path
    # Where the recorder lies, and whether others may write in the recording's folder, so that it lies elsewhere.
    recorder: Path
    is_elsewhere: bool
    # What switches it on.
    variables: Mapping[str, str]


def begin(into: Path | None, settings: Settings, environment: Mapping[str, str]) -> Begun:
    """Make the folder of a recording and put the recorder there. into: None for a new folder in ./recordings.

    environment: of the processes that are to be recorded. Raises UsageError for a folder that holds a recording
    already, or cannot be one.
    """
    refuse_redacting(None if into is None else into / FOLDER, environment)
    out = _place(into)
    wanted = out / FOLDER
    recorder = place_folder(wanted, settings, environment)
    return Begun(out, recorder, recorder != wanted, variables(recorder, out, environment))


def settings_of(prompts: str, limit: str, logprobs: bool, trainer_functions: Iterable[str]) -> Settings:
    """Return what is recorded, as options say it. Raises UsageError for what is no share, size or function."""
    return Settings(_one_in(prompts), _bytes(limit), logprobs, tuple(map(_function, trainer_functions)))


def absolute(path: Path) -> Path:
    """Return the path with links as they are: other hosts see their targets elsewhere."""
    return Path(os.path.abspath(path))  # noqa: PTH100 - Path.resolve would follow links


def _place(into: Path | None) -> Path:
    if into is None:
        return _new_folder(absolute(Path(_RECORDINGS)))
    from rlaudit.recording.recording import is_recording

    out = absolute(into)
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
