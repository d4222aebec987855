"""What a self-test in real engines leaves out, by name and with the reason."""

from collections.abc import Sequence

from rlaudit.causes.stale_prefix_kv import NAME as STALE_PREFIX_KV
from rlaudit.selftest.engines.engine_plants import STANDARD, engine_of, engine_plants
from rlaudit.selftest.engines.update_plants import CACHING_OF, update_plants


def not_planted(releases: Sequence[str] = STANDARD) -> list[str]:
    """One line for each reason: engines that nobody gave, and a cache that is left off."""
    kinds = {engine_of(release) for release in releases}
    lines = []
    for standard in STANDARD:
        kind = engine_of(standard)
        if kind not in kinds:
            names = [plant.name for plant in engine_plants([standard])]
            names += [plant.name for plant in update_plants([standard])]
            lines.append(f"not planted here, as no interpreter holds an engine {kind}: {', '.join(names)}")
    uncached = [release for release in releases if CACHING_OF[engine_of(release)] == "off"]
    lines += [
        f"not planted here: {STALE_PREFIX_KV} on {release}: V0's CPU build cannot run with prefix caching, so it is off"
        for release in uncached
    ]
    return lines
