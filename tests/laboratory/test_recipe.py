from pathlib import Path
from typing import Any, Literal

import pytest
import yaml

from rlaudit.errors import UsageError
from rlaudit.laboratory.prompts import load_prompts
from rlaudit.laboratory.recipe import find_recipe, recipe_folders
from rlaudit.laboratory.studies.arms.plan import Role, make_plan
from rlaudit.laboratory.studies.arms.recipe import Recipe, recipe_of
from rlaudit.laboratory.study import load_study

# `weight-update` has a course of its own (tests/laboratory/studies/updates).
RECIPES = [path for folder in recipe_folders() for path in folder.glob("*.yaml")]
SHIPPED = sorted(path.stem for path in RECIPES if "blocks" in path.read_text(encoding="utf-8"))
ROOT = Path(__file__).parents[2]
OURS = [path for path in sorted((ROOT / "examples").rglob("*.yaml"))
        if "rlaudit-recipe/" in path.read_text(encoding="utf-8")]  # fmt: skip
BLOCK = {"name": "one", "candidate": {"version": "0.18.1"}}


def loaded(tmp_path: Path, profile: Literal["cpu", "cuda"], **keys: Any) -> Recipe:
    path = tmp_path / "recipe.yaml"
    path.write_text(yaml.safe_dump({"schema": "rlaudit-recipe/1", "blocks": [BLOCK]} | keys))
    return load_study(str(path), profile)[1]


assert {"quick", "v0-to-v1"} <= set(SHIPPED)


@pytest.mark.parametrize("name", SHIPPED)
@pytest.mark.parametrize("profile", ["cpu", "cuda"])
def test_every_shipped_recipe_makes_a_plan_on_both_profiles(name: str, profile: Literal["cpu", "cuda"]) -> None:
    recipe = load_study(name, profile)[1]
    plan = make_plan(recipe)
    assert recipe.description
    assert all(block.with_role(Role.CANDIDATE) for block in plan.blocks)
    assert load_prompts(recipe.prompts).prompts
    for block in plan.blocks:
        names = [arm.name for arm in block.arms]
        assert len(set(names)) == len(names)
        assert all(arm.against is None or arm.against in names for arm in block.arms)


@pytest.mark.parametrize("path", OURS, ids=lambda path: path.stem)
def test_recipes_of_examples_are_read(path: Path) -> None:
    assert load_study(str(path), "cpu")[1].description


def test_files_that_a_recipe_names_lie_beside_it_or_where_the_command_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, beside = tmp_path / "here", tmp_path / "beside"
    for folder in (here, beside):
        folder.mkdir()
        (folder / "both.txt").write_text("one\n")
    (here / "only.txt").write_text("one\n")
    (beside / "mine.py").write_text("def reward(token_ids, text, answer):\n    return 0.0\n")
    monkeypatch.chdir(here)
    assert loaded(beside, "cpu", prompts="both.txt").prompts == str(beside / "both.txt")
    assert loaded(beside, "cpu", prompts="only.txt").prompts == "only.txt"
    assert loaded(beside, "cpu", prompts="arithmetic").prompts == "arithmetic"
    recipe = beside / "training.yaml"
    arms = [{"name": "V0", "version": "0.8.5"}, {"name": "V1", "version": "0.18.1"}]
    keys = {"schema": "rlaudit-recipe/1", "description": "", "training": {"reward": "mine.py"}, "arms": arms}
    recipe.write_text(yaml.safe_dump(keys))
    assert load_study(str(recipe), "cpu")[1].training.reward == str(beside / "mine.py")


def test_the_cpu_profile_is_laid_over_the_recipe_and_its_mappings_are_merged(tmp_path: Path) -> None:
    keys: dict[str, Any] = {
        "max_tokens": 128,
        "engine_args": {"max_model_len": 1024, "dtype": "bfloat16"},
        "cpu": {"max_tokens": 32, "engine_args": {"dtype": "float32"}},
    }
    on_cpu, on_cuda = (loaded(tmp_path, profile, **keys).blocks[0] for profile in ("cpu", "cuda"))  # type: ignore[arg-type]
    assert (on_cpu.max_tokens, on_cuda.max_tokens) == (32, 128)
    assert on_cpu.engine_args == {"max_model_len": 1024, "dtype": "float32"}
    assert on_cuda.engine_args == {"max_model_len": 1024, "dtype": "bfloat16"}
    # Null takes a key out.
    block = BLOCK | {"factors": {"dummy": ["on"], "dtype": ["float32"]}, "cpu": {"factors": {"dtype": None}}}
    on_cpu, on_cuda = (loaded(tmp_path, profile, blocks=[block]).blocks[0] for profile in ("cpu", "cuda"))  # type: ignore[arg-type]
    assert (set(on_cpu.factors), set(on_cuda.factors)) == ({"dummy"}, {"dummy", "dtype"})


def test_a_block_s_own_keys_win_over_the_recipe_s_and_its_cpu_keys_over_both(tmp_path: Path) -> None:
    block = BLOCK | {"samples": 3, "engine_args": {"block_size": 32}, "cpu": {"samples": 5}}
    keys: dict[str, Any] = {"samples": 2, "engine_args": {"block_size": 16, "seed": 1}, "blocks": [block]}
    assert loaded(tmp_path, "cuda", **keys).blocks[0].samples == 3
    on_cpu = loaded(tmp_path, "cpu", **keys, cpu={"samples": 4}).blocks[0]
    assert on_cpu.samples == 5
    assert on_cpu.engine_args == {"block_size": 32, "seed": 1}


def test_an_overlay_leaves_the_document_that_was_read_alone() -> None:
    document = {"samples": 2, "cpu": {"samples": 4}, "blocks": [dict(BLOCK)]}
    recipe_of(document, Path("mine.yaml"), "cpu")
    assert document == {"samples": 2, "cpu": {"samples": 4}, "blocks": [BLOCK]}


def test_levels_that_yaml_reads_as_booleans_are_words_again(tmp_path: Path) -> None:
    path = tmp_path / "recipe.yaml"
    path.write_text(
        "schema: rlaudit-recipe/1\n"
        "blocks:\n"
        "  - name: one\n"
        "    candidate: {version: 0.18.1, levels: {prefix-caching: off}}\n"
        "    factors: {async-scheduling: off, dummy: [on, off], enforce-eager: yes}\n"
    )
    block = load_study(str(path), "cpu")[1].blocks[0]
    assert block.candidate.levels == {"prefix-caching": "off"}
    assert block.factors == {"async-scheduling": ["off"], "dummy": ["on", "off"], "enforce-eager": ["on"]}


@pytest.mark.parametrize(
    ("document", "says"),
    [
        (
            {"blocks": [BLOCK], "sampels": 3, "modell": "x"},
            r"unknown key \w+; did you mean (samples|model)\? \(and 1 more\)",
        ),
        # Said before the key that the slip leaves missing.
        ({"schema": "rlaudit-recipe/1", "block": []}, "unknown key block; did you mean blocks"),
        (
            {"versions": ["0.18.1"], "blocks": [{"name": "x"}]},
            r"the key versions was removed: .*rlaudit explain VERSION.*--bisect",
        ),
    ],
    ids=["two slips", "a slip in a key that is needed", "a key that was removed"],
)
def test_a_slip_is_refused_with_what_was_meant(document: dict[str, Any], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        recipe_of(document, Path("x.yaml"), "cuda")


def test_a_recipe_that_is_not_utf8_is_told_so(tmp_path: Path) -> None:
    path = tmp_path / "recipe.yaml"
    path.write_bytes(b"description: caf\xe9\n")
    with pytest.raises(UsageError, match="not readable as YAML"):
        load_study(str(path), "cpu")


def test_the_path_of_a_shipped_recipe_in_a_checkout_finds_it_from_anywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert find_recipe("recipes/quick.yaml") == find_recipe("quick")
    with pytest.raises(UsageError, match=r"recipes/other\.yaml: no such file"):
        find_recipe("recipes/other.yaml")
