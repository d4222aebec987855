"""What the attribution is shown of a real rollout: the recorded tokens and the trainer's scores, and no label."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from token_tables import with_columns

from evidence.selftest.engines.engine_plants import EnginePlant
from rlaudit.causes.attribution.attribute import Attribution, attribute
from rlaudit.diagnosis.measured import floor_of, scored_tokens
from rlaudit.laboratory.studies.arms.plan import scoring_request
from rlaudit.laboratory.studies.arms.run import FinishedArm, FinishedRun
from rlaudit.meaning.candidates import Semantics
from rlaudit.meaning.from_scores import identify
from rlaudit.meaning.scored_tokens import ScoredTokens
from rlaudit.meaning.token_evidence import token_evidence
from rlaudit.tokens.alignment import alignment_report
from rlaudit.tokens.token_batch import NO_TOKEN, TokenBatch

# Two float32 engines agree to about 1e-5 nats; no floor is believed to be lower (k2, nats^2).
LEAST_FLOOR = 1e-9


@dataclass(frozen=True, eq=False)
class EngineObservation:
    """One rollout. floor_k2: of the trainer against itself in other micro-batches."""

    batch: TokenBatch
    scored: ScoredTokens
    prompt_tokens_T: NDArray[np.int64]
    trainer: Semantics
    floor_k2: float


def observe_engine(run: FinishedRun, finished: FinishedArm, plant: EnginePlant) -> EngineObservation:
    """The arm's record, edited as the plant says."""
    scores = run.scores[scoring_request(finished.arm).key]
    scored = scored_tokens(finished, scores, run)
    sequences = finished.sequences
    lengths_S = np.array([len(sequence.token_ids) for sequence in sequences])
    prompt_S = np.array([sequence.prompt for sequence in sequences])
    keys = [(tuple(run.prompt_token_ids[sequence.prompt]), sequence.token_ids) for sequence in sequences]
    steps = [step for sequence in sequences for step in sequence.top_logprobs]
    ids = [step for sequence in sequences for step in sequence.top_ids]
    batch = TokenBatch(
        rollout_logprobs_T=scored.rollout_logprobs_T,
        trainer_logprobs_T=scored.trainer_logprobs_T,
        token_id_T=np.concatenate([np.array(sequence.token_ids) for sequence in sequences]),
        position_T=np.concatenate([np.arange(length) for length in lengths_S]),
        sequence_T=scored.sequence_T,
        prompt_S=prompt_S,
        prompt_names_S=prompt_S,
        sample_names_S=np.array([sequence.sample for sequence in sequences]),
        # The engine started with the trainer's weights and kept them.
        token_columns={
            "trainer_entropy": scored.entropy_T,
            "rollout_version": np.zeros(scored.tokens, dtype=np.int64),
            "trainer_version": np.zeros(scored.tokens, dtype=np.int64),
        },
        sequence_columns={
            "cached_tokens": np.array([sequence.cached_tokens for sequence in sequences]),
            "batch_id": np.array([sequence.round for sequence in sequences]),
        },
        rollout_top_ids_TK=_padded(ids, NO_TOKEN).astype(np.int64),
        rollout_top_logprobs_TK=_padded(steps, -np.inf),
        trainer_top_logprobs_TK=np.asarray(scores.arrays["top_logprobs"])[scores.rows_of(keys)],
    )
    prompt_tokens_S = np.array([len(run.prompt_token_ids[prompt]) for prompt in prompt_S])
    return EngineObservation(
        batch=batch if plant.edit is None else plant.edit(batch),
        scored=scored,
        prompt_tokens_T=prompt_tokens_S[scored.sequence_T],
        trainer=scores.batch.request.theta_train,
        floor_k2=max(floor_of(scores, "k3"), LEAST_FLOOR),
    )


def judge_engine(observation: EngineObservation, claimed: Semantics, floor_k2: float) -> Attribution:
    """What `compare --score` would say of it."""
    batch = with_columns(observation.batch, prompt_tokens=observation.prompt_tokens_T)
    alignment = alignment_report(batch)
    meaning = None
    if not alignment.refused:
        meaning = identify(observation.scored, claimed, observation.trainer, floor_k2)
    evidence = token_evidence(
        batch,
        sampling=claimed,
        trainer=observation.trainer,
        scored=observation.scored,
        meaning=meaning,
        alignment=alignment,
        floor_k2=floor_k2,
    )
    return attribute(evidence)


def _padded(rows: Sequence[Sequence[float]], padding: float) -> NDArray[Any]:
    width = max(len(row) for row in rows)
    table = np.full((len(rows), width), padding, dtype=np.float64)
    for place, row in enumerate(rows):
        table[place, : len(row)] = row
    return table
