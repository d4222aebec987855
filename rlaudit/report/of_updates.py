"""The report of an audit of weight updates."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rlaudit.diagnosis.updates.answer import answer
from rlaudit.diagnosis.updates.findings import UpdateFinding, findings_of
from rlaudit.diagnosis.updates.judge import JudgedCase, judge_run
from rlaudit.laboratory.studies.updates.run import FinishedUpdates
from rlaudit.laboratory.weight_path import came_over_nccl
from rlaudit.layers import Judgement, Layer, Verdict, judged_as, untested
from rlaudit.report.new_report import new_report
from rlaudit.report.parts.inspection import Finding, Location
from rlaudit.report.parts.weight_updates import WeightUpdates
from rlaudit.severity import Severity

if TYPE_CHECKING:
    from rlaudit.report.report import Report


def document_of(run: FinishedUpdates, recipe_path: Path, *, fail_on_mismatch: bool) -> "Report":
    """Return the report. fail_on_mismatch: whether an error makes the exit code 1."""
    cases = judge_run(run)
    findings = findings_of(cases)
    return {
        **new_report(
            "ablate",
            exit_code(cases, findings, fail_on_mismatch),
            after=run.recipe.weight_updates.engines[0].version,
            layers=_layers(cases, findings),
            not_seen=_not_seen(run, cases),
        ),
        "description": run.recipe.description,
        "findings": [_finding(finding, recipe_path) for finding in findings],
        "blocks": [],
        "weight_updates": WeightUpdates(
            cases=cases,
            to_use=answer(cases),
            equivalence_margin=run.recipe.equivalence_margin,
            dtype=run.recipe.dtype,
            cost=run.bookkeeping.cost,
            provenance=run.setup.provenance(),
        ),
    }


def exit_code(cases: Sequence[JudgedCase], findings: Sequence[UpdateFinding], fail_on_mismatch: bool) -> int:
    """Return 3 if a case of the matrix did not run or was not decided, 1 for an error, else 0.

    That a release cannot do something is an answer, unless it can do nothing that was requested.
    """
    if any(not judged.unsupported and not judged.decided for judged in cases) or _without_a_sequence(cases):
        return 3
    return int(fail_on_mismatch and any(finding.severity is Severity.ERROR for finding in findings))


def _without_a_sequence(cases: Sequence[JudgedCase]) -> list[str]:
    """Return the releases that have none of the sequences of calls that were requested of them."""
    releases = dict.fromkeys(judged.version for judged in cases)
    runnable = {judged.version for judged in cases if not judged.unsupported}
    return [release for release in releases if release not in runnable]


def _finding(finding: UpdateFinding, recipe_path: Path) -> Finding:
    following = f"next: {finding.next}" if finding.next else ""
    return Finding(
        rule=finding.name,
        layer=Layer.INFERENCE_PATH,
        severity=finding.severity,
        message="; ".join(filter(None, [finding.message, finding.sure, following])),
        location=Location(path=str(recipe_path), line=None, column=None, setting=finding.case),
        fix=None,
        suppressed=None,
        confirm="",
    )


def _layers(cases: Sequence[JudgedCase], findings: Sequence[UpdateFinding]) -> list[Judgement]:
    errors = [finding for finding in findings if finding.severity is Severity.ERROR]
    ran = [judged for judged in cases if judged.ran]
    clean = [bool(judged.clean) for judged in ran]
    whole = [judged.parts.verdict is Verdict.MATCH for judged in ran if judged.parts and not judged.of_adapter]
    nothing = _without_a_sequence(cases)
    sentences = [
        f"{sum(clean)} of {len(clean)} sequences of calls are clean" if clean else "",
        f"{sum(whole)} of {len(whole)} read-backs found everything updated" if whole else "",
        f"no requested sequence of calls exists in vLLM {', '.join(nothing)}" if nothing else "",
    ]
    right = bool(clean) and all([*clean, *whole, not nothing])
    return [
        untested(Layer.SEMANTIC, "at temperature 1 without filters raw and processed logprobs are the same"),
        judged_as(
            Layer.INFERENCE_PATH,
            Verdict.MISMATCH if errors else Verdict.MATCH if right else Verdict.INCONCLUSIVE,
            "; ".join(filter(None, sentences)) or "nothing was read back and no sequence of calls ran",
            causes=[error.name for error in errors[:1]],
            evidence=[finding.message for finding in errors],
            falsifier="the same calls, repeated, leave no stale keys and no old part",
            following="use a sequence that is clean here, and audit it with your model" if errors else "",
        ),
        untested(
            Layer.OBJECTIVE, "the table of lags shows what version lag alone adds; the objective has to correct this"
        ),
    ]


def _not_seen(run: FinishedUpdates, cases: Sequence[JudgedCase]) -> list[str]:
    lines = [f"{judged.start}, {judged.name}: {judged.problem}" for judged in cases if judged.problem]
    if run.setup.accelerator.kind == "cpu":
        lines.append(
            "CUDA was not seen: on this run's CPU weights are packed for other kernels, and asynchronous scheduling "
            "is off"
        )
    if not came_over_nccl(record.transport for record in run.records):
        lines.append("NCCL was not tested: no weights came over it")
    lines.append("engines of several workers were not tested: weights that are split over GPUs are not read back")
    return lines
