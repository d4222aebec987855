"""A log read by a Ray cluster: each task keeps the parts of a share of its files, where all nodes see them.

A task is `rlaudit compare LOG --shard I/N --state DIR` on a processor of a node. Parts are kept file by file: a share
whose node is lost is begun again elsewhere and reads what is missing. Nothing is pickled but text, and nothing is
judged here: the machine that asked puts the parts together, in the order of their names.
"""

import contextlib
import io
import json
import os
import socket
import uuid
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import rlaudit
from rlaudit.engines.cells.ray_connection import connected, first_line
from rlaudit.errors import NotFinished
from rlaudit.parse_json import parse_json

# By Ray, when a node or its worker is lost.
STARTS_AGAIN = 2


def read_on_ray(address: str, words: Sequence[str], state: Path, files: int, note: Callable[[str], None]) -> None:
    """Keep the parts of a log of so many files in `state`. words: the command that reads it, without its shard.

    Raises NotFinished where there is no cluster, `state` cannot be written to, a node does not see what this machine
    sees, or a share is not read.
    """
    with _mark(state) as mark:
        ray = connected(address)
        try:
            of = max(1, min(files, int(ray.cluster_resources().get("CPU", 0))))
            task = ray.remote(read_share).options(name="rlaudit: compare", num_cpus=1, max_retries=STARTS_AGAIN)
            asked = [
                task.remote([*words, "--shard", f"{number}/{of}"], str(Path.cwd()), str(mark), rlaudit.__version__)
                for number in range(1, of + 1)
            ]
            for number, answer in enumerate(asked, 1):
                note(f"  share {number} of {of} was read on {_node(ray, answer, f'share {number} of {of}')}")
        finally:
            ray.shutdown()


def _node(ray: Any, answer: Any, share: str) -> str:
    """Where a share was read. Raises NotFinished where it was not."""
    try:
        told = parse_json(ray.get(answer))
    except ray.exceptions.RayError as error:
        raise NotFinished(
            f"{share} was lost {1 + STARTS_AGAIN} times with its node or worker: {first_line(error)}",
            "the same command reads what is missing",
        ) from error
    if told["trouble"]:
        raise NotFinished(
            f"{share} was not read: {told['node']}: {told['trouble']}",
            "Log, --state and this rlaudit have to be there on every node; without that, use --shard.",
        )
    return str(told["node"])


@contextlib.contextmanager
def _mark(state: Path) -> Iterator[Path]:
    """A file in `state` by which a node knows that it sees the same folder. Raises NotFinished."""
    mark = state / f".on-ray-{uuid.uuid4().hex}"
    try:
        state.mkdir(parents=True, exist_ok=True)
        mark.touch()
    except OSError as error:
        raise NotFinished(f"{state} cannot keep what is read: {error}", "give --state another folder") from error
    try:
        yield mark
    finally:
        with contextlib.suppress(OSError):
            mark.unlink()


def read_share(words: Sequence[str], folder: str, mark: str, version: str) -> str:
    """On a node: run the command in the driver's folder. Says where it ran and what went wrong."""
    from rlaudit.cli.app import run

    told = {"node": socket.gethostname(), "trouble": ""}
    said = io.StringIO()
    if version != rlaudit.__version__:
        told["trouble"] = f"it has rlaudit {rlaudit.__version__}, and {version} asks"
    elif not Path(mark).exists():
        told["trouble"] = f"it does not see {Path(mark).parent}"
    elif not Path(folder).is_dir():
        told["trouble"] = f"it does not see {folder}"
    else:
        os.chdir(folder)
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            code = run(list(words))
        told["trouble"] = "" if code == 0 else " ".join(said.getvalue().split()) or f"it ended with {code}"
    return json.dumps(told)
