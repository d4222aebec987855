"""The report of a comparison: verdicts, then each table of tokens with its figures and faults."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rlaudit.diagnosis.weights_and_tokens import VersionGap
from rlaudit.meaning.candidates import Semantics
from rlaudit.rendering.outline import Block, Folded, Lines, Outline, Section, Table, not_seen, verdicts
from rlaudit.report.figures import TITLES, interval, number
from rlaudit.report.parts.comparison import Compared, Fault

if TYPE_CHECKING:
    from rlaudit.report.report import Report

# What every reader looks at first; the page has all metrics.
HEADLINE = ("mean_ratio_minus_one", "k3", "median_abs_log_ratio", "ppo_clip_fraction", "gspo_clip_fraction")
NEUTRAL = {"top_k": 0, "top_p": 1, "min_p": 0, "repetition_penalty": 1, "presence_penalty": 0, "frequency_penalty": 0}
METRICS = ("metric", "value [95 % interval]", "unit", "tokens", "formula")
SHOWN_VERSIONS = 12  # the report's JSON has all
VERSIONS = (
    "version", "tokens", "mean |d| (nats)", "k2 (nats^2)", "changes rounded away", "held from sent (relative)",
)  # fmt: skip
SETTINGS = ("setting", "rollouts were sampled at", "the trainer assumes")


def outline(report: "Report") -> Outline:
    """Return the outline, in reading order."""
    compared = report.get("comparisons", ())
    return Outline(
        _title(report),
        [
            verdicts(report),
            Section("tables", "Tables of tokens", [block for one in compared for block in _table(one)], gathers=True),
            Section("settings", "Settings", [Table(SETTINGS, _settings(report))], page_only=True),
            not_seen(report),
        ],
        facts=_facts(report),
    )


def _title(report: "Report") -> str:
    compared = report["comparisons"]
    where = compared[0].path if len({one.path for one in compared}) == 1 else f"{len(compared)} tables"
    tokens, sequences = sum(one.tokens for one in compared), sum(one.sequences for one in compared)
    return f"{where}: {tokens} tokens in {sequences} sequences"


def _facts(report: "Report") -> list[str]:
    drawn = sum(one.tokens for one in report.get("token_figures", ()))
    said = [f"{sum(one.compared_tokens for one in report['comparisons'])} tokens compared"]
    return [*said, f"{drawn} tokens drawn"] if drawn else said


def _table(one: Compared) -> list[Block]:
    found = one.measurements
    rows = [[name, interval(one), one.unit, str(one.tokens), one.formula] for name, one in found.items()]
    blocks: list[Block] = [
        Lines(_about(one), one.name, mark=""),
        Table(METRICS[:2], [[TITLES[name], interval(found[name])] for name in HEADLINE if name in found], headed=False),
        Folded(f"Metrics ({len(rows)})", Table(METRICS, rows)),
        *versions_of(one),
    ]
    return [*blocks, Lines(_faults(one), "Faults", mark="")] if one.faults.count else blocks


def versions_of(one: Compared) -> list[Table]:
    """Return the versions of a recorded engine's weights, by the number of updates before; none if none was read."""
    rows = [
        [
            str(version.version),
            str(version.tokens),
            *(number(getattr(version, name)) for name in ("mean_abs_log_ratio", "k2")),
            f"{version.rounded_away / version.changed:.1%} of {version.changed}" if version.changed else "-",
            number(version.apart),
        ]
        for version in _spread(one.versions or ())
    ]
    return [Table(VERSIONS, rows, "Versions of the weights")] if rows else []


def _spread(versions: Sequence[VersionGap]) -> Sequence[VersionGap]:
    """Pick at most twice SHOWN_VERSIONS of them, first and last among them."""
    step = max(1, len(versions) // SHOWN_VERSIONS)
    return [one for place, one in enumerate(versions) if place % step == 0 or place + 1 == len(versions)]


def _about(one: Compared) -> list[str]:
    """Return where the tokens came from and what was left out."""
    lines = [
        f"{one.path}: {one.format}, {one.files} file{'s' * (one.files != 1)}"
        + (f"; trainer logprobs of {one.trainer_path}" if one.trainer_path else ""),
        f"sampled at {_told(one.sampling)}; trainer at {_told(one.trainer)}",
        f"{one.compared_tokens} of {one.tokens} tokens compared; causes looked for in {one.evidence_tokens}",
    ]
    data = one.data
    if data is not None:
        given = data.sequences + data.sequences_left_out
        share = f"{1 - data.left_out:.1%} of the data"
        lines.append(f"figures rest on {data.sequences} of {given} sequences, {share}")
    return [*lines, *one.alignment.messages]


def _told(meaning: Semantics) -> str:
    told = ((name, value) for name, value in vars(meaning).items() if name not in NEUTRAL or value != NEUTRAL[name])
    return ", ".join(f"{name} {number(value)}" for name, value in told)


def _faults(one: Compared) -> list[str]:
    """Return the first of each kind, with file and line."""
    shown = one.faults.shown
    rest = one.faults.count - sum(fault.count for fault in shown)
    return [*map(_fault, shown), *([f"and {rest} more"] if rest > 0 else [])]


def _fault(fault: Fault) -> str:
    line = "" if fault.line is None else f":{fault.line}"
    sequence = f"{fault.sequence}: " if fault.sequence else ""
    alike = fault.count - 1
    return f"{fault.path}{line}: {sequence}{fault.message}" + (f" (and {alike} more like it)" if alike else "")


def _settings(report: "Report") -> list[list[str]]:
    """Return how tokens were sampled and how the trainer takes them to be, side by side."""
    return [
        [f"{one.name}: {name}", str(sampled), str(getattr(one.trainer, name))]
        for one in report["comparisons"]
        for name, sampled in vars(one.sampling).items()
    ]
