"""`rlaudit explain NAME` and `rlaudit list WHAT`: the documentation that lives in the code."""

import difflib
import inspect
import json
import sys
from collections.abc import Callable, Mapping
from enum import StrEnum
from functools import partial
from importlib.resources import files
from typing import Annotated

import typer
import yaml

from rlaudit.errors import UsageError
from rlaudit.experiment.factor import Factor
from rlaudit.experiment.plan import known_factors
from rlaudit.experiment.recipe import (
    Block,
    ExtraArm,
    Objective,
    Point,
    Recipe,
    Sampling,
    Trainer,
    recipe_folders,
)
from rlaudit.mismatch.evidence import all_metrics
from rlaudit.mismatch.metric import Metric


class Listed(StrEnum):
    """What can be listed."""

    FACTORS = "factors"
    METRICS = "metrics"
    RECIPES = "recipes"
    RECIPE_KEYS = "recipe-keys"
    SCHEMA = "schema"


def explain(name: Annotated[str, typer.Argument(help="A factor or a metric.")]) -> int:
    """Print what a factor or a metric is, and how to read it."""
    documented = _documentation()
    if name not in documented:
        nearest = difflib.get_close_matches(name, documented, n=1)
        raise UsageError(
            f"nothing is called {name!r}",
            f"did you mean {nearest[0]}?" if nearest else "see: rlaudit list factors",
        )
    print(documented[name]())
    return 0


def list_(what: Annotated[Listed, typer.Argument(help="What to list.")]) -> int:
    """List what rlaudit knows, one line each."""
    print(LISTS[what]())
    return 0


def _documentation() -> Mapping[str, Callable[[], str]]:
    factors = {name: partial(_about_factor, factor) for name, factor in known_factors().items()}
    metrics = {name: partial(_about_metric, metric) for name, metric in all_metrics().items()}
    return {**factors, **metrics}


def _about_factor(factor: Factor) -> str:
    levels = ", ".join(factor.levels) or "any version"
    return f"{_module_doc(factor.observe)}\n\nLevels: {levels}\nLayer:  {factor.layer}\nSets:   {factor.setting}"


def _about_metric(metric: Metric) -> str:
    lines = [
        _module_doc(metric.columns),
        "",
        f"Formula: {metric.formula}",
        f"Unit:    {metric.unit}",
        f"Reads:   {metric.reads}",
    ]
    return "\n".join(lines + _aliases(metric, indent=""))


def _aliases(metric: Metric, indent: str) -> list[str]:
    """What other frameworks call it, and where theirs differs."""
    notes = {name: f" ({note})" for name, note in metric.alias_notes.items()}
    return [f"{indent}{framework}: {alias}{notes.get(framework, '')}" for framework, alias in metric.aliases.items()]


def _module_doc(function: Callable[..., object]) -> str:
    return inspect.getdoc(sys.modules[function.__module__]) or ""


def _factors() -> str:
    return "\n".join(
        f"{name:<18} {factor.layer:<15} {_module_doc(factor.observe).splitlines()[0]}"
        for name, factor in known_factors().items()
    )


def _metrics() -> str:
    lines = []
    for name, metric in all_metrics().items():
        lines.append(f"{name}: {metric.formula} [{metric.unit}]")
        lines += _aliases(metric, indent="    ")
    return "\n".join(lines)


def _recipes() -> str:
    paths = [path for folder in recipe_folders() for path in sorted(folder.glob("*.yaml"))]
    return "\n".join(
        f"{path.stem:<14} {yaml.safe_load(path.read_text(encoding='utf-8'))['description']}" for path in paths
    )


def _recipe_keys() -> str:
    lines = []
    for model in (Recipe, Block, Point, ExtraArm, Sampling, Trainer, Objective):
        lines.append(f"{model.__name__.lower()}: {(model.__doc__ or '').splitlines()[0]}")
        lines += [f"    {field.alias or name}: {field.description}" for name, field in model.model_fields.items()]
    return "\n".join(lines)


def _schema() -> str:
    schema = files("rlaudit.reports").joinpath("report.schema.json").read_text(encoding="utf-8")
    return json.dumps(json.loads(schema), indent=1)


LISTS: Mapping[Listed, Callable[[], str]] = {
    Listed.FACTORS: _factors,
    Listed.METRICS: _metrics,
    Listed.RECIPES: _recipes,
    Listed.RECIPE_KEYS: _recipe_keys,
    Listed.SCHEMA: _schema,
}
