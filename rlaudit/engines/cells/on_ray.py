"""Cells on a Ray cluster: a task for each cell, on nodes that are all alike.

A task requires the cell's GPUs, all on one node; without GPUs it requires a whole node. The run directory, the model
and the environments must have the same paths on every node. Each start of a cell has its own folder until it has ended,
so that a lost node that goes on writing spoils nothing. A cell whose node or worker was lost is started again, and the
user sees a note.

A task runs no engine itself (ray_node.py). If the driver is killed its tasks end, and their guardians end the engines.
"""

import json
import logging
import os
import shutil
import socket
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, chdir, redirect_stdout
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

from rlaudit.engines.cells.cell import Cell, describe, ended
from rlaudit.engines.cells.executor import Asked, Note, OnEvent, unheard
from rlaudit.engines.cells.inherited_variables import deciding
from rlaudit.engines.cells.launch import EventTail, Failure, Outcome
from rlaudit.engines.cells.ray_node import look, run
from rlaudit.engines.hardware.accelerator import Accelerator
from rlaudit.engines.hardware.accelerator_identity import accelerator_identity
from rlaudit.errors import NotFinished, RlauditError
from rlaudit.files.install_beside import install_beside
from rlaudit.files.own_sources import SAME_ON_EVERY_NODE, sources_digest

CONNECT_SECONDS = 10.0
# How often a cell is started. If it takes node after node with it, the cell is at fault.
STARTS = 3
LOOK_SECONDS = 60.0
# How long a file that one node has closed may be invisible to another; NFS looks again within a minute.
SEEN_WITHIN_SECONDS = 90.0
# Enough to end an engine, and as much again for Ray.
CANCEL_SECONDS = 30.0
DRAFTS = ".on-ray-"


def connected(address: str) -> Any:
    """Return the module `ray`, connected to the cluster at this address, or to this machine's if it is empty.

    Raises NotFinished if Ray is not installed, or no cluster answers.
    """
    try:
        import ray
    except ImportError as error:
        raise NotFinished(
            "--executor ray: Ray is not installed beside this rlaudit",
            f"Install the release that the cluster's nodes have: {install_beside('ray')}",
        ) from error
    cluster = address or os.environ.get("RAY_ADDRESS", "")
    try:
        if not cluster:
            from ray._private.services import canonicalize_bootstrap_address

            cluster = str(canonicalize_bootstrap_address("auto") or "")
        _require_answer(cluster)
        # Ray's workers look for modules in the folder in which the driver connected first, and that may be a stranger's
        # checkout (`code_paths` of Ray 2.60).
        with tempfile.TemporaryDirectory(prefix="rlaudit-ray-") as empty, chdir(empty):
            ray.init(cluster, log_to_driver=False, logging_level=logging.ERROR, configure_logging=False)
    except (OSError, ValueError, RuntimeError) as error:
        raise NotFinished(
            f"there is no Ray cluster {'at ' + cluster if cluster else 'on this machine'}: {first_line(error)}",
            "Start one (ray start --head), or give its address: --executor ray:HOST:PORT.",
        ) from error
    return ray


def first_line(error: BaseException) -> str:
    """Return the first sentence of Ray's long message; from the traceback of a task the last line, its cause."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    if not lines:
        return type(error).__name__
    return lines[-1] if "Traceback" in str(error) else lines[0].partition(". ")[0]


def _require_answer(address: str) -> None:
    """Raise OSError if nothing listens at the address: Ray itself would retry for minutes."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not port.isdigit():
        raise ConnectionError("no address of the form HOST:PORT" if address else "none was started")
    socket.create_connection((host.strip("[]"), int(port)), timeout=CONNECT_SECONDS).close()


@dataclass(frozen=True)
class Node:
    """One node of the cluster."""

    id: str
    # Its host name.
    name: str
    # What Ray has to give away on it.
    cpus: float
    gpus: float


@dataclass(frozen=True)
class Cluster:
    """A connected cluster."""

    ray: Any
    # The nodes in use, which all compute the same.
    nodes: tuple[Node, ...]
    # Of each of these nodes.
    accelerator: Accelerator
    # Sentences: which other node is not used, and why.
    left_out: tuple[str, ...]

    @classmethod
    def connect(cls, address: str, *, cpu: bool) -> "Cluster":
        """Return the cluster at this address, or this machine's if it is empty. cpu: use processors in spite of GPUs.

        Raises NotFinished if Ray is not installed, no cluster answers, or none of its nodes can be used.
        """
        ray = connected(address)
        nodes = [
            Node(
                entry["NodeID"],
                entry["NodeManagerHostname"],
                entry["Resources"].get("CPU", 0),
                entry["Resources"].get("GPU", 0),
            )
            for entry in ray.nodes()
            if entry["Alive"]
        ]
        on_gpus = not cpu and any(node.gpus for node in nodes)
        usable = [node for node in nodes if (node.gpus >= 1 if on_gpus else node.cpus >= 1)]
        if not usable:
            raise NotFinished("no node of the Ray cluster has a processor to give away", "Start one with ray start.")
        answers = _look_at(ray, usable, cpu=not on_gpus)
        accelerators = {node: answer for node, answer in answers.items() if isinstance(answer, Accelerator)}
        left_out = [f"{node.name} is not used: {answer}" for node, answer in answers.items() if isinstance(answer, str)]
        if not accelerators:
            raise NotFinished(
                "no node of the Ray cluster can be used: " + "; ".join(left_out),
                SAME_ON_EVERY_NODE,
            )
        identities = {
            node: json.dumps(accelerator_identity(accelerator), sort_keys=True)
            for node, accelerator in accelerators.items()
        }
        most_common = Counter(identities.values()).most_common(1)[0][0]
        alike = tuple(node for node in accelerators if identities[node] == most_common)
        left_out += [
            f"{node.name} is not used: it has another {accelerator.name} than {alike[0].name}, or another driver"
            for node, accelerator in accelerators.items()
            if node not in alike
        ]
        smallest = min(alike, key=lambda node: node.gpus)
        devices = accelerators[smallest].devices[: int(smallest.gpus)] if on_gpus else ()
        return cls(ray, alike, replace(accelerators[smallest], devices=devices), tuple(left_out))

    @property
    def at_once(self) -> int:
        """How many cells run at once on an idle cluster, if each takes one GPU, or one node without GPUs."""
        return int(sum(node.gpus for node in self.nodes)) if self.accelerator.devices else len(self.nodes)

    def executor(self, folder: Path, note: Note) -> "OnRay":
        """Return the executor of cells in `folder`. No other process may use its run directory."""
        executor = OnRay(self, folder, note)
        executor.remove_drafts()
        return executor

    def resources(self, cell: Cell) -> dict[str, Any]:
        """Return what the cell needs of one node, as options of a Ray task."""
        options: dict[str, Any] = {"num_cpus": min(node.cpus for node in self.nodes), "max_retries": 0}
        if self.accelerator.devices:
            count = len(self.accelerator.devices)
            options |= {"num_cpus": 1, "num_gpus": count if cell.gpus is None else min(max(1, cell.gpus), count)}
        if self.left_out:
            options["label_selector"] = {"ray.io/node-id": f"in({','.join(node.id for node in self.nodes)})"}
        return options


def _look_at(ray: Any, nodes: Iterable[Node], *, cpu: bool) -> Mapping[Node, Accelerator | str]:
    """Return each node's accelerator, or why the node cannot be used."""
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    references = {}
    for node in nodes:
        on_node = NodeAffinitySchedulingStrategy(node_id=node.id, soft=False)
        remote = ray.remote(look).options(num_cpus=0, max_retries=0, scheduling_strategy=on_node)
        references[node] = remote.remote(cpu, sources_digest())
    ready, _ = ray.wait(list(references.values()), num_returns=len(references), timeout=LOOK_SECONDS)
    answers: dict[Node, Accelerator | str] = {}
    for node, reference in references.items():
        try:
            answers[node] = ray.get(reference) if reference in ready else f"no answer within {LOOK_SECONDS:.0f} s"
        except (ray.exceptions.RayError, ImportError) as error:
            cause = getattr(error, "cause", None)
            answers[node] = cause.message if isinstance(cause, RlauditError) else first_line(error)
    return answers


@dataclass
class OnRay:
    """Runs cells on a cluster."""

    cluster: Cluster
    # Holds the cells that have ended; the others are in folders beside it.
    folder: Path
    note: Note
    _tasks: list["_Task"] = field(default_factory=list)
    _unheard: ExitStack = field(default_factory=ExitStack)

    def run(self, requests: Sequence[Asked], on_event: OnEvent = unheard) -> Iterator[Outcome]:
        """Take cells, each of which Ray begins when a node has room."""
        tasks = [_Task(self, request, on_event) for request in requests]
        self._tasks += tasks
        return _outcomes(tasks)

    def remove_drafts(self) -> None:
        """Remove the folders of cells that did not end in this process, or in a run that was killed."""
        for draft in self.folder.absolute().parent.glob(f"{DRAFTS}*"):
            shutil.rmtree(draft, ignore_errors=True)

    def __enter__(self) -> Self:
        # Ray prints the messages of its daemons about a lost node on stdout, which is for the report.
        self._unheard.enter_context(
            redirect_stdout(self._unheard.enter_context(Path(os.devnull).open("w", encoding="utf-8")))
        )
        return self

    def __exit__(self, *error: object) -> None:
        ray = self.cluster.ray
        running = [task.reference for task in self._tasks if task.outcome is None]
        for force in (False, True):
            for reference in running:
                ray.cancel(reference, force=force)
            running = _wait_until_ended(ray, running)
        self.remove_drafts()
        ray.shutdown()
        self._unheard.close()


class _Task:
    """A requested cell, as a task of Ray."""

    def __init__(self, executor: OnRay, request: Asked, on_event: OnEvent) -> None:
        self._executor, self._request, self._on_event = executor, request, on_event
        self._starts = 0
        self.outcome: Outcome | None = None
        self._start()

    def _start(self) -> None:
        """Hand the cell to Ray, in a new folder for this start."""
        self._starts += 1
        cluster, cell = self._executor.cluster, self._request.cell
        # As deep as the final folder: the seal names files elsewhere by relative paths.
        self._draft = self._executor.folder.absolute().with_name(f"{DRAFTS}{cell.key}-{self._starts}") / cell.key
        secrets = describe(self._draft, cell)
        self._events = EventTail(self._draft / "events.jsonl", lambda event: self._on_event(self._request, event))
        variables = deciding(cluster.accelerator.kind)
        remote = cluster.ray.remote(run).options(name=f"rlaudit: {self._request.title}", **cluster.resources(cell))
        self.reference = remote.remote(self._draft, secrets, variables)

    def result(self) -> Outcome:
        """Wait for the outcome and return it. Raises NotFinished if no node can run the cell."""
        ray = self._executor.cluster.ray
        while self.outcome is None:
            ready, _ = ray.wait([self.reference], timeout=0.5)
            self._events.read()
            if ready:
                self._take()
        return self.outcome

    def cancel(self) -> None:
        """Cancel the task, waiting or running; the executor waits for its end."""
        if self.outcome is None:
            self._executor.cluster.ray.cancel(self.reference)

    def _take(self) -> None:
        """Take the outcome; start again if the node or worker was lost."""
        ray = self._executor.cluster.ray
        try:
            self.outcome = self._brought_home(ray.get(self.reference))
        except ray.exceptions.RayTaskError as error:
            raise error.cause if isinstance(error.cause, Exception) else error from None
        except ray.exceptions.TaskCancelledError:
            self.outcome = Outcome("failed", {}, Failure("launch", "cancelled"), {})
        except ray.exceptions.RayError as error:
            why = first_line(error)
            if self._starts < STARTS:
                self._executor.note(f"{self._request.title}: its node or worker was lost ({why}); it is started again")
                self._start()
                return
            why = f"lost {STARTS} times with its node or worker: {why}"
            self.outcome = Outcome("failed", {}, Failure("died", why), {})

    def _brought_home(self, outcome: Outcome) -> Outcome:
        """Move the cell to the executor's folder, once all its files are visible here. Raises NotFinished if not."""
        deadline = time.monotonic() + SEEN_WITHIN_SECONDS
        while not isinstance(ended(self._draft.parent, self._request.cell), Outcome):
            if time.monotonic() > deadline:
                raise NotFinished(
                    f"what {self._request.title} left on a node is not seen here: {self._draft}",
                    "Is the run directory on a file system that all nodes share?",
                )
            time.sleep(0.5)
        home = self._executor.folder / self._request.cell.key
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


def _wait_until_ended(ray: Any, running: list[Any]) -> list[Any]:
    """Return the tasks that did not end in time. A second Ctrl-C is ignored, as it would leave engines behind."""
    deadline = time.monotonic() + CANCEL_SECONDS
    while running and time.monotonic() < deadline:
        try:
            _, running = ray.wait(running, num_returns=len(running), timeout=max(0.0, deadline - time.monotonic()))
        except KeyboardInterrupt:
            continue
    return running
