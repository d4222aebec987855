"""Ray clusters on this machine: nodes that are processes, which can be killed."""

import os
import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

# What a node of a cluster takes beside its processes; the default is a third of the machine's memory each.
STORE_BYTES = 80 * 2**20


@contextmanager
def cluster_of(nodes: int, variables: Mapping[int, Mapping[str, str]] | None = None) -> Iterator[Any]:
    """A cluster of so many nodes with a processor each, and a head without one; `variables` are those of some nodes,
    counted from 0."""
    from ray.cluster_utils import Cluster

    cluster = Cluster(
        initialize_head=True, head_node_args={"num_cpus": 0, "object_store_memory": STORE_BYTES, "include_dashboard": False}
    )
    try:
        for number in range(nodes):
            own = (variables or {}).get(number)
            cluster.add_node(num_cpus=1, object_store_memory=STORE_BYTES, env_vars=dict(own) if own else None)
        cluster.wait_for_nodes()
        yield cluster
    finally:
        cluster.shutdown()


def kill_node(cluster: Any, place: int) -> None:
    """What a power cut does to a node: nobody on it says good-bye."""
    node = cluster.list_all_nodes()[place]
    cluster.remove_node(node, allow_graceful=False)


def workers() -> list[int]:
    """Ray's worker processes that run a cell."""
    found = []
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{entry}/cmdline", "rb") as line:
                if line.read().startswith(b"ray::rlaudit:"):
                    found.append(int(entry))
        except OSError:
            continue
    return found


def kill_a_worker() -> int:
    """End the worker of one cell; returns its number."""
    (worker, *_) = workers()
    os.kill(worker, signal.SIGKILL)
    return worker
