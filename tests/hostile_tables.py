"""Token tables and dumps that were sound once: an honest log in every format, with one to six things broken.

`hostile_command(folder, random)` writes a command's files and gives its arguments; nothing is random but by `random`.
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
SCALARS: tuple[Any, ...] = (
    None, float("nan"), float("inf"), float("-inf"), 0, -0.0, 1, -1, 0.5, 2, 1e-300, -1e154, -1e300, 1e308, -9999.0,
    -1e6, 2**31, 2**53 + 1, 2**63 - 1, -(2**63), 10**30, True, False, "", "0", "nan", "v1", "\x1b[2J", "\ud7ff",
    "a" * 5000, [], {}, [[]], [None], {"a": 1}, [1, 2, 3], [[1.0]], [float("nan")],
)  # fmt: skip
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


def hostile_command(folder: Path, random: Random) -> list[str]:
    """The arguments of `rlaudit compare` over files in this folder."""
    records = honest_records(random)
    write = random.choice((_jsonl, _jsonl, _tokens_jsonl, _parquet, _parquet, _tokens_parquet, _tokens_parquet, _dump))
    paths = []
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
    if random.random() < 0.15:
        _damage(random.choice(paths), random)
    chosen = random.sample(OPTIONS, random.choice((0, 1, 2)))
    if random.random() < 0.05:
        chosen.append(random.choice(NO_OPTIONS))
    more = [argument for option in chosen for argument in option]
    if random.random() < 0.1:
        more += ["--before", str(paths[0])]
    return ["compare", *map(str, paths), "--quiet", *more]


def _broken(records: list[Record], random: Random) -> list[Record]:
    for _ in range(random.choice((0, 1, 1, 1, 2, 3, 6))):
        if records:
            records = random.choice(_BREAKS)(records, random)
    return records


def _one_value(records: list[Record], random: Random) -> list[Record]:
    record = random.choice(records)
    name = random.choice(list(record)) if record else "prompt_id"
    record[name] = random.choice(SCALARS)
    return records


def _one_entry(records: list[Record], random: Random) -> list[Record]:
    record = random.choice(records)
    lists = [value for value in record.values() if isinstance(value, list) and value]
    if lists:
        entries = random.choice(lists)
        place = random.randrange(len(entries))
        if isinstance(entries[place], list) and entries[place] and random.random() < 0.7:
            entries, place = entries[place], random.randrange(len(entries[place]))
        entries[place] = random.choice(SCALARS)
    return records


def _many_entries(records: list[Record], random: Random) -> list[Record]:
    name, value = random.choice(list(records[0]) or ["prompt_id"]), random.choice(SCALARS)
    share = random.choice((0.05, 0.5, 1.0))
    for record in records:
        if isinstance(record.get(name), list):
            record[name] = [value if random.random() < share else one for one in record[name]]
        elif random.random() < share:
            record[name] = value
    return records


def _numbers(records: list[Record], random: Random) -> list[Record]:
    """One column of other numbers, which a typed file keeps."""
    name = random.choice(list(records[0]) or ["prompt_id"])
    other = [one for one in SCALARS if isinstance(one, float | None)]
    for record in records:
        if isinstance(record.get(name), list):
            record[name] = [random.choice(other) if random.random() < 0.2 else one for one in record[name]]
    return records


def _other_length(records: list[Record], random: Random) -> list[Record]:
    record = random.choice(records)
    lists = [name for name, value in record.items() if isinstance(value, list)]
    if lists:
        name = random.choice(lists)
        record[name] = random.choice(([], record[name][:-1], record[name] * 2, record[name][:1]))
    return records


def _without_a_column(records: list[Record], random: Random) -> list[Record]:
    name = random.choice(list(records[0]) or ["prompt_id"])
    alone = random.random() < 0.5
    for record in [random.choice(records)] if alone else records:
        record.pop(name, None)
    return records


def _twice(records: list[Record], random: Random) -> list[Record]:
    return [*records, *(dict(one) for one in random.sample(records, random.randrange(1, len(records) + 1)))]


def _fewer(records: list[Record], random: Random) -> list[Record]:
    return random.sample(records, random.randrange(len(records) + 1))


def _one_name(records: list[Record], random: Random) -> list[Record]:
    name, value = random.choice(("prompt_id", "sample_id", "step")), random.choice(SCALARS)
    return [{**record, name: value} for record in records]


def _long_lists(records: list[Record], random: Random) -> list[Record]:
    record = random.choice(records)
    for name in ("rollout_top_ids", "rollout_top_logprobs"):
        if isinstance(record.get(name), list) and record[name]:
            record[name][0] = [1 if name.endswith("ids") else -20.0] * random.choice((100, 5000))
    return records


_BREAKS: tuple[Callable[[list[Record], Random], list[Record]], ...] = (
    _one_value, _one_value, _one_entry, _one_entry, _many_entries, _numbers, _numbers, _other_length, _without_a_column,
    _twice, _fewer, _one_name, _long_lists,
)  # fmt: skip


def _by_token(records: list[Record]) -> list[Record]:
    return [row for record in records for row in _rows(record)]


def _rows(record: Record) -> list[Record]:
    """A row for each token; what is no list, or the prompt's, stands in every one."""
    lists = {name: value for name, value in record.items() if isinstance(value, list) and name != "prompt_token_ids"}
    longest = max(map(len, lists.values()), default=0)
    return [
        {**record, **{name: value[place] for name, value in lists.items() if place < len(value)}}
        for place in range(longest)
    ]


def _lines(path: Path, records: list[Any], random: Random) -> Path:
    data = "".join(json.dumps(record) + "\n" for record in records).encode()
    packed = random.random() < 0.3
    path = path.with_suffix(".jsonl.gz" if packed else ".jsonl")
    path.write_bytes(gzip.compress(data) if packed else data)
    return path


def _jsonl(path: Path, records: list[Record], random: Random) -> Path:
    return _lines(path, _broken(records, random), random)


def _tokens_jsonl(path: Path, records: list[Record], random: Random) -> Path:
    return _lines(path, _broken(_by_token(records), random), random)


def _parquet(path: Path, records: list[Record], random: Random) -> Path:
    return _table(path, _broken(records, random), random)


def _tokens_parquet(path: Path, records: list[Record], random: Random) -> Path:
    return _table(path, _broken(_by_token(records), random), random)


def _is_of_parquet(kind: pa.DataType) -> bool:
    """Parquet has no struct without a field, at whatever depth."""
    inner = [kind.field(place).type for place in range(kind.num_fields)]
    return (bool(inner) or not pa.types.is_struct(kind)) and all(map(_is_of_parquet, inner))


def _table(path: Path, records: list[Record], random: Random) -> Path:
    names = dict.fromkeys(name for record in records for name in record)
    arrays = {name: _array([record.get(name) for record in records], random) for name in names}
    columns = {name: array for name, array in arrays.items() if _is_of_parquet(array.type)}
    path = path.with_suffix(".parquet")
    compression = random.choice(("snappy", "zstd", "none"))
    size = random.choice((1, 7, 1 << 20))
    pq.write_table(pa.table(columns), path, row_group_size=size, compression=compression)
    return path


def _array(values: list[Any], random: Random) -> pa.Array:
    """As an Arrow column of the type that most values have; texts where they have none in common."""
    for tried in (values, [value if isinstance(value, float | int) else None for value in values]):
        try:
            column = pa.array(tried)
        except (pa.ArrowException, OverflowError, TypeError, ValueError):
            continue
        if pa.types.is_struct(column.type) and not column.type.num_fields:
            continue
        if pa.types.is_floating(column.type) and random.random() < 0.1:
            column = column.cast(pa.float32())
        if not pa.types.is_nested(column.type) and not pa.types.is_null(column.type) and random.random() < 0.1:
            column = column.dictionary_encode()
        return column
    return pa.array([str(value).encode("utf-8", "replace").decode() for value in values])


def _dump(path: Path, records: list[Record], random: Random) -> Path:
    made = random.choice(list(DUMPS.values()))
    sound = [record for record in records if all(name in record for name in ("token_id", "rollout_logprob"))]
    return _lines(path, _broken([made(one, place) for place, one in enumerate(sound)], random), random)


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


def _damage(path: Path, random: Random) -> None:
    """Bits flipped, a part cut out, or the end missing."""
    data = bytearray(path.read_bytes())
    if not data:
        return
    kind = random.choice(("flips", "cut", "end", "zeros"))
    begin = random.randrange(len(data))
    if kind == "flips":
        for _ in range(random.choice((1, 1, 3, 20))):
            data[random.randrange(len(data))] ^= 1 << random.randrange(8)
    elif kind == "cut":
        del data[begin : begin + random.choice((1, 10, 1000))]
    elif kind == "end":
        del data[begin:]
    else:
        data[begin : begin + 64] = bytes(len(data[begin : begin + 64]))
    path.write_bytes(data)
