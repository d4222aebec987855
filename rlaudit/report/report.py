"""The report of an rlaudit command, as a typed value and as JSON: schema `rlaudit-report/1`.

Its parts are records: what a judge makes is what a format draws, so a part is the domain's own dataclass where there is
one, and in `parts/` where there is none. Its top is a typed dictionary, which a command fills part by part. Typed
dictionaries are also what has a key named "from", and what a worker reports. `schema.py` makes the published JSON
schema from these classes, and `read_report.py` the records from JSON, both with pydantic.

An inspection takes less time than these classes take to import: what it runs names the report for mypy alone.
A field is added with the default None: reports of earlier releases lack it, and it is left out if it is None.
"""

from collections.abc import Mapping, Sequence
from typing import Literal, NotRequired

from typing_extensions import TypedDict

from rlaudit.diagnosis.effect import Effect
from rlaudit.layers import Judgement
from rlaudit.report.parts.ablation import Arm, Block
from rlaudit.report.parts.bisection import Bisection
from rlaudit.report.parts.bump import Bump
from rlaudit.report.parts.canary import Canary
from rlaudit.report.parts.comparison import Compared
from rlaudit.report.parts.curves import Curves
from rlaudit.report.parts.diagnosis import Source, Trainings
from rlaudit.report.parts.engine_life import PublicRecording
from rlaudit.report.parts.gates import HeldLog
from rlaudit.report.parts.inspection import Config, Finding, Inspected, Setting, Versions
from rlaudit.report.parts.releases import Releases
from rlaudit.report.parts.run import Run
from rlaudit.report.parts.weight_updates import WeightUpdates
from rlaudit.tokens.token_figures import TokenFigures

Command = Literal["inspect", "ablate", "compare", "curves", "diagnose"]
# What the report of a command is about, one of these; the others are about what every report has.
ABOUT: Mapping[Command, tuple[str, ...]] = {
    "compare": ("comparisons",),
    "curves": ("curves", "gates"),
    "diagnose": ("sources",),
}
ExitCode = Literal[0, 1, 2, 3, 70, 130]


class Report(TypedDict):
    """The report of an rlaudit command. Fields are added within a version, never removed or given another meaning."""

    schema: Literal["rlaudit-report/1"]
    rlaudit: str
    command: Command
    exit_code: ExitCode
    description: NotRequired[str]
    versions: Versions
    findings: Sequence[Finding]
    settings: Sequence[Setting]
    arms: Sequence[Arm]
    effects: Sequence[Effect]
    layers: Sequence[Judgement]
    blocks: NotRequired[Sequence[Block]]
    not_seen: Sequence[str]
    bisection: NotRequired[Bisection]
    releases: NotRequired[Releases]
    run: NotRequired[Run]
    configs: NotRequired[Sequence[Config]]
    inspection: NotRequired[Inspected]
    bump: NotRequired[Bump]
    public_recording: NotRequired[PublicRecording]
    curves: NotRequired[Curves]
    comparisons: NotRequired[Sequence[Compared]]
    sources: NotRequired[Sequence[Source]]
    trainings: NotRequired[Trainings]
    weight_updates: NotRequired[WeightUpdates]
    canary: NotRequired[Canary]
    token_figures: NotRequired[Sequence[TokenFigures]]
    gates: NotRequired[HeldLog]
