"""The settings of a repository: `rlaudit.toml`, or `[tool.rlaudit]` in pyproject.toml.

The nearest one is used, from the working directory up to the repository's root. The command line wins over it.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import date
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from rlaudit.errors import UsageError
from rlaudit.files.work_tree import is_inside, trees_of
from rlaudit.inspection.suppression import Suppression, settings_suppression
from rlaudit.settings.place import Place
from rlaudit.severity import FailFor
from rlaudit.text.did_you_mean import did_you_mean

KEYS: Mapping[str, tuple[type, str]] = {
    "from": (str, "vLLM that runs today"),
    "to": (str, "vLLM to move to"),
    "platform": (str, "cuda, cpu, npu, rocm, or a device such as a100"),
    "select": (list, "rules or layers to run; all when left out"),
    "fail-on": (str, "error, warning, note or never"),
    "fail-for": (str, "move or state"),
    "exclude": (list, "patterns of paths, relative to this file, that are not read"),
    "ignore": (list, "tables with rule, reason and, if wanted, path and until"),
}
# Keys that a release removed -> what replaces each.
REMOVED_KEYS: Mapping[str, str] = {
    "baseline": 'a table silences findings: [[ignore]] with rule = "...", path = "..." and reason = "..."',
}
IGNORE_KEYS = ("rule", "path", "reason", "until")
FAIL_ON = ("error", "warning", "note", "never")
FAIL_FOR = tuple(map(str, FailFor))
_IGNORE_TABLE = re.compile(r"^[ \t]*\[\[[ \t]*(?:tool\.rlaudit\.)?ignore[ \t]*\]\]", re.M)


@dataclass(frozen=True)
class Settings:
    """Checked settings."""

    # None without a file.
    path: Path | None = None
    values: Mapping[str, Any] = field(default_factory=dict)
    suppressions: tuple[Suppression, ...] = ()

    def get(self, name: str) -> Any:
        """Return a value, None if it is not set."""
        return self.values.get(name)

    def excludes(self, path: str) -> bool:
        """Return whether a pattern of `exclude` names this file or a folder above it."""
        root = self.path.parent if self.path is not None else None
        return root is not None and any(_matcher(root, pattern)(path) for pattern in self.get("exclude") or ())


def find_settings(start: Path) -> Settings:
    """Return the settings that hold in a folder. Raises UsageError for a file with a fault."""
    for folder in (start.absolute(), *start.absolute().parents):
        for name in ("rlaudit.toml", "pyproject.toml"):
            path = folder / name
            if path.is_file():
                if not is_inside(path, trees_of(str(folder))):
                    if name == "pyproject.toml":
                        continue
                    raise UsageError(f"{path} is a link that leaves the work tree: no settings are read through it")
                text, table = _table(path)
                if table is not None:
                    return _checked(path, text, table)
        if (folder / ".git").exists():
            break
    return Settings()


def _table(path: Path) -> tuple[str, dict[str, Any] | None]:
    try:
        text = path.read_text(encoding="utf-8-sig")
        if path.name == "pyproject.toml" and "tool.rlaudit" not in text:
            return text, None
        import tomllib

        data = tomllib.loads(text)
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from None
    except ValueError as error:  # TOMLDecodeError and UnicodeDecodeError are both
        raise UsageError(f"{path} is not TOML: {error}") from None
    return text, data if path.name == "rlaudit.toml" else data.get("tool", {}).get("rlaudit")


def _checked(path: Path, text: str, table: Mapping[str, Any]) -> Settings:
    for key, value in table.items():
        if key in REMOVED_KEYS:
            raise UsageError(f"{path}: the key {key} was removed", REMOVED_KEYS[key])
        if key not in KEYS:
            listed = f"there are: {', '.join(KEYS)}"
            raise UsageError(f"{path}: unknown key {key}; {did_you_mean(key, KEYS, listed)}")
        kind = KEYS[key][0]
        if not isinstance(value, kind):
            raise UsageError(f"{path}: {key} must be a {'list' if kind is list else 'string'}: {KEYS[key][1]}")
    for key in ("select", "exclude"):
        if not all(isinstance(item, str) for item in table.get(key, [])):
            raise UsageError(f"{path}: {key} must be a list of strings: {KEYS[key][1]}")
    if table.get("fail-on", "error") not in FAIL_ON:
        raise UsageError(f"{path}: fail-on is {table['fail-on']!r}; it is one of {', '.join(FAIL_ON)}")
    if table.get("fail-for", "state") not in FAIL_FOR:
        raise UsageError(f"{path}: fail-for is {table['fail-for']!r}; it is one of {', '.join(FAIL_FOR)}")
    lines = [text.count("\n", 0, match.start()) + 1 for match in _IGNORE_TABLE.finditer(text)]
    suppressions = []
    for number, entry in enumerate(table.get("ignore", [])):
        _check_ignore(path, number, entry)
        place = Place(str(path), lines[number] if number < len(lines) else 1, 1, f"ignore.{number}")
        suppressions.append(settings_suppression(entry, place, _matcher(path.parent, entry.get("path", "*"))))
    return Settings(path, dict(table), tuple(suppressions))


def _check_ignore(path: Path, number: int, entry: Any) -> None:
    if not isinstance(entry, dict):
        raise UsageError(
            f"{path}: ignore is a list of tables", 'write [[ignore]], then rule = "..." and reason = "..."'
        )
    for key, value in entry.items():
        if key not in IGNORE_KEYS:
            listed = f"there are: {', '.join(IGNORE_KEYS)}"
            raise UsageError(f"{path}: unknown key ignore.{number}.{key}; {did_you_mean(key, IGNORE_KEYS, listed)}")
        if key == "until" and (not isinstance(value, date) or type(value) is not date):
            raise UsageError(f"{path}: ignore.{number}.until must be a day without quotes, such as 2026-12-31")
        names = isinstance(value, list) and bool(value) and all(isinstance(rule, str) for rule in value)
        if key != "until" and not isinstance(value, str) and not (key == "rule" and names):
            raise UsageError(f"{path}: ignore.{number}.{key} must be a string")
    if "rule" not in entry:
        raise UsageError(f"{path}: ignore.{number} names no rule")


def _matcher(root: Path, pattern: str) -> Callable[[str], bool]:
    """Return a predicate: whether a path, or a folder above it, fits a pattern that is relative to `root`."""

    def fits(path: str) -> bool:
        try:
            relative = Path(path).absolute().relative_to(root)
        except ValueError:
            return fnmatch(path, pattern)
        parts = (relative, *relative.parents)
        return any(fnmatch(part.as_posix(), pattern.removesuffix("/")) for part in parts if part.name)

    return fits
