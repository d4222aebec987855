"""What a run was measured on, in one line: figures of another model, dtype or machine are other figures."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from rlaudit.report.figures import number

if TYPE_CHECKING:
    from rlaudit.report.report import Report

# What is sent with every request, as people write it.
SAMPLED = {"temperature": "T", "top_p": "top-p", "top_k": "top-k", "min_p": "min-p"}
OFF = {"temperature": None, "top_p": 1, "top_k": (0, -1), "min_p": 0}


def measured_on(report: "Report") -> list[str]:
    """Return the line, or none for a report without a run."""
    run = report.get("run") or report.get("weight_updates")
    provenance = run.provenance if run is not None else {}
    return [" · ".join(_parts(report, provenance))] if provenance else []


def _parts(report: "Report", provenance: Mapping[str, Any]) -> Iterator[str]:
    ran = [arm for arm in report["arms"] if arm.measurements]
    candidate = next((arm for arm in ran if arm.role == "candidate"), ran[0] if ran else None)
    yield _model(provenance.get("model") or {})
    if candidate is not None:
        dtype = str(candidate.resolved.get("dtype", "unknown")).removeprefix("torch.")
        yield f"engine {dtype}, trainer {candidate.trainer.dtype}"
    if "weight_updates" in report:
        yield f"{report['weight_updates'].dtype}, prompts {(provenance.get('prompts') or {}).get('name', 'given')}"
    yield _machine(provenance.get("accelerator") or {})
    if candidate is not None:
        prompts = provenance.get("prompts") or {}
        measurement = candidate.measurements["k3"]
        yield f"prompts {prompts.get('name', 'given')}, {measurement.sequences} sequences, {measurement.tokens} tokens"
        yield ", ".join(_sampling(candidate.sampling))
    if "date" in provenance:
        yield str(provenance["date"])
    yield f"rlaudit {report['rlaudit']}"
    if provenance.get("command"):
        yield str(provenance["command"])


def _model(model: Mapping[str, Any]) -> str:
    measured = str(model.get("path") or "unknown model").rstrip("/").rpartition("/")[2]
    return f"{measured} in place of {model['stands_for']}" if model.get("stands_for") else measured


def _machine(accelerator: Mapping[str, Any]) -> str:
    name, kind = accelerator.get("name") or "", str(accelerator.get("kind") or "unknown machine")
    devices = len(accelerator.get("devices") or ())
    if devices:
        return f"{devices} x {name}"
    return f"{kind.upper()} ({name}, {accelerator.get('cores')} cores)" if name else kind.upper()


def _sampling(sampling: Mapping[str, Any]) -> Iterator[str]:
    for name, short in SAMPLED.items():
        value = sampling.get(name)
        off = OFF[name]
        if value is not None and value != off and not (isinstance(off, tuple) and value in off):
            yield f"{short} {number(value)}"
