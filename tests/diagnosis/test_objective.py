"""The objective layer on figures alone: judged last, and never over an open layer."""

from types import SimpleNamespace
from typing import Any

import pytest

from rlaudit.diagnosis.objective import SHOWN, Fitting, fitting_correction, say_objective_of_arm
from rlaudit.layers import Layer, Verdict
from rlaudit.statistics.measurement.metric import Clip, ObjectiveSettings

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


CLEAN_LAYERS = (Verdict.MATCH, Verdict.MATCH)


def verdict(found: Any, settings: ObjectiveSettings = SETTINGS) -> Verdict:
    return say_objective_of_arm(found, CLEAN_LAYERS, settings, None).verdict


@pytest.mark.parametrize("open_", [Verdict.MISMATCH, Verdict.INCONCLUSIVE, Verdict.NOT_TESTED])
def test_no_correction_is_advised_over_an_open_layer(open_: Verdict) -> None:
    for earlier in ((Verdict.MATCH, open_), (open_, Verdict.MATCH), (open_, open_)):
        said = say_objective_of_arm(arm(gspo=(1.0, 0.9, 1.0)), earlier, SETTINGS, None)
        assert said.verdict is Verdict.NOT_TESTED
        assert said.because not in set(Fitting)
        named = [layer.value in said.because for layer in (Layer.SEMANTIC, Layer.INFERENCE_PATH)]
        assert named == [one is not Verdict.MATCH for one in earlier]


def test_clipping_below_one_per_cent_with_its_whole_interval_matches() -> None:
    assert verdict(arm()) is Verdict.MATCH


@pytest.mark.parametrize("name", tuple(Clip))
def test_an_interval_that_reaches_over_one_per_cent_is_inconclusive(name: str) -> None:
    figures: dict[str, Any] = {name.split("_", maxsplit=1)[0]: (0.0, 0.0, 0.1)}
    assert verdict(arm(**figures)) is Verdict.INCONCLUSIVE


def test_a_k2_too_small_to_clip_a_hundredth_matches_however_few_prompts_there_are() -> None:
    few = {"ppo": (0.0, 0.0, 0.1), "gspo": (0.0, 0.0, 0.1)}
    assert verdict(arm(**few, k2=(0.0, 0.0, 1e-8))) is Verdict.MATCH
    # 2 x mean square / epsilon^2 is 1.3 % of sequences at GSPO's 0.02.
    assert verdict(arm(**few, k2=(0.0, 0.0, 2.5e-6))) is Verdict.INCONCLUSIVE


def test_a_range_that_the_objective_does_not_have_is_not_held_against_it() -> None:
    clipped = arm(gspo=(1.0, 0.9, 1.0))
    assert verdict(clipped) is Verdict.MISMATCH
    assert verdict(clipped, ObjectiveSettings(clips=(Clip.TOKENS,))) is Verdict.MATCH


def test_clip_fractions_without_an_interval_are_inconclusive_and_not_fine() -> None:
    assert verdict(arm(ppo=(0.0, None, None))) is Verdict.INCONCLUSIVE


@pytest.mark.parametrize(
    ("figures", "fitting"),
    [
        ({"gspo": (0.5, 0.4, 0.6)}, Fitting.WIDEN),
        ({"ppo": (0.05, 0.04, 0.06), "tail": 0.01}, Fitting.MASK),
        ({"ppo": (0.05, 0.04, 0.06)}, Fitting.TRUNCATE),
    ],
)
def test_the_advice_fits_what_is_clipped(figures: dict[str, Any], fitting: Fitting) -> None:
    clipped = arm(**figures)
    assert verdict(clipped) is Verdict.MISMATCH
    assert fitting_correction(clipped.measurements, SETTINGS) is fitting


def test_without_figures_nothing_is_said() -> None:
    assert verdict(None) is Verdict.NOT_TESTED
