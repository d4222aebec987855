"""The folder that brings the recorder into a training: what Python and vLLM look for on PYTHONPATH, and nothing else.

It holds the recorder, what it needs to know a secret, and its two doors: an entry point of vLLM's, and an import hook
for runs in which VLLM_PLUGINS leaves that entry point out. No other module of rlaudit's, or of the packages that it
needs, can be imported from it: they would replace the training's own.
Each Python of the training runs what lies in it, so it is where only the user and root may write (`writers.py`).
"""

import contextlib
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import rlaudit
from rlaudit import secrets
from rlaudit.errors import UsageError
from rlaudit.files.cache_folder import cache_folder
from rlaudit.files.parse_json import parse_json
from rlaudit.recording.shipped.rlaudit_frameworks import FUNCTIONS, MODULES
from rlaudit.recording.shipped.rlaudit_recorder import FRONT_ENDS, PARTS
from rlaudit.recording.writers import is_private

RECORDER = Path(__file__).parent / "shipped" / "rlaudit_recorder.py"
_ENTRY_POINTS = "[vllm.general_plugins]\nrlaudit_recorder = rlaudit_recorder:register\n"
_OLD_RELEASES = "rlaudit_recorder-*.dist-info"
# What stands in the place of redaction while recording.
COPY = "rlaudit record --redacted-copy RECORDING OUT"


@dataclass(frozen=True)
class Settings:
    """What is recorded."""

    # One prompt in so many is kept once the first 64 MiB are written.
    prompts: int = 16
    # Bytes in the folder of the recording.
    limit: int = 2 * 10**9
    # Whether the engine computes logprobs that the training did not ask for.
    logprobs: bool = False
    # MODULE:NAME of functions in which a trainer makes its logprobs, beside those that the recorder knows.
    trainer_functions: tuple[str, ...] = ()


def place_folder(wanted: Path, settings: Settings, environment: Mapping[str, str]) -> Path:
    """Write the folder for processes that have this environment, and return where it lies.

    That is the wanted place if only the user and root may write there, and otherwise the user's cache. Raises
    UsageError if that is no such place either, or if the wanted one is a link.
    """
    if wanted.is_symlink():
        raise UsageError(f"{wanted} is a link", "remove it, or name another folder with --into")
    contents = _contents(settings, alone=not _others(environment))
    if is_private(wanted if wanted.exists() else wanted.parent):
        _write(wanted, contents)
        return wanted
    return _in_the_cache(contents)


def _in_the_cache(contents: Mapping[str, str]) -> Path:
    # Trainings that are recorded alike share it, so that it stays for processes that outlive their command.
    name = hashlib.blake2b(json.dumps(contents).encode(), digest_size=8).hexdigest()
    roots = (cache_folder(), Path(tempfile.gettempdir()) / f"rlaudit-{os.geteuid()}")
    for parent in (root / "recorder" for root in roots):
        with contextlib.suppress(OSError):
            for folder in (parent.parent, parent):
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            if is_private(parent) and os.pathsep not in str(parent):
                folder = parent / name
                if not _holds(folder, contents):
                    new = Path(tempfile.mkdtemp(dir=parent))
                    _write(new, contents)
                    with contextlib.suppress(OSError):  # another command was faster, or it was edited
                        new.rename(folder)
                    folder = folder if _holds(folder, contents) else new
                return folder
    raise UsageError(
        f"the recorder can lie neither in {roots[0]} nor in {roots[1]}: others may write there",
        "name a folder of yours with --into, in which and above which no other user may write",
    )


def _holds(folder: Path, contents: Mapping[str, str]) -> bool:
    """Return whether a folder was written with these contents."""
    try:
        return all((folder / name).read_text(encoding="utf-8") == text for name, text in contents.items())
    except (OSError, UnicodeDecodeError):
        return False


def write_folder(folder: Path, settings: Settings) -> None:
    """Write the folder, readable by its owner alone. An older one in its place is replaced.

    Raises UsageError for a path that cannot stand in PYTHONPATH, and OSError.
    """
    _write(folder, _contents(settings, alone=False))


def _write(folder: Path, contents: Mapping[str, str]) -> None:
    check_python_path(folder)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder.chmod(0o700)
    # Two releases side by side would be two entry points.
    for old in folder.glob(_OLD_RELEASES):
        shutil.rmtree(old)
    for name, text in contents.items():
        path = folder / name
        path.parent.mkdir(mode=0o700, exist_ok=True)
        path.unlink(missing_ok=True)
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
            file.write(text)


def check_python_path(folder: Path) -> None:
    """Raise UsageError for a path that PYTHONPATH would cut in two."""
    if os.pathsep in str(folder):
        raise UsageError(f"{folder} has a {os.pathsep!r}, at which PYTHONPATH is split", "name another folder")


def is_folder(folder: Path) -> bool:
    """Return whether a folder was written here, by any release."""
    return (folder / RECORDER.name).is_file() and (folder / "settings.json").is_file()


def refuse_redacting(folder: Path | None, environment: Mapping[str, str]) -> None:
    """Raise UsageError if an older release set a folder to redact while it records: its processes expect hashes.

    folder: one that is to be written. environment: of the command, whose PYTHONPATH may hold others.
    """
    others = [Path(place) for place in environment.get("PYTHONPATH", "").split(os.pathsep) if place]
    for place in (*([] if folder is None else [folder]), *others):
        if is_folder(place) and _settings_of(place).get("redact"):
            raise UsageError(
                f"{place} was written by an older release to redact while it records, which this one does not",
                f"remove it, record, and run {COPY}",
            )


def _settings_of(folder: Path) -> Mapping[str, Any]:
    try:
        settings = parse_json((folder / "settings.json").read_bytes())
    except (OSError, ValueError):
        return {}
    return settings if isinstance(settings, dict) else {}


def variables(folder: Path, out: Path, environment: Mapping[str, str]) -> dict[str, str]:
    """Return the two variables that switch the recorder on, for processes that have this environment."""
    path = os.pathsep.join([str(folder), *_others(environment)])
    return {"PYTHONPATH": path, "RLAUDIT_RECORD": str(out)}


def _others(environment: Mapping[str, str]) -> list[str]:
    """Return the entries of PYTHONPATH as they are: an empty one is the working directory, an empty PYTHONPATH none."""
    path = environment.get("PYTHONPATH")
    # Inside a command that is being recorded: this recording takes over.
    return [place for place in path.split(os.pathsep) if not (place and is_folder(Path(place)))] if path else []


def _contents(settings: Settings, alone: bool) -> dict[str, str]:
    """Return the files. alone: whether PYTHONPATH was empty before the folder was put on it."""
    release = rlaudit.__version__
    targets = (*FRONT_ENDS, *FUNCTIONS, *settings.trainer_functions)
    targets = (*targets, *(target for part in PARTS.values() for target in part))
    modules = sorted({"vllm", *MODULES, *(target.partition(":")[0] for target in targets)})
    about = f"{RECORDER.stem}-{release}.dist-info"
    return {
        **{file.name: file.read_text(encoding="utf-8") for file in RECORDER.parent.glob("*.py")},
        # What a secret is stands in one place.
        "rlaudit_secrets.py": Path(secrets.__file__).read_text(encoding="utf-8"),
        "rlaudit_watched.py": f"MODULES = frozenset({modules!r})\nALONE = {alone!r}\n",
        "settings.json": json.dumps(asdict(settings)) + "\n",
        f"{about}/METADATA": f"Metadata-Version: 2.1\nName: rlaudit-recorder\nVersion: {release}\n",
        f"{about}/entry_points.txt": _ENTRY_POINTS,
    }
