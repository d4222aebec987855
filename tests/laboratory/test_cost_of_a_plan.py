"""What --dry-run says a plan will take."""

import json
import re
from pathlib import Path

import pytest

from rlaudit.cli.app import run

LLAMA = {"model_type": "llama", "dtype": "float32", "hidden_size": 64, "num_attention_heads": 8, "vocab_size": 1000}


def minutes(recipe: str, model: Path, weights: int, capsys: pytest.CaptureFixture[str]) -> int:
    model.mkdir(exist_ok=True)
    (model / "config.json").write_text(json.dumps(LLAMA))
    with (model / "model.safetensors").open("wb") as file:
        file.truncate(4 * weights)
    run(["ablate", recipe, "--model", str(model), "--dry-run", "--cpu", "--run-dir", str(model / "run")])
    found = re.search(r"minutes: about (\d+)", capsys.readouterr().out)
    assert found
    return int(found[1])


@pytest.mark.parametrize("recipe", ["quick", "canary", "weight-update"])
def test_a_larger_model_takes_longer(recipe: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tiny, small, large = (
        minutes(recipe, tmp_path / "model", weights, capsys) for weights in (10_000, 500_000_000, 1_500_000_000)
    )
    assert tiny < small < large
