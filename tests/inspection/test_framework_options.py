"""A framework's own switches are rows of the report, with value and line."""

import json
from pathlib import Path

import pytest

from rlaudit.cli.app import run

VERL = (
    "actor_rollout_ref:\n  rollout: {name: vllm, n: 8}\nalgorithm:\n  rollout_correction: {rollout_is: token}\n"
    "data:\n  max_response_length: 4096\n"
)
TRL = "use_vllm: true\nvllm_mode: colocate\nvllm_importance_sampling_cap: 2.0\nnum_generations: 8\nepsilon_high: 0.28\n"
UNSLOTH = """\
from unsloth import FastLanguageModel
from trl import GRPOConfig
model, tok = FastLanguageModel.from_pretrained("m", fast_inference=True)
args = GRPOConfig(use_vllm=True, num_generations=8)
"""
OPENRLHF = "python -m openrlhf.cli.train_ppo_ray --vllm_num_engines 2 --enable_vllm_is_correction\n"


@pytest.mark.parametrize(
    ("name", "text", "wanted"),
    [
        (
            "v.yaml",
            VERL,
            {
                "actor_rollout_ref.rollout.n": (8, 2),
                "algorithm.rollout_correction.rollout_is": ("token", 4),
                "data.max_response_length": (4096, 6),
            },
        ),
        (
            "t.yaml",
            TRL,
            {
                "use_vllm": (True, 1),
                "vllm_mode": ("colocate", 2),
                "vllm_importance_sampling_cap": (2.0, 3),
                "epsilon_high": (0.28, 5),
            },
        ),
        ("u.py", UNSLOTH, {"fast_inference": (True, 3), "num_generations": (8, 4)}),
        ("o.sh", OPENRLHF, {"vllm_num_engines": (2, 1), "enable_vllm_is_correction": (True, 1)}),
    ],
)  # fmt: skip
def test_switches_and_corrections_are_listed(
    name: str, text: str, wanted: dict[str, tuple[object, int]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    Path(name).write_text(text)
    run(["inspect", name, "--from", "0.11.2", "--to", "0.18.1", "--output", "json"])
    rows = json.loads(capsys.readouterr().out)["settings"]
    written = [row for row in rows if row.get("group") == "framework" and row["location"] is not None]
    found = {row["name"]: (row["written"], row["location"]["line"]) for row in written}
    assert wanted.items() <= found.items()
