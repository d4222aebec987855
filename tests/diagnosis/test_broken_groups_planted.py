"""Sound logs whose samples of one prompt are no siblings: what is said, and that no cause is named."""

import numpy as np
import pytest
from broken_groups_planted import (
    best_of_each,
    copied,
    honest,
    kept_by_outcome,
    other_prompts,
    other_weights,
    with_tools,
)
from compare_tokens import compare

from rlaudit.diagnosis.compare_settings import CompareSettings
from rlaudit.layers import Verdict
from rlaudit.meaning.broken_groups import Broken
from rlaudit.meaning.candidates import RAW
from rlaudit.meaning.from_siblings import siblings_of
from rlaudit.tokens.sibling_groups import SiblingGroups

FAST = CompareSettings(replicates=200)


def siblings_in(batch):
    groups = SiblingGroups()
    groups.add(batch)
    return siblings_of(groups.groups())


def semantic_layer(batch):
    return compare([batch], RAW, RAW, FAST).layers[0]


@pytest.mark.parametrize(
    ("plant", "named"),
    [
        (lambda: copied(1.0, 16), Broken.COPIES),
        (lambda: copied(1.0, 4), Broken.COPIES),
        (lambda: copied(0.3, 2), Broken.COPIES),
        (lambda: copied(1.0, 16, length=4, sharpness=(1.0, 6.0)), Broken.COPIES),
        (lambda: copied(1.0, 2, length=4, sharpness=(1.0, 6.0)), Broken.COPIES),
        (lambda: kept_by_outcome(logged=True), Broken.CHOSEN),
        (lambda: best_of_each(logged=True), Broken.ONE_OUTCOME),
        (lambda: best_of_each(logged=False), Broken.UNEVEN),
        (lambda: other_weights(1.0, logged=False), Broken.OTHER_CONTEXTS),
        (lambda: other_prompts(3.0), Broken.OTHER_CONTEXTS),
    ],
    ids=[
        "one seed for a group",
        "every four samples one",
        "copies in a third of the prompts",
        "short completions of one seed",
        "short completions logged twice",
        "dynamic sampling",
        "best of n",
        "best of n without rewards",
        "other weights without versions",
        "other prompts",
    ],
)
def test_what_breaks_groups_is_named_and_the_verdict_stays_open(plant, named):
    layer = semantic_layer(plant())
    assert layer.verdict in {Verdict.INCONCLUSIVE, Verdict.NOTHING_FOUND}
    assert named.value in layer.evidence


@pytest.mark.parametrize("together", [2, 4, 16])
def test_the_few_prompts_that_hold_copies_are_left_out_and_counted(together):
    batch = copied(0.06, together)
    found = siblings_in(batch)
    assert 0 < found.left_out < 20
    assert not found.broken and not found.off_a_side
    layer = semantic_layer(batch)
    assert layer.verdict is not Verdict.MISMATCH


def test_groups_drawn_again_until_outcomes_differ_show_nothing_where_rewards_are_not_logged():
    assert not siblings_in(kept_by_outcome(logged=False)).off_a_side


@pytest.mark.parametrize("size", [0.1, 0.3, 1.0])
def test_samples_after_an_update_in_flight_are_judged_by_weights_where_versions_are_logged(size):
    found = siblings_in(other_weights(size, logged=True))
    assert not found.broken and not found.off_a_side
    assert found.report.draws < siblings_in(other_weights(size, logged=False)).report.draws


@pytest.mark.parametrize("size", [0.1, 0.2, 0.3, 0.4])
def test_a_small_update_in_flight_shows_nothing_where_no_version_is_logged(size):
    assert not siblings_in(other_weights(size, logged=False)).off_a_side


@pytest.mark.parametrize("reported", [np.nan, 0.0, -5.0])
def test_tokens_of_tools_that_the_loss_mask_leaves_out_change_nothing(reported):
    alone, given = siblings_in(honest()), siblings_in(with_tools(masked=True, reported=reported))
    assert given.report.draws == alone.report.draws
    assert given.report.step.value == pytest.approx(alone.report.step.value)
    assert given.broken == ()


def test_tokens_of_tools_without_a_loss_mask_show_nothing_where_they_are_reported_as_certain():
    assert semantic_layer(with_tools(masked=False, reported=0.0)).verdict is not Verdict.MISMATCH
