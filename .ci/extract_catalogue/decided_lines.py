"""Records anew at which lines catalogued releases decide their values, from the wheels on the index.

After a change to what is recorded of a decision, and not to what counts as its code: the fingerprints stay.
"""

import json
from collections.abc import Sequence
from pathlib import Path

from extract_catalogue.hooks import published
from extract_catalogue.release import resolvers, write_one_section
from rlaudit.errors import NotFinished


def record_published_lines(versions: Sequence[str], into: Path) -> None:
    """Record the lines of these releases. Raises NotFinished if the wheel on the index has other code."""
    for version in versions:
        path = into / f"{version}.json"
        found = resolvers(published(version))
        known = json.loads(path.read_text(encoding="utf-8"))["resolvers"]
        if {name: short for name, (short, *_) in found.items()} != {name: short for name, (short, *_) in known.items()}:
            raise NotFinished(f"the wheel of vLLM {version} decides otherwise than the catalogue has", "Add it again.")
        write_one_section(path, "resolvers", found)
        print(f"vLLM {version}: lines recorded")
