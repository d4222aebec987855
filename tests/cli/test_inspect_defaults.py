"""What moves between two releases, told without a config."""

import json

import pytest
from jsonschema import Draft202012Validator
from toy_dialect import V0, V1, Desk

from rlaudit.report.schema import report_schema

SCHEMA = report_schema()


def test_it_names_what_moves_and_where_vllm_decides_it(desk: Desk) -> None:
    assert desk.inspect("--defaults") == 0
    assert f"vLLM {V0} -> {V1}" in desk.out
    assert "async_scheduling: " in desk.out
    assert "vllm/config/" in desk.out


def test_the_json_follows_the_schema_and_says_what_a_release_lacks(desk: Desk) -> None:
    assert desk.inspect("--defaults", "--output", "json") == 0
    document = json.loads(desk.out)
    Draft202012Validator(SCHEMA).validate(document)
    rows = {row["name"]: row for row in document["settings"] if row["group"] == "engine"}
    assert len(rows) == sum(row["group"] == "engine" for row in document["settings"])
    assert rows["async_scheduling"]["effective_from"] == {"absent": f"vLLM {V0} has no async_scheduling"}
    assert rows["async_scheduling"]["effective_to"] is True
    assert rows["logprobs_mode"]["effective_from"] == {"absent": f"vLLM {V0} has no logprobs_mode"}
    assert {layer["verdict"] for layer in document["layers"]} == {"not tested"}


@pytest.mark.parametrize("report_format", ["markdown", "sarif", "junit", "github", "concise"])
def test_every_format_can_say_it(desk: Desk, report_format: str) -> None:
    assert desk.inspect("--defaults", "--output", f"{report_format}:out") == 0
    assert (desk.folder / "out").exists()
    if report_format == "markdown":
        assert "| `async_scheduling` |" in (desk.folder / "out").read_text()


def test_text_goes_to_a_file_as_well(desk: Desk) -> None:
    assert desk.inspect("--defaults", "--output", "text:deep/out.txt") == 0
    assert "async_scheduling" in (desk.folder / "deep" / "out.txt").read_text()


def test_one_version_cannot_move(desk: Desk) -> None:
    assert desk.inspect("--defaults", "--to", V1, migrate=False) == 2
    assert "--defaults compares two versions" in desk.err


def test_the_projects_own_version_is_the_other_side(desk: Desk) -> None:
    desk.file("uv.lock", f'name = "vllm"\nversion = "{V0}"\n')
    assert desk.inspect("--defaults", "--to", V0, migrate=False) == 2
    assert desk.inspect("--defaults", "--to", V1, migrate=False) == 0
    assert f"--from {V0} from uv.lock:2" in desk.err
