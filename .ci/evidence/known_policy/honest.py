"""Rollouts with which nothing is wrong, in the shapes that logs have. Each is a world, and what it varies its name."""

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from evidence.known_policy.faults import forced_words, noisy
from evidence.known_policy.policy import FLOAT32, Floats, Meaning, Place
from evidence.known_policy.rollouts import Log, World, new_world

Honest = Callable[[np.random.Generator], World]
# Of the state; a logit is off by fifteen times as much.
NOISE = 0.003


def in_float32(world: World) -> World:
    """Return the world in which both sides compute in float32."""
    return world.with_engine(state_bits=FLOAT32).with_trainer(memory_bits=FLOAT32)


def ids_alone(world: World) -> World:
    """Return the world whose log holds ids and one logprob a token from either side."""
    return replace(world, columns=frozenset())


def in_digits(world: World) -> World:
    """Return the world whose log has logprobs with three decimals."""

    def edit(log: Log, rng: np.random.Generator) -> Log:
        engine, trainer = log.engine, log.trainer
        return replace(
            log,
            engine=replace(engine, logprob_SL=np.round(engine.logprob_SL, 3)),
            trainer=replace(trainer, logprob_SL=np.round(trainer.logprob_SL, 3)),
        )

    return world.with_edit(edit)


def with_tails(world: World) -> World:
    """Return the world whose noise has heavy tails: a few tokens are many times as far off."""

    def size(world: World, place: Place) -> Floats:
        rows_A = place.rows_A
        return 1.0 / np.sqrt(1e-2 + (rows_A * 0.754877 + place.position * 0.569840) % 1.0)

    return noisy(size)(world, NOISE / 2, np.random.default_rng(0))


def even_noise(world: World) -> World:
    """Return the world whose engine is as noisy everywhere as a low-precision one is."""
    return noisy(lambda world, place: np.ones(len(place.rows_A)))(world, NOISE, np.random.default_rng(0))


def cool(world: World) -> World:
    """Return the world in which both sides divide by a temperature, as was requested."""
    return world.both_mean(Meaning(0.7), temperature=0.7)


def replayed(world: World) -> World:
    """Return the world whose trainer applies the sampler's filter as well."""
    return world.both_mean(Meaning(top_p=0.9), top_p=0.9, trainer_replays_filters=True)


def tools(rng: np.random.Generator) -> World:
    """Return a world in which tools answer, and a loss mask leaves their words out."""
    world = new_world(rng)
    return replace(forced_words(0.0)(world, 0.5, rng), masked=True)


HONEST: Mapping[str, Honest] = {
    "bfloat16": new_world,
    "float32": lambda rng: in_float32(new_world(rng)),
    "ids alone": lambda rng: ids_alone(new_world(rng)),
    "ids alone 256 x 1": lambda rng: ids_alone(new_world(rng, 256, 1)),
    "ids alone 4 x 64": lambda rng: ids_alone(new_world(rng, 4, 64)),
    "64 x 8": lambda rng: new_world(rng, 64, 8),
    "8 x 4": lambda rng: new_world(rng, 8, 4),
    "temperature 0.7": lambda rng: cool(new_world(rng)),
    "top-p 0.9 replayed": lambda rng: replayed(new_world(rng)),
    "even noise 16 x 8": lambda rng: ids_alone(even_noise(new_world(rng, 16, 8))),
    "noise with tails": lambda rng: with_tails(new_world(rng)),
    "three decimals": lambda rng: in_digits(ids_alone(new_world(rng))),
    "tools masked": tools,
}
