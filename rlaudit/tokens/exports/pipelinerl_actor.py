"""PipelineRL's actor stream: `streams/actor/.../N.jsonl`, each line a list of training texts.

`logprobs` covers the completion only, and so does `ref_logprobs`, which is empty or 0 without a KL term; `labels` is
-100 on the prompt. Trainer logprobs are never dumped: give them as a second table, or a model to score with.
The stream streams/training_data holds the same rollouts packed, without groups, and is not read.
Source: PipelineRL 58d3934, pipelinerl/rollouts.py:13-47 and streams.py:238-243.
"""

from collections.abc import Collection, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from rlaudit.tokens.export import Export, Part
from rlaudit.tokens.fault import Fault, FaultKind, Faults
from rlaudit.tokens.json_lines import first_values, is_json_lines, json_lines
from rlaudit.tokens.logged_sequence import LoggedSequence, batches_of
from rlaudit.tokens.marked_tokens import marked_sequence
from rlaudit.tokens.prompt_numbers import PromptNumbers
from rlaudit.tokens.record_reader import usable
from rlaudit.tokens.token_batch import TokenBatch

MASKED = -100
WHAT = "a list of PipelineRL training texts"
OWN = {"input_ids", "labels", "logprobs", "n_predicted"}


def recognise(path: Path) -> bool:
    """Return whether the first line is a list of training texts."""
    return is_json_lines(path) and any(_is_texts(value) for value in first_values(path))


def read(
    path: Path, faults: Faults, prompts: PromptNumbers, columns: Collection[str], part: Part
) -> Iterator[TokenBatch]:
    """Read every column."""
    return batches_of(_sequences(path, faults), prompts)


def _is_texts(value: Any) -> bool:
    texts = value if isinstance(value, list) else [value]
    return bool(texts) and isinstance(texts[0], dict) and set(texts[0]) >= OWN


def _sequences(path: Path, faults: Faults) -> Iterator[LoggedSequence]:
    for line, value in json_lines(path, faults):
        if not _is_texts(value):
            faults.add(Fault(path, FaultKind.OTHER_RECORD, f"not {WHAT}; the line is left out", line), sequences=1)
            continue
        texts = enumerate(value if isinstance(value, list) else [value])
        made = (_sequence(text, path, line, place, faults) for place, text in texts)
        yield from usable(partial(iter, made), WHAT, path, line, faults)


def _sequence(text: dict[str, Any], path: Path, line: int, place: int, faults: Faults) -> LoggedSequence | None:
    metadata = text.get("metadata") or {}
    mask = [label != MASKED for label in text["labels"]]
    sample = f"line {line} text {metadata.get('rollout_index', place)}"
    logprobs = text["logprobs"]
    if sum(mask) != len(logprobs):
        problem = f"{len(logprobs)} logprobs for {sum(mask)} completion tokens; the sequence is left out"
        faults.add(Fault(path, FaultKind.UNUSABLE, problem, line, sample), sequences=1)
        return None
    sampled = iter(logprobs)
    columns: dict[str, list[Any]] = {}
    version = metadata.get("model_version")
    if isinstance(version, int):
        columns["rollout_version"] = [version] * len(mask)
    reference = text.get("ref_logprobs") or []
    if len(reference) == len(logprobs) and any(reference):
        references = iter(reference)
        columns["base_logprob"] = [next(references) if counted else None for counted in mask]
    return marked_sequence(
        path=path,
        line=line,
        faults=faults,
        sample=sample,
        token_ids=text["input_ids"],
        mask=mask,
        rollout=[next(sampled) if counted else None for counted in mask],
        columns=columns,
        values={"reward": float(text["reward"])} if isinstance(text.get("reward"), int | float) else None,
        prompt=text.get("group_id"),
    )


EXPORT = Export(
    name="pipelinerl-actor",
    title="PipelineRL actor stream",
    files="streams/actor/INSTANCE/PARTITION/SHARD.jsonl",
    recognise=recognise,
    read=read,
)
