"""The release at which a figure moves."""

from collections.abc import Callable, Mapping

import pytest
from packaging.version import Version

from rlaudit.ablation.halving import Figure, bisect

RELEASES = [Version(f"0.{minor}.0") for minor in range(1, 13)]


def measuring(values: Mapping[Version, float | None]) -> tuple[Callable[[Version], Figure | None], list[Version]]:
    asked: list[Version] = []

    def measure(release: Version) -> Figure | None:
        asked.append(release)
        value = values[release]
        return None if value is None else Figure(value, value - 0.01, value + 0.01)

    return measure, asked


@pytest.mark.parametrize("moved", range(1, 12))
def test_the_neighbours_are_found_with_few_measurements(moved: int) -> None:
    measure, asked = measuring({one: 0.0 if place < moved else 0.2 for place, one in enumerate(RELEASES)})
    found = bisect(RELEASES, measure)
    assert found is not None and found.neighbours == (RELEASES[moved - 1], RELEASES[moved])
    assert len(asked) == len(set(asked)) <= 6 and found.unmeasured == found.elsewhere == ()


def test_ends_that_agree_have_no_neighbours_and_nothing_else_is_measured() -> None:
    measure, asked = measuring(dict.fromkeys(RELEASES, 0.1))
    found = bisect(RELEASES, measure)
    assert found is not None and found.neighbours is None
    assert asked == [RELEASES[0], RELEASES[-1]]


def test_releases_that_cannot_be_measured_are_left_between_the_neighbours() -> None:
    values: dict[Version, float | None] = {one: 0.0 if place < 6 else 0.2 for place, one in enumerate(RELEASES)}
    values |= dict.fromkeys(RELEASES[5:7])
    found = bisect(RELEASES, measuring(values)[0])
    assert found is not None and found.neighbours == (RELEASES[4], RELEASES[7])
    assert found.unmeasured == (RELEASES[5], RELEASES[6])


def test_an_end_that_cannot_be_measured_ends_it() -> None:
    assert bisect(RELEASES, measuring({**dict.fromkeys(RELEASES, 0.1), RELEASES[-1]: None})[0]) is None


def test_a_figure_apart_from_both_ends_is_named() -> None:
    values: dict[Version, float | None] = {one: 0.0 if place < 6 else 0.2 for place, one in enumerate(RELEASES)}
    values[RELEASES[5]] = 0.7
    found = bisect(RELEASES, measuring(values)[0])
    assert found is not None and found.elsewhere == (RELEASES[5],)
