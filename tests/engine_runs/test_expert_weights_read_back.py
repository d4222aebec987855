"""The weights of fused experts in the real 0.18.1 on a CPU: what an update reached is told expert by expert."""

from pathlib import Path

import pytest
from tiny_updates import idle, in_flight, updated, went_on

from rlaudit.engines.cells.launch import Outcome

pytestmark = pytest.mark.engine

EXPERT = "model.layers.1.block_sparse_moe.experts.2"
CASES = [idle("whole"), in_flight("in flight"), idle("one left out", skip=[f"{EXPERT}.w3"])]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("experts")


@pytest.fixture(scope="module")
def outcome(folder: Path) -> Outcome:
    return updated("0.18.1", folder, CASES, kind="mixtral", transport="broadcast")


def told(outcome: Outcome, case: str) -> dict[str, dict[str, object]]:
    (found,) = [one for one in outcome.result["read_backs"] if one["case"] == case]
    return {name: one for name, one in found["parameters"].items() if "experts" in name}


def test_requests_in_flight_go_on_under_the_weights_that_came(folder: Path, outcome: Outcome) -> None:
    assert all(went_on(folder, outcome, "in flight"))


@pytest.mark.parametrize("case", ["whole", "in flight"])
def test_every_expert_of_a_whole_update_is_new(outcome: Outcome, case: str) -> None:
    found = told(outcome, case)
    assert len(found) == 4 and {one["bytes"] for one in found.values()} == {"1"}
    assert {len(one["tensors"]) for one in found.values()} == {8, 4}


def test_the_expert_of_which_a_tensor_is_left_out_is_the_one_that_is_not_new(outcome: Outcome) -> None:
    found = told(outcome, "one left out")
    (mixed,) = [one for one in found.values() if one["bytes"] != "1"]
    assert mixed["bytes"] is None
    # A reload fills a fused layer anew. In the place of what does not come lies whatever was in the memory, and where
    # that is no version's, gate and up are not told apart: they are known by their sum.
    other = {name for name, version in mixed["parts"].items() if version != "1"}
    assert {f"{EXPERT}.w3.weight"} <= other <= {f"{EXPERT}.w1.weight", f"{EXPERT}.w3.weight"}
