"""Live samples of a server, as rollouts request them: a token table that `compare` reads, one sequence a row.

Logprobs are as the server reports them. Token ids are those that it names itself (`return_tokens_as_token_ids`): a text
that is encoded again may be other tokens.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from io import BytesIO
from itertools import chain
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from rlaudit.laboratory.prompts import load_prompts
from rlaudit.meaning.candidates import Semantics
from rlaudit.probe.answer import NotAnAnswer, Position, id_of
from rlaudit.probe.budget import Spent
from rlaudit.probe.judge import asked_of
from rlaudit.probe.server import Refused, Server, Stopped

# Sixteen prompts: the fewest with which an interval is reliable (`resample.py`).
PROMPTS = "openings"
SAMPLES = 8
TOKENS = 32
NO_IDS = (
    "the server names no token ids, without which nothing can be scored: vLLM has return_tokens_as_token_ids for "
    "completions from 0.8.5 on and return_token_ids from 0.10.2 on; does something before it drop the field?"
)


@dataclass(frozen=True)
class Samples:
    """Rows of a token table, none if the server could not be sampled. lacks: what keeps a model from scoring them."""

    rows: Sequence[dict[str, Any]]
    lacks: str = ""

    @property
    def tokens(self) -> int:
        """How many were sampled."""
        return sum(len(row["rollout_logprob"]) for row in self.rows)

    @property
    def parquet(self) -> bytes:
        """The table as a file."""
        buffer = BytesIO()
        pq.write_table(pa.Table.from_pylist(list(self.rows)), buffer)
        return buffer.getvalue()


def sample(server: Server, sampling: Semantics) -> Samples:
    """Sample as rollouts do."""
    refused = [name for name in asked_of(sampling) if name in server.refuses]
    if refused:
        return Samples((), f"the server refuses {refused[0]}, which your rollouts request")
    try:
        sequences = list(_sequences(server, sampling))
    except (Refused, NotAnAnswer, Stopped, Spent) as error:
        return Samples((), str(error))
    if not sequences:
        return Samples((), "the server returns no tokens")
    positions = list(chain.from_iterable(drawn for _, drawn in sequences))
    named = all(id_of(token) is not None for position in positions for token in position.names)
    parameters = {name: value for name, value in asdict(sampling).items() if name != "logit_bias"}
    rows = [{**known, **_logprobs(drawn, named, server.most_logprobs), **parameters} for known, drawn in sequences]
    return Samples(rows, "" if named else NO_IDS)


def _sequences(server: Server, sampling: Semantics) -> Iterator[tuple[dict[str, Any], Sequence[Position]]]:
    asked = {**asdict(sampling), "top_k": sampling.top_k or -1, "logit_bias": dict(sampling.logit_bias) or None}
    for number, prompt in enumerate(load_prompts(PROMPTS).prompts):
        ids = None if server.chat else server.ids_of(prompt)
        drawn: list[Sequence[Position]] = []
        while len(drawn) < SAMPLES:
            drawn += server.ask(ids or prompt, TOKENS, min(SAMPLES, server.most_choices), **asked).choices
        for place, positions in enumerate(drawn[:SAMPLES]):
            if positions:
                yield {"prompt_id": number, "sample_id": place, **_prompt(server, prompt, ids)}, positions


def _prompt(server: Server, prompt: str, ids: list[int] | None) -> dict[str, Any]:
    if server.chat:
        return {"messages": [{"role": "user", "content": prompt}]}
    return {"prompt": prompt} if ids is None else {"prompt_token_ids": ids}


def _logprobs(drawn: Sequence[Position], named: bool, most: int) -> dict[str, Any]:
    columns: dict[str, Any] = {"rollout_logprob": [position.logprob for position in drawn]}
    if named:
        listed = [[*position.ranked(most), *((token, -math.inf) for token in position.cut)] for position in drawn]
        columns["token_id"] = [id_of(position.token) for position in drawn]
        columns["rollout_top_ids"] = [[id_of(token) for token, _ in row] for row in listed]
        columns["rollout_top_logprobs"] = [[logprob for _, logprob in row] for row in listed]
    return columns
