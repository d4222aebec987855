import numpy as np
import pytest

from rlaudit.statistics.estimate import figure
from rlaudit.statistics.resample import FEWEST_PROMPTS, clusters_of


@pytest.mark.parametrize(("prompts", "clusters"), [(7, 14), (8, 8), (9, 9)])
def test_sequences_are_clusters_of_their_own_where_there_are_fewer_than_eight_prompts(
    prompts: int, clusters: int
) -> None:
    assert FEWEST_PROMPTS == 8
    assert len(np.unique(clusters_of(np.repeat(np.arange(prompts), 2)))) == clusters


@pytest.mark.parametrize(
    ("ends", "text"),
    [((0.1, 0.3), "0.2 [0.1, 0.3]"), ((None, 0.3), "0.2 (no interval)"), ((0.1, None), "0.2 (no interval)")],
)
def test_a_figure_is_written_with_both_ends_of_its_interval_or_with_none(
    ends: tuple[float | None, float | None], text: str
) -> None:
    assert figure(0.2, *ends) == text
    assert figure(None, *ends) == "undefined"
