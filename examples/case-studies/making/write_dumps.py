"""Rollouts and scores in the formats that people have: rlaudit's table, dumps of prime-rl, NeMo-RL and PipelineRL."""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

DIGITS = 5
MASKED = -100


def short(values):
    """Numbers as a log writes them."""
    return np.round(np.asarray(values, dtype=np.float64), DIGITS).tolist()


def write_lines(path, records):
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    text = "".join(json.dumps(record, separators=(",", ":")) + "\n" for record in records)
    Path(path).write_text(text, encoding="utf-8")


def table_records(rollout, trainer_logprobs_BT, samples, extra=None):
    """One record per sequence of rlaudit's own table; `samples` sequences share a prompt. extra: more columns, (B, T)
    or (B,)."""
    for row in range(len(rollout.tokens_BT)):
        yield {
            "prompt_id": row // samples,
            "sample_id": row % samples,
            "token_id": rollout.tokens_BT[row].tolist(),
            "rollout_logprob": short(rollout.logprobs_BT[row]),
            "trainer_logprob": short(trainer_logprobs_BT[row]),
            **{name: _plain(values[row]) for name, values in (extra or {}).items()},
        }


def _plain(value):
    if np.ndim(value) == 0:
        return value.item() if hasattr(value, "item") else value
    return np.asarray(value).tolist() if np.issubdtype(np.asarray(value).dtype, np.integer) else short(value)


def write_parquet(path, rollout, scores, samples):
    """One row per token with the best tokens of both sides: float32, as engines return them."""
    count, tokens = rollout.tokens_BT.shape
    rows = np.repeat(np.arange(count), tokens)

    def lists(values, kind):
        return pa.array(list(values.reshape(count * tokens, -1).astype(kind)))

    columns = {
        "prompt_id": pa.array((rows // samples).astype(np.int32)),
        "sample_id": pa.array((rows % samples).astype(np.int32)),
        "position": pa.array(np.tile(np.arange(tokens), count).astype(np.int32)),
        "token_id": pa.array(rollout.tokens_BT.ravel().astype(np.int32)),
        "rollout_logprob": pa.array(rollout.logprobs_BT.ravel().astype(np.float32)),
        "trainer_logprob": pa.array(scores.logprobs_BT.ravel().astype(np.float32)),
        "trainer_entropy": pa.array(scores.entropy_BT.ravel().astype(np.float32)),
        "rollout_top_ids": lists(rollout.top_ids_BTK, np.int32),
        "rollout_top_logprobs": lists(rollout.top_logprobs_BTK, np.float32),
        "trainer_top_ids": lists(scores.top_ids_BTK, np.int32),
        "trainer_top_logprobs": lists(scores.top_logprobs_BTK, np.float32),
    }
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), path, compression="zstd")


def prime_rl_records(step, rollout, scores):
    """prime-rl's token export: prompt and completion in one list, the first logprob is padding."""
    prompt = rollout.prompts_BP.shape[1]
    for row, sampled in enumerate(rollout.tokens_BT):
        before = [0.0] * prompt
        mask = [False] * prompt + [True] * len(sampled)
        yield {
            "schema_version": 1,
            "step": step,
            "rank": 0,
            "export_sequence_idx": row,
            "env_name": "reverse-text",
            "token_ids": [*rollout.prompts_BP[row].tolist(), *sampled.tolist()],
            "loss_mask": mask,
            "inference_logprobs": before + short(rollout.logprobs_BT[row]),
            "trainer_logprobs": before + short(scores.logprobs_BT[row]),
            "entropy": before + short(scores.entropy_BT[row]),
        }


def nemo_rl_records(rollout, scores):
    """NeMo-RL's train_data: values of one sample stand in a list of one."""
    prompt = rollout.prompts_BP.shape[1]
    for row, sampled in enumerate(rollout.tokens_BT):
        yield {
            "token_ids": [[*rollout.prompts_BP[row].tolist(), *sampled.tolist()]],
            "token_loss_mask": [[0] * prompt + [1] * len(sampled)],
            "sample_loss_mask": [1],
            "generation_logprobs": [[0.0] * prompt + short(rollout.logprobs_BT[row])],
            "prev_logprobs": [[0.0] * prompt + short(scores.logprobs_BT[row])],
            "input_lengths": [prompt + len(sampled)],
            "idx": row,
        }


def pipelinerl_texts(rollout, samples, version):
    """PipelineRL's actor stream: a line holds the texts of one prompt, logprobs are of the completion only."""
    prompt = rollout.prompts_BP.shape[1]
    for first in range(0, len(rollout.tokens_BT), samples):
        yield [
            {
                "text": "",
                "n_predicted": len(rollout.tokens_BT[row]),
                "reward": 0.0,
                "logprobs": short(rollout.logprobs_BT[row]),
                "ref_logprobs": [],
                "input_ids": [*rollout.prompts_BP[row].tolist(), *rollout.tokens_BT[row].tolist()],
                "labels": [MASKED] * prompt + rollout.tokens_BT[row].tolist(),
                "group_id": f"group {first // samples}",
                "finished": True,
                "metadata": {"model_version": version, "rollout_index": row - first, "step_index": 0},
            }
            for row in range(first, first + samples)
        ]
