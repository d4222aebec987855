"""Honest logs in every format of a table of tokens or a dump, and the options of the command that reads them.

`honest_command(folder, random)` writes a command's files and gives its arguments; nothing is random but by `random`.
"""

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

Record = dict[str, Any]
VOCABULARY = 32
OPTIONS: tuple[tuple[str, ...], ...] = (
    ("--temperature", "1"), ("--temperature", "0.7"), ("--top-p", "0.9"), ("--top-k", "5"), ("--top-k", "-1"),
    ("--min-p", "0.1"), ("--repetition-penalty", "1.1"), ("--trainer-temperature", "0.5"),
    ("--trainer-replays-filters",), ("--margin", "1e-3"), ("--allow-partial",), ("--allow-partial",),
    ("--fail-on", "never"), ("--seed", "7"), ("--ppo-epsilon", "0.2", "0.2"), ("--gspo-epsilon", "0.02", "0.02"),
)  # fmt: skip
NO_OPTIONS: tuple[tuple[str, ...], ...] = (
    ("--temperature", "inf"), ("--temperature", "nan"), ("--temperature", "1e-320"), ("--temperature", "1e300"),
    ("--top-p", "nan"), ("--repetition-penalty", "inf"), ("--trainer-temperature", "inf"), ("--margin", "0"),
    ("--margin", "-1"), ("--margin", "nan"), ("--margin", "inf"), ("--ppo-epsilon", "nan", "inf"),
    ("--gspo-epsilon", "1e300", "1e300"), ("--arm", "x"),
)  # fmt: skip


def honest_records(random: Random, prompts: int = 10, samples: int = 2) -> list[Record]:
    """Tokens drawn from what both sides report, up to noise, with every column that a table may have."""
    rng = np.random.default_rng(random.randrange(2**32))
    records = []
    for sequence in range(prompts * samples):
        length = int(rng.integers(1, 20))
        logits = 2.0 * rng.standard_normal((length, VOCABULARY))
        logprobs = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
        drawn = np.argmax(logprobs + rng.gumbel(size=logprobs.shape), axis=1)
        own = logprobs[np.arange(length), drawn]
        best = np.argsort(-logprobs, axis=1)[:, :3]
        tops = np.take_along_axis(logprobs, best, axis=1)
        record: Record = {
            "prompt_id": sequence // samples,
            "sample_id": sequence % samples,
            "position": list(range(length)),
            "token_id": drawn.tolist(),
            "rollout_logprob": own.tolist(),
            "trainer_logprob": np.minimum(own + 0.01 * rng.standard_normal(length), 0.0).tolist(),
            "old_logprob": own.tolist(),
            "base_logprob": own.tolist(),
            "trainer_entropy": (-(np.exp(logprobs) * logprobs).sum(axis=1)).tolist(),
            "loss_mask": [1] * length,
            "rollout_version": [3] * length,
            "trainer_version": [4] * length,
            "cached_tokens": [8] * length,
            "batch_id": [sequence // 4] * length,
            "advantage": [float(sequence % 3 - 1)] * length,
            "rollout_top_ids": best.tolist(),
            "rollout_top_logprobs": tops.tolist(),
            "trainer_top_ids": best.tolist(),
            "trainer_top_logprobs": tops.tolist(),
            "step": sequence % 3,
            "reward": 1.0,
            "prompt_token_ids": [5, 6, 7],
        }
        records.append(record)
    kept = {"prompt_id", "sample_id", "rollout_logprob", "trainer_logprob"}
    dropped = {name for name in records[0] if name not in kept and random.random() < 0.4}
    return [{name: value for name, value in record.items() if name not in dropped} for record in records]


def honest_command(folder: Path, random: Random) -> tuple[list[str], list[Path]]:
    """The arguments of `rlaudit compare` over files in this folder, and the files."""
    records = honest_records(random)
    write = random.choice((_lines, _lines, _parquet, _parquet, _dump))
    if write is not _dump and random.random() < 0.35:
        own = random.choice(("rollout_logprob", "trainer_logprob"))
        trainer = [
            {own: one["trainer_logprob"]} | {name: one[name] for name in one if not name.startswith("rollout")}
            for one in records
        ]
        random.shuffle(trainer)
        rollouts = [{name: value for name, value in one.items() if not name.startswith("trainer")} for one in records]
        paths = [write(folder / "rollouts", rollouts, random), write(folder / "trainer", trainer, random)]
    else:
        paths = [write(folder / "table", records, random)]
    chosen = random.sample(OPTIONS, random.choice((0, 1, 2)))
    if random.random() < 0.05:
        chosen.append(random.choice(NO_OPTIONS))
    more = [argument for option in chosen for argument in option]
    if random.random() < 0.1:
        more += ["--before", str(paths[0])]
    return ["compare", *map(str, paths), "--quiet", *more], paths


def by_token(records: list[Record]) -> list[Record]:
    """A row for each token; what is no list, or the prompt's, stands in every one."""
    rows = []
    for record in records:
        lists = {name for name, value in record.items() if isinstance(value, list) and name != "prompt_token_ids"}
        longest = max((len(record[name]) for name in lists), default=0)
        rows += [{**record, **{name: record[name][place] for name in lists}} for place in range(longest)]
    return rows


def _lines(path: Path, records: list[Record], random: Random) -> Path:
    data = "".join(json.dumps(record) + "\n" for record in _rows(records, random)).encode()
    packed = random.random() < 0.2
    path = path.with_suffix(".jsonl.gz" if packed else ".jsonl")
    path.write_bytes(gzip.compress(data) if packed else data)
    return path


def _parquet(path: Path, records: list[Record], random: Random) -> Path:
    path = path.with_suffix(".parquet")
    compression = random.choice(("snappy", "zstd", "none"))
    pq.write_table(pa.Table.from_pylist(_rows(records, random)), path, compression=compression)
    return path


def _rows(records: list[Record], random: Random) -> list[Record]:
    return by_token(records) if random.random() < 0.5 else records


def _dump(path: Path, records: list[Record], random: Random) -> Path:
    made = random.choice(list(DUMPS.values()))
    sound = [record for record in records if all(name in record for name in ("token_id", "rollout_logprob"))]
    path = path.with_suffix(".jsonl")
    path.write_text("".join(json.dumps(made(one, place)) + "\n" for place, one in enumerate(sound)))
    return path


def _around(values: list[Any], before: Any) -> list[Any]:
    return [before, before, *values]


def _prime_rl(record: Record, place: int) -> Record:
    length = len(record["token_id"])
    return {
        "step": 4, "export_step": 4, "rank": 0, "export_sequence_idx": place,
        "token_ids": _around(record["token_id"], 9), "loss_mask": _around([True] * length, False),
        "advantages": _around([0.5] * length, 0.0), "rewards": _around([1.0] * length, None),
        "inference_logprobs": _around(record["rollout_logprob"], 0.0), "entropy": _around([1.0] * length, 0.1),
        "trainer_logprobs": _around(record["trainer_logprob"], 0.0),
    }  # fmt: skip


def _nemo_rl(record: Record, place: int) -> Record:
    length = len(record["token_id"])
    return {
        "rewards": [1.0], "input_lengths": [length + 2], "token_ids": [_around(record["token_id"], 9)], "idx": place,
        "token_loss_mask": [_around([1] * length, 0)], "sample_loss_mask": [1.0],
        "advantages": [_around([0.2] * length, 0.2)],
        "generation_logprobs": [_around(record["rollout_logprob"], 0.0)],
        "prev_logprobs": [_around(record["trainer_logprob"], 0.0)],
    }  # fmt: skip


def _open_instruct(record: Record, place: int) -> Record:
    return {
        "step": 3, "sample_idx": place, "prompt_idx": place // 2, "prompt_tokens": [9, 8], "reward": 1.0,
        "response_tokens": record["token_id"], "finish_reason": "stop", "logprobs": record["rollout_logprob"],
        "advantage": 0.2,
    }  # fmt: skip


def _pipelinerl_actor(record: Record, place: int) -> Record:
    return {
        "text": "q a", "n_predicted": 1, "reward": 1.0, "logprobs": record["rollout_logprob"], "ref_logprobs": [],
        "input_ids": _around(record["token_id"], 9), "labels": _around(record["token_id"], -100),
        "group_id": f"g{place // 2}", "metadata": {"model_version": 12, "rollout_index": place},
    }  # fmt: skip


# How each export writes a record; tests/tokens/test_exports.py holds the names against those that there are.
DUMPS: dict[str, Callable[[Record, int], Record]] = {
    "prime-rl": _prime_rl,
    "nemo-rl": _nemo_rl,
    "open-instruct": _open_instruct,
    "pipelinerl-actor": _pipelinerl_actor,
}
