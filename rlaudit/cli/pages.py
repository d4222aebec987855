"""The pages of `rlaudit explain`. A page imports what it prints: what a file offers is read and not run."""

import ast
import inspect
import re
from collections.abc import Callable, Mapping
from pathlib import Path

import rlaudit
from rlaudit.cli.names import TOPICS, described, related, rule_names, words_of_a_report
from rlaudit.cli.shown import drawn, folded, show
from rlaudit.discover import offered
from rlaudit.errors import UsageError
from rlaudit.layers import Layer
from rlaudit.text.did_you_mean import VERY_NEAR, did_you_mean

_PACKAGE = Path(rlaudit.__file__).parent
_FRAMEWORKS = _PACKAGE / "configs" / "dialects" / "frameworks"


def print_page(name: str, in_full: bool = False) -> int:
    """Print the first page of a name. Raises UsageError, with the nearest name, if there is none."""
    for about in (*([_framework_in_full] if in_full else []), *_KINDS):
        page = about(name)
        if page is not None:
            shown = drawn(page) if name in TOPICS else folded(page, about not in _LINES)
            show("\n\n".join(filter(None, (shown, folded(_see_also(name), wrapped=False)))))
            return 0
    otherwise = "see: rlaudit list rules, list factors; for the words of a report: rlaudit explain words"
    raise UsageError(f"nothing is called {name!r}", did_you_mean(name, all_names(), otherwise, VERY_NEAR))


def _see_also(name: str) -> str:
    kinds = related(name)
    # As frameworks write themselves.
    kinds["frameworks"] = [other.replace("_", "-") for other in kinds.get("frameworks", ())]
    kinds["releases"] = kinds.pop("versions", [])
    lines = [f"    {kind + ':':<12}{', '.join(names)}" for kind, names in kinds.items() if names]
    return "\n".join(["See also (rlaudit explain NAME)", *lines]) if lines else ""


def all_names() -> set[str]:
    """Return every name that has a page, but for moves and keys of a training log."""
    from rlaudit.curves.metric_translation import logged_quantities
    from rlaudit.inspection.read_configs import known_dialects

    files = (name for names in described().values() for name in names)
    return {*files, *rule_names(), *known_dialects(), *logged_quantities(), *_MADE, *words_of_a_report()}


def _about_topic(name: str) -> str | None:
    if name in _MADE:
        return _MADE[name]()
    return TOPICS[name].read_text(encoding="utf-8").rstrip("\n") if name in TOPICS else None


def _about_release(name: str) -> str | None:
    if not re.match(r"v?\d", name):
        return None
    from rlaudit.cli.release_page import release_page

    return release_page(name)


def _about_rule(name: str) -> str | None:
    from rlaudit.inspection.documentation import rule_documentation

    text = rule_documentation(name)
    if text is None:
        return None
    # A rule finds it in settings; a cause of the same name finds it in logprobs.
    cause = _about_cause(name)
    return "\n\n".join([name, text, *([cause] if cause is not None else [])])


def _about_metric(name: str) -> str | None:
    offer = offered("statistics/metrics", name, "METRIC")
    if offer is None:
        return None
    from rlaudit.curves.metric_translation import translation
    from rlaudit.statistics.metrics import UNCLIPPED

    texts = {key: ast.literal_eval(offer.values[key]) for key in ("name", "formula", "unit", "reads")}
    clipping = ast.literal_eval(offer.values["clipping"]) if "clipping" in offer.values else UNCLIPPED
    lines = [
        offer.documentation,
        "",
        f"Formula: {texts['formula']}",
        f"Unit:    {texts['unit']}; {clipping}",
        f"Reads:   {texts['reads']}",
    ]
    elsewhere = translation(texts["name"])
    return "\n".join([*lines, *(["", "Elsewhere:", *elsewhere] if elsewhere else [])])


def _about_factor(name: str) -> str | None:
    offer = offered("laboratory/factors", name, "FACTOR")
    if offer is None:
        return None
    from importlib import import_module

    factor = import_module(f"rlaudit.laboratory.factors.{offer.file.stem}").FACTOR
    levels = ", ".join(factor.levels) or "any version"
    return f"{offer.documentation}\n\nLevels: {levels}\nLayer:  {factor.layer}\nSets:   {factor.setting}"


def _about_cause(name: str) -> str | None:
    offer = offered("causes", name, "CAUSE")
    if offer is None:
        return None
    from rlaudit.meaning import least_data

    values = offer.values
    title, falsifier, following = (ast.literal_eval(values[key]) for key in ("title", "falsifier", "next"))
    needs, factor = (ast.literal_eval(values[key]) if key in values else None for key in ("needs", "factor"))
    # Written as a member of Layer, and as one of the amounts that least_data.py names.
    layer = Layer[ast.unparse(values["layer"]).removeprefix("Layer.")]
    least: least_data.LeastData = getattr(least_data, ast.unparse(values["least"]))
    return "\n".join(
        [
            f"{title}: a cause of mismatch, recognised by its pattern in the logprobs",
            "",
            offer.documentation,
            "",
            f"Layer:    {layer}",
            f"Columns:  {', '.join(needs or ()) or 'none beyond the logprobs'}",
            f"At least: {least.prompts} prompts, {least.sequences} sequences and {least.tokens} tokens, because "
            f"{least.because}",
            f"Wrong if: {falsifier}",
            f"Next:     {following}",
            f"Try:      {f'rlaudit ablate CONFIG --factor {factor}' if factor else 'no factor of rlaudit ablate'}",
        ]
    )


def _framework_in_full(name: str) -> str | None:
    return _about_framework(name, in_full=True)


def _about_framework(name: str, in_full: bool = False) -> str | None:
    # Frameworks as they write themselves: prime-rl, NeMo-RL.
    file = _FRAMEWORKS / f"{name.lower().replace('-', '_')}.yaml"
    if file.stem.isidentifier() and file.is_file():
        from rlaudit.configs.dialects.page import page_of

        return page_of(file, in_full)
    return None


def _about_reader(name: str) -> str | None:
    from rlaudit.inspection.read_configs import known_dialects

    dialect = known_dialects().get(name)
    return None if dialect is None else f"{dialect.title}\n\n{dialect.about}"


def _about_test(name: str) -> str | None:
    from rlaudit.meaning.documented import ALL

    if name not in ALL:
        return None
    test = ALL[name]
    documentation = "\n\n".join(inspect.getdoc(module) or "" for module in test.modules)
    return f"{documentation}\n\nLayer: {test.layer}\nNeeds: {test.needs}"


def _about_quantity(name: str) -> str | None:
    from rlaudit.curves.metric_translation import about_quantity, logged_quantities

    return about_quantity(name) if name in logged_quantities() else None


def _about_key(name: str) -> str | None:
    from rlaudit.curves.metric_translation import about_key

    return about_key(name)


def _word_of_a_report(name: str) -> str | None:
    words = words_of_a_report()
    about = words.get(name.lower()) or words.get(name.lower().partition(" (")[0])
    return about and f"{name}: {about}\n\nrlaudit explain words has the other words of a report."


def _about_argument(name: str) -> str | None:
    """Return the factor that sets an argument of vLLM."""
    for factor in described()["factors"]:
        offer = offered("laboratory/factors", factor, "FACTOR")
        setting = offer and offer.values.get("setting")
        if isinstance(setting, ast.Constant) and setting.value == name:
            return f"{name} is set by the factor {factor}.\n\n{_about_factor(factor)}"
    return None


def _about_command(name: str) -> str | None:
    from rlaudit.cli.commands import COMMANDS

    return f"rlaudit {name}: {COMMANDS[name][1]}\n\nrlaudit {name} --help" if name in COMMANDS else None


def _about_recording() -> str:
    from rlaudit.recording.folder import RECORDER
    from rlaudit.recording.hook_points import where_recorded
    from rlaudit.recording.trainer_functions import known_functions

    # It is parsed and not imported, as it is made to run inside a training.
    documented = ast.get_docstring(ast.parse(RECORDER.read_text(encoding="utf-8"))) or ""
    return "\n\n".join((documented, where_recorded(), known_functions()))


def _about_dialects() -> str:
    from rlaudit.configs.dialects.page import grammar

    return grammar()


def _about_weight_updates() -> str:
    from rlaudit.laboratory.studies.updates.factor import documentation

    return documentation()


def _about_rounded_updates() -> str:
    from rlaudit.diagnosis import rounded_updates

    return inspect.getdoc(rounded_updates) or ""


def _about_api() -> str:
    from rlaudit.cli.api_page import api_page

    return api_page()


# Topics that are put together.
_MADE: Mapping[str, Callable[[], str]] = {
    "api": _about_api,
    "recording": _about_recording,
    "dialects": _about_dialects,
    "weight-update": _about_weight_updates,
    "updates-rounded-away": _about_rounded_updates,
}
# Pages of whole lines; others have those of docstrings.
_LINES = (_about_release, _about_framework, _framework_in_full)
# In this order: pages that import little come first.
_KINDS: tuple[Callable[[str], str | None], ...] = (
    _about_topic,
    _about_release,
    _about_rule,
    _about_metric,
    _about_factor,
    _about_cause,
    _about_framework,
    _about_quantity,
    _about_reader,
    _word_of_a_report,
    _about_argument,
    _about_key,
    _about_test,
    _about_command,
)
