"""Runs with one file per section: each file is read together with the others, and the run is reported once."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from rlaudit.inspection.inspect_file import InspectedConfig, InspectedFile


def reported_once(files: Sequence[InspectedFile]) -> list[InspectedFile]:
    """Leave out a config that stands in another file which is inspected too and has it itself."""
    own = {_home(one) for file in files for one in file.configs if _is_in(one, file)}
    kept = []
    for file in files:
        configs = tuple(one for one in file.configs if _is_in(one, file) or _home(one) not in own)
        kept.append(file if len(configs) == len(file.configs) else replace(file, configs=configs))
    return kept


def _home(one: InspectedConfig) -> tuple[str, Path, int]:
    """Return the dialect of a config, and the file and the line in which it stands."""
    config = one.audit.config
    place = config.place
    return one.framework.name, Path(place.path if place else config.path).absolute(), place.line if place else 0


def _is_in(one: InspectedConfig, file: InspectedFile) -> bool:
    return _home(one)[1] == Path(file.file.path).absolute()
