"""What each release is given of a recipe for many."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from releases.recipe_of_release import recipes_by_release

from rlaudit.errors import UsageError


@pytest.mark.parametrize(
    ("release", "path"), [("0.8.5", "load_weights"), ("0.15.1", "load_weights"), ("0.16.0", None), ("0.32.0", None)]
)
def test_a_release_without_a_reload_from_a_folder_is_updated_by_load_weights(release: str, path: str | None) -> None:
    _, _, recipes = recipes_by_release("updates-by-release", release, "cpu")
    recipe: Any = recipes[release]
    (engine,) = recipe.weight_updates.engines
    assert (engine.version, engine.path) == (release, path)


def test_a_path_that_the_recipe_writes_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(yaml.safe_dump({"weight_updates": {"engines": [{"path": "load_weights"}]}}))
    _, _, recipes = recipes_by_release(str(path), "0.8.5", "cpu")
    recipe: Any = recipes["0.8.5"]
    (engine,) = recipe.weight_updates.engines
    assert engine.path == "load_weights"


@pytest.mark.parametrize(("name", "count"), [("every-release", 43), ("updates-by-release", 9)])
def test_a_recipe_here_names_releases_with_a_build_for_this_machine(name: str, count: int) -> None:
    _, _, recipes = recipes_by_release(name, None, "cpu")
    assert len(recipes) == count and [*recipes][-1] == "0.32.0"


def test_of_a_pair_the_release_takes_the_place_of_the_candidate_and_no_reference_is_left() -> None:
    _, _, recipes = recipes_by_release("sampling-parameters", "0.8.5..0.9.0", "cpu")
    assert list(recipes) == ["0.8.5", "0.9.0"]
    for release, recipe in recipes.items():
        blocks: Any = recipe.blocks  # type: ignore[attr-defined]
        assert {block.candidate.version for block in blocks} == {release}
        assert {block.reference for block in blocks} == {None}


def test_releases_of_trainings_are_refused_as_one_run_compares_them() -> None:
    with pytest.raises(UsageError, match="trainings"):
        recipes_by_release("canary", "0.18.1", "cpu")
