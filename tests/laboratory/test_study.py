"""A study is a folder; its recipes are told by a key that only they have."""

from pathlib import Path

import pytest

from rlaudit.errors import UsageError
from rlaudit.laboratory import studies
from rlaudit.laboratory.study import EngineWanted, known_studies, load_study

FOURTH = """
from rlaudit.laboratory.recipe import AnyRecipe
from rlaudit.laboratory.study import Study

STUDY = Study("fourth", "fourth", lambda document, path, profile: AnyRecipe(), None, None, None)
"""


def test_a_recipe_finds_its_study_by_a_key_that_no_other_study_has() -> None:
    known = known_studies()
    assert len({study.key for study in known.values()}) == len(known)
    found = {name: load_study(name, "cpu")[0].name for name in ("quick", "weight-update", "canary")}
    assert found == {"quick": "arms", "weight-update": "updates", "canary": "canary"}
    assert set(known) == set(found.values())


def test_a_recipe_with_no_key_of_any_study_is_refused_as_one_of_arms(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("schema: rlaudit-recipe/1\nmodel: a\n")
    with pytest.raises(UsageError, match="blocks: Field required"):
        load_study(str(path), "cpu")


def test_a_folder_is_all_that_another_study_takes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "fourth"
    folder.mkdir()
    (folder / "__init__.py").touch()
    (folder / "study.py").write_text(FOURTH)
    recipe = tmp_path / "mine.yaml"
    recipe.write_text("schema: rlaudit-recipe/1\nfourth: {}\n")
    monkeypatch.setattr(studies, "__path__", [*studies.__path__, str(tmp_path)])
    assert load_study(str(recipe), "cpu")[0].name == "fourth"


@pytest.mark.parametrize(
    ("engine_args", "device", "compiles"),
    [
        ({"enforce_eager": True}, "cpu", False),
        ({"enforce_eager": False}, "cpu", True),
        ({}, "cpu", True),
        ({"enforce_eager": True}, "cuda", True),
    ],
)
def test_an_eager_engine_on_a_processor_compiles_no_sampler(
    engine_args: dict[str, bool], device: str, *, compiles: bool
) -> None:
    variables = EngineWanted("an arm", "0.18.1", engine_args).variables(device)
    assert variables.get("TORCH_COMPILE_DISABLE") == (None if compiles else "1")


def test_a_variable_of_the_recipe_wins_over_what_a_processor_gets() -> None:
    engine = EngineWanted("an arm", "0.18.1", {"enforce_eager": True}, written={"TORCH_COMPILE_DISABLE": "0"})
    assert engine.variables("cpu")["TORCH_COMPILE_DISABLE"] == "0"
