"""`rlaudit list WHAT`: what rlaudit knows, a line each."""

import inspect
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from rlaudit.cli.names import one_of, rule_names
from rlaudit.cli.shown import folded, in_columns, show
from rlaudit.errors import UsageError
from rlaudit.text.did_you_mean import did_you_mean

if TYPE_CHECKING:
    from rlaudit.rules.advisories.advisory import Advisory


Rows = Iterable[Sequence[object]]


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
    what: Annotated[
        str,
        typer.Argument(
            metavar="WHAT",
            help=f"What to list: {', '.join(Listed)}.",
            autocompletion=one_of(lambda: Listed),
        ),
    ] = "",
    before: Annotated[
        str | None, typer.Option("--from", metavar="VERSION", help="advisories: the vLLM that runs today.")
    ] = None,
    after: Annotated[
        str | None, typer.Option("--to", metavar="VERSION", help="advisories: the vLLM to move to.")
    ] = None,
    framework: Annotated[
        str | None, typer.Option(metavar="NAME", help="advisories: only those of this framework.")
    ] = None,
) -> int:
    """List rules, causes, releases and more, one line each.

    `advisories` with --from and --to: which defects a move between two releases brings, ends or keeps.
    """
    if what not in set(Listed):
        named = f"no such list: {what}" if what else "name what to list"
        raise UsageError(named, did_you_mean(what, Listed, f"there are: {', '.join(Listed)}"))
    what = Listed(what)
    if framework is not None:
        show(in_columns(_of_framework(what, framework)))
        return 0
    if before is None and after is None:
        show(in_columns(LISTS[what]()) if what in LISTS else folded(TEXTS[what]()))
        return 0
    if what is not Listed.ADVISORIES or before is None or after is None:
        raise UsageError("--from and --to go together, and with advisories", "rlaudit list advisories --from X --to Y")
    show(_crossed(before, after))
    return 0


def _summary(documentation: str) -> str:
    """Return the first paragraph as one line."""
    return " ".join(documentation.partition("\n\n")[0].split())


def _rules() -> Rows:
    from rlaudit.inspection.documentation import rule_documentation
    from rlaudit.rules import known_rules

    rules = known_rules()
    for name in rule_names():
        yield name, rules[name].layer if name in rules else "-", _summary(rule_documentation(name) or "")


def _advisories() -> Rows:
    from rlaudit.rules.advisories import known_advisories

    return _rows_of(known_advisories())


def _rows_of(advisories: "Mapping[str, Advisory]") -> Rows:
    return [(name, advisory.affected, advisory.sentence) for name, advisory in advisories.items()]


def _of_framework(what: Listed, framework: str) -> Rows:
    from rlaudit.rules.advisories import defects_of, known_advisories

    known = {advisory.of for advisory in known_advisories().values()}
    package = framework.replace("_", "-")
    if what is not Listed.ADVISORIES or package not in known:
        there = f"rlaudit list advisories --framework NAME, of {', '.join(sorted(known))}"
        raise UsageError(f"--framework {framework}: there is no such list", there)
    return _rows_of(defects_of(package))


def _crossed(before: str, after: str) -> str:
    from rlaudit.inspection.versions import version_named
    from rlaudit.rules.advisories import crossed

    base, to = version_named(before), version_named(after)
    defects = crossed(base, to)
    parts = {
        f"Entered: {to} has them, {base} has not": defects.entered,
        f"Left: {base} has them, {to} has not": defects.left,
        "Still open: both have them": defects.still_open,
    }
    return "\n\n".join(
        f"{heading} ({len(part)})\n{in_columns(_rows_of(part))}".rstrip() for heading, part in parts.items()
    )


def _frameworks() -> Rows:
    from rlaudit.inspection.read_configs import known_dialects

    return [(name, dialect.title, _summary(dialect.about)) for name, dialect in known_dialects().items()]


def _versions() -> Rows:
    from rlaudit.vllm.catalogue import Catalogue, known_versions
    from rlaudit.vllm.measured import RUNS, measured
    from rlaudit.vllm.resolution.engine import has_v0
    from rlaudit.vllm.review import unreviewed

    for version in known_versions():
        catalogue = Catalogue.at(version)
        open_rules = unreviewed(version)
        engines = "V1 or V0" if has_v0(version) else "V1"
        platforms = [platform for platform in RUNS if measured(version, platform)]
        figures = f"measured on {' and '.join(platforms)}" if platforms else "not measured"
        review = f"not reviewed: {', '.join(open_rules)}" if open_rules else ""
        known = f"{len(catalogue.engine):>3} arguments  {len(catalogue.variables):>3} variables"
        yield version, engines, known, "; ".join(filter(None, (figures, review)))


def _settings_keys() -> Rows:
    from rlaudit.inspection.settings import KEYS

    return [(name, meaning) for name, (_, meaning) in KEYS.items()]


def _causes() -> Rows:
    from rlaudit.causes.attribution.attribute import all_causes

    return [(name, cause.layer, cause.title) for name, cause in all_causes().items()]


def _tests() -> Rows:
    from rlaudit.meaning.documented import ALL

    for name, test in ALL.items():
        yield name, test.layer, f"{_summary(inspect.getdoc(test.modules[0]) or '')} Needs {test.needs}."


def _factors() -> Rows:
    from rlaudit.laboratory.studies.arms.plan import known_factors
    from rlaudit.laboratory.studies.updates import factor as weight_update

    factors = known_factors()
    rows = [(name, factor.layer, _summary(factors.documentation(name))) for name, factor in factors.items()]
    return sorted([*rows, (weight_update.NAME, weight_update.LAYER, _summary(inspect.getdoc(weight_update) or ""))])


def _metrics() -> str:
    from rlaudit.curves.metric_translation import listed
    from rlaudit.statistics.measurement.measure import all_metrics

    return listed(all_metrics())


def _recipes() -> Rows:
    import yaml

    from rlaudit.laboratory.recipe import recipe_folders

    for path in (path for folder in recipe_folders() for path in sorted(folder.glob("*.yaml"))):
        yield path.stem, _summary(yaml.safe_load(path.read_text(encoding="utf-8"))["description"])


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


LISTS: Mapping[Listed, Callable[[], Rows]] = {
    Listed.RULES: _rules,
    Listed.ADVISORIES: _advisories,
    Listed.FRAMEWORKS: _frameworks,
    Listed.VERSIONS: _versions,
    Listed.SETTINGS_KEYS: _settings_keys,
    Listed.CAUSES: _causes,
    Listed.FACTORS: _factors,
    Listed.TESTS: _tests,
    Listed.RECIPES: _recipes,
}
# What is no table.
TEXTS: Mapping[Listed, Callable[[], str]] = {
    Listed.METRICS: _metrics,
    Listed.RECIPE_KEYS: _recipe_keys,
    Listed.SCHEMA: _schema,
}
