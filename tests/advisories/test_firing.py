"""An advisory speaks on the example in its file, and is silent on the twins beside it, one release off, or mended."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from simulated_audit import findings, fixed, laid_over, simulated_audit

from rlaudit.rules import advisories, known_rules
from rlaudit.rules.advisories import defects_of, has_rule, known_advisories
from rlaudit.rules.advisories.advisory import VLLM
from rlaudit.rules.advisory_undecided import RULE as UNDECIDED
from rlaudit.rules.audit.finding import Finding
from rlaudit.severity import Severity
from rlaudit.vllm.catalogue import known_versions

QWEN_MOE = {"model": "Qwen/Qwen3-30B-A3B", "trainer": {"weight_updates": "between rollouts"}}
DEEPSEEK = {**QWEN_MOE, "model": "deepseek-ai/DeepSeek-V3"}
LOADS = {"trainer": {"weight_updates": "between rollouts", "update_path": "loaded"}}
FILES = {
    path.stem: [*yaml.safe_load_all(path.read_text(encoding="utf-8"))]
    for path in sorted(Path(advisories.__file__).parent.glob("*.yaml"))
}
MET: dict[str, tuple[dict[str, Any], list[dict[str, Any]]]] = {
    name: (examples["fires"], examples["silent"]) for name, (_, *more) in FILES.items() for examples in more
}

EVERY = pytest.mark.parametrize("name", MET)


def _said(name: str, example: dict[str, Any], folder: Path) -> list[Finding]:
    """What an advisory's rule says; `checkpoint` is what stands in the model's config.json, beside its type."""
    if "checkpoint" in example:
        (folder / "config.json").write_text(json.dumps({"model_type": "llama", **example["checkpoint"]}))
        example = {**{key: value for key, value in example.items() if key != "checkpoint"}, "model": str(folder)}
    return findings(known_rules()[name], example)


def test_every_advisory_has_its_examples_or_a_rule_of_its_own_or_is_of_a_curve() -> None:
    elsewhere = {name for name, advisory in known_advisories().items() if has_rule(name) or advisory.metrics}
    assert known_advisories().keys() - elsewhere == MET.keys()


@EVERY
def test_it_fires_where_everything_comes_together(name: str, tmp_path: Path) -> None:
    [finding] = _said(name, MET[name][0], tmp_path)
    assert finding.rule == name
    assert finding.severity is known_advisories()[name].severity
    assert finding.message.endswith(".")


@EVERY
def test_it_is_silent_where_one_thing_is_missing(name: str, tmp_path: Path) -> None:
    example, twins = MET[name]
    assert twins
    for twin in twins:
        assert _said(name, laid_over(example, twin), tmp_path) == [], twin


def test_none_speaks_in_a_release_outside_its_window(tmp_path: Path) -> None:
    for release in known_versions():
        for name in MET.keys() & defects_of(VLLM).keys():
            example = MET[name][0]
            if not known_advisories()[name].window.holds(release):
                assert _said(name, {**example, "to": str(release)}, tmp_path) == [], (name, release)


def test_a_line_that_decides_is_named_only_if_there_is_one() -> None:
    example = {"to": "0.18.1", "framework": "trl", "pins": {"trl": "1.5.0"}, "offline": True}
    audit = simulated_audit({**example, "engine": {"enable_sleep_mode": True}})
    for line, said in (("", False), ("trl/a.py:3", True)):
        config = replace(audit.config, decided={"enable_sleep_mode": line})
        [finding] = known_rules()["trl-reloads-first-weights"].check(
            replace(audit, after=replace(audit.after, config=config))
        )
        assert ("What decides" in finding.message) is said


@pytest.mark.parametrize("name", sorted(MET.keys() - defects_of(VLLM).keys()))
def test_one_of_a_framework_speaks_in_its_window_and_not_beside_it(name: str, tmp_path: Path) -> None:
    example, advisory = MET[name][0], known_advisories()[name]
    window = advisory.window
    for edge, speaks in ((window.first, 1), (window.last, 1), (window.before, 0), (window.fixed, 0)):
        if edge is not None:
            pinned = {**example, "pins": {advisory.of: edge.release}}
            assert len(_said(name, pinned, tmp_path)) == speaks, edge


def test_a_framework_whose_release_is_not_known_is_undecided_and_says_how_to_give_it() -> None:
    example = {**MET["trl-reloads-first-weights"][0], "pins": {}}
    assert findings(known_rules()["trl-reloads-first-weights"], example) == []
    [finding] = findings(UNDECIDED, example)
    assert (
        "trl-reloads-first-weights (trl's release is not known: pin it, or give --framework trl==X)" in finding.message
    )


@pytest.mark.parametrize(("releases", "says"), [(["1.2.0", "1.6.0"], 1), (["1.10.0", None], 0)])
def test_the_releases_that_a_config_can_be_of_decide_without_a_pin(releases: list[Any], says: int) -> None:
    example = {**MET["trl-reloads-first-weights"][0], "pins": {}, "releases": releases}
    assert len(findings(known_rules()["trl-reloads-first-weights"], example)) == says
    assert not any("trl-reloads-first-weights" in one.message for one in findings(UNDECIDED, example))


@EVERY
def test_its_fix_ends_it_and_is_not_safe_unless_it_restores_what_runs_today(name: str, tmp_path: Path) -> None:
    example = MET[name][0]
    for finding in _said(name, example, tmp_path):
        assert (finding.fix is not None) is bool(known_advisories()[name].escape)
        if finding.fix is not None:
            assert not finding.fix.safe
            assert _said(name, fixed(example, finding.fix), tmp_path) == []


def test_one_thing_that_is_not_told_is_a_note_and_says_what_decides() -> None:
    example = {**MET["routed-experts-all-zero"][0], "from": "0.21.0", "model": "an/unpublished-model"}
    [finding] = findings(UNDECIDED, example)
    assert finding.severity is Severity.NOTE
    assert "routed-experts-all-zero" in finding.message
    assert "an/unpublished-model" in finding.message


def test_two_things_that_are_not_told_are_no_danger() -> None:
    example = laid_over(
        {**MET["routed-experts-all-zero"][0], "from": "0.21.0", "model": "an/unpublished-model"},
        {"engine": {"moe_backend": {"unknown": "$BACKEND is set nowhere"}}},
    )
    assert [one for one in findings(UNDECIDED, example) if "routed-experts-all-zero" in one.message] == []


def test_two_arguments_that_are_not_told_for_one_reason_are_two_unknowns() -> None:
    untold = {"unknown": "another command"}
    engine = {"enable_return_routed_experts": untold, "pipeline_parallel_size": untold}
    assert findings(UNDECIDED, {"to": "0.20.2", "engine": engine}) == []


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("loaded", "mla-graphs-keep-old-projections"),
        ("copied", "mla-graphs-keep-old-projections"),
        ("processed", "mla-decodes-with-first-weights"),
    ],
)
def test_another_way_of_loading_weights_has_another_defect(path: str, name: str) -> None:
    example = {"to": "0.18.1", **DEEPSEEK, "trainer": {"weight_updates": "in flight", "update_path": path}}
    assert findings(known_rules()[name], example) == []
    assert not any(name in one.message for one in findings(UNDECIDED, example))


@pytest.mark.parametrize("path", ["loaded", "processed", "reloaded"])
def test_experts_on_a_blackwell_are_not_loaded_over_blocks_unless_vllm_reloads_them(path: str) -> None:
    example = {"to": "0.20.0", **QWEN_MOE, "machine": {"gpu": "sm100", "name": "B200", "memory_gib": 179.0}}
    example = laid_over(example, {"trainer": {"update_path": path}})
    names = {name for name in MET for finding in findings(known_rules()[name], example) if "xperts" in finding.message}
    assert names == (set() if path == "reloaded" else {"experts-in-another-layout"})


def test_a_window_that_the_release_of_today_is_in_as_well_is_not_entered() -> None:
    example = {**MET["routed-experts-all-zero"][0], "from": "0.24.0", "model": "an/unpublished-model"}
    assert findings(UNDECIDED, example) == []


def test_nothing_is_said_of_a_plain_server_whose_weights_nobody_updates() -> None:
    for release in known_versions():
        example = {"to": str(release), "model": "deepseek-ai/DeepSeek-V3", "engine": {"tensor_parallel_size": 8}}
        assert [name for name in MET if findings(known_rules()[name], example)] == [], release
        assert findings(UNDECIDED, example) == [], release


def test_how_weights_are_loaded_is_not_guessed_from_a_server_that_another_command_starts() -> None:
    example = {"to": "0.18.1", **LOADS}
    untold = {"engine": {"weight_transfer_config": {"unknown": "another command"}, "kv_cache_dtype": "fp8"}}
    assert findings(known_rules()["reload-refuses-cache-scales"], {**example, **untold}) == []
    assert not any("reload-" in one.message for one in findings(UNDECIDED, {**example, **untold}))


@pytest.mark.parametrize("value", [5, "x", None, True, [1], {"a": []}, -1, [{}]])
def test_a_strange_checkpoint_decides_nothing_and_breaks_nothing(value: object, tmp_path: Path) -> None:
    keys = (
        "model_type",
        "num_experts",
        "kv_lora_rank",
        "layer_types",
        "topk_method",
        "quantization_config",
        "vocab_size",
    )
    strange = {**dict.fromkeys(keys, value), "text_config": value, "vision_config": value}
    for name, (example, _) in MET.items():
        _said(name, {**example, "checkpoint": strange}, tmp_path)


@pytest.mark.parametrize(
    ("release", "sampling", "declared", "speaks"),
    [
        ("0.10.1.1", {}, True, False),
        ("0.10.2", {}, True, True),
        ("0.27.1", {}, True, True),
        ("0.27.1", {"repetition_penalty": 1.1}, True, False),
        ("0.27.1", {}, False, False),
    ],
)
def test_processors_that_a_plug_in_brings_are_found_where_the_project_declares_them(
    release: str, sampling: dict[str, float], declared: bool, speaks: bool, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    entry = '[project.entry-points."vllm.logits_processors"]\nno_repeat = "mine:NoRepeat"\n'
    Path("pyproject.toml").write_text(entry if declared else "")
    example = {"to": release, "sampling": sampling, "engine": {"async_scheduling": True}}
    example["environment"] = {"VLLM_USE_V2_MODEL_RUNNER": "0"}
    assert bool(findings(known_rules()["processors-blind-when-async"], example)) is speaks
