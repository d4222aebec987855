"""A recipe of weight updates over many releases: what each release is given."""

from pathlib import Path

import pytest

from rlaudit.laboratory.studies.updates.of_release import of_release
from rlaudit.laboratory.studies.updates.recipe import update_recipe_of
from rlaudit.laboratory.study import load_study


@pytest.mark.parametrize(
    ("release", "path"), [("0.8.5", "load_weights"), ("0.15.1", "load_weights"), ("0.16.0", None), ("0.32.0", None)]
)
def test_a_release_without_a_reload_from_a_folder_is_updated_by_load_weights(release: str, path: str | None) -> None:
    _, recipe, _ = load_study("updates-by-release", "cpu")
    (engine,) = of_release(recipe, release, "cpu").weight_updates.engines
    assert (engine.version, engine.path) == (release, path)


def test_a_path_that_the_recipe_writes_is_kept() -> None:
    document = {"versions": ["0.8.5"], "weight_updates": {"engines": [{"path": "weight_transfer"}]}}
    recipe = update_recipe_of(document, Path("mine.yaml"))
    (engine,) = of_release(recipe, "0.8.5", "cpu").weight_updates.engines
    assert engine.path == "weight_transfer"


def test_the_recipe_of_one_release_names_no_others() -> None:
    _, recipe, _ = load_study("updates-by-release", "cuda")
    assert recipe.versions[0] == "0.8.5" and not of_release(recipe, "0.18.1", "cpu").versions


def test_a_range_of_releases_is_those_with_a_build() -> None:
    document = {"versions": "0.18.1..0.19.1", "weight_updates": {"engines": [{}]}}
    assert update_recipe_of(document, Path("mine.yaml"), "cpu").versions == ["0.18.1", "0.19.0", "0.19.1"]
