"""What has moved of what the recorder hooks, from one release to the next."""

from collections.abc import Iterator

from packaging.version import Version

from rlaudit.recording.hook_points import ASYNC, PARTS, HookPoints


def changes(release: Version, points: HookPoints) -> Iterator[str]:
    """Yield what is other in a release than in the one before: lost parts, moved methods, parameters, attributes."""
    at = points.releases.index(release)
    if at == 0:
        return
    before = points.releases[at - 1]
    for part in PARTS:
        if points.found(part, before) and not points.found(part, release):
            yield f"not recorded any more: {part}"
    for target in dict.fromkeys(target for targets in PARTS.values() for target in targets):
        was, now = (points.hooks.names(target, one) for one in (before, release))
        if was != now:
            yield f"{target}: {_called(was)} in {before}, {_called(now)} in {release}"
    for name in points.objects.spans:
        was, now = (points.objects.names(name, one) for one in (before, release))
        for verb, attributes in (("lost", was - now), ("has got", now - was)):
            if attributes:
                yield f"{name} {verb} {', '.join(sorted(attributes))}"


def _called(names: frozenset[str]) -> str:
    if not names:
        return "missing"
    text = ", ".join(next(iter(names - {ASYNC})).split(","))
    return f"{'async ' if ASYNC in names else ''}({text})"
