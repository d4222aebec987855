"""SARIF, against the official schema of 2.1.0.

sarif-schema-2.1.0.json is OASIS's, as published with errata 01; tools may hold copies of it
(oasis-tcs/sarif-spec, issue 583).
"""

import json
from pathlib import Path
from typing import Any

import documents
import pytest
from jsonschema import Draft4Validator
from toy_dialect import PLAIN, Desk

from rlaudit.cli.app import run
from rlaudit.inspection.documentation import rule_documentation
from rlaudit.report.rendering.formats import sarif

SCHEMA = json.loads(Path(__file__).with_name("sarif-schema-2.1.0.json").read_text(encoding="utf-8"))


def log_of(desk: Desk, *words: str) -> dict[str, Any]:
    desk.inspect(*words, "--output", "sarif")
    log: dict[str, Any] = json.loads(desk.out)
    Draft4Validator(SCHEMA).validate(log)
    return log


def test_the_schema_is_the_official_one_and_refuses_what_is_not_sarif() -> None:
    assert SCHEMA["id"].startswith("https://docs.oasis-open.org/sarif/sarif/v2.1.0/")
    assert not Draft4Validator(SCHEMA).is_valid({"version": "2.1.0", "runs": [{"tool": {}}]})


def test_every_result_names_its_rule_its_place_and_its_fix(desk: Desk) -> None:
    desk.file("a b/ü.yaml")
    results = log_of(desk, "a b/ü.yaml")["runs"][0]["results"]
    assert [(one["ruleId"], one["level"]) for one in results] == [("toy-raw", "error"), ("toy-warm", "note")]
    place = results[1]["locations"][0]["physicalLocation"]
    assert place["artifactLocation"] == {"uri": "a%20b/%C3%BC.yaml", "uriBaseId": "%SRCROOT%"}
    assert place["region"] == {"startLine": 5, "startColumn": 18}
    replaced = results[0]["fixes"][0]["artifactChanges"][0]["replacements"][0]
    assert replaced["deletedRegion"] == {"startLine": 3, "startColumn": 5, "endLine": 3, "endColumn": 5}
    assert replaced["insertedContent"]["text"].startswith("logprobs_mode: processed_logprobs")


def test_fingerprints_survive_moved_lines(desk: Desk) -> None:
    def prints() -> list[str]:
        return [one["partialFingerprints"]["rlaudit/v1"] for one in log_of(desk, "x.yaml")["runs"][0]["results"]]

    desk.file("x.yaml")
    before = prints()
    desk.file("x.yaml", "\n\n# moved\n" + PLAIN)
    assert prints() == before
    assert len(set(before)) == 2


def test_suppressed_results_stay_and_say_why(desk: Desk) -> None:
    desk.file("x.yaml", "# rlaudit: ignore-file[toy-raw] known to us\n" + PLAIN)
    desk.file("rlaudit.toml", '[[ignore]]\nrule = "toy-warm"\nreason = "ours"\n')
    results = log_of(desk, "x.yaml")["runs"][0]["results"]
    assert [one["suppressions"] for one in results] == [
        [{"kind": "inSource", "justification": "known to us"}],
        [{"kind": "external", "justification": "ours"}],
    ]


def test_an_unfinished_audit_is_no_success(desk: Desk) -> None:
    desk.file("x.yaml", "a: [")
    invocation = log_of(desk, "x.yaml", "gone.yaml")["runs"][0]["invocations"][0]
    assert invocation["executionSuccessful"] is False
    said = [one["message"]["text"] for one in invocation["toolExecutionNotifications"]]
    assert said[0] == "no such file or directory"
    assert said[1].endswith("in line 2")


@pytest.mark.parametrize(("path", "uri"), [("/a b/c", "file:///a%20b/c"), ("a:b", "a%3Ab"), ("a#b?c", "a%23b%3Fc")])
def test_paths_are_escaped(path: str, uri: str, desk: Desk) -> None:
    desk.file("x.yaml")
    desk.inspect("x.yaml", "--output", "json")
    document = json.loads(desk.out)
    for finding in document["findings"]:
        finding["location"]["path"] = path
    results = json.loads(sarif.render(documents.records(document), None))["runs"][0]["results"]
    places = [one["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for one in results]
    assert set(places) == {uri}


def test_real_rules_carry_their_documentation(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "serve.sh").write_text("vllm serve m --logprobs-mode raw_logprobs\n")
    run(["inspect", str(tmp_path), "--from", "0.8.5", "--to", "0.18.1", "--output", "sarif"])
    rules = json.loads(capsys.readouterr().out)["runs"][0]["tool"]["driver"]["rules"]
    (rule,) = [one for one in rules if one["id"] == "raw-logprobs"]
    text = rule_documentation("raw-logprobs")
    assert text is not None
    assert (rule["shortDescription"]["text"], rule["help"]["text"]) == (text.splitlines()[0], text)


def test_an_ablation_is_valid_sarif_too(ablation: dict[str, Any]) -> None:
    log = json.loads(sarif.render(documents.records(ablation), None))
    Draft4Validator(SCHEMA).validate(log)
    assert "semantic-layer" in {one["ruleId"] for one in log["runs"][0]["results"]}
