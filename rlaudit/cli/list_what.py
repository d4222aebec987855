"""`rlaudit list WHAT`: what rlaudit knows, a line each."""

import inspect
import json
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from rlaudit.errors import UsageError
from rlaudit.standard_output import to_stdout

if TYPE_CHECKING:
    from rlaudit.advisories.advisory import Advisory


class Listed(StrEnum):
    """What can be listed."""

    RULES = "rules"
    ADVISORIES = "advisories"
    FRAMEWORKS = "frameworks"
    VERSIONS = "versions"
    CAUSES = "causes"
    FACTORS = "factors"
    METRICS = "metrics"
    TESTS = "tests"
    RECIPES = "recipes"
    RECIPE_KEYS = "recipe-keys"
    SETTINGS_KEYS = "settings-keys"
    SCHEMA = "schema"


def list_(
    what: Annotated[Listed, typer.Argument(help="What to list.")],
    before: Annotated[str | None, typer.Option("--from", help="advisories: the vLLM that runs today.")] = None,
    after: Annotated[str | None, typer.Option("--to", help="advisories: the vLLM to move to.")] = None,
) -> int:
    """List what rlaudit knows, one line each.

    With --from and --to: the advisories that a move between two releases crosses.
    """
    if before is None and after is None:
        to_stdout(f"{LISTS[what]()}\n")
        return 0
    if what is not Listed.ADVISORIES or before is None or after is None:
        raise UsageError("--from and --to go together, and with advisories", "rlaudit list advisories --from X --to Y")
    to_stdout(f"{_crossed(before, after)}\n")
    return 0


def _summary(documentation: str) -> str:
    """Return the first paragraph as one line."""
    return " ".join(documentation.partition("\n\n")[0].split())


def _rules() -> str:
    from rlaudit.inspection.documentation import rule_documentation
    from rlaudit.inspection.selection import rule_names
    from rlaudit.rules import known_rules

    layers = {name: str(rule.layer) for name, rule in known_rules().items()}
    return "\n".join(
        f"{name:<40} {layers.get(name, '-'):<15} {_summary(rule_documentation(name) or '')}" for name in rule_names()
    )


def _advisories() -> str:
    from rlaudit.advisories import known_advisories

    return _lines_of(known_advisories())


def _lines_of(advisories: "Mapping[str, Advisory]") -> str:
    return "\n".join(f"{name:<36} {advisory.window!s:<18} {advisory.sentence}" for name, advisory in advisories.items())


def _crossed(before: str, after: str) -> str:
    from rlaudit.advisories import crossed
    from rlaudit.inspection.versions import version_named

    base, to = version_named(before), version_named(after)
    defects = crossed(base, to)
    parts = {
        f"Entered: {to} has them, {base} has not": defects.entered,
        f"Left: {base} has them, {to} has not": defects.left,
        "Still open: both have them": defects.still_open,
    }
    return "\n\n".join(
        "\n".join([f"{heading} ({len(part)})", *_lines_of(part).splitlines()]) for heading, part in parts.items()
    )


def _frameworks() -> str:
    from rlaudit.inspection.read_configs import known_dialects

    return "\n".join(
        f"{name:<18} {dialect.title:<24} {_summary(dialect.about)}" for name, dialect in known_dialects().items()
    )


def _versions() -> str:
    from rlaudit.vllm.catalogue import Catalogue, known_versions
    from rlaudit.vllm.measured import RUNS, measured
    from rlaudit.vllm.resolution.engine import has_v0
    from rlaudit.vllm.review import unreviewed

    lines = []
    for version in known_versions():
        catalogue = Catalogue.at(version)
        open_rules = unreviewed(version)
        engines = "V1 or V0" if has_v0(version) else "V1"
        platforms = [platform for platform in RUNS if measured(version, platform)]
        figures = f"; measured on {' and '.join(platforms)} (rlaudit explain VERSION)" if platforms else ""
        review = f"; not reviewed: {', '.join(open_rules)}" if open_rules else ""
        lines.append(
            f"{version!s:<12} {engines:<9} {len(catalogue.engine):>3} arguments  "
            f"{len(catalogue.variables):>3} variables  from {catalogue.source}{figures}{review}"
        )
    return "\n".join(lines)


def _settings_keys() -> str:
    from rlaudit.inspection.settings import KEYS

    return "\n".join(f"{name:<10} {meaning}" for name, (_, meaning) in KEYS.items())


def _causes() -> str:
    from rlaudit.attribution.attribute import all_causes

    return "\n".join(f"{name:<28} {cause.layer:<15} {cause.title}" for name, cause in all_causes().items())


def _tests() -> str:
    from rlaudit.meaning.documented import ALL

    return "\n".join(
        f"{name:<18} {test.layer:<15} {_summary(inspect.getdoc(test.modules[0]) or '')} Needs {test.needs}."
        for name, test in ALL.items()
    )


def _factors() -> str:
    from rlaudit.laboratory.studies.arms.plan import known_factors
    from rlaudit.laboratory.studies.updates import factor as weight_update

    factors = known_factors()
    lines = [
        f"{name:<18} {factor.layer:<15} {_summary(factors.documentation(name))}" for name, factor in factors.items()
    ]
    about_updates = _summary(inspect.getdoc(weight_update) or "")
    lines.append(f"{weight_update.NAME:<18} {weight_update.LAYER:<15} {about_updates}")
    return "\n".join(sorted(lines))


def _metrics() -> str:
    from rlaudit.curves.metric_translation import listed
    from rlaudit.measurement.measure import all_metrics

    return listed(all_metrics())


def _recipes() -> str:
    import yaml

    from rlaudit.laboratory.recipe import recipe_folders

    paths = [path for folder in recipe_folders() for path in sorted(folder.glob("*.yaml"))]
    return "\n".join(
        f"{path.stem:<14} {yaml.safe_load(path.read_text(encoding='utf-8'))['description']}" for path in paths
    )


def _recipe_keys() -> str:
    from rlaudit.laboratory.recipe import Objective
    from rlaudit.laboratory.studies.arms.recipe import Block, ExtraArm, Point, Recipe, Sampling, Trainer
    from rlaudit.laboratory.studies.canary.recipe import MODELS as OF_TRAININGS
    from rlaudit.laboratory.studies.updates.recipe import EngineToUpdate, UpdateRecipe, WeightUpdates

    lines = []
    of_updates = (UpdateRecipe, WeightUpdates, EngineToUpdate)
    for model in (Recipe, Block, Point, ExtraArm, Sampling, Trainer, Objective, *of_updates, *OF_TRAININGS):
        lines.append(f"{model.__name__.lower()}: {_summary(inspect.getdoc(model) or '')}")
        lines += [f"    {field.alias or name}: {field.description}" for name, field in model.model_fields.items()]
    return "\n".join(lines)


def _schema() -> str:
    from rlaudit.report.schema import report_schema

    return json.dumps(report_schema(), indent=1)


LISTS: Mapping[Listed, Callable[[], str]] = {
    Listed.RULES: _rules,
    Listed.ADVISORIES: _advisories,
    Listed.FRAMEWORKS: _frameworks,
    Listed.VERSIONS: _versions,
    Listed.SETTINGS_KEYS: _settings_keys,
    Listed.CAUSES: _causes,
    Listed.FACTORS: _factors,
    Listed.METRICS: _metrics,
    Listed.TESTS: _tests,
    Listed.RECIPES: _recipes,
    Listed.RECIPE_KEYS: _recipe_keys,
    Listed.SCHEMA: _schema,
}
