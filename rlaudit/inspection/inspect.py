"""From paths to judged findings: all of `rlaudit inspect` except its arguments and its report."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import lru_cache
from pathlib import Path

from rlaudit.configs.recorded_source import RecordedSource
from rlaudit.errors import UsageError
from rlaudit.inspection.baseline import Baseline, apply_baseline
from rlaudit.inspection.files import Collected, Unread, collect, text_of
from rlaudit.inspection.inspect_file import Context, InspectedConfig, InspectedFile, inspect_file
from rlaudit.inspection.read_configs import known_dialects, speaks_of_rollouts
from rlaudit.inspection.suppression import RULES as ABOUT_SUPPRESSIONS
from rlaudit.inspection.suppression import Judged, Suppression, inline_suppressions, judge
from rlaudit.inspection.versions import version_named
from rlaudit.inspection.without_config import Mention, OtherEngine, mention, other_engine
from rlaudit.rules import known_rules
from rlaudit.severity import Severity
from rlaudit.vllm.machine import Machine

BUG = 70
NOT_FINISHED = 3
FOUND = 1


@dataclass(frozen=True, eq=False)
class Request:
    """What a user requests. about_suppressions: the findings about suppressions that are wanted. framework_sources:
    folders with the source of a framework.
    """

    paths: tuple[str, ...]
    context: Context
    about_suppressions: frozenset[str] = frozenset(ABOUT_SUPPRESSIONS)
    suppressions: tuple[Suppression, ...] = ()
    baseline: Baseline | None = None
    stdin_name: str | None = None
    excluded: Callable[[str], bool] = lambda _path: False
    today: date = date.max
    framework_sources: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Inspection:
    """What was found. files: those with a config. stale: baseline entries that did not occur. other_engines: files
    without one that set up rollouts with an engine which is not read here. mentions: other files without one that have
    words of vLLM or a framework.
    """

    request: Request
    files: tuple[InspectedFile, ...]
    judged: tuple[Judged, ...]
    unread: tuple[Unread, ...]
    bugs: tuple[str, ...]
    read: int
    others: int
    stale: int = 0
    other_engines: tuple[OtherEngine, ...] = ()
    mentions: tuple[Mention, ...] = ()

    @property
    def configs(self) -> int:
        """How many rollout engines were inspected."""
        return sum(len(file.configs) for file in self.files)

    @property
    def counted(self) -> tuple[Judged, ...]:
        """Findings that are not suppressed."""
        return tuple(one for one in self.judged if one.suppressed is None)

    @property
    def unread_and_wanted(self) -> tuple[Unread, ...]:
        """The files that could not be read and without which the audit is not finished."""
        return tuple(one for one in self.unread if one.wanted)


def collected_for(request: Request) -> Collected:
    """Return the files that a request names."""
    return collect(request.paths, request.stdin_name, request.excluded, request.framework_sources)


def inspect(request: Request, collected: Collected | None = None) -> Inspection:
    """Collect, read, audit and judge. collected: what the request names, where it was read already."""
    collected = collected or collected_for(request)
    inspected = reported_once([inspect_file(file, request.context) for file in collected.files])
    return judged(request, collected, inspected)


def reported_once(files: Sequence[InspectedFile]) -> list[InspectedFile]:
    """Leave out a config that stands in another file which is inspected too and has it itself.

    A run with one file per section is read from each of them together with the others, and reported once.
    """
    own = {_home(one) for file in files for one in file.configs if _is_in(one, file)}
    kept = []
    for file in files:
        configs = tuple(one for one in file.configs if _is_in(one, file) or _home(one) not in own)
        kept.append(file if len(configs) == len(file.configs) else replace(file, configs=configs))
    return kept


def _home(one: InspectedConfig) -> tuple[str, Path, int]:
    """Return the dialect of a config, and the file and the line in which it stands."""
    config = one.audit.config
    place = config.place
    return one.framework.name, Path(place.path if place else config.path).absolute(), place.line if place else 0


def _is_in(one: InspectedConfig, file: InspectedFile) -> bool:
    return _home(one)[1] == Path(file.file.path).absolute()


def judged(request: Request, collected: Collected, inspected: Sequence[InspectedFile]) -> Inspection:
    """Apply suppressions and baseline to what was inspected."""
    with_configs = tuple(one for one in inspected if one.configs or one.bugs)
    unreadable = tuple(
        Unread(one.file.path, one.unreadable, one.file.named, speaks_of_rollouts(one.file.source.text))
        for one in inspected
        if one.unreadable
    )
    without = [one.file.source for one in inspected if not (one.configs or one.bugs or one.unreadable)]
    others = tuple(found for source in without if (found := other_engine(source)) is not None)
    parts = {
        Path(part).absolute() for one in with_configs for config in one.configs for part in config.audit.config.parts
    }
    named = {one.path for one in others} | {one.path for one in without if Path(one.path).absolute() in parts}
    given = {one.file.path for one in inspected if one.file.named}
    unnamed = (mention(one, named=one.path in given) for one in without if one.path not in named)
    mentions = tuple(found for found in unnamed if found is not None)
    verdicts = judge_files(request, with_configs)
    stale = 0
    if request.baseline is not None:
        verdicts, stale = apply_baseline(request.baseline, verdicts)
    return Inspection(
        request=request,
        files=with_configs,
        judged=verdicts,
        unread=(*collected.unread, *unreadable),
        bugs=tuple(str(bug) for one in inspected for bug in one.bugs),
        read=len(collected.files),
        others=collected.others,
        stale=stale,
        other_engines=others,
        mentions=mentions,
    )


def judge_files(request: Request, files: Sequence[InspectedFile]) -> tuple[Judged, ...]:
    """Return the findings of some files with their suppressions, in the order of the files."""
    with_configs = [one for one in files if one.configs]
    findings = list({finding: None for one in with_configs for finding in one.findings})
    texts = {file.file.path: file.file.source.text for file in with_configs}
    # A finding may be in a file that another one inherits from: a suppression there speaks as well.
    inherited = {finding.place.path for finding in findings} - set(texts)
    # A recording is not written by hand, so it holds no suppressions.
    inherited -= {path for file in with_configs if isinstance(file.file.source, RecordedSource)
                  for path in file.file.source.files}  # fmt: skip
    texts |= {path: text for path in sorted(inherited) if (text := text_of(path)) is not None}
    inline = [one for path, text in texts.items() for one in inline_suppressions(text, path)]
    verdicts = judge(
        findings,
        (*inline, *request.suppressions),
        ran=tuple(request.context.rules),
        known=(*known_rules(), *request.context.rules, *ABOUT_SUPPRESSIONS),
        paths=tuple(texts),
        today=request.today,
    )
    order = {file.file.path: number for number, file in enumerate(with_configs)}
    wanted = [one for one in verdicts if one.finding.rule not in ABOUT_SUPPRESSIONS
              or one.finding.rule in request.about_suppressions]  # fmt: skip
    return tuple(sorted(wanted, key=lambda one: _place_in(order, one)))


def _place_in(order: dict[str, int], one: Judged) -> tuple[int, int, int, int, str]:
    place = one.finding.place
    return order.get(place.path, len(order)), place.line, place.column, -one.finding.severity.rank, one.finding.rule


def exit_code(inspection: Inspection, fail_on: Severity | None, none_is_fine: bool) -> int:
    """Return the exit code. none_is_fine: whether finding no config is an answer and not an unfinished audit."""
    if inspection.bugs:
        return BUG
    if inspection.unread_and_wanted or (not inspection.configs and not none_is_fine):
        return NOT_FINISHED
    failing = fail_on is not None and any(one.finding.severity.rank >= fail_on.rank for one in inspection.counted)
    return FOUND if failing else 0


def shown_path(path: str) -> str:
    """Return a path for a report: relative to the working directory where it lies below it, with forward slashes."""
    return _shown_from(path, str(Path.cwd()))


@lru_cache(maxsize=4096)  # each setting of a file asks for the file's path
def _shown_from(path: str, here: str) -> str:
    try:
        return Path(here, path).relative_to(here).as_posix()
    except ValueError:
        return Path(path).as_posix()


def one_config(
    path: Path,
    machine: Machine,
    before: str | None = None,
    after: str | None = None,
    otherwise: str = "no rollout config",
) -> InspectedConfig:
    """Return the one rollout config of a file, for commands that are about one engine.

    before, after: vLLM's releases, from the file's surroundings if None. otherwise: what a file without one is. Raises
    UsageError if there is no config, or several.
    """
    collected = collect([str(path)], "", lambda _path: False)
    if not collected.files:
        raise UsageError(f"{path}: {collected.unread[0].reason if collected.unread else 'not found'}")
    sides = [version_named(side) if side is not None else None for side in (before, after)]
    context = Context(known_rules(), known_dialects(), machine, *sides, machine_known=True)
    found = inspect_file(collected.files[0], context)
    if found.bugs:
        raise RuntimeError("; ".join(str(bug) for bug in found.bugs))
    if found.unreadable:
        raise UsageError(f"{path}: {found.unreadable}")
    if not found.configs:
        raise UsageError(f"{path} is {otherwise} that rlaudit reads", "see: rlaudit list frameworks")
    if len(found.configs) > 1:
        engines = ", ".join(str(one.audit.config.place or one.audit.config.path) for one in found.configs)
        raise UsageError(
            f"{path} sets up {len(found.configs)} engines ({engines}), expected one",
            "keep the rollout engine in a file of its own",
        )
    return found.configs[0]
