"""What a report says to set works on the release that it is about."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from pasted_settings import faults, faults_of_report

from rlaudit.diagnosis.remedy import remedy_of, written
from rlaudit.laboratory.from_file import is_recipe
from rlaudit.laboratory.recipe import read_recipe
from rlaudit.laboratory.studies.arms.plan import Role, known_factors, make_plan
from rlaudit.laboratory.studies.arms.recipe import recipe_of
from rlaudit.laboratory.treatment import Treatment

ROOT = Path(__file__).parents[2]
RECIPES = sorted(path for folder in ("recipes", "examples", "tests") for path in (ROOT / folder).rglob("*.yaml")
                 if is_recipe(path) and "\nblocks:" in path.read_text())  # fmt: skip
# Around each release from which on one of them is possible.
RELEASES = ("0.8.5", "0.10.0", "0.11.0", "0.12.0", "0.18.1", "0.26.0", "0.33.0")


def faults_of(version: str, settings: list[tuple[str, str]], treatment: Treatment | None = None) -> list[str]:
    """Errors in all three forms of the settings of factors."""
    treatment = treatment or Treatment(version)
    made = written(version, [(remedy_of(treatment, *one), "removes the mismatch") for one in settings], "of a test")
    if made is None:
        return []
    forms = {"python": made.python, "command": made.command, "parity": made.config_file}
    return list(faults(forms, version))


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)
def test_settings_of_every_recipe_pass_an_inspection_for_its_release(path: Path) -> None:
    for block in make_plan(recipe_of(*read_recipe(str(path)), "cuda")).blocks:
        treatment = next(iter(block.with_role(Role.CANDIDATE))).treatment
        first = [(factor, levels[0]) for factor, levels in block.settings.factors.items()]
        assert faults_of(treatment.version, first, treatment) == []


@pytest.mark.parametrize("version", RELEASES)
@pytest.mark.parametrize("place", [0, -1], ids=["first levels", "last levels"])
def test_settings_of_all_factors_together_pass_an_inspection_for_any_release(version: str, place: int) -> None:
    levels = [(factor, one.levels[place]) for factor, one in known_factors().items() if one.levels]
    assert faults_of(version, levels) == []


@pytest.mark.parametrize("path", sorted((ROOT / "examples").glob("*/*/report.json")), ids=lambda path: path.parent.name)
def test_settings_that_an_example_prints_pass_an_inspection_for_its_release(path: Path) -> None:
    assert faults_of_report(json.loads(path.read_text())) == []


@pytest.mark.parametrize(
    ("version", "factor", "level", "step"),
    [
        ("0.18.1", "logprobs-mode", "processed", "set logprobs_mode=processed_logprobs, then audit again"),
        ("0.10.1", "logprobs-mode", "processed", "not possible before vLLM 0.10.2: logprobs_mode=processed_logprobs"),
        ("0.22.0", "fp32-head", "rollout", "not possible before vLLM 0.26.0: hf_overrides.head_dtype=float32"),
        ("0.26.0", "fp32-head", "rollout", "set hf_overrides.head_dtype=float32, then audit again"),
        ("0.18.1", "fp32-head", "trainer", "set the trainer's head in float32, then audit again"),
        ("0.9.0", "batch-invariance", "on", "not possible before vLLM 0.11.1: VLLM_BATCH_INVARIANT=1"),
        ("0.18.1", "batch-invariance", "on",
         "set VLLM_BATCH_INVARIANT=1 and attention_backend=FLASH_ATTN, then audit again"),
        ("0.18.1", "engine-version", "0.8.5 V0", "set vllm==0.8.5 and VLLM_USE_V1=0, then audit again"),
        ("0.18.1", "batch-size", "alone", "set max_num_seqs=1, then audit again"),
    ],
)  # fmt: skip
def test_a_step_speaks_vllms_words_and_says_since_when_it_is_possible(
    version: str, factor: str, level: str, step: str
) -> None:
    assert remedy_of(Treatment(version), factor, level).step == step


def test_what_a_v0_heeds_is_possible_although_the_v1_of_the_release_does_not() -> None:
    v1 = remedy_of(Treatment("0.8.5"), "chunked-prefill", "off")
    v0 = remedy_of(replace(Treatment("0.8.5"), engine="V0"), "chunked-prefill", "off")
    assert (v1.possible, v1.since, v0.possible) == (False, "0.11.1", True)


def test_without_a_remedy_nothing_is_written() -> None:
    assert written("0.18.1", [], "of a test") is None


def test_each_form_says_what_it_cannot_hold() -> None:
    remedies = [(remedy_of(Treatment("0.13.0"), *one), "removes the mismatch")
                for one in (("cudagraphs", "off"), ("batch-invariance", "on"), ("prefix-caching", "off"))]  # fmt: skip
    made = written("0.13.0", remedies, "of a test")
    assert made is not None and made.command is not None and made.python is not None
    assert "# compilation_config.cudagraph_mode=NONE: a file cannot hold it\n" in made.config_file
    assert "# VLLM_BATCH_INVARIANT=1: a variable, which no file holds\n" in made.config_file
    assert "no-enable-prefix-caching: true  # removes the mismatch\n" in made.config_file
    assert made.command.splitlines()[-1] == (
        'VLLM_BATCH_INVARIANT=1 vllm serve MODEL --compilation-config \'{"cudagraph_mode": "NONE"}\' '
        "--attention-backend FLASH_ATTN --no-enable-prefix-caching"
    )
    assert "    enable_prefix_caching=False,\n" in made.python
