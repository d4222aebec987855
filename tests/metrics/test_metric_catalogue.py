import sys

import pytest

from rlaudit.statistics.measurement.measure import all_metrics
from rlaudit.statistics.measurement.metric import ObjectiveSettings


@pytest.mark.parametrize("name", sorted(all_metrics()))
def test_a_metric_is_named_after_its_file_and_documents_itself(name: str) -> None:
    metric = all_metrics()[name]
    documentation = sys.modules[f"rlaudit.statistics.metrics.{name}"].__doc__
    assert documentation is not None
    for part in ("Covered:", "Not covered:", "Source:") if name not in DASHBOARD_ONLY else ("Source:",):
        assert part in documentation, part
    assert all((metric.title, metric.formula, metric.unit, metric.reads, metric.clipping))


DASHBOARD_ONLY = {"token_mult_prob_error", "probs_diff_mean"}


def test_clip_formulas_state_the_epsilons_of_the_user() -> None:
    settings = ObjectiveSettings(ppo_epsilon_low=0.11, gspo_epsilon_high=0.0004)
    assert "1 - 0.11" in all_metrics()["ppo_clip_fraction"].formula_at(settings)
    assert "1 + 0.0004" in all_metrics()["gspo_clip_fraction"].formula_at(settings)
