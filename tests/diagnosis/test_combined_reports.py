import json
from dataclasses import replace
from types import SimpleNamespace

import pytest

from rlaudit.curves.order import Order, Precedence
from rlaudit.diagnosis.judgement import worst_layers
from rlaudit.errors import NotFinished, UsageError
from rlaudit.layers import Judgement, Layer, Verdict
from rlaudit.report.combined import FinishedDocument, combined, read_document
from rlaudit.report.new_report import new_report
from rlaudit.severity import Threshold

LAYERS = ("semantic", "inference path", "objective")


def layer(name, verdict, cause=None, because="seen"):
    return Judgement(
        layer=Layer(name),
        verdict=Verdict(verdict),
        cause=cause,
        causes=[cause] if cause else [],
        because=because,
        evidence=[f"evidence of {name}"],
        falsifier="another figure" if verdict == "mismatch" else "",
        next=f"next for {name}",
    )


def with_causes(found, place, causes):
    """Give a layer of a report other causes than the one it names."""
    layers = found.document["layers"]
    layers[place] = replace(layers[place], causes=causes)
    return found


def report(command, *verdicts, causes=(None, None, None), path=None, exit_code=1, versions=(None, None), **more):
    layers = [layer(name, verdict, cause) for name, verdict, cause in zip(LAYERS, verdicts, causes, strict=False)]
    document = {
        "schema": "rlaudit-report/1",
        "command": command,
        "exit_code": exit_code,
        "versions": {"from": versions[0], "to": versions[1]},
        "findings": [],
        "effects": [],
        "layers": layers,
        "not_seen": [f"unseen by {command}"],
        **more,
    }
    return FinishedDocument(path or f"{command}.json", document)


def verdicts(document):
    return [judged.verdict for judged in document["layers"]]


def test_layers_after_one_that_does_not_match_are_not_judged():
    found = combined(
        [report("compare", "mismatch", "mismatch", "match", causes=("raw-logprobs", "x", None))], Threshold()
    )
    assert verdicts(found) == ["mismatch", "not tested", "not tested"]
    assert found["layers"][2].next == found["layers"][0].next
    assert found["exit_code"] == 1


def test_a_measurement_weighs_more_than_settings():
    inspected = report("inspect", "mismatch", "not tested", "not tested", causes=("raw-logprobs rule", None, None))
    found = combined([inspected, report("ablate", "match", "match", "match", exit_code=0)], Threshold())
    assert verdicts(found) == ["match", "match", "match"]
    assert any("[inspect inspect.json] mismatch (raw-logprobs rule)" in line for line in found["layers"][0].evidence)


def test_settings_alone_show_only_what_is_certain_and_it_is_said_that_nothing_was_measured():
    found = combined(
        [report("inspect", "mismatch", "not tested", "not tested", causes=("rule", None, None))], Threshold()
    )
    assert verdicts(found) == ["mismatch", "not tested", "not tested"]
    assert any("nothing was measured" in line for line in found["not_seen"])


def test_a_measured_bias_without_a_cause_has_the_one_that_settings_show():
    read = report("inspect", "mismatch", "not tested", "not tested", causes=("raw-logprobs", None, None))
    biased = report("compare", "mismatch", "not tested", "not tested", causes=("unexplained bias", None, None))
    biased = with_causes(biased, 0, [])
    named = report("compare", "mismatch", "not tested", "not tested", causes=("off-by-one", None, None))
    assert combined([read, biased], Threshold())["layers"][0].cause == "raw-logprobs"
    assert (
        "the settings in inspect.json show raw-logprobs" in combined([read, biased], Threshold())["layers"][0].because
    )
    assert combined([read, named], Threshold())["layers"][0].cause == "off-by-one"


def test_a_signature_is_sent_to_the_intervention_that_decides():
    found = combined(
        [report("compare", "match", "mismatch", "not tested", causes=(None, "stale-prefix-kv", None))], Threshold()
    )
    assert found["layers"][1].next.endswith("rlaudit ablate quick --factor prefix-caching")
    ablation = report("ablate", "match", "mismatch", "not tested", causes=(None, "prefix-caching", None))
    signature = report("compare", "match", "mismatch", "not tested", causes=(None, "stale-prefix-kv", None))
    done = combined([signature, ablation], Threshold())
    assert done["layers"][1].cause == "prefix-caching"
    assert done["layers"][1].next == "next for inference path"
    assert "compare.json agrees" in done["layers"][1].because


def test_each_of_several_causes_is_looked_up_by_itself():
    both = report("compare", "match", "mismatch", "not tested", causes=(None, "bos and stale-prefix-kv", None))
    both = with_causes(both, 1, ["bos", "stale-prefix-kv"])
    found = combined([both], Threshold())["layers"][1]
    assert found.next.endswith("rlaudit ablate quick --factor prefix-caching")
    assert (found.cause, found.causes) == ("bos and stale-prefix-kv", ["bos", "stale-prefix-kv"])


def test_measurements_that_disagree_are_said_to():
    found = combined(
        [report("ablate", "match", "match", "match"), report("compare", "mismatch", "match", "match")], Threshold()
    )
    assert found["layers"][0].verdict == "mismatch"
    assert "ablate.json (match) does not agree" in found["layers"][0].because


def test_an_inconclusive_semantic_layer_leaves_the_path_provisional():
    found = combined([report("compare", "inconclusive", "mismatch", "not tested", exit_code=3)], Threshold())
    assert verdicts(found) == ["inconclusive", "mismatch", "not tested"]
    assert found["layers"][1].because.startswith("if the semantic layer matches, ")
    assert found["exit_code"] == 3


def test_curves_add_the_order_of_separation():
    order = Order(Precedence.LOGPROBS_FIRST, "k3 left at step 40", "a backend", "")
    curves = report("curves", curves=SimpleNamespace(order=order))
    found = combined([curves, report("ablate", "match", "mismatch", "not tested")], Threshold())
    line = "[curves curves.json] logprobs first: k3 left at step 40. This suggests: a backend"
    assert line in found["layers"][1].evidence


def test_an_audit_that_ended_without_a_verdict_leaves_the_diagnosis_unfinished():
    order = Order(Precedence.NOTHING, "", "", "")
    empty = report("curves", exit_code=3, curves=SimpleNamespace(order=order))
    found = combined([empty, report("ablate", "match", "match", "match", exit_code=0)], Threshold())
    assert found["exit_code"] == 3
    assert any("curves.json: this audit did not finish" in line for line in found["not_seen"])


def test_reports_of_other_releases_are_said_to_be():
    measured = report("ablate", "match", "match", "match", versions=("0.8.5", "0.18.1"))
    inspected = report("inspect", "not tested", "not tested", "not tested", versions=("0.8.5", "0.20.0"))
    found = combined([measured, inspected], Threshold())
    assert found["versions"] == {"from": None, "to": None}
    assert any("different vLLM releases" in line for line in found["not_seen"])


def test_the_arm_that_fails_first_decides_and_the_others_are_named():
    layers = worst_layers(
        [
            ("reference", [layer(name, "inconclusive") for name in LAYERS]),
            ("candidate", [layer("semantic", "mismatch"), *(layer(name, "not tested") for name in LAYERS[1:])]),
        ]
    )
    assert [one.verdict for one in layers] == ["mismatch", "not tested", "not tested"]
    assert layers[0].because == "seen (candidate)"
    assert layers[2].evidence[-1] == "reference: inconclusive"


def test_a_run_that_has_not_ended_and_what_is_no_report_are_told_apart(tmp_path):
    with pytest.raises(UsageError, match="no such report"):
        read_document(tmp_path)
    (tmp_path / "plan.json").write_text("{}")
    with pytest.raises(NotFinished, match="has not finished"):
        read_document(tmp_path)
    (tmp_path / "report.json").write_text(json.dumps(new_report("ablate", 0)))
    assert read_document(tmp_path).command == "ablate"
    (tmp_path / "d.json").write_text(json.dumps({**new_report("diagnose", 0), "sources": []}))
    with pytest.raises(UsageError, match="is of `rlaudit diagnose`"):
        read_document(tmp_path / "d.json")
