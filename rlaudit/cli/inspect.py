"""`rlaudit inspect`: what vLLM will really do with a config, before and after a migration. Nothing is started."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rlaudit.cli.inspect_arguments import Arguments
from rlaudit.cli.output import Output, parse_outputs, write_outputs
from rlaudit.errors import UsageError
from rlaudit.files.standard_output import to_stdout
from rlaudit.inspection.files import recordings_alone
from rlaudit.inspection.fix_files import diff_of, fix_files
from rlaudit.inspection.inspect import Inspection, Request, collected_for
from rlaudit.inspection.inspect import inspect as inspect_paths
from rlaudit.inspection.requested import Given, requested
from rlaudit.report.of_inspection import report_of
from rlaudit.report.rendering.outlines.inspect import summary
from rlaudit.severity import Threshold
from rlaudit.text.say import say
from rlaudit.vllm.machine import machine_named
from rlaudit.vllm.runs_here import glibc_here, nearest_alike, newer_glibc

if TYPE_CHECKING:
    from rlaudit.inspection.bump.bump import Bump


@dataclass(frozen=True)
class _Wishes:
    """What to do with the findings."""

    outputs: Sequence[Output]
    none_is_fine: bool
    diff: bool
    fix: str | None


def inspect(options: Arguments) -> int:
    """Run `rlaudit inspect` and return its exit code."""
    outputs = parse_outputs(options.output, options.verbose) if options.output or not options.diff else []
    return _inspect(options, outputs) if options.bump is None else _inspect_bump(options, outputs)


def _inspect_bump(options: Arguments, outputs: Sequence[Output]) -> int:
    """Inspect the new tree from its own root, with the releases that its pins move between."""
    # Git, tables of pins and the page about them are for --bump alone.
    from rlaudit.inspection.bump.bump import find_bump, in_tree_after
    from rlaudit.report.of_bump import unmoved

    if options.before is not None or options.after is not None:
        raise UsageError("--bump finds --from and --to by itself: leave them out")
    if options.fix is not None and not options.diff:
        raise UsageError("--bump changes no file", "--diff prints the fixes as a patch")
    bump = find_bump(options.bump or "", options.paths)
    # The inspection changes the working directory.
    outputs = [replace(output, path=output.path and output.path.absolute()) for output in outputs]
    if bump.migration is None:
        document, why = unmoved(bump, options.allow_no_config)
        say(why)
        return write_outputs(outputs, document)
    for sentence in bump.migration.sentences:
        say(sentence)
    in_tree = replace(
        options,
        before=str(bump.migration.before),
        after=str(bump.migration.after),
        paths=list(bump.trees.paths),
    )
    with in_tree_after(bump.trees):
        return _inspect(in_tree, outputs, bump)


def _inspect(options: Arguments, outputs: Sequence[Output], bump: "Bump | None" = None) -> int:
    """Write the report and return the exit code. bump: the one whose new tree is the working directory."""
    wishes = _Wishes(outputs, options.allow_no_config, options.diff, options.fix)
    _check(options.paths, wishes)
    request, threshold = requested(
        Given(
            paths=options.paths,
            before=options.before,
            after=options.after,
            platform=options.platform,
            model=options.model,
            framework=options.framework,
            framework_source=options.framework_source,
            python=options.python,
            dialect=options.dialect,
            select=options.select,
            ignore=options.ignore,
            fail_on="never" if options.exit_zero else options.fail_on,
            fail_for=options.fail_for,
            stdin_name=options.stdin_name,
            bumped=bump is not None,
        )
    )
    if bump is not None:
        request = replace(request, context=replace(request.context, bumped=bump.pinned_before))
    return _run(request, threshold, wishes, bump)


def _check(paths: Sequence[str], wishes: _Wishes) -> None:
    if "-" in paths and wishes.fix is not None and not wishes.diff:
        raise UsageError("standard input cannot be fixed in place", "--diff prints the fixes")
    if wishes.diff and any(output.path is None for output in wishes.outputs):
        raise UsageError("--diff goes to stdout: give the report a path", "--output json:report.json")


def _run(request: Request, threshold: Threshold, wishes: _Wishes, bump: "Bump | None") -> int:
    collected = collected_for(request)
    inspection = inspect_paths(request, collected)
    _say_versions(inspection)
    standing = 0
    if bump is not None:
        judged = tuple(verdict for verdict in inspection.judged if verdict.finding.so_today is False)
        standing, inspection = len(inspection.judged) - len(judged), replace(inspection, judged=judged)
    patch, fixes = "", None
    if wishes.diff or wishes.fix is not None:
        fixes = fix_files(inspection, unsafe=wishes.fix == "unsafe", write=not wishes.diff)
        patch = diff_of(fixes) if wishes.diff else ""
        inspection = fixes.inspection or inspection
    document = report_of(inspection, threshold, wishes.none_is_fine, fixes)
    if bump is not None:
        from rlaudit.report.of_bump import reported

        document["bump"] = reported(bump, inspection, standing)
    if wishes.diff:
        to_stdout(patch)
        for sentence in summary(document):
            say(sentence)
    pages = [output for output in wishes.outputs if output.report_format.name == "html"]
    recordings = recordings_alone(collected) if pages and bump is None else ()
    if recordings:
        # The reader of recordings takes a fifth of an inspection's time to import.
        from rlaudit.report.of_public_recording import public_report

        write_outputs(pages, public_report(recordings, request, document["exit_code"], threshold))
    write_outputs([output for output in wishes.outputs if not recordings or output not in pages], document)
    for sentence in (*inspection.bugs, *(fixes.failed if fixes else ())):
        say(sentence)
    return document["exit_code"]


def _say_versions(inspection: Inspection) -> None:
    """Print where the versions come from, once for all files that share them, and which release is not catalogued."""
    shared: dict[tuple[str, ...], list[str]] = {}
    for file in inspection.files:
        if file.versions is not None and file.versions.sentences:
            shared.setdefault(file.versions.sentences, []).append(file.file.path)
    for sentences, paths in shared.items():
        and_others = f" and {len(paths) - 1} more" if len(paths) > 1 else ""
        for sentence in sentences:
            say(f"{paths[0]}{and_others}: {sentence}")
    audits = [config.audit for file in inspection.files for config in file.configs]
    for sentence in dict.fromkeys(side.catalogue.remark for audit in audits for side in (audit.before, audit.after)):
        if sentence:
            say(sentence)
    # An ablation that is to be pasted has to run.
    if any(verdict.finding.confirm for verdict in inspection.judged):
        for version in dict.fromkeys(str(side.version) for audit in audits for side in (audit.before, audit.after)):
            _say_what_cannot_run(version)


def _say_what_cannot_run(version: str) -> None:
    """Say that no ablation on this machine's processor can start a release, and which other one decides the same."""
    here = glibc_here()
    needed = newer_glibc(version, "cpu", here)
    if needed:
        nearest = nearest_alike(version, "cpu", here, machine_named("cpu"))
        same = f"vLLM {nearest} has the same defaults and runs here: use it for the ablation"
        instead = f". {same}" if nearest is not None else ""
        say(f"no CPU build of vLLM {version} runs here: it needs glibc {needed}, this machine has {here}{instead}")
