"""W&B: `wandb://ENTITY/PROJECT/RUN_ID`, a run of the server that W&B's own package is logged in to.

Written after the documented public API (`wandb.Api().run(...).scan_history()`, the unsampled history) and tried on a
stand-in alone: no server was at hand.
"""

from collections.abc import Iterator
from pathlib import Path

from rlaudit.curves.run_log import Problems, Row, RunReader
from rlaudit.errors import NotFinished
from rlaudit.files.install_beside import install_beside

# A path has one of the two slashes left.
SCHEME = "wandb:/"


def recognises(path: Path, start: bytes) -> bool:
    """Return whether it names a run of a server."""
    return str(path).startswith(SCHEME)


def read(path: Path, problems: Problems) -> Iterator[Row]:
    """Yield the logging calls. Raises NotFinished without the package, the run or the right to read it."""
    run = str(path).removeprefix(SCHEME).strip("/")
    try:
        import wandb
    except ImportError as error:
        raise NotFinished(f"wandb://{run} needs the package wandb ({error})", install_beside("wandb")) from error
    try:
        for number, entry in enumerate(wandb.Api().run(run).scan_history(), start=1):
            values = {key: value for key, value in entry.items() if not key.startswith("_")}
            yield Row(f"row {number} of the history", entry.get("_step"), values)
    except (wandb.errors.Error, OSError, ValueError) as error:
        raise NotFinished(f"W&B cannot read the run {run}: {' '.join(str(error).split())[:300]}") from error


READER = RunReader(
    name="wandb",
    title="W&B run of a server",
    recognises=recognises,
    read=read,
    own_step="_step",
    rank=20,
)
