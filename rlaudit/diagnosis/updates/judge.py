"""Judges the cases of a run: requests, lag, parts, staleness and continuity, with the weights that were really held."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum, auto

from rlaudit.diagnosis.updates.continuity import Continuity, judge_continuity
from rlaudit.diagnosis.updates.lag import LagGroup, lag_groups
from rlaudit.diagnosis.updates.parts import Parts, judge_parts
from rlaudit.diagnosis.updates.requests import RequestCount, count_requests
from rlaudit.diagnosis.updates.staleness import Staleness, judge_staleness
from rlaudit.laboratory.studies.updates.cases import FLIGHT, CaseKind, UpdateCase
from rlaudit.laboratory.studies.updates.records import EngineRecord
from rlaudit.laboratory.studies.updates.run import FinishedUpdates
from rlaudit.laboratory.weight_path import MERGED, in_words
from rlaudit.layers import Verdict
from rlaudit.settings.trainer_facts import PauseMode

# A release, what loads the weights, and what brings them.
Way = tuple[str, str, str | None]


class Fault(Enum):
    """What an update leaves behind, or loses."""

    STALE = auto()
    PART = auto()
    OLD_ADAPTER = auto()
    LOST = auto()
    BROKEN = auto()
    OLD_FLIGHTS = auto()
    UNDECIDED = auto()


@dataclass(frozen=True, kw_only=True)
class JudgedCase:
    """One way to update one engine, as it is reported. Judgements that do not apply to its kind are None or empty."""

    # The engine start.
    start: str
    version: str
    path: str
    # What brought the weights and what loaded them, as it ran.
    transport: str | None
    levels: Mapping[str, str]
    name: str
    kind: CaseKind
    mode: PauseMode
    clear_cache: bool
    # Why it did not run.
    problem: str | None
    # Whether the case lost nothing and served nothing stale: prefix cache, and keys and values of flights.
    clean: bool | None
    in_flight: RequestCount
    around: RequestCount
    lags: Sequence[LagGroup]
    parts: Parts | None
    staleness: Staleness | None
    continuity: Continuity | None
    seconds: float | None
    cell: str
    # Whether it did not run because the release has no such calls.
    unsupported: bool | None = None
    # Reports of 0.4.0 have none of these. The engine: V0 or V1.
    engine: str | None = None
    # The transport of the weights.
    brought_by: str | None = None
    salted: bool | None = None
    # The number of aborted requests whose last output repeats logprobs.
    repeated: int | None = None

    @property
    def ran(self) -> bool:
        """Whether the case can be judged."""
        return self.problem is None

    @property
    def of_adapter(self) -> bool:
        """Whether the update is another adapter."""
        return self.kind is CaseKind.ADAPTER

    @property
    def caching(self) -> str:
        """What keeps old keys and values from new requests, in words."""
        return f"clear_cache={self.clear_cache}{', salted' if self.salted else ''}"

    @property
    def loading(self) -> str:
        """What loads the weights."""
        return f"{self.path}, {self.name}" if self.of_adapter else self.path

    @property
    def way(self) -> Way:
        """The release, and how weights come to it and are loaded."""
        return self.version, self.path, self.brought_by

    @property
    def where(self) -> str:
        """The engine start and the case."""
        return f"{self.start}: {self.name}"

    @property
    def leaves_parts(self) -> bool:
        """Whether a part of the weights, or all of an adapter, stayed old."""
        return self.ran and self.parts is not None and self.parts.verdict is Verdict.MISMATCH

    @property
    def decided(self) -> bool:
        """Whether the question of the case has an answer."""
        if self.of_adapter and self.leaves_parts:
            return True
        open_verdicts = (Verdict.INCONCLUSIVE, Verdict.NOT_TESTED)
        return self.ran and self.staleness is not None and self.staleness.verdict not in open_verdicts

    @property
    def faults(self) -> tuple[Fault, ...]:
        """What a case that ran leaves behind, the gravest first. Parts of the weights are no fault of a sequence."""
        stale = self.staleness
        if self.of_adapter and self.leaves_parts:
            # What a cache does then is not known.
            return (Fault.OLD_ADAPTER,)
        serves_old, old_flights = (False, False) if stale is None else (stale.found, stale.old_flights)
        tests = {
            Fault.STALE: serves_old,
            Fault.LOST: not (self.in_flight.in_order and self.around.in_order),
            Fault.BROKEN: self.continuity is not None and self.continuity.verdict is Verdict.MISMATCH,
            # A request that continues after the update with its old keys and values is as stale as a cached prompt.
            Fault.OLD_FLIGHTS: old_flights is True,
            Fault.UNDECIDED: not self.decided or (old_flights is None and not serves_old),
        }
        return tuple(fault for fault, holds in tests.items() if holds)


def judge_run(run: FinishedUpdates) -> tuple[JudgedCase, ...]:
    """Judge all cases, in the order in which they ran."""
    judged = [judge_case(run, record, case) for record in run.records for case in record.start.cases]
    return tuple(replace(case, clean=case.ran and not case.faults) for case in judged)


def judge_case(run: FinishedUpdates, record: EngineRecord, case: UpdateCase) -> JudgedCase:
    """Judge one case of any kind."""
    tokens, margin, start = run.tokens_of(record, case), run.recipe.equivalence_margin, record.start
    in_flight, around = record.of(case, FLIGHT), [flight for flight in tokens.flights if flight.run != FLIGHT]
    broken = record.problems.get(case.name)
    paused, ok = case.mode is not PauseMode.NONE, record.status == "ok"
    judged = JudgedCase(
        start=start.name,
        version=start.version,
        path=start.path,
        transport=in_words(start.path, record.transport) if ok else None,
        levels=start.levels,
        name=case.name,
        kind=case.kind,
        mode=case.mode,
        clear_cache=case.clear_cache,
        problem=f"{broken['step']}: {broken['message']}" if broken else None if ok else record.failure or record.status,
        clean=None,
        in_flight=count_requests(in_flight, paused=paused),
        around=count_requests(around, paused=paused),
        lags=(),
        parts=None,
        staleness=None,
        continuity=None,
        seconds=record.case_seconds.get(case.name),
        cell=record.cell_key,
        unsupported="unsupported" in (record.status, broken and broken["status"]),
        engine=record.kind or None,
        brought_by=start.transport,
        salted=case.salted,
        repeated=sum(flight.surplus_logprobs > 0 for flight in in_flight),
    )
    if not ok or (judged.of_adapter and not judged.ran):
        return judged
    if judged.of_adapter or (case.read_back and judged.ran):
        new = MERGED if judged.of_adapter else "1"
        judged = replace(judged, parts=judge_parts(record.parts, tokens, tokens.fit_margin(margin), new))
    if judged.of_adapter:
        return judged if judged.leaves_parts else replace(judged, staleness=judge_staleness(tokens, margin))
    staleness = judge_staleness(tokens, margin)
    return replace(
        judged,
        lags=tuple(lag_groups(tokens, run.recipe.objective.as_settings())),
        staleness=staleness,
        continuity=judge_continuity(case, tokens, margin, stale=staleness.found),
    )
