"""Reports of other releases lack keys: each that the schema lets be missing, taken away everywhere it stands."""

import copy
import json
from collections.abc import Iterator
from typing import Any

import documents

from rlaudit.report.rendering.formats.html import FORMAT as HTML
from rlaudit.report.rendering.formats.markdown import FORMAT as MARKDOWN
from rlaudit.report.rendering.formats.text import FORMAT as TEXT
from rlaudit.report.rendering.outline import PARTS_WITH_OUTLINES
from rlaudit.report.report import ABOUT
from rlaudit.report.schema import report_schema

SCHEMA = report_schema(closed=True)
EXAMPLES = sorted((documents.ROOT / "examples").glob("*/*/report.json"))
MADE = (documents.comparison, documents.curves)
LEAST_KEYS = 60


def resolved(schema: Any) -> list[Any]:
    """The objects and arrays that a value of this schema may be."""
    if "$ref" in schema:
        return resolved(SCHEMA["$defs"][schema["$ref"].rpartition("/")[2]])
    return [one for option in schema["anyOf"] for one in resolved(option)] if "anyOf" in schema else [schema]


def may_be_missing(value: Any, schema: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Paths of keys, places in lists left out."""
    for kind in resolved(schema):
        if isinstance(value, dict) and kind.get("properties"):
            for key in set(value) & set(kind["properties"]):
                if key not in (*kind.get("required", ()), *ABOUT.get(value.get("command", ""), ())):
                    yield (*path, key)
                yield from may_be_missing(value[key], kind["properties"][key], (*path, key))
        elif isinstance(value, list) and "items" in kind:
            for one in value:
                yield from may_be_missing(one, kind["items"], path)


def without(value: Any, path: tuple[str, ...]) -> None:
    """Take the key away wherever the path leads to it."""
    if isinstance(value, list):
        for one in value:
            without(one, path)
    elif isinstance(value, dict) and len(path) == 1:
        value.pop(path[0], None)
    elif isinstance(value, dict) and path[0] in value:
        without(value[path[0]], path[1:])


def smallest_with_each_key() -> dict[tuple[str, ...], Any]:
    """The smallest report with a key, for each kind of report and each key in it."""
    texts = [path.read_text(encoding="utf-8") for path in EXAMPLES] + [json.dumps(made()) for made in MADE]
    smallest: dict[tuple[str, ...], Any] = {}
    for text in sorted(texts, key=len):
        report = json.loads(text)
        kind = next((part for part in PARTS_WITH_OUTLINES if part in report), report["command"])
        for path in may_be_missing(report, SCHEMA):
            smallest.setdefault((kind, *path), report)
    return smallest


def test_a_report_is_rendered_without_any_key_that_may_be_missing() -> None:
    smallest = smallest_with_each_key()
    assert len(smallest) > LEAST_KEYS
    for (_, *path), report in smallest.items():
        less = copy.deepcopy(report)
        without(less, tuple(path))
        for rendered in (TEXT, MARKDOWN, HTML):
            try:
                assert rendered.text(documents.records(less), 100)
            except Exception as error:
                raise AssertionError(f"without {'.'.join(path)}, as {rendered.name}") from error
