"""Recipes about weight updates: what is read, and what is refused in which words."""

from pathlib import Path
from typing import Any

import pytest

from rlaudit.engines.hardware.accelerator import detect
from rlaudit.errors import UsageError
from rlaudit.laboratory.prompts import load_prompts
from rlaudit.laboratory.studies.updates.plan import plan_starts, plan_updates
from rlaudit.laboratory.studies.updates.recipe import update_recipe_of
from rlaudit.laboratory.study import load_study, releases
from rlaudit.vllm.machine import machine_named


@pytest.fixture
def shipped() -> Any:
    """The recipe that travels with rlaudit."""
    study, recipe, _ = load_study("weight-update", "cpu")
    assert study.name == "updates"
    return recipe


def test_the_shipped_recipe_names_its_releases_and_environments_are_prepared_for_each(shipped: Any) -> None:
    assert [engine.version for engine in shipped.weight_updates.engines] == ["0.18.1", "0.18.1", "0.8.5", "0.32.0"]
    plan = plan_updates(shipped, detect(cpu=True), load_prompts(shipped.prompts))
    assert releases(plan) == ("0.8.5", "0.18.1", "0.32.0")


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"transport": "broadcast", "path": "reload_weights"}, "reload_weights reads a folder"),
        ({"transport": "ipc"}, "Input should be 'disk' or 'broadcast'"),
        ({"planted": ["layers.12."]}, "planted"),
        ({"modes": ["freeze"]}, r"mine.yaml: weight_updates.engines.0.modes.0"),
        ({"mode": ["keep"]}, "did you mean modes"),
        ({"engine": "V0"}, r"mine\.yaml: vLLM 0\.18\.1 has no engine V0"),
    ],
)
def test_what_no_audit_of_updates_can_do_is_refused_by_name(keys: dict[str, Any], said: str) -> None:
    document = {"weight_updates": {"engines": [{"version": "0.18.1", **keys}]}}
    with pytest.raises(UsageError, match=said):
        update_recipe_of(document, Path("mine.yaml"))


def test_on_and_off_are_levels_and_not_truth_values() -> None:
    document = {"weight_updates": {"engines": [{"version": "0.18.1", "prefix_caching": [True, False]}]}}
    assert update_recipe_of(document, Path("x")).weight_updates.engines[0].prefix_caching == ["on", "off"]


def test_the_command_line_overrides_the_recipe(shipped: Any) -> None:
    mine = shipped.overridden(model="m", seed=4, samples=3)
    assert (mine.model, mine.seed, mine.weight_updates.samples) == ("m", 4, 3)
    assert mine.prompts == shipped.prompts


def test_its_prompts_share_a_cache_with_themselves_only() -> None:
    """The smallest block is 16 tokens: prompts that differ in their first four words have no block in common."""
    prompts = load_prompts("openings").prompts
    assert len({" ".join(str(prompt).split()[:4]) for prompt in prompts}) == len(prompts) == 16


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_the_reference_of_0_8_5_is_v0_on_a_gpu_whatever_the_dtype(dtype: str) -> None:
    _, recipe, _ = load_study("weight-update", "cuda")
    starts = plan_starts(recipe.model_copy(update={"dtype": dtype}), "cuda")
    (reference,) = [start for start in starts if start.version == "0.8.5"]
    assert reference.wanted.variables("cuda")["VLLM_USE_V1"] == "0"
    assert reference.wanted.expected(machine_named("h100")).kind == "V0"
