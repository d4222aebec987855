"""Recordings in a diagnosis: what their tokens say, what their engines ran with, and what a migration changed.

One recording is judged alone. Of two, the new one is compared with the old one, token by token and setting by setting,
and the old one's own verdict is shown beside it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, cast

from rlaudit.configs.recorded_source import RecordedSource
from rlaudit.diagnosis.compare_settings import CompareSettings
from rlaudit.diagnosis.compare_tables import Comparer
from rlaudit.diagnosis.recorded_differences import KINDS, Difference, Kind, differences
from rlaudit.errors import NotFinished, UsageError
from rlaudit.inspection.files import Collected, TextFile, collect
from rlaudit.inspection.inspect import Inspection, Request, judged
from rlaudit.inspection.inspect_file import Context, InspectedFile, inspect_file
from rlaudit.inspection.read_configs import known_dialects
from rlaudit.inspection.versions import Versions
from rlaudit.layers import Verdict
from rlaudit.rules import known_rules
from rlaudit.settings.rollout_config import RolloutConfig
from rlaudit.settings.trainer_facts import WeightUpdates
from rlaudit.text.progress import Progress
from rlaudit.tokens.open_table import open_tables
from rlaudit.vllm.catalogue import known_versions
from rlaudit.vllm.machine import Machine

Role = Literal["old", "new", "alone"]


@dataclass(frozen=True, eq=False)
class _Inspected:
    """A recording that was opened and inspected."""

    path: Path
    file: TextFile
    source: RecordedSource
    # Its engines as their release ran them; None if they cannot be judged.
    inspected: InspectedFile | None
    # Why they cannot be judged.
    why: str = ""

    @property
    def configs(self) -> tuple[RolloutConfig, ...]:
        """Return the config of each engine."""
        return () if self.inspected is None else tuple(config.audit.after.config for config in self.inspected.configs)


@dataclass(frozen=True, kw_only=True)
class RecordedTraining:
    """One recording. role: old and new of a migration, else alone. layers: what its own tokens say of each, none if
    they could not be compared. seen: what was seen of each engine's run, in sentences.
    """

    path: str
    role: Role
    vllm: str | None
    engines: int
    layers: Mapping[str, Verdict]
    seen: Sequence[str]
    missing: Sequence[str]


@dataclass(frozen=True, kw_only=True)
class Trainings:
    """The recordings of a diagnosis. same: the kinds in which nothing differs."""

    recordings: Sequence[RecordedTraining]
    differences: Sequence[Difference]
    same: Sequence[Kind]


@dataclass(frozen=True, eq=False)
class RecordedDiagnosis:
    """What was found in one recording, or in an old and a new one."""

    trainings: Trainings
    # Of the last recording, compared with the one before; None if they cannot be judged.
    tokens: Comparer | None
    # Of the last recording's engines, compared with the ones before; None if they cannot be judged.
    inspection: Inspection | None
    # Why something was not judged.
    unjudged: tuple[str, ...]


def diagnose_recordings(recordings: Sequence[Path]) -> RecordedDiagnosis:
    """Judge one recording, or an old and a new one.

    Raises UsageError for more than two recordings, NotFinished for one that cannot be read.
    """
    if len(recordings) > 2:
        raise UsageError(
            f"{len(recordings)} recordings, expected one, or the old and the new one of a migration",
            "rlaudit diagnose OLD NEW",
        )
    inspected = [_inspected(path) for path in recordings]
    old, new = (inspected[0] if len(inspected) == 2 else None), inspected[-1]
    migration = None if old is None else _migrated(old, new)
    tokens, unjudged = _tokens(recordings)
    engines = migration or new.inspected
    unjudged += [] if engines is None else map(str, engines.bugs)
    differing = [] if old is None or migration is None else _differences(old, new, migration)
    roles: Sequence[Role] = ("alone",) if old is None else ("old", "new")
    trainings = Trainings(
        recordings=[_training(training, role, tokens) for training, role in zip(inspected, roles, strict=True)],
        differences=differing,
        same=[] if migration is None else _same(differing, migration),
    )
    request = Request((str(new.path),), _context())
    inspection = None if engines is None else judged(request, Collected((engines.file,), (), 0), [engines])
    why = [f"{training.path}: {training.why}" for training in inspected if training.why]
    return RecordedDiagnosis(trainings, tokens, inspection, (*unjudged, *why))


def _release(training: _Inspected) -> str | None:
    return None if training.source.release is None else str(training.source.release)


def _inspected(path: Path) -> _Inspected:
    collected = collect([str(path)], None, lambda _path: False)
    if not collected.files:
        raise NotFinished(f"{path}: {collected.unread[0].reason if collected.unread else 'no recording'}")
    (file,) = collected.files
    source = cast("RecordedSource", file.source)
    release = source.release
    why = ""
    if release is None:
        several = any(process.engines for process in source.recording.processes)
        why = "no one release of vLLM built its engines" if several else "no engine was recorded"
    elif release < known_versions()[0]:
        why = f"vLLM {release} is older than the catalogue ({known_versions()[0]})"
    if release is None or why:
        return _Inspected(path, file, source, None, f"its configuration is not judged: {why}")
    return _Inspected(path, file, source, inspect_file(file, _context(), Versions(release, release)))


def _context() -> Context:
    return Context(known_rules(), known_dialects(), Machine())


def _migrated(old: _Inspected, new: _Inspected) -> InspectedFile | None:
    """Compare each new engine with the old one at its place, or with the last; None if a recording has no engine."""
    before, after = old.source.release, new.source.release
    if not old.configs or not new.configs or before is None or after is None:
        return None
    today = [*old.configs, *[old.configs[-1]] * len(new.configs)][: len(new.configs)]
    return inspect_file(new.file, _context(), Versions(before, after), today)


def _tokens(recordings: Sequence[Path]) -> tuple[Comparer | None, list[str]]:
    """Return the tokens of the last recording, compared with the one before, and what was not judged.

    They are None if those of the last recording cannot be judged.
    """
    comparer = Comparer({}, None, CompareSettings(), None, 0, Progress(True))
    today, unjudged = None, []
    for place, path in enumerate(recordings):
        is_last = place + 1 == len(recordings)
        try:
            (table,) = open_tables(path)
            if is_last:
                comparer.compare(table, None, today)
            else:
                today = comparer.compare_today(table, None)
        except NotFinished as error:
            unjudged.append(f"{path}: its tokens are not judged: {error}")
            if is_last:
                return None, unjudged
    return comparer, unjudged


def _differences(old: _Inspected, new: _Inspected, migration: InspectedFile) -> list[Difference]:
    """Return what differs between all pairs of engines, each difference once."""
    differing: list[Difference] = []
    for config in migration.configs:
        differing += [row for row in differences(old.source, new.source, config.audit) if row not in differing]
    return differing


def _same(differing: Sequence[Difference], migration: InspectedFile) -> list[Kind]:
    """Return the kinds that both recordings hold, and in which they agree."""
    differ = {row.kind for row in differing}
    sides = [side for config in migration.configs for side in (config.audit.before, config.audit.after)]
    recorded: dict[Kind, bool] = {
        "sampling": all(side.config.sampling for side in sides),
        "update": all(isinstance(side.config.facts.weight_updates, WeightUpdates) for side in sides),
    }
    return [kind for kind in KINDS if kind not in differ and recorded.get(kind, True)]


def _training(training: _Inspected, role: Role, tokens: Comparer | None) -> RecordedTraining:
    compared = () if tokens is None else tokens.compared
    judgements = next((table.comparison.layers for table in compared if table.is_before == (role == "old")), ())
    seen = dict.fromkeys(sentence for config in training.configs for sentence in config.recorded)
    return RecordedTraining(
        path=str(training.path),
        role=role,
        vllm=_release(training),
        engines=len(training.configs),
        layers={judgement.layer: judgement.verdict for judgement in judgements},
        seen=list(seen),
        missing=training.source.recording.missing,
    )
