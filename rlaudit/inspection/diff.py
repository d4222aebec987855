"""A unified diff that `patch -p1` and `git apply` take."""

import difflib
import re

from rlaudit.inspection.fix import FixedFile
from rlaudit.inspection.inspect import shown_path

_LINE = re.compile(r"[^\n]*\n|[^\n]+")
_MARK = "\ufeff"


def unified_diff(fixed: FixedFile) -> str:
    """What the fixes change; empty without changes. Line ends and a byte order mark are part of the lines."""
    mark = _MARK if fixed.original.encoding.mark else ""
    path = shown_path(fixed.original.path)
    lines = difflib.unified_diff(
        _LINE.findall(mark + fixed.original.source.text), _LINE.findall(mark + fixed.text), f"a/{path}", f"b/{path}"
    )
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)
