"""A checkpoint that was edited between two runs of one command line: nothing of the old one is kept."""

import json
import shutil

from laboratories import V1, Laboratory

PLAIN = {"name": "plain", "candidate": {"version": V1}, "repeats": 0}


def test_another_file_of_the_recipe_s_model_runs_every_cell_again(laboratory: Laboratory) -> None:
    for name in ("config.json", "tokenizer.json"):
        (laboratory.model / name).write_text("{}")
    recipe = laboratory.recipe(PLAIN)
    first = laboratory.ablate(recipe)
    for name in ("config.json", "tokenizer.json"):
        (laboratory.model / name).write_text('{"num_hidden_layers": 20}')
        edited = laboratory.ablate(recipe)
        assert first.exit_code == edited.exit_code
        assert (edited.report["run"]["cells_run"], edited.report["run"]["cells_kept"]) == (5, 0), name
    again = laboratory.ablate(recipe)
    assert (again.report["run"]["cells_run"], again.report["run"]["cells_kept"]) == (0, 5)


def test_another_file_of_an_arm_s_model_runs_that_arm_again_and_no_other(laboratory: Laboratory) -> None:
    other = laboratory.folder / "other"
    shutil.copytree(laboratory.model, other)
    recipe = laboratory.recipe(PLAIN | {"arms": [{"name": "other model", "model": str(other)}]})
    before = laboratory.ablate(recipe)
    (other / "config.json").write_text(json.dumps({"rope_theta": 1e6}))
    after = laboratory.ablate(recipe)
    assert after.arm("candidate")["cell"] == before.arm("candidate")["cell"]
    assert after.arm("other model")["cell"] != before.arm("other model")["cell"]
    assert after.report["run"]["cells_run"] == 1
