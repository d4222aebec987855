"""A log read by a Ray cluster: a task is a file, and what it returns are sums that add.

The nodes have to see the files under the same names, and have this rlaudit. The driver puts the parts together in the
order of the files, so the report is that of one machine, to the last bit.
"""

import contextlib
import os
import socket
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from rlaudit.diagnosis.compare_settings import CompareSettings
from rlaudit.diagnosis.read_log import LogPart, read_file
from rlaudit.engines.cells.on_ray import connected, first_line
from rlaudit.errors import NotFinished
from rlaudit.files.own_sources import SAME_ON_EVERY_NODE, sources_digest
from rlaudit.files.remote_log import exists, is_remote
from rlaudit.tokens.export import Part
from rlaudit.tokens.open_table import TokenTable, all_exports

ReadFiles = Callable[[TokenTable, Sequence[Path], CompareSettings], Iterator[LogPart]]

# Ray repeats a task whose node or worker is lost.
REPEATS = 2
# Parts that wait for their turn are kept by Ray: of 100 MB each, those of many files would fill its store.
AHEAD_OF_EACH_PROCESSOR = 2


@contextlib.contextmanager
def ray_cluster(address: str) -> Iterator[ReadFiles]:
    """Return what reads files on the nodes of the cluster at this address. Raises NotFinished if there is none."""
    ray = connected(address)
    try:
        yield lambda table, files, settings: _parts(ray, table, files, settings)
    finally:
        ray.shutdown()


def _parts(ray: Any, table: TokenTable, files: Sequence[Path], settings: CompareSettings) -> Iterator[LogPart]:
    """Yield the parts in the order of the files. Raises NotFinished for a file that no node could read."""
    processors = max(1, int(ray.cluster_resources().get("CPU", 0)))
    task = ray.remote(_read_on_node).options(name="rlaudit: compare", num_cpus=1, max_retries=REPEATS)
    # A read-only view of a dictionary cannot be sent.
    part = replace(table.part, where=dict(table.part.where))
    driver = (str(Path.cwd()), sources_digest())
    left = deque(files)
    under_way: deque[tuple[Path, Any]] = deque()
    while left or under_way:
        while left and len(under_way) < AHEAD_OF_EACH_PROCESSOR * processors:
            file = left.popleft()
            under_way.append((file, task.remote(table.export.name, file, part, settings, len(files), driver)))
        file, answer = under_way.popleft()
        try:
            yield ray.get(answer)
        except ray.exceptions.RayTaskError as error:
            raise error.cause if isinstance(error.cause, Exception) else error from None
        except ray.exceptions.RayError as error:
            raise NotFinished(
                f"{file} was not read: its node or worker was lost {1 + REPEATS} times: {first_line(error)}",
                "without --executor ray this machine reads it",
            ) from error


def _read_on_node(
    export: str, file: Path, part: Part, settings: CompareSettings, files: int, driver: tuple[str, str]
) -> LogPart:
    """Read one file as the driver would. driver: its working folder, and the digest of its rlaudit.

    Raises NotFinished if this node has another rlaudit or does not see the file.
    """
    folder, sources = driver
    node = socket.gethostname()
    if sources != sources_digest():
        raise NotFinished(f"the rlaudit of {node} is not the one that runs this command", SAME_ON_EVERY_NODE)
    if not is_remote(file) and Path(folder).is_dir():
        os.chdir(folder)
    if not exists(file):
        raise NotFinished(f"{node} does not see {file}", "every node must see the log, under the same name")
    return read_file(all_exports()[export], file, part, settings, files)
