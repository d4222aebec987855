"""The results of an engine process: every request with the version that sampled each token, and the weights it held."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rlaudit.files.parse_json import parse_json
from rlaudit.laboratory.studies.updates.cases import UpdateCase
from rlaudit.laboratory.studies.updates.parts_read import PartsRead, parts_read
from rlaudit.laboratory.studies.updates.plan import EngineStart

Tokens = tuple[int, ...]


@dataclass(frozen=True)
class Flight:
    """One request."""

    case: str
    run: str
    # Its place among the prompts.
    prompt: int
    sample: int
    max_tokens: int
    prompt_token_ids: Tokens
    token_ids: Tokens
    logprobs: tuple[float, ...]
    # The version that sampled each token; None if the token came while the update ran.
    versions: tuple[int | None, ...]
    cached_tokens: int | None
    finish_reason: str | None
    # The number of final outputs.
    ends: int
    lost: bool
    error: str | None
    # The version in force at submission and at the end.
    submitted: int
    finished: int | None
    # Logprobs that came without a token.
    surplus_logprobs: int = 0

    @property
    def trainer_version(self) -> int:
        """The version that the trainer holds when it gets this sequence."""
        return self.submitted if self.finished is None else self.finished


@dataclass(frozen=True)
class EngineRecord:
    """An engine start after it ended."""

    start: EngineStart
    status: str
    # Why it has no results.
    failure: str | None
    kind: str
    flights: tuple[Flight, ...] = ()
    # The weights that it held after its first update, if they could be read.
    parts: PartsRead | None = None
    # The step at which a case ended early: {"step", "status", "message"} by the name of the case.
    problems: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    case_seconds: Mapping[str, float] = field(default_factory=dict)
    cell_key: str = ""
    # What really brought the weights: {"name", "backend", "because"}.
    transport: Mapping[str, Any] | None = None
    # The checkpoint that it held as version 1: it, a mixture with what stayed old, or the model with an adapter.
    held: str = "1"

    def of(self, case: UpdateCase, *runs: str) -> tuple[Flight, ...]:
        """Return the requests of a case, of some runs or of all."""
        return tuple(flight for flight in self.flights if flight.case == case.name and (not runs or flight.run in runs))


def read_record(
    start: EngineStart, directory: Path, result: Mapping[str, Any], prompts: Sequence[Sequence[int]], cell_key: str
) -> EngineRecord:
    """Return the record of a cell that finished. prompts: those of the job."""
    with (directory / "samples.jsonl").open(encoding="utf-8") as lines:
        rows = [parse_json(line) for line in lines]
    return EngineRecord(
        start=start,
        status="ok",
        failure=None,
        kind=result["kind"],
        flights=tuple(_flight(row, prompts) for row in rows),
        parts=next((parts_read(**row) for row in result["read_backs"]), None),
        problems=result["problems"],
        case_seconds=result["case_seconds"],
        cell_key=cell_key,
        transport=result.get("transport"),
    )


def _flight(row: Mapping[str, Any], prompts: Sequence[Sequence[int]]) -> Flight:
    changed = {
        "prompt_token_ids": tuple(prompts[row["prompt"]]),
        "token_ids": tuple(row["token_ids"]),
        "logprobs": tuple(row["logprobs"]),
        "versions": tuple(map(_number, row["versions"])),
        "submitted": int(row["submitted"]),
        "finished": _number(row["finished"]),
    }
    return Flight(**{**row, **changed})


def _number(version: str | None) -> int | None:
    return None if version is None else int(version)
