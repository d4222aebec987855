"""What may stand in a dialect, checked with the line and the key of each fault: `schema.yaml`.

Dialects of this package are checked by the tests; one that a user names, each time it is read.
"""

from collections.abc import Iterator, Mapping
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml
from packaging.version import InvalidVersion, Version

from rlaudit.configs.dialects.clause import LOSSES
from rlaudit.configs.dialects.condition import condition
from rlaudit.configs.dialects.spec import LARGEST_BYTES, shipped
from rlaudit.errors import UsageError
from rlaudit.files.read_regular import read_regular
from rlaudit.settings.trainer_facts import fact_types
from rlaudit.text.did_you_mean import did_you_mean

if TYPE_CHECKING:
    from jsonschema import FormatChecker
    from jsonschema.exceptions import ValidationError

SCHEMA = Path(__file__).with_name("schema.yaml")
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
# Sections whose null entries are taken out of an extended dialect, as the sections themselves are.
_WITH_NULLS = ("release",)


def check(path: Path, *, has_hooks: bool) -> None:
    """Raise UsageError for the first fault of a dialect's file, with the number of the others.

    has_hooks: whether the dialect may have Python beside it.
    """
    problems = faults(path, has_hooks=has_hooks)
    if problems:
        others = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        raise UsageError(f"{problems[0]}{others}", "see `rlaudit explain dialects`")


def faults(path: Path, *, has_hooks: bool = True) -> list[str]:
    """Return every fault of a dialect's own file as `FILE:LINE: what`. A file that is no YAML has one, too."""
    from jsonschema import Draft202012Validator

    try:
        loader = _LOADER(read_regular(path, LARGEST_BYTES, "no dialect").decode("utf-8"))
        root = loader.get_single_node()
        dialect = None if root is None else loader.construct_document(root)
    except (OSError, ValueError, yaml.YAMLError, RecursionError) as error:
        return [f"{path}: {str(error).partition(chr(10))[0]}"]
    if root is None:
        return [f"{path}:1: it is empty"]
    validator = Draft202012Validator(_schema(), format_checker=_formats())
    try:
        errors = list(validator.iter_errors(_without_nulls(dialect)))
        errors.sort(key=lambda error: list(map(str, error.absolute_path)))
        problems = [fault for error in errors for fault in _faults(root, error)]
    except RecursionError:
        return [f"{path}:1: it holds itself"]
    if not has_hooks:
        problems += [(key, f"{key.value}: no Python is run for a dialect that is named") for key in _hooks(root)]
    return [f"{path}:{node.start_mark.line + 1}: {what}" for node, what in problems]


def _schema() -> dict[str, Any]:
    """Return the schema, with the values that each trainer fact can have."""
    schema: dict[str, Any] = _closed(yaml.load(SCHEMA.read_text(encoding="utf-8"), Loader=_LOADER))
    facts = {name: _clauses_giving(kind) for name, kind in fact_types().items()}
    schema["properties"]["trainer"]["allOf"] = [{"properties": facts}]
    return schema


def _closed(schema: Any) -> Any:
    """Return a schema in which a mapping with known properties has no others."""
    if isinstance(schema, list):
        return [_closed(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    parts = {name: _closed(part) for name, part in schema.items()}
    kind = {} if "$ref" in schema else {"type": "object"}
    return {**kind, "additionalProperties": False, **parts} if isinstance(schema.get("properties"), dict) else parts


def _clauses_giving(kind: Any) -> dict[str, Any]:
    """Return the schema of clauses that give values of one type."""
    types = {bool: "boolean", int: "integer", str: "string"}
    is_word = isinstance(kind, type) and issubclass(kind, StrEnum)
    value = {"enum": list(map(str, kind))} if is_word else {"type": types.get(kind, "array")}
    listed, mapped = {"items": value}, {"additionalProperties": value}
    clause = {"properties": {"value": value, "default": value, "map": mapped, "moved": mapped, "among": listed}}
    return {"if": {"type": "array"}, "then": {"items": clause}, "else": clause}


def _without_nulls(dialect: Any) -> Any:
    """Return a dialect without the nulls by which it takes entries out of an extended one."""
    if not isinstance(dialect, dict):
        return dialect
    kept = {name: entry for name, entry in dialect.items() if entry is not None}
    return {**kept, **{name: _without_nulls(kept[name]) for name in _WITH_NULLS if name in kept}}


def _hooks(root: yaml.Node) -> Iterator[yaml.Node]:
    """Yield every key that names a function."""
    for key, value in root.value if isinstance(root, yaml.MappingNode) else ():
        if key.value in {"hook", "hooks"}:
            yield key
        yield from _hooks(value)


def _formats() -> "FormatChecker":
    """Return the formats that JSON schema does not have."""
    from jsonschema import FormatChecker

    formats = FormatChecker(formats=())
    formats.checks("condition", (ValueError, RecursionError))(
        lambda word: not isinstance(word, str) or bool(condition(word))
    )
    formats.checks("release", InvalidVersion)(lambda word: Version(str(word)) is not None)
    formats.checks("loss")(lambda word: isinstance(word, str) and word in LOSSES)
    formats.checks("trainer fact")(lambda word: word in fact_types() or word == "*")
    formats.checks("dialect")(lambda word: word in shipped())
    return formats


def _faults(root: yaml.Node, error: "ValidationError") -> Iterator[tuple[yaml.Node, str]]:
    """Yield each fault behind an error of the schema, with the key or value at which it stands."""
    node, instance = _at(root, error), error.instance
    assert isinstance(error.schema, Mapping)
    if error.validator == "additionalProperties" and isinstance(instance, dict):
        properties = error.schema["properties"]
        for name in instance.keys() - properties.keys():
            listed = f"known: {', '.join(properties)}"
            yield _key(node, name), f"{name} is no key here; {did_you_mean(str(name), properties, listed)}"
        return
    at = _key(node, instance) if "propertyNames" in error.schema_path else node
    names = {"dialect": shipped(), "trainer fact": fact_types(), "loss": LOSSES}.get(error.schema.get("format", ""))
    known = f"; known: {', '.join(names)}" if error.validator == "format" and names else ""
    because = f": {error.cause}" if error.cause else ""
    number = f"; to YAML it is a number: write {node.value}.0" if isinstance(instance, float) else ""
    yield at, f"{error.message}{because}{known}{number}"


def _at(root: yaml.Node, error: "ValidationError") -> yaml.Node:
    """Return the node of a faulty value, or its closest parent: a merged key stands elsewhere."""
    node = root
    for step in error.absolute_path:
        if isinstance(node, yaml.SequenceNode) and isinstance(step, int):
            node = node.value[step]
        elif isinstance(node, yaml.MappingNode):
            node = next((value for key, value in reversed(node.value) if key.value == str(step)), node)
    return node


def _key(node: yaml.Node, name: Any) -> yaml.Node:
    """Return the key of a mapping."""
    keys = (key for key, _ in reversed(node.value)) if isinstance(node, yaml.MappingNode) else ()
    return next((key for key in keys if key.value == str(name)), node)
