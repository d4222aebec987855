"""A recording of `rlaudit record`: the folder that it wrote, or one of its files.

The only format that says itself how its tokens were sampled, from which weights, and what the trainer made of them.
Sequences whose sampling parameters make another distribution than those of most tokens are left out and counted.
"""

from collections.abc import Collection, Iterator
from pathlib import Path

import numpy as np

from rlaudit.recording.recorded_weights import recorded_weights
from rlaudit.recording.recording import is_recording
from rlaudit.tokens.export import Export, Part
from rlaudit.tokens.fault import Fault, FaultKind, Faults
from rlaudit.tokens.logged_sequence import batches_of
from rlaudit.tokens.prompt_numbers import PromptNumbers
from rlaudit.tokens.recorded.named_alike import NamedAlike
from rlaudit.tokens.recorded.recorded_log import recorded_log
from rlaudit.tokens.recorded.recording_notes import not_seen, notes
from rlaudit.tokens.token_batch import TokenBatch


def parts(path: Path) -> tuple[Part, ...]:
    """Return the one part that is judged: what was sampled with the parameters of most tokens."""
    log = recorded_log(path)
    sampling = {} if log.group is None else log.group.values()
    weights = recorded_weights(log.recording.engines, log.rows.policy_dtypes())
    return (Part(sampling=sampling, notes=notes(log), not_seen=not_seen(log), weights=weights),)


def read(
    path: Path, faults: Faults, prompts: PromptNumbers, columns: Collection[str], part: Part
) -> Iterator[TokenBatch]:
    """Yield whole sequences with every column that was recorded."""
    log = recorded_log(path)
    for sentence, count in log.damaged:
        faults.add(Fault(path, FaultKind.UNUSABLE, sentence), sequences=count, count=count)
    yield from batches_of(log.logged(), prompts)


def of_first_weights(path: Path, batch: TokenBatch) -> TokenBatch:
    """Return the sequences that were sampled from the weights of the first token."""
    first = min((served.first_sampled for served in recorded_log(path).recording.served), default=0)
    later_T = batch.token_columns["rollout_version"] != first
    later_S = np.bincount(batch.sequence_T, weights=later_T, minlength=batch.sequences) > 0
    return batch if not later_S.any() else batch.take(np.flatnonzero(~later_S))


EXPORT = Export(
    name="recording",
    title="recording",
    files="the folder of `rlaudit record --into DIR`",
    recognise=is_recording,
    read=read,
    parts=parts,
    is_folder=True,
    scorable=of_first_weights,
    partners=NamedAlike,
)
