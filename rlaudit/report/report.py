"""The report of an rlaudit command, as a typed value and as JSON: schema `rlaudit-report/1`.

A part is the dataclass that a judge makes and a format draws. If a judge makes none, the dataclass is in `parts/`. A
typed dictionary is the whole report, which a command fills part by part, what has a key named "from", and what a worker
reports. `schema.py` makes the published JSON schema from these classes, and `read_report.py` the records from JSON,
both with pydantic.

An inspection takes less time than importing these classes, so its code imports them only for mypy.
A new field has the default None, since reports of earlier releases lack it. It is left out if it is None.
"""

from collections.abc import Mapping, Sequence
from typing import Literal, NotRequired

from typing_extensions import TypedDict

from rlaudit.diagnosis.effect import Effect
from rlaudit.diagnosis.inputs import Inputs
from rlaudit.diagnosis.known_defects import KnownDefect
from rlaudit.diagnosis.move import Move
from rlaudit.diagnosis.recorded_training import Trainings
from rlaudit.layers import Judgement
from rlaudit.report.parts.ablation import Arm, Block
from rlaudit.report.parts.bisection import Bisection
from rlaudit.report.parts.bump import Bump
from rlaudit.report.parts.canary import Canary
from rlaudit.report.parts.comparison import Compared
from rlaudit.report.parts.curves import Curves
from rlaudit.report.parts.diagnosis import Source
from rlaudit.report.parts.gates import HeldLog
from rlaudit.report.parts.inspection import Config, Finding, Inspected, Setting, Versions
from rlaudit.report.parts.learned_gates import LearnedGates
from rlaudit.report.parts.probe import Probe
from rlaudit.report.parts.releases import Releases
from rlaudit.report.parts.run import Run
from rlaudit.report.parts.weight_updates import WeightUpdates
from rlaudit.tokens.token_figures import TokenFigures

Command = Literal["inspect", "ablate", "compare", "curves", "diagnose", "probe"]
# A report of these commands has one of these parts. Reports of other commands need only the parts of every report.
ABOUT: Mapping[Command, tuple[str, ...]] = {
    "compare": ("comparisons",),
    "curves": ("curves", "gates", "learned_gates"),
    "diagnose": ("sources",),
    "probe": ("probe",),
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
    inputs: NotRequired[Inputs]
    layers: Sequence[Judgement]
    move: NotRequired[Move]
    blocks: NotRequired[Sequence[Block]]
    known_defects: NotRequired[Sequence[KnownDefect]]
    not_seen: Sequence[str]
    bisection: NotRequired[Bisection]
    releases: NotRequired[Releases]
    run: NotRequired[Run]
    configs: NotRequired[Sequence[Config]]
    inspection: NotRequired[Inspected]
    bump: NotRequired[Bump]
    left_out: NotRequired[str]
    curves: NotRequired[Curves]
    comparisons: NotRequired[Sequence[Compared]]
    sources: NotRequired[Sequence[Source]]
    trainings: NotRequired[Trainings]
    weight_updates: NotRequired[WeightUpdates]
    canary: NotRequired[Canary]
    token_figures: NotRequired[Sequence[TokenFigures]]
    gates: NotRequired[HeldLog]
    learned_gates: NotRequired[LearnedGates]
    probe: NotRequired[Probe]
