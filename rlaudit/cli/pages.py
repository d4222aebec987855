"""The pages of `rlaudit explain`. A page imports what it prints: what a file offers is read and not run."""

import ast
import inspect
import re
import textwrap
from collections.abc import Callable, Mapping
from pathlib import Path
from pkgutil import iter_modules

import rlaudit
from rlaudit.cli.terminal import columns
from rlaudit.did_you_mean import did_you_mean
from rlaudit.discover import offered
from rlaudit.errors import UsageError
from rlaudit.layers import Layer
from rlaudit.standard_output import to_stdout

_PACKAGE = Path(rlaudit.__file__).parent
# One file each, in Markdown.
TOPICS = {file.stem: file for file in sorted(_PACKAGE.joinpath("topics").glob("*.md"))}
# Columns; a line is not folded further.
_NARROWEST = 40
_FRAMEWORKS = _PACKAGE / "dialects" / "frameworks"


def print_page(name: str) -> int:
    """Print the first page of a name. Raises UsageError, with the nearest name, if there is none."""
    for about in _KINDS:
        page = about(name)
        if page is not None:
            to_stdout(f"{page}\n")
            return 0
    otherwise = "see: rlaudit list rules, list factors; for the words of a report: rlaudit explain words"
    raise UsageError(f"nothing is called {name!r}", did_you_mean(name, all_names(), otherwise))


def all_names() -> set[str]:
    """Return every name that has a page."""
    from rlaudit.curves.metric_translation import logged_quantities
    from rlaudit.inspection.read_configs import known_dialects
    from rlaudit.inspection.selection import rule_names
    from rlaudit.meaning.documented import ALL as TESTS

    packages = {"causes": "-", "laboratory/factors": "-", "metrics": "_"}
    files = {
        module.name.replace("_", joint)
        for package, joint in packages.items()
        for module in iter_modules([str(_PACKAGE / package)])
    }
    return {
        *files,
        *rule_names(),
        *known_dialects(),
        *TESTS,
        *logged_quantities(),
        *TOPICS,
        *_MADE,
        *_words_of_a_report(),
    }


def _about_topic(name: str) -> str | None:
    if name in _MADE:
        return _MADE[name]()
    return TOPICS[name].read_text(encoding="utf-8").rstrip("\n") if name in TOPICS else None


def _about_release(name: str) -> str | None:
    if not re.match(r"v?\d", name):
        return None
    from rlaudit.cli.release_page import release_page

    page = release_page(name)
    return page if page is None else _folded(page)


def _folded(page: str) -> str:
    """Break lines at the width of a terminal, and indent what continues a line; a pipe keeps them whole."""
    width = columns()
    if width is None:
        return page
    lines = (
        textwrap.fill(
            line,
            max(width, _NARROWEST),
            subsequent_indent=" " * (len(line) - len(line.lstrip()) + 4),
            break_long_words=False,
            break_on_hyphens=False,
        )
        for line in page.splitlines()
    )
    return "\n".join(lines)


def _about_rule(name: str) -> str | None:
    from rlaudit.inspection.documentation import rule_documentation

    text = rule_documentation(name)
    if text is None:
        return None
    # A rule finds it in settings; a cause of the same name finds it in logprobs.
    cause = _about_cause(name)
    return "\n\n".join([name, text, *([cause] if cause is not None else [])])


def _about_metric(name: str) -> str | None:
    offer = offered("metrics", name, "METRIC")
    if offer is None:
        return None
    from rlaudit.curves.metric_translation import translation
    from rlaudit.metrics import UNCLIPPED

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
            f"{title}: a cause of mismatch, by its signature in logprobs",
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


def _about_framework(name: str) -> str | None:
    # Frameworks as they write themselves: prime-rl, NeMo-RL.
    file = _FRAMEWORKS / f"{name.lower().replace('-', '_')}.yaml"
    if file.stem.isidentifier() and file.is_file():
        from rlaudit.dialects.page import page_of

        return page_of(file)
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
    about = _words_of_a_report().get(name.lower())
    return about and _folded(f"{name}: {about}\n\nrlaudit explain words has the other words of a report.")


def _words_of_a_report() -> dict[str, str]:
    """Return what the topic `words` says about each word, in entries such as `- *word*, *other*: ...`."""
    entries = re.findall(r"^- (\*[^:]+\*): (.*(?:\n  .*)*)", TOPICS["words"].read_text(encoding="utf-8"), re.MULTILINE)
    return {
        word.lower(): " ".join(about.split()) for words, about in entries for word in re.findall(r"\*(.+?)\*", words)
    }


def _about_recording() -> str:
    from rlaudit.recorder.folder import RECORDER
    from rlaudit.recorder.hook_points import where_recorded
    from rlaudit.recorder.trainer_functions import known_functions

    # They are parsed and not imported, as they are made to run inside a training.
    files = (RECORDER, RECORDER.with_name("rlaudit_ring.py"))
    docstrings = (ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or "" for file in files)
    return "\n\n".join((*docstrings, where_recorded(), known_functions()))


def _about_dialects() -> str:
    from rlaudit.dialects.page import grammar

    return grammar()


def _about_weight_updates() -> str:
    from rlaudit.laboratory.studies.updates.factor import documentation

    return documentation()


def _about_rounded_updates() -> str:
    from rlaudit.diagnosis import rounded_updates

    return inspect.getdoc(rounded_updates) or ""


# Topics that are put together.
_MADE: Mapping[str, Callable[[], str]] = {
    "recording": _about_recording,
    "dialects": _about_dialects,
    "weight-update": _about_weight_updates,
    "updates-rounded-away": _about_rounded_updates,
}
# In this order: pages that import little come first.
_KINDS: tuple[Callable[[str], str | None], ...] = (
    _about_topic,
    _about_release,
    _about_rule,
    _about_metric,
    _about_factor,
    _about_cause,
    _about_quantity,
    _about_framework,
    _word_of_a_report,
    _about_key,
    _about_test,
)
