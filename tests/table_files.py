"""Small token tables on disk, and what a table holds once it is read."""

import json

import numpy as np
import pandas as pd

from rlaudit.tokens.export import WHOLE
from rlaudit.tokens.fault import Faults
from rlaudit.tokens.open_table import open_tables
from rlaudit.tokens.parquet import KNOWN
from rlaudit.tokens.prompt_numbers import PromptNumbers
from rlaudit.tokens.token_batch import concatenate


def rows(prompts=3, samples=2, seed=0, **columns):
    """A table of one row per token; lengths 3, 4, 5, 3, 4, 5, ..."""
    rng = np.random.default_rng(seed)
    frames = []
    for sequence in range(prompts * samples):
        length = 3 + sequence % 3
        rollout = -rng.exponential(0.5, length)
        frames.append(
            pd.DataFrame(
                {
                    "prompt_id": sequence // samples,
                    "sample_id": sequence % samples,
                    "position": range(length),
                    "token_id": rng.integers(0, 100, length),
                    "rollout_logprob": rollout,
                    "trainer_logprob": np.minimum(rollout + rng.normal(0, 0.01, length), 0.0),
                }
            )
        )
    return pd.concat(frames, ignore_index=True).assign(**columns)


def as_sequences(frame):
    """The same table as one record with lists for each sequence."""
    keys = ["prompt_id", "sample_id"]
    for _, part in frame.groupby(keys, sort=False):
        # The keys of a group are numpy's numbers before pandas 3.
        first = {name: part[name].tolist()[0] for name in keys}
        yield {**first, **{name: part[name].tolist() for name in frame if name not in keys}}


def write_lines(path, records):
    """JSONL."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def batches_of_file(path, faults=None, part=WHOLE, columns=KNOWN):
    """Every batch of the only comparison in a path."""
    tables = open_tables(path)
    (table,) = tables if part is WHOLE else [table for table in tables if table.part == part]
    return list(table.batches(faults if faults is not None else Faults(), PromptNumbers(), columns))


def whole(path, faults=None):
    """A path's sequences as one batch."""
    return concatenate(batches_of_file(path, faults))
