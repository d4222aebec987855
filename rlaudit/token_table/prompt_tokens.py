"""Token ids of prompts from a file beside a table of one row per token, where they would be repeated for every token.

`prompts.jsonl`: one line per prompt with `prompt_id` and `prompt_token_ids`. Only scoring needs them.
"""

from dataclasses import replace
from pathlib import Path

import numpy as np

from rlaudit.token_table.fault import Faults
from rlaudit.token_table.json_lines import json_lines
from rlaudit.token_table.token_batch import TokenBatch

NAME = "prompts.jsonl"


def with_prompt_tokens(batch: TokenBatch, table: Path, faults: Faults) -> TokenBatch:
    """The batch with the ids of its prompts; as it is where they are there already or any of them is not."""
    path = (table if table.is_dir() else table.parent) / NAME
    if batch.prompt_token_ids_S is not None or not path.is_file():
        return batch
    wanted = {str(name) for name in batch.prompt_names_S}
    ids = {
        str(record["prompt_id"]): np.array(record["prompt_token_ids"], dtype=np.int64)
        for _, record in json_lines(path, faults)
        if isinstance(record, dict) and str(record.get("prompt_id")) in wanted
    }
    if not wanted <= ids.keys():
        return batch
    own = np.empty(batch.sequences, dtype=object)
    own[:] = [ids[str(name)] for name in batch.prompt_names_S]
    return replace(batch, prompt_token_ids_S=own)
