"""rlaudit's own token table in Parquet: one row per token, or one row per sequence with lists.

Columns: prompt_id, sample_id, step (of training, where prompts come again), position, token_id, rollout_logprob,
trainer_logprob, and optionally loss_mask, rollout_version, trainer_version, cached_tokens, stale_tokens (those of the
cached that older weights had computed), batch_id, old_logprob, base_logprob (by the reference model of a KL term, or by
what training began with), advantage, reward, trainer_entropy, rollout_top_ids and rollout_top_logprobs, trainer_top_ids
and trainer_top_logprobs (lists, best first). Rows are sorted by sequence and position. A run directory's tokens.parquet
also has `block` and `arm`: one comparison per arm. A table that a trainer wrote alone need not have rollout_logprob.
"""

from collections.abc import Collection, Iterator
from pathlib import Path

import pyarrow.parquet as pq

from rlaudit.tokens.arrow_columns import is_list_type
from rlaudit.tokens.export import WHOLE, Export, Part
from rlaudit.tokens.fault import Faults
from rlaudit.tokens.parquet import (
    LOGPROBS,
    columns_of,
    is_grouped_table,
    is_token_table,
    is_trainer_table,
    open_at_random,
    parquet_batches,
    parquet_sample,
)
from rlaudit.tokens.prompt_numbers import PromptNumbers
from rlaudit.tokens.token_batch import TokenBatch

ARM = ("block", "arm")


def parts(path: Path) -> tuple[Part, ...]:
    """Return one comparison per arm of a run; the whole of any other table."""
    if not set(ARM) <= set(columns_of(path) or []):
        return (WHOLE,)
    table = pq.read_table(open_at_random(path), columns=list(ARM), read_dictionary=list(ARM))
    rows = table.group_by(list(ARM)).aggregate([])
    pairs = dict.fromkeys((str(row["block"]), str(row["arm"])) for row in rows.to_pylist())
    several = len({block for block, _ in pairs}) > 1
    return tuple(Part(f"{block}: {arm}" if several else arm, {"block": block, "arm": arm}) for block, arm in pairs)


def read(
    path: Path, faults: Faults, prompts: PromptNumbers, columns: Collection[str], part: Part
) -> Iterator[TokenBatch]:
    """Decode `columns` only."""
    return parquet_batches(path, faults, prompts, columns, part.where, part.groups, part.renamed)


def sample(path: Path, tokens: int, prompts: PromptNumbers, part: Part) -> Iterator[TokenBatch]:
    """Read row groups spread over the file."""
    return parquet_sample(path, tokens, prompts, part.where, part.groups, part.renamed)


def tokens(path: Path) -> int | None:
    """Return its rows, if a row is a token."""
    footer = pq.read_metadata(open_at_random(path))
    kinds = [field.type for field in footer.schema.to_arrow_schema() if field.name in LOGPROBS]
    return None if any(map(is_list_type, kinds)) else int(footer.num_rows)


EXPORT = Export(
    name="token-table",
    title="rlaudit token table (Parquet)",
    files="*.parquet; a run directory's tokens.parquet",
    groups="prompt_id, and step where there is one",
    recognise=is_token_table,
    read=read,
    of_trainer=is_trainer_table,
    grouped=is_grouped_table,
    parts=parts,
    sample=sample,
    tokens=tokens,
)
