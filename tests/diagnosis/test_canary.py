"""At which step an arm's curves leave the reference's band, what is said of claims, and which exit code follows."""

from pathlib import Path

import pytest
from trainings import STEPS, Canaries

from rlaudit.diagnosis.canary import (
    ANY,
    CLIP_RATE,
    KL,
    RATIO,
    REWARD,
    JudgedArm,
    exit_code,
    judge,
    judge_claims,
)
from rlaudit.layers import Verdict


@pytest.fixture
def canaries(tmp_path: Path) -> Canaries:
    return Canaries(tmp_path)


def judged(canaries: Canaries, fault: str, reward: float = 0.0) -> list[JudgedArm]:
    plan = canaries.recipe([{"name": "V0"}, {"name": "V1"}, {"name": "same"}])
    return judge(canaries.finished(plan, {"V1": fault}, {"V1": reward}))


@pytest.mark.parametrize(("fault", "first"), [("raw", 1), ("after the first update", 2), ("ahead", 2)])
def test_an_arm_that_parts_is_named_by_curve_and_step_and_its_twin_is_not(
    canaries: Canaries, fault: str, first: int
) -> None:
    _, apart, same = judged(canaries, fault)
    steps = {result.name: result.detected_step for result in apart.separated}
    assert {CLIP_RATE, KL} <= set(steps)
    assert first <= steps[CLIP_RATE] <= first + 5
    assert apart.results[CLIP_RATE].onset_step == first
    assert not same.separated


def test_seeds_on_both_sides_show_a_drift_of_the_reward(canaries: Canaries) -> None:
    _, bent, same = judged(canaries, "none", -0.05)
    assert [result.name for result in bent.separated] == [REWARD]
    assert 1 < (bent.separated[0].detected_step or 0) <= STEPS
    assert not same.separated


def test_rounding_that_grows_is_no_difference(canaries: Canaries) -> None:
    """A k3 of 1e-12 that becomes 1e-10 is what another order of summing leaves."""
    assert KL not in {result.name for result in judged(canaries, "rounds differently")[1].separated}


def test_the_reference_is_compared_with_nothing(canaries: Canaries) -> None:
    reference, *others = judged(canaries, "none")
    assert reference.comparison is None and all(one.comparison for one in others)


@pytest.mark.parametrize(
    ("arm", "metric", "expects", "verdict"),
    [
        ("raw", CLIP_RATE, "separated", Verdict.MATCH),
        ("raw", ANY, "not separated", Verdict.MISMATCH),
        # The clip rate is 0 at every step of both: nothing is left that noise could hide.
        ("fixed", ANY, "separated", Verdict.MISMATCH),
        ("fixed", ANY, "not separated", Verdict.MATCH),
        # Noise stands before the answer: a small difference would not be seen.
        ("fixed", REWARD, "separated", Verdict.INCONCLUSIVE),
        ("fixed", "rl/unheard_of", "separated", Verdict.INCONCLUSIVE),
        ("dead", ANY, "separated", Verdict.INCONCLUSIVE),
    ],
)
def test_a_claim_holds_or_not_or_is_not_decided(
    canaries: Canaries, arm: str, metric: str, expects: str, verdict: Verdict
) -> None:
    claims = [{"says": "so it is", "arm": arm, "metric": metric, "expects": expects}]
    plan = canaries.recipe([{"name": name} for name in ("V0", "raw", "fixed", "dead")], claims=claims)
    canaries.failed["dead"] = "it died"
    (claim,) = judge_claims(plan.recipe, judge(canaries.finished(plan, {"raw": "raw"})))
    assert claim.verdict is verdict


BENDS = {"says": "raw bends it", "arm": "raw", "metric": CLIP_RATE, "expects": "separated"}
LEAVES = {"says": "raw leaves nothing", "arm": "raw", "metric": "any", "expects": "not separated"}
OPEN = {"says": "the fix bends the reward", "arm": "fixed", "metric": REWARD, "expects": "separated"}


@pytest.mark.parametrize(
    ("claims", "failed", "fails", "code"),
    [
        ([BENDS], "", True, 0),
        ([BENDS, LEAVES], "", True, 1),
        ([BENDS, LEAVES], "", False, 0),
        ([BENDS, OPEN], "", True, 3),
        ([LEAVES, OPEN], "", True, 3),
        ([BENDS], "fixed", True, 3),
        ([], "", True, 1),
        ([], "", False, 0),
        ([], "fixed", True, 3),
        ([], "V0", True, 3),
    ],
)
def test_claims_decide_the_exit_code_and_without_any_what_separated_does(
    canaries: Canaries, claims: list[dict[str, str]], failed: str, fails: bool, code: int
) -> None:
    plan = canaries.recipe([{"name": name} for name in ("V0", "raw", "fixed")], claims=claims)
    canaries.failed.update({failed: "it died"} if failed else {})
    arms = judge(canaries.finished(plan, {"raw": "raw"}))
    assert exit_code(arms, judge_claims(plan.recipe, arms), fails=fails) == code


def test_without_claims_a_null_exits_with_0(canaries: Canaries) -> None:
    arms = judged(canaries, "none")
    assert not any(arm.separated for arm in arms)
    assert exit_code(arms, [], fails=True) == 0


def test_a_curve_that_a_seed_lacks_has_no_level(canaries: Canaries) -> None:
    arm = judged(canaries, "none")[1]
    assert arm.level(RATIO, end=True) == pytest.approx(1.0, abs=1e-6)
    assert arm.level("rl/unheard_of") is None
