"""Every case of a run judged: requests, lag, parts, staleness, continuity."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from rlaudit.diagnosis.updates.continuity import Continuity, judge_continuity
from rlaudit.diagnosis.updates.lag import LagGroup, lag_groups
from rlaudit.diagnosis.updates.parts import Parts, judge_parts
from rlaudit.diagnosis.updates.requests import RequestCount, count_requests
from rlaudit.diagnosis.updates.staleness import Staleness, judge_staleness
from rlaudit.laboratory.studies.updates.cases import COLD_AFTER, FLIGHT, CaseKind, UpdateCase
from rlaudit.laboratory.studies.updates.checkpoints import mixture_name
from rlaudit.laboratory.studies.updates.parts_read import read_parts
from rlaudit.laboratory.studies.updates.records import EngineRecord, Flight
from rlaudit.laboratory.studies.updates.run import FinishedUpdates
from rlaudit.laboratory.studies.updates.scoring import Scorebook, fit_margin
from rlaudit.laboratory.weight_path import MERGED
from rlaudit.layers import Verdict
from rlaudit.settings.trainer_facts import PauseMode


@dataclass(frozen=True)
class JudgedCase:
    """One case of one engine start. Judgements that do not apply to its kind are None or empty."""

    record: EngineRecord
    case: UpdateCase
    # Why it did not run.
    problem: str | None
    in_flight: RequestCount
    others: RequestCount
    lags: tuple[LagGroup, ...] = ()
    parts: Parts | None = None
    staleness: Staleness | None = None
    continuity: Continuity | None = None
    # Whether it did not run because the release does not support it.
    unsupported: bool = False

    @property
    def ran(self) -> bool:
        """Whether the case can be judged."""
        return self.problem is None

    @property
    def keeps_old_adapter(self) -> bool:
        """Whether requests of a new adapter were served by the old one: what a cache does then is not known."""
        adapter = self.case.kind is CaseKind.ADAPTER
        return adapter and self.parts is not None and self.parts.verdict is Verdict.MISMATCH

    @property
    def loading(self) -> str:
        """What loads the weights."""
        path = self.record.start.path
        return f"{path}, {self.case.name}" if self.case.kind is CaseKind.ADAPTER else path

    @property
    def where(self) -> str:
        """The engine start and the case."""
        return f"{self.record.start.name}: {self.case.name}"

    @property
    def decided(self) -> bool:
        """Whether the question of the case has an answer."""
        if self.ran and self.keeps_old_adapter:
            return True
        open_verdicts = (Verdict.INCONCLUSIVE, Verdict.NOT_TESTED)
        return self.ran and self.staleness is not None and self.staleness.verdict not in open_verdicts

    @property
    def clean(self) -> bool:
        """Whether the case lost nothing and served nothing stale: prefix cache, and keys and values of flights."""
        return self.ran and self.blemish is None

    @property
    def blemish(self) -> str | None:
        """Why a case that ran is not clean, in a few words; None if it is."""
        stale = self.staleness
        if self.keeps_old_adapter and self.parts is not None:
            return self.parts.because
        if not (self.in_flight.in_order and self.others.in_order):
            return "requests are lost"
        if stale is None or stale.verdict is not Verdict.MATCH:
            return "stale keys and values are served" if stale is not None and stale.found else "not decided"
        if self.continuity is not None and self.continuity.verdict is Verdict.MISMATCH:
            return "tokens after the resume do not follow from those before"
        # A request that continues after the update with its old keys and values is as stale as a cached prompt.
        flight, margin = stale.flight, stale.flight_margin
        if flight is None or flight.high is None or margin is None or flight.high <= margin:
            return None
        k3 = "" if flight.value is None else f", k3 {flight.value:.2g}"
        return f"nothing stale is served to new requests, but those in flight go on with old keys and values{k3}"


def judge_run(run: FinishedUpdates) -> tuple[JudgedCase, ...]:
    """Judge all cases, in the order in which they ran."""
    return tuple(judge_case(run, record, case) for record in run.records for case in record.start.cases)


def judge_case(run: FinishedUpdates, record: EngineRecord, case: UpdateCase) -> JudgedCase:
    """Judge one case of any kind."""
    book, margin = run.book_of(record), run.recipe.equivalence_margin
    flights = record.of(case)
    paused = case.mode is not PauseMode.NONE
    refused = any(step.status == "unsupported" for step in record.steps if step.case == case.name)
    judged = JudgedCase(
        record=record,
        case=case,
        problem=_problem(record, case),
        unsupported=refused or record.status == "unsupported",
        in_flight=count_requests(record.of(case, FLIGHT), paused=paused),
        others=count_requests([flight for flight in flights if flight.run != FLIGHT], paused=paused),
    )
    if record.status != "ok":
        return judged
    if case.kind is CaseKind.ADAPTER:
        if not judged.ran:
            return judged
        cold = [flight for flight in flights if flight.run == COLD_AFTER]
        judged = replace(judged, parts=judge_parts(None, cold, book, None, fit_margin(flights, book, margin), MERGED))
        return judged if judged.keeps_old_adapter else replace(judged, staleness=judge_staleness(flights, book, margin))
    staleness = judge_staleness(flights, book, margin)
    return replace(
        judged,
        lags=tuple(lag_groups(record.of(case, FLIGHT), book, run.recipe.objective.as_settings())),
        parts=_parts(record, case, flights, book, margin),
        staleness=staleness,
        continuity=judge_continuity(case, flights, book, margin, stale=staleness.found),
    )


def _problem(record: EngineRecord, case: UpdateCase) -> str | None:
    if record.status != "ok":
        return record.failure or record.status
    broken = next(
        (step for step in record.steps if step.case == case.name and step.status in ("failed", "unsupported")), None
    )
    return None if broken is None else f"{broken.step}: {broken.message}"


def _parts(
    record: EngineRecord, case: UpdateCase, flights: Sequence[Flight], book: Scorebook, margin: float
) -> Parts | None:
    read_back = next((read_back for read_back in record.read_backs if read_back.case == case.name), None)
    if read_back is None:
        return None
    parts = read_parts(read_back)
    mixture = mixture_name(parts.old) if parts is not None and parts.old else None
    cold = [flight for flight in flights if flight.run == COLD_AFTER]
    return judge_parts(parts, cold, book, mixture, fit_margin(flights, book, margin))
