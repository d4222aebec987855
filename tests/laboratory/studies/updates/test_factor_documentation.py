"""The factor that is not a file of `factors/` is listed and explained all the same."""

import pytest

from rlaudit.cli.app import run
from rlaudit.errors import UsageError
from rlaudit.laboratory.studies.arms.plan import make_plan
from rlaudit.laboratory.studies.arms.recipe import Recipe


def test_the_factor_is_listed_with_the_others(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["list", "factors"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines == sorted(lines)
    assert any(line.startswith("weight-update ") for line in lines)


def test_the_factor_is_explained_with_its_levels(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain", "weight-update"]) == 0
    assert "keep, wait, abort; each with clear_cache" in capsys.readouterr().out


def test_the_keys_of_its_recipes_are_documented(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["list", "recipe-keys"]) == 0
    said = capsys.readouterr().out
    assert "perturbation:" in said and ": None" not in said


def test_an_ablation_recipe_that_names_it_is_sent_to_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    block = {"name": "one", "candidate": {"version": "0.18.1"}, "factors": {"weight-update": "keep"}}
    with pytest.raises(UsageError) as told:
        make_plan(Recipe.model_validate({"blocks": [block]}))
    assert "rlaudit ablate weight-update" in str(told.value.hint)
