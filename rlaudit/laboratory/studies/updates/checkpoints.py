"""The checkpoints of a run by name: the model, its next version, mixtures of both, and adapters, each written once.

They are as large as the model and lie in the run directory.
"""

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rlaudit.engines.cells.cell import Cell
from rlaudit.engines.cells.launch import shipped
from rlaudit.engines.models.model_identity import contents
from rlaudit.files.home import expanded
from rlaudit.laboratory.moving_weights import require_room, seconds_to_move, stored_bytes
from rlaudit.laboratory.scoring import Checkpoint
from rlaudit.laboratory.studies.updates.recipe import UpdateRecipe
from rlaudit.laboratory.study_run import StudyRun
from rlaudit.laboratory.trainer import __path__ as trainer_folder
from rlaudit.laboratory.weight_path import MERGED

DERIVE = Path(trainer_folder[0]) / "derive_checkpoints.py"
Order = dict[str, Any]
TIMEOUT_SECONDS = 900.0
# Of the adapters. Every release takes it.
RANK = 8
# An adapter is this many steps large: it has to stand out of bfloat16's rounding, in which CUDA computes adapters.
ADAPTER_STEPS = 5.0
_NEXT = "version-1"


class CheckpointStore:
    """Checkpoints by version ("0", "1") or mixture."""

    def __init__(self, recipe: UpdateRecipe, run: StudyRun) -> None:
        self._recipe, self._run = recipe, run
        self._folder = (run.folder / "checkpoints").resolve()
        self._written: dict[str, Checkpoint] = {}
        self._keep("0", run.context.model, "the model")
        # Folders by version.
        self.adapters: dict[str, str] = {}

    def checkpoint(self, name: str) -> Checkpoint:
        """Return a checkpoint that was written."""
        return self._written[name]

    def _keep(self, name: str, path: Path | str, made: object) -> None:
        self._written[name] = Checkpoint(str(path), json.dumps(made, sort_keys=True))

    def write_next(self) -> None:
        """Write version 1, a step from the model, unless it is the user's checkpoint."""
        settings = self._recipe.weight_updates
        if settings.checkpoint is not None:
            checkpoint = expanded(settings.checkpoint).resolve()
            self._keep("1", checkpoint, {"own": contents(checkpoint)})
            return
        order: Order = {"name": _NEXT, "scale": settings.perturbation, "seed": self._recipe.seed}
        self._derive("the next version of the weights", order)
        self._keep("1", self._folder / _NEXT, order)

    def write_mixture(self, old: Sequence[str]) -> str:
        """Write version 1 with these tensors taken from version 0, and return its name."""
        name = f"{_NEXT}-but-{hashlib.sha256(chr(10).join(old).encode()).hexdigest()[:8]}"
        if name not in self._written:
            new = self._written["1"]
            order: Order = {"name": name, "new": new.path, "old_parts": list(old)}
            self._derive(f"the weights {name}", order)
            self._keep(name, self._folder / name, {"mixture": order, "of": new.identity})
        return name

    def write_adapters(self) -> None:
        """Write an adapter that changes nothing and one of several steps' size; MERGED is the model with the second."""
        size = ADAPTER_STEPS * self._recipe.weight_updates.perturbation
        shared = {"adapter": RANK, "seed": self._recipe.seed}
        orders: list[Order] = [{"name": "adapter-0", "scale": 0.0, **shared}, {"name": MERGED, "scale": size, **shared}]
        self._derive("two adapters", *orders)
        self._keep(MERGED, self._folder / MERGED, {"merged": orders[1]})
        self.adapters = {str(v): str(self._folder / order["name"] / "adapter") for v, order in enumerate(orders)}

    def _derive(self, title: str, *orders: Order) -> None:
        """Write checkpoints; one that was changed or deleted is written again."""
        context, trainer, model = self._run.context, self._run.setup.trainer, self._run.setup.model
        folders = tuple(self._folder / order["name"] for order in orders)
        size = stored_bytes(str(model.path), model.revision)
        require_room(size, folders)
        # Each is read and written.
        seconds = max(TIMEOUT_SECONDS, 60.0 * self._recipe.timeout_minutes) + seconds_to_move(size, 2 * len(orders))
        job = {"script": shipped(DERIVE), "model": context.model, "revision": context.revision}
        cell = Cell(
            job={**job, "output": str(self._folder), "make": list(orders)},
            command=trainer.command,
            variables=dict(trainer.variables),
            timeout_seconds=seconds,
            identity={"lock": list(trainer.lock), "model": dict(context.model_identity)},
            writes=folders,
            gpus=1,
        )
        outcome = self._run.cells.needed(cell, title, "the checkpoints could not be written")
        # A hub id is a folder from here on: engines load the old weights by path too.
        self._keep("0", outcome.result["model"], "the model")
