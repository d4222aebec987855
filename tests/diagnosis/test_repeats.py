"""An arm and its repeat: the share of tokens whose bytes differ, up to the first token that they do not share."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from rlaudit.diagnosis.repeats import bytes_of_repeats
from rlaudit.laboratory.studies.arms.plan import BlockPlan, Role
from rlaudit.laboratory.studies.arms.rollout import SampledSequence
from rlaudit.laboratory.studies.arms.run import FinishedRun

FIRST = SampledSequence(0, 0, 0, (5, 6, 7), (-0.5, -1.0, -2.0), (), (), 0, "length")


def share(again: SampledSequence, status: bool = True) -> Any:
    """What is said of a candidate with one sequence and its repeat."""
    arms = {
        "candidate": SimpleNamespace(ok=True, sequences=(FIRST,)),
        "candidate again": SimpleNamespace(ok=status, sequences=(again,)),
    }
    block = SimpleNamespace(
        arms=[SimpleNamespace(name="candidate again", role=Role.CANDIDATE_AGAIN, against="candidate")]
    )
    run = SimpleNamespace(
        of_block=lambda _: arms, prompt_token_ids=[[1]], plan=SimpleNamespace(recipe=SimpleNamespace(seed=0))
    )
    return bytes_of_repeats(cast(FinishedRun, run), cast(BlockPlan, block)).get("candidate again")


@pytest.mark.parametrize(
    ("change", "value", "tokens"),
    [
        ({}, 0.0, 3),
        ({"logprobs": (-0.5, -1.0000001, -2.0)}, 1 / 3, 3),
        ({"token_ids": (5, 6, 8), "logprobs": (-0.5, -1.0000001, -9.0)}, 1 / 2, 2),
    ],
    ids=["the same bits", "a last bit", "another token, which ends the comparison"],
)
def test_tokens_that_both_sampled_are_compared_bit_by_bit(change: dict[str, Any], value: float, tokens: int) -> None:
    measured = share(replace(FIRST, **change))
    assert (measured.value, measured.tokens) == (pytest.approx(value), tokens)


@pytest.mark.parametrize(
    ("change", "status"), [({"token_ids": (9,), "logprobs": (-1.0,)}, True), ({"prompt": 1}, True), ({}, False)]
)
def test_nothing_is_said_without_a_token_in_common_or_a_finished_repeat(change: dict[str, Any], status: bool) -> None:
    assert share(replace(FIRST, **change), status) is None
