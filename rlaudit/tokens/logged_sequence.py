"""One logged completion, checked for lengths and types, and how completions become batches."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any
from zlib import crc32

import numpy as np

from rlaudit.arrays import Floats, Integers
from rlaudit.tokens.fault import Fault, FaultKind, Faults
from rlaudit.tokens.prompt_numbers import PromptNumbers
from rlaudit.tokens.token_batch import (
    LINE,
    MISSING_TOP,
    MOST_LISTED,
    NO_TOKEN,
    TOKEN_COLUMNS,
    TOPS,
    Column,
    TokenBatch,
    objects,
)

BATCH_TOKENS = 1 << 18
# People name a list in the plural.
PLURALS: Mapping[str, str] = {
    "rollout_logprobs": "rollout_logprob",
    "trainer_logprobs": "trainer_logprob",
    "old_logprobs": "old_logprob",
    "base_logprobs": "base_logprob",
    "token_ids": "token_id",
    "positions": "position",
    "advantages": "advantage",
}


# What numpy raises for text, lists within lists and numbers that are too large.
NOT_NUMBERS = (TypeError, ValueError, OverflowError)
# Either has an entry for every token; a table that a trainer wrote alone has only its own.
LOGPROBS = ("rollout_logprob", "trainer_logprob")
LISTS = (*LOGPROBS, "token_id", "position", *TOPS)
PER_SEQUENCE = ("reward", "step")


@dataclass(frozen=True, eq=False)
class LoggedSequence:
    """One completion of T tokens. Arrays that are None were not logged; token_columns are (T,).

    Raises Unusable for an id that is a list or an object, one of NOT_NUMBERS for a value that is no number.
    """

    prompt: Any
    sample: Any
    rollout_logprobs_T: Floats
    trainer_logprobs_T: Floats | None = None
    token_id_T: Integers | None = None
    token_columns: Mapping[str, Column] = field(default_factory=lambda: MappingProxyType({}))
    sequence_columns: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    tops: Mapping[str, list[list[float]]] = field(default_factory=lambda: MappingProxyType({}))
    prompt_token_ids: Integers | None = None
    prompt_text: str | list[Any] | None = None
    line: int | None = None

    def __post_init__(self) -> None:
        if isinstance(self.prompt, list | dict):
            raise Unusable(f"the prompt's id is a {type(self.prompt).__name__}, expected a text or a number")
        floats(list(self.sequence_columns.values()))

    @property
    def tokens(self) -> int:
        """T."""
        return len(self.rollout_logprobs_T)


class Unusable(ValueError):
    """Why a record is no sequence."""


def sequence_of_record(
    record: Mapping[str, Any], path: Path, line: int | None, faults: Faults
) -> LoggedSequence | None:
    """Return a record of the generic schema whose columns are lists; None, and a fault, if it cannot be used."""
    named = {PLURALS.get(name, name): value for name, value in record.items()}
    try:
        return _checked(named, line)
    except Unusable as why:
        problem = str(why)
    except NOT_NUMBERS as error:
        problem = f"holds what is not a number ({error})"
    name = f"prompt {named.get('prompt_id')}, sample {named.get('sample_id')}"
    faults.add(Fault(path, FaultKind.UNUSABLE, f"{problem}; the sequence is left out", line, name), sequences=1)
    return None


def _checked(named: Mapping[str, Any], line: int | None) -> LoggedSequence:
    logprobs = next((key for key in LOGPROBS if named.get(key) is not None), LOGPROBS[0])
    missing = [key for key in ("prompt_id", "sample_id", logprobs) if named.get(key) is None]
    if missing:
        raise Unusable(f"no {' and no '.join(missing)}")
    for key in LISTS:
        if not isinstance(named.get(key), list | None):
            raise Unusable(f"{key} is a {type(named[key]).__name__}, expected a list")
    length = len(named[logprobs])
    if not length:
        raise Unusable("no token")
    lists = {key: named[key] for key in (*LISTS, *TOKEN_COLUMNS) if isinstance(named.get(key), list)}
    unequal = [f"{key} has {len(values)} entries" for key, values in lists.items() if len(values) != length]
    if unequal:
        raise Unusable(f"{', '.join(unequal)}, {logprobs} has {length}")
    if "position" in lists and lists["position"] != list(range(length)):
        raise Unusable("positions are not 0, 1, 2, ...: tokens are missing or out of order")
    columns = {key: _column(key, named[key], length) for key in TOKEN_COLUMNS if named.get(key) is not None}
    prompt_ids = named.get("prompt_token_ids")
    return LoggedSequence(
        prompt=named["prompt_id"],
        sample=named["sample_id"],
        rollout_logprobs_T=floats(lists["rollout_logprob"]) if "rollout_logprob" in lists else np.full(length, np.nan),
        trainer_logprobs_T=floats(lists["trainer_logprob"]) if "trainer_logprob" in lists else None,
        token_id_T=whole_numbers(lists["token_id"]) if "token_id" in lists else None,
        token_columns=columns,
        sequence_columns=_per_sequence(named),
        tops=_tops(lists),
        prompt_token_ids=None if prompt_ids is None else whole_numbers(prompt_ids),
        prompt_text=prompt_text(named),
        line=line,
    )


def _per_sequence(named: Mapping[str, Any]) -> dict[str, float]:
    """Return numbers that hold for a whole sequence. A step may be a text, and may be repeated for every token."""
    numbers: dict[str, float] = {}
    for name in PER_SEQUENCE:
        value = named.get(name)
        if isinstance(value, list):
            value = value[0] if value and value.count(value[0]) == len(value) else None
        if isinstance(value, str) and name == "step":
            value = batch_number(value)
        if isinstance(value, int | float):
            numbers[name] = float(value)
    return numbers


def prompt_text(record: Mapping[str, Any]) -> str | list[Any] | None:
    """Return the prompt as a record holds it besides token ids: chat messages, or a text; None if there is neither."""
    written = record.get("messages") or record.get("prompt")
    return written if isinstance(written, str | list) else None


def floats(values: Iterable[float | None]) -> Floats:
    """Return numbers, NaN for None. Raises one of NOT_NUMBERS for anything else."""
    return _flat(np.array(values, dtype=np.float64))


def whole_numbers(values: Iterable[int]) -> Integers:
    """Return whole numbers. Raises one of NOT_NUMBERS for anything else."""
    return _flat(np.array(values, dtype=np.int64))


def _flat(array: Column) -> Column:
    if array.ndim != 1:
        raise ValueError(f"{array.ndim} dimensions, expected one")
    return array


def _column(name: str, value: Any, length: int) -> Column:
    """Return a value per token, or one for all of them."""
    values = value if isinstance(value, list) else [value] * length
    if name == "batch_id":
        values = [batch_number(entry) if isinstance(entry, str) else entry for entry in values]
    column = floats(values)
    # A token without a mask is not counted.
    return np.where(np.isnan(column), 0.0, column) if name == "loss_mask" else column


def _tops(lists: Mapping[str, list[Any]]) -> dict[str, list[list[float]]]:
    tops: dict[str, list[list[Any]]] = {}
    for name in TOPS:
        if name in lists:
            missing = MISSING_TOP[name]
            tops[name] = [[missing if value is None else value for value in entry or ()] for entry in lists[name]]
            flat = [value for entry in tops[name] for value in entry]
            _ = whole_numbers(flat) if name.endswith("ids") else floats(flat)
    for side in ("rollout", "trainer"):
        ids, logprobs = tops.get(f"{side}_top_ids"), tops.get(f"{side}_top_logprobs")
        if ids is not None and logprobs is not None and [*map(len, ids)] != [*map(len, logprobs)]:
            raise Unusable(f"{side}_top_ids and {side}_top_logprobs list different numbers of tokens")
    return {name: [entry[:MOST_LISTED] for entry in lists] for name, lists in tops.items()}


def batches_of(
    sequences: Iterable[LoggedSequence], prompts: PromptNumbers, tokens: int = BATCH_TOKENS
) -> Iterator[TokenBatch]:
    """Yield batches of at least `tokens` tokens, the last one of what is left."""
    pending: list[LoggedSequence] = []
    size = 0
    for sequence in sequences:
        pending.append(sequence)
        size += sequence.tokens
        if size >= tokens:
            yield _batch(pending, prompts)
            pending, size = [], 0
    if pending:
        yield _batch(pending, prompts)


def _batch(parts: list[LoggedSequence], prompts: PromptNumbers) -> TokenBatch:
    lengths_S = np.array([part.tokens for part in parts])
    names = [name for name in TOKEN_COLUMNS if any(name in part.token_columns for part in parts)]
    values = [name for name in (*PER_SEQUENCE, LINE) if any(_value(part, name) is not None for part in parts)]
    return TokenBatch(
        rollout_logprobs_T=np.concatenate([part.rollout_logprobs_T for part in parts]),
        trainer_logprobs_T=_filled(parts, [part.trainer_logprobs_T for part in parts], np.nan),
        token_id_T=_filled(parts, [part.token_id_T for part in parts], NO_TOKEN),
        position_T=np.concatenate([np.arange(length) for length in lengths_S]),
        sequence_T=np.repeat(np.arange(len(parts)), lengths_S),
        prompt_S=prompts.of(part.prompt for part in parts),
        prompt_names_S=objects([part.prompt for part in parts]),
        sample_names_S=objects([part.sample for part in parts]),
        # A sequence without a loss mask counts in full.
        token_columns={
            name: _filled(parts, [part.token_columns.get(name) for part in parts], name == "loss_mask" or np.nan)
            for name in names
        },
        sequence_columns={name: floats([_value(part, name) for part in parts]) for name in values},
        prompt_token_ids_S=_if_complete([part.prompt_token_ids for part in parts]),
        prompt_texts_S=_if_complete([part.prompt_text for part in parts]),
        **{f"{name}_TK": _padded(parts, name) for name in TOPS},
    )


def _value(part: LoggedSequence, name: str) -> float | None:
    return part.line if name == LINE else part.sequence_columns.get(name)


def _if_complete(values: list[Any]) -> Column | None:
    return None if any(value is None for value in values) else objects(values)


def _filled(parts: list[LoggedSequence], arrays: list[Column | None], missing: float) -> Any:
    return np.concatenate(
        [np.full(part.tokens, missing) if array is None else array for part, array in zip(parts, arrays, strict=True)]
    )


def _padded(parts: list[LoggedSequence], name: str) -> Column | None:
    if not all(name in part.tops for part in parts):
        return None
    rows = [row for part in parts for row in part.tops[name]]
    padded = np.full(
        (len(rows), max(map(len, rows), default=0)),
        MISSING_TOP[name],
        dtype=np.int64 if name.endswith("ids") else np.float64,
    )
    for place, row in enumerate(rows):
        padded[place, : len(row)] = row
    return padded


def batch_number(name: str) -> int:
    """Return a number: equal for equal names; different ones share a number once in four thousand million."""
    return crc32(name.encode())
