"""The published schema, against the documents of real runs."""

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator, ValidationError

from rlaudit.cli.app import run
from rlaudit.report.schema import report_schema

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("**/report.json"))
SCHEMA = report_schema(closed=True)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.parent.name)
def test_a_real_report_follows_the_schema(path: Path) -> None:
    assert not list(Draft202012Validator(SCHEMA).iter_errors(json.loads(path.read_text(encoding="utf-8"))))


@pytest.mark.parametrize(
    ("place", "value"),
    [("exit_code", 4), ("schema", "rlaudit-report/2"), ("layers", [{"layer": "other"}]), ("more", 1)],
)
def test_what_is_not_of_the_schema_is_refused(place: str, value: Any) -> None:
    document = copy.deepcopy(json.loads(EXAMPLES[0].read_text(encoding="utf-8"))) | {place: value}
    with pytest.raises(ValidationError):
        Draft202012Validator(SCHEMA).validate(document)


def test_list_schema_prints_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["list", "schema"]) == 0
    assert json.loads(capsys.readouterr().out) == report_schema()


def test_the_published_schema_has_a_name_and_lets_later_fields_pass() -> None:
    document = json.loads(EXAMPLES[0].read_text(encoding="utf-8")) | {"added_later": 1}
    document["layers"][0]["added_later"] = 1
    Draft202012Validator(report_schema()).validate(document)
    assert report_schema()["$id"] == "urn:rlaudit:rlaudit-report:1"


def test_every_object_of_the_schema_says_what_it_is_and_allows_nothing_else() -> None:
    objects = {name: found for name, found in SCHEMA["$defs"].items() if found["type"] == "object"}
    assert len(objects) > 60
    # What has a key named "from" has no class to be documented in.
    assert all(found.get("description") or "from" in found["properties"] for found in objects.values())
    assert all(found["additionalProperties"] is False for found in objects.values())
