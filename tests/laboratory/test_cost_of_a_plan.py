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


def test_minutes_for_a_model_of_unknown_size_say_with_which_size_they_are_reckoned(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    run(["ablate", "quick", "--model", "lab/of-7b", "--dry-run", "--cpu", "--run-dir", str(tmp_path / "run")])
    (line,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("minutes: ")]
    assert (
        "if lab/of-7b had 0.135 billion weights: its size is not known here: the hub's cache does not hold it" in line
    )
