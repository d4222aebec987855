"""The folder that brings the recorder into a training: what Python and vLLM look for on PYTHONPATH, and nothing else.

It holds the recorder, what it needs to know a secret, and its two doors: an entry point of vLLM's, and an import hook
for runs in which VLLM_PLUGINS leaves that entry point out. No other module of rlaudit's, or of the packages that it
needs, can be imported from it: they would replace the training's own.
"""

import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

import rlaudit
from rlaudit import secrets
from rlaudit.errors import UsageError
from rlaudit.recorder.public_words import public_words

RECORDER = Path(__file__).parent / "shipped" / "rlaudit_recorder.py"
_ENTRY_POINTS = "[vllm.general_plugins]\nrlaudit_recorder = rlaudit_recorder:register\n"
_OLD_RELEASES = "rlaudit_recorder-*.dist-info"


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
    # Whether token ids, text and names are hashed under the user's key as they are written.
    redact: bool = False
    # Bytes of the ring with the last steps of all requests, of a process that takes some; 0: none.
    ring: int = 16 * 10**6


def write_folder(folder: Path, settings: Settings) -> None:
    """Write the folder, readable by its owner alone. An older one in its place is replaced.

    Raises UsageError for a path that cannot stand in PYTHONPATH, and OSError.
    """
    check_python_path(folder)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder.chmod(0o700)
    # Two releases side by side would be two entry points.
    for old in folder.glob(_OLD_RELEASES):
        shutil.rmtree(old)
    for name, text in _contents(settings).items():
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


def variables(folder: Path, out: Path, environment: Mapping[str, str]) -> dict[str, str]:
    """Return the two variables that switch the recorder on, for processes that have this environment."""
    others = [place for place in environment.get("PYTHONPATH", "").split(os.pathsep) if place]
    # Inside a command that is being recorded: this recording takes over.
    others = [place for place in others if not is_folder(Path(place))]
    return {"PYTHONPATH": os.pathsep.join([str(folder), *others]), "RLAUDIT_RECORD": str(out)}


def _contents(settings: Settings) -> dict[str, str]:
    release = rlaudit.__version__
    about = f"{RECORDER.stem}-{release}.dist-info"
    return {
        **{file.name: file.read_text(encoding="utf-8") for file in RECORDER.parent.glob("*.py")},
        # What a secret is stands in one place.
        "rlaudit_secrets.py": Path(secrets.__file__).read_text(encoding="utf-8"),
        "settings.json": json.dumps(asdict(settings)) + "\n",
        **({"public.json": json.dumps(public_words()) + "\n"} if settings.redact else {}),
        f"{about}/METADATA": f"Metadata-Version: 2.1\nName: rlaudit-recorder\nVersion: {release}\n",
        f"{about}/entry_points.txt": _ENTRY_POINTS,
    }
