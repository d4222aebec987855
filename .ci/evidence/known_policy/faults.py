"""What is planted in worlds of a known policy: causes at three doses, look-alikes that are none, and nothing at all.

A cause's row is right if one of its names is given. Other names are wrong anywhere, and any is beside what only looks
like a cause.
"""

from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass, replace

import numpy as np

from evidence.known_policy.policy import (
    BFLOAT16,
    END,
    FIRST_WORD,
    FLOAT32,
    STATE,
    VOCABULARY,
    Change,
    Floats,
    Integers,
    Meaning,
    Place,
    Policy,
    Prompts,
    rounded,
)
from evidence.known_policy.rollouts import BLOCK, LONGEST, Log, World

Plant = Callable[[World, float, np.random.Generator], World]


@dataclass(frozen=True)
class Fault:
    """dose: a dose in words. plant(world, dose, rng): the world with it. names: any of these is right.

    fits: names that are true as well. needs: the columns without which no log shows it. semantic: logprobs or tokens
    mean something else, so that a mismatch of the semantic layer is right. honest: nothing is wrong with the engine.
    """

    name: str
    dose: str
    doses: tuple[float, ...]
    plant: Plant
    names: Set[str] = frozenset()
    fits: Set[str] = frozenset()
    needs: Set[str] = frozenset()
    semantic: bool = False
    honest: bool = False


def raw_logprobs(world: World, temperature: float, rng: np.random.Generator) -> World:
    """The engine reports before the temperature, the trainer divides by it."""
    world = world.both_mean(Meaning(temperature), temperature=temperature)
    return replace(world.with_engine(means=Meaning()), draws_by=Meaning(temperature))


def trainer_temperature(world: World, temperature: float, rng: np.random.Generator) -> World:
    """The trainer does not divide by the temperature that the engine samples and reports at."""
    return world.both_mean(Meaning(temperature), temperature=temperature).with_trainer(means=Meaning())


def filters_not_replayed(world: World, top_p: float, rng: np.random.Generator) -> World:
    """The engine reports what a requested top-p leaves, the trainer the whole softmax."""
    return world.both_mean(Meaning(top_p=top_p), top_p=top_p).with_trainer(means=Meaning())


def hidden(parameter: str) -> Plant:
    """Tokens are drawn by a parameter that nobody requested and neither side knows of."""

    def plant(world: World, dose: float, rng: np.random.Generator) -> World:
        return replace(world, draws_by=Meaning(**{parameter: dose}))

    return plant


def on_the_engine(parameter: str) -> Plant:
    """The engine draws and reports by a parameter that nobody requested."""

    def plant(world: World, dose: float, rng: np.random.Generator) -> World:
        return world.with_engine(means=Meaning(**{parameter: dose}))

    return plant


def noisy(size_of: Callable[[World, Place], Floats]) -> Plant:
    """The engine's state is off by noise of this size, which is anew at every token."""

    def plant(world: World, dose: float, rng: np.random.Generator) -> World:
        def change(state_AR: Floats, place: Place, rng: np.random.Generator) -> Floats:
            size_A = dose * size_of(world, place)
            return state_AR + size_A[:, None] * rng.standard_normal(state_AR.shape)

        return world.with_engine(changes_state=(*world.engine.changes_state, change))

    return plant


def with_context(world: World, place: Place) -> Floats:
    """Each cached token adds its error."""
    return (place.prompt_A + place.position) / (world.prompts.token_SP.shape[1] + LONGEST)


def with_batch(world: World, place: Place) -> Floats:
    """The kernel of a large batch sums in another order than that of a small one."""
    return (world.batch_S[place.rows_A] / world.batch_S.max()) ** 2


def at_edges(world: World, place: Place) -> Floats:
    """The first token after a block of keys and values."""
    return ((place.prompt_A + place.position) % BLOCK == 0).astype(np.float64)


def other_policy(policy: Policy, size: float, rng: np.random.Generator) -> Policy:
    """Return a policy some updates away: all its weights but those of its speeds are another `size` of themselves."""
    return replace(
        policy,
        says_VR=policy.says_VR + size * rng.standard_normal(policy.says_VR.shape),
        reads_RV=policy.reads_RV + size * policy.reads_RV.std() * rng.standard_normal(policy.reads_RV.shape),
    )


def other_head(policy: Policy, size: float, weight_SL: Floats, rng: np.random.Generator) -> Change:
    """Return the change that a difference of the head makes, `size` of itself times a token's weight."""
    other_RV = size * policy.reads_RV.std() * rng.standard_normal(policy.reads_RV.shape)

    def change(logits_AV: Floats, place: Place, rng: np.random.Generator) -> Floats:
        return logits_AV + weight_SL[place.rows_A, place.position, None] * (policy.state(place.memory_AR) @ other_RV)

    return change


def stale_weights(world: World, size: float, rng: np.random.Generator) -> World:
    """Rollouts of `lag` updates ago."""
    change = other_head(world.policy, size, world.lag_SL.astype(np.float64), rng)
    return world.with_engine(changes_logits=(change,))


def stale_replica(world: World, share: float, rng: np.random.Generator) -> World:
    """One replica of the fleet has missed an update."""
    stale_SL = np.repeat(rng.random(world.sequences) < share, LONGEST).reshape(-1, LONGEST)
    change = other_head(world.policy, 0.05, stale_SL.astype(np.float64), rng)
    return world.with_engine(changes_logits=(change,))


def stale_prefix(world: World, size: float, rng: np.random.Generator) -> World:
    """Prompts in the prefix cache were read by the policy before an update."""
    return world.with_engine(stale_prompts=(other_policy(world.policy, size, rng), world.cached_S > 0))


def stale_prefix_of_all(world: World, size: float, rng: np.random.Generator) -> World:
    """The same of all prompts, and nobody has logged what was cached."""
    return world.with_engine(stale_prompts=(other_policy(world.policy, size, rng), np.ones(world.sequences, bool)))


def wrong_weights(world: World, share: float, rng: np.random.Generator) -> World:
    """The engine runs without a share of what training has changed; the log has the logprobs of the base model."""
    policy = world.policy
    base = other_policy(policy, 0.03, rng)
    part = replace(
        policy,
        says_VR=policy.says_VR + share * (base.says_VR - policy.says_VR),
        reads_RV=policy.reads_RV + share * (base.reads_RV - policy.reads_RV),
    )
    return replace(world.with_engine(policy=part), base=base)


def other_weights(world: World, size: float, rng: np.random.Generator) -> World:
    """The engine runs another checkpoint."""
    return world.with_engine(policy=other_policy(world.policy, size, rng))


def another_rope(world: World, factor: float, rng: np.random.Generator) -> World:
    """Positions count otherwise: what was said before is forgotten at other speeds."""
    policy = world.policy
    return world.with_engine(policy=replace(policy, keeps_R=policy.keeps_R**factor))


def dropout(world: World, share: float, rng: np.random.Generator) -> World:
    """The trainer leaves out a share of its state, as if it trained."""

    def change(state_AR: Floats, place: Place, rng: np.random.Generator) -> Floats:
        return state_AR * (rng.random(state_AR.shape) >= share) / (1 - share)

    return world.with_trainer(changes_state=(change,))


def moe_routing(world: World, share: float, rng: np.random.Generator) -> World:
    """At a share of tokens the engine's router takes another expert, whose logits are others."""
    expert_RR = rng.standard_normal((STATE, STATE)) / np.sqrt(STATE)

    def change(state_AR: Floats, place: Place, rng: np.random.Generator) -> Floats:
        flips_A = rng.random(len(state_AR)) < share
        return np.where(flips_A[:, None], state_AR + 0.3 * state_AR @ expert_RR, state_AR)

    return world.with_engine(changes_state=(change,))


def coarser(world: World, **engine: object) -> World:
    """Return the world whose new engine keeps fewer bits than today's, of which there is a log as well."""
    precise = world.with_engine(state_bits=13).with_trainer(memory_bits=FLOAT32)
    return replace(precise.with_engine(**engine), today=precise)


def coarse_head(world: World, largest: float, rng: np.random.Generator) -> World:
    """The engine's head gives logits in bfloat16, the largest about this size."""

    def change(logits_AV: Floats, place: Place, rng: np.random.Generator) -> Floats:
        largest_A = largest * np.exp(0.2 * rng.standard_normal((len(logits_AV), 1)))
        return rounded(logits_AV - logits_AV.max(axis=1, keepdims=True) + largest_A, BFLOAT16)

    return coarser(world, changes_logits=(change,))


def coarse_body(world: World, bits: float, rng: np.random.Generator) -> World:
    """The engine's body keeps fewer bits."""
    return coarser(world, state_bits=int(bits))


def other_prompt(world: World, place: float, rng: np.random.Generator) -> World:
    """The trainer's template lacks one word, so many words before the completion."""
    token_SP = world.prompts.token_SP.copy()
    token_SP[:, -int(place)] = -1
    return world.with_trainer(prompts=Prompts(token_SP))


def some(share: float, world: World, rng: np.random.Generator) -> Integers:
    """Return a share of the sequences, two at least."""
    count = max(2, round(share * world.sequences))
    return np.sort(rng.permutation(world.sequences)[:count])


def forced_words(logprob: float | None) -> Plant:
    """Tools answer in some sequences: words that were not drawn, with one logprob; None: with those of the policy."""

    def plant(world: World, share: float, rng: np.random.Generator) -> World:
        forced_SL = np.full((world.sequences, LONGEST), -1)
        for row in some(share, world, rng):
            begin = int(rng.integers(2, 20))
            forced_SL[row, begin : begin + 8] = rng.integers(FIRST_WORD, VOCABULARY, 8)

        def edit(log: Log, rng: np.random.Generator) -> Log:
            put_SL = np.where(forced_SL >= 0, logprob, log.engine.logprob_SL)
            return replace(log, engine=replace(log.engine, logprob_SL=put_SL))

        forced = replace(world, forced_SL=forced_SL)
        return forced if logprob is None else forced.with_edit(edit)

    return plant


def forced_beginning(world: World, words: float, rng: np.random.Generator) -> World:
    """Every completion begins with the same words, which the framework puts there; their logprobs are true."""
    forced_SL = np.full((world.sequences, LONGEST), -1)
    forced_SL[:, : int(words)] = rng.integers(FIRST_WORD, VOCABULARY, int(words))
    return replace(world, forced_SL=forced_SL)


def end_left_out(world: World, share: float, rng: np.random.Generator) -> World:
    """The framework cuts the end of sequence off, of a share of the completions."""
    cut_S = rng.random(world.sequences) < share

    def edit(log: Log, rng: np.random.Generator) -> Log:
        length_S, rows_S = log.engine.length_S, np.arange(world.sequences)
        ends_S = (log.engine.token_SL[rows_S, length_S - 1] == END) & (length_S > 1) & cut_S
        return replace(log, engine=replace(log.engine, length_S=length_S - ends_S))

    return world.with_edit(edit)


def off_by(lag: int) -> Plant:
    """The trainer's logprobs stand `lag` places off, in some sequences."""

    def plant(world: World, share: float, rng: np.random.Generator) -> World:
        def edit(log: Log, rng: np.random.Generator) -> Log:
            row_SL, place_SL = np.indices((world.sequences, LONGEST))
            place_SL[some(share, world, rng)] += lag
            return replace(log, trainer=log.trainer.moved(row_SL, place_SL))

        return world.with_edit(edit)

    return plant


def swapped_rows(world: World, share: float, rng: np.random.Generator) -> World:
    """Rows of the trainer stand in another order than the engine's."""

    def edit(log: Log, rng: np.random.Generator) -> Log:
        row_SL, place_SL = np.indices((world.sequences, LONGEST))
        rows = some(share, world, rng)
        row_SL[rows] = np.roll(rows, 1)[:, None]
        return replace(log, trainer=log.trainer.moved(row_SL, place_SL))

    return world.with_edit(edit)


def retokenised(world: World, share: float, rng: np.random.Generator) -> World:
    """The trainer reads the text again, and some tokens became two, or two became one."""

    def read(token_SL: Integers, length_S: Integers, rng: np.random.Generator) -> tuple[Integers, Integers]:
        again_SL, lengths_S = token_SL.copy(), length_S.copy()
        for row in some(share, world, rng):
            tokens, again = list(token_SL[row, : length_S[row]]), []
            while tokens:
                other = rng.integers(FIRST_WORD, VOCABULARY, 2)
                change = rng.choice(3, p=(0.9, 0.05, 0.05)) if tokens[0] != END and len(tokens) > 2 else 0
                again += [tokens[:1], list(other), list(other[:1])][change]
                del tokens[: 2 if change == 2 else 1]
            lengths_S[row] = min(len(again), LONGEST)
            again_SL[row, : lengths_S[row]] = again[:LONGEST]
        return again_SL, lengths_S

    return replace(world, reads=read)


def token_dropped(of_ids: bool) -> Plant:
    """Weights are updated within some sequences, and a token after that is lost: its id alone, or its logprob alone."""

    def plant(world: World, share: float, rng: np.random.Generator) -> World:
        updated_S = np.argmax(np.diff(world.lag_SL, axis=1, append=world.lag_SL[:, -1:]) < 0, axis=1) + 1
        chosen_S = (rng.random(world.sequences) < share) & (updated_S > 1)

        def left(values_SL: np.ndarray, length_S: Integers, *_: object) -> tuple[np.ndarray, Integers]:
            lost_S = chosen_S & (length_S > updated_S + 4)
            place_SL = np.arange(LONGEST) + (lost_S[:, None] & (np.arange(LONGEST) >= updated_S[:, None]))
            return np.take_along_axis(values_SL, np.minimum(place_SL, LONGEST - 1), axis=1), length_S - lost_S

        def edit(log: Log, rng: np.random.Generator) -> Log:
            engine = log.engine
            name = "token_SL" if of_ids else "logprob_SL"
            values_SL, length_S = left(getattr(engine, name), engine.length_S)
            return replace(log, engine=replace(engine, length_S=length_S, **{name: values_SL}))

        return replace(world, reads=left if of_ids else None).with_edit(edit)

    return plant


def added_to(world: World, constant: float, rng: np.random.Generator) -> World:
    """The trainer adds a small number to a probability before it takes the logarithm."""

    def edit(log: Log, rng: np.random.Generator) -> Log:
        return replace(log, trainer=replace(log.trainer, logprob_SL=np.log(np.exp(log.trainer.logprob_SL) + constant)))

    return world.with_edit(edit)


def one_token_biased(world: World, size: float, rng: np.random.Generator) -> World:
    """A logit bias on a token that is likely now and then; nobody requested it."""
    token = int(world.policy.logits(rng.uniform(-1, 1, (64, STATE))).mean(axis=0).argmax())
    return world.with_engine(means=Meaning(bias=((token, size),)))


# What `compare` calls tokens that were drawn by what neither side knows of.
HIDDEN = frozenset({"hidden-truncation", "hidden truncation", "hidden sampling parameters", "misreported logprobs"})
SHARES, PARTS, NOISES = (0.02, 0.2, 1.0), (0.01, 0.05, 0.2), (0.01, 0.04, 0.15)
COOLER = (0.95, 0.85, 0.6)
OF_ALL, OF_RESUMED, OF_WEIGHTS = "{:.0%} of the sequences", "{:.0%} of those resumed", "{:g} of the weights"
TOPS, ENTROPY, VERSIONS, CACHED, BATCH = (
    frozenset({name}) for name in ("tops", "trainer_entropy", "versions", "cached_tokens", "batch_id")
)
OTHER_WEIGHTS = frozenset({"wrong-weights", "stale-weights"})


def semantic(name: str, *rest: object, **more: object) -> Fault:
    """Return a fault of what logprobs or tokens mean."""
    return Fault(name, *rest, **more, semantic=True)


CAUSES = (
    semantic("raw-logprobs", "T {:g}", COOLER, raw_logprobs, {"raw-logprobs"}, needs=TOPS),
    semantic("trainer-temperature", "T {:g}", COOLER, trainer_temperature, {"trainer-temperature"}, needs=TOPS),
    semantic("filters-not-replayed", "top-p {:g}", (0.99, 0.95, 0.8), filters_not_replayed, {"filters-not-replayed"}),
    semantic("hidden-truncation", "top-p {:g}", (0.95, 0.9, 0.7), hidden("top_p"), HIDDEN),
    semantic("hidden temperature", "T {:g}", COOLER, hidden("temperature"), HIDDEN),
    semantic("repetition penalty", "{:g}", (1.01, 1.03, 1.1), on_the_engine("repetition"), {"penalty"}),
    semantic("frequency penalty", "{:g}", (0.05, 0.2, 0.5), on_the_engine("frequency"), {"penalty"}),
    semantic("presence penalty", "{:g}", (0.05, 0.2, 0.5), on_the_engine("presence"), {"penalty"}),
    semantic("bos", "{:g} words before the completion", (20, 10, 3), other_prompt, {"bos"}),
    semantic("off-by-one", OF_ALL, SHARES, off_by(1), {"off-by-one"}),
    semantic("swapped-rows", OF_ALL, SHARES, swapped_rows, {"swapped-rows"}),
    semantic("retokenised", OF_ALL, SHARES, retokenised, {"retokenised"}),
    semantic("placed-logprobs", OF_ALL, SHARES, forced_words(0.0), {"placed-logprobs"}),
    Fault(
        "token-dropped-after-resume",
        OF_RESUMED,
        (0.1, 0.4, 1.0),
        token_dropped(of_ids=False),
        {"token-dropped-after-resume"},
        needs=VERSIONS,
    ),
    Fault("moe-routing", "{:.1%} of the tokens", (0.005, 0.02, 0.06), moe_routing, {"moe-routing"}),
    Fault("head-precision", "logits to {:g}", (4, 16, 60), coarse_head, {"head-precision"}, needs=TOPS),
    Fault("body-precision", "{:g} bits", (11, 10, 9), coarse_body, {"body-precision"}, needs=ENTROPY),
    Fault("quantised-kv", "noise {:g}", NOISES, noisy(with_context), {"quantised-kv"}),
    Fault("batch-dependence", "noise {:g}", NOISES, noisy(with_batch), {"batch-dependence"}, needs=BATCH),
    Fault("stale-prefix-kv", OF_WEIGHTS, PARTS, stale_prefix, {"stale-prefix-kv"}, needs=CACHED),
    Fault("stale-weights", "{:g} an update", (0.003, 0.01, 0.03), stale_weights, {"stale-weights"}, needs=VERSIONS),
    Fault("wrong-weights", "{:.0%} of the training missing", (0.05, 0.3, 1.0), wrong_weights, {"wrong-weights"}),
)
LOOK_ALIKES = (
    semantic("one token biased", "by {:g}", (0.5, 2, 5), one_token_biased, fits={"penalty"}),
    semantic("log(p + c)", "c {:g}", (1e-6, 1e-4, 1e-3), added_to, fits={"placed-logprobs"}),
    Fault("dropout", "{:.0%}", (0.01, 0.05, 0.1), dropout),
    Fault("another rope", "speeds x {:g}", (1.02, 1.1, 2), another_rope),
    Fault("other weights", OF_WEIGHTS, PARTS, other_weights, fits=OTHER_WEIGHTS),
    Fault("one stale replica", OF_ALL, (0.03, 0.1, 0.5), stale_replica, fits=OTHER_WEIGHTS),
    Fault("stale prefix of all", OF_WEIGHTS, PARTS, stale_prefix_of_all, fits={"stale-prefix-kv"}),
    Fault("edges of blocks", "noise {:g}", NOISES, noisy(at_edges), fits={"chunk-boundary"}),
    semantic("shifted by four", OF_ALL, SHARES, off_by(4), fits={"off-by-one"}),
    semantic("tool output with true logprobs", OF_ALL, SHARES, forced_words(None), fits={"placed-logprobs"}),
    semantic(
        "id dropped after resume",
        OF_RESUMED,
        (0.1, 0.4, 1.0),
        token_dropped(of_ids=True),
        fits={"token-dropped-after-resume", "retokenised"},
        needs=VERSIONS,
    ),
    Fault("end of sequence left out", "of {:.0%}", (0.3, 1.0), end_left_out, honest=True),
    Fault("forced first words", "{:g}", (1, 8), forced_beginning, honest=True),
)
FAULTS: Mapping[str, Fault] = {one.name: one for one in (*CAUSES, *LOOK_ALIKES)}
