"""Runs the update plants with the machinery of `ablate weight-update`, and judges each record blind."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from selftest.blind import CLEAN

from evidence.selftest.engines.engine_observation import LEAST_FLOOR
from evidence.selftest.engines.engine_trial import EngineTrial
from evidence.selftest.engines.engines_under_test import EnginesUnderTest
from evidence.selftest.engines.run_engine_plants import HERE
from evidence.selftest.engines.update_plants import MODE, UpdatePlant, recipe_document, update_plants
from rlaudit.causes.attribution.attribute import Attribution, attribute
from rlaudit.laboratory.carry_out import carried_out
from rlaudit.laboratory.prompts import load_prompts
from rlaudit.laboratory.studies.updates.cases import AFTER, COLD_AFTER, FLIGHT
from rlaudit.laboratory.studies.updates.plan import plan_updates
from rlaudit.laboratory.studies.updates.recipe import update_recipe_of
from rlaudit.laboratory.studies.updates.records import Flight
from rlaudit.laboratory.studies.updates.run import FinishedUpdates
from rlaudit.laboratory.studies.updates.scored_tokens import ScoredTokens
from rlaudit.laboratory.studies.updates.study import STUDY
from rlaudit.laboratory.study import releases
from rlaudit.meaning.token_evidence import token_evidence
from rlaudit.text.progress import Progress
from rlaudit.tokens.alignment import alignment_report
from rlaudit.tokens.token_batch import TokenBatch

UPDATED = 1  # the version after the only update


def run_update_plants(
    engines: EnginesUnderTest, causes: Sequence[str], seed: int, folder: Path, progress: Progress
) -> list[EngineTrial]:
    """Plants of these causes, all by default. Finished engines in `folder` are kept."""
    every = update_plants(engines.releases)
    plants = [plant for plant in every if not causes or set(plant.causes or (CLEAN,)) & set(causes)]
    if not plants:
        return []
    versions = tuple(dict.fromkeys(plant.version for plant in plants))
    recipe = update_recipe_of({**recipe_document(versions, seed), **engines.recipe_keys}, HERE)
    prompts = load_prompts(recipe.prompts, recipe.prompts_read)
    plan = plan_updates(recipe, engines.accelerator, prompts)
    given = engines.given_for(releases(plan))
    with carried_out(STUDY, plan, folder, engines.accelerator, prompts, progress, given) as (run, _):
        return judge_updates(run, plants)


def judge_updates(run: FinishedUpdates, plants: Sequence[UpdatePlant]) -> list[EngineTrial]:
    """Judge the rollouts of every plant."""
    records = {record.start.version: record for record in run.records}
    trials = []
    for plant in plants:
        record = records[plant.version]
        case = next(
            (case for case in record.start.cases if (case.mode, case.clear_cache) == (MODE, plant.clear_cache)), None
        )
        flights = () if case is None else record.of(case, FLIGHT, AFTER, COLD_AFTER)
        failure = record.failure or _why_unusable(flights)
        if failure is not None:
            trials.append(EngineTrial(plant.name, plant.causes, None, failure))
            continue
        # What the engine really holds is what the trainer scores with: a part that an update leaves old is a fault of
        # its own, which `ablate weight-update` names.
        batch = table_of(ScoredTokens(flights, run.scores, record.held), trained_late=plant.trained_late)
        trials.append(EngineTrial(plant.name, plant.causes, judge_table(batch)))
    return trials


def _why_unusable(flights: Sequence[Flight]) -> str | None:
    if not flights:
        return "the update was not made"
    if any(None in flight.versions for flight in flights):
        return "tokens came while the engine said that it was paused"
    return next((flight.error for flight in flights if flight.error), None)


def table_of(tokens: ScoredTokens, *, trained_late: bool) -> TokenBatch:
    """What a trainer would have logged of these requests; every token's version is known."""
    lengths_S = [len(flight.token_ids) for flight in tokens.flights]
    prompt_S = np.array([flight.prompt for flight in tokens.flights])
    version_T = tokens.version_T.astype(np.int64)
    return TokenBatch(
        rollout_logprobs_T=tokens.rollout_logprobs_T,
        trainer_logprobs_T=tokens.under(tokens.held) if trained_late else tokens.right_T,
        token_id_T=np.concatenate([np.array(flight.token_ids) for flight in tokens.flights]),
        position_T=np.concatenate([np.arange(length) for length in lengths_S]),
        sequence_T=tokens.sequence_T,
        prompt_S=prompt_S,
        prompt_names_S=prompt_S,
        sample_names_S=np.arange(len(lengths_S)),
        token_columns={
            "rollout_version": version_T,
            "trainer_version": np.full_like(version_T, UPDATED) if trained_late else version_T,
        },
        sequence_columns={"cached_tokens": np.array([flight.cached_tokens or 0 for flight in tokens.flights])},
    )


def judge_table(batch: TokenBatch) -> Attribution:
    """What `compare` would say of it."""
    return attribute(token_evidence(batch, alignment=alignment_report(batch), floor_k2=LEAST_FLOOR))
