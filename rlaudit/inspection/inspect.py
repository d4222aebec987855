"""From paths to judged findings: all of `rlaudit inspect` except its arguments and its report."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import lru_cache
from pathlib import Path

from rlaudit.configs.dialects.declared import is_code_of_a_framework
from rlaudit.configs.recorded_source import RecordedSource
from rlaudit.configs.source import Source
from rlaudit.errors import UsageError
from rlaudit.inspection.files import Collected, TextFile, Unread, collect, text_of
from rlaudit.inspection.hand_over import HandOver, hand_over
from rlaudit.inspection.inspect_file import Context, InspectedConfig, InspectedFile, inspect_file
from rlaudit.inspection.read_configs import known_dialects, sets_up_rollouts, speaks_of_rollouts
from rlaudit.inspection.so_today import with_today
from rlaudit.inspection.suppression import RULES as ABOUT_SUPPRESSIONS
from rlaudit.inspection.suppression import Judged, Suppression, inline_suppressions, judge
from rlaudit.inspection.versions import version_named
from rlaudit.inspection.without_config import Mention, OtherEngine, mention, other_engine
from rlaudit.rules import known_rules
from rlaudit.rules.audit.finding import Finding
from rlaudit.severity import FailFor, Threshold
from rlaudit.vllm.machine import Machine

BUG = 70
NOT_FINISHED = 3
FOUND = 1


@dataclass(frozen=True, eq=False)
class Request:
    """What a user requests."""

    paths: tuple[str, ...]
    context: Context
    # Names of the findings about suppressions that are reported.
    about_suppressions: frozenset[str] = frozenset(ABOUT_SUPPRESSIONS)
    suppressions: tuple[Suppression, ...] = ()
    stdin_name: str | None = None
    excluded: Callable[[str], bool] = lambda _path: False
    today: date = date.max
    # Folders with the source of a framework.
    framework_sources: tuple[str, ...] = ()
    # Releases of frameworks, and of the vLLM that runs with them today, as requirements.
    pins: tuple[str, ...] = ()
    # Sentences on plug-ins of vLLM, which were not read.
    plugins: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Inspection:
    """The result of an inspection."""

    request: Request
    # Those with a config.
    files: tuple[InspectedFile, ...]
    judged: tuple[Judged, ...]
    unread: tuple[Unread, ...]
    bugs: tuple[str, ...]
    read: int
    others: int
    # Files without a config that set up rollouts with an engine which is not read here.
    other_engines: tuple[OtherEngine, ...] = ()
    # Other files without a config that have words of vLLM or a framework.
    mentions: tuple[Mention, ...] = ()
    # Of files without a config that the user names.
    hand_overs: tuple[HandOver, ...] = ()

    @property
    def configs(self) -> int:
        """How many rollout engines were inspected."""
        return sum(len(file.configs) for file in self.files)

    @property
    def counted(self) -> tuple[Judged, ...]:
        """Findings that are not suppressed."""
        return tuple(verdict for verdict in self.judged if verdict.suppressed is None)

    @property
    def unread_and_wanted(self) -> tuple[Unread, ...]:
        """The unread files without which the audit is not finished."""
        return tuple(file for file in self.unread if file.wanted)


def collected_for(request: Request) -> Collected:
    """Return the files that a request names."""
    return collect(request.paths, request.stdin_name, request.excluded, request.framework_sources, request.pins)


def inspect(request: Request, collected: Collected | None = None) -> Inspection:
    """Collect, read, audit and judge. collected: the files of the request, if they were read already."""
    collected = collected or collected_for(request)
    inspected = [inspect_file(file, request.context) for file in collected.files]
    ways = tuple(_hand_overs(request, inspected))
    further = _files_of(ways, request, collected)
    inspected += [inspect_file(file, request.context) for file in further]
    collected = replace(collected, files=(*collected.files, *further))
    return judged(request, collected, reported_once(inspected), ways)


def _hand_overs(request: Request, inspected: Sequence[InspectedFile]) -> Iterator[HandOver]:
    """Yield where the rollouts of each file that the user names and that has no config are set up."""

    def is_read(source: Source) -> bool:
        if request.excluded(source.path) or not sets_up_rollouts(source, request.context.dialects):
            return False
        # The engine of a framework gets what a config says: without one its code says nothing of the rollouts.
        return not is_code_of_a_framework(source.path)

    for file in inspected:
        source = file.file.source
        is_silent = file.file.named and not (file.configs or file.bugs or file.unreadable)
        if is_silent and not isinstance(source, RecordedSource) and other_engine(source) is None:
            yield hand_over(source, is_read)


def _files_of(ways: Sequence[HandOver], request: Request, collected: Collected) -> list[TextFile]:
    """Return the files to which others hand over and that are not collected, read as those that the user names are."""
    known = {Path(file.path).absolute() for file in collected.files}
    reached = {Path(source.path).absolute(): source for way in ways for source, _ in way.reached}
    paths = [source.path for path, source in reached.items() if path not in known]
    files = collect(paths, None, request.excluded, request.framework_sources, request.pins).files
    sources = [(file, reached[Path(file.path).absolute()]) for file in files]
    return [replace(file, source=replace(file.source, trees=there.trees, way=there.way)) for file, there in sources]


def reported_once(files: Sequence[InspectedFile]) -> list[InspectedFile]:
    """Leave out a config that another inspected file has itself.

    A run with one file per section is read from each of them together with the others, and reported once.
    """
    homes = {_home(config) for file in files for config in file.configs if _is_in(config, file)}
    kept = []
    for file in files:
        configs = tuple(config for config in file.configs if _is_in(config, file) or _home(config) not in homes)
        kept.append(file if len(configs) == len(file.configs) else replace(file, configs=configs))
    return kept


def _home(inspected: InspectedConfig) -> tuple[str, Path, int]:
    """Return the dialect of a config, and the file and the line in which it stands."""
    config = inspected.audit.config
    place = config.place
    return inspected.framework.name, Path(place.path if place else config.path).absolute(), place.line if place else 0


def _is_in(config: InspectedConfig, file: InspectedFile) -> bool:
    return _home(config)[1] == Path(file.file.path).absolute()


def judged(
    request: Request, collected: Collected, inspected: Sequence[InspectedFile], hand_overs: tuple[HandOver, ...] = ()
) -> Inspection:
    """Apply suppressions to what was inspected."""
    with_configs = tuple(file for file in inspected if file.configs or file.bugs)
    unreadable = tuple(
        Unread(file.file.path, file.unreadable, file.file.named, speaks_of_rollouts(file.file.source.text))
        for file in inspected
        if file.unreadable
    )
    without = [file.file.source for file in inspected if not (file.configs or file.bugs or file.unreadable)]
    others = tuple(engine for source in without if (engine := other_engine(source)) is not None)
    parts = {
        Path(part).absolute() for file in with_configs for config in file.configs for part in config.audit.config.parts
    }
    explained = {engine.path for engine in others}
    explained |= {source.path for source in without if Path(source.path).absolute() in parts}
    explained |= {way.path for way in hand_overs if way.reached or way.missing or way.inside or way.others}
    mentions = (mention(source) for source in without if source.path not in explained)
    return Inspection(
        request=request,
        files=with_configs,
        judged=judge_files(request, with_configs),
        unread=(*collected.unread, *unreadable),
        bugs=tuple(str(bug) for file in inspected for bug in file.bugs),
        read=len(collected.files),
        others=collected.others,
        other_engines=others,
        mentions=tuple(words for words in mentions if words is not None),
        hand_overs=hand_overs,
    )


def judge_files(request: Request, files: Sequence[InspectedFile]) -> tuple[Judged, ...]:
    """Return the findings of some files with their suppressions, in the order of the files."""
    with_configs = [file for file in files if file.configs]
    findings = list({finding: None for file in with_configs for finding in file.findings})
    texts = {file.file.path: file.file.source.text for file in with_configs}
    # A finding may be in a file that another one inherits from: suppressions of that file hold as well.
    inherited = {finding.place.path for finding in findings} - set(texts)
    # A recording is not written by hand, so it holds no suppressions.
    inherited -= {path for file in with_configs if isinstance(file.file.source, RecordedSource)
                  for path in file.file.source.files}  # fmt: skip
    texts |= {path: text for path in sorted(inherited) if (text := text_of(path)) is not None}
    inline = [suppression for path, text in texts.items() for suppression in inline_suppressions(text, path)]

    def suppressed(findings: Sequence[Finding]) -> tuple[Judged, ...]:
        return judge(
            findings,
            (*inline, *request.suppressions),
            ran=tuple(request.context.rules),
            existing=(*known_rules(), *request.context.rules, *ABOUT_SUPPRESSIONS),
            paths=tuple(texts),
            today=request.today,
        )

    verdicts = list(suppressed(findings))
    configs = [config for file in with_configs for config in file.configs]
    if any(config.audit.migrates for config in configs):
        today = suppressed([finding for config in configs for finding in config.before_the_move])
        about_suppressions = [verdict.finding for verdict in today if verdict.finding.rule in ABOUT_SUPPRESSIONS]
        verdicts = [
            replace(verdict, finding=with_today([verdict.finding], about_suppressions)[0])
            if verdict.finding.rule in ABOUT_SUPPRESSIONS
            else verdict
            for verdict in verdicts
        ]
    order = {file.file.path: number for number, file in enumerate(with_configs)}
    wanted = [verdict for verdict in verdicts if verdict.finding.rule not in ABOUT_SUPPRESSIONS
              or verdict.finding.rule in request.about_suppressions]  # fmt: skip
    return tuple(sorted(wanted, key=lambda verdict: _place_in(order, verdict.finding)))


def _place_in(order: dict[str, int], finding: Finding) -> tuple[int, int, int, int, str]:
    place = finding.place
    return order.get(place.path, len(order)), place.line, place.column, -finding.severity.rank, finding.rule


def exit_code(inspection: Inspection, threshold: Threshold, none_is_fine: bool) -> int:
    """Return the exit code. none_is_fine: whether an audit without any config is finished."""
    if inspection.bugs:
        return BUG
    if inspection.unread_and_wanted or (not inspection.configs and not none_is_fine):
        return NOT_FINISHED
    findings = [verdict.finding for verdict in inspection.counted]
    if threshold.fail_for is FailFor.MOVE:
        findings = [finding for finding in findings if finding.so_today is False]
    least = threshold.fail_on
    return FOUND if least is not None and any(finding.severity.rank >= least.rank for finding in findings) else 0


def shown_path(path: str) -> str:
    """Return a path for a report: with forward slashes, and relative if it lies below the working directory."""
    return _shown_from(path, str(Path.cwd()))


@lru_cache(maxsize=4096)  # called for each setting of a file
def _shown_from(path: str, folder: str) -> str:
    try:
        return Path(folder, path).relative_to(folder).as_posix()
    except ValueError:
        return Path(path).as_posix()


def one_config(
    path: Path,
    machine: Machine,
    before: str | None = None,
    after: str | None = None,
    otherwise: str = "no rollout config",
) -> InspectedConfig:
    """Return the only rollout config of a file. Raises UsageError if it has none, or several.

    before, after: vLLM's releases; if None, the file's surroundings decide. otherwise: what to call a file without one.
    """
    collected = collect([str(path)], "", lambda _path: False)
    if not collected.files:
        raise UsageError(f"{path}: {collected.unread[0].reason if collected.unread else 'not found'}")
    sides = [version_named(side) if side is not None else None for side in (before, after)]
    context = Context(known_rules(), known_dialects(), machine, *sides, machine_known=True)
    inspected = inspect_file(collected.files[0], context)
    if inspected.bugs:
        raise RuntimeError("; ".join(str(bug) for bug in inspected.bugs))
    if inspected.unreadable:
        raise UsageError(f"{path}: {inspected.unreadable}")
    if not inspected.configs:
        raise UsageError(f"{path} is {otherwise} that rlaudit reads", "see: rlaudit list frameworks")
    if len(inspected.configs) > 1:
        engines = ", ".join(str(engine.audit.config.place or engine.audit.config.path) for engine in inspected.configs)
        raise UsageError(
            f"{path} sets up {len(inspected.configs)} engines ({engines}), expected one",
            "keep the rollout engine in a separate file",
        )
    return inspected.configs[0]
