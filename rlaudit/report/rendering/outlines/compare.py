"""The report of a comparison: verdicts, then each table of tokens with its figures and faults."""

from itertools import chain
from typing import TYPE_CHECKING, Any

from rlaudit.meaning.candidates import Semantics, biases_as_text
from rlaudit.report.figures import TITLES, interval, number
from rlaudit.report.parts.comparison import Compared, Fault
from rlaudit.report.rendering.changed_histories import changed_histories, unchanged_sentence
from rlaudit.report.rendering.moved import moved
from rlaudit.report.rendering.outline import Block, Folded, Lines, Outline, Section, Table, not_seen, verdicts
from rlaudit.text.counted import counted

if TYPE_CHECKING:
    from rlaudit.report.report import Report

# Text shows these; a page has all metrics.
HEADLINE = ("mean_ratio_minus_one", "k3", "median_abs_log_ratio", "ppo_clip_fraction", "gspo_clip_fraction")
NEUTRAL = {
    "top_k": 0, "top_p": 1, "min_p": 0, "repetition_penalty": 1, "presence_penalty": 0, "frequency_penalty": 0,
    "logit_bias": (),
}  # fmt: skip
UNRELIABLE = Lines(["an interval with ? comes from too few prompts to rely on"], mark="")
METRICS = ("metric", "value [95 % interval]", "unit", "tokens", "formula")
SETTINGS = ("setting", "rollouts were sampled at", "the trainer assumes")


def outline(report: "Report") -> Outline:
    """Return the outline, in reading order."""
    return Outline(
        _title(report),
        [changed_histories(report), moved(report), verdicts(report), *tables(report), not_seen(report)],
        facts=_facts(report),
    )


def tables(report: "Report") -> list[Section]:
    """Return what was compared, table by table, and at which settings."""
    blocks = list(chain.from_iterable(map(_blocks, report.get("comparisons", ()))))
    return [
        Section("tables", "Tables of tokens", blocks, gathers=True),
        Section("settings", "Settings", [Table(SETTINGS, _settings(report))], page_only=True),
    ]


def _title(report: "Report") -> str:
    compared = report["comparisons"]
    what = compared[0].path if len({table.path for table in compared}) == 1 else f"{len(compared)} tables"
    tokens, sequences = sum(table.tokens for table in compared), sum(table.sequences for table in compared)
    return f"{what}: {counted(tokens, 'token')} in {counted(sequences, 'sequence')}"


def _facts(report: "Report") -> list[str]:
    drawn = sum(figures.tokens for figures in report.get("token_figures", ()))
    facts = [f"{sum(table.compared_tokens for table in report['comparisons'])} tokens compared"]
    return [*facts, f"{counted(drawn, 'token')} drawn"] if drawn else facts


def _blocks(table: Compared) -> list[Block]:
    measured = table.measurements
    headline = [[TITLES[name], interval(measured[name])] for name in HEADLINE if name in measured]
    rows = [
        [name, interval(measurement), measurement.unit, str(measurement.tokens), measurement.formula]
        for name, measurement in measured.items()
    ]
    blocks: list[Block] = [
        Lines(_about(table), table.name, mark=""),
        Table(METRICS[:2], headline, headed=False),
        *([] if all(measured[name].reliable for name in HEADLINE if name in measured) else [UNRELIABLE]),
        Folded(f"Metrics ({len(rows)})", Table(METRICS, rows)),
    ]
    return [*blocks, Lines(_faults(table), "Faults", mark="")] if table.faults.count else blocks


def _about(table: Compared) -> list[str]:
    """Return which files the tokens came from and what was left out."""
    lines = [
        f"{counted(table.files, 'file')} ({table.format})"
        + (f"; trainer logprobs of {table.trainer_path}" if table.trainer_path else ""),
        f"sampled at {_parameters(table.sampling)}; trainer at {_parameters(table.trainer)}",
        _share_of(table.compared_tokens, table.tokens, "tokens", "compared"),
    ]
    if table.evidence_tokens != table.compared_tokens:
        lines.append(f"causes were looked for in {table.evidence_tokens} tokens")
    data = table.data
    if data is not None:
        given = data.sequences + data.sequences_left_out
        share = f" ({100 * (1 - data.left_out):.1f} % of the data)" if data.left_out else ""
        lines.append(f"{_share_of(data.sequences, given, 'sequences', 'used for the figures')}{share}")
    turns = table.conversations
    if turns is not None and not turns.changed:
        lines.append(unchanged_sentence(turns))
    return [*lines, *table.notes, *table.alignment.messages]


def _share_of(number: int, of: int, noun: str, done: str) -> str:
    """Return `all 96 sequences were compared`, or how many of them."""
    return f"all {of} {noun} were {done}" if number == of else f"{number} of {of} {noun} were {done}"


def _parameters(meaning: Semantics) -> str:
    """Name what is on. A bias is a list of pairs once a report was read."""
    on = {name: value for name, value in vars(meaning).items() if value not in (NEUTRAL.get(name), [])}
    return ", ".join(f"{name} {_written(value)}" for name, value in on.items())


def _written(value: Any) -> str:
    return biases_as_text(value) if isinstance(value, list | tuple) else number(value)


def _faults(table: Compared) -> list[str]:
    """Return the first fault of each kind, with file and line."""
    shown = table.faults.shown
    hidden = table.faults.count - sum(fault.count for fault in shown)
    return [*map(_fault, shown), *([f"and {hidden} more"] if hidden > 0 else [])]


def _fault(fault: Fault) -> str:
    line = "" if fault.line is None else f":{fault.line}"
    sequence = f"{fault.sequence}: " if fault.sequence else ""
    alike = fault.count - 1
    return f"{fault.path}{line}: {sequence}{fault.message}" + (f" (and {alike} more like it)" if alike else "")


def _settings(report: "Report") -> list[list[str]]:
    """Return how tokens were sampled and what the trainer assumes, side by side."""
    return [
        [f"{table.name}: {name}", _written(sampled), _written(getattr(table.trainer, name))]
        for table in report["comparisons"]
        for name, sampled in vars(table.sampling).items()
    ]
