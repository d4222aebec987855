"""A Ray cluster: a task for each cell, on a node that is like the others.

A task asks for the cell's GPUs, which Ray finds on one node; on processors it asks for a whole node. The run directory,
the model and the environments have to lie where every node sees them under the same names. Each start of a cell has a
folder of its own until it has ended, so that a node that is lost and goes on writing spoils nothing. A cell whose node
or worker was lost is started again, and the user is told.

A task runs no engine (ray_node.py), and a driver that is killed takes its tasks with it, whose guardians end the
engines.
"""

import json
import logging
import os
import shutil
import socket
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, redirect_stdout
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

import rlaudit
from rlaudit.engines.cells.cell import Cell, describe, ended
from rlaudit.engines.cells.executor import Asked, Note, OnEvent, unheard
from rlaudit.engines.cells.inherited_variables import deciding
from rlaudit.engines.cells.launch import EventTail, Failure, Outcome
from rlaudit.engines.cells.ray_node import look, run
from rlaudit.engines.hardware.accelerator import Accelerator
from rlaudit.engines.hardware.accelerator_identity import accelerator_identity
from rlaudit.errors import NotFinished, RlauditError

CONNECT_SECONDS = 10.0
# A cell that takes node after node with it is the fault of the cell.
STARTS = 3
LOOK_SECONDS = 60.0
# A file that one node has closed is seen by another when its file system says so; NFS looks again within a minute.
SEEN_WITHIN_SECONDS = 90.0
# What an engine needs to be ended, and as much again for Ray.
CANCEL_SECONDS = 30.0
DRAFTS = ".on-ray-"


def connected(address: str) -> Any:
    """Return the module `ray`, connected to the cluster at this address, or to this machine's if it is empty.

    Raises NotFinished if Ray is not installed, or there is no cluster.
    """
    try:
        import ray
    except ImportError as error:
        raise NotFinished(
            "--executor ray: Ray is not installed beside this rlaudit",
            "Install rlaudit[ray] here and on the cluster's nodes.",
        ) from error
    at = address or os.environ.get("RAY_ADDRESS", "")
    try:
        if not at:
            from ray._private.services import canonicalize_bootstrap_address

            at = str(canonicalize_bootstrap_address("auto") or "")
        _require_answer(at)
        ray.init(at, log_to_driver=False, logging_level=logging.ERROR, configure_logging=False)
    except (OSError, ValueError, RuntimeError) as error:
        raise NotFinished(
            f"there is no Ray cluster {'at ' + at if at else 'on this machine'}: {first_line(error)}",
            "Start one (ray start --head), or give its address: --executor ray:HOST:PORT.",
        ) from error
    return ray


def first_line(error: BaseException) -> str:
    """Return the first sentence of Ray's message, which is long; of a task's error the last line, its cause."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    if not lines:
        return type(error).__name__
    return lines[-1] if "Traceback" in str(error) else lines[0].partition(". ")[0]


def _require_answer(address: str) -> None:
    """Raise OSError if nothing listens at the address: Ray asks a cluster that is gone for minutes."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not port.isdigit():
        raise ConnectionError("no address of the form HOST:PORT" if address else "none was started")
    socket.create_connection((host.strip("[]"), int(port)), timeout=CONNECT_SECONDS).close()


@dataclass(frozen=True)
class Node:
    """One node of the cluster: its id, the name of its machine, and what Ray gives away there."""

    id: str
    name: str
    cpus: float
    gpus: float


@dataclass(frozen=True)
class Cluster:
    """A cluster whose `nodes` all compute the same; `accelerator` is that of each. `left_out` names the other nodes,
    and why they are not used."""

    ray: Any
    nodes: tuple[Node, ...]
    accelerator: Accelerator
    left_out: tuple[str, ...]

    @classmethod
    def connect(cls, address: str, *, cpu: bool) -> "Cluster":
        """Return the cluster at this address, or this machine's if it is empty; its processors if `cpu` asks for them.

        Raises NotFinished if Ray is not installed, there is no cluster, or no node of it can be used.
        """
        ray = connected(address)
        nodes = [
            Node(
                one["NodeID"],
                one["NodeManagerHostname"],
                one["Resources"].get("CPU", 0),
                one["Resources"].get("GPU", 0),
            )
            for one in ray.nodes()
            if one["Alive"]
        ]
        on_gpus = not cpu and any(node.gpus for node in nodes)
        usable = [node for node in nodes if (node.gpus >= 1 if on_gpus else node.cpus >= 1)]
        if not usable:
            raise NotFinished("no node of the Ray cluster has a processor to give away", "Start one with ray start.")
        seen = _looked_at(ray, usable, cpu=not on_gpus)
        found = {node: one for node, one in seen.items() if isinstance(one, Accelerator)}
        left_out = [f"{node.name} is not used: {one}" for node, one in seen.items() if isinstance(one, str)]
        if not found:
            raise NotFinished(
                "no node of the Ray cluster can be used: " + "; ".join(left_out),
                f"Install rlaudit {rlaudit.__version__} in the environment of the cluster's nodes.",
            )
        kinds = {node: json.dumps(accelerator_identity(one), sort_keys=True) for node, one in found.items()}
        usual = Counter(kinds.values()).most_common(1)[0][0]
        alike = tuple(node for node in found if kinds[node] == usual)
        left_out += [
            f"{node.name} is not used: it has another {one.name} than {alike[0].name}, or another driver"
            for node, one in found.items()
            if node not in alike
        ]
        least = min(alike, key=lambda node: node.gpus)
        given = found[least].devices[: int(least.gpus)] if on_gpus else ()
        return cls(ray, alike, replace(found[least], devices=given), tuple(left_out))

    @property
    def at_once(self) -> int:
        """How many cells of a GPU each, or of a node each, run at once on an idle cluster."""
        return int(sum(node.gpus for node in self.nodes)) if self.accelerator.devices else len(self.nodes)

    def executor(self, folder: Path, note: Note) -> "OnRay":
        """Return what runs cells that lie in `folder`, whose run directory is this process's alone."""
        executor = OnRay(self, folder, note)
        executor.remove_drafts()
        return executor

    def resources(self, cell: Cell) -> dict[str, Any]:
        """Return what Ray is to find on one node for the cell."""
        chosen = {"label_selector": {"ray.io/node-id": f"in({','.join(node.id for node in self.nodes)})"}}
        own: dict[str, Any] = {"num_cpus": min(node.cpus for node in self.nodes)}
        if self.accelerator.devices:
            count = len(self.accelerator.devices)
            own = {"num_cpus": 1, "num_gpus": count if cell.gpus is None else min(max(1, cell.gpus), count)}
        return {**own, "max_retries": 0, **(chosen if self.left_out else {})}


def _looked_at(ray: Any, nodes: Iterable[Node], *, cpu: bool) -> Mapping[Node, Accelerator | str]:
    """Return each node's accelerator, or why the node cannot be used."""
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    asked = {}
    for node in nodes:
        there = NodeAffinitySchedulingStrategy(node_id=node.id, soft=False)
        remote = ray.remote(look).options(num_cpus=0, max_retries=0, scheduling_strategy=there)
        asked[node] = remote.remote(cpu, rlaudit.__version__)
    ready, _ = ray.wait(list(asked.values()), num_returns=len(asked), timeout=LOOK_SECONDS)
    found: dict[Node, Accelerator | str] = {}
    for node, answer in asked.items():
        try:
            found[node] = ray.get(answer) if answer in ready else f"no answer within {LOOK_SECONDS:.0f} s"
        except (ray.exceptions.RayError, ImportError) as error:
            cause = getattr(error, "cause", None)
            found[node] = cause.message if isinstance(cause, RlauditError) else first_line(error)
    return found


@dataclass
class OnRay:
    """Runs cells on a cluster. `folder` is where cells lie; folders beside it hold them while they run."""

    cluster: Cluster
    folder: Path
    note: Note
    _tasks: list["_Task"] = field(default_factory=list)
    _unheard: ExitStack = field(default_factory=ExitStack)

    def run(self, asked: Sequence[Asked], on_event: OnEvent = unheard) -> Iterator[Outcome]:
        """Take cells, each of which Ray begins when a node has room."""
        tasks = [_Task(self, one, on_event) for one in asked]
        self._tasks += tasks
        return _outcomes(tasks)

    def remove_drafts(self) -> None:
        """Remove what this process, or a run that was killed, left of cells that did not end."""
        for draft in self.folder.absolute().parent.glob(f"{DRAFTS}*"):
            shutil.rmtree(draft, ignore_errors=True)

    def __enter__(self) -> Self:
        # Ray prints on this process's stdout what its daemons have to say of a lost node; stdout is the report's.
        self._unheard.enter_context(
            redirect_stdout(self._unheard.enter_context(Path(os.devnull).open("w", encoding="utf-8")))
        )
        return self

    def __exit__(self, *error: object) -> None:
        ray = self.cluster.ray
        left = [task.answer for task in self._tasks if task.outcome is None]
        for force in (False, True):
            for answer in left:
                ray.cancel(answer, force=force)
            left = _until_ended(ray, left)
        self.remove_drafts()
        ray.shutdown()
        self._unheard.close()


class _Task:
    """A cell on its way."""

    def __init__(self, at: OnRay, asked: Asked, on_event: OnEvent) -> None:
        self._at, self._asked, self._on_event = at, asked, on_event
        self._starts = 0
        self.outcome: Outcome | None = None
        self._start()

    def _start(self) -> None:
        """Hand the cell to Ray, in a folder of its own for this start."""
        self._starts += 1
        at, cell = self._at, self._asked.cell
        # As deep as where cells lie: what a cell has filled elsewhere is sealed by its way from there.
        self._draft = at.folder.absolute().with_name(f"{DRAFTS}{cell.key}-{self._starts}") / cell.key
        secrets = describe(self._draft, cell)
        self._events = EventTail(self._draft / "events.jsonl", lambda event: self._on_event(self._asked, event))
        variables = deciding(at.cluster.accelerator.kind)
        remote = at.cluster.ray.remote(run).options(name=f"rlaudit: {self._asked.title}", **at.cluster.resources(cell))
        self.answer = remote.remote(self._draft, secrets, variables)

    def result(self) -> Outcome:
        """Return the outcome, once there is one. Raises NotFinished if no node can run the cell."""
        ray = self._at.cluster.ray
        while self.outcome is None:
            ready, _ = ray.wait([self.answer], timeout=0.5)
            self._events.read()
            if ready:
                self._take()
        return self.outcome

    def cancel(self) -> None:
        """Begin it no more, or end it; the executor waits for that when it is left."""
        if self.outcome is None:
            self._at.cluster.ray.cancel(self.answer)

    def _take(self) -> None:
        """Take the answer: the outcome, or the loss of the node or worker that was to give it."""
        ray = self._at.cluster.ray
        try:
            self.outcome = self._brought_home(ray.get(self.answer))
        except ray.exceptions.RayTaskError as error:
            raise error.cause if isinstance(error.cause, Exception) else error from None
        except ray.exceptions.TaskCancelledError:
            self.outcome = Outcome("failed", {}, Failure("launch", "cancelled"), {})
        except ray.exceptions.RayError as error:
            why = first_line(error)
            if self._starts < STARTS:
                self._at.note(f"{self._asked.title}: its node or worker was lost ({why}); it is started again")
                self._start()
                return
            why = f"lost {STARTS} times with its node or worker: {why}"
            self.outcome = Outcome("failed", {}, Failure("died", why), {})

    def _brought_home(self, outcome: Outcome) -> Outcome:
        """Put what the cell left where cells lie, once all of it is seen here. Raises NotFinished if it is not."""
        deadline = time.monotonic() + SEEN_WITHIN_SECONDS
        while not isinstance(ended(self._draft.parent, self._asked.cell), Outcome):
            if time.monotonic() > deadline:
                raise NotFinished(
                    f"what {self._asked.title} left on a node is not seen here: {self._draft}",
                    "Is the run directory on a file system that all nodes share?",
                )
            time.sleep(0.5)
        home = self._at.folder / self._asked.cell.key
        shutil.rmtree(home, ignore_errors=True)
        home.parent.mkdir(parents=True, exist_ok=True)
        self._draft.rename(home)
        return outcome


def _outcomes(tasks: Sequence[_Task]) -> Iterator[Outcome]:
    try:
        for task in tasks:
            yield task.result()
    finally:
        for task in tasks:
            task.cancel()


def _until_ended(ray: Any, left: list[Any]) -> list[Any]:
    """Return those that have not ended in time; a second Ctrl-C must not leave the first one's engines behind."""
    deadline = time.monotonic() + CANCEL_SECONDS
    while left and time.monotonic() < deadline:
        try:
            _, left = ray.wait(left, num_returns=len(left), timeout=max(0.0, deadline - time.monotonic()))
        except KeyboardInterrupt:
            continue
    return left
