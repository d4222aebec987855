"""What `rlaudit ablate every-release` measured of a release: figures beside what its sources say.

data/measured.json is the part `releases` of such a run's report: one machine, one model, builds of a third party.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from packaging.version import Version

from rlaudit.vllm.catalogue import DATA

FILE = "measured.json"


@dataclass(frozen=True)
class Measured:
    """One release. cells: what it has, by the title of the property; `value`, `low` and `high`, or `word`."""

    on: str
    date: str
    cells: Mapping[str, Mapping[str, Any]]


def measured(version: Version | str) -> Measured | None:
    """Return what was measured of a release; None if nothing was."""
    data = _data()
    for one in data["measured"]:
        if Version(one["version"]) == Version(str(version)) and one["cells"]:
            titles = data["properties"]
            return Measured(data["on"], one["date"], {titles[name]: cell for name, cell in one["cells"].items()})
    return None


@lru_cache(maxsize=1)
def _data() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((DATA / FILE).read_text(encoding="utf-8"))
    return found
