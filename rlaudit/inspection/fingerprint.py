"""How code scanning recognises a finding in another commit: by its rule, its file, its setting and the value, never by
a line number, as code above it may move.
"""

import hashlib
from collections.abc import Callable
from pathlib import Path

from rlaudit.rules.audit.finding import Finding


def fingerprint(finding: Finding, relative: Callable[[str], str]) -> str:
    """Return sixteen hexadecimal digits that identify the finding."""
    about = (finding.rule, relative(finding.place.path), finding.place.setting, finding.setting, finding.value)
    return hashlib.sha256("\0".join(about).encode("utf-8", "surrogatepass")).hexdigest()[:16]


def relative_to(folder: Path) -> Callable[[str], str]:
    """Return a function from paths to names below `folder`, the same in every checkout."""
    root = folder.absolute()

    def relative(path: str) -> str:
        try:
            return Path(path).absolute().relative_to(root).as_posix()
        except ValueError:
            return Path(path).as_posix()

    return relative
