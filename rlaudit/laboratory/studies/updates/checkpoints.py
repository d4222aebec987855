"""The checkpoints of a run: versions of the model, mixtures of two, and broken ones, each written once.

They live in the run directory, in the cell of the job that wrote them, because they are as large as the model.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rlaudit.engines.cells.cell import Cell
from rlaudit.engines.cells.launch import shipped
from rlaudit.engines.environments.environment_spec import Environment
from rlaudit.home import expanded
from rlaudit.laboratory.rollout_context import RolloutContext
from rlaudit.laboratory.studies.updates.recipe import UpdateRecipe
from rlaudit.trainer import __path__ as trainer_folder

DERIVE = Path(trainer_folder[0]) / "derive_checkpoints.py"
Order = dict[str, Any]


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
    )


def version_path(recipe: UpdateRecipe, version: int, model: str, folder: Path) -> str:
    """The folder of a version: the model, the user's own checkpoint, or one that was written into `folder`."""
    return model if version == 0 else str(folder / _name_of(recipe, version))


def tensor_names(folder: str) -> list[str]:
    """The names of all tensors of a checkpoint, from the headers of its safetensors files; nothing is loaded."""
    names: list[str] = []
    for file in sorted(Path(folder).glob("*.safetensors")):
        with file.open("rb") as weights:
            header = json.loads(weights.read(int.from_bytes(weights.read(8), "little")))
        names += [name for name in header if name != "__metadata__"]
    return names
