"""A Ray cluster: a task for each cell, on a node that is like the others.

A task asks for the cell's GPUs, which Ray finds on one node; on processors it asks for a whole node. The run directory
has to lie where every node sees it: a cell is described there, runs there, and is read there. Each start of a cell has
a folder of its own until it has ended, so that a node that is lost and goes on writing spoils nothing. A cell whose
node or worker was lost is started again, and said to be.

Ray's own trouble is kept out: nothing is pickled but text, a task runs no engine (ray_node.py), and a driver that is
killed takes its tasks with it, whose guardians end the engines.
"""

import json
import os
import shutil
import time
import uuid
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import ExitStack, redirect_stdout
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

import rlaudit
from rlaudit.engines.cells.cell import Cell, describe, ended
from rlaudit.engines.cells.executor import Note, OnEvent
from rlaudit.engines.cells.inherited_variables import deciding
from rlaudit.engines.cells.launch import EventTail, Failure, Outcome
from rlaudit.engines.cells.ray_connection import connected, first_line
from rlaudit.engines.cells.ray_node import SAID, look, run, sees
from rlaudit.engines.hardware.accelerator import Accelerator
from rlaudit.engines.hardware.accelerator_identity import accelerator_identity
from rlaudit.errors import NotFinished
from rlaudit.parse_json import parse_json

# A cell that takes node after node with it is the fault of the cell.
STARTS = 3
LOOK_SECONDS = 60.0
# A file that one node has closed is seen by another when its file system says so; NFS looks again within a minute.
SEEN_WITHIN_SECONDS = 90.0
# What an engine needs to be ended, and as much again for Ray.
CANCEL_SECONDS = 30.0
DRAFTS = ".on-ray-"


@dataclass(frozen=True)
class Node:
    """One node of the cluster: its id, the name of its machine, and what Ray gives away there."""

    id: str
    name: str
    cpus: float
    gpus: float


@dataclass(frozen=True)
class Cluster:
    """A cluster whose `nodes` all compute the same; `accelerator` is that of each. `left_out` says which others do
    not, and why they are not used."""

    ray: Any
    nodes: tuple[Node, ...]
    accelerator: Accelerator
    left_out: tuple[str, ...]

    @classmethod
    def connect(cls, address: str, *, cpu: bool) -> "Cluster":
        """The cluster at this address, the one this machine belongs to where it is empty; its processors where `cpu`
        asks for them.

        Raises NotFinished where Ray is not installed, there is no cluster, or no node of it can be used.
        """
        return cls._of_nodes(connected(address), cpu)

    @classmethod
    def _of_nodes(cls, ray: Any, cpu: bool) -> "Cluster":
        nodes = [
            Node(one["NodeID"], one["NodeManagerHostname"], resources.get("CPU", 0.0), resources.get("GPU", 0.0))
            for one in ray.nodes()
            if one["Alive"]
            for resources in (one["Resources"],)
        ]
        on_gpus = not cpu and any(node.gpus for node in nodes)
        usable = [node for node in nodes if (node.gpus >= 1 if on_gpus else node.cpus >= 1)]
        if not usable:
            raise NotFinished("no node of the Ray cluster has a processor to give away", "Start one with ray start.")
        asked = {node: _on(ray, look, node).remote(not on_gpus) for node in usable}
        ready, _ = ray.wait(list(asked.values()), num_returns=len(asked), timeout=LOOK_SECONDS)
        left_out: list[str] = []
        found: dict[Node, Accelerator] = {}
        for node, answer in asked.items():
            told: Mapping[str, Any]
            told = _answer(ray, answer) if answer in ready else {"trouble": f"no answer within {LOOK_SECONDS:.0f} s"}
            if told.get("rlaudit", rlaudit.__version__) != rlaudit.__version__:
                told = {"trouble": f"it has rlaudit {told['rlaudit']}, and this is {rlaudit.__version__}"}
            if "accelerator" in told:
                found[node] = Accelerator.of_document(told["accelerator"])
            else:
                left_out.append(f"{node.name} is not used: {told['trouble']}")
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
            if kinds[node] != usual
        ]
        least = min(alike, key=lambda node: node.gpus)
        accelerator = found[least]
        given = accelerator.devices[: int(least.gpus)] if on_gpus else ()
        return cls(ray, alike, replace(accelerator, devices=given), tuple(left_out))

    @property
    def at_once(self) -> int:
        """How many cells of a GPU each, or of a node each, it runs at once where nobody else is on it."""
        return int(sum(node.gpus for node in self.nodes)) if self.accelerator.devices else len(self.nodes)

    def executor(self, folder: Path, note: Note) -> "OnRay":
        """Runs cells that lie in `folder`. Raises NotFinished where a node does not see it."""
        place = folder.absolute().parent
        drafts = f"{DRAFTS}{uuid.uuid4().hex}"
        # This run directory is this process's alone: what another one left is nobody's.
        _remove_all(place.glob(f"{DRAFTS}*"))
        mark = place / drafts / "mark"
        mark.parent.mkdir()
        mark.write_text(drafts, encoding="utf-8")
        asked = {node: _on(self.ray, sees, node).remote(str(mark)) for node in self.nodes}
        blind = [node.name for node, answer in asked.items() if _seen(self.ray, answer) != drafts]
        if blind:
            _remove_all([mark.parent])
            self.ray.shutdown()
            raise NotFinished(
                f"node {blind[0]} of the Ray cluster does not see {place}",
                "Give --run-dir a folder of a file system that all nodes share; without one, use --shard and --merge.",
            )
        return OnRay(self, folder, place / drafts, note)

    def resources(self, cell: Cell) -> dict[str, Any]:
        """What Ray is to find on one node for the cell."""
        chosen = {"label_selector": {"ray.io/node-id": f"in({','.join(node.id for node in self.nodes)})"}}
        own: dict[str, Any] = {"num_cpus": min(node.cpus for node in self.nodes)}
        if self.accelerator.devices:
            count = len(self.accelerator.devices)
            own = {"num_cpus": 1, "num_gpus": count if cell.gpus is None else min(max(1, cell.gpus), count)}
        return {**own, "max_retries": 0, **(chosen if self.left_out else {})}


@dataclass
class OnRay:
    """Runs cells on a cluster. `folder` is where cells lie; folders beside it, whose names begin as that of `drafts`,
    hold them while they run."""

    cluster: Cluster
    folder: Path
    drafts: Path
    note: Note
    _tasks: list["_Task"] = field(default_factory=list)
    _unheard: ExitStack = field(default_factory=ExitStack)

    def submit(
        self, cell: Cell, title: str = "", on_event: OnEvent = lambda event: None, number: int | None = None
    ) -> "_Task":
        """Take a cell: Ray begins it when a node has room."""
        task = _Task(self, cell, title, on_event)
        task.start()
        self._tasks.append(task)
        return task

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
        for task in self._tasks:
            task.forget_link()
        _remove_all(self.drafts.parent.glob(f"{self.drafts.name}*"))
        ray.shutdown()
        self._unheard.close()

    def tend(self, seconds: float) -> None:
        """Take what has ended, whoever it is asked for by; start again what was lost."""
        under_way = {task.answer: task for task in self._tasks if task.outcome is None}
        ready, _ = self.cluster.ray.wait(list(under_way), num_returns=1, timeout=seconds)
        for answer in ready:
            under_way[answer].take()


class _Task:
    """A cell on its way."""

    def __init__(self, at: OnRay, cell: Cell, title: str, on_event: OnEvent) -> None:
        self._at, self._cell, self._title, self._on_event = at, cell, title, on_event
        self._starts = 0
        self.outcome: Outcome | None = None
        self._refused: NotFinished | None = None

    def start(self) -> None:
        """Hand the cell to Ray, in a folder of its own for this start."""
        self._starts += 1
        at, cell = self._at, self._cell
        # As deep as where cells lie: what a cell has filled elsewhere is sealed by its way from there.
        self._draft = at.drafts.with_name(f"{at.drafts.name}-{cell.key}-{self._starts}") / cell.key
        secrets = describe(self._draft, cell)
        self._link()
        self._events = EventTail(self._draft / "events.jsonl", self._on_event)
        variables = deciding(at.cluster.accelerator.kind)
        remote = at.cluster.ray.remote(run).options(name=f"rlaudit: {self._title}", **at.cluster.resources(cell))
        self.answer = remote.remote(str(self._draft.parent), cell.key, secrets, variables)

    def result(self) -> Outcome:
        """The outcome, once there is one. Raises NotFinished where no node can run it."""
        while self.outcome is None:
            self._at.tend(0.5)
            if self.outcome is None:
                self._tell()
        if self._refused is not None:
            raise self._refused
        return self.outcome

    def cancel(self) -> None:
        """Begin it no more, or end it; the executor waits for that when it is left."""
        if self.outcome is None:
            self._at.cluster.ray.cancel(self.answer)

    def take(self) -> None:
        """The answer is there: the outcome, or the loss of whoever was to give it."""
        exceptions = self._at.cluster.ray.exceptions
        try:
            told = parse_json(self._at.cluster.ray.get(self.answer))
        except exceptions.RayTaskError as error:
            raise error.cause if isinstance(error.cause, Exception) else error from None
        except exceptions.TaskCancelledError:
            self.outcome = Outcome("failed", {}, Failure("launch", "cancelled"), {})
            return
        except exceptions.RayError as error:
            self._lost(first_line(error))
            return
        if "refused" in told:
            self._refused = NotFinished(f"{self._title}: {told['refused']}", told["way_out"])
            self.outcome = Outcome("failed", {}, Failure("launch", told["refused"]), {})
            return
        self.outcome = _outcome(told["outcome"])
        self._bring_home(told["node"])

    def forget_link(self) -> None:
        """Leave no link to a draft behind."""
        home = self._at.folder / self._cell.key
        if home.is_symlink():
            home.unlink()

    def _lost(self, why: str) -> None:
        if self._starts < STARTS:
            self._at.note(f"{self._title}: its node or worker was lost ({why}); it is started again")
            self.start()
            return
        self.outcome = Outcome("failed", {}, Failure("died", f"lost {STARTS} times with its node or worker: {why}"), {})

    def _link(self) -> None:
        """Where the cell will lie, its draft is seen meanwhile."""
        home = self._at.folder / self._cell.key
        home.parent.mkdir(parents=True, exist_ok=True)
        if home.is_symlink() or home.is_file():
            home.unlink()
        shutil.rmtree(home, ignore_errors=True)
        home.symlink_to(os.path.relpath(self._draft, home.parent), target_is_directory=True)

    def _bring_home(self, node: str) -> None:
        """Put what the cell left where cells lie, once all of it is seen here. Raises NotFinished where it is not."""
        deadline = time.monotonic() + SEEN_WITHIN_SECONDS
        while not isinstance(ended(self._draft.parent, self._cell), Outcome):
            if time.monotonic() > deadline:
                raise NotFinished(
                    f"what {self._title} left on {node} is not seen here: {self._draft}",
                    "Is the run directory on a file system that all nodes share?",
                )
            time.sleep(0.5)
        self.forget_link()
        self._draft.rename(self._at.folder / self._cell.key)

    def _tell(self) -> None:
        """What the cell says meanwhile."""
        self._events.read()
        said = self._draft.parent / f"{self._cell.key}{SAID}"
        if said.exists():
            self._on_event({"event": "phase", "name": said.read_text(encoding="utf-8")})


def _until_ended(ray: Any, left: list[Any]) -> list[Any]:
    """Those that have not ended in time; a second Ctrl-C must not leave the first one's engines behind."""
    deadline = time.monotonic() + CANCEL_SECONDS
    while left and time.monotonic() < deadline:
        try:
            _, left = ray.wait(left, num_returns=len(left), timeout=max(0.0, deadline - time.monotonic()))
        except KeyboardInterrupt:
            continue
    return left


def _remove_all(folders: Iterable[Path]) -> None:
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)


def _on(ray: Any, function: Any, node: Node) -> Any:
    """A function on one node, beside whatever runs there."""
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    where = NodeAffinitySchedulingStrategy(node_id=node.id, soft=False)
    return ray.remote(function).options(num_cpus=0, max_retries=0, scheduling_strategy=where)


def _answer(ray: Any, answer: Any) -> Mapping[str, Any]:
    try:
        told: Mapping[str, Any] = parse_json(ray.get(answer))
    except (ray.exceptions.RayError, ImportError) as error:
        return {"trouble": first_line(error)}
    return told


def _seen(ray: Any, answer: Any) -> str:
    try:
        return str(ray.get(answer, timeout=LOOK_SECONDS))
    except ray.exceptions.RayError:
        return ""


def _outcome(told: Mapping[str, Any]) -> Outcome:
    failure = told["failure"]
    return Outcome(told["status"], told["result"], None if failure is None else Failure(**failure), told["usage"])
