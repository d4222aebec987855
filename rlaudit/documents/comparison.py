"""The report of a comparison, table by table."""

from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING

from rlaudit.diagnosis.compare_tables import Compared, Comparer
from rlaudit.diagnosis.judgement import exit_code_of, worst_layers
from rlaudit.meaning.meaning import Meaning, ScoredFigures
from rlaudit.meaning.words import said_of
from rlaudit.plain import plain
from rlaudit.report.new_report import new_report
from rlaudit.report.parts.comparison import Alignment, DataShare, Fault, MisalignedSequence, Semantics, SemanticTest
from rlaudit.report.parts.comparison import Compared as ReportedTable
from rlaudit.report.parts.comparison import Faults as ReportedFaults
from rlaudit.tokens.fault import Met

if TYPE_CHECKING:
    from rlaudit.report.report import Report

SHOWN_SEQUENCES = 20


def document_of(comparer: Comparer, fails: bool, allow_partial: bool) -> "Report":
    """Return the report of all that was compared.

    fails: whether a mismatch makes the exit code 1. allow_partial: whether faults may be left out.

    What runs today is shown, and is not judged: only what it is compared for is.
    """
    compared, assumed = comparer.compared, dict.fromkeys(comparer.assumed)
    wanted = [one for one in compared if not one.is_before]
    layers = worst_layers([(_name(one), one.comparison.layers) for one in wanted])
    unfinished = not allow_partial and any(one.faults.count for one in compared)
    tables = [_comparison(one) for one in compared]
    return {
        **new_report(
            "compare",
            exit_code_of((layer.verdict for layer in layers), unfinished, fails),
            layers=layers,
            not_seen=list(dict.fromkeys([*assumed, *_not_seen(compared, allow_partial)])),
        ),
        "comparisons": tables,
        # Rollouts that no trainer has scored have no log ratios to draw.
        "token_figures": [
            replace(drawn, name=table.name)
            for drawn, table in zip(comparer.drawn, tables, strict=True)
            if drawn and drawn.tokens
        ],
    }


def _name(one: Compared) -> str:
    name = one.comparison.evidence.name or one.path
    return f"before: {name}" if one.is_before else name


def _comparison(one: Compared) -> ReportedTable:
    comparison, evidence = one.comparison, one.comparison.evidence
    counts, share = evidence.counts, evidence.share
    return ReportedTable(
        name=_name(one),
        path=one.path,
        format=one.export,
        files=one.files,
        trainer_path=one.trainer_path,
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
        is_before=one.is_before,
        data=DataShare(**vars(share), left_out=share.left_out, suffices=share.suffices),
        faults=ReportedFaults(
            count=one.faults.count,
            sequences_left_out=one.faults.sequences_left_out,
            shown=[_fault(met) for met in one.faults.met.values()],
        ),
        notes=comparison.notes,
        versions=evidence.versions or None,
        distance=None if evidence.distance is None else evidence.distance.reported,
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


def _semantics(found: Meaning) -> Semantics | None:
    if not isinstance(found.figures, ScoredFigures):
        return None
    said = said_of(found)
    return Semantics(
        verdict=found.verdict,
        cause=said.cause,
        because=said.because,
        trainer=found.theta_train.name,
        reported=found.theta_report.name,
        sampled=found.theta_sample.name,
        tests=[
            SemanticTest(name=test.name, ln_p=test.ln_p, estimate=test.estimate, convicts=test.convicts)
            for test in found.figures.tests
        ],
    )


def _not_seen(compared: Sequence[Compared], allow_partial: bool) -> list[str]:
    lines = []
    for one in compared:
        prefix = f"{_name(one)}: " if len(compared) > 1 else ""
        if one.faults.count:
            allowed = " (allowed by --allow-partial)" if allow_partial else ""
            left = f"{one.faults.sequences_left_out} sequences or lines left out"
            kinds = "; ".join(
                f"{met.count} x {met.first.kind.value}{f' ({met.first.column})' if met.first.column else ''}"
                for met in one.faults.met.values()
            )
            lines.append(f"{prefix}{left}{allowed}: {kinds}")
        for line in (*one.comparison.not_seen, *one.comparison.notes):
            everywhere = all(line in (*other.comparison.not_seen, *other.comparison.notes) for other in compared)
            lines.append(line if everywhere else f"{prefix}{line}")
    return lines
