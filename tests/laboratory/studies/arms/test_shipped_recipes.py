"""What the shipped recipes say of their engines, on each kind of machine."""

import pytest

from rlaudit.laboratory.studies.arms.plan import Role, make_plan
from rlaudit.laboratory.studies.arms.rollout import engine_of
from rlaudit.laboratory.study import load_study
from rlaudit.vllm.machine import machine_named


@pytest.mark.parametrize("name", ["quick", "v0-to-v1", "sampling-parameters"])
@pytest.mark.parametrize("device", ["h100", "a100", "b200", "cpu"])
def test_the_reference_of_0_8_5_is_v0_and_everything_else_is_v1(name: str, device: str) -> None:
    machine = machine_named(device)
    for block in make_plan(load_study(name, machine.platform)[1]).blocks:
        for arm in block.arms:
            expected = engine_of(arm.treatment, machine)
            assert expected.kind == ("V0" if arm.role is Role.REFERENCE else "V1")
            assert expected.refused is None


@pytest.mark.parametrize(
    ("name", "not_on_a_cpu"),
    [("v0-to-v1", {"compile", "cudagraphs", "enforce-eager"}), ("v1-to-latest", {"compile", "cudagraphs"})],
)
def test_compiling_and_graphs_are_told_apart_where_there_are_graphs(name: str, not_on_a_cpu: set[str]) -> None:
    def tried(profile: str) -> set[str]:
        return set(make_plan(load_study(name, profile)[1]).blocks[0].settings.factors)

    assert {"compile", "cudagraphs", "enforce-eager"} <= tried("cuda")
    assert tried("cpu") == tried("cuda") - not_on_a_cpu
