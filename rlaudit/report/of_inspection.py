"""The report of an inspection."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from rlaudit.configs.recorded_source import RecordedSource
from rlaudit.configs.syntax.shell_command import TakenDefault
from rlaudit.inspection.fingerprint import fingerprint, relative_to
from rlaudit.inspection.fix_files import proven
from rlaudit.inspection.hand_over import about
from rlaudit.inspection.inspect import NOT_FINISHED, Inspection, exit_code, shown_path
from rlaudit.inspection.inspect_file import InspectedConfig, InspectedFile
from rlaudit.inspection.suppression import Judged, Suppressed
from rlaudit.inspection.without_config import about_engines, about_mentions
from rlaudit.layers import Judgement, Layer, Verdict
from rlaudit.report.new_report import new_report
from rlaudit.report.parts.inspection import (
    Config,
    FixEdit,
    Gone,
    Inspected,
    Location,
    LostSetting,
    Suppression,
    UnreadFile,
)
from rlaudit.report.parts.inspection import Finding as ReportedFinding
from rlaudit.report.parts.inspection import Fix as ReportedFix
from rlaudit.report.parts.inspection import Fixes as ReportedFixes
from rlaudit.report.parts.inspection import TakenDefault as ReportedDefault
from rlaudit.report.setting_rows import setting_rows
from rlaudit.rules.audit.action import action_of
from rlaudit.rules.audit.audit import Audit, as_json
from rlaudit.rules.audit.finding import Finding, Fix
from rlaudit.rules.audit.trial import Trial
from rlaudit.settings.place import Place
from rlaudit.severity import Severity, Threshold
from rlaudit.text.counted import counted
from rlaudit.vllm.checkpoint import cached_config, checkpoint_file

if TYPE_CHECKING:
    from rlaudit.inspection.fix_files import Fixes
    from rlaudit.report.parts.inspection import Versions
    from rlaudit.report.report import Report

STATIC = "inspect starts no engine, so it can show a mismatch but no match"


def report_of(
    inspection: Inspection, threshold: Threshold, none_is_fine: bool = False, fixes: "Fixes | None" = None
) -> "Report":
    """Return the report of an inspection with its exit code.

    none_is_fine: whether an audit without any config is finished. fixes: what --fix or --diff did.
    """
    inspection = proven(inspection)
    code = exit_code(inspection, threshold, none_is_fine)
    if fixes is not None and fixes.failed:
        code = max(code, NOT_FINISHED)
    return document_of(inspection, code, threshold, fixes)


def document_of(inspection: Inspection, code: int, threshold: Threshold, fixes: "Fixes | None" = None) -> "Report":
    """Return the report of an inspection. fixes: what --fix or --diff did."""
    texts = {file.file.path: file.file.source.text for file in inspection.files}
    configs = [(file, config) for file in inspection.files for config in file.configs]
    settings = [row for number, (_, config) in enumerate(configs) for row in setting_rows(config.audit, number)]
    rows = Counter(row.config for row in settings)
    requested, rules = inspection.request.context.machine, inspection.request.context.rules
    machines = {(config.audit.after.machine.platform, config.audit.after.machine.name) for _, config in configs}
    platform, name = machines.pop() if len(machines) == 1 else (requested.platform, requested.name)
    return {
        **new_report(
            "inspect",
            code,
            layers=_layers(inspection.counted, [config.audit for _, config in configs]),
            not_seen=_not_seen(inspection, configs),
        ),
        "versions": _versions(inspection.files),
        "findings": [_finding(judged, texts) for judged in inspection.judged],
        "settings": settings,
        "configs": [_config(file, config, rows[number]) for number, (file, config) in enumerate(configs)],
        "inspection": Inspected(
            files_read=inspection.read,
            files_of_other_kinds=inspection.others,
            files_with_config=sum(bool(file.configs) for file in inspection.files),
            configs=inspection.configs,
            settings=sum(row.origin != "engine" or row.written is not None for row in settings),
            rules=len(rules),
            platform=platform,
            machine=name,
            fail_on=threshold.fail_on or "never",
            fail_for=threshold.fail_for,
            counted=_counted(inspection.counted),
            suppressed=_suppressed_counts(inspection.judged),
            stale_baseline_entries=0,
            unread=[
                UnreadFile(path=shown_path(file.path), reason=file.reason, wanted=file.wanted)
                for file in inspection.unread
            ],
            bugs=list(inspection.bugs),
            fixes=_fixes(fixes),
            layers=[layer for layer in Layer if any(rule.layer is layer for rule in rules.values())],
            gone=_gone([config for _, config in configs]),
        ),
    }


def _versions(files: Sequence[InspectedFile]) -> "Versions":
    """Return the versions of all configs, null if they are not the same for all."""
    releases = {(str(file.versions.before), str(file.versions.after)) for file in files if file.versions is not None}
    if len(releases) != 1:
        return {"from": None, "to": None}
    before, after = releases.pop()
    return {"from": before, "to": after}


def _gone(configs: Sequence[InspectedConfig]) -> list[Gone]:
    """Count the findings before the move that no finding after it is."""
    gone: dict[Finding, None] = {}
    for config in configs:
        stays = {(finding.rule, finding.setting, finding.place.path) for finding in config.findings}
        gone |= {finding: None for finding in config.before_the_move
                 if (finding.rule, finding.setting, finding.place.path) not in stays}  # fmt: skip
    numbers = Counter((finding.rule, finding.layer, finding.severity) for finding in gone)
    return [
        Gone(rule=rule, layer=layer, severity=severity, number=number)
        for (rule, layer, severity), number in numbers.items()
        if layer is not None
    ]


def _counted(counted: Sequence[Judged]) -> dict[str, int]:
    severities = Counter(judged.finding.severity for judged in counted)
    return {str(severity): severities[severity] for severity in reversed(Severity)}


def _suppressed_counts(judged: Sequence[Judged]) -> dict[str, int]:
    kinds = Counter(finding.suppressed.kind for finding in judged if finding.suppressed is not None)
    return dict(sorted(kinds.items()))


def _config(file: InspectedFile, config: InspectedConfig, settings: int) -> Config:
    """Return what is reported of a config. settings: how many it has."""
    audit = config.audit
    place = audit.config.place
    return Config(
        path=shown_path(file.file.path),
        handed_over_by=shown_path(first) if (first := file.file.source.way.first) else None,
        line=place.line if place is not None else None,
        framework=config.framework.name,
        title=config.framework.title,
        versions={"from": str(audit.before.version), "to": str(audit.after.version)},
        read_as={"from": str(audit.before.catalogue.version), "to": str(audit.after.catalogue.version)},
        versions_said=list(file.versions.sentences) if file.versions is not None else [],
        engine={"from": _generation(audit.before.is_v1), "to": _generation(audit.after.is_v1)},
        offline=audit.config.offline,
        settings=settings,
        parts=[shown_path(part) for part in audit.config.parts],
        lost=[
            LostSetting(
                name=lost.name,
                written=as_json(lost.written),
                loss=lost.loss,
                reason=lost.reason,
                location=_place(lost.place),
            )
            for lost in audit.config.lost
        ],
        not_seen=_left_open(audit),
        called=audit.config.called or None,
        taken_defaults=[
            ReportedDefault(variable=default.variable, sentence=str(default))
            for default in audit.config.not_seen
            if isinstance(default, TakenDefault)
        ],
        recorded=list(audit.config.recorded),
    )


def _left_open(audit: Audit) -> list[str]:
    """Return what a config leaves open, the pin that is not used today first; framework-moves-too has a later one."""
    config, first = audit.config, []
    if checkpoint_file(config) is None and config.checkpoint is None and cached_config(config) is not None:
        assert config.model is not None
        first = [f"whether the run loads the config.json of {config.model.value} that is in the hub's cache"]
    return [*first, *filter(None, [audit.before.config.unused_pin]), *config.not_seen]


def _generation(is_v1: bool | None) -> str | None:
    return None if is_v1 is None else "V1" if is_v1 else "V0"


def _finding(judged: Judged, texts: dict[str, str]) -> ReportedFinding:
    finding = judged.finding
    return ReportedFinding(
        rule=finding.rule,
        layer=finding.layer,
        severity=finding.severity,
        message=finding.message,
        location=_place(finding.place),
        setting=finding.setting,
        value=finding.value,
        confirm=finding.confirm,
        look=finding.look or None,
        fix=_fix(finding.fix, texts) if finding.fix is not None else None,
        suppressed=_suppressed(judged.suppressed) if judged.suppressed is not None else None,
        fingerprint=fingerprint(finding, relative_to(Path.cwd())),
        action=action_of(finding),
        so_today=finding.so_today,
        sets=dict(finding.sets) or None,
    )


def _place(place: Place) -> Location:
    return Location(
        path=shown_path(place.path),
        line=place.line,
        column=place.column,
        setting=place.setting or None,
    )


def _suppressed(suppressed: Suppressed) -> Suppression:
    place = suppressed.place
    return Suppression(
        kind=suppressed.kind,
        reason=suppressed.reason,
        path=shown_path(place.path) if place is not None else None,
        line=place.line if place is not None else None,
    )


def _fix(fix: Fix, texts: dict[str, str]) -> ReportedFix:
    edits: list[FixEdit] = []
    for edit in fix.edits:
        text = texts.get(edit.path)
        line, column = _line_and_column(text, edit.start)
        end_line, end_column = _line_and_column(text, edit.end)
        edits.append(
            FixEdit(
                path=shown_path(edit.path),
                start=edit.start,
                end=edit.end,
                line=line,
                column=column,
                end_line=end_line,
                end_column=end_column,
                replacement=edit.replacement,
            )
        )
    return ReportedFix(description=fix.description, safe=fix.safe, edits=edits)


def _line_and_column(text: str | None, offset: int) -> tuple[int | None, int | None]:
    if text is None:
        return None, None
    return text.count("\n", 0, offset) + 1, offset - (text.rfind("\n", 0, offset) + 1) + 1


def _layers(counted: Sequence[Judged], audits: Sequence[Audit]) -> list[Judgement]:
    """Judge the layers. A semantic error is certain, and a mismatch; all else is not judged without a measurement."""
    measured = f"measure it: {Trial().command(audits[0])}" if audits else ""
    judgements: list[Judgement] = []
    open_layer = ""
    for layer in Layer:
        findings = [judged.finding for judged in counted if judged.finding.layer is layer]
        errors = [finding for finding in findings if finding.severity is Severity.ERROR]
        certain = layer is Layer.SEMANTIC and bool(errors)
        rules = list(dict.fromkeys(finding.rule for finding in errors)) if certain else []
        judgements.append(
            Judgement(
                layer=layer,
                verdict=Verdict.MISMATCH if certain else Verdict.NOT_TESTED,
                cause=", ".join(rules) or None,
                causes=rules,
                because=errors[0].message if certain else _why_not(open_layer),
                evidence=[_evidence(finding) for finding in findings],
                falsifier=_wrong_if(errors[0]) if certain else "",
                next=_next(layer, errors[0] if errors else None, open_layer, measured),
            )
        )
        open_layer = open_layer or (str(layer) if certain else "")
    return judgements


def _wrong_if(error: Finding) -> str:
    # What to look for confirms it, unless it comes without a command.
    return f"{error.confirm} shows no such mismatch" if error.confirm else error.look


def _why_not(open_layer: str) -> str:
    return f"the {open_layer} layer comes first" if open_layer else STATIC


def _next(layer: Layer, error: Finding | None, open_layer: str, measured: str) -> str:
    if open_layer:
        return ""
    if error is not None and error.fix is not None:
        return error.fix.description
    return measured if layer is not Layer.OBJECTIVE else ""


def _evidence(finding: Finding) -> str:
    place = finding.place
    return f"{finding.severity} {finding.rule} at {shown_path(place.path)}:{place.line}: {finding.message}"


def _ran_on_both_sides(file: InspectedFile, config: InspectedConfig) -> bool:
    """Return whether a recorded engine is compared with what really ran: itself alone, or an engine of a recording."""
    if not isinstance(file.file.source, RecordedSource):
        return False
    before, after = config.audit.before.config, config.audit.after.config
    return not config.audit.migrates or (bool(before.recorded) and before.path != after.path)


def not_decided_in(path: str, sentence: str) -> str:
    """Return what is open in a config as a line of the whole report, which may have several."""
    return f"{path}: {sentence}"


def _not_seen(inspection: Inspection, configs: Sequence[tuple[InspectedFile, InspectedConfig]]) -> list[str]:
    lines = [f"{shown_path(file.path)}: {file.reason}" for file in inspection.unread]
    lines += inspection.request.plugins
    for file in inspection.files:
        lines += file.not_seen
    for file, config in configs:
        path = shown_path(file.file.path)
        lines += [not_decided_in(path, sentence) for sentence in _left_open(config.audit)]
        lines += [side.catalogue.remark for side in (config.audit.before, config.audit.after) if side.catalogue.remark]
    lines += [sentence for way in inspection.hand_overs for sentence in about(way, shown_path)]
    lines += about_engines(replace(engine, path=shown_path(engine.path)) for engine in inspection.other_engines)
    lines += about_mentions(replace(mention, path=shown_path(mention.path)) for mention in inspection.mentions)
    if inspection.others:
        lines.append(f"{counted(inspection.others, 'file')} of kinds that hold no config: these were not read")
    ran = [config for file, config in configs if _ran_on_both_sides(file, config)]
    if ran:
        weights_were_read = all(isinstance(config.audit.config.facts.weight_faults, list) for config in ran)
        weights = "most elements of the weights" if weights_were_read else "weights"
        lines.append(
            f"kernels and {weights} were not seen: a recording holds only what was configured, called and sampled"
        )
    if not ran or len(ran) < len(configs):
        lines.append(
            "what the engine decides when it starts was not seen: only files were read, and no engine was started"
        )
    return list(dict.fromkeys(lines))


def _fixes(fixes: "Fixes | None") -> ReportedFixes:
    if fixes is None:
        return ReportedFixes(made=0, files=(), written=False, refused=())
    changed = [file for file in fixes.files if file.changed]
    return ReportedFixes(
        made=sum(len(file.made) for file in changed),
        files=[shown_path(file.original.path) for file in changed],
        written=fixes.inspection is not None,
        refused=[
            *(refusal for file in fixes.files for refusal in file.refused),
            *(f"{path}: a recording says what ran, and nothing in it is edited" for path in fixes.recorded),
            *fixes.failed,
        ],
    )
