"""What an ablation knows of the defects of its engines, on the recipe that an H200 ran."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import yaml

from rlaudit.diagnosis.known_defects import KnownDefect, known_defects
from rlaudit.engines.hardware.accelerator import Accelerator
from rlaudit.engines.hardware.nvidia_driver import Device
from rlaudit.laboratory.studies.arms.plan import make_plan
from rlaudit.laboratory.studies.arms.recipe import Recipe, recipe_of
from rlaudit.report.read_report import read_report
from rlaudit.report.rendering.formats import markdown

MIGRATION = Path(__file__).parents[2] / "examples" / "gpu" / "migration.yaml"
H200 = Device(0, "GPU-0", "NVIDIA H200", 143_771, "sm90")
ON_GPU = Accelerator("cuda", H200.name, (H200,), "580.159", 16, 128_000, "13.0")


def defects(recipe: Recipe, folder: Path, failed: tuple[str, ...] = ()) -> dict[str, KnownDefect]:
    (folder / "config.json").write_text(json.dumps({"architectures": ["LlamaForCausalLM"], "dtype": "bfloat16"}))
    arms = {
        (block.name, arm.name): SimpleNamespace(arm=arm, ok=arm.name not in failed)
        for block in make_plan(recipe).blocks
        for arm in block.arms
    }
    setup = SimpleNamespace(accelerator=ON_GPU, model=SimpleNamespace(path=folder))
    run: Any = SimpleNamespace(arms=arms, setup=setup)
    return {defect.name: defect for defect in known_defects(run)}


def migration() -> Recipe:
    return recipe_of(yaml.safe_load(MIGRATION.read_text()), MIGRATION, "cuda")


def test_the_way_out_of_one_layer_may_lead_into_a_known_defect_of_the_next(tmp_path: Path) -> None:
    found = defects(migration(), tmp_path)
    rounded = found["rounded-processed-logprobs"]
    assert "migration: candidate + logprobs-mode=processed" in rounded.arms and "migration: parity" in rounded.arms
    assert not {"migration: candidate", "migration: reference"} & set(rounded.arms)
    assert "0.27.0" in rounded.way_out and rounded.layer.value == "inference path"


def test_a_release_without_the_defect_and_a_failed_arm_have_none(tmp_path: Path) -> None:
    recipe = migration()
    newer = recipe.blocks[0].candidate.model_copy(update={"version": "0.27.0"})
    recipe = recipe.model_copy(update={"blocks": [recipe.blocks[0].model_copy(update={"candidate": newer})]})
    assert "rounded-processed-logprobs" not in defects(recipe, tmp_path)
    everything = tuple(arm.name for arm in make_plan(migration()).blocks[0].arms)
    assert defects(migration(), tmp_path, failed=everything) == {}


def test_what_a_run_leaves_open_is_not_named(tmp_path: Path) -> None:
    """Whether weights are updated is not known of arms that load theirs once."""
    assert not {"stale-image-embeddings", "reload-resets-buffers"} & set(defects(migration(), tmp_path))


def test_a_report_names_them_with_their_arms_and_the_way_out(tmp_path: Path) -> None:
    report = read_report(MIGRATION.parents[1] / "vllm" / "v0-to-v1" / "report.json")
    report["known_defects"] = list(defects(migration(), tmp_path).values())
    text = " ".join(markdown.render(report, None).split())
    assert "rounded-processed-logprobs (migration: candidate + logprobs-mode=processed, " in text
    assert "Move to 0.27.0" in text
