"""`--fail-on` of the commands that measure: whether what was measured makes the exit code 1."""

from enum import StrEnum
from typing import Annotated

import typer


class FailOn(StrEnum):
    """What makes the exit code 1."""

    ERROR = "error"
    NEVER = "never"


FailOnMismatch = Annotated[FailOn, typer.Option(help="What exits with 1: a mismatch (error), or nothing.")]
