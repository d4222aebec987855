"""Make the fixes of an inspection: in memory for a patch, or in the files, each replaced in one step.

A file is left alone if writing it would lose something, or change another file.
"""

import difflib
import os
import re
import stat
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from rlaudit.configs.recorded_source import RecordedSource
from rlaudit.files.write_atomically import write_atomically
from rlaudit.inspection.files import Collected, TextFile, reason
from rlaudit.inspection.fix import FixedFile, fix_file, key_of
from rlaudit.inspection.inspect import Inspection, judge_files, judged, shown_path
from rlaudit.inspection.inspect_file import InspectedFile
from rlaudit.rules.audit.finding import Finding

_ANYBODY_WRITES = stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH
_LINE = re.compile(r"[^\n]*\n|[^\n]+")
_MARK = "\ufeff"


@dataclass(frozen=True, eq=False)
class Fixes:
    """The fixes of an inspection."""

    files: tuple[FixedFile, ...]
    # The inspection of the files as they are now, None if none was written.
    inspection: Inspection | None
    # Sentences about files that could not be written.
    failed: tuple[str, ...]
    # Recordings, which are not edited.
    recorded: tuple[str, ...] = ()


def fix_files(inspection: Inspection, unsafe: bool, write: bool) -> Fixes:
    """Fix the findings that count. A suppressed one is the user's decision and stays."""
    request = inspection.request

    def counted(file: InspectedFile) -> Sequence[Finding]:
        return [verdict.finding for verdict in judge_files(request, [file]) if verdict.suppressed is None]

    recorded = tuple(file.file.path for file in inspection.files if isinstance(file.file.source, RecordedSource))
    written_in = [file for file in inspection.files if file.configs and file.file.path not in recorded]
    fixed = [fix_file(file, request.context, unsafe, counted) for file in written_in]
    if not write:
        return Fixes(tuple(fixed), None, (), recorded)
    written: dict[str, InspectedFile] = {}
    failed = []
    done = []
    for file in fixed:
        path = file.original.path
        if file.changed:
            try:
                hindered = obstacle(file.original, request.paths)
                if hindered is None:
                    write_atomically(Path(path), file.original.encoding.encode(file.text))
            except (OSError, UnicodeEncodeError) as error:
                hindered = reason(error)
            if hindered is not None:
                failed.append(f"{path} could not be written and is as it was: {hindered}")
                continue
            written[path] = file.inspected
        done.append(file)
    files = [written.get(file.file.path, file) for file in inspection.files]
    again = judged(request, Collected((), inspection.unread, inspection.others), files, inspection.hand_overs)
    as_before = replace(
        again, read=inspection.read, other_engines=inspection.other_engines, mentions=inspection.mentions
    )
    return Fixes(tuple(done), as_before, tuple(failed), recorded)


def proven(inspection: Inspection) -> Inspection:
    """Return the inspection with each fix called unsafe that `--fix` would refuse."""
    if not any(verdict.finding.fix is not None and verdict.finding.fix.safe for verdict in inspection.counted):
        return inspection
    tried = fix_files(inspection, unsafe=False, write=False).files
    refused = {(finding.place.path, key_of(finding)) for file in tried for finding in file.unproven}
    verdicts = [
        replace(verdict, finding=replace(finding, fix=replace(finding.fix, safe=False)))
        if (finding := verdict.finding).fix is not None and (finding.place.path, key_of(finding)) in refused
        else verdict
        for verdict in inspection.judged
    ]
    return replace(inspection, judged=tuple(verdicts))


def diff_of(fixes: Fixes) -> str:
    """Return all changes as one patch."""
    return "".join(unified_diff(file) for file in fixes.files)


def obstacle(file: TextFile, given: Sequence[str]) -> str | None:
    """Return why the file is not to be rewritten, None if it may be. given: the paths of the command line.

    Raises OSError if the file cannot be looked at.
    """
    path = Path(file.path)
    target = Path(os.path.realpath(path))
    if not file.named and not any(target.is_relative_to(os.path.realpath(folder)) for folder in given):
        return f"{target} is not in what was given: name it as well"
    status = target.stat()
    # The superuser may write in spite of the mode, which tells the owner's intention.
    if not status.st_mode & _ANYBODY_WRITES or not os.access(target, os.W_OK):
        return "it is read-only"
    if status.st_nlink > 1:
        return f"it has {status.st_nlink} names (hard links), which would no longer be one file"
    if target.read_bytes() != file.encoding.encode(file.source.text):
        return "it was changed after it was read; the same command reads it anew"
    return None


def unified_diff(fixed: FixedFile) -> str:
    """Return what the fixes change, as `patch -p1` and `git apply` take it; empty without changes.

    Line ends and a byte order mark are part of the lines.
    """
    mark = _MARK if fixed.original.encoding.mark else ""
    path = shown_path(fixed.original.path)
    lines = difflib.unified_diff(
        _LINE.findall(mark + fixed.original.source.text), _LINE.findall(mark + fixed.text), f"a/{path}", f"b/{path}"
    )
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)
