"""One small audit of each release, and the releases at which a figure moves.

Each release has its run directory below the run's: what is finished there is not run again. An environment that was
built for a release is removed when its run is over.
"""

import hashlib
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from releases.drawn_tokens import drawn_cells
from releases.release_cells import cells_of, without_figures
from releases.update_cells import update_cells, without_cases
from rlaudit.ablation.run import Ablation
from rlaudit.engines.environments.environment import locate, remove
from rlaudit.engines.environments.environment_spec import engine_spec
from rlaudit.engines.environments.given_interpreters import GivenInterpreters
from rlaudit.engines.hardware.accelerator import Accelerator, machine_of
from rlaudit.errors import NotFinished, UsageError
from rlaudit.files.parse_json import parse_json
from rlaudit.files.write_atomically import write_atomically
from rlaudit.laboratory.prompts import PromptSet
from rlaudit.laboratory.recipe import AnyRecipe
from rlaudit.laboratory.run_folder import PLAN, REPORT, TOKENS, has_report, report_as_written
from rlaudit.layers import Layer, untested
from rlaudit.report.new_report import new_report
from rlaudit.report.parts.releases import MeasuredRelease, Releases
from rlaudit.report.read_report import read_report

if TYPE_CHECKING:
    from rlaudit.report.report import Report

NOTHING = Releases(properties={}, measured=[])


def each_release(
    ablation: Ablation, recipes: Mapping[str, AnyRecipe], given: GivenInterpreters, *, keep: bool
) -> "Report":
    """Measure the releases, each by its recipe, oldest first, and return the report of all.

    keep: leave the environments that are built for it. A release without an environment does not stop the others. The
    report in the run directory grows with each release; what it holds from another machine is taken from there.
    """
    folder = ablation.folder
    known = _releases_before(folder)
    properties = dict(known.properties)
    rows = {
        row.version: row
        for row in known.measured
        if row.cells and row.version in recipes and row.asked == _digest(recipes[row.version], ablation.prompts)
    }
    for before, (release, release_recipe) in zip([None, *recipes], recipes.items(), strict=False):
        if release in rows and not (folder / release).exists():
            ablation.progress.note(f"  {release}: measured before on {rows[release].on}")
        else:
            titles, rows[release] = _measure(ablation, release, before, release_recipe, given, keep=keep)
            properties |= titles
        measured = [rows[version] for version in recipes if version in rows]
        report = _report_of([*recipes], Releases(properties=properties, measured=measured))
        write_atomically(folder / REPORT, report_as_written(report))
    return report


def _measure(
    ablation: Ablation, release: str, before: str | None, recipe: AnyRecipe, given: GivenInterpreters, *, keep: bool
) -> tuple[dict[str, str], MeasuredRelease]:
    """Return the titles of a release's properties, and its row. before: the release before it, if any."""
    accelerator, progress, folder = ablation.accelerator, ablation.progress, ablation.folder / release
    on, asked = f"{accelerator.kind}, {accelerator.name}", _digest(recipe, ablation.prompts)
    row = partial(MeasuredRelease, version=release, on=on, asked=asked)
    try:
        report = _existing_report(recipe, folder)
        if report is None:
            with _removed_afterwards(release, accelerator, keep):
                report = ablation.report(recipe, given.of((release,)), folder)
    except NotFinished as error:
        progress.note(f"  {release}: not measured: {error.message}")
        return {}, row(cells={}, why=[error.message], minutes=0.0, date=_day(time.time()))
    updates = report.get("weight_updates")
    cases = updates.cases if updates else []
    titles, cells = cells_of(report, release, machine_of(accelerator))
    tokens_before = None if before is None else ablation.folder / before / TOKENS
    drawn = drawn_cells(folder / TOKENS, tokens_before, report["arms"])
    for name, title, cell in (*drawn, *update_cells(cases)):
        titles[name], cells[name] = title, cell
    progress.note(f"  {release}: {len(cells)} properties")
    seconds = updates.cost.seconds if updates else report["run"].seconds
    date, minutes = _day((folder / REPORT).stat().st_mtime), round(seconds / 60, 1)
    why = [*without_figures(report), *without_cases(cases)]
    return titles, row(cells=cells, why=why, minutes=minutes, date=date)


def _report_of(versions: Sequence[str], releases: Releases) -> "Report":
    complete = sum(bool(row.cells) for row in releases.measured) == len(versions)
    report = new_report(
        "ablate",
        0 if complete else 3,
        before=versions[0],
        after=versions[-1],
        layers=[untested(layer, "each release is judged in its own report, in its own folder") for layer in Layer],
    )
    report["releases"] = releases
    return report


def _digest(recipe: AnyRecipe, prompts: PromptSet) -> str:
    content = json.dumps([recipe.model_dump(mode="json", by_alias=True), prompts.digest], sort_keys=True)
    return hashlib.sha256(content.encode()).hexdigest()[:16]


def _releases_before(folder: Path) -> Releases:
    """Return the releases that the report in the run directory holds."""
    with suppress(OSError, UsageError):
        return read_report(folder / REPORT).get("releases") or NOTHING
    return NOTHING


def _existing_report(recipe: AnyRecipe, folder: Path) -> "Report | None":
    """Return the report in the folder if it is of this recipe."""
    with suppress(OSError, ValueError, KeyError, NotFinished):
        document = recipe.model_dump(mode="json", by_alias=True)
        if has_report(folder) and parse_json((folder / PLAN).read_bytes())["recipe"] == document:
            return read_report(folder / REPORT)
    return None


@contextmanager
def _removed_afterwards(release: str, accelerator: Accelerator, keep: bool) -> Iterator[None]:
    """Remove the environment if it was built for this release meanwhile."""
    spec = engine_spec(release, accelerator.kind)
    stays = keep or locate(spec) is not None
    try:
        yield
    finally:
        if not stays and locate(spec) is not None:
            remove(spec.name)


def _day(seconds: float) -> str:
    return time.strftime("%Y-%m-%d", time.localtime(seconds))
