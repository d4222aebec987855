"""`compare` on a folder of files: each is a part, and all of them together are the log."""

import json

import numpy as np
import pandas as pd
import pytest
from test_compare import sampled

from rlaudit.cli.app import run


@pytest.fixture
def log(tmp_path):
    """Seven files of one log; prompts come again in other files, one file has a broken line."""
    folder = tmp_path / "log"
    for number in range(1, 8):
        write(folder, number)
    with (folder / "step_3.jsonl").open("a") as file:
        file.write('{"prompt_id": 1\n')
    return folder


def write(folder, number):
    folder.mkdir(exist_ok=True)
    lines = [
        json.dumps({**record, "prompt_id": f"p{(record['prompt_id'] + 10 * number) % 90}", "step": number})
        for record in sampled(seed=number)
    ]
    (folder / f"step_{number}.jsonl").write_text("\n".join(lines) + "\n")


def report_of(out, *words):
    out.unlink(missing_ok=True)
    code = run(["compare", *map(str, words), "--quiet", "--output", f"json:{out}"])
    return code, json.loads(out.read_text()) if out.exists() else None


def test_a_file_of_a_folder_whose_last_line_is_broken_is_read_up_to_there(log, tmp_path):
    code, report = report_of(tmp_path / "o.json", log)
    (log / "step_3.jsonl").write_text("\n".join((log / "step_3.jsonl").read_text().splitlines()[:-1]) + "\n")
    _, whole = report_of(tmp_path / "o.json", log)
    assert code == 3
    assert report["comparisons"][0]["files"] == 7
    assert report["comparisons"][0]["measurements"] == whole["comparisons"][0]["measurements"]


def tokens(prompts, first, seed, samples=2, length=4):
    """A token table with every kind of column that is kept: names, versions, rewards, lists, gaps."""
    rng = np.random.default_rng(seed)
    rows = prompts * samples * length
    rollout = -rng.exponential(0.5, rows)
    return pd.DataFrame(
        {
            "prompt_id": [f"p{first + row // (samples * length)}" for row in range(rows)],
            "sample_id": np.arange(rows) // length % samples,
            "position": np.arange(rows) % length,
            "token_id": rng.integers(0, 50, rows),
            "rollout_logprob": rollout,
            "trainer_logprob": np.minimum(rollout + 0.02 * rng.standard_normal(rows), 0.0),
            "rollout_version": np.repeat(rng.integers(0, 3, rows // length), length),
            "trainer_version": 3,
            "reward": np.repeat(rng.integers(0, 2, rows // length).astype(float), length),
            "trainer_entropy": rng.exponential(0.4, rows),
            "rollout_top_ids": [[1, 2]] * rows,
            "rollout_top_logprobs": [[-0.5, -1.5]] * rows,
        }
    )


def test_prompts_beyond_those_with_numbers_of_their_own_are_put_into_groups_over_all_files(tmp_path):
    # The second file has more prompts than there are numbers, and shares some with the others.
    log = tmp_path / "log"
    log.mkdir()
    for number, (prompts, first) in enumerate(((300, 0), (4500, 200), (300, 4600))):
        tokens(prompts, first, number).to_parquet(log / f"step_{number}.parquet", row_group_size=10_000)
    found = report_of(tmp_path / "o.json", log)[1]["comparisons"][0]
    assert found["measurements"]["k3"]["clusters"] == 4096
    assert any("random groups" in note for note in found["notes"])
    whole = pd.concat(pd.read_parquet(file) for file in sorted(log.iterdir()))
    log_ratio = whole.trainer_logprob - whole.rollout_logprob
    assert found["measurements"]["k2"]["value"] == pytest.approx(0.5 * (log_ratio**2).mean(), rel=1e-9)
