"""Options that several commands have, each declared once."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from rlaudit.cli.inspect_arguments import FAIL_FOR_HELP
from rlaudit.cli.names import formats, one_of
from rlaudit.cli.output import HELP
from rlaudit.errors import UsageError
from rlaudit.severity import FailFor, Severity, Threshold

LOCAL, RAY = "local", "ray"


class FailOn(StrEnum):
    """What makes the exit code 1."""

    ERROR = "error"
    NEVER = "never"


class Required(StrEnum):
    """What takes more than that nothing was found."""

    MATCH = "match"


Require = Annotated[
    Required | None,
    typer.Option(
        metavar="match",
        help="match: exit with 3 unless every layer matches; by default a layer in which nothing was found passes.",
    ),
]
FailOnMismatch = Annotated[FailOn, typer.Option(help="error: exit with 1 if a layer mismatches; never: do not.")]
FailForWhat = Annotated[FailFor, typer.Option("--fail-for", help=FAIL_FOR_HELP, show_default=False)]
Outputs = Annotated[list[str] | None, typer.Option(metavar="FORMAT[:PATH]", help=HELP, autocompletion=one_of(formats))]
Quiet = Annotated[bool, typer.Option("--quiet", help="No progress on stderr.")]

# How rollouts were sampled, and what the trainer makes of it.
Temperature = Annotated[float | None, typer.Option(metavar="T", help="Sampling temperature of the rollouts.")]
TopP = Annotated[float | None, typer.Option(metavar="P", help="Nucleus mass of the rollouts.")]
TopK = Annotated[int | None, typer.Option(metavar="K", help="Most probable tokens kept; 0 or -1 is off.")]
MinP = Annotated[float | None, typer.Option(metavar="P", help="Share of the top probability a token must have.")]
RepetitionPenalty = Annotated[float | None, typer.Option(metavar="X", help="As the rollouts had it; 1 is off.")]
TrainerTemperature = Annotated[
    float | None,
    typer.Option(metavar="T", help="What the trainer divides its logits by; the sampling temperature by default."),
]
TrainerReplaysFilters = Annotated[
    bool, typer.Option("--trainer-replays-filters", help="The trainer applies the sampler's filters as well.")
]
RolloutConfig = Annotated[Path | None, typer.Option(metavar="PATH", help="The rollout config that says all of this.")]


def threshold_of(fail_on: FailOn, fail_for: FailFor) -> Threshold:
    """Return what makes the exit code 1."""
    return Threshold(Severity.ERROR if fail_on is FailOn.ERROR else None, fail_for)


def ray_address(executor: str) -> str | None:
    """Return the address of the Ray cluster in `--executor`, None for `local`.

    Empty is the cluster that this machine belongs to. Raises UsageError for another word.
    """
    kind, _, address = executor.partition(":")
    if kind == RAY:
        return address
    if executor != LOCAL:
        raise UsageError(f"--executor {executor}: there are {LOCAL} and {RAY}[:ADDRESS]")
    return None
