from typing import Any

import pytest

from rlaudit.engines.hardware.accelerator import Accelerator
from rlaudit.errors import NotFinished, UsageError
from rlaudit.laboratory.studies.arms.plan import (
    BlockPlan,
    Role,
    for_accelerator,
    make_plan,
    sampling_in_force,
    scoring_request,
)
from rlaudit.laboratory.studies.arms.recipe import Recipe, Sampling
from rlaudit.laboratory.study import releases

FACTORS = {"logprobs-mode": ["processed"], "prefix-caching": ["off"], "async-scheduling": ["off"]}


def planned(seed: int = 0, **keys: Any) -> BlockPlan:
    block = {"name": "one", "candidate": {"version": "0.18.1"}, **keys}
    return make_plan(Recipe.model_validate({"seed": seed, "blocks": [block]})).blocks[0]


def names(block: BlockPlan, role: Role) -> list[str]:
    return sorted(arm.name for arm in block.with_role(role))


def test_every_factor_is_tried_alone_and_left_out_of_parity() -> None:
    block = planned(factors=FACTORS, parity=list(FACTORS))
    assert names(block, Role.FIRST) == [
        "candidate + async-scheduling=off",
        "candidate + logprobs-mode=processed",
        "candidate + prefix-caching=off",
    ]
    assert names(block, Role.LAST) == ["parity - async-scheduling", "parity - logprobs-mode", "parity - prefix-caching"]
    left_out = next(arm for arm in block.with_role(Role.LAST) if arm.factor == "logprobs-mode")
    assert left_out.treatment.engine_args == {"enable_prefix_caching": False, "async_scheduling": False}
    assert left_out.against == "parity"


def test_the_parity_arm_has_every_parity_factor_at_its_first_level() -> None:
    block = planned(factors=FACTORS, parity=["logprobs-mode", "prefix-caching"])
    (parity,) = block.with_role(Role.PARITY)
    assert parity.treatment.engine_args == {"logprobs_mode": "processed_logprobs", "enable_prefix_caching": False}
    assert block.parity_name == "parity"


def test_with_one_parity_factor_its_own_arm_is_the_parity_arm_and_nothing_is_left_out() -> None:
    block = planned(factors={"logprobs-mode": ["processed"]}, parity=["logprobs-mode"])
    assert block.parity_name == "candidate + logprobs-mode=processed"
    assert names(block, Role.PARITY) == names(block, Role.LAST) == []


def test_repeats_are_other_replicates_of_the_same_treatment() -> None:
    block = planned(factors=FACTORS, parity=list(FACTORS), repeats=2)
    again = block.with_role(Role.CANDIDATE_AGAIN)
    assert sorted(arm.replicate for arm in again) == [1, 2]
    (candidate,) = block.with_role(Role.CANDIDATE)
    assert {arm.treatment == candidate.treatment for arm in again} == {True}
    assert len(block.with_role(Role.PARITY_AGAIN)) == 2


def test_leave_one_out_arms_come_last_and_the_rest_in_an_order_that_the_seed_decides() -> None:
    orders = [[arm.name for arm in planned(seed, factors=FACTORS, parity=list(FACTORS)).arms] for seed in (0, 0, 1)]
    assert orders[0] == orders[1] != orders[2]
    assert sorted(orders[0]) == sorted(orders[2])
    assert all(name.startswith("parity - ") for name in orders[0][-3:])


def test_an_extra_arm_differs_from_the_candidate_in_what_it_says_only() -> None:
    extra = {"name": "more", "levels": {"dummy": "on"}, "engine_args": {"seed": 3}, "timeout_minutes": 2.0}
    block = planned(engine_args={"max_model_len": 64}, arms=[extra], environment_variables={"A": "1"})
    (arm,) = block.with_role(Role.EXTRA)
    assert arm.treatment.engine_args == {"max_model_len": 64, "seed": 3}
    assert arm.treatment.variables == {"A": "1", "RLAUDIT_DUMMY": "1"}
    assert arm.treatment.version == "0.18.1"
    assert (arm.timeout_minutes, arm.against) == (2.0, "candidate")


def test_versions_are_those_of_all_arms_from_old_to_new() -> None:
    block = {
        "name": "one",
        "reference": {"version": "0.10.2"},
        "candidate": {"version": "0.32.0"},
        "arms": [{"name": "old", "version": "0.9.1"}],
    }
    assert releases(make_plan(Recipe.model_validate({"blocks": [block]}))) == ("0.9.1", "0.10.2", "0.32.0")


def test_levels_of_reference_and_candidate_are_set_on_them_alone() -> None:
    block = planned(
        reference={"version": "0.18.1", "levels": {"logprobs-mode": "processed"}},
        candidate={"version": "0.32.0", "levels": {"prefix-caching": "off"}},
    )
    (reference,), (candidate,) = block.with_role(Role.REFERENCE), block.with_role(Role.CANDIDATE)
    assert reference.treatment.engine_args == {"logprobs_mode": "processed_logprobs"}
    assert candidate.treatment.engine_args == {"enable_prefix_caching": False}
    assert candidate.against == "reference"


@pytest.mark.parametrize(
    ("keys", "says"),
    [
        ({"factors": {"dumy": ["on"]}}, "unknown factor 'dumy' in block one"),
        ({"candidate": {"version": "0.18.1", "levels": {"dumy": "on"}}}, "unknown factor 'dumy'"),
        ({"arms": [{"name": "x", "levels": {"dumy": "on"}}]}, "unknown factor 'dumy'"),
        ({"factors": {"dummy": ["maybe"]}}, "factor dummy has no level 'maybe'; it has on, off"),
        ({"reference": {"version": "0.8.4"}}, "vLLM 0.8.4 is too old"),
        ({"arms": [{"name": "x", "version": "0.1"}]}, "vLLM 0.1 is too old"),
        ({"samples": 3, "sampling": {"temperature": 0.7, "n": 2}}, "samples 3 is no multiple of n 2"),
        ({"factors": {"engine-version": ["newest"]}}, "'newest' is not a version of vllm"),
    ],
)
def test_what_does_not_exist_is_refused_wherever_it_is_named(keys: dict[str, Any], says: str) -> None:
    with pytest.raises(UsageError) as raised:
        planned(**keys)
    assert says in raised.value.message


def test_completions_of_one_request_are_scored_with_those_of_a_request_each() -> None:
    alone, by_two = (planned(sampling={"temperature": 0.7, "n": n}).arms[0] for n in (1, 2))
    assert by_two.treatment.sampling["n"] == 2 and "n" not in alone.treatment.sampling
    assert scoring_request(by_two).key == scoring_request(alone).key


def test_a_sampling_parameter_that_is_off_is_not_sent() -> None:
    assert sampling_in_force(Sampling(temperature=1.0)) == {"temperature": 1.0}
    assert sampling_in_force(Sampling(temperature=0.7, top_p=0.9)) == {"temperature": 0.7, "top_p": 0.9}


def test_a_block_whose_dtype_is_only_emulated_here_is_left_out_with_the_reason_and_no_plan_is_empty() -> None:
    head = {"name": "head", "candidate": {"version": "0.18.1"}, "native_dtype": "bfloat16"}
    both, alone = (
        make_plan(Recipe.model_validate({"blocks": blocks}))
        for blocks in ([{"name": "migration", "candidate": {"version": "0.18.1"}}, head], [head])
    )
    old, new = (
        Accelerator("cpu", "EPYC", (), "", 2, 1024, instruction_sets=instructions)
        for instructions in (("avx2",), ("avx512bw", "avx512dq", "avx512vl"))
    )
    assert [block.name for block in for_accelerator(both, old).blocks] == ["migration"]
    assert "EPYC has no instructions for bfloat16" in for_accelerator(both, old).left_out["head"]
    assert for_accelerator(both, new) == both
    with pytest.raises(NotFinished, match="no instructions for bfloat16"):
        for_accelerator(alone, old)
