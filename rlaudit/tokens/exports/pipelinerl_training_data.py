"""PipelineRL's training stream: `streams/training_data/.../N.jsonl`, each line a packed batch.

`old_logprobs` are those of the rollout, 0 on prompts; sequences are told apart by `seq_boundaries`, or where
`position_ids` begins again. No prompt id is written: sequences with the same prompt tokens count as one prompt.
Source: PipelineRL 58d3934, pipelinerl/finetune/types.py and data.py (collate_packed).
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rlaudit.tokens.export import Export
from rlaudit.tokens.fault import Faults
from rlaudit.tokens.logged_sequence import LoggedSequence
from rlaudit.tokens.marked_tokens import marked_sequence
from rlaudit.tokens.record_reader import reader, recogniser

MASKED = -100
OWN = {"input_ids", "labels", "old_logprobs", "advantages"}
GROUPS = "the prompt's tokens"


def _sequences(record: dict[str, Any], path: Path, line: int, faults: Faults) -> Iterator[LoggedSequence | None]:
    if record.get("sentinel"):
        return
    for row, (fields, begin, end) in enumerate(_packed(record)):
        yield _sequence(fields, begin, end, path, line, row, record.get("model_version"), faults)


def _packed(record: dict[str, Any]) -> Iterator[tuple[dict[str, list[Any]], int, int]]:
    """Yield every sequence of a batch: its row's lists, and where it begins and ends in them."""
    names = [name for name in ("input_ids", "labels", "old_logprobs", "advantages") if record.get(name)]
    nested = {name: record[name] if isinstance(record[name][0], list) else [record[name]] for name in names}
    bounds = record.get("seq_boundaries")
    starts = record.get("position_ids") or []
    for row in range(len(nested["input_ids"])):
        fields = {name: lists[row] for name, lists in nested.items() if row < len(lists)}
        length = len(fields["input_ids"])
        edges = bounds if bounds and len(nested["input_ids"]) == 1 else None
        if edges is None:
            positions = starts[row] if starts and isinstance(starts[0], list) else starts
            edges = [place for place, position in enumerate(positions) if position == 0] or [0]
        for begin, end in zip(edges, [*edges[1:], length], strict=True):
            if begin < end:
                yield fields, int(begin), int(end)


def _sequence(
    fields: dict[str, list[Any]],
    begin: int,
    end: int,
    path: Path,
    line: int,
    place: int,
    version: Any,
    faults: Faults,
) -> LoggedSequence | None:
    lists = {name: values[begin:end] for name, values in fields.items()}
    columns: dict[str, list[Any]] = {"advantage": lists["advantages"]} if "advantages" in lists else {}
    if isinstance(version, int):
        columns["rollout_version"] = [version] * (end - begin)
    return marked_sequence(
        path=path,
        line=line,
        faults=faults,
        sample=f"line {line} sequence {place}",
        token_ids=lists["input_ids"],
        mask=[label != MASKED for label in lists["labels"]],
        rollout=lists["old_logprobs"],
        columns=columns,
    )


EXPORT = Export(
    name="pipelinerl-training-data",
    title="PipelineRL training stream",
    files="streams/training_data/INSTANCE/PARTITION/SHARD.jsonl",
    groups=GROUPS,
    recognise=recogniser(OWN),
    read=reader(OWN, "a PipelineRL batch", _sequences, many=GROUPS),
)
