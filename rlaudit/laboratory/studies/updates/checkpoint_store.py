"""The checkpoints of a run by name: written when they are asked for, once, and told apart by how they were made."""

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path

from rlaudit.engines.environments.environment_spec import Environment
from rlaudit.engines.models.model_identity import contents
from rlaudit.errors import NotFinished
from rlaudit.home import expanded
from rlaudit.laboratory.runner import Runner
from rlaudit.laboratory.studies.arms.rollout import RolloutContext
from rlaudit.laboratory.studies.updates.checkpoints import (
    Order,
    derive_cell,
    fault_orders,
    version_name,
    version_orders,
    version_path,
)
from rlaudit.laboratory.studies.updates.settings import UpdateRecipe

TIMEOUT_SECONDS = 900.0


class CheckpointStore:
    """Folders by version ("0", "1"), fault or mixture."""

    def __init__(
        self, recipe: UpdateRecipe, context: RolloutContext, trainer: Environment, runner: Runner, folder: Path
    ) -> None:
        self._recipe, self._context, self._trainer, self._runner = recipe, context, trainer, runner
        self._folder = folder.resolve()
        self._paths: dict[str, str] = {"0": context.model}
        self._made: dict[str, object] = {"0": "the model"}

    def path(self, name: str) -> str:
        """The folder of a checkpoint that was written."""
        return self._paths[name]

    def identity(self, name: str) -> str:
        """What tells this checkpoint from another one in the same folder."""
        return json.dumps(self._made[name], sort_keys=True)

    def write_versions(self, versions: int) -> None:
        """Versions 1 to `versions`."""
        orders = version_orders(self._recipe, versions)
        self._derive(orders, f"{versions} versions of the weights")
        own = self._recipe.weight_updates.checkpoint
        own_contents = None if own is None else contents(expanded(own))
        for version in range(1, versions + 1):
            name = str(version)
            made_by = [order for order in orders if int(order["name"].rpartition("-")[2]) <= version]
            self._paths[name] = version_path(self._recipe, version, self._context.model, self._folder)
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
        timeout = max(TIMEOUT_SECONDS, 60.0 * self._recipe.timeout_minutes)
        cell = derive_cell(self._context, self._folder, orders, self._trainer, timeout)
        outcome = self._runner.outcome(cell, title)
        if outcome.status != "ok":
            why = outcome.failure.message if outcome.failure else "no reason given"
            raise NotFinished(
                f"the checkpoints could not be written: {why}", f"its log: {self._runner.directory(cell)}/log.txt"
            )
        # A hub id is a folder from here on: engines load the old weights by path too.
        self._paths["0"] = str(outcome.result["model"])


def mixture_name(version: int, old: Sequence[str]) -> str:
    """The name of a version whose `old` tensors are those of version 0."""
    shown = "-".join(name.removesuffix(".weight").replace(".", "-") for name in old[:2])
    rest = f"-and-{len(old) - 2}-more-{_mark(old)}" if len(old) > 2 else ""
    return f"{version_name(version)}-but-{shown}{rest}"


def _mark(names: Sequence[str]) -> str:
    return hashlib.sha256("\n".join(names).encode()).hexdigest()[:8]
