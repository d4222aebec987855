"""rlaudit's own token table in Parquet: one row per token, or one row per sequence with lists.

Columns: prompt_id, sample_id, step (of training, where prompts come again), position, token_id, rollout_logprob,
trainer_logprob, and optionally loss_mask, rollout_version, trainer_version, cached_tokens, stale_tokens (those of the
cached that older weights had computed), batch_id, old_logprob, base_logprob (by the reference model of a KL term, or by
what training began with), advantage, reward, trainer_entropy, rollout_top_ids and rollout_top_logprobs, trainer_top_ids
and trainer_top_logprobs (lists, best first). Rows are sorted by sequence and position. A run directory's tokens.parquet
also has `block` and `arm`: one comparison per arm. A table that a trainer wrote alone need not have rollout_logprob.
Sampling parameters may stand in columns of their own, by vLLM's names. One row per sequence may also have
prompt_token_ids, prompt (a text) or messages (a chat), for scoring.
"""

from pathlib import Path

import pyarrow.parquet as pq

from rlaudit.tokens.arrow_columns import is_list_type
from rlaudit.tokens.export import Export, Part
from rlaudit.tokens.parquet import LOGPROBS, REQUIRED, columns_of, open_at_random, parquet_batches, parquet_sample

ARM = ("block", "arm")
SAMPLING = (
    "temperature", "top_p", "top_k", "min_p", "repetition_penalty", "presence_penalty", "frequency_penalty",
)  # fmt: skip


def recognise(path: Path) -> bool:
    """Return whether a Parquet file has the columns of a token table."""
    return set(REQUIRED) <= set(columns(path))


def columns(path: Path) -> list[str]:
    """Return the columns of a Parquet file; none of any other file."""
    return columns_of(path) or []


def parts(path: Path) -> tuple[Part, ...]:
    """Return one comparison per arm of a run; the whole of any other table."""
    if not set(ARM) <= set(columns_of(path) or []):
        return (_whole(path),)
    table = pq.read_table(open_at_random(path), columns=list(ARM), read_dictionary=list(ARM))
    rows = table.group_by(list(ARM)).aggregate([])
    pairs = dict.fromkeys((str(row["block"]), str(row["arm"])) for row in rows.to_pylist())
    several = len({block for block, _ in pairs}) > 1
    return tuple(Part(f"{block}: {arm}" if several else arm, {"block": block, "arm": arm}) for block, arm in pairs)


def _whole(path: Path) -> Part:
    """Return the part of a table with one comparison, and how its tokens were sampled if columns say that."""
    footer = pq.read_metadata(open_at_random(path))
    ranges = [
        (column.path_in_schema, column.statistics)
        for group in range(footer.num_row_groups)
        for place in range(footer.num_columns)
        if (column := footer.row_group(group).column(place)).path_in_schema in SAMPLING
    ]
    # Every row group says in the footer what its least and greatest value is.
    values: dict[str, set[object]] = {}
    for name, statistics in ranges:
        known = statistics is not None and statistics.has_min_max and not statistics.null_count
        is_number = known and isinstance(statistics.min, int | float)
        values.setdefault(name, set()).update((statistics.min, statistics.max) if is_number else (None, ""))
    several = [name for name, seen in values.items() if len(seen) > 1]
    return Part(
        sampling={name: seen.pop() for name, seen in values.items() if name not in several},
        not_seen=tuple(f"{name}: its column holds several values, and none is taken from it" for name in several),
    )


def tokens(path: Path) -> int | None:
    """Return its rows, if a row is a token."""
    footer = pq.read_metadata(open_at_random(path))
    kinds = [field.type for field in footer.schema.to_arrow_schema() if field.name in LOGPROBS]
    return None if any(map(is_list_type, kinds)) else int(footer.num_rows)


EXPORT = Export(
    name="token-table",
    title="rlaudit token table (Parquet)",
    files="*.parquet; a run directory's tokens.parquet",
    recognise=recognise,
    read=parquet_batches,
    columns=columns,
    parts=parts,
    sample=parquet_sample,
    tokens=tokens,
)
