"""Comparisons as the document `rlaudit-report/1`, from which every output format is rendered."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import rlaudit
from rlaudit.diagnosis.comparison import Comparison
from rlaudit.diagnosis.document import SCHEMA
from rlaudit.diagnosis.judgement import Judgement
from rlaudit.diagnosis.worst_layer import exit_code_of, worst_layers
from rlaudit.meaning.meaning import Meaning, ScoredFigures
from rlaudit.tokens.data_share import DataShare
from rlaudit.tokens.fault import Faults, Met

SHOWN_SEQUENCES = 20


@dataclass(frozen=True)
class Compared:
    """A comparison with where its tokens came from, in what format, and what could not be read of it."""

    comparison: Comparison
    path: str
    export: str
    files: int
    trainer_path: str | None
    faults: Faults
    is_before: bool = False


def document_of(
    compared: Sequence[Compared], not_seen: Sequence[str], fails: bool, allow_partial: bool
) -> dict[str, Any]:
    """JSON-able. fails: whether a mismatch makes the exit code 1. allow_partial: whether faults may be left out.

    What runs today is shown, and is not judged: only what it is compared for is.
    """
    judged = [one for one in compared if not one.is_before]
    layers = worst_layers([(_name(one), [_layer(layer) for layer in one.comparison.layers]) for one in judged])
    unfinished = not allow_partial and any(one.faults.count for one in compared)
    return {
        "schema": SCHEMA,
        "rlaudit": rlaudit.__version__,
        "command": "compare",
        "exit_code": exit_code_of(layers, unfinished, fails),
        "versions": {"from": None, "to": None},
        "findings": [],
        "settings": [],
        "arms": [],
        "effects": [],
        "layers": layers,
        "comparisons": [_comparison(one) for one in compared],
        "not_seen": list(dict.fromkeys([*not_seen, *_not_seen(compared, allow_partial)])),
    }


def _name(one: Compared) -> str:
    name = one.comparison.name or one.path
    return f"before: {name}" if one.is_before else name


def _layer(judgement: Judgement) -> dict[str, Any]:
    return {
        "layer": judgement.layer.value,
        "verdict": judgement.verdict.value,
        "cause": judgement.cause,
        "because": judgement.because,
        "evidence": list(judgement.evidence),
        "falsifier": judgement.falsifier,
        "next": judgement.next,
    }


def _comparison(one: Compared) -> dict[str, Any]:
    comparison = one.comparison
    attribution = comparison.attribution
    return {
        "name": _name(one),
        "path": one.path,
        "format": one.export,
        "files": one.files,
        "trainer_path": one.trainer_path,
        **asdict(comparison.counts),
        "sampling": asdict(comparison.sampling),
        "trainer": asdict(comparison.trainer),
        "measurements": {name: found.as_dict() for name, found in comparison.measurements.items()},
        "alignment": {
            "misaligned": dict(comparison.counts.misaligned),
            "sequences": [
                {"name": bad.name, "kind": bad.kind.value, "first": bad.first, "lag": bad.lag}
                for bad in comparison.alignment.misaligned[:SHOWN_SEQUENCES]
            ],
            "messages": list(comparison.alignment.messages),
            "not_tested": list(comparison.alignment.not_tested),
        },
        "semantics": _semantics(comparison.meaning),
        "attribution": None if attribution is None else _finite(attribution.as_dict()),
        "objective": None if comparison.split is None else _finite(comparison.split.as_dict()),
        "evidence_tokens": comparison.evidence_tokens,
        "layers": {judgement.layer.value: judgement.verdict.value for judgement in comparison.layers},
        "is_before": one.is_before,
        "distance": comparison.distance.as_dict(),
        "data": _data(comparison.share),
        "faults": {
            "count": one.faults.count,
            "sequences_left_out": one.faults.sequences_left_out,
            "shown": [_fault(met) for met in one.faults.met.values()],
        },
        "notes": list(comparison.notes),
    }


def _data(share: DataShare) -> dict[str, Any]:
    """What the figures rest on."""
    return {**asdict(share), "left_out": share.left_out, "suffices": share.suffices}


def _fault(met: Met) -> dict[str, Any]:
    first = met.first
    return {
        "path": str(first.path),
        "line": first.line,
        "sequence": first.sequence,
        "message": first.message,
        "kind": first.kind.value,
        "column": first.column or None,
        "count": met.count,
        "sequences_left_out": met.sequences,
    }


def _semantics(found: Meaning) -> dict[str, Any] | None:
    if not isinstance(found.figures, ScoredFigures):
        return None
    return {
        "verdict": found.verdict.value,
        "cause": found.said.cause,
        "because": found.said.because,
        "trainer": found.theta_train.name,
        "reported": found.theta_report.name,
        "sampled": found.theta_sample.name,
        "tests": [
            {"name": test.name, "ln_p": test.ln_p, "estimate": test.estimate, "convicts": test.convicts}
            for test in found.figures.tests
        ],
    }


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


def _finite(value: Any) -> Any:
    """Without NaN and infinities, which JSON does not have."""
    if isinstance(value, dict):
        return {name: _finite(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(inner) for inner in value]
    if hasattr(value, "item"):
        value = value.item()
    return None if isinstance(value, float) and not abs(value) < float("inf") else value
