"""`rlaudit explain NAME`: the documentation that lives in the code."""

import ast
import inspect
import re
from collections.abc import Callable, Mapping
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rlaudit.did_you_mean import did_you_mean
from rlaudit.errors import UsageError
from rlaudit.standard_output import to_stdout

# Causes, factors and metrics import numpy and pydantic, which `explain` of a rule does not need.
if TYPE_CHECKING:
    from rlaudit.attribution.cause import Cause


# One file each, in Markdown.
TOPICS = {file.stem: file for file in sorted(Path(__file__).parents[1].joinpath("topics").glob("*.md"))}


def explain(
    name: Annotated[
        str,
        typer.Argument(
            help="A rule, cause, test, framework, factor, metric or key of a training log; or a topic: "
            f"{', '.join(TOPICS)}, dialects, recording; or a release, such as 0.26.0."
        ),
    ],
) -> int:
    """Print all about a rule, cause, metric, release or topic.

    Also about a statistical test, framework, factor or key of a dashboard; topics are such as `clusters` or `limits`.
    """
    rule = _about_rule(name)
    if rule is not None:
        # A rule finds it in settings; a cause of the same name finds it in logprobs.
        cause = f"\n\n{_about_cause(name)}" if find_spec(f"rlaudit.causes.{name.replace('-', '_')}") else ""
        to_stdout(f"{rule}{cause}\n")
        return 0
    pages = _documentation()
    # Frameworks as they write themselves: prime-rl, NeMo-RL.
    name = next((known for known in (name, name.lower().replace("-", "_")) if known in pages), name)
    if name not in pages:
        from rlaudit.cli.release_page import release_page
        from rlaudit.curves.metric_translation import about_key

        about = release_page(name) or _word_of_a_report(name) or about_key(name)
        if about is not None:
            to_stdout(f"{about}\n")
            return 0
        otherwise = "see: rlaudit list rules, list factors; for the words of a report: rlaudit explain reading"
        hint = did_you_mean(name, pages, otherwise)
        raise UsageError(f"nothing is called {name!r}", hint)
    to_stdout(f"{pages[name]()}\n")
    return 0


def _documentation() -> Mapping[str, Callable[[], str]]:
    from rlaudit.attribution.attribute import all_causes
    from rlaudit.curves.metric_translation import about_quantity, logged_quantities
    from rlaudit.diagnosis import rounded_updates
    from rlaudit.inspection.read_configs import known_dialects
    from rlaudit.inspection.selection import rule_names
    from rlaudit.laboratory.studies.arms.plan import known_factors
    from rlaudit.laboratory.studies.updates import factor as weight_update
    from rlaudit.meaning.documented import ALL as ALL_TESTS
    from rlaudit.measurement.measure import all_metrics

    rules = {name: partial(str, _about_rule(name)) for name in rule_names()}
    frameworks = {name: partial(_about_framework, name) for name in known_dialects()}
    arm_factors = {name: partial(_about_factor, name) for name in known_factors()}
    factors: dict[str, Callable[[], str]] = {**arm_factors, weight_update.NAME: weight_update.documentation}
    causes = {name: partial(_about_cause, name) for name in all_causes()}
    tests = {name: partial(_about_test, name) for name in ALL_TESTS}
    metrics = {name: partial(_about_metric, name) for name in all_metrics()}
    logged = {name: partial(about_quantity, name) for name in logged_quantities()}
    topics: dict[str, Callable[[], str]] = {
        **{name: partial(_about_topic, file) for name, file in TOPICS.items()},
        "recording": _about_recording,
        "dialects": _about_dialects,
        rounded_updates.NAME: partial(str, inspect.getdoc(rounded_updates)),
    }
    return {**rules, **frameworks, **causes, **tests, **factors, **logged, **metrics, **topics}


def _about_rule(name: str) -> str | None:
    from rlaudit.inspection.documentation import rule_documentation

    text = rule_documentation(name)
    return f"{name}\n\n{text}" if text is not None else None


def _about_topic(file: Path) -> str:
    return file.read_text(encoding="utf-8").rstrip("\n")


def _word_of_a_report(name: str) -> str | None:
    """Return what the topic `reading` says about a word, which it writes as `*word*: ...;`."""
    text = " ".join(_about_topic(TOPICS["reading"]).split())
    match = re.search(rf"\*{re.escape(name)}\*: (.*?)(?=; \*|\. | - )", text)
    return None if match is None else f"{name}: {match[1]}\n\nrlaudit explain reading has the other words of a report."


def _about_dialects() -> str:
    from rlaudit.dialects.page import grammar

    return grammar()


def _about_framework(name: str) -> str:
    from rlaudit.dialects.page import page_of
    from rlaudit.dialects.spec import shipped
    from rlaudit.inspection.read_configs import known_dialects

    if name in shipped():
        return page_of(shipped()[name])
    dialect = known_dialects()[name]
    return f"{dialect.title}\n\n{dialect.about}"


def _about_factor(name: str) -> str:
    from rlaudit.laboratory.studies.arms.plan import known_factors

    factors = known_factors()
    factor = factors[name]
    levels = ", ".join(factor.levels) or "any version"
    return f"{factors.documentation(name)}\n\nLevels: {levels}\nLayer:  {factor.layer}\nSets:   {factor.setting}"


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
        ]
    )


def _removed_by(cause: "Cause") -> str:
    return f"by the factor {cause.factor} of rlaudit ablate" if cause.factor else "by no factor of rlaudit ablate"


def _about_test(name: str) -> str:
    from rlaudit.meaning.documented import ALL

    test = ALL[name]
    documentation = "\n\n".join(inspect.getdoc(module) or "" for module in test.modules)
    return f"{documentation}\n\nLayer: {test.layer}\nNeeds: {test.needs}"


def _about_recording() -> str:
    from rlaudit.recorder.folder import RECORDER
    from rlaudit.recorder.hook_points import where_recorded
    from rlaudit.recorder.trainer_functions import known_functions

    # They are parsed and not imported, as they are made to run inside a training.
    files = (RECORDER, RECORDER.with_name("rlaudit_ring.py"))
    docstrings = (ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or "" for file in files)
    return "\n\n".join((*docstrings, where_recorded(), known_functions()))


def _about_metric(name: str) -> str:
    from rlaudit.curves.metric_translation import translation
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
