"""The objective layer on figures alone: judged last, and never over an open layer."""

from types import SimpleNamespace
from typing import Any

import pytest

from rlaudit.diagnosis.objective import SHOWN, judge_objective_of_arm
from rlaudit.layers import Judgement, Layer, Verdict, judged_as
from rlaudit.measurement.metric import Clip, ObjectiveSettings

Figures = tuple[float, float | None, float | None]
CLEAN: Figures = (0.0, 0.0, 0.005)


SETTINGS = ObjectiveSettings()


def arm(ppo: Figures = CLEAN, gspo: Figures = CLEAN, tail: float = 0.0, k2: Figures = (0.1, 0.1, 0.1)) -> Any:
    figures: dict[str, Figures] = dict.fromkeys(SHOWN, (1.0, None, None)) | {"k2": k2, "sequence_k2": k2}
    figures |= {"ppo_clip_fraction": ppo, "gspo_clip_fraction": gspo, "tail_fraction_2": (tail, None, None)}
    names = ("value", "low", "high")
    measurements = {
        name: SimpleNamespace(tokens=12, sequences=2, reliable=True, **dict(zip(names, found, strict=True)))
        for name, found in figures.items()
    }
    return SimpleNamespace(name="candidate", measurements=measurements)


def earlier(semantic: Verdict = Verdict.MATCH, path: Verdict = Verdict.MATCH) -> list[Judgement]:
    return [judged_as(Layer.SEMANTIC, semantic, ""), judged_as(Layer.INFERENCE_PATH, path, "")]


@pytest.mark.parametrize("verdict", [Verdict.MISMATCH, Verdict.INCONCLUSIVE, Verdict.NOT_TESTED])
def test_no_correction_is_advised_over_an_open_layer(verdict: Verdict) -> None:
    judged = judge_objective_of_arm(arm(gspo=(1.0, 0.9, 1.0)), earlier(path=verdict), SETTINGS, None)
    assert judged.verdict is Verdict.NOT_TESTED
    assert "inference path layer comes first" in judged.because
    both = judge_objective_of_arm(arm(gspo=(1.0, 0.9, 1.0)), earlier(verdict, verdict), SETTINGS, None)
    assert "the semantic and the inference path layers come first" in both.because
    assert "no importance-sampling correction" in judged.next
    both = judge_objective_of_arm(arm(), earlier(verdict, verdict), SETTINGS, None)
    assert "the semantic and the inference path layer" in both.because


def test_clipping_below_one_per_cent_with_its_whole_interval_matches() -> None:
    assert judge_objective_of_arm(arm(), earlier(), SETTINGS, None).verdict is Verdict.MATCH


@pytest.mark.parametrize("name", tuple(Clip))
def test_an_interval_that_reaches_over_one_per_cent_is_inconclusive(name: str) -> None:
    figures: dict[str, Any] = {name.split("_", maxsplit=1)[0]: (0.0, 0.0, 0.1)}
    judged = judge_objective_of_arm(arm(**figures), earlier(), SETTINGS, None)
    assert judged.verdict is Verdict.INCONCLUSIVE
    assert "more sequences" in judged.next


def test_a_k2_too_small_to_clip_a_hundredth_matches_however_few_prompts_there_are() -> None:
    few = {"ppo": (0.0, 0.0, 0.1), "gspo": (0.0, 0.0, 0.1)}
    assert judge_objective_of_arm(arm(**few, k2=(0.0, 0.0, 1e-8)), earlier(), SETTINGS, None).verdict is Verdict.MATCH
    # 2 x mean square / epsilon^2 is 1.3 % of sequences at GSPO's 0.02.
    assert (
        judge_objective_of_arm(arm(**few, k2=(0.0, 0.0, 2.5e-6)), earlier(), SETTINGS, None).verdict
        is Verdict.INCONCLUSIVE
    )


def test_a_range_that_the_objective_does_not_have_is_not_held_against_it() -> None:
    clipped = arm(gspo=(1.0, 0.9, 1.0))
    assert judge_objective_of_arm(clipped, earlier(), SETTINGS, None).verdict is Verdict.MISMATCH
    only_tokens = ObjectiveSettings(clips=(Clip.TOKENS,))
    assert judge_objective_of_arm(clipped, earlier(), only_tokens, None).verdict is Verdict.MATCH


def test_clip_fractions_without_an_interval_are_inconclusive_and_not_fine() -> None:
    assert judge_objective_of_arm(arm(ppo=(0.0, None, None)), earlier(), SETTINGS, None).verdict is Verdict.INCONCLUSIVE


@pytest.mark.parametrize(
    ("figures", "advice"),
    [
        ({"gspo": (0.5, 0.4, 0.6)}, "widen gspo_epsilon"),
        ({"ppo": (0.05, 0.04, 0.06), "tail": 0.01}, "mask them (MIS, or IcePop"),
        ({"ppo": (0.05, 0.04, 0.06)}, "truncated importance sampling (TIS)"),
    ],
)
def test_the_advice_fits_what_is_clipped(figures: dict[str, Any], advice: str) -> None:
    judged = judge_objective_of_arm(arm(**figures), earlier(), SETTINGS, None)
    assert judged.verdict is Verdict.MISMATCH
    assert advice in judged.because


def test_without_figures_nothing_is_said() -> None:
    assert judge_objective_of_arm(None, earlier(), SETTINGS, None).verdict is Verdict.NOT_TESTED
