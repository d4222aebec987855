"""A world of rollouts of a known policy: who samples, who scores, what was requested, and what of it a log holds.

Nothing is drawn but tokens and the organisation of rollouts: both sides read the same tokens, each by what it is, and a
fault is planted where it would arise (another policy, another prompt, a rounded number, another order of rows).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from evidence.known_policy.policy import (
    BEGIN,
    BFLOAT16,
    FIRST_WORD,
    TURN,
    VOCABULARY,
    Floats,
    Integers,
    Meaning,
    Policy,
    Prompts,
    Side,
    Walk,
    new_policy,
    walk,
)

LONGEST, PROMPT_WORDS = 64, (10, 60)
VERSION, MOST_LAG, BATCHES, BLOCK = 10, 4, 8, 16
EVERY_COLUMN = frozenset({"versions", "cached_tokens", "batch_id", "trainer_entropy", "tops"})


@dataclass(frozen=True, eq=False)
class Log:
    """What both sides say, before it is written. masked_SL: whether a loss mask leaves a token out."""

    engine: Walk
    trainer: Walk
    base_SL: Floats | None = None
    masked_SL: np.ndarray | None = None


Edit = Callable[[Log, np.random.Generator], Log]
Reading = Callable[[Integers, Integers, np.random.Generator], tuple[Integers, Integers]]


@dataclass(frozen=True, eq=False)
class World:
    """draws_by: what tokens are drawn by, if not by what the engine says. asked: options that the user gives `compare`.

    base: the policy before training, if the log is to hold its logprobs. lag_SL, cached_S, batch_S: the organisation of
    rollouts, which varies in every world. columns: of EVERY_COLUMN those that are logged. reads: what the trainer reads
    in place of the tokens. forced_SL: as of `walk`. masked: a loss mask leaves forced tokens out. edits: of the log.
    today: without the fault; its log is given as --before.
    """

    engine: Side
    trainer: Side
    prompts: Prompts
    samples: int
    lag_SL: Integers
    cached_S: Integers
    batch_S: Integers
    asked: Mapping[str, float | int] = field(default_factory=dict)
    draws_by: Meaning | None = None
    base: Policy | None = None
    columns: frozenset[str] = EVERY_COLUMN
    reads: Reading | None = None
    forced_SL: Integers | None = None
    masked: bool = False
    edits: tuple[Edit, ...] = ()
    today: "World | None" = None

    @property
    def policy(self) -> Policy:
        """The trainer's."""
        return self.trainer.policy

    @property
    def sequences(self) -> int:
        """S."""
        return len(self.lag_SL)

    def with_engine(self, **changes: object) -> "World":
        """Return the world with another engine."""
        return replace(self, engine=replace(self.engine, **changes))

    def with_trainer(self, **changes: object) -> "World":
        """Return the world with another trainer."""
        return replace(self, trainer=replace(self.trainer, **changes))

    def with_edit(self, edit: Edit) -> "World":
        """Return the world with another change of its log."""
        return replace(self, edits=(*self.edits, edit))

    def both_mean(self, means: Meaning, **asked: float | int) -> "World":
        """Return the world in which both sides compute this, as was requested."""
        return replace(self.with_engine(means=means).with_trainer(means=means), asked=asked)

    def log(self, rng: np.random.Generator) -> Log:
        """Roll out and score."""
        engine = walk(self.engine, self.prompts, LONGEST, rng, draws_by=self.draws_by, forced_SL=self.forced_SL)
        read = (engine.token_SL, engine.length_S)
        if self.reads is not None:
            read = self.reads(*read, rng)
        trainer = walk(self.trainer, self.prompts, LONGEST, rng, reads=read)
        if self.reads is not None:
            trainer = trainer.moved(*np.indices(engine.token_SL.shape))
        base = None
        if self.base is not None:
            base = walk(replace(self.trainer, policy=self.base), self.prompts, LONGEST, rng, reads=read).logprob_SL
        masked_SL = self.forced_SL >= 0 if self.masked and self.forced_SL is not None else None
        log = Log(engine, trainer, base, masked_SL)
        for edit in self.edits:
            log = edit(log, rng)
        return log

    def write(self, path: Path, rng: np.random.Generator) -> None:
        """Write what a user would have of it: one row per token in Parquet."""
        pq.write_table(self._table(self.log(rng)), path)

    def _table(self, log: Log) -> pa.Table:
        engine, trainer = log.engine, log.trainer
        here_SL = np.arange(LONGEST) < engine.length_S[:, None]
        sequence_T, position_T = np.nonzero(here_SL)
        columns = {
            "prompt_id": sequence_T // self.samples,
            "sample_id": sequence_T % self.samples,
            "position": position_T,
            "token_id": engine.token_SL[here_SL],
            "rollout_logprob": _float32(engine.logprob_SL[here_SL]),
            "trainer_logprob": _float32(trainer.logprob_SL[here_SL]),
        }
        if log.masked_SL is not None:
            columns["loss_mask"] = (~log.masked_SL[here_SL]).astype(np.int64)
        if log.base_SL is not None:
            columns["base_logprob"] = _float32(log.base_SL[here_SL])
        if "versions" in self.columns:
            columns["rollout_version"] = VERSION - self.lag_SL[here_SL]
            columns["trainer_version"] = np.full(len(sequence_T), VERSION)
        if "cached_tokens" in self.columns:
            columns["cached_tokens"] = self.cached_S[sequence_T]
        if "batch_id" in self.columns:
            columns["batch_id"] = self.batch_S[sequence_T]
        if "trainer_entropy" in self.columns:
            columns["trainer_entropy"] = _float32(trainer.entropy_SL[here_SL])
        if "tops" in self.columns:
            for name, side in (("rollout", engine), ("trainer", trainer)):
                columns[f"{name}_top_ids"] = _lists(side.top_ids_SLK[here_SL], pa.int64())
                columns[f"{name}_top_logprobs"] = _lists(side.top_logprobs_SLK[here_SL], pa.float32())
        return pa.table(columns)


def new_world(rng: np.random.Generator, prompts: int = 32, samples: int = 8) -> World:
    """Draw a policy and an organisation of rollouts; both sides compute in bfloat16, each in its own way."""
    policy, sequences = new_policy(rng), prompts * samples
    words_P = rng.integers(*PROMPT_WORDS, prompts)
    token_PW = np.full((prompts, PROMPT_WORDS[1] + 4), -1)
    # Of a template are the first and the last words, alike in all prompts.
    first, last = rng.integers(FIRST_WORD, VOCABULARY, 2)
    for row_W, words in zip(token_PW, words_P, strict=True):
        row_W[-words - 4 :] = [BEGIN, first, *rng.integers(FIRST_WORD, VOCABULARY, words), last, TURN]
    length_S = np.repeat(words_P + 4, samples)
    cached_S = np.where(rng.random(sequences) < 0.5, length_S // BLOCK * BLOCK, 0)
    return World(
        engine=Side(policy, state_bits=BFLOAT16),
        trainer=Side(policy, memory_bits=BFLOAT16),
        prompts=Prompts(np.repeat(token_PW, samples, axis=0)),
        samples=samples,
        lag_SL=_lags(sequences, rng),
        cached_S=cached_S,
        batch_S=rng.choice(BATCHES, sequences, p=np.arange(1, BATCHES + 1) / sum(range(1, BATCHES + 1))),
    )


def _lags(sequences: int, rng: np.random.Generator) -> Integers:
    """Return updates by which a token's policy is old: half of the sequences see one on the way."""
    lag_S = rng.integers(0, MOST_LAG + 1, sequences)
    updated_S = np.where((rng.random(sequences) < 0.5) & (lag_S > 0), rng.integers(4, 24, sequences), LONGEST)
    return lag_S[:, None] - (np.arange(LONGEST) >= updated_S[:, None])


def _float32(values: Floats) -> pa.Array:
    """Return them as logs hold them."""
    return pa.array(values.astype(np.float32))


def _lists(values_TK: np.ndarray, of: pa.DataType) -> pa.Array:
    ends_T = np.arange(0, values_TK.size + 1, values_TK.shape[1])
    return pa.ListArray.from_arrays(pa.array(ends_T, pa.int32()), pa.array(values_TK.ravel(), of))
