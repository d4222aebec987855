"""Case studies whose logprobs meant the same on both sides and came from other computations."""

import numpy as np
from toy_engine import Engine, generate
from toy_model import VOCABULARY, bfloat16, exact, first_weights, updated
from toy_trainer import score
from write_dumps import prime_rl_records, table_records, write_lines, write_parquet

SAMPLES = 2
BLOCK = 16


def prompts(generator, count, length=16, shared=0):
    """`count` prompts, each SAMPLES times; the first `shared` tokens are those of a system prompt."""
    own = generator.integers(0, VOCABULARY, (count, length))
    own[:, :shared] = generator.integers(0, VOCABULARY, shared)
    return own.repeat(SAMPLES, axis=0)


def trained(generator, steps, size):
    """Weights before and after each of so many optimiser steps."""
    course = [first_weights(generator)]
    for _ in range(steps):
        course.append(updated(course[-1], generator, size))
    return course


def requests_that_outlive_updates(folder, generator):
    """SkyRL#1250: abort() finds no request of that name, so long completions go on with the weights they began with,
    while the trainer takes its steps."""
    course = trained(generator, 4, 0.03)
    rollouts, scores, versions = [], [], []
    for begun in range(5):
        own = prompts(generator, 12)
        rollout = generate(Engine(), [course[begun]], own, 40, generator)
        rollouts.append(rollout)
        scores.append(score(course[4], rollout).logprobs_BT)
        versions.append(np.full(rollout.tokens_BT.shape, begun))
    records = []
    for place, (rollout, trainer, version) in enumerate(zip(rollouts, scores, versions, strict=True)):
        extra = {"rollout_version": version, "trainer_version": np.full(len(version), 4)}
        records += [
            {**record, "prompt_id": f"round {place} prompt {record['prompt_id']}"}
            for record in table_records(rollout, trainer, SAMPLES, extra)
        ]
    write_lines(folder / "rollouts.jsonl", records)


def reloaded_from_disk(folder, generator):
    """trl#5312: after a level-2 sleep the engine reloads the checkpoint it started with. The reference model of the KL
    term is that checkpoint."""
    course = trained(generator, 6, 0.03)
    rollout = generate(Engine(), [course[0]], prompts(generator, 40), 40, generator)
    reference = score(course[0], rollout).logprobs_BT
    write_lines(
        folder / "rollouts.jsonl",
        table_records(rollout, score(course[-1], rollout).logprobs_BT, SAMPLES, {"base_logprob": reference}),
    )


def stale_prefix(folder, generator):
    """NeMo-RL#4018: prompts of a long shared context are sampled again some steps after it went into the cache."""
    course = trained(generator, 8, 0.03)
    long = prompts(generator, 48, length=64, shared=48)
    cached = np.where(generator.uniform(size=len(long)) < 0.5, 3 * BLOCK, 0)
    rollout = generate(Engine(), [course[-1]], long, 40, generator, cached=(course[0], cached))
    trainer = score(course[-1], rollout).logprobs_BT
    write_lines(
        folder / "rollouts.jsonl", table_records(rollout, trainer, SAMPLES, {"cached_tokens": rollout.cached_B})
    )


def cache_that_could_not_be_turned_off(folder, generator):
    """AReaL#827: `enable_prefix_caching: false` never reached vLLM, so prompts meet keys of older weights."""
    course = trained(generator, 4, 0.04)
    own = prompts(generator, 48, length=40, shared=32)
    # In blocks: some prompts find the system prompt in the cache, some only its first block, some nothing.
    cached = generator.choice([0, BLOCK, 2 * BLOCK], size=len(own))
    rollout = generate(Engine(), [course[-1]], own, 40, generator, cached=(course[0], cached))
    trainer = score(course[-1], rollout).logprobs_BT
    write_lines(
        folder / "rollouts.jsonl", table_records(rollout, trainer, SAMPLES, {"cached_tokens": rollout.cached_B})
    )


def cache_without_a_reset(folder, generator):
    """prime-rl#1650: from some step on prefixes are cached, and no update resets them; prime-rl's own export."""
    course = trained(generator, 3, 0.04)
    own = prompts(generator, 24, length=40, shared=32)
    for step in (0, 3):
        cached = np.full(len(own), 2 * BLOCK)
        rollout = generate(Engine(), [course[step]], own, 32, generator, cached=(course[0], cached))
        records = prime_rl_records(step, rollout, score(course[step], rollout))
        write_lines(folder / "token_exports" / f"step_{step}" / "rank_0.jsonl", records)


def head_precision(folder, generator):
    """NeMo-RL#3936: logits rounded to bfloat16 by both sides, by vLLM alone, by neither. The residual stream is in
    float32, as in the thread's own configuration, and vLLM keeps its cache in bfloat16."""
    weights = first_weights(generator)
    own = prompts(generator, 24)
    for name, engine_head, trainer_head in (
        ("both-bfloat16", bfloat16, bfloat16),
        ("trainer-float32", bfloat16, exact),
        ("both-float32", exact, exact),
    ):
        engine = Engine(body=exact, kept=bfloat16, head=engine_head)
        rollout = generate(engine, [weights], own, 32, generator)
        write_parquet(folder / f"{name}.parquet", rollout, score(weights, rollout, head=trainer_head), SAMPLES)


CASES = {
    "skyrl-1250-abort-without-effect": requests_that_outlive_updates,
    "trl-5312-reloaded-checkpoint": reloaded_from_disk,
    "nemo-rl-4018-stale-prefix-cache": stale_prefix,
    "areal-827-false-dropped": cache_that_could_not_be_turned_off,
    "prime-rl-1650-prefix-cache-without-reset": cache_without_a_reset,
    "nemo-rl-3936-one-sided-head": head_precision,
}
