"""The pins of two trees compared, and the migration that follows: the releases that configs are inspected with."""

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from packaging.version import Version

from rlaudit.inspection.files import LEFT_OUT
from rlaudit.settings.rollout_config import FrameworkRelease
from rlaudit.vllm.catalogue import known_versions
from rlaudit.vllm.pins.files import PinFile, kind_of, pins_in, text_of
from rlaudit.vllm.pins.pin import VLLM, Package, Pin, span

MOST_NAMED = 5
_HIDDEN_AND_READ = frozenset({".github", ".gitlab-ci.yml"})


@dataclass(frozen=True)
class Move:
    """A pin of one file, before and after the bump."""

    path: str
    kind: PinFile
    # None if the file had no pin.
    before: Pin | None
    # None if the file has no pin.
    after: Pin | None

    @property
    def versions(self) -> tuple[Version, Version] | None:
        """Return the releases that it moves from and to, None if they are not known.

        A range stands for the newest known release that it allows, or for the oldest if only that moves.
        """
        if self.before is None or self.after is None:
            return None
        for end in (-1, 0):
            sides = [_end(pin, end) for pin in (self.before, self.after)]
            if sides[0] is not None and sides[1] is not None and sides[0] != sides[1]:
                return sides[0], sides[1]
        return None

    @property
    def exact(self) -> bool:
        """Whether both sides are releases and no ranges."""
        return all(pin is not None and pin.version is not None for pin in (self.before, self.after))


def _end(pin: Pin, end: int) -> Version | None:
    bounds = span(pin)
    if bounds is None:
        return pin.version
    allowed = [*bounds.filter(known_versions(), prereleases=True)]
    return allowed[end] if allowed else None


@dataclass(frozen=True)
class Pins:
    """The pins of two trees."""

    # Pins that changed.
    moves: tuple[Move, ...]
    # Pins that did not change.
    stays: tuple[Move, ...]
    # How many files have a pin.
    files: int


def pins_of(before: Path, after: Path) -> Pins:
    """Compare the pins of two folders: what was resolved first, then by path."""
    old, new = _pinned(before), _pinned(after)
    moves: list[Move] = []
    stays: list[Move] = []
    for path in sorted(new, key=lambda path: (new[path][0].rank, path)):
        kind, pins = new[path]
        _, earlier = old.get(path, (kind, ()))
        moves += [Move(path, kind, *sides) for sides in _paired(earlier, pins)]
        kept = {_key(pin) for pin in earlier}
        stays += [Move(path, kind, pin, pin) for pin in pins if _key(pin) in kept]
    gone = sorted(set(old) - set(new))
    moves += [Move(path, old[path][0], pin, None) for path in gone for pin in old[path][1][:1]]
    return Pins(tuple(moves), tuple(stays), len(set(old) | set(new)))


def only_release(root: Path, package: Package) -> FrameworkRelease | None:
    """Return the release of a package that a folder pins; None if it pins none, or several."""
    exact = {
        pin.version: FrameworkRelease(pin.version, f"{path}:{pin.line} pins {pin.version}")
        for path, (_, pins) in _pinned(root, package).items()
        for pin in pins
        if pin.version is not None
    }
    return next(iter(exact.values())) if len(exact) == 1 else None


def _pinned(root: Path, package: Package = VLLM) -> dict[str, tuple[PinFile, tuple[Pin, ...]]]:
    pinned = {}
    for path in sorted(_files(root)):
        kind = kind_of(path)
        pins = (
            pins_in(kind, text_of(root / path), package) if kind is not None and not (root / path).is_symlink() else ()
        )
        if kind is not None and pins:
            pinned[path] = (kind, pins)
    return pinned


def _files(root: Path) -> Iterator[str]:
    """Yield the files of a folder, with forward slashes, without following linked folders.

    Virtual environments, packages and hidden entries are left out, apart from workflows.
    """
    for folder, folders, files in os.walk(root):
        if Path(folder) != root and "pyvenv.cfg" in files:
            folders.clear()
            continue
        folders[:] = [name for name in folders if _is_read(name) and name not in LEFT_OUT]
        yield from ((Path(folder) / name).relative_to(root).as_posix() for name in files if _is_read(name))


def _is_read(name: str) -> bool:
    return not name.startswith(".") or name in _HIDDEN_AND_READ


def _paired(before: Sequence[Pin], after: Sequence[Pin]) -> list[tuple[Pin | None, Pin | None]]:
    """Pair the pins that changed in order, each with what it was; the last one of a side with all that are left."""
    left = [pin for pin in _distinct(before) if _key(pin) not in {_key(pin) for pin in after}]
    come = [pin for pin in _distinct(after) if _key(pin) not in {_key(pin) for pin in before}]
    if not come or (before and not left):
        return []
    return [
        (left[min(index, len(left) - 1)] if left else None, come[min(index, len(come) - 1)])
        for index in range(max(len(left), len(come)))
    ]


def _key(pin: Pin) -> Version | str:
    return pin.version if pin.version is not None else pin.written


def _distinct(pins: Sequence[Pin]) -> list[Pin]:
    return list({_key(pin): pin for pin in reversed(pins)}.values())[::-1]


@dataclass(frozen=True)
class Migration:
    """The two releases between which a bump moves."""

    before: Version
    after: Version
    # Sentences: what else is pinned, and how a range was read.
    sentences: tuple[str, ...]


def migration_of(pins: Pins) -> Migration | None:
    """Choose the most telling move; None if no pin moves from one known release to another.

    A resolved pin comes before a required one, one release before a range, then what most files say.
    """
    moving = {move: move.versions for move in pins.moves if move.versions is not None}
    usable = {move: versions for move, versions in moving.items() if min(versions) >= known_versions()[0]}
    if not usable:
        return None
    files = Counter(usable.values())
    chosen = min(usable, key=lambda move: (not move.exact, move.kind.rank, -files[usable[move]], move.path))
    before, after = usable[chosen]
    return Migration(before, after, tuple(_remarks(pins, chosen, moving, (before, after))))


def _remarks(
    pins: Pins,
    chosen: Move,
    moving: dict[Move, tuple[Version, Version]],
    versions: tuple[Version, Version],
) -> list[str]:
    remarks = []
    if not chosen.exact:
        remarks.append(
            f"{chosen.path} gives ranges and no release: they are taken for {versions[0]} and {versions[1]}, "
            f"the ends that move"
        )
    others = [
        f"{move.path} moves {_written(move.before)} to {_written(move.after)}"
        for move, ends in moving.items()
        if ends != versions and not _allows(move, versions[1])
    ]
    remarks += _listing(others, f"the pins disagree, and {chosen.path} is believed: ")
    behind = [
        f"{move.path}:{move.after.line} says {move.after.version}"
        for move in pins.stays
        if move.after is not None and move.after.version not in (None, versions[1])
    ]
    remarks += _listing(list(dict.fromkeys(behind)), "pins that do not move with it: ")
    return remarks


def _written(pin: Pin | None) -> str:
    """Return the release of a pin, also of a wheel or an image; a range as it is written."""
    return "nothing" if pin is None else str(pin.version or pin.written)


def _allows(move: Move, version: Version) -> bool:
    """Return whether a range allows the release that the configs are inspected with."""
    bounds = span(move.after) if move.after is not None else None
    return bounds is not None and bounds.contains(version, prereleases=True)


def _listing(items: Sequence[str], before: str) -> list[str]:
    further = f"; and {len(items) - MOST_NAMED} more" if len(items) > MOST_NAMED else ""
    return [f"{before}{'; '.join(items[:MOST_NAMED])}{further}"] if items else []
