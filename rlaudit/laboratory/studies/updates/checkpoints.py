"""The checkpoints of a run by name: versions of the model, mixtures of two, and broken ones, each written once.

They live in the run directory, in the cell of the job that wrote them, because they are as large as the model.
"""

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rlaudit.engines.cells.cell import Cell
from rlaudit.engines.cells.launch import shipped
from rlaudit.engines.environments.environment_spec import Environment
from rlaudit.engines.models.model_identity import contents
from rlaudit.home import expanded
from rlaudit.laboratory.course import Course
from rlaudit.laboratory.moving_weights import require_room, seconds_to_move, stored_bytes
from rlaudit.laboratory.rollout_context import RolloutContext
from rlaudit.laboratory.scoring import Checkpoint
from rlaudit.laboratory.studies.updates.recipe import UpdateRecipe
from rlaudit.parse_json import parse_json
from rlaudit.trainer import __path__ as trainer_folder

DERIVE = Path(trainer_folder[0]) / "derive_checkpoints.py"
Order = dict[str, Any]
TIMEOUT_SECONDS = 900.0


class CheckpointStore:
    """Folders by version ("0", "1"), fault or mixture."""

    def __init__(self, recipe: UpdateRecipe, course: Course) -> None:
        self._recipe, self._course = recipe, course
        self._folder = (course.folder / "checkpoints").resolve()
        self._paths: dict[str, str] = {"0": course.context.model}
        self._made: dict[str, object] = {"0": "the model"}

    def checkpoint(self, name: str) -> Checkpoint:
        """A checkpoint that was written, and how."""
        return Checkpoint(self._paths[name], json.dumps(self._made[name], sort_keys=True))

    def write_versions(self, versions: int) -> None:
        """Versions 1 to `versions`."""
        orders = version_orders(self._recipe, versions)
        self._derive(orders, f"{versions} versions of the weights")
        own = self._recipe.weight_updates.checkpoint
        own_contents = None if own is None else contents(expanded(own))
        for version in range(1, versions + 1):
            name = str(version)
            made_by = [order for order in orders if int(order["name"].rpartition("-")[2]) <= version]
            self._paths[name] = version_path(self._recipe, version, self._course.context.model, self._folder)
            self._made[name] = {"version": version, "orders": made_by, "own": own_contents}

    def write_faults(self, faults: Sequence[str]) -> None:
        """A broken version 1 for each fault."""
        orders = fault_orders(self._recipe, faults)
        self._derive(orders, f"{len(orders)} broken checkpoints")
        for order in orders:
            self._paths[order["name"]] = str(self._folder / order["name"])
            self._made[order["name"]] = {"order": order, "of": self._made["1"]}

    def write_mixture(self, version: int, old: Sequence[str]) -> str:
        """A version with these tensors taken from version 0; returns its name."""
        name = mixture_name(version, old)
        if name not in self._paths:
            order: Order = {"name": name, "new": self._paths[str(version)], "old": "", "old_parts": list(old)}
            self._derive([order], f"the weights {name}")
            self._paths[name] = str(self._folder / name)
            self._made[name] = {"mixture": order, "of": self._made[str(version)]}
        return name

    def _derive(self, orders: Sequence[Order], title: str) -> None:
        if not orders:
            return
        model = self._course.surroundings.model
        size = stored_bytes(str(model.path), model.revision)
        require_room(size, [self._folder / order["name"] for order in orders])
        # Each is read and written.
        timeout = max(TIMEOUT_SECONDS, 60.0 * self._recipe.timeout_minutes) + seconds_to_move(size, 2 * len(orders))
        cell = derive_cell(self._course.context, self._folder, orders, self._course.surroundings.trainer, timeout)
        outcome = self._course.runner.needed(cell, title, "the checkpoints could not be written")
        # A hub id is a folder from here on: engines load the old weights by path too.
        self._paths["0"] = str(outcome.result["model"])


def mixture_name(version: int, old: Sequence[str]) -> str:
    """The name of a version whose `old` tensors are those of version 0."""
    shown = "-".join(name.removesuffix(".weight").replace(".", "-") for name in old[:2])
    rest = f"-and-{len(old) - 2}-more-{_mark(old)}" if len(old) > 2 else ""
    return f"{version_name(version)}-but-{shown}{rest}"


def _mark(names: Sequence[str]) -> str:
    return hashlib.sha256("\n".join(names).encode()).hexdigest()[:8]


def version_name(version: int) -> str:
    """The folder of a version; 0 is the model itself."""
    return f"version-{version}"


def version_orders(recipe: UpdateRecipe, versions: int) -> list[Order]:
    """Orders for versions 1 to `versions`, each a step after the one before."""
    settings = recipe.weight_updates
    orders: list[Order] = []
    for version in range(1, versions + 1):
        if version == 1 and settings.checkpoint is not None:
            continue
        before = "" if version == 1 else _name_of(recipe, version - 1)
        orders.append(
            {"name": version_name(version), "after": before, "scale": settings.perturbation, "seed": recipe.seed}
        )
    return orders


def fault_orders(recipe: UpdateRecipe, faults: Sequence[str]) -> list[Order]:
    """Orders for a broken version 1 of each kind that is a matter of the checkpoint."""
    whole = _name_of(recipe, 1)
    return [{"name": fault, "breaks": whole, "how": fault} for fault in faults if fault != "killed"]


def _name_of(recipe: UpdateRecipe, version: int) -> str:
    own = recipe.weight_updates.checkpoint
    return str(expanded(own).resolve()) if version == 1 and own is not None else version_name(version)


def derive_cell(
    context: RolloutContext, folder: Path, orders: Sequence[Order], trainer: Environment, timeout_seconds: float
) -> Cell:
    """The job that writes checkpoints into `folder`, where whoever changes or deletes one gets it again."""
    return Cell(
        job={
            "script": shipped(DERIVE),
            "model": context.model,
            "revision": context.revision,
            "output": str(folder),
            "make": list(orders),
        },
        command=trainer.command,
        variables=dict(trainer.variables),
        timeout_seconds=timeout_seconds,
        identity={"lock": list(trainer.lock), "model": dict(context.model_identity)},
        writes=tuple(folder / order["name"] for order in orders),
        gpus=1,
    )


def version_path(recipe: UpdateRecipe, version: int, model: str, folder: Path) -> str:
    """The folder of a version: the model, the user's own checkpoint, or one that was written into `folder`."""
    return model if version == 0 else str(folder / _name_of(recipe, version))


def tensor_names(folder: str) -> list[str]:
    """The names of all tensors of a checkpoint, from the headers of its safetensors files; nothing is loaded."""
    names: list[str] = []
    for file in sorted(Path(folder).glob("*.safetensors")):
        with file.open("rb") as weights:
            header = parse_json(weights.read(int.from_bytes(weights.read(8), "little")))
        names += [name for name in header if name != "__metadata__"]
    return names
