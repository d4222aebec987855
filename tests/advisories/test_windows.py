"""A window is the releases between its two edges, and each edge was seen from both sides."""

import pytest
from packaging.version import Version

from rlaudit.rules.advisories import crossed, defects_of, known_advisories
from rlaudit.rules.advisories.advisory import VLLM, Advisory, Seen, Window
from rlaudit.vllm.catalogue import known_versions

EVERY_ADVISORY = pytest.mark.parametrize("advisory", known_advisories().values(), ids=known_advisories().keys())
OF_VLLM = pytest.mark.parametrize("advisory", defects_of(VLLM).values(), ids=defects_of(VLLM).keys())
ONE = Seen("0.26.0", "vllm/a.py:1", "it is there")


@OF_VLLM
def test_both_edges_of_a_window_are_seen_in_neighbouring_releases(advisory: Advisory) -> None:
    window, releases = advisory.window, known_versions()
    first, last = releases.index(window.first.version), releases.index(window.last.version)
    assert first <= last
    assert (window.before.version if window.before else None) == (releases[first - 1] if first else None)
    after = releases[last + 1] if last + 1 < len(releases) else None
    assert (window.fixed.version if window.fixed else None) == after


@EVERY_ADVISORY
def test_what_was_seen_is_a_line_of_a_file_and_says_what_stands_there(advisory: Advisory) -> None:
    window = advisory.window
    for seen in filter(None, (window.before, window.first, window.last, window.fixed)):
        path, _, line = seen.at.partition(":")
        assert path.startswith("vllm/") is (advisory.of == VLLM), seen
        assert not line or line.isdecimal(), seen
        assert seen.says, seen


@EVERY_ADVISORY
def test_the_edges_of_a_window_are_in_order(advisory: Advisory) -> None:
    window = advisory.window
    assert window.first.version <= window.last.version
    assert window.before is None or window.before.version < window.first.version
    assert window.fixed is None or window.last.version < window.fixed.version


@pytest.mark.parametrize(
    ("oldest", "end", "among"),
    [
        ("0.27.0", None, True),
        ("0.26.0", "0.26.5", False),
        ("0.26.0", None, None),
        ("0.27.0", "0.28.0", True),
        ("0.27.0", "0.29.0", None),
        ("0.28.0", "0.29.0", False),
    ],
)
def test_several_releases_have_a_defect_only_if_each_has_it(oldest: str, end: str | None, among: bool | None) -> None:
    window = Window(Seen("0.27.0", "a.py:1", "it is there"), ONE, fixed=Seen("0.28.0", "a.py:1", "it is gone"))
    is_open = Window(Seen("0.27.0", "a.py:1", "it is there"), ONE)
    found = (window if end is not None or among is False else is_open).among(
        Version(oldest), Version(end) if end else None
    )
    assert found is among


def test_a_move_enters_what_only_the_new_release_has_and_leaves_what_only_the_old_one_has() -> None:
    name = "rounded-processed-logprobs"
    assert name in crossed(Version("0.25.1"), Version("0.26.0")).entered
    assert name in crossed(Version("0.26.0"), Version("0.27.0")).left
    assert name in crossed(Version("0.26.0"), Version("0.26.0")).still_open


def test_a_move_over_a_whole_window_names_it_nowhere() -> None:
    found = crossed(Version("0.25.1"), Version("0.27.0"))
    assert all("rounded-processed-logprobs" not in names for names in (found.entered, found.left, found.still_open))


@OF_VLLM
def test_a_release_has_a_defect_exactly_between_its_edges(advisory: Advisory) -> None:
    window = advisory.window
    inside = [release for release in known_versions() if window.first.version <= release <= window.last.version]
    assert [release for release in known_versions() if window.holds(release)] == inside


def test_an_open_window_also_holds_for_a_release_that_is_not_known_yet() -> None:
    assert Window(ONE, ONE).holds(Version("99.0"))
    assert not Window(ONE, ONE, fixed=Seen("0.27.0", "vllm/a.py:1", "it is gone")).holds(Version("99.0"))
