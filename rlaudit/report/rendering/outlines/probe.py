"""The report of a probe: what the logprobs mean, each sampling parameter, then the other questions."""

from typing import TYPE_CHECKING

from rlaudit.probe.course import Answered, Probed
from rlaudit.report.rendering.moved import TITLE, moved
from rlaudit.report.rendering.outline import COST, Entries, Outline, Prose, Section, Table, listed, not_seen, verdicts
from rlaudit.report.rendering.outlines.compare import tables
from rlaudit.text.counted import counted

if TYPE_CHECKING:
    from rlaudit.report.report import Report

KNOWN = {True: "yes", False: "no", None: "not known"}


def outline(report: "Report") -> Outline:
    """Return the outline, in reading order."""
    servers = report["probe"].servers
    *before, last = servers
    return Outline(
        " -> ".join(_title(probed) for probed in servers),
        [
            _moved(report),
            Section("answer", "What the logprobs mean", [Prose(report["probe"].answer)], leads=True),
            # Without a trainer there is nothing to judge, and the answer says what is missing.
            *([] if report["probe"].trainer is None else [verdicts(report)]),
            Section("parameters", "Sampling parameters", [_table(before[0] if before else None, last)]),
            Section("questions", "Other questions", [Entries(_questions(before[0] if before else None, last))]),
            *(tables(report) if "comparisons" in report else []),
            not_seen(report),
            listed("cost", COST, [_cost(probed) for probed in servers], mark=""),
        ],
        facts=[counted(sum(probed.requests for probed in servers), "request")],
        about=list(dict.fromkeys(_about(probed) for probed in servers)),
    )


def _moved(report: "Report") -> Section:
    """Return what the move changes; without a trainer no layer of a side is judged, and there is no table of them."""
    if "move" not in report or report["probe"].trainer is not None:
        return moved(report)
    return Section("move", TITLE, [Prose(report["move"].answer)], gathers=True, leads=True)


def _title(probed: Probed) -> str:
    release = f"vLLM {probed.who.release}" if probed.who.release else "a server"
    return f"{release} at {probed.who.address}"


def _about(probed: Probed) -> str:
    who = probed.who
    length = f", at most {who.most_tokens} tokens" if who.most_tokens else ""
    return f"{who.model}{length}, asked through {who.endpoint} for {counted(who.logprobs, 'logprob')}"


def _table(today: Probed | None, after: Probed) -> Table:
    if today is None:
        header = ("parameter", "in the report", "in the draws", "prompts", "draws")
        rows = [
            [
                parameter.name,
                KNOWN[parameter.in_report],
                KNOWN[parameter.in_draws],
                str(parameter.prompts),
                str(parameter.draws),
            ]
            for parameter in after.parameters
        ]
        dropped = [row for row, parameter in enumerate(after.parameters) if parameter.in_draws is False]
        return Table(header, rows, marked=frozenset(dropped))
    header = ("parameter", "report today", "report after", "draws today", "draws after")
    pairs = [(today.parameter(parameter.name), parameter) for parameter in after.parameters]
    rows = [
        [new.name, *(KNOWN[seen] for seen in (old.in_report, new.in_report, old.in_draws, new.in_draws))]
        for old, new in pairs
    ]
    apart = [row for row, (old, new) in enumerate(pairs) if {old.in_report, new.in_report} == {True, False}]
    return Table(header, rows, marked=frozenset(apart))


def _questions(today: Probed | None, after: Probed) -> list[tuple[str, list[str]]]:
    old = {answered.name: answered for answered in today.checks} if today else {}
    return [
        (answered.question, _answers(old.get(answered.name), answered))
        for answered in after.checks
        if answered.checked.found is not None
    ]


def _answers(old: Answered | None, new: Answered) -> list[str]:
    if old is None or old.checked.answer == new.checked.answer:
        return [new.checked.answer]
    return [f"today: {old.checked.answer}", f"after: {new.checked.answer}"]


def _cost(probed: Probed) -> str:
    return f"{probed.who.address}: {probed.requests} requests, {probed.tokens} tokens, {probed.seconds:.0f} s"
