"""What `rlaudit ablate every-release` measured of a release: figures beside what its sources say.

Read from the report of such a run: one model, builds of a third party. In a checkout it is an example; a
wheel has it beside the catalogue.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from packaging.version import Version

from rlaudit.vllm.catalogue import DATA

SHIPPED = DATA / "measured.json"
EXAMPLE = Path(__file__).parents[2] / "examples" / "releases" / "report.json"


@dataclass(frozen=True)
class Measured:
    """One release."""

    on: str
    date: str
    # By the name of the property: `value`, `low` and `high`, or `word`.
    cells: Mapping[str, Mapping[str, Any]]
    # What people call each property.
    titles: Mapping[str, str]


def measured(version: Version | str) -> Measured | None:
    """Return the measured properties of a release; None if it was not measured."""
    data = _data()
    for release in data["measured"]:
        if Version(release["version"]) == Version(str(version)) and release["cells"]:
            return Measured(release["on"], release["date"], release["cells"], data["properties"])
    return None


@lru_cache(maxsize=1)
def _data() -> dict[str, Any]:
    report = SHIPPED if SHIPPED.exists() else EXAMPLE
    releases: dict[str, Any] = json.loads(report.read_text(encoding="utf-8"))["releases"]
    return releases
