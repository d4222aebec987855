"""What a judged run amounts to, a sentence each: what serves wrong weights or loses requests.

An error is something that an RL run would train on without knowing. A warning would be noticed, late. A note is a fact
about a release that a caller has to know.
"""

from collections.abc import Iterator, Sequence

from rlaudit.laboratory.studies.updates.cases import FLIGHT, HONEST, CaseKind
from rlaudit.laboratory.studies.updates.judge import JudgedCase
from rlaudit.laboratory.studies.updates.parts import HEAD, Parts, summary
from rlaudit.laboratory.studies.updates.requests import RequestCount
from rlaudit.laboratory.studies.updates.stale_findings import stale_findings
from rlaudit.laboratory.studies.updates.update_finding import ERROR, NOTE, WARNING, UpdateFinding, finding_of
from rlaudit.layers import Verdict


def findings_of(cases: Sequence[JudgedCase]) -> tuple[UpdateFinding, ...]:
    """Every finding, errors first, each said once however many cases show it."""
    found: dict[tuple[str, str, str, str], UpdateFinding] = {}
    of_cases = [finding for judged in cases for finding in _findings_of_case(judged)]
    for finding in [*stale_findings(cases), *_of_parts(cases), *of_cases]:
        found.setdefault((finding.name, finding.version, finding.path, finding.message), finding)
    return tuple(sorted(found.values(), key=lambda finding: -finding.severity.rank))


def _findings_of_case(judged: JudgedCase) -> Iterator[UpdateFinding]:
    start, case = judged.record.start, judged.case
    if judged.problem is not None:
        if judged.unsupported or case.kind in (CaseKind.PATH, CaseKind.PLANTED):
            yield finding_of(judged, "refused", NOTE, f"vLLM {start.version}, {start.path}: {judged.problem}")
        else:
            yield finding_of(judged, "case-not-run", WARNING, f"{start.name}, {case.name}: {judged.problem}")
        return
    if judged.parts is not None and case.kind is CaseKind.PLANTED:
        yield _of_planted(judged.parts, judged)
    if judged.continuity is not None and judged.continuity.verdict is Verdict.MISMATCH:
        yield finding_of(judged, "flight-broken", ERROR, f"{start.name}, {case.name}: {judged.continuity.because}")
    for who, count in (("in flight", judged.in_flight), ("submitted around the update", judged.others)):
        if not count.in_order:
            yield finding_of(
                judged, "requests-lost", ERROR, f"{start.name}, {case.name}: of the requests {who}, {_wrong(count)}"
            )
    if case.mode == "abort" and judged.in_flight.aborted:
        twice = sum(flight.surplus_logprobs > 0 for flight in judged.record.of(case, FLIGHT))
        repeated = (
            f"; the last output of {twice} repeats logprobs that came before: do not append them" if twice else ""
        )
        yield finding_of(
            judged,
            "requests-aborted",
            NOTE,
            f"vLLM {start.version}: mode=abort ended {judged.in_flight.aborted} of {judged.in_flight.submitted} "
            "requests in flight; their tokens are returned and the caller has to submit the rest again"
            f"{repeated}",
        )


def _of_parts(cases: Sequence[JudgedCase]) -> Iterator[UpdateFinding]:
    """The same part of one release that stays old by several paths, once."""
    grouped: dict[tuple[str, str, str], list[tuple[JudgedCase, Parts]]] = {}
    for judged in cases:
        parts, start = judged.parts, judged.record.start
        told = parts is not None and judged.problem is None and judged.case.kind in HONEST
        if told and parts is not None and parts.verdict in (Verdict.MISMATCH, Verdict.INCONCLUSIVE):
            # The matrix of a release is one engine with each of its levels: what is old there is old with all of them.
            alone = judged.case.kind is CaseKind.PATH or start.transport != "disk"
            levels = ", ".join(start.own) if alone else ""
            grouped.setdefault((start.version, levels, parts.because), []).append((judged, parts))
    for (version, levels, because), found in grouped.items():
        judged, parts = found[0]
        paths = ", ".join(dict.fromkeys(one.record.start.path for one, _ in found))
        with_ = f" with {levels}" if levels else ""
        yield UpdateFinding(
            name="part-not-updated",
            severity=ERROR if parts.stale else WARNING,
            version=version,
            path=judged.record.start.path,
            case=judged.where,
            message=f"vLLM {version}{with_}, loading by {paths}: {because}",
            sure=parts.sure,
            next=_mend_parts(parts),
        )


def _of_planted(parts: Parts, judged: JudgedCase) -> UpdateFinding:
    case, read = judged.case, parts.read
    wanted = case.planted or case.late
    how = "left out" if case.planted else "sent again as it was before"
    old = () if read is None else (*read.old, *read.foreign)
    named = [part for part in wanted if any(part in name for name in old)]
    others = [name for name in old if not _any_of(wanted, [name]) and name != HEAD]
    if len(named) == len(wanted) and not others:
        return finding_of(judged, "planted-found", NOTE, f"the part {how} on purpose was named: {summary(wanted)}")
    unread = () if read is None else read.unread
    if read is not None and case.late and not named and not others and not _any_of(wanted, unread):
        text = f"vLLM {judged.record.start.version}, {judged.record.start.path}: what is sent again as it was before"
        return finding_of(judged, "late-copy-ignored", NOTE, f"{text} changes nothing ({summary(wanted)})", parts.sure)
    return finding_of(
        judged,
        "planted-missed",
        ERROR,
        f"a part {how} on purpose was not named ({', '.join(wanted)}): do not trust this audit of parts here",
    )


def _any_of(parts: Sequence[str], names: Sequence[str]) -> bool:
    return any(part in name for part in parts for name in names)


def _mend_parts(parts: Parts) -> str:
    if parts.read is not None and HEAD in parts.read.hidden:
        return (
            "the head computes with a copy that the update does not reach: load an untied checkpoint (lm_head.weight "
            "written out, tie_word_embeddings false) at the start, or restart the engine for new weights"
        )
    return "use another path for loading, and audit it again"


def _wrong(count: RequestCount) -> str:
    said = {name: number for name, number in count.as_dict().items() if number}
    ignored = ("submitted", "completed", "aborted")
    return ", ".join(f"{number} {name.replace('_', ' ')}" for name, number in said.items() if name not in ignored)
