"""What a plan sets for `engine: V0`, `engine: V1` or nothing, and what inspect says that such a release then runs."""

from itertools import product
from typing import Any

import pytest
from packaging.version import Version

from rlaudit.engines.inside.expected_engine import resolution_of
from rlaudit.errors import UsageError
from rlaudit.laboratory.studies.arms.plan import Arm, make_plan
from rlaudit.laboratory.studies.arms.recipe import Recipe
from rlaudit.laboratory.studies.arms.rollout import engine_of, engine_settings
from rlaudit.vllm.catalogue import known_versions
from rlaudit.vllm.machine import machine_named
from rlaudit.vllm.resolution.engine import FIRST_WITHOUT_V0

RELEASES = [str(version) for version in known_versions()]
MACHINES = ("h100", "a100", "b200", "t4", "cpu")
DTYPES = ("bfloat16", "float32")
BOTH = [version for version in RELEASES if Version(version) < FIRST_WITHOUT_V0]


def planned(version: str, asked: str | None, dtype: str = "bfloat16", **keys: Any) -> Arm:
    candidate = keys.pop("candidate", {"version": version, "engine": asked, **keys})
    block = {"name": "one", "candidate": candidate, "repeats": 0, "engine_args": {"dtype": dtype}}
    recipe = Recipe.model_validate({"blocks": [block]})
    return make_plan(recipe).blocks[0].arms[0]


def inspected(arm: Arm, device: str) -> Any:
    """The engine, as inspect resolves the arguments and variables that the plan hands to the release."""
    machine = machine_named(device)
    settings = engine_settings(arm.treatment, machine.platform)
    return resolution_of(
        arm.treatment.version, settings.engine_args, settings.variables(machine.platform), machine
    ).value("engine")


@pytest.mark.parametrize("version", RELEASES)
def test_what_a_plan_sets_makes_the_engine_that_is_asked_for(version: str) -> None:
    for device, dtype, asked in product(MACHINES, DTYPES, ("V0", "V1")):
        if asked == "V0" and version not in BOTH:
            with pytest.raises(UsageError):
                planned(version, asked, dtype)
            continue
        arm = planned(version, asked, dtype)
        assert inspected(arm, device) == asked
        assert engine_of(arm.treatment, machine_named(device)).kind == asked
        platform = machine_named(device).platform
        set_to = engine_settings(arm.treatment, platform).variables(platform).get("VLLM_USE_V1")
        assert set_to == ({"V0": "0", "V1": "1"}[asked] if version in BOTH else None)


@pytest.mark.parametrize("version", RELEASES)
def test_where_nothing_is_asked_the_releases_own_choice_is_expected_and_nothing_is_set(version: str) -> None:
    for device, dtype in product(MACHINES, DTYPES):
        arm, machine = planned(version, None, dtype), machine_named(device)
        assert "VLLM_USE_V1" not in engine_settings(arm.treatment, machine.platform).variables(machine.platform)
        expected = engine_of(arm.treatment, machine)
        assert expected.kind == inspected(arm, device)
        assert str(expected) == (f"{expected.kind} by default" if version in BOTH else "V1")


@pytest.mark.parametrize(
    ("version", "device", "dtype", "engine"),
    [
        ("0.8.5", "h100", "bfloat16", "V1"),
        ("0.8.5", "h100", "float32", "V0"),
        ("0.8.5", "t4", "bfloat16", "V0"),
        ("0.8.5", "cpu", "bfloat16", "V0"),
        ("0.9.1", "cpu", "bfloat16", "V1"),
        ("0.9.2", "h100", "float32", "V1"),
        ("0.10.2", "t4", "bfloat16", "V1"),
    ],
)
def test_a_release_with_two_engines_chooses_by_device_and_dtype(
    version: str, device: str, dtype: str, engine: str
) -> None:
    assert engine_of(planned(version, None, dtype).treatment, machine_named(device)).kind == engine


@pytest.mark.parametrize(
    ("version", "device", "dtype", "why"),
    [
        ("0.8.5", "cpu", "bfloat16", "the platform is a CPU"),
        ("0.8.5", "t4", "bfloat16", "T4 is older than Ampere"),
        ("0.8.5", "h100", "float32", "dtype=float32"),
        ("0.8.5", "h100", "bfloat16", None),
        ("0.10.2", "cpu", "float32", None),
    ],
)
def test_a_v1_that_will_refuse_to_start_is_said_before_it_does(
    version: str, device: str, dtype: str, why: str | None
) -> None:
    expected = engine_of(planned(version, "V1", dtype).treatment, machine_named(device))
    assert expected.refused == why
    assert str(expected) == (f"V1, which will not start ({why})" if why else "V1")


@pytest.mark.parametrize(
    ("version", "engine", "keys", "said"),
    [
        ("0.11.0", "V0", {}, "block one: candidate: vLLM 0.11.0 has no engine V0, which was removed in 0.11.0"),
        ("0.11.0", "V0", {}, "`engine: V0` for 0.10.2 and older"),
        (
            "0.8.5",
            "V1",
            {"environment_variables": {"VLLM_USE_V1": "0"}},
            "`engine: V1` and the environment variable VLLM_USE_V1=0 contradict",
        ),
        (
            "0.18.1",
            None,
            {"candidate": {"version": "0.18.1", "levels": {"engine-version": "0.8.5 v0"}}},
            "'v0' is no engine",
        ),
    ],
)
def test_an_engine_that_cannot_be_is_refused_in_words(version: str, engine: str, keys: Any, said: str) -> None:
    with pytest.raises(UsageError) as raised:
        planned(version, engine, **keys)
    assert said in f"{raised.value.message}\n{raised.value.hint}"


def test_an_engine_belongs_to_the_release_beside_it() -> None:
    block = {
        "name": "one",
        "candidate": {"version": "0.10.2", "engine": "V0"},
        "factors": {"engine-version": ["0.18.1", "0.8.5 V1"]},
        "arms": [{"name": "same release"}, {"name": "another release", "version": "0.8.5"}],
        "repeats": 0,
    }
    arms = {arm.name: arm.treatment for arm in make_plan(Recipe.model_validate({"blocks": [block]})).blocks[0].arms}
    assert {name: treatment.engine for name, treatment in arms.items()} == {
        "candidate": "V0",
        "candidate + engine-version=0.18.1": None,
        "candidate + engine-version=0.8.5 V1": "V1",
        "same release": "V0",
        "another release": None,
    }
