"""Ids or texts of prompts, from a file beside a table of one row per token, which would repeat them for every token.

`prompts.jsonl`: one line per prompt with `prompt_id` and `prompt_token_ids`, or `prompt` (a text) or `messages` (chat).
A run of `rlaudit ablate` keeps the ids of its prompts with its cells. Only scoring needs any of it.
"""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from rlaudit.files.parse_json import parse_json
from rlaudit.files.remote_log import is_file, opened_log
from rlaudit.tokens.fault import Faults
from rlaudit.tokens.json_lines import json_lines
from rlaudit.tokens.logged_sequence import prompt_text
from rlaudit.tokens.token_batch import Column, TokenBatch, objects

NAME = "prompts.jsonl"


def with_prompt_tokens(batch: TokenBatch, table: Path, faults: Faults) -> TokenBatch:
    """Return the batch with the ids or texts of its prompts; unchanged if it has ids, or if one is missing."""
    if batch.prompt_token_ids_S is not None:
        return batch
    folder = table if table.is_dir() else table.parent
    names = [str(name) for name in batch.prompt_names_S]
    written = _beside(folder / NAME, set(names), faults)
    ids = {
        name: np.array(record["prompt_token_ids"], dtype=np.int64)
        for name, record in written.items()
        if isinstance(record.get("prompt_token_ids"), list)
    }
    texts = {name: prompt_text(record) for name, record in written.items() if prompt_text(record) is not None}
    ids_S = _for_each(names, ids or _of_run(folder))
    texts_S = _for_each(names, texts)
    return replace(
        batch,
        prompt_token_ids_S=ids_S,
        prompt_texts_S=batch.prompt_texts_S if texts_S is None else texts_S,
    )


def _beside(path: Path, wanted: set[str], faults: Faults) -> dict[str, Mapping[str, Any]]:
    """Return the records of prompts.jsonl by the prompt's name; {} if there is no such file."""
    if not is_file(path):
        return {}
    return {
        str(record["prompt_id"]): record
        for _, record in json_lines(path, faults)
        if isinstance(record, dict) and str(record.get("prompt_id")) in wanted
    }


def _of_run(folder: Path) -> dict[str, Column]:
    """Return the ids of a run's prompts, which are numbered; {} outside a run, or if its cells do not hold the same."""
    prompts = []
    for path in sorted(folder.glob("cells/*/result.json")):
        try:
            with opened_log(path) as file:
                result = parse_json(file.read())
        except (OSError, ValueError):
            continue
        ids = result.get("prompt_token_ids") if isinstance(result, dict) else None
        if isinstance(ids, list) and ids not in prompts:
            prompts.append(ids)
    if len(prompts) != 1:
        return {}
    try:
        return {str(number): np.array(ids, dtype=np.int64) for number, ids in enumerate(prompts[0])}
    except (TypeError, ValueError, OverflowError):  # an edited file
        return {}


def _for_each(names: list[str], by_name: Mapping[str, Any]) -> Column | None:
    """Return the entry of every sequence's prompt; None if one is missing."""
    if not set(names) <= by_name.keys():
        return None
    return objects([by_name[name] for name in names])
