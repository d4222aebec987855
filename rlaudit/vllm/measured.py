"""What ablations over many releases measured of each: figures beside what its sources say.

Read from the reports of such runs, with one model: on processors with the builds of a third party, and on one GPU. In a
checkout they are examples; a wheel has them beside the catalogue.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from packaging.version import Version

from rlaudit.vllm.facts import DATA

EXAMPLES = Path(__file__).parents[2] / "examples"
# Folders of examples, by the machine; the first has what every other finding is held against.
RUNS = {"cpu": ("releases", "releases/sampling-parameters", "releases/updates"), "cuda": ("gpu/releases",)}


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
    """Return the properties of a release on "cpu" or "cuda"; None if it was not measured there."""
    return next(_measured_in(version, RUNS.get(platform, ())[:1]), None)


def measured_by_all(version: Version | str, platform: str) -> Iterator[Measured]:
    """Yield what each run on "cpu" or "cuda" measured of a release."""
    yield from _measured_in(version, RUNS[platform])


def _measured_in(version: Version | str, runs: tuple[str, ...]) -> Iterator[Measured]:
    for run in runs:
        data = _data(run)
        for release in data["measured"]:
            if Version(release["version"]) == Version(str(version)) and release["cells"]:
                yield Measured(release["on"], release["date"], release["cells"], data["properties"])


@cache
def _data(run: str) -> dict[str, Any]:
    shipped = DATA / f"measured-{run.replace('/', '-')}.json"
    report = shipped if shipped.exists() else EXAMPLES / run / "report.json"
    releases: dict[str, Any] = json.loads(report.read_text(encoding="utf-8"))["releases"]
    return releases
