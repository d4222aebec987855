"""Prompt and completion in one list of tokens, separated by the loss mask: the common layout of trainer dumps."""

from collections.abc import Mapping, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np

from rlaudit.tokens.column_range import RANGES
from rlaudit.tokens.fault import Fault, FaultKind, Faults
from rlaudit.tokens.logged_sequence import NOT_NUMBERS, LoggedSequence, floats, whole_numbers
from rlaudit.tokens.token_batch import Column


def marked_sequence(
    *,
    path: Path,
    line: int | None,
    faults: Faults,
    sample: str,
    token_ids: Sequence[int],
    mask: Sequence[Any],
    rollout: Sequence[float | None],
    trainer: Sequence[float | None] | None = None,
    columns: Mapping[str, Sequence[float | None]] | None = None,
    values: Mapping[str, float] | None = None,
    prompt: Any = None,
) -> LoggedSequence | None:
    """Return the completion: from the first token that the loss counts to the last; what lies between keeps its place.

    Every list has one entry per token of prompt and completion. None if no token counts; a fault, and None, if
    lengths differ or something is not a number.
    """
    lists: dict[str, Sequence[Any]] = {"mask": mask, "rollout logprobs": rollout, **(columns or {})}
    if trainer is not None:
        lists["trainer logprobs"] = trainer
    problem = _misfit(token_ids, lists, mask)
    if problem:
        faults.add(Fault(path, FaultKind.UNUSABLE, f"{problem}; the sequence is left out", line, sample), sequences=1)
        return None
    counted_T = np.array(mask) == 1
    places = np.flatnonzero(counted_T)
    if not places.size:
        return None
    completion = slice(int(places[0]), int(places[-1]) + 1)
    try:
        ids = whole_numbers(token_ids)
        token_columns: dict[str, Column] = {
            name: floats(column[completion]) for name, column in (columns or {}).items()
        }
        if not counted_T[completion].all():
            token_columns["loss_mask"] = counted_T[completion]
        return LoggedSequence(
            prompt=prompt_name(ids[: completion.start]) if prompt is None else prompt,
            sample=sample,
            rollout_logprobs_T=floats(rollout[completion]),
            trainer_logprobs_T=None if trainer is None else floats(trainer[completion]),
            token_id_T=ids[completion],
            token_columns=token_columns,
            sequence_columns=values or {},
            prompt_token_ids=ids[: completion.start],
            line=line,
        )
    except NOT_NUMBERS as error:
        problem = f"holds what is not a number ({error}); the sequence is left out"
        faults.add(Fault(path, FaultKind.UNUSABLE, problem, line, sample), sequences=1)
        return None


def _misfit(token_ids: Sequence[int], lists: Mapping[str, Sequence[Any]], mask: Sequence[Any]) -> str:
    for name, entries in {"token ids": token_ids, **lists}.items():
        if not isinstance(entries, list):
            return f"{name}: {type(entries).__name__} where a list was expected"
    length = len(token_ids)
    unequal = [f"{len(entries)} {name}" for name, entries in lists.items() if len(entries) != length]
    if unequal:
        return f"{length} token ids, {', '.join(unequal)}"
    impossible = next((entry for entry in mask if entry not in (0, 1)), None)
    return "" if impossible is None else f"the loss mask holds {impossible!r}, expected {RANGES['loss_mask'].expected}"


def prompt_name(token_ids: "Sequence[int] | np.ndarray[tuple[int], np.dtype[np.int64]]") -> str:
    """Return a name for a prompt that an export identifies by its ids only: equal for equal prompts, and short."""
    return "#" + blake2b(np.asarray(token_ids, dtype=np.int64).tobytes(), digest_size=6).hexdigest()
