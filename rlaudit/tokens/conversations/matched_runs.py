"""The runs of ids that two rows have in common, in the same order in both.

Windows of ids that each row has once are anchors, first long windows and then, between anchors, short ones. Every
anchor grows as far as both rows agree; what lies between two runs differs. This is patience diff (Bram Cohen).
"""

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from rlaudit.arrays import Integers
from rlaudit.tokens.hashed_ids import Hashes, prefix_sums, windows_between

# Ids: long ones are of one place, short ones find what a few other tokens interrupt.
WIDTHS = (8, 3)


@dataclass(frozen=True)
class Run:
    """So many equal ids, from a place in either row."""

    ours: int
    theirs: int
    length: int


def matched_runs(ours_N: Integers, theirs_M: Integers) -> list[Run]:
    """Return the runs of both rows, in their order; none overlaps another."""
    begin = equal_before(ours_N, theirs_M)
    first = [Run(0, 0, begin)] if begin else []
    return [*first, *_between(ours_N, theirs_M, Run(begin, begin, 0), Run(len(ours_N), len(theirs_M), 0), WIDTHS)]


def equal_before(ours_N: Integers, theirs_M: Integers) -> int:
    """Return how many ids are equal before the first that differs."""
    count = min(len(ours_N), len(theirs_M))
    differs = ours_N[:count] != theirs_M[:count]
    return int(differs.argmax()) if differs.any() else count


def _between(ours_N: Integers, theirs_M: Integers, before: Run, after: Run, widths: tuple[int, ...]) -> Iterator[Run]:
    """Yield the runs between two, by windows of the widest of `widths` first."""
    begin, begin_there = before.ours + before.length, before.theirs + before.length
    if not widths or begin >= after.ours or begin_there >= after.theirs:
        return
    width, *narrower = widths
    last = before
    ours, theirs = (
        windows_between(prefix_sums(ours_N[begin : after.ours]), width),
        windows_between(prefix_sums(theirs_M[begin_there : after.theirs]), width),
    )
    for ours_at, theirs_at in _in_one_order(*_once_in_both(ours, theirs)):
        place, place_there = begin + ours_at, begin_there + theirs_at
        free = min(place - last.ours - last.length, place_there - last.theirs - last.length)
        if free < 0:
            # An anchor grew over this one.
            continue
        back = equal_before(ours_N[place - free : place][::-1], theirs_M[place_there - free : place_there][::-1])
        length = equal_before(ours_N[place : after.ours], theirs_M[place_there : after.theirs])
        run = Run(place - back, place_there - back, back + length)
        yield from _between(ours_N, theirs_M, last, run, tuple(narrower))
        yield run
        last = run
    yield from _between(ours_N, theirs_M, last, after, tuple(narrower))


def _once_in_both(ours: Hashes, theirs: Hashes) -> tuple[Integers, Integers]:
    """Return where the values stand that both have exactly once, in the order of ours."""
    (values, first, counts), (others, first_there, counts_there) = (
        np.unique(hashes, return_index=True, return_counts=True) for hashes in (ours, theirs)
    )
    once, once_there = counts == 1, counts_there == 1
    _, at, at_there = np.intersect1d(values[once], others[once_there], assume_unique=True, return_indices=True)
    places, places_there = first[once][at], first_there[once_there][at_there]
    order = np.argsort(places)
    return places[order], places_there[order]


def _in_one_order(ours: Integers, theirs: Integers) -> list[tuple[int, int]]:
    """Return the longest series of pairs whose places rise in both rows. ours: rising."""
    ends: list[int] = []
    last: list[int] = []
    before = [-1] * len(ours)
    for pair, place in enumerate(theirs.tolist()):
        at = bisect_left(ends, place)
        ends[at : at + 1] = [place]
        last[at : at + 1] = [pair]
        before[pair] = last[at - 1] if at else -1
    series = []
    pair = last[-1] if last else -1
    while pair >= 0:
        series.append((int(ours[pair]), int(theirs[pair])))
        pair = before[pair]
    return series[::-1]
