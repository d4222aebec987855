"""NeMo-RL's `train_data_step{N}.jsonl`, one line per sample, written by default (not with NeMo-Gym logging).

Lists are padded to the longest sample of the batch; a value that was a list of samples is written as a list of one.
`idx` is the line's number and no prompt id: sequences with the same prompt tokens count as one prompt.
Source: NeMo-RL 7ea279a, grpo.py:3630-3652 and utils/logger.py:1071-1095.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rlaudit.tokens.export import Export
from rlaudit.tokens.fault import Fault, FaultKind, Faults
from rlaudit.tokens.logged_sequence import LoggedSequence
from rlaudit.tokens.marked_tokens import marked_sequence
from rlaudit.tokens.record_reader import reader, recogniser

OWN = {"generation_logprobs", "prev_logprobs"}
LISTS = {*OWN, "token_ids", "token_loss_mask", "advantages"}


def _sequences(record: dict[str, Any], path: Path, line: int, faults: Faults) -> Iterator[LoggedSequence | None]:
    if not isinstance(record.get("token_loss_mask"), list) or not isinstance(record.get("token_ids"), list):
        problem = "no token_ids and token_loss_mask (an older NeMo-RL): prompt and completion cannot be told apart"
        faults.add(Fault(path, FaultKind.OTHER_RECORD, f"{problem}; the line is left out", line), sequences=1)
        return
    step = re.search(r"step(\d+)", path.name)
    yield _sequence(record, path, line, int(step[1]) if step else None, faults)


def _sequence(record: dict[str, Any], path: Path, line: int, step: int | None, faults: Faults) -> LoggedSequence | None:
    length = record.get("input_lengths")
    unpadded = slice(0, length if isinstance(length, int) else None)
    ids = record["token_ids"][unpadded]
    mask = record["token_loss_mask"][unpadded]
    if record.get("sample_loss_mask") in {0}:
        return None
    columns = {}
    if isinstance(record.get("advantages"), list):
        columns["advantage"] = record["advantages"][unpadded]
    if step is not None:
        columns["trainer_version"] = [step] * len(ids)
    reward = record.get("rewards")
    values = {"reward": float(reward)} if isinstance(reward, int | float) else {}
    return marked_sequence(
        path=path,
        line=line,
        faults=faults,
        sample=f"{f'step {step} ' if step is not None else ''}line {line}",
        token_ids=ids,
        mask=mask,
        rollout=record["generation_logprobs"][unpadded],
        trainer=record["prev_logprobs"][unpadded],
        columns=columns,
        # A prompt that comes again in a later epoch is sampled from other weights.
        values=values if step is None else {**values, "step": float(step)},
    )


def _plain(record: dict[str, Any]) -> dict[str, Any]:
    """Return what stands in lists of one sample. Lists of tokens are nested twice, everything else once."""
    return {
        name: value[0]
        if isinstance(value, list) and len(value) == 1 and (name not in LISTS or isinstance(value[0], list))
        else value
        for name, value in record.items()
    }


EXPORT = Export(
    name="nemo-rl",
    title="NeMo-RL training data",
    files="train_data_stepN.jsonl",
    recognise=recogniser(OWN),
    read=reader(OWN, "a NeMo-RL train_data record", _sequences, _plain),
)
