"""`rlaudit inspect`: what vLLM will really do with a config, before and after a migration. Nothing is started."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from rlaudit.cli.inspect_arguments import Arguments
from rlaudit.cli.output import Output, parse_outputs, write_outputs
from rlaudit.configs.dialects.spec import shipped, spec_at
from rlaudit.configs.framework_source.checkout import folders_of
from rlaudit.errors import UsageError
from rlaudit.files.standard_output import to_stdout
from rlaudit.inspection.files import recordings_alone
from rlaudit.inspection.fix_files import diff_of, fix_files, proven
from rlaudit.inspection.foreign_plugins import foreign_plugins
from rlaudit.inspection.inspect import NOT_FINISHED, Inspection, Request, collected_for, exit_code
from rlaudit.inspection.inspect import inspect as inspect_paths
from rlaudit.inspection.inspect_file import Context
from rlaudit.inspection.read_configs import known_dialects
from rlaudit.inspection.selection import selected
from rlaudit.inspection.settings import find_settings
from rlaudit.inspection.versions import version_named
from rlaudit.report.of_inspection import document_of
from rlaudit.report.rendering.outlines.inspect import summary
from rlaudit.rules import known_rules
from rlaudit.rules.advisories import known_advisories
from rlaudit.severity import FailFor, Severity, Threshold
from rlaudit.text.did_you_mean import did_you_mean
from rlaudit.text.say import say
from rlaudit.vllm.machine import Machine, machine_named
from rlaudit.vllm.pins.files import pin_files_in, pins_in, text_of
from rlaudit.vllm.pins.pin import release
from rlaudit.vllm.runs_here import glibc_here, nearest_alike, newer_glibc

if TYPE_CHECKING:
    from rlaudit.inspection.bump.bump import Bump


@dataclass(frozen=True)
class _Wishes:
    """What to do with the findings."""

    outputs: Sequence[Output]
    threshold: Threshold
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
    settings = find_settings(Path.cwd())
    before, after = options.before or settings.get("from"), options.after or settings.get("to")
    platform = options.platform or settings.get("platform")
    fail_on = options.fail_on or settings.get("fail-on") or Severity.ERROR
    machine = Machine() if platform in (None, "cuda") else machine_named(platform)
    sides = [version_named(side) if side is not None else None for side in (before, after)]
    wishes = _Wishes(
        outputs=outputs,
        threshold=Threshold(
            None if fail_on == "never" or options.exit_zero else Severity(fail_on),
            FailFor(options.fail_for or settings.get("fail-for") or FailFor.STATE),
        ),
        none_is_fine=options.allow_no_config,
        diff=options.diff,
        fix=options.fix,
    )
    paths = options.paths or _project_here()
    _check(paths, wishes, options)
    rules, about_suppressions = selected(known_rules(), options.select or settings.get("select") or (), options.ignore)
    dialects = known_dialects(tuple(options.dialect))
    packages = tuple(chain.from_iterable(map(folders_of, options.python)))
    request = Request(
        paths=tuple(paths),
        context=Context(rules, dialects, machine, *sides, machine_known=platform is not None, model=options.model),
        about_suppressions=frozenset(about_suppressions),
        suppressions=settings.suppressions,
        stdin_name=options.stdin_name,
        excluded=settings.excludes,
        today=date.today(),
        pins=(
            *(_framework_pin(written, options.dialect) for written in options.framework),
            # What stands in a tree after a bump is not run with the vLLM before it.
            *([f"vllm=={sides[0]}"] if sides[0] is not None and bump is None else ()),
        ),
        framework_sources=(*options.framework_source, *packages),
        plugins=tuple(foreign_plugins(packages)),
    )
    return _run(request, wishes, bump)


def _project_here() -> list[str]:
    """Return the working directory if something in it pins vLLM: that is what to inspect where nothing is named."""
    here = Path.cwd()
    return ["."] if any(pins_in(kind, text_of(path)) for kind, path in pin_files_in(here)) else []


def _check(paths: Sequence[str], wishes: _Wishes, options: Arguments) -> None:
    if not paths:
        raise UsageError(
            "no config was named",
            f"rlaudit inspect CONFIG --from {options.before or 'VERSION'} --to {options.after or 'VERSION'}",
        )
    for folder in options.framework_source:
        if not Path(folder).is_dir():
            raise UsageError(f"--framework-source {folder}: no such folder", "name the checkout, or the package in it")
    if "-" in paths and wishes.fix is not None and not wishes.diff:
        raise UsageError("standard input cannot be fixed in place", "--diff prints the fixes")
    if wishes.diff and any(output.path is None for output in wishes.outputs):
        raise UsageError("--diff goes to stdout: give the report a path", "--output json:report.json")


def _framework_pin(written: str, dialects: Sequence[Path]) -> str:
    """Return a `--framework` as a requirement. Raises UsageError for another form, or a framework that is not read."""
    name, _, version = written.partition("==")
    if release(version) is None:
        raise UsageError(f"--framework {written}: no release is named", "write it as trl==1.7.0")
    packages = [spec_at(path).package for path in (*shipped().values(), *dialects)]
    names = [name for package in packages if package is not None for name in package.names]
    names += [advisory.of for advisory in known_advisories().values()]
    if name not in names:
        listed = f"there are: {', '.join(dict.fromkeys(names))}"
        raise UsageError(f"--framework {written}: {name} is not read", did_you_mean(name, names, listed))
    return written


def _run(request: Request, wishes: _Wishes, bump: "Bump | None") -> int:
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
    inspection = proven(inspection)
    failed = fixes.failed if fixes else ()
    code = exit_code(inspection, wishes.threshold, wishes.none_is_fine)
    if failed:
        code = max(code, NOT_FINISHED)
    document = document_of(inspection, code, wishes.threshold, fixes)
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

        write_outputs(pages, public_report(recordings, request, code, wishes.threshold))
    write_outputs([output for output in wishes.outputs if not recordings or output not in pages], document)
    for sentence in (*inspection.bugs, *failed):
        say(sentence)
    return code


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
        instead = f"; ablate {nearest} instead, whose defaults are the same" if nearest is not None else ""
        say(f"vLLM {version} has no CPU build for this machine: it needs glibc {needed}, here is {here}{instead}")
