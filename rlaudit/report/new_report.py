"""Make a report without content."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, cast

import rlaudit
from rlaudit.layers import Judgement

if TYPE_CHECKING:
    from rlaudit.report.report import Command, ExitCode, Report

SCHEMA: Final = "rlaudit-report/1"


def new_report(
    command: "Command",
    exit_code: int,
    *,
    before: str | None = None,
    after: str | None = None,
    layers: Sequence[Judgement] = (),
    not_seen: Sequence[str] = (),
) -> "Report":
    """Return a report without findings, settings and arms, to which a command adds what it has.

    before, after: releases of vLLM, None if the report is about none or about several.
    """
    return {
        "schema": SCHEMA,
        "rlaudit": rlaudit.__version__,
        "command": command,
        "exit_code": cast("ExitCode", exit_code),
        "versions": {"from": before, "to": after},
        "findings": [],
        "settings": [],
        "arms": [],
        "effects": [],
        "layers": list(layers),
        "not_seen": list(not_seen),
    }
