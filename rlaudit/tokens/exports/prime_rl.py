"""prime-rl's token exports: `token_exports/step_N/rank_R.jsonl`, one line per sequence (trainer.enable_token_export).

Prompt and completion share the lists; entry 0 of the logprobs is padding. A number that was not finite is written as
null. No prompt id is written: sequences with the same prompt tokens count as one prompt.
Source: prime-rl 559b447, src/prime_rl/trainer/rl/token_export.py:60-145.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rlaudit.tokens.export import Export
from rlaudit.tokens.fault import Faults
from rlaudit.tokens.logged_sequence import LoggedSequence
from rlaudit.tokens.marked_tokens import marked_sequence
from rlaudit.tokens.record_reader import reader, recogniser

OWN = {"inference_logprobs", "trainer_logprobs", "token_ids", "loss_mask"}
COLUMNS = {"entropy": "trainer_entropy", "advantages": "advantage"}


def _sequences(record: dict[str, Any], path: Path, line: int, faults: Faults) -> Iterator[LoggedSequence | None]:
    yield _sequence(record, path, line, faults)


def _sequence(record: dict[str, Any], path: Path, line: int, faults: Faults) -> LoggedSequence | None:
    step = record.get("export_step", record.get("step"))
    columns = {
        name: record[theirs]
        for theirs, name in COLUMNS.items()
        if isinstance(record.get(theirs), list) and any(value is not None for value in record[theirs])
    }
    if isinstance(step, int):
        columns["trainer_version"] = [step] * len(record["token_ids"])
    values = {"step": float(step)} if isinstance(step, int) else {}
    rewards = [value for value in record.get("rewards") or [] if value is not None]
    return marked_sequence(
        path=path,
        line=line,
        faults=faults,
        sample=f"step {step} rank {record.get('rank')} sequence {record.get('export_sequence_idx', line - 1)}",
        token_ids=record["token_ids"],
        mask=record["loss_mask"],
        rollout=record["inference_logprobs"],
        trainer=record["trainer_logprobs"],
        columns=columns,
        # A prompt that comes again in a later epoch is sampled from other weights.
        values={**values, "reward": rewards[-1]} if rewards else values,
    )


EXPORT = Export(
    name="prime-rl",
    title="prime-rl token export",
    files="token_exports/step_N/rank_R.jsonl",
    recognise=recogniser(OWN),
    read=reader(OWN, "a prime-rl token export record", _sequences),
    note="prime-rl exports logprobs of the policy in training, so the ratio contains staleness and engine mismatch",
)
