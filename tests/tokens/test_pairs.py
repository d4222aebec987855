import pytest
from simulated_pairs import five_tokens

from rlaudit.tokens.pairs import LogprobPairs


def pairs_with(**changes: object) -> LogprobPairs:
    fields: dict[str, object] = {
        "rollout_logprobs_T": [-1.0, -2.0, -3.0],
        "trainer_logprobs_T": [-1.5, -2.0, -2.0],
        "sequence_T": [0, 0, 1],
        "prompt_S": [0, 0],
    }
    return LogprobPairs(**(fields | changes))  # type: ignore[arg-type]


def test_log_ratio_is_trainer_minus_rollout() -> None:
    assert pairs_with().log_ratio_T.tolist() == [-0.5, 0.0, 1.0]


def test_log_ratios_are_summed_within_each_sequence() -> None:
    assert pairs_with().sequence_log_ratio_S.tolist() == [-0.5, 1.0]
    assert pairs_with().sequence_lengths_S.tolist() == [2, 1]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("trainer_logprobs_T", [-1.0]),
        ("sequence_T", [0, 0]),
        ("entropy_T", [1.0]),
        ("rollout_logprobs_T", [[-1.0, -2.0, -3.0]]),
        ("sequence_T", [0, 1, 0]),
        ("sequence_T", [0, 0, 2]),
        ("sequence_T", [-1, 0, 0]),
        ("prompt_S", [0.5, 1.0]),
        ("prompts", 0),
    ],
)
def test_a_field_that_does_not_fit_is_named(field: str, value: object) -> None:
    with pytest.raises(ValueError, match=field if field != "rollout_logprobs_T" else "rollout_logprobs_T must"):
        pairs_with(**{field: value})


def test_prompts_without_a_sequence_keep_their_number() -> None:
    assert pairs_with(prompts=7).prompt_count == 7
    assert pairs_with().prompt_count == 1


def test_keeping_some_tokens_drops_the_sequences_left_empty_and_keeps_prompt_numbers() -> None:
    kept = five_tokens().keep([False, False, False, True, True])
    assert kept.sequence_T.tolist() == [0, 0]
    assert kept.prompt_S.tolist() == [1]
    assert kept.prompt_count == 2
    assert kept.entropy_T is not None
    assert kept.entropy_T.tolist() == [3.0, 0.1]


def test_a_mask_of_another_length_is_refused() -> None:
    with pytest.raises(ValueError, match="keep_T"):
        five_tokens().keep([True])
