"""Version lag per token, and what it does beside what the engine does."""

import pytest
from flights import ScoredFlights, run_of

from rlaudit.diagnosis.updates.lag import lag_groups
from rlaudit.statistics.measurement.metric import ObjectiveSettings


def test_tokens_are_grouped_by_how_old_their_weights_are_when_the_sequence_ends() -> None:
    flights = run_of("flight", [0, 0, 1, 2, None], finished=2)
    scored = ScoredFlights().add(flights, v0=0.0, v1=0.0, v2=0.4)
    groups = lag_groups(scored.tokens(), ObjectiveSettings())
    assert [(group.lag, group.tokens) for group in groups] == [(0, 32), (1, 32), (2, 64)]


def test_lag_moves_what_the_trainer_sees_and_not_what_the_right_weights_say() -> None:
    scored = ScoredFlights().add(run_of("flight", [0, 0, 0, 0], finished=1), v0=0.0, v1=0.4)
    (group,) = lag_groups(scored.tokens(), ObjectiveSettings())
    assert group.lag == 1
    assert group.right_weights["k3"].value == pytest.approx(0.0, abs=1e-6)
    assert group.trainer_weights["k3"].value == pytest.approx(0.08, rel=0.5)
    assert (group.trainer_weights["ppo_clip_fraction"].value or 0) > 0.5
