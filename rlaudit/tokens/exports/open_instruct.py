"""open-instruct's traces: `RUN_rollouts_NNNNNN.jsonl`, one line per completion (--save_traces --rollouts_save_path).

Only rollout logprobs are in them: give the trainer's as a second table, or a model to score with. Tokens that a tool
wrote into a completion are not marked.
Source: open-instruct e6c3044, open_instruct/rl_utils.py:31-43.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rlaudit.tokens.export import Export
from rlaudit.tokens.fault import Faults
from rlaudit.tokens.logged_sequence import LoggedSequence, sequence_of_record
from rlaudit.tokens.record_reader import reader, recogniser

OWN = {"prompt_tokens", "response_tokens", "finish_reason", "logprobs"}


def _sequences(record: dict[str, Any], path: Path, line: int, faults: Faults) -> Iterator[LoggedSequence | None]:
    yield sequence_of_record(_generic(record), path, line, faults)


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
    recognise=recogniser(OWN),
    read=reader(OWN, "an open-instruct rollout record", _sequences),
    note="tokens that tools wrote are not marked in open-instruct's traces and count as sampled",
)
