"""A trial of the trainer on a few tokens before the first engine starts: can it load and score the model here?

A trial is a scoring cell like those that follow the engines: the same script, interpreter, device, dtypes and
attention. It is kept like any other cell, so that a run that is resumed does not try again.
"""

from collections.abc import Iterable, Sequence

from rlaudit.engines.environments.environment_spec import Environment
from rlaudit.errors import NotFinished
from rlaudit.laboratory.rollout_context import RolloutContext
from rlaudit.laboratory.runner import Runner
from rlaudit.laboratory.scoring import ScoringBatch, ScoringRequest, scoring_cell

PROMPTS = 2
TOKENS = 16
WAYS_OUT = {"out-of-memory": "Take a smaller model (--model), more or larger GPUs, or bfloat16 (trainer.dtype)"}
OTHER_WAY_OUT = "Another interpreter can be given: --trainer-python COMMAND"


def try_trainer(
    runner: Runner, context: RolloutContext, requests: Iterable[ScoringRequest], trainer: Environment
) -> None:
    """Score the beginnings of the first prompts, once for each way in which the trainer loads the model.

    Raises NotFinished, naming the way, the cause and what can be done, for the first that fails.
    """
    for request in {request.loads: request for request in requests}.values():
        settings = request.trainer
        way = f"{settings.dtype} body, {settings.resolved_head_dtype} head, {settings.attention} attention"
        cell = scoring_cell(context, trial_batch(request, context.prompt_token_ids), trainer)
        outcome = runner.outcome(cell, f"trainer tried: {way}")
        if outcome.failure is not None:
            raise NotFinished(
                f"the trainer ({trainer.spec.name}) cannot score {context.model} ({way}): {outcome.failure.message}",
                f"{WAYS_OUT.get(outcome.failure.boundary, OTHER_WAY_OUT)}. Its log: {runner.directory(cell)}/log.txt",
            )


def trial_batch(request: ScoringRequest, prompts: Sequence[Sequence[int]]) -> ScoringBatch:
    """Return the first prompts, each with its beginning as the prompt and what follows as if it were sampled."""
    batch = ScoringBatch(request)
    for prompt in prompts[:PROMPTS]:
        ids = tuple(prompt[:TOKENS])
        begin = max(1, len(ids) // 2)
        batch.add(ids[:begin], ids[begin:] or ids)
    return batch
