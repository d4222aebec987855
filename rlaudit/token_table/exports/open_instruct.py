"""open-instruct's traces: `RUN_rollouts_NNNNNN.jsonl`, one line per completion (--save_traces --rollouts_save_path).

Only rollout logprobs are in them: give the trainer's as a second table, or a model to score with. Tokens that a tool
wrote into a completion are not marked.
Source: open-instruct e6c3044, open_instruct/rl_utils.py:31-43.
"""

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

from rlaudit.token_table.export import Export, Part
from rlaudit.token_table.fault import Fault, Faults
from rlaudit.token_table.json_lines import first_record, json_lines
from rlaudit.token_table.logged_sequence import LoggedSequence, batches_of, sequence_of_record
from rlaudit.token_table.prompt_numbers import PromptNumbers
from rlaudit.token_table.token_batch import TokenBatch

OWN = {"prompt_tokens", "response_tokens", "finish_reason", "logprobs"}


def recognise(path: Path) -> bool:
    """Whether the first record is a rollout record."""
    return set(first_record(path)) >= OWN


def read(
    path: Path, faults: Faults, prompts: PromptNumbers, columns: Collection[str], part: Part
) -> Iterator[TokenBatch]:
    """Every column is read."""
    return batches_of(_sequences(path, faults), prompts)


def _sequences(path: Path, faults: Faults) -> Iterator[LoggedSequence]:
    for line, record in json_lines(path, faults):
        if not isinstance(record, dict) or not set(record) >= OWN:
            faults.add(Fault(path, "not an open-instruct rollout record; the line is left out", line), sequences=1)
            continue
        found = sequence_of_record(_generic(record), path, line, faults)
        if found is not None:
            yield found


def _generic(record: dict[str, Any]) -> dict[str, Any]:
    step = record.get("step")
    return {
        "prompt_id": f"step {step} prompt {record.get('prompt_idx')}",
        "sample_id": record.get("sample_idx"),
        "prompt_token_ids": record["prompt_tokens"],
        "token_id": record["response_tokens"],
        "rollout_logprob": record["logprobs"],
        "advantage": record.get("advantage"),
        "reward": record.get("reward"),
        "rollout_version": step,
    }


EXPORT = Export(
    name="open-instruct",
    title="open-instruct traces",
    files="RUN_rollouts_NNNNNN.jsonl",
    recognise=recognise,
    read=read,
    note="tokens that tools wrote are not marked in open-instruct's traces and count as sampled",
)
