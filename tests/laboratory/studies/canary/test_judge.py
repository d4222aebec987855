"""Which layer the log of a training convicts, fault by fault, and what is said of claims."""

from pathlib import Path

import pytest
from trainings import FAULTS, Canaries

from rlaudit.laboratory.studies.canary.judge import (
    CLIP_RATE,
    KL,
    REWARD,
    JudgedArm,
    Objective,
    Semantic,
    felt_k3,
    judge,
    judge_claims,
)
from rlaudit.laboratory.studies.canary.judge import Path as Way
from rlaudit.laboratory.studies.canary.words import layers_of
from rlaudit.layers import Layer, Verdict


@pytest.fixture
def canaries(tmp_path: Path) -> Canaries:
    return Canaries(tmp_path)


def judged(canaries: Canaries, fault: str, **arm: object) -> JudgedArm:
    plan = canaries.recipe([{"name": "V0"}, {"name": "V1", **arm}])
    return judge(canaries.finished(plan, {"V1": fault}))[1]


@pytest.mark.parametrize(
    ("fault", "semantic", "way", "objective"),
    [
        ("none", Semantic.MEANT, Way.CLEAN, Objective.NOTHING),
        ("raw", Semantic.RAW, Way.UNKNOWN, Objective.NOT_JUDGED),
        ("shifted", Semantic.SHIFTED, Way.UNKNOWN, Objective.NOT_JUDGED),
        ("coarse", Semantic.MEANT, Way.FROM_START, Objective.NOT_JUDGED),
        ("nothing arrives", Semantic.MEANT, Way.NOTHING_NEW, Objective.NOT_JUDGED),
        ("one late", Semantic.MEANT, Way.ONE_LATE, Objective.NOT_JUDGED),
        ("in part", Semantic.MEANT, Way.IN_PART, Objective.NOT_JUDGED),
        ("lag", Semantic.MEANT, Way.CLEAN, Objective.LAG),
        ("ahead", Semantic.MEANT, Way.CLEAN, Objective.LAG),
        ("ahead on old keys", Semantic.MEANT, Way.OLD_KEYS, Objective.NOT_JUDGED),
    ],
)
def test_a_fault_is_told_by_when_it_begins_and_by_which_weights_fit(
    canaries: Canaries, fault: str, semantic: Semantic, way: Way, objective: Objective
) -> None:
    found = judged(canaries, fault)
    assert (found.semantic, found.path, found.objective) == (semantic, way, objective)


def test_updates_that_met_requests_are_told_with_what_became_of_them(canaries: Canaries) -> None:
    layers = {layer.layer: layer for layer in layers_of(judged(canaries, "ahead on old keys"))}
    path = layers[Layer.INFERENCE_PATH]
    assert path.verdict is Verdict.MISMATCH and "clear_cache=True" in path.next
    # 29 steps after the first, three seeds.
    assert any("updates met 5568 requests in flight: k3 0.0003" in said for said in path.evidence)
    lagging = {layer.layer: layer for layer in layers_of(judged(canaries, "ahead"))}[Layer.OBJECTIVE]
    assert "1.4 updates old on average and no token more than 2" in lagging.because


def test_a_trainer_that_does_not_divide_is_told_from_raw_logprobs(canaries: Canaries) -> None:
    assert judged(canaries, "not divided", trainer={"temperature": "ignore"}).semantic is Semantic.NOT_DIVIDED


def test_a_stale_cache_is_convicted_by_the_arm_that_clears_it_and_not_without_one(canaries: Canaries) -> None:
    kept = {"name": "kept", "updates": {"mode": "keep", "clear_cache": False}}
    alone = canaries.recipe([{"name": "V0", "version": "0.8.5"}, kept])
    assert judge(canaries.finished(alone, {"kept": "stale cache"}))[1].path is Way.IN_PART
    paired = canaries.recipe([{"name": "V0", "version": "0.8.5"}, kept, {"name": "cleared"}])
    assert judge(canaries.finished(paired, {"kept": "stale cache"}))[1].path is Way.STALE_CACHE
    # A part that is not updated is none, whatever the twin says: nothing came from a cache.
    assert judge(canaries.finished(paired, {"kept": "in part"}))[1].path is Way.IN_PART


@pytest.mark.parametrize("fault", FAULTS)
def test_a_layer_is_judged_when_the_one_before_it_is_clean(canaries: Canaries, fault: str) -> None:
    layers = layers_of(judged(canaries, fault))
    assert [layer.layer for layer in layers] == list(Layer)
    verdicts = [layer.verdict for layer in layers]
    if Verdict.MISMATCH in verdicts:
        place = verdicts.index(Verdict.MISMATCH)
        assert set(verdicts[:place]) <= {Verdict.MATCH}
        assert set(verdicts[place + 1 :]) <= {Verdict.NOT_TESTED}
        assert layers[place].next
        assert layers[place].falsifier


def test_a_correction_over_a_broken_backend_is_said_to_hide_it_and_never_recommended(canaries: Canaries) -> None:
    semantic = layers_of(judged(canaries, "raw", correction="tis"))[0]
    assert any("tis hides it" in said for said in semantic.evidence)
    assert "correction" not in semantic.next
    assert not any("hides" in said for said in layers_of(judged(canaries, "raw"))[0].evidence)


def test_a_lag_that_the_log_names_is_left_to_the_objective(canaries: Canaries) -> None:
    layers = layers_of(judged(canaries, "lag"))
    assert [layer.verdict for layer in layers] == [Verdict.MATCH, Verdict.MATCH, Verdict.MISMATCH]


def test_seeds_on_both_sides_show_a_drift_of_the_reward(canaries: Canaries) -> None:
    plan = canaries.recipe([{"name": "V0"}, {"name": "V1"}, {"name": "bent"}])
    _, same, bent = judge(canaries.finished(plan, {}, {"bent": -0.05}))
    assert REWARD in {result.name for result in bent.separated}
    assert not same.separated


def test_a_claim_holds_or_not_or_is_not_decided(canaries: Canaries) -> None:
    claims = [
        {"says": "raw bends the clip rate", "arm": "raw", "metric": CLIP_RATE, "expects": "separated"},
        {"says": "the fix leaves a gap", "arm": "fixed", "metric": "any", "expects": "separated"},
        {"says": "the fix leaves nothing", "arm": "fixed", "metric": "any", "expects": "not separated"},
        {"says": "the fix bends the reward", "arm": "fixed", "metric": REWARD, "expects": "separated"},
        {"says": "of a dead arm", "arm": "dead", "metric": "any", "expects": "separated"},
    ]
    arms = [{"name": name} for name in ("V0", "raw", "fixed", "dead")]
    plan = canaries.recipe(arms, claims=claims)
    canaries.failed["dead"] = "it died"
    found = judge_claims(plan.recipe, judge(canaries.finished(plan, {"raw": "raw"})))
    assert [one.verdict for one in found] == [
        Verdict.MATCH,
        Verdict.MISMATCH,
        Verdict.MATCH,
        # Noise stands before the answer: a small difference would not be seen.
        Verdict.INCONCLUSIVE,
        Verdict.INCONCLUSIVE,
    ]


def test_what_the_objective_feels_follows_its_clip_range(canaries: Canaries) -> None:
    arms = [{"name": "V0"}, {"name": "V1"}]
    gspo = felt_k3(canaries.recipe(arms).recipe)
    ppo = felt_k3(canaries.recipe(arms, training={"objective": "ppo"}).recipe)
    assert gspo == pytest.approx(0.5 * 3e-4**2)
    assert ppo == pytest.approx(0.5 * 0.2**2)


def test_rounding_that_grows_is_no_difference(canaries: Canaries, monkeypatch: pytest.MonkeyPatch) -> None:
    """A k3 of 1e-13 that becomes 1e-10 is what another order of summing leaves."""
    grown = {"rlaudit/backend_k3": 1e-10, "rlaudit/raw_k3": 6e-3, "rlaudit/processed_k3": 1e-10}
    monkeypatch.setitem(FAULTS, "rounding", (FAULTS["none"][0], grown))
    assert KL not in [one.name for one in judged(canaries, "rounding").separated]
    monkeypatch.setitem(FAULTS, "felt", (FAULTS["none"][0], {**grown, "rlaudit/backend_k3": 1e-3}))
    assert KL in [one.name for one in judged(canaries, "felt").separated]
