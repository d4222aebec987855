"""The second world: its probabilities are known, its logs hold no label, and verdicts are those of `compare`."""

import numpy as np
import pyarrow.parquet as pq
import pytest
from evidence.known_policy.confusion import table_of, targets_of
from evidence.known_policy.faults import CAUSES
from evidence.known_policy.policy import END, VOCABULARY, Meaning
from evidence.known_policy.rollouts import new_world
from evidence.known_policy.trials import Row, Trial, rows, run_trials

from rlaudit.causes.attribution.attribute import all_causes
from rlaudit.errors import UsageError


def test_tokens_are_drawn_as_often_as_the_policy_says():
    world = new_world(np.random.default_rng(0))
    engine = world.log(np.random.default_rng(1)).engine
    drawn_SL = engine.token_SL >= 0
    # A draw's log p falls short of its mean, -H, by nothing but chance.
    off_T = (engine.logprob_SL + engine.entropy_SL)[drawn_SL]
    assert abs(off_T.mean()) < 4 * off_T.std() / np.sqrt(len(off_T))
    ends_S = engine.token_SL[np.arange(world.sequences), engine.length_S - 1] == END
    assert 0.5 < ends_S.mean() < 1


def test_a_filter_leaves_the_smallest_set_of_tokens_with_its_mass():
    logits_SV = np.random.default_rng(0).normal(0, 3, (4, VOCABULARY))
    none_SV = np.zeros(logits_SV.shape, np.int64)
    whole_SV, kept_SV = (
        np.exp(means.logprobs(logits_SV, none_SV > 0, none_SV)) for means in (Meaning(), Meaning(top_p=0.9))
    )
    mass_S = np.where(kept_SV > 0, whole_SV, 0).sum(axis=1)
    least_S = np.where(kept_SV > 0, whole_SV, 1).min(axis=1)
    assert np.all(mass_S >= 0.9) and np.all(mass_S - least_S < 0.9)
    assert np.allclose(kept_SV.sum(axis=1), 1)


def test_every_cause_that_a_log_shows_is_planted_at_three_doses():
    planted = set().union(*(fault.names for fault in CAUSES))
    # A table has no lengths of prompts: the edges of chunks are among what only looks like a cause. The others are
    # planted in the first world, and turns of conversations and masks in the tests of their readers.
    of_conversations = {"history-rendered-anew", "mask-off-sampled-span"}
    assert set(all_causes()) - planted == {"chunk-boundary", "other-base", "unrelated-rows", *of_conversations}
    assert all(len(fault.doses) == 3 for fault in CAUSES)
    with pytest.raises(UsageError, match="gravity"):
        rows(["gravity"])


def test_a_log_holds_no_label_and_what_its_fault_needs(tmp_path):
    row = Row("stale-weights", 2)
    row.world(1, np.random.default_rng(0)).write(tmp_path / "log.parquet", np.random.default_rng(1))
    columns = pq.read_schema(tmp_path / "log.parquet").names
    assert {"rollout_version", "trainer_version"} < set(columns)
    assert not {"trainer_entropy", "rollout_top_ids", "cached_tokens"} & set(columns)


def test_the_same_seed_gives_the_same_trials_and_a_shift_of_all_rows_is_named():
    found = [run_trials([Row("off-by-one", 2)], 1, 3, 1) for _ in range(2)]
    assert found[0] == found[1]
    assert found[0][0].right and not found[0][0].wrong


@pytest.mark.parametrize(
    ("name", "said", "right", "wrong"),
    [
        ("bos", (1, "mismatch", "not tested", {"bos"}), True, False),
        ("bos", (1, "mismatch", "not tested", {"retokenised"}), False, True),
        ("bos", (1, "mismatch", "not tested", set()), False, False),
        ("quantised-kv", (1, "mismatch", "not tested", set()), False, True),
        ("dropout", (1, "match", "mismatch", set()), True, False),
        ("dropout", (1, "match", "mismatch", {"moe-routing"}), False, True),
        ("one stale replica", (1, "match", "mismatch", {"wrong-weights"}), True, False),
        ("forced first words", (1, "match", "mismatch", set()), False, True),
        ("float32", (3, "inconclusive", "inconclusive", set()), True, False),
    ],
)
def test_what_is_right_and_wrong_of_a_row(name, said, right, wrong):
    code, semantic, path, named = said
    one = Trial(Row(name), code, semantic, path, frozenset(named))
    assert (one.right, one.wrong) == (right, wrong)


def test_a_fault_that_ends_with_0_and_an_honest_mismatch_miss_their_targets():
    matched = Trial(Row("bos", 2), 0, "match", "match", frozenset())
    honest = Trial(Row("float32"), 1, "match", "mismatch", frozenset())
    met = {target.title: target.met for target in targets_of([matched, honest])}
    assert not met["top doses that end with 0"] and not met["honest logs called a mismatch"]
    assert met["a wrong verdict of a fault"]
    assert table_of([honest]) == ["float32: right of 1: 0; WRONG 1 x exit 1, match, mismatch"]
