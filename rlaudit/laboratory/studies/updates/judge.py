"""Every case of a run judged: requests, lag, parts, staleness, continuity, and updates that had to fail."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from rlaudit.laboratory.studies.updates.cases import COLD_AFTER, FLIGHT, RECOVERED, CaseKind, UpdateCase
from rlaudit.laboratory.studies.updates.checkpoints import mixture_name
from rlaudit.laboratory.studies.updates.continuity import Continuity, judge_continuity
from rlaudit.laboratory.studies.updates.engine_floor import fit_margin
from rlaudit.laboratory.studies.updates.lag import LagGroup, lag_groups
from rlaudit.laboratory.studies.updates.parts import Parts, PartsRead, judge_parts, read_parts, state_left
from rlaudit.laboratory.studies.updates.records import EngineRecord, Flight, Update
from rlaudit.laboratory.studies.updates.requests import RequestCount, count_requests
from rlaudit.laboratory.studies.updates.run import FinishedUpdates
from rlaudit.laboratory.studies.updates.scoring import Scorebook
from rlaudit.laboratory.studies.updates.staleness import Staleness, judge_staleness


@dataclass(frozen=True)
class FaultOutcome:
    """What an update that had to fail came to.

    refused: the engine's words, None where it took the update. healthy: whether check_health() raised nothing
    afterwards; health_said: its words, with the time it took. left: what a read back found in a worker that took it;
    state: parameters by what they hold. recovers: whether a whole update and a request went through after it. hangs:
    calls that did not come back.
    """

    refused: str | None
    healthy: bool | None
    left: PartsRead | None
    recovers: bool | None
    said: tuple[str, ...]
    state: Mapping[str, int] = field(default_factory=dict)
    hangs: tuple[str, ...] = ()
    health_said: str = ""


@dataclass(frozen=True)
class JudgedCase:
    """One case of one engine start. What does not apply to its kind is None or empty.

    problem: why it did not run. unsupported: whether that is because the release cannot do it.
    """

    record: EngineRecord
    case: UpdateCase
    problem: str | None
    in_flight: RequestCount
    others: RequestCount
    updates: tuple[Update, ...]
    lags: tuple[LagGroup, ...] = ()
    parts: Parts | None = None
    staleness: Staleness | None = None
    continuity: Continuity | None = None
    fault: FaultOutcome | None = None
    unsupported: bool = False

    @property
    def ran(self) -> bool:
        """Whether there is something to judge."""
        return self.problem is None

    @property
    def where(self) -> str:
        """The engine start and the case: what a finding of it is known by."""
        return f"{self.record.start.name}: {self.case.name}"


def judge_run(run: FinishedUpdates) -> tuple[JudgedCase, ...]:
    """All cases, in the order in which they ran."""
    return tuple(judge_case(run, record, case) for record in run.records for case in record.start.cases)


def judge_case(run: FinishedUpdates, record: EngineRecord, case: UpdateCase) -> JudgedCase:
    """One case, whatever its kind."""
    book, margin = run.book_of(record), run.recipe.equivalence_margin
    flights = record.of(case)
    paused = case.mode != "none"
    refused = any(step.status == "unsupported" for step in record.steps if step.case == case.name)
    judged = JudgedCase(
        record=record,
        case=case,
        problem=_problem(record, case),
        unsupported=refused or record.status == "unsupported",
        in_flight=count_requests(record.of(case, FLIGHT), paused=paused),
        others=count_requests([flight for flight in flights if flight.run != FLIGHT], paused=paused),
        updates=tuple(update for update in record.updates if update.case == case.name),
    )
    if record.status != "ok":
        return judged
    match case.kind:
        case CaseKind.FAULT:
            return replace(judged, fault=_fault(record, case))
        case CaseKind.PATH | CaseKind.PLANTED:
            return replace(judged, parts=_parts(record, case, flights, book, margin))
    return replace(
        judged,
        lags=tuple(lag_groups(record.of(case, FLIGHT), book, run.recipe.objective.as_settings())),
        parts=_parts(record, case, flights, book, margin),
        staleness=judge_staleness(flights, book, margin),
        continuity=judge_continuity(case, flights, book, margin),
    )


def _problem(record: EngineRecord, case: UpdateCase) -> str | None:
    if record.status != "ok":
        return record.failure or record.status
    if case.fault is not None:
        return None
    broken = next(
        (step for step in record.steps if step.case == case.name and step.status in ("failed", "unsupported")), None
    )
    if broken is None:
        return None
    told = next((read for read in record.read_backs if (read.case, read.believed) == (case.name, None)), None)
    left = "" if told is None else f"; parameters then hold: {words_of(state_left(told))}"
    return f"{broken.step}: {broken.message}{left}"


def words_of(state: Mapping[str, int]) -> str:
    """Counts in words: 60 version 1, 4 no data."""
    return ", ".join(f"{count} {name}" for name, count in state.items()) or "nothing that could be read"


def _parts(
    record: EngineRecord, case: UpdateCase, flights: Sequence[Flight], book: Scorebook, margin: float
) -> Parts | None:
    told = next((read for read in record.read_backs if read.case == case.name), None)
    if told is None:
        return None
    read = read_parts(told)
    mixture = mixture_name(int(read.believed), read.old) if read is not None and read.old else None
    cold = [flight for flight in flights if flight.run == COLD_AFTER]
    return judge_parts(read, cold, book, mixture, fit_margin(flights, book, margin))


def _fault(record: EngineRecord, case: UpdateCase) -> FaultOutcome:
    update = next((update for update in record.updates if update.case == case.name), None)
    said = [step for step in record.steps if step.case == case.name]
    health = next((step for step in said if step.step == "health"), None)
    told = next((read for read in record.read_backs if read.case == case.name), None)
    recovered = record.of(case, RECOVERED)
    whole = bool(recovered) and all(flight.finish_reason == "length" and not flight.error for flight in recovered)
    return FaultOutcome(
        refused=None if update is None else update.error,
        healthy=None if health is None else health.status == "ok",
        left=None if told is None else read_parts(told),
        recovers=None if case.fault == "killed" else whole,
        said=tuple(f"{step.step}: {step.message}" for step in said if step.status == "failed"),
        state={} if told is None else state_left(told),
        health_said="" if health is None else health.message,
        hangs=tuple(step.step for step in said if step.timed_out),
    )
