"""The report of an inspection: each file with its findings and what moves, then what was not seen."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

from rlaudit.layers import Layer
from rlaudit.report.rendering.actions import action_lines
from rlaudit.report.rendering.inspected_answer import answer
from rlaudit.report.rendering.inspected_settings import settings_blocks
from rlaudit.report.rendering.outline import (
    NOT_SEEN,
    Block,
    Findings,
    Folded,
    Indents,
    Lines,
    Outline,
    Prose,
    Section,
    Table,
    listed,
    verdicts,
)
from rlaudit.report.rendering.statements import location
from rlaudit.report.shown_value import shown
from rlaudit.severity import FailFor, Severity
from rlaudit.text.counted import counted

if TYPE_CHECKING:
    from rlaudit.report.parts.inspection import Config, Finding, Fixes, Inspected, Setting
    from rlaudit.report.report import Report

SEVERITIES = tuple(reversed(Severity))
# In the order in which layers must be judged.
LAYERS = (*Layer, None)
# The findings of a move by `so_today`, and those of a config that does not move.
_SPLIT = {"What the move brings": False, "Today and after the move": True, "": None}
ACTIONS, LOST = "What to do", "Written, and without effect"
OUTCOMES = {
    0: "no finding{counted} at or above {fail_on}",
    1: "a finding{counted} at or above {fail_on}",
    3: "the audit is not finished: {unfinished}",
    70: "a reader or a rule failed: that is a bug in rlaudit, please report it",
}


def outline(report: "Report") -> Outline:
    """Return the outline, in reading order: what to do, what was found, what moves, what is open."""
    configs = report.get("configs", ())
    paths = list(dict.fromkeys(config.path for config in configs))
    inspected = report.get("inspection")
    findings = _counting(report["findings"])
    # If there is only one file, its name comes first, and findings in the files that it is read with stand below it.
    alone = len(paths) == 1
    others = [] if alone else [finding for finding in findings if finding.location.path not in set(paths)]
    notes = inspected is not None and inspected.fail_on == Severity.NOTE
    lines = action_lines(findings)
    actions: list[Block] = [Lines(lines, ACTIONS)] if lines else []
    answers = Section("answer", _title(report), answer(report, findings), leads=True)
    # Without an answer the only file's name comes first, and then what to do.
    within = alone and not answers.blocks
    files = list(_files(report, paths, actions if within else (), notes=notes))
    if alone and answers.blocks:
        answers = replace(answers, title=files[0].title, also=files[0].also)
        files[0] = replace(files[0], title="Findings and settings", also=(), gathers=True)
    return Outline(
        _title(report),
        [
            answers,
            Section("actions", ACTIONS, [] if within else actions, gathers=True),
            verdicts(report, page_only=True),
            *files,
            Section("others", "Elsewhere", findings_blocks(others, notes), gathers=True),
            _defaults(report),
            listed("failed", "Failed", inspected.bugs if inspected else (), indent=1),
            listed("not-seen", NOT_SEEN, () if _nothing_read(report) else not_seen_elsewhere(report), indent=1),
            Section("summary", "Summary", [Prose(summary(report))] if inspected else [], gathers=True),
        ],
        lead=report.get("left_out", ""),
        facts=[counted(number, severity) for severity, number in inspected.counted.items()] if inspected else (),
        headed=False,
        indents=Indents(title=1, line=2),
        pictured=frozenset(),
        unfolded_by="-v",
    )


def _title(report: "Report") -> str:
    """Return the title of the only config, or how many there are, with the releases if all have the same."""
    configs, versions = report.get("configs", ()), report["versions"]
    if len(configs) == 1:
        return _config_title(configs[0], several=False)
    before, after = versions["from"], versions["to"]
    moved = f", vLLM {before} -> {after}" if before != after else f", vLLM {after}" if after is not None else ""
    return f"{len(configs)} rollout configs{moved}" if configs else "No rollout config was read"


def _nothing_read(report: "Report") -> bool:
    """Return True if what was named could not be read: the answer says why, and no list has more to say."""
    inspected = report.get("inspection")
    failed = sum(file.wanted for file in inspected.unread) if inspected else 0
    return inspected is not None and not inspected.configs and 0 < failed >= inspected.files_read


def _files(report: "Report", paths: Sequence[str], first: Sequence[Block], notes: bool) -> Iterator[Section]:
    """Yield a section for each path, which begins with the blocks `first`.

    The flat lists of a report are grouped only once, since a repository has thousands of rows.
    """
    configs: dict[str, list[tuple[Config, list[Setting]]]] = {}
    settings: dict[int | None, list[Setting]] = {}
    findings: dict[str | None, list[Finding]] = {}
    for row in report["settings"]:
        settings.setdefault(row.config, []).append(row)
    for finding in report["findings"]:
        path = paths[0] if len(paths) == 1 else finding.location.path
        findings.setdefault(path, []).append(finding)
    for number, config in enumerate(report.get("configs", ())):
        configs.setdefault(config.path, []).append((config, settings.get(number, [])))
    for index, path in enumerate(paths):
        of_path = findings.get(path, [])
        several = len(configs[path]) > 1
        blocks = [*first, *findings_blocks(_counting(of_path), notes)]
        blocks += _configs(configs[path], of_path)
        title, *also = (_config_title(config, several) for config, _ in configs[path])
        yield Section(f"file-{index}", title, blocks, also)


def _configs(configs: "Sequence[tuple[Config, list[Setting]]]", findings: "Sequence[Finding]") -> Iterator[Block]:
    """Yield the blocks of a file's configs. Those that differ in the line alone, as two branches do, share theirs."""
    alike: list[tuple[list[Block], list[str]]] = []
    for config, rows in configs:
        blocks = _config(config, rows, findings)
        lines = next((lines for others, lines in alike if others == blocks), None)
        if lines is None:
            alike.append((blocks, lines := []))
        lines += [str(config.line)] if config.line is not None else []
    for blocks, lines in alike:
        which = f" (line{'s' * (len(lines) > 1)} {', '.join(lines)})" if len(configs) > 1 and lines else ""
        for block in blocks:
            if isinstance(block, Folded):
                yield replace(block, summary=block.summary + which)
            else:
                yield replace(block, title=block.title + which)


def _once(findings: "Iterable[Finding]") -> "Iterator[Finding]":
    """Yield each fact once, with the further places that it holds at."""
    alike: dict[tuple[str, str, str], list[Finding]] = {}
    for finding in findings:
        alike.setdefault((finding.rule, finding.severity, finding.message), []).append(finding)
    for first, *others in alike.values():
        lines = dict.fromkeys(str(other.location.line) for other in others)
        where = f"in line{'s' * (len(lines) > 1)} {', '.join(lines)}"
        if any(other.location.path != first.location.path for other in others):
            where = f"at {', '.join(dict.fromkeys(location(other.location) for other in others))}"
        yield replace(first, message=f"{first.message} Also {where}.") if others else first


def findings_blocks(findings: "Sequence[Finding]", notes: bool) -> list[Block]:
    """Return the findings to act on, what a move brings first, and the notes folded.

    notes: whether notes are to act on, too.
    """
    blocks: list[Block] = []
    folded: list[Block] = []
    for title, about in _SPLIT.items():
        of_side = list(_once(finding for finding in findings if finding.so_today is about))
        later = [] if notes else [finding for finding in of_side if finding.severity == Severity.NOTE]
        first = [finding for finding in of_side if notes or finding.severity != Severity.NOTE]
        blocks += [Findings(first, title)] if first else []
        of_what = f" on: {title[0].lower()}{title[1:]}" if title else ""
        folded += [Folded(f"Notes{of_what} ({len(later)})", Findings(later), kind="notes")] if later else []
    return [*blocks, *folded]


def _config(config: "Config", rows: "Sequence[Setting]", findings: "Sequence[Finding]") -> list[Block]:
    grave = {finding.setting for finding in findings if finding.severity != Severity.NOTE}
    seen = config.recorded or ()
    blocks: list[Block] = [Lines(seen, "Recorded")] if seen else []
    return [*blocks, *settings_blocks(config, rows, grave), *_lost(config, findings)]


def _lost(config: "Config", findings: "Sequence[Finding]") -> Iterator[Block]:
    """Yield what is written without effect. It is folded if a finding names its place."""
    places = {location(finding.location) for finding in findings}
    in_no_finding: list[str] = []
    in_findings: list[str] = []
    for setting in config.lost:
        place = location(setting.location)
        line = f"{place}: {setting.name} ({shown(setting.written)}): {setting.reason}"
        (in_findings if place in places else in_no_finding).append(line)
    if in_no_finding:
        yield Lines(in_no_finding, LOST)
    if in_findings:
        yield Folded(f"{LOST} ({len(in_findings)})", Lines(in_findings), kind="settings written without effect")


def _config_title(config: "Config", several: bool) -> str:
    """Return `conf/base.yaml: PipelineRL, vLLM 0.8.5 (engine V0) -> 0.18.1 (engine V1)`."""
    versions = config.versions
    before, after = _release(config, "from"), _release(config, "to")
    moved = after if versions["from"] == versions["to"] else f"{before} -> {after}"
    line = f":{config.line}" if several and config.line is not None else ""
    called = f", {config.called}" if several and config.called else ""
    first = f"{config.handed_over_by} -> " if config.handed_over_by else ""
    return f"{first}{config.path}{line}{called}: {config.title}, vLLM {moved}"


def _release(config: "Config", side: Literal["from", "to"]) -> str:
    """Return `0.18.1 (engine V1)`, and for a release that is not catalogued the one that stands for it."""
    version, read_as, engine = config.versions[side], config.read_as[side], config.engine[side]
    details = [*([f"engine {engine}"] if engine else []), *([f"read as {read_as}"] if read_as != version else [])]
    return f"{version} ({', '.join(details)})" if details else f"{version}"


def _counting(findings: "Iterable[Finding]") -> "list[Finding]":
    """Return the findings that are not suppressed, the gravest first."""
    counting = [finding for finding in findings if finding.suppressed is None]
    return sorted(counting, key=lambda finding: (SEVERITIES.index(finding.severity), LAYERS.index(finding.layer)))


def _defaults(report: "Report") -> Section:
    """Return the settings that move without a config."""
    versions = report["versions"]
    rows = [
        [row.name, shown(row.effective_from), shown(row.effective_to), row.note]
        for row in report["settings"]
        if row.config is None
    ]
    header = ["setting", f"vLLM {versions['from']}", f"vLLM {versions['to']}", "note"]
    title = f"vLLM {versions['from']} -> {versions['to']}: {report.get('description', 'defaults')}"
    return Section("moving", title, [Table(header, rows, values=True)] if rows else [])


def not_seen_elsewhere(report: "Report") -> list[str]:
    """Return what was not seen and belongs to no config: files that were not read, and the limits of all reading."""
    of_configs = {f"{config.path}: {line}" for config in report.get("configs", ()) for line in config.not_seen}
    return [line for line in report["not_seen"] if line not in of_configs]


def summary(report: "Report") -> list[str]:
    """Return what was read, what was found, and why the exit code is what it is."""
    inspected = report["inspection"]
    where = f" in {inspected.files_with_config} of them" if inspected.configs and inspected.files_read > 1 else ""
    looked_at = [
        f"{counted(inspected.files_read, 'file')} read",
        f"{counted(inspected.configs, 'rollout config')} found{where}",
        counted(inspected.settings, "setting"),
        f"{counted(inspected.rules, 'rule')} run for {inspected.machine} ({inspected.platform}; see --platform)",
    ]
    findings = ", ".join(counted(number, severity) for severity, number in inspected.counted.items())
    kinds = [f"{number} {kind}" for kind, number in inspected.suppressed.items()]
    suppressed = f"; suppressed: {', '.join(kinds)}" if kinds else ""
    exit_ = f"Exit code {report['exit_code']}: {_outcome(report['exit_code'], inspected)}."
    return [f"{', '.join(looked_at)}.", *_fixes(inspected.fixes), f"{findings}{suppressed}.", exit_]


def _outcome(exit_code: int, inspected: "Inspected") -> str:
    unread = [file.path for file in inspected.unread if file.wanted]
    unfinished = "no rollout config was found" if not inspected.configs else "not every file could be written"
    if unread:
        unfinished = f"{', '.join(unread)} could not be read"
    if exit_code == 0 and not inspected.configs:
        return "no rollout config was found"
    if exit_code == 0 and any(inspected.counted.values()) and inspected.fail_on == "never":
        return "findings do not fail this run"
    counted = " that the move brings" if inspected.fail_for is FailFor.MOVE else ""
    return OUTCOMES[exit_code].format(fail_on=inspected.fail_on, counted=counted, unfinished=unfinished)


def _fixes(fixes: "Fixes") -> list[str]:
    lines = []
    if fixes.made:
        done = "Fixed" if fixes.written else "Would fix"
        files = f"{counted(len(fixes.files), 'file')}: {', '.join(fixes.files)}"
        lines.append(f"{done} {counted(fixes.made, 'finding')} in {files}.")
    return lines + [f"Not fixed: {reason}." for reason in fixes.refused]
