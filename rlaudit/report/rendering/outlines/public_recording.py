"""The report of a recording for a public page: what ran, by which settings and protocol, and what is missing."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from rlaudit.layers import Layer
from rlaudit.report.rendering.outline import NOT_SEEN, Block, Entries, Lines, Outline, Prose, Section, Table, listed
from rlaudit.report.rendering.outlines.inspect import not_seen_elsewhere, summary
from rlaudit.report.shown_value import shown
from rlaudit.text.counted import counted
from rlaudit.vllm.moved import WHY
from rlaudit.vllm.neutral_sampling import NEUTRAL_SAMPLING

if TYPE_CHECKING:
    from rlaudit.report.parts.inspection import Config, Finding, Setting
    from rlaudit.report.parts.public_recording import Protocol
    from rlaudit.report.report import Report

_SAMPLING = (
    "temperature",
    *(name for name in NEUTRAL_SAMPLING if name != "temperature"),
    "logprobs",
    "n",
    "max_tokens",
)
_GROUPS = ("engine", "sampling", "environment")


def outline(report: "Report") -> Outline:
    """Return the outline, in reading order."""
    inspected, protocols = report["inspection"], report["public_recording"].protocols
    configs = report.get("configs", ())
    findings = [finding for finding in report["findings"] if finding.suppressed is None]
    return Outline(
        _title(configs, protocols),
        [
            *(_engine(report, number, config) for number, config in enumerate(configs)),
            Section("updates", "Weight updates, call by call", [_protocol(protocol) for protocol in protocols]),
            listed(
                "missing", "Not recorded", list(dict.fromkeys(line for config in configs for line in config.not_seen))
            ),
            Section("findings", "Findings", [Entries([_finding(finding) for finding in findings])] if findings else []),
            listed("failed", "Failed", inspected.bugs),
            listed("not-seen", NOT_SEEN, not_seen_elsewhere(report)),
            Section("summary", "Summary", [Prose(summary(report))]),
        ],
        lead=f"{report['public_recording'].left_out} Made by rlaudit {report['rlaudit']}.",
        facts=[counted(number, severity) for severity, number in inspected.counted.items()],
    )


def _finding(finding: "Finding") -> tuple[str, list[str]]:
    """Return a finding without its place, since the reader does not have the file."""
    confirm = [f"{label}: {text}" for label, text in (("Confirm", finding.confirm), ("Look at", finding.look)) if text]
    return f"{finding.rule} ({finding.severity})", [finding.message.rstrip("."), *confirm]


def _title(configs: "Sequence[Config]", protocols: "Sequence[Protocol]") -> str:
    """Return `A recorded training: vLLM 0.10.2 (V1), 8 weight updates`."""
    ran = dict.fromkeys(
        f"vLLM {config.versions['to']}{f' ({kind})' if (kind := config.engine['to']) else ''}" for config in configs
    )
    updates = counted(sum(protocol.times for protocol in protocols), "weight update")
    return f"A recorded training: {', '.join([*ran, updates])}"


def _engine(report: "Report", number: int, config: "Config") -> Section:
    several = len(report.get("configs", ())) > 1
    rows = sorted(_rows(report, number), key=_rank)
    deciding = [row for row in rows if _decides(row)]
    others = [row for row in rows if not _decides(row)]
    blocks: list[Block] = [Lines(config.recorded or (), "What ran")]
    header = ["setting", "written", "as it ran"]
    if deciding:
        cells = [[row.name, _written(row), shown(row.effective_to), _why(row)] for row in deciding]
        blocks.append(Table([*header, "matters because"], cells, "Settings that decide a logprob", values=True))
    if others:
        cells = [[row.name, _written(row), shown(row.effective_to)] for row in others]
        blocks.append(Table(header, cells, "Other settings that were written", values=True))
    return Section(f"engine-{number}", f"Engine {number + 1}" if several else "Engine", blocks)


def _rows(report: "Report", number: int) -> "Iterator[Setting]":
    """Yield what was written, and what decides a logprob, written or not."""
    for row in report["settings"]:
        wanted = _decides(row) or row.written not in (None, [], {}, "")
        if wanted and row.config == number and row.group in _GROUPS:
            yield row


def _decides(row: "Setting") -> bool:
    return row.name in WHY or row.name in _SAMPLING


def _rank(row: "Setting") -> tuple[int, int]:
    """Rank a setting: first those of the distribution, then sampling, then how logprobs are computed, then others."""
    if row.name in _SAMPLING:
        return 1, _SAMPLING.index(row.name)
    if row.name in WHY:
        return (0 if WHY[row.name][0] is Layer.SEMANTIC else 2), list(WHY).index(row.name)
    return 3, _GROUPS.index(row.group)


def _written(row: "Setting") -> str:
    return "-" if row.written is None else shown(row.written)


def _why(row: "Setting") -> str:
    return WHY[row.name][1] if row.name in WHY else ""


def _protocol(protocol: "Protocol") -> Block:
    engine = f"{protocol.engine}: " if protocol.engine else ""
    rows = [[str(step), call] for step, call in enumerate(protocol.calls, 1)]
    return Table(["step", "call"], rows, f"{engine}{counted(protocol.times, 'update')} in this order")
