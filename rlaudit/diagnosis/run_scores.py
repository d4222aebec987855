"""The scores that a run of `rlaudit ablate` keeps in its cells: its tokens under other meanings.

A table of a run is judged by what the run itself is judged by, so that both find the same cause. Scores are used only
if they are of these tokens and of this request, and if the trainer's logprobs in them are those of the table. A run
whose cells were removed, damaged or edited is a log like others.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from rlaudit.diagnosis.compare_scored import LoggedRequest, scored_tokens
from rlaudit.diagnosis.evidence import Scored
from rlaudit.engines.cells.seal import Damage, read_seal
from rlaudit.files.parse_json import parse_json
from rlaudit.laboratory.run_folder import CELL_FOLDERS
from rlaudit.laboratory.scoring import Scores, ScoringBatch, read_scores
from rlaudit.laboratory.treatment import TrainerSettings
from rlaudit.meaning.candidates import MIN_P, NUCLEUS, TOP_K, Semantics
from rlaudit.tokens.token_batch import TokenBatch

# A table keeps what was scored; this is for formats that keep four bytes of it.
SAME_NATS = 1e-6
FILES = {"job.json", "result.json", "scores.npz"}
# A seal shows damage; a file that was edited and sealed again shows only in what it holds.
NOT_SCORES = (OSError, ValueError, LookupError, TypeError, AttributeError, BadZipFile)


def scores_of_run(batch: TokenBatch, folder: Path, sampling: Semantics, trainer: Semantics) -> Scored | None:
    """Return the batch with the scores that the run in `folder` has of it; None if it has none of all its tokens."""
    if batch.prompt_token_ids_S is None:
        return None
    try:
        return _scores_of_run(batch, folder, sampling, trainer)
    except NOT_SCORES:
        return None


def _scores_of_run(batch: TokenBatch, folder: Path, sampling: Semantics, trainer: Semantics) -> Scored | None:
    assert batch.prompt_token_ids_S is not None
    ids = np.split(batch.token_id_T, batch.offsets[1:-1])
    keys = [
        (tuple(prompt.tolist()), tuple(sampled.tolist()))
        for prompt, sampled in zip(batch.prompt_token_ids_S, ids, strict=True)
    ]
    for scores in _of_each_trainer(folder, sampling, trainer):
        if not scores.batch.sequences.keys() >= set(keys):
            continue
        scored, floor = scored_tokens(batch, scores, keys)
        if np.allclose(scored.trainer_logprobs_T, batch.trainer_logprobs_T, rtol=0.0, atol=SAME_NATS):
            return batch, scored, floor
    return None


def _of_each_trainer(folder: Path, sampling: Semantics, trainer: Semantics) -> Iterator[Scores]:
    """Yield what each trainer of the run scored under the meanings of this request, all its cells together."""
    by_trainer: dict[str, Scores] = {}
    for path in sorted((folder / CELL_FOLDERS).glob("*/scores.npz")):
        cell = path.parent
        seal = read_seal(cell)
        # What is sealed is a file: a pipe in its place would never end.
        if isinstance(seal, Damage) or not seal.files.keys() >= FILES or seal.damage(cell) is not None:
            continue
        job, result = (parse_json((cell / name).read_bytes()) for name in ("job.json", "result.json"))
        settings = TrainerSettings(dtype=str(job["dtype"]), head_dtype=str(job["head_dtype"]))
        request = LoggedRequest(settings, _as_sampling(sampling), trainer)
        if not result.get("micro_batch_floor") or not _is_of(job, request):
            continue
        work = ScoringBatch(request)
        for sequence in job["sequences"]:
            work.add(sequence["prompt_token_ids"], sequence["token_ids"])
        scores, name = _checked(read_scores(cell, work, result)), repr(settings)
        by_trainer[name] = by_trainer[name].joined(scores) if name in by_trainer else scores
    yield from by_trainer.values()


def _checked(scores: Scores) -> Scores:
    """Return the scores if every array has a number for every token of these sequences. Raises ValueError."""
    lengths = [len(sampled) for _, sampled in scores.batch.sequences]
    if not np.array_equal(scores.arrays["offsets"], np.cumsum([0, *lengths])):
        raise ValueError("the offsets are not those of the sequences")
    for name, values in scores.arrays.items():
        if name != "offsets" and (len(values) != sum(lengths) or values.dtype.kind not in "biuf"):
            raise ValueError(f"{name} has no number for every token")
    return scores


def _is_of(job: Mapping[str, Any], request: LoggedRequest) -> bool:
    """Return whether a job scored these candidates, for this trainer."""
    train = request.train
    wanted = {
        "temperature": train.temperature,
        "top_k": train.top_k,
        "top_p": train.top_p,
        "min_p": train.min_p,
        "candidates": [candidate.as_job() for candidate in request.candidates],
        "nucleus_grid": NUCLEUS,
        "top_k_grid": TOP_K,
        "min_p_grid": MIN_P,
    }
    written = parse_json(json.dumps(wanted))
    return bool({name: job.get(name) for name in written} == written)


def _as_sampling(sampling: Semantics) -> dict[str, Any]:
    return {name: value for name, value in sampling.as_job().items() if name != "name"}
