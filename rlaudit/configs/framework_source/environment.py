"""The folders in which an interpreter's packages lie, found without running it; editable installs included."""

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote, urlparse

from rlaudit.errors import UsageError
from rlaudit.parse_json import parse_json

_PACKAGES = (
    "lib/python*/site-packages",
    "lib64/python*/site-packages",
    "Lib/site-packages",
    "lib/python*/dist-packages",
)


def folders_of(python: str) -> tuple[str, ...]:
    """`bin/python` of an environment, or the environment itself. Raises UsageError where no packages are found."""
    path = Path(python)
    roots = [path] if path.is_dir() else [path.parent.parent, path.resolve().parent.parent] if path.is_file() else []
    folders = [folder for root in roots for pattern in _PACKAGES for folder in sorted(root.glob(pattern))]
    if not folders:
        raise UsageError(
            f"--python {python}: no environment with packages is there", "name bin/python of a virtual environment"
        )
    editable = (place for folder in folders for place in _editable(folder))
    return tuple(dict.fromkeys(str(folder) for folder in (*editable, *folders)))


def _editable(folder: Path) -> Iterator[Path]:
    """Yield the projects that an environment takes from where they lie (`pip install -e`)."""
    for record in sorted(folder.glob("*.dist-info/direct_url.json")):
        try:
            told = parse_json(record.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            continue
        if isinstance(told, dict) and (told.get("dir_info") or {}).get("editable"):
            yield Path(unquote(urlparse(str(told.get("url"))).path))
