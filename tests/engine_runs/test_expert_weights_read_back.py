"""The weights of fused experts in the real 0.18.1 on a CPU: what an update reached is told expert by expert."""

import pytest
from tiny_updates import idle, updated

from rlaudit.engines.cells.launch import Outcome

pytestmark = pytest.mark.engine

EXPERTS = "model.layers.1.block_sparse_moe.experts"
ONE = f"{EXPERTS}.2.w3"
CASES = [idle("whole"), idle("one left out", skip=[ONE])]


@pytest.fixture(scope="module")
def outcome(tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    return updated("0.18.1", tmp_path_factory.mktemp("experts"), CASES, kind="mixtral", transport="broadcast")


def told(outcome: Outcome, case: str) -> dict[str, dict[str, object]]:
    (found,) = [one for one in outcome.result["read_backs"] if one["case"] == case]
    return {name: one for name, one in found["parameters"].items() if "experts" in name}


def test_every_expert_of_a_whole_update_is_new(outcome: Outcome) -> None:
    found = told(outcome, "whole")
    assert len(found) == 4 and {one["bytes"] for one in found.values()} == {"1"}
    assert {len(one["tensors"]) for one in found.values()} == {8, 4}


def test_the_one_tensor_that_is_left_out_is_the_one_that_is_not_new(outcome: Outcome) -> None:
    found = told(outcome, "one left out")
    (mixed,) = [one for one in found.values() if one["bytes"] != "1"]
    assert mixed["bytes"] is None
    # A reload fills a fused layer anew: what does not come is not the old tensor either.
    assert [name for name, version in mixed["parts"].items() if version != "1"] == [ONE + ".weight"]
