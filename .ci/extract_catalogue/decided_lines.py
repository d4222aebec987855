"""Records anew at which lines catalogued releases decide their values, from the wheels on the index.

After a change to what is recorded of a decision, and not to what counts as its code: the fingerprints stay.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

from extract_catalogue.hooks import published
from extract_catalogue.release import resolvers
from extract_catalogue.table import read_table, write_release
from rlaudit.errors import NotFinished
from rlaudit.vllm.facts import RESOLVERS


def record_published_lines(versions: Sequence[str], into: Path) -> None:
    """Record the lines of these releases. Raises NotFinished if the wheel on the index has other code."""
    for version in versions:
        sources, by_release = read_table(into)
        known, found = by_release[version], resolvers(published(version))
        if _fingerprints(known[RESOLVERS]) != _fingerprints(found):
            raise NotFinished(f"the wheel of vLLM {version} decides otherwise than the catalogue has", "Add it again.")
        write_release(version, sources[version], {**known, RESOLVERS: found}, into)
        print(f"vLLM {version}: lines recorded")


def _fingerprints(found: Mapping[str, list[str]]) -> dict[str, str]:
    return {name: short for name, (short, *_) in found.items()}
