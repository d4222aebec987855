"""The checkpoints of a run by name: versions of the model, mixtures of two, and adapters, each written once.

They are as large as the model and lie in the run directory.
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
from rlaudit.laboratory.moving_weights import require_room, seconds_to_move, stored_bytes
from rlaudit.laboratory.rollout_context import RolloutContext
from rlaudit.laboratory.scoring import Checkpoint
from rlaudit.laboratory.studies.updates.recipe import UpdateRecipe
from rlaudit.laboratory.study_run import StudyRun
from rlaudit.laboratory.weight_path import MERGED
from rlaudit.trainer import __path__ as trainer_folder

DERIVE = Path(trainer_folder[0]) / "derive_checkpoints.py"
Order = dict[str, Any]
TIMEOUT_SECONDS = 900.0
# Of the adapters. Every release takes it.
RANK = 8
# An adapter is this many steps large: it has to stand out of bfloat16's rounding, in which CUDA computes adapters.
ADAPTER_STEPS = 5.0


class CheckpointStore:
    """Folders by version ("0", "1") or mixture."""

    def __init__(self, recipe: UpdateRecipe, run: StudyRun) -> None:
        self._recipe, self._run = recipe, run
        self._folder = (run.folder / "checkpoints").resolve()
        self._paths: dict[str, str] = {"0": run.context.model}
        self._made: dict[str, object] = {"0": "the model"}

    def checkpoint(self, name: str) -> Checkpoint:
        """Return a checkpoint that was written."""
        return Checkpoint(self._paths[name], json.dumps(self._made[name], sort_keys=True))

    def write_versions(self, versions: int) -> None:
        """Write versions 1 to `versions`, each a step after the last; the first is the user's checkpoint, if given."""
        settings = self._recipe.weight_updates
        orders: list[Order] = []
        for version in range(1, versions + 1):
            name = str(version)
            if version == 1 and settings.checkpoint is not None:
                checkpoint = expanded(settings.checkpoint).resolve()
                self._paths[name], self._made[name] = str(checkpoint), {"own": contents(checkpoint)}
                continue
            step = {"scale": settings.perturbation, "seed": self._recipe.seed}
            before = self._paths[str(version - 1)] if version > 1 else ""
            orders.append({"name": _folder_of(version), "after": before, **step})
            self._paths[name] = str(self._folder / _folder_of(version))
            self._made[name] = {"after": self._made[str(version - 1)], **step}
        self._derive(orders, f"{versions} versions of the weights")

    def write_mixture(self, version: int, old: Sequence[str]) -> str:
        """Write a version with these tensors taken from version 0, and return its name."""
        name = mixture_name(version, old)
        if name not in self._paths:
            order: Order = {"name": name, "new": self._paths[str(version)], "old": "", "old_parts": list(old)}
            self._derive([order], f"the weights {name}")
            self._paths[name] = str(self._folder / name)
            self._made[name] = {"mixture": order, "of": self._made[str(version)]}
        return name

    def write_adapters(self) -> dict[str, str]:
        """Write an adapter that changes nothing and one of several versions' size; return their folders by version.

        The checkpoint MERGED is the model with the second.
        """
        settings = self._recipe.weight_updates
        orders: list[Order] = [
            {"name": name, "adapter": RANK, "scale": scale, "seed": self._recipe.seed}
            for name, scale in (("adapter-0", 0.0), (MERGED, ADAPTER_STEPS * settings.perturbation))
        ]
        self._derive(orders, "two adapters")
        self._paths[MERGED], self._made[MERGED] = str(self._folder / MERGED), {"merged": orders[1]}
        return {str(version): str(self._folder / order["name"] / "adapter") for version, order in enumerate(orders)}

    def _derive(self, orders: Sequence[Order], title: str) -> None:
        if not orders:
            return
        model = self._run.setup.model
        size = stored_bytes(str(model.path), model.revision)
        require_room(size, [self._folder / order["name"] for order in orders])
        # Each is read and written.
        timeout = max(TIMEOUT_SECONDS, 60.0 * self._recipe.timeout_minutes) + seconds_to_move(size, 2 * len(orders))
        cell = derive_cell(self._run.context, self._folder, orders, self._run.setup.trainer, timeout)
        outcome = self._run.cells.needed(cell, title, "the checkpoints could not be written")
        # A hub id is a folder from here on: engines load the old weights by path too.
        self._paths["0"] = str(outcome.result["model"])


def mixture_name(version: int, old: Sequence[str]) -> str:
    """Return the name of a version whose `old` tensors are those of version 0."""
    shown = "-".join(name.removesuffix(".weight").replace(".", "-") for name in old[:2])
    digest = hashlib.sha256("\n".join(old).encode()).hexdigest()[:8]
    others = f"-and-{len(old) - 2}-more-{digest}" if len(old) > 2 else ""
    return f"{_folder_of(version)}-but-{shown}{others}"


def _folder_of(version: int) -> str:
    return f"version-{version}"


def derive_cell(
    context: RolloutContext, folder: Path, orders: Sequence[Order], trainer: Environment, timeout_seconds: float
) -> Cell:
    """Return the job that writes checkpoints into `folder`; it rewrites one that was changed or deleted."""
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
