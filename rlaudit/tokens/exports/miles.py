"""Miles' token columns: `dashboard_columns/rollout_N.parquet` under the folder of --dump-details, a row per sample.

`tokens` holds prompt and response, the other lists the response only; `loss_mask` is null where all of it counts, and
a token that the mask does not count has a logprob of 0. The trainer's logprobs lie in pickles beside it, which rlaudit
never loads; the exporter for Miles makes one table of both. `rollout_eval_N.parquet` is of evaluations.
Source: Miles 31f1ca96, miles/ray/rollout/debug_data.py:36-72 and miles/dashboard/dump_reader.py (tokens).
"""

import re
from collections.abc import Collection, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from rlaudit.errors import NotFinished
from rlaudit.tokens.export import Export, Part
from rlaudit.tokens.fault import Faults
from rlaudit.tokens.logged_sequence import LoggedSequence, batches_of
from rlaudit.tokens.marked_tokens import marked_sequence
from rlaudit.tokens.parquet import DAMAGED, columns_of, open_at_random
from rlaudit.tokens.prompt_numbers import PromptNumbers
from rlaudit.tokens.record_reader import usable
from rlaudit.tokens.token_batch import TokenBatch

OWN = {"sample_index", "response_length", "total_length", "tokens", "loss_mask", "rollout_log_probs"}
WHAT = "a row of Miles' token columns"
# Rows decoded at once: of 32,768 tokens each, some 200 MB as Python's numbers.
ROWS = 128


def recognise(path: Path) -> bool:
    """Return whether a Parquet file has these columns and no others."""
    return set(columns_of(path) or ()) == OWN


def read(
    path: Path, faults: Faults, prompts: PromptNumbers, columns: Collection[str], part: Part
) -> Iterator[TokenBatch]:
    """Read every column. Raises NotFinished for a cut file."""
    return batches_of(_sequences(path, faults), prompts)


def of_evaluation(path: Path) -> bool:
    """Return whether a file is of no rollout that was trained on: evaluations are sampled in their own way."""
    return path.name.startswith("rollout_eval_")


def _sequences(path: Path, faults: Faults) -> Iterator[LoggedSequence]:
    match = re.fullmatch(r"rollout_(?:eval_)?(\d+)", path.name.partition(".")[0])
    rollout = int(match[1]) if match else None
    number = 0
    try:
        with pq.ParquetFile(open_at_random(path), pre_buffer=False) as file:
            for rows in file.iter_batches(ROWS, columns=sorted(OWN)):
                for row in rows.to_pylist():
                    number += 1
                    yield from usable(partial(_of_row, row, rollout, path, number, faults), WHAT, path, number, faults)
    except DAMAGED as error:
        raise NotFinished(f"{path} cannot be read to its end: {error}", "was it still being written?") from error


def _of_row(
    row: dict[str, Any], rollout: int | None, path: Path, number: int, faults: Faults
) -> Iterator[LoggedSequence | None]:
    length = int(row["response_length"])
    prompt_length = int(row["total_length"]) - length
    logprobs = row["rollout_log_probs"]
    if not length or logprobs is None:
        # A sample that was aborted before its first token, or whose engine reported nothing.
        return
    mask = row["loss_mask"] if row["loss_mask"] is not None else [1] * length
    yield marked_sequence(
        path=path,
        line=number,
        faults=faults,
        sample=f"rollout {rollout} sample {row['sample_index']}",
        token_ids=row["tokens"],
        mask=[0] * prompt_length + mask,
        rollout=[None] * prompt_length + logprobs,
        # A prompt that comes again in a later rollout is sampled from other weights.
        values={} if rollout is None else {"step": float(rollout)},
    )


EXPORT = Export(
    name="miles",
    title="Miles token columns",
    files="dashboard_columns/rollout_N.parquet",
    recognise=recognise,
    read=read,
    aside=of_evaluation,
)
