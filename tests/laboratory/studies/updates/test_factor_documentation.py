"""The factor that is not a file of `factors/` is listed and explained all the same."""

import pytest

from rlaudit.cli.app import run
from rlaudit.errors import UsageError
from rlaudit.laboratory.studies.arms.plan import make_plan
from rlaudit.laboratory.studies.arms.recipe import Recipe


def test_the_factor_is_listed_and_explained_with_its_levels_and_the_keys_of_its_recipes(
    capsys: pytest.CaptureFixture[str],
) -> None:
    said = []
    for words in (["list", "factors"], ["explain", "weight-update"], ["list", "recipe-keys"]):
        assert run(words) == 0
        said.append(capsys.readouterr().out)
    lines = said[0].splitlines()
    assert lines == sorted(lines) and any(line.startswith("weight-update ") for line in lines)
    assert "keep, wait, abort; each with clear_cache" in said[1]
    assert "perturbation:" in said[2] and ": None" not in said[2]


def test_an_ablation_recipe_that_names_it_is_sent_to_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    block = {"name": "one", "candidate": {"version": "0.18.1"}, "factors": {"weight-update": "keep"}}
    with pytest.raises(UsageError) as told:
        make_plan(Recipe.model_validate({"blocks": [block]}))
    assert "rlaudit ablate weight-update" in str(told.value.hint)
