"""`rlaudit.inspect`."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rlaudit.api.own_errors import own_errors
from rlaudit.inspection.inspect import inspect as inspect_paths
from rlaudit.inspection.requested import Given, requested
from rlaudit.report.of_inspection import report_of

if TYPE_CHECKING:
    from rlaudit.report.report import Report


def inspect(
    *paths: str | os.PathLike[str],
    before: str | None = None,
    after: str | None = None,
    platform: str | None = None,
    model: str | None = None,
    framework: Sequence[str] = (),
    framework_source: Sequence[str | os.PathLike[str]] = (),
    python: Sequence[str | os.PathLike[str]] = (),
    dialect: Sequence[str | os.PathLike[str]] = (),
    select: Sequence[str] = (),
    ignore: Sequence[str] = (),
) -> "Report":
    """Return what vLLM will do with rollout configs, before and after a move. Nothing is started.

    Does what `rlaudit inspect PATHS` does, with the project's settings (rlaudit.toml, pyproject.toml). Prints nothing.

    paths: configs, programs, recordings, or folders of them; without any, the working directory if it pins vLLM.
    before, after: releases of vLLM, as "0.8.5"; if None, lock files and pins decide.
    platform: "cuda", "cpu", "npu", "rocm" or a device, as "a100"; defaults of vLLM depend on it.
    model: the model or its folder, in the place of what the configs name.
    framework: releases of frameworks, as "trl==1.7.0". framework_source: folders with their source.
    python: interpreters in whose environments the frameworks are installed; they are not run.
    dialect: YAML files that declare a framework. select, ignore: rules or layers by name.

    The report has `findings`, `settings` (as written, and as each release runs them), `configs`, `layers`, and
    `exit_code`, which is that of the command.
    Raises rlaudit.errors.UsageError for a release or name that does not exist. If a path does not exist, a file could
    not be read or no config was found, `exit_code` is 3 and nothing is raised.
    Source: `rlaudit explain configs` says what is read, and `rlaudit explain RULE` where a finding comes from.
    """
    with own_errors():
        request, threshold = requested(
            Given(
                paths=[os.fspath(path) for path in paths],
                before=before,
                after=after,
                platform=platform,
                model=model,
                framework=framework,
                framework_source=[os.fspath(folder) for folder in framework_source],
                python=[os.fspath(interpreter) for interpreter in python],
                dialect=[Path(file) for file in dialect],
                select=select,
                ignore=ignore,
            )
        )
        return report_of(inspect_paths(request), threshold)
