"""What prompt logprobs are: with the temperature or without, and how far from those of sampling."""

import pytest

from rlaudit.statistics.measurement.prompt_logprobs import from_sampled, holds_temperature


def sequence(tokens: int, by_temperature: float, from_sampled: float) -> dict[str, float]:
    return {"tokens": tokens, "by_temperature": tokens * by_temperature, "from_sampled": tokens * from_sampled}


# bfloat16 moves two equal requests by .003, a temperature of 0.95 the same tokens by .015.
@pytest.mark.parametrize(
    ("temperature", "moved", "holds"), [(0.7, 0.15, True), (0.7, 0.003, False), (0.95, 0.015, True), (1.5, 0.1, True)]
)
def test_the_temperature_shows_above_what_rounding_moves(temperature: float, moved: float, holds: bool) -> None:
    assert holds_temperature([sequence(20, moved, 0.0), sequence(4, moved, 0.0)], temperature) is holds


def test_the_distance_is_a_mean_over_tokens_with_an_interval_over_sequences() -> None:
    distance = from_sampled([sequence(30, 0.0, 0.1), sequence(10, 0.0, 0.3)])
    assert distance.value == pytest.approx(0.15)
    low, high = distance.percentiles()
    assert 0.1 <= low < 0.15 < high <= 0.3
