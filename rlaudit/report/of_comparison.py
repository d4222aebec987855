"""The report of a comparison, table by table."""

from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING

from rlaudit.diagnosis.compare_tables import Compared, Comparer
from rlaudit.diagnosis.judgement import badness, counted, exit_code_of, worst_layers
from rlaudit.meaning.meaning import Meaning, ScoredFigures
from rlaudit.meaning.words import conclusion_of
from rlaudit.report.new_report import new_report
from rlaudit.report.parts.comparison import Alignment, DataShare, Fault, MisalignedSequence, Semantics, SemanticTest
from rlaudit.report.parts.comparison import Compared as ReportedTable
from rlaudit.report.parts.comparison import Faults as ReportedFaults
from rlaudit.severity import Threshold
from rlaudit.text.plain import plain
from rlaudit.tokens.fault import Met

if TYPE_CHECKING:
    from rlaudit.report.report import Report

SHOWN_SEQUENCES = 20


def document_of(
    comparer: Comparer, threshold: Threshold, allow_partial: bool, requires_match: bool = False
) -> "Report":
    """Return the report of all that was compared. The table that runs today is shown, and not judged.

    allow_partial: whether faults may be left out. requires_match: whether 3 is the exit code if nothing was found in a
    layer that does not match.
    """
    compared, assumed = comparer.compared, dict.fromkeys(comparer.assumed)
    layers = worst_layers([(_name(table), table.comparison.layers) for table in compared if not table.is_before])
    unfinished = not allow_partial and any(table.faults.count for table in compared)
    reported = [_comparison(table) for table in compared]
    moved = [table.comparison for table in compared if table.comparison.move is not None]
    move = min(moved, key=lambda comparison: badness(comparison.layers)).move if moved else None
    report: Report = {
        **new_report(
            "compare",
            exit_code_of(counted(layers, move, threshold.fail_for), unfinished, threshold.fails, requires_match),
            layers=layers,
            not_seen=list(dict.fromkeys([*assumed, *_not_seen(compared, allow_partial)])),
        ),
        "comparisons": reported,
        # Rollouts that no trainer has scored have no log ratios to draw.
        "token_figures": [
            replace(drawn, name=table.name)
            for drawn, table in zip(comparer.drawn, reported, strict=True)
            if drawn and drawn.tokens
        ],
    }
    if move is not None:
        report["move"] = move
    return report


def _name(table: Compared) -> str:
    name = table.comparison.evidence.name or table.path
    return f"{name} (today)" if table.is_before else name


def _comparison(table: Compared) -> ReportedTable:
    comparison, evidence = table.comparison, table.comparison.evidence
    counts, share = evidence.counts, evidence.share
    return ReportedTable(
        name=_name(table),
        path=table.path,
        format=table.export,
        files=table.files,
        trainer_path=table.trainer_path,
        tokens=counts.tokens,
        sequences=counts.sequences,
        compared_tokens=counts.compared_tokens,
        unscored_sequences=counts.unscored_sequences,
        uncounted_tokens=counts.uncounted_tokens,
        impossible_tokens=counts.impossible_tokens,
        misaligned=counts.misaligned,
        shortest_sequence=counts.shortest_sequence if counts.compared_tokens else 0,
        sampling=evidence.sampling,
        trainer=evidence.trainer,
        measurements=evidence.measurements,
        alignment=Alignment(
            misaligned=counts.misaligned,
            sequences=[
                MisalignedSequence(name=bad.name, kind=bad.kind, first=bad.first, lag=bad.lag)
                for bad in evidence.alignment.misaligned[:SHOWN_SEQUENCES]
            ],
            messages=evidence.alignment.messages,
            not_tested=evidence.alignment.not_tested,
        ),
        semantics=_semantics(comparison.meaning),
        attribution=plain(comparison.attribution),
        objective=None if comparison.split is None else plain(asdict(comparison.split)),
        evidence_tokens=share.tokens if evidence.tokens is None else evidence.tokens.tokens,
        layers={judgement.layer: judgement.verdict for judgement in comparison.layers},
        is_before=table.is_before,
        data=DataShare(
            sequences=share.sequences,
            sequences_left_out=share.sequences_left_out,
            tokens=share.tokens,
            tokens_left_out=share.tokens_left_out,
            unread=share.unread,
            left_out=share.left_out,
            suffices=share.suffices,
        ),
        faults=ReportedFaults(
            count=table.faults.count,
            sequences_left_out=table.faults.sequences_left_out,
            shown=[_fault(met) for met in table.faults.met.values()],
        ),
        notes=comparison.notes,
        distance=None if evidence.distance is None else evidence.distance.reported,
        limits=comparison.limits,
        conversations=table.conversations,
    )


def _fault(met: Met) -> Fault:
    first = met.first
    return Fault(
        path=str(first.path),
        line=first.line,
        sequence=first.sequence,
        message=first.message,
        kind=first.kind,
        column=first.column or None,
        count=met.count,
        sequences_left_out=met.sequences,
    )


def _semantics(meaning: Meaning) -> Semantics | None:
    if not isinstance(meaning.figures, ScoredFigures):
        return None
    words = conclusion_of(meaning)
    return Semantics(
        verdict=meaning.verdict,
        cause=words.cause,
        because=words.because,
        trainer=meaning.theta_train.name,
        reported=meaning.theta_report.name,
        sampled=meaning.theta_sample.name,
        tests=[
            SemanticTest(name=test.name, ln_p=test.ln_p, estimate=test.estimate, convicts=test.shows)
            for test in meaning.figures.tests
        ],
    )


def _not_seen(compared: Sequence[Compared], allow_partial: bool) -> list[str]:
    lines = []
    for table in compared:
        prefix = f"{_name(table)}: " if len(compared) > 1 else ""
        if table.faults.count:
            allowed = " (allowed by --allow-partial)" if allow_partial else ""
            left = f"{table.faults.sequences_left_out} sequences or lines left out"
            kinds = "; ".join(
                f"{met.count} x {met.first.kind.value}{f' ({met.first.column})' if met.first.column else ''}"
                for met in table.faults.met.values()
            )
            lines.append(f"{prefix}{left}{allowed}: {kinds}")
        for line in table.comparison.not_seen:
            everywhere = all(line in other.comparison.not_seen for other in compared)
            lines.append(line if everywhere else f"{prefix}{line}")
    return lines
