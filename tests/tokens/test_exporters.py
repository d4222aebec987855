"""The snippets of examples/exporters: their pure part on small batches, read back as token tables."""

import importlib.util
from pathlib import Path

import pytest
from table_files import whole, write_lines

FOLDER = Path(__file__).parents[2] / "examples" / "exporters"
# Two rows: prompts of 1 and 2 tokens (padded on the left), completions of 2 and 3 tokens (padded on the right).
PROMPTS, PROMPT_MASK = [[0, 9], [8, 7]], [[0, 1], [1, 1]]
RESPONSES, MASK = [[5, 6, 0], [4, 3, 2]], [[1, 1, 0], [1, 1, 1]]
ROLLOUT, TRAINER = [[-0.5, -0.25, 0.0], [-1.0, -2.0, -3.0]], [[-0.4, -0.3, 0.0], [-1.1, -2.1, -3.1]]
ATTENDED = [[*left, *right] for left, right in zip(PROMPT_MASK, MASK, strict=True)]
SEQUENCES = [[*left, *right] for left, right in zip(PROMPTS, RESPONSES, strict=True)]
# OpenRLHF's per-action columns: column a is about token a + 1.
ACTIONS = [[0, *row] for row in MASK]


def snippet(name):
    path = FOLDER / f"{name}.py"
    spec = importlib.util.spec_from_file_location(f"exporter_{name}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def of_verl(module):
    batch = {
        "prompts": PROMPTS, "responses": RESPONSES, "attention_mask": ATTENDED, "response_mask": MASK,
        "rollout_log_probs": ROLLOUT, "old_log_probs": TRAINER,
    }  # fmt: skip
    return module.lines(batch, ["a", "b"], 3)


def of_trl(module):
    batch = {
        "prompt_ids": PROMPTS, "prompt_mask": PROMPT_MASK, "completion_ids": RESPONSES, "completion_mask": MASK,
        "sampling_per_token_logps": ROLLOUT, "old_per_token_logps": TRAINER, "advantages": [0.5, -0.5],
    }  # fmt: skip
    return module.lines(batch, 3, 0)


def of_skyrl(module):
    batch = {
        "sequences": SEQUENCES, "attention_mask": ATTENDED, "response_mask": MASK, "loss_mask": MASK,
        "rollout_logprobs": ROLLOUT, "action_log_probs": TRAINER,
    }  # fmt: skip
    return module.lines(batch, ["a", "b"], 3)


def of_openrlhf(module):
    batch = {
        "sequences": SEQUENCES, "attention_mask": ATTENDED, "action_mask": ACTIONS,
        "rollout_log_probs": [[0.0, *row] for row in ROLLOUT], "action_log_probs": [[0.0, *row] for row in TRAINER],
    }  # fmt: skip
    return module.lines(batch, ["a", "b"], 3, 0)


def of_miles(module):
    columns = {
        "sample_indices": [0, 1, 0], "tokens": [[9, 5, 6], [8, 7, 4, 3, 2], [9, 5, 6]], "response_lengths": [2, 3, 2],
        "rollout_log_probs": [ROLLOUT[0][:2], ROLLOUT[1], []], "log_probs": [TRAINER[0][:2], TRAINER[1], []],
        "loss_masks": [[1, 1], [1, 1, 1], []],
    }  # fmt: skip
    return module.lines(columns, 3, set())


CASES = {"miles": of_miles, "verl": of_verl, "trl": of_trl, "skyrl": of_skyrl, "openrlhf": of_openrlhf}


@pytest.mark.parametrize("name", CASES)
def test_an_exporter_writes_what_compare_reads(tmp_path, name):
    batch = whole(write_lines(tmp_path / "step_3.jsonl", CASES[name](snippet(name))))
    assert batch.lengths_S.tolist() == [2, 3]
    assert batch.token_id_T.tolist() == [5, 6, 4, 3, 2]
    assert batch.rollout_logprobs_T.tolist() == [-0.5, -0.25, -1.0, -2.0, -3.0]
    assert batch.trainer_logprobs_T.tolist() == [-0.4, -0.3, -1.1, -2.1, -3.1]
    assert [ids.tolist() for ids in batch.prompt_token_ids_S] == [[9], [8, 7]]
    assert batch.counts_T.all()
    assert len(set(batch.prompt_names_S.tolist())) == 2


def test_every_exporter_is_short_explained_and_tested():
    for path in FOLDER.glob("*.py"):
        text = path.read_text(encoding="utf-8")
        assert path.stem in CASES
        assert len(text.splitlines()) < 60
        assert "rlaudit compare rlaudit_tokens" in text
