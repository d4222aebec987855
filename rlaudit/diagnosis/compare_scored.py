"""A sample of logged sequences, scored again: the trainer's logprobs, and those under other meanings.

The trainer's environment and script are those of `ablate`: the same model, the same numbers. Scores are kept by content
in a folder, so the same question is answered once.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
from filelock import FileLock

from rlaudit.engines.cells.cell import Cell, finished
from rlaudit.engines.cells.executor import Asked, OneAtATime
from rlaudit.engines.cells.launch import Outcome
from rlaudit.engines.cells.seal import Damage
from rlaudit.engines.environments.environment_spec import Command, Environment
from rlaudit.engines.environments.refusals import refuse
from rlaudit.engines.hardware.accelerator import Accelerator, machine_of
from rlaudit.engines.hardware.accelerator_identity import accelerator_identity
from rlaudit.engines.hardware.gpu_memory import GpuMemory
from rlaudit.engines.models.model import ModelOnDisk, ensure_model, places_of_model
from rlaudit.engines.models.model_files import read_model_files
from rlaudit.engines.models.model_types import choose_trainer
from rlaudit.errors import NotFinished, UsageError
from rlaudit.laboratory.fit import refuse_what_cannot_fit, trainer_need
from rlaudit.laboratory.prompts import PromptSet
from rlaudit.laboratory.rollout_context import RolloutContext
from rlaudit.laboratory.run_setup import ready_environment, tokenize_cell
from rlaudit.laboratory.scoring import (
    Scores,
    ScoringBatch,
    ScoringRequest,
    SequenceKey,
    read_scores,
    scoring_cell,
)
from rlaudit.laboratory.treatment import TrainerSettings
from rlaudit.meaning.candidates import Semantics
from rlaudit.meaning.scored_tokens import ScoredTokens
from rlaudit.text.counted import counted
from rlaudit.text.progress import Progress
from rlaudit.tokens.token_batch import NO_TOKEN, TokenBatch

RAW = Semantics()
TIMEOUT_MINUTES = 60.0


@dataclass(frozen=True)
class Scorer:
    """A model to score with."""

    model: str
    settings: TrainerSettings
    accelerator: Accelerator
    # Scores are kept here.
    folder: Path
    # Of an interpreter with torch and transformers.
    command: Command = ()


@dataclass(frozen=True)
class LoggedRequest(ScoringRequest):
    """A request whose trainer divides by any temperature, not only by the sampler's or by 1."""

    train: Semantics = RAW

    @property
    def theta_train(self) -> Semantics:
        """What the trainer takes the tokens to be sampled from."""
        return self.train


def score(
    batch: TokenBatch, sampling: Semantics, trainer: Semantics, scorer: Scorer, progress: Progress
) -> tuple[TokenBatch, ScoredTokens, float]:
    """Return the batch, with the model's logprobs if the trainer's are missing, the scores, and the trainer's floor.

    Only tokens that the loss counts are scored. Prompts that are texts become token ids by the model's tokenizer, chat
    messages by its template. Raises UsageError without token ids of completions or without prompts, NotFinished if the
    model cannot be had or cannot score.
    """
    missing = _missing(batch)
    if missing:
        raise UsageError(f"--score needs {missing[0]}, and this table has none", missing[1])
    batch = _sampled_throughout(batch)
    setup = _setup(scorer, progress)
    prompts = _prompt_ids(batch, scorer, setup, progress)
    request = LoggedRequest(scorer.settings, asdict(sampling), trainer)
    work = ScoringBatch(request)
    keys = []
    for sequence in range(batch.sequences):
        tokens = slice(batch.offsets[sequence], batch.offsets[sequence + 1])
        prompt = tuple(int(token) for token in prompts[sequence])
        ids = tuple(int(token) for token in batch.token_id_T[tokens])
        work.add(prompt, ids)
        keys.append((prompt, ids))
    scores = _scores(work, scorer, setup, progress)
    scored, floor = scored_tokens(batch, scores, keys)
    missing_T = np.isnan(batch.trainer_logprobs_T)
    trainer_T = np.where(missing_T, scored.trainer_logprobs_T, batch.trainer_logprobs_T)
    columns = {"trainer_entropy": scored.entropy_T, **batch.token_columns}
    return replace(batch, trainer_logprobs_T=trainer_T, token_columns=columns), scored, floor


def scored_tokens(batch: TokenBatch, scores: Scores, keys: Sequence[SequenceKey]) -> tuple[ScoredTokens, float]:
    """Return the scores of a batch, and the trainer's floor (k3, nats). keys: prompt and tokens of each sequence."""
    scored = ScoredTokens.from_scores(
        scores.arrays,
        scores.rows_of(keys),
        batch.lengths_S,
        batch.rollout_logprobs_T,
        batch.prompt_S,
        scores.batch.request.candidates,
        _lists_are_cut(batch),
    )
    return scored, float(scores.result["micro_batch_floor"]["k3"] or 0.0)


def _lists_are_cut(batch: TokenBatch) -> bool:
    """Return whether the engine lists a token without any probability: a filter took it away, padding has no id."""
    ids_TK, logprobs_TK = batch.rollout_top_ids_TK, batch.rollout_top_logprobs_TK
    return ids_TK is not None and logprobs_TK is not None and bool(((ids_TK >= 0) & np.isneginf(logprobs_TK)).any())


def _sampled_throughout(batch: TokenBatch) -> TokenBatch:
    """Drop sequences that hold tokens a tool wrote: those were not sampled, no test of the sampler may see them."""
    if batch.counts_T.all():
        return batch
    whole_S = np.add.reduceat(batch.counts_T, batch.offsets[:-1], dtype=np.int64) == batch.lengths_S
    if not whole_S.any():
        raise UsageError("every sequence has tokens that the loss does not count: --score cannot place them")
    return batch.take(np.flatnonzero(whole_S))


def _missing(batch: TokenBatch) -> tuple[str, str] | None:
    """Return what scoring needs and the table lacks, and how to add it."""
    if batch.has_hashed_ids:
        return "token ids", "a redacted recording has hashes of them: score the recording that it was made from"
    if np.any(batch.token_id_T == NO_TOKEN):
        return (
            "the token ids of completions",
            "add token_id as the engine returned it (return_token_ids): text that is encoded again gives other tokens",
        )
    if batch.prompt_token_ids_S is None and batch.prompt_texts_S is None:
        return (
            "the prompts",
            "add prompt_token_ids (or prompt, a text, or messages) to each line, or put them beside the table, in "
            "prompts.jsonl: a line for each prompt_id",
        )
    return None


@dataclass(frozen=True)
class _Setup:
    """The environment and the weights that scoring uses."""

    environment: Environment
    model: ModelOnDisk


def _setup(scorer: Scorer, progress: Progress) -> _Setup:
    files = read_model_files(scorer.model)
    trainer = choose_trainer(files, scorer.accelerator, scorer.command)
    refuse([trainer], scorer.accelerator)
    refuse_what_cannot_fit(files, trainer_need(scorer.settings.dtype, scorer.accelerator, files))
    places = places_of_model(scorer.model)
    environment = ready_environment(trainer, scorer.accelerator, scorer.folder, places, progress)
    with progress.step(f"model {scorer.model}"):
        model = ensure_model(scorer.model, environment.spec, progress.update, files.commit)
    return _Setup(environment, model)


def _prompt_ids(batch: TokenBatch, scorer: Scorer, setup: _Setup, progress: Progress) -> Sequence[Iterable[int]]:
    """Return the ids of every sequence's prompt: logged, or made of its text."""
    if batch.prompt_token_ids_S is not None:
        return list(batch.prompt_token_ids_S)
    assert batch.prompt_texts_S is not None
    # Samples of a prompt are tokenised once.
    written = {json.dumps(prompt): prompt for prompt in batch.prompt_texts_S}
    cell = tokenize_cell(setup.model, setup.environment, PromptSet("compare", tuple(written.values())))
    with progress.step(f"tokens of {len(written)} prompts"):
        outcome = _outcome(cell, scorer, progress)
    if outcome.status != "ok":
        raise NotFinished(f"the tokenizer of {scorer.model} cannot be used: {outcome.why}")
    ids = dict(zip(written, outcome.result["prompt_token_ids"], strict=True))
    return [ids[json.dumps(prompt)] for prompt in batch.prompt_texts_S]


def _outcome(cell: Cell, scorer: Scorer, progress: Progress) -> Outcome:
    """Return the kept outcome, or run the cell now; a process that needs the same cell meanwhile waits for it."""
    with FileLock(scorer.folder / f"{cell.key}.lock"):
        kept = finished(scorer.folder, cell)
        if isinstance(kept, Damage):
            progress.note(f"  damaged     {kept}; it is made again")
        if isinstance(kept, Outcome):
            return kept
        return next(OneAtATime(scorer.folder, GpuMemory(scorer.accelerator.devices)).run([Asked(cell)]))


def _scores(work: ScoringBatch, scorer: Scorer, setup: _Setup, progress: Progress) -> Scores:
    context = RolloutContext(
        model=str(setup.model.path),
        revision=setup.model.revision,
        model_identity=setup.model.identity,
        accelerator_identity=accelerator_identity(scorer.accelerator),
        device=scorer.accelerator.kind,
        machine=machine_of(scorer.accelerator),
        timeout_minutes=TIMEOUT_MINUTES,
    )
    cell = scoring_cell(context, work, setup.environment)
    with progress.step(f"scoring {counted(len(work.sequences), 'sequence')}"):
        outcome = _outcome(cell, scorer, progress)
    directory = scorer.folder / cell.key
    if outcome.status != "ok":
        complaint = f"{scorer.model} could not score the sequences: {outcome.why}"
        raise NotFinished(complaint, f"its log: {directory}/log.txt")
    return read_scores(directory, work, outcome.result)
