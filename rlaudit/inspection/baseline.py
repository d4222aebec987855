"""The findings that a project had when its baseline was written: known, and not counted again.

A finding is recognised by its rule, its file, the path of its setting and the value that it is about, never by a line
number: code above it may move. A baseline counts, so a second finding of the same kind is new.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rlaudit.audit.finding import Finding
from rlaudit.errors import UsageError
from rlaudit.inspection.suppression import Judged, Suppressed
from rlaudit.parse_json import parse_json
from rlaudit.unusable_place import unusable_place
from rlaudit.write_atomically import write_atomically

SCHEMA = "rlaudit-baseline/1"


@dataclass(frozen=True)
class Baseline:
    """How many findings of each fingerprint a project had."""

    path: Path
    known: Counter[str]


def fingerprint(finding: Finding, relative: Callable[[str], str]) -> str:
    """Return sixteen hexadecimal digits that identify the finding."""
    about = (finding.rule, relative(finding.place.path), finding.place.setting, finding.setting, finding.value)
    return hashlib.sha256("\0".join(about).encode("utf-8", "surrogatepass")).hexdigest()[:16]


def relative_to(folder: Path) -> Callable[[str], str]:
    """Return a function from paths to the names of files in a baseline in `folder`, the same in every checkout."""
    root = folder.absolute()

    def relative(path: str) -> str:
        try:
            return Path(path).absolute().relative_to(root).as_posix()
        except ValueError:
            return Path(path).as_posix()

    return relative


def load_baseline(path: Path) -> Baseline:
    """Read a baseline. Raises UsageError if the file is none."""
    try:
        data: Any = parse_json(path.read_text(encoding="utf-8"))
        if data["schema"] != SCHEMA:
            raise ValueError(f"its schema is {data['schema']!r}, not {SCHEMA}")
        counts = Counter({str(entry["fingerprint"]): int(entry["count"]) for entry in data["findings"]})
    except OSError as error:
        raise UsageError(
            f"the baseline {path} cannot be read: {error.strerror}", "make one with --write-baseline"
        ) from None
    except (ValueError, KeyError, TypeError) as error:
        raise UsageError(f"{path} is not a baseline: {error}", "make one with --write-baseline") from None
    return Baseline(path, counts)


def apply_baseline(baseline: Baseline, judged: Sequence[Judged]) -> tuple[tuple[Judged, ...], int]:
    """Return the findings with the baseline's marked, and how many of the baseline's no longer occur."""
    left = Counter(baseline.known)
    relative = relative_to(baseline.path.parent)
    marked = []
    for verdict in judged:
        key = fingerprint(verdict.finding, relative)
        is_known = verdict.suppressed is None and left[key] > 0
        left[key] -= is_known
        suppressed = Suppressed("baseline", f"known in {baseline.path}") if is_known else verdict.suppressed
        marked.append(replace(verdict, suppressed=suppressed))
    return tuple(marked), sum(left.values())


def write_baseline(path: Path, judged: Sequence[Judged]) -> int:
    """Write every finding that counts into a baseline; return their number."""
    relative = relative_to(path.parent)
    entries: dict[str, dict[str, Any]] = {}
    counted = [verdict.finding for verdict in judged if verdict.suppressed is None]
    for finding in counted:
        key = fingerprint(finding, relative)
        entry = entries.setdefault(
            key,
            {
                "fingerprint": key,
                "rule": finding.rule,
                "path": relative(finding.place.path),
                "setting": finding.place.setting or finding.setting,
                "value": finding.value,
                "count": 0,
            },
        )
        entry["count"] += 1
    ordered = sorted(
        entries.values(), key=lambda entry: (entry["path"], entry["rule"], entry["setting"], entry["fingerprint"])
    )
    text = json.dumps({"schema": SCHEMA, "findings": ordered}, indent=1) + "\n"
    try:
        write_atomically(path, text.encode())
    except OSError as error:
        raise (unusable_place(error, "the baseline cannot be written:") or error) from None
    return len(counted)
