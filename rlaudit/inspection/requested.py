"""What a user requests of an inspection, with the project's settings for what is not given.

Behind the command `rlaudit inspect` and the function `rlaudit.inspect`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from itertools import chain
from pathlib import Path

from rlaudit.configs.dialects.spec import shipped, spec_at
from rlaudit.configs.framework_source.checkout import folders_of
from rlaudit.errors import UsageError
from rlaudit.inspection.foreign_plugins import foreign_plugins
from rlaudit.inspection.inspect import Request
from rlaudit.inspection.inspect_file import Context
from rlaudit.inspection.read_configs import known_dialects
from rlaudit.inspection.selection import selected
from rlaudit.inspection.settings import find_settings
from rlaudit.inspection.versions import version_named
from rlaudit.rules import known_rules
from rlaudit.rules.advisories import known_advisories
from rlaudit.severity import FailFor, Severity, Threshold
from rlaudit.text.did_you_mean import did_you_mean
from rlaudit.vllm.machine import Machine, machine_named
from rlaudit.vllm.pins.files import pin_files_in, pins_in, text_of
from rlaudit.vllm.pins.pin import release


@dataclass(frozen=True)
class Given:
    """What a user gives, each as the option of that name takes it; None or nothing where the settings decide."""

    paths: Sequence[str]
    before: str | None = None
    after: str | None = None
    platform: str | None = None
    model: str | None = None
    framework: Sequence[str] = ()
    framework_source: Sequence[str] = ()
    python: Sequence[str] = ()
    dialect: Sequence[Path] = ()
    select: Sequence[str] = ()
    ignore: Sequence[str] = ()
    fail_on: str | None = None
    fail_for: str | None = None
    stdin_name: str | None = None
    # Whether the paths are of a tree after a bump, which is not run with the vLLM before it.
    bumped: bool = False


def requested(given: Given) -> tuple[Request, Threshold]:
    """Return the request, and what makes its exit code 1. Raises UsageError for what does not exist."""
    settings = find_settings(Path.cwd())
    before, after = given.before or settings.get("from"), given.after or settings.get("to")
    platform = given.platform or settings.get("platform")
    fail_on = given.fail_on or settings.get("fail-on") or Severity.ERROR
    machine = Machine() if platform in (None, "cuda") else machine_named(platform)
    sides = [version_named(side) if side is not None else None for side in (before, after)]
    threshold = Threshold(
        None if fail_on == "never" else Severity(fail_on),
        FailFor(given.fail_for or settings.get("fail-for") or FailFor.STATE),
    )
    paths = given.paths or _project_here()
    if not paths:
        raise UsageError(
            "no config was named",
            f"rlaudit inspect CONFIG --from {given.before or 'VERSION'} --to {given.after or 'VERSION'}",
        )
    for folder in given.framework_source:
        if not Path(folder).is_dir():
            raise UsageError(f"--framework-source {folder}: no such folder", "name the checkout, or the package in it")
    rules, about_suppressions = selected(known_rules(), given.select or settings.get("select") or (), given.ignore)
    dialects = known_dialects(tuple(given.dialect))
    packages = tuple(chain.from_iterable(map(folders_of, given.python)))
    request = Request(
        paths=tuple(paths),
        context=Context(rules, dialects, machine, *sides, machine_known=platform is not None, model=given.model),
        about_suppressions=frozenset(about_suppressions),
        suppressions=settings.suppressions,
        stdin_name=given.stdin_name,
        excluded=settings.excludes,
        today=date.today(),
        pins=(
            *(_framework_pin(written, given.dialect) for written in given.framework),
            *([f"vllm=={sides[0]}"] if sides[0] is not None and not given.bumped else ()),
        ),
        framework_sources=(*given.framework_source, *packages),
        plugins=tuple(foreign_plugins(packages)),
    )
    return request, threshold


def _project_here() -> list[str]:
    """Return the working directory if something in it pins vLLM: that is what to inspect where nothing is named."""
    here = Path.cwd()
    return ["."] if any(pins_in(kind, text_of(path)) for kind, path in pin_files_in(here)) else []


def _framework_pin(written: str, dialects: Sequence[Path]) -> str:
    """Return a `--framework` as a requirement. Raises UsageError for another form, or a framework that is not read."""
    name, _, version = written.partition("==")
    if release(version) is None:
        raise UsageError(f"--framework {written}: no release is named", "write it as trl==1.7.0")
    packages = [spec_at(path).package for path in (*shipped().values(), *dialects)]
    names = [name for package in packages if package is not None for name in package.names]
    names += [advisory.of for advisory in known_advisories().values()]
    if name not in names:
        listed = f"there are: {', '.join(dict.fromkeys(names))}"
        raise UsageError(f"--framework {written}: {name} is not read", did_you_mean(name, names, listed))
    return written
