"""Names a recording's sequences and those of a trainer's table alike, by the ids of their tokens.

A trainer calls prompts and samples by names that no engine knows, but it was given these tokens. Names are made of the
ids of the prompt, as the table has them, and of the completion. A completion that was sampled from several prompts has
no partner in a table without the ids of its prompts. Equal completions of one prompt are partners in their order.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from pathlib import Path

import numpy as np

from rlaudit.arrays import Integers
from rlaudit.errors import NotFinished
from rlaudit.tokens.hashed_ids import hash_of
from rlaudit.tokens.recorded.recorded_log import RecordedLog, recorded_log
from rlaudit.tokens.token_batch import NO_TOKEN, Column, TokenBatch, objects

# A trainer counts its own steps and batches.
ITS_OWN = ("step", "batch_id", "rollout_version")
RECORDED = ("trainer_version", "base_logprob")


@dataclass
class NamedAlike:
    """The two streams of one comparison."""

    path: Path
    trainer_path: Path
    # Sequences of the trainer's table that were not recorded.
    elsewhere: int = 0
    ambiguous: int = 0
    _seen: Counter[tuple[str, str]] = field(default_factory=Counter)
    _met: Counter[tuple[str, str]] = field(default_factory=Counter)

    def rollouts(self, batches: Iterator[TokenBatch]) -> Iterator[TokenBatch]:
        """Yield the recorded sequences, without what the recording has of the trainer."""
        for batch in batches:
            samples = _completions(batch)
            names = [str(name) for name in batch.prompt_names_S]
            yield replace(
                batch,
                trainer_logprobs_T=np.full(batch.tokens, np.nan),
                token_columns=_without(batch.token_columns, RECORDED),
                sample_names_S=_numbered(names, samples, self._seen),
            )

    def trainer(self, batches: Iterator[TokenBatch]) -> Iterator[TokenBatch]:
        """Yield the sequences of the table that were recorded. Raises NotFinished for a table without token ids."""
        log = recorded_log(self.path)
        if any(process.redacted for process in log.recording.processes):
            raise NotFinished(
                f"{self.path} is redacted: it holds no token id that {self.trainer_path} could be joined by",
                "join the recording that it was made from, or compare the copy alone",
            )
        prompts_of = _prompts_by_completion(log)
        for batch in batches:
            if (batch.token_id_T == NO_TOKEN).any():
                raise NotFinished(
                    f"{self.trainer_path} has no token_id, and a recording is joined by the ids of the tokens",
                    "write token_id, and prompt_token_ids if the table has a line for each sequence",
                )
            samples = _completions(batch)
            names = self._prompts(batch, samples, prompts_of)
            kept = [place for place, name in enumerate(names) if name is not None]
            if not kept:
                continue
            matched = batch.take(kept)
            prompts = [name for name in names if name is not None]
            yield replace(
                matched,
                token_columns=_without(matched.token_columns, ITS_OWN),
                sequence_columns=_without(matched.sequence_columns, ITS_OWN),
                prompt_names_S=objects(prompts),
                sample_names_S=_numbered(prompts, [samples[place] for place in kept], self._met),
            )

    def note(self) -> str:
        """Return which sequences of the trainer's table have no partner; "" if all have one."""
        parts = []
        if self.elsewhere:
            parts.append(f"{self.elsewhere} sequences of {self.trainer_path} were not recorded")
        if self.ambiguous:
            parts.append(f"{self.ambiguous} are completions of several recorded prompts")
        return ", and ".join(parts)

    def _prompts(
        self, batch: TokenBatch, samples: list[str], prompts_of: dict[str, frozenset[str]]
    ) -> list[str | None]:
        """Return the recorded prompt of each sequence; None for one that was not recorded."""
        names: list[str | None] = []
        for place, sample in enumerate(samples):
            recorded = prompts_of.get(sample, frozenset())
            if batch.prompt_token_ids_S is not None:
                recorded = recorded & {_prompt_name(batch.prompt_token_ids_S[place])}
            self.elsewhere += not recorded
            self.ambiguous += len(recorded) > 1
            names.append(next(iter(recorded)) if len(recorded) == 1 else None)
        return names


def _without(columns: Mapping[str, Column], names: Sequence[str]) -> dict[str, Column]:
    return {name: values for name, values in columns.items() if name not in names}


def _prompts_by_completion(log: RecordedLog) -> dict[str, frozenset[str]]:
    judged, prompts_of = set(log.judged), dict[str, set[str]]()
    for (completion_hash, _), sequences in log.rows.beginnings.by_hash.items():
        prompts = {sequence.prompt for sequence in sequences if sequence in judged}
        prompts_of.setdefault(f"{completion_hash:016x}", set()).update(prompts)
    return {sample: frozenset(prompts) for sample, prompts in prompts_of.items()}


def _completions(batch: TokenBatch) -> list[str]:
    return [f"{hash_of(ids_T):016x}" for ids_T in np.split(batch.token_id_T, batch.offsets[1:])[:-1]]


def _numbered(prompts: list[str], samples: list[str], seen: Counter[tuple[str, str]]) -> Column:
    """Number equal completions of one prompt in the order in which they come."""
    names = []
    for key in zip(prompts, samples, strict=True):
        names.append(f"{key[1]}#{seen[key]}")
        seen[key] += 1
    return objects(names)


def _prompt_name(ids: Integers) -> str:
    """Return what the recorder calls a prompt."""
    return blake2b(np.asarray(ids, dtype="<i4").tobytes(), digest_size=8).hexdigest()
