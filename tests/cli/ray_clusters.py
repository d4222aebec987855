"""Ray clusters on this machine: nodes that are processes, which can be killed."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from laboratories import PATIENCE_SECONDS

from rlaudit.engines.cells.guardian import process

# What a node of a cluster takes beside its processes; the default is a third of the machine's memory each.
STORE_BYTES = 80 * 2**20


@contextmanager
def cluster_of(nodes: int, variables: Mapping[int, Mapping[str, str]] | None = None) -> Iterator[Any]:
    """A cluster of so many nodes with a processor each, and a head without one; `variables` are those of some nodes,
    counted from 0."""
    from ray.cluster_utils import Cluster

    cluster = Cluster(
        initialize_head=True,
        head_node_args={"num_cpus": 0, "object_store_memory": STORE_BYTES, "include_dashboard": False},
    )
    try:
        for number in range(nodes):
            own = (variables or {}).get(number)
            cluster.add_node(
                num_cpus=1, object_store_memory=STORE_BYTES, env_vars=dict(own) if own else None, wait=False
            )
        cluster.wait_for_nodes(PATIENCE_SECONDS)
        yield cluster
    finally:
        cluster.shutdown()


def running_node(cluster: Any) -> Any:
    """The node whose worker runs a cell."""
    return next(node for node in cluster.list_all_nodes() if workers_on(node))


def kill_node(cluster: Any, node: Any) -> None:
    """What a power cut does to a node: nobody on it says good-bye."""
    cluster.remove_node(node, allow_graceful=False)


def workers(cluster: Any) -> list[int]:
    """Ray's worker processes that run a cell of this cluster: other tests have clusters of their own."""
    return [worker for node in cluster.list_all_nodes() for worker in workers_on(node)]


def workers_on(node: Any) -> list[int]:
    """Those of one node."""
    running = [int(entry.name) for entry in Path("/proc").iterdir() if _command(entry).startswith(b"ray::rlaudit:")]
    return [worker for worker in running if _parent(worker) == _raylet(node)]


def _command(entry: Path) -> bytes:
    try:
        return (entry / "cmdline").read_bytes() if entry.name.isdigit() else b""
    except OSError:
        return b""


def _parent(pid: int) -> int | None:
    found = process(pid)
    return None if found is None else found.parent


def _raylet(node: Any) -> int:
    return int(node.all_processes["raylet"][0].process.pid)
