"""Trainer logprobs from a table of their own, joined to the rollouts by prompt and sample.

Both tables are streamed; sequences wait in memory only until their counterpart comes, so tables in the same order need
no more than a batch. What finds no counterpart, or one of another length or with other tokens, is a fault.
"""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from rlaudit.token_table.fault import Fault, Faults
from rlaudit.token_table.token_batch import NO_TOKEN, TokenBatch

Key = tuple[str, str]


def joined(
    rollouts: Iterator[TokenBatch], trainer: Iterator[TokenBatch], path: Path, faults: Faults
) -> Iterator[TokenBatch]:
    """The rollouts with the trainer's logprobs, in batches as they come; `path` is the trainer's, for messages."""
    waiting: dict[Key, TokenBatch] = {}
    there: dict[Key, TokenBatch] = {}
    exhausted = False
    for batch in rollouts:
        for sequence in range(batch.sequences):
            waiting[_key(batch, sequence)] = batch.take([sequence])
        while not exhausted and not waiting.keys() <= there.keys():
            part = next(trainer, None)
            if part is None:
                exhausted = True
                break
            there.update({_key(part, sequence): part.take([sequence]) for sequence in range(part.sequences)})
        for key in [key for key in waiting if key in there]:
            found = _pair(waiting.pop(key), there.pop(key), path, faults)
            if found is not None:
                yield found
    _left_over(waiting, len(there) + sum(part.sequences for part in trainer), path, faults)


def _key(batch: TokenBatch, sequence: int) -> Key:
    return str(batch.prompt_names_S[sequence]), str(batch.sample_names_S[sequence])


def _pair(rollout: TokenBatch, trainer: TokenBatch, path: Path, faults: Faults) -> TokenBatch | None:
    name = rollout.name_of(0)
    if rollout.tokens != trainer.tokens:
        said = f"{rollout.tokens} rollout tokens, {trainer.tokens} trainer tokens; the sequence is left out"
        faults.add(Fault(path, said, None, name), sequences=1)
        return None
    known_T = (rollout.token_id_T != NO_TOKEN) & (trainer.token_id_T != NO_TOKEN)
    other_T = known_T & (rollout.token_id_T != trainer.token_id_T)
    if other_T.any():
        first = int(np.argmax(other_T))
        said = (
            f"token {first} is {rollout.token_id_T[first]} in the rollouts and {trainer.token_id_T[first]} here: the "
            "trainer scored other tokens (re-tokenised?); the sequence is left out"
        )
        faults.add(Fault(path, said, None, name), sequences=1)
        return None
    own = trainer.trainer_logprobs_T
    if np.isnan(own).all():
        # A table that a trainer wrote alone may name its logprobs as it likes: it has one kind only.
        own = trainer.rollout_logprobs_T
    extra = {name: values for name, values in trainer.token_columns.items() if name not in rollout.token_columns}
    return replace(
        rollout,
        trainer_logprobs_T=own,
        token_columns={**rollout.token_columns, **extra},
        trainer_top_ids_TK=trainer.trainer_top_ids_TK,
        trainer_top_logprobs_TK=trainer.trainer_top_logprobs_TK,
    )


def _left_over(waiting: dict[Key, TokenBatch], unmatched: int, path: Path, faults: Faults) -> None:
    for one in waiting.values():
        faults.add(Fault(path, "the trainer's table does not have this sequence", None, one.name_of(0)), sequences=1)
    if unmatched:
        faults.add(Fault(path, f"{unmatched} sequences of the trainer's table are not among the rollouts"))
