"""What an ablation over many releases measured of each: figures beside what its sources say.

Read from the reports of two such runs, with one model: on processors with the builds of a third party, and on one GPU.
In a checkout they are examples; a wheel has them beside the catalogue.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from packaging.version import Version

from rlaudit.vllm.catalogue import DATA

EXAMPLES = Path(__file__).parents[2] / "examples"
REPORTS = {
    "cpu": (DATA / "measured-cpu.json", EXAMPLES / "releases" / "report.json"),
    "cuda": (DATA / "measured-cuda.json", EXAMPLES / "gpu" / "releases" / "report.json"),
}


@dataclass(frozen=True)
class Measured:
    """One release, on one machine."""

    # The kind of machine and its name, as "cuda, NVIDIA H200".
    on: str
    date: str
    # By the name of the property: `value`, `low` and `high`, or `word`.
    cells: Mapping[str, Mapping[str, Any]]
    # What people call each property.
    titles: Mapping[str, str]

    @property
    def machine(self) -> str:
        """The name of the machine."""
        return self.on.partition(", ")[2]


def measured(version: Version | str, platform: str) -> Measured | None:
    """Return the measured properties of a release on "cpu" or "cuda"; None if it was not measured there."""
    if platform not in REPORTS:
        return None
    data = _data(platform)
    for release in data["measured"]:
        if Version(release["version"]) == Version(str(version)) and release["cells"]:
            return Measured(release["on"], release["date"], release["cells"], data["properties"])
    return None


@lru_cache(maxsize=len(REPORTS))
def _data(platform: str) -> dict[str, Any]:
    shipped, example = REPORTS[platform]
    report = shipped if shipped.exists() else example
    releases: dict[str, Any] = json.loads(report.read_text(encoding="utf-8"))["releases"]
    return releases
