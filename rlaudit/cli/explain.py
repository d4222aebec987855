"""`rlaudit explain NAME` and `rlaudit list WHAT`: the documentation that lives in the code."""

import difflib
import inspect
import json
from collections.abc import Callable, Mapping
from enum import StrEnum
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, Annotated

import typer

from rlaudit.errors import UsageError
from rlaudit.standard_output import to_stdout

# Causes, factors and metrics bring numpy and pydantic with them: `explain` of a rule does not wait for them.
if TYPE_CHECKING:
    from rlaudit.attribution.cause import Cause
    from rlaudit.inspection.advisory import Advisory


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


def explain(
    name: Annotated[
        str, typer.Argument(help="A rule, cause, test, framework, factor, metric or key of a training log.")
    ],
) -> int:
    """Print what a rule, cause, test, framework, factor or metric is, and how to read it; or what a dashboard's key
    means."""
    about_rule = _about_rule(name)
    if about_rule is not None:
        # What a rule reads off settings may be what a cause shows in logprobs, under the same name.
        cause = f"\n\n{_about_cause(name)}" if find_spec(f"rlaudit.causes.{name.replace('-', '_')}") else ""
        to_stdout(f"{about_rule}{cause}\n")
        return 0
    documented = _documentation()
    if name not in documented:
        from rlaudit.cli.metric_translation import about_key

        about = about_key(name)
        if about is not None:
            to_stdout(f"{about}\n")
            return 0
        nearest = difflib.get_close_matches(name, documented, n=1)
        raise UsageError(
            f"nothing is called {name!r}",
            f"did you mean {nearest[0]}?" if nearest else "see: rlaudit list rules, or list factors",
        )
    to_stdout(f"{documented[name]()}\n")
    return 0


def list_(
    what: Annotated[Listed, typer.Argument(help="What to list.")],
    before: Annotated[str | None, typer.Option("--from", help="advisories: the vLLM that runs today.")] = None,
    after: Annotated[str | None, typer.Option("--to", help="advisories: the vLLM to move to.")] = None,
) -> int:
    """List what rlaudit knows, one line each; of advisories also those that a move between two releases crosses."""
    if before is None and after is None:
        to_stdout(f"{LISTS[what]()}\n")
        return 0
    if what is not Listed.ADVISORIES or before is None or after is None:
        raise UsageError("--from and --to go together, and with advisories", "rlaudit list advisories --from X --to Y")
    to_stdout(f"{_crossed(before, after)}\n")
    return 0


def _documentation() -> Mapping[str, Callable[[], str]]:
    from rlaudit.attribution.attribute import all_causes
    from rlaudit.cli.metric_translation import QUANTITIES, about_quantity, logged_only
    from rlaudit.inspection.read_configs import known_dialects
    from rlaudit.laboratory.studies.arms.plan import known_factors
    from rlaudit.laboratory.studies.updates import factor as weight_update
    from rlaudit.meaning.evidence import ALL as ALL_TESTS
    from rlaudit.measurement.measure import all_metrics

    rules = {name: partial(str, _about_rule(name)) for name in _rule_names()}
    frameworks = {name: partial(_about_framework, name) for name in known_dialects()}
    about = {name: partial(_about_factor, name) for name in known_factors()}
    factors: dict[str, Callable[[], str]] = {**about, weight_update.NAME: weight_update.documentation}
    causes = {name: partial(_about_cause, name) for name in all_causes()}
    tests = {name: partial(_about_test, name) for name in ALL_TESTS}
    metrics = {name: partial(_about_metric, name) for name in all_metrics()}
    logged = {name: partial(about_quantity, name) for name in logged_only(QUANTITIES.get(one, one) for one in metrics)}
    return {**rules, **frameworks, **causes, **tests, **factors, **logged, **metrics}


def _about_rule(name: str) -> str | None:
    from rlaudit.inspection.documentation import rule_documentation

    text = rule_documentation(name)
    return f"{name}\n\n{text}" if text is not None else None


def _rule_names() -> list[str]:
    from rlaudit.inspection.selection import known_rules
    from rlaudit.inspection.suppression import RULES as ABOUT_SUPPRESSIONS

    return [*known_rules(), *ABOUT_SUPPRESSIONS]


def _about_framework(name: str) -> str:
    from rlaudit.inspection.read_configs import known_dialects

    known = known_dialects()
    return f"{known[name].title}\n\n{known.documentation(name)}"


def _about_factor(name: str) -> str:
    from rlaudit.laboratory.studies.arms.plan import known_factors

    known = known_factors()
    factor = known[name]
    levels = ", ".join(factor.levels) or "any version"
    return f"{known.documentation(name)}\n\nLevels: {levels}\nLayer:  {factor.layer}\nSets:   {factor.setting}"


def _about_cause(name: str) -> str:
    from rlaudit.attribution.attribute import all_causes

    causes = all_causes()
    cause = causes[name]
    least = cause.least
    return "\n".join(
        [
            f"{cause.title}: a cause of mismatch, by its signature in logprobs",
            "",
            causes.documentation(name),
            "",
            f"Layer:    {cause.layer}",
            f"Columns:  {', '.join(cause.needs) or 'none beyond the logprobs'}",
            f"At least: {least.prompts} prompts, {least.sequences} sequences and {least.tokens} tokens, because "
            f"{least.because}",
            f"Refuted:  by {cause.falsifier}",
            f"Next:     {cause.next}",
            f"Removed:  {_removed_by(cause)}",
            f"Planted:  by rlaudit selftest --causes {cause.name}: {'; '.join(cause.planted.doses)}",
        ]
    )


def _removed_by(cause: "Cause") -> str:
    return f"by the factor {cause.factor} of rlaudit ablate" if cause.factor else "by no factor of rlaudit ablate"


def _about_test(name: str) -> str:
    from rlaudit.meaning.evidence import ALL

    test = ALL[name]
    documented = "\n\n".join(inspect.getdoc(module) or "" for module in test.modules)
    return f"{documented}\n\nLayer: {test.layer}\nNeeds: {test.needs}"


def _about_metric(name: str) -> str:
    from rlaudit.cli.metric_translation import translation
    from rlaudit.measurement.measure import all_metrics

    metrics = all_metrics()
    metric = metrics[name]
    lines = [
        metrics.documentation(name),
        "",
        f"Formula: {metric.formula}",
        f"Unit:    {metric.unit}; {metric.clipping}",
        f"Reads:   {metric.reads}",
    ]
    elsewhere = translation(metric.name)
    return "\n".join([*lines, *(["", "Elsewhere:", *elsewhere] if elsewhere else [])])


def _summary(documentation: str) -> str:
    """The first paragraph, in one line however many it takes in the source."""
    return " ".join(documentation.partition("\n\n")[0].split())


def _rules() -> str:
    from rlaudit.inspection.documentation import rule_documentation
    from rlaudit.inspection.selection import known_rules

    layers = {name: str(rule.layer) for name, rule in known_rules().items()}
    return "\n".join(
        f"{name:<40} {layers.get(name, '-'):<15} {_summary(rule_documentation(name) or '')}" for name in _rule_names()
    )


def _advisories() -> str:
    from rlaudit.advisories import known_advisories

    return _described(known_advisories())


def _described(advisories: "Mapping[str, Advisory]") -> str:
    from rlaudit.advisories import sentence

    return "\n".join(f"{name:<36} {one.window!s:<18} {sentence(name)}" for name, one in advisories.items())


def _crossed(before: str, after: str) -> str:
    from rlaudit.advisories import crossed
    from rlaudit.inspection.versions import version_named

    base, to = version_named(before), version_named(after)
    found = crossed(base, to)
    parts = {
        f"Entered: {to} has them, {base} has not": found.entered,
        f"Left: {base} has them, {to} has not": found.left,
        "Still open: both have them": found.still_open,
    }
    return "\n\n".join(
        "\n".join([f"{head} ({len(those)})", *_described(those).splitlines()]) for head, those in parts.items()
    )


def _frameworks() -> str:
    from rlaudit.inspection.read_configs import known_dialects

    known = known_dialects()
    return "\n".join(f"{name:<18} {one.title:<24} {_summary(known.documentation(name))}" for name, one in known.items())


def _versions() -> str:
    from rlaudit.vllm.tell import version_lines

    return "\n".join(version_lines())


def _settings_keys() -> str:
    from rlaudit.inspection.settings import KEYS

    return "\n".join(f"{name:<10} {meaning}" for name, (_, meaning) in KEYS.items())


def _causes() -> str:
    from rlaudit.attribution.attribute import all_causes

    return "\n".join(f"{name:<28} {cause.layer:<15} {cause.title}" for name, cause in all_causes().items())


def _tests() -> str:
    from rlaudit.meaning.evidence import ALL

    return "\n".join(
        f"{name:<18} {test.layer:<15} {_summary(inspect.getdoc(test.modules[0]) or '')} Needs {test.needs}."
        for name, test in ALL.items()
    )


def _factors() -> str:
    from rlaudit.laboratory.studies.arms.plan import known_factors
    from rlaudit.laboratory.studies.updates import factor as weight_update

    known = known_factors()
    lines = [f"{name:<18} {factor.layer:<15} {_summary(known.documentation(name))}" for name, factor in known.items()]
    about_updates = _summary(inspect.getdoc(weight_update) or "")
    lines.append(f"{weight_update.NAME:<18} {weight_update.LAYER:<15} {about_updates}")
    return "\n".join(sorted(lines))


def _metrics() -> str:
    from rlaudit.cli.metric_translation import listed
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
