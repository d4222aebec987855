"""A policy whose probabilities are exactly known: a small autoregressive model that reads, remembers and predicts.

A memory of R numbers adds what each token says to what it has kept of the tokens before it. They forget at R speeds,
from the last token alone to some sixty tokens, as heads of attention look near and far. Its state, and from it logits
over V tokens, are as peaked as a language model's: most tokens are nearly certain and a few are open. The end of a
sequence is a token that is drawn like others.

All numbers are float64, and rounding is planted: another BLAS kernel changes a sum by 1e-16 of it, and a draw
practically never.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

VOCABULARY, STATE = 256, 32
# Tokens with a meaning of their own: every prompt begins with BEGIN, a completion ends with END, TURN precedes it.
END, BEGIN, TURN = 0, 1, 2
FIRST_WORD = 3
TOPS = 5
# Somewhat as a language model at temperature 1: nearly half of the tokens above .9, .6 nats on average, and an
# end at every fortieth token.
PEAKED, ENDS, ENDS_MORE = 15.0, -4.2, 1.5
# Significant bits of the numbers a kernel keeps. The two sides round at different places of the model.
FLOAT32, BFLOAT16 = 24, 8


@dataclass(frozen=True, eq=False)
class Policy:
    """says_VR: what a token adds to the memory. keeps_R: the share of it that is left after another token.

    mixes_RR: from memory to state. reads_RV, leans_V: from state to logits, and what all states have in common.
    """

    says_VR: Floats
    keeps_R: Floats
    mixes_RR: Floats
    reads_RV: Floats
    leans_V: Floats

    def remembers(self, memory_SR: Floats, token_S: Integers) -> Floats:
        """Return the memory after one more token."""
        return self.keeps_R * memory_SR + np.sqrt(1 - self.keeps_R**2) * self.says_VR[token_S]

    def state(self, memory_SR: Floats) -> Floats:
        """Return what is made of the memory, whose size does not matter, between -1 and 1."""
        size_S = np.sqrt(np.square(memory_SR).mean(axis=1, keepdims=True))
        return np.tanh(memory_SR / size_S @ self.mixes_RR)

    def logits(self, state_SR: Floats) -> Floats:
        """Return all logits. One number of the state says how likely the end is."""
        logits_SV = self.leans_V + state_SR @ self.reads_RV
        most_S = logits_SV.max(axis=1)
        logits_SV[:, END] = (
            most_S + np.log(np.exp(logits_SV - most_S[:, None]).sum(axis=1)) + ENDS + ENDS_MORE * state_SR[:, 0]
        )
        return logits_SV


def new_policy(rng: np.random.Generator) -> Policy:
    """Draw a policy."""
    often_V = -0.5 * np.log(np.arange(1, VOCABULARY + 1))
    rng.shuffle(often_V)
    often_V[[END, BEGIN, TURN]] = -30.0
    return Policy(
        says_VR=rng.standard_normal((VOCABULARY, STATE)),
        keeps_R=np.exp(-1 / (0.3 + 60 * np.linspace(0, 1, STATE) ** 4)),
        mixes_RR=rng.standard_normal((STATE, STATE)) * 1.5 / np.sqrt(STATE),
        reads_RV=rng.standard_normal((STATE, VOCABULARY)) * PEAKED / np.sqrt(STATE),
        leans_V=often_V,
    )


@dataclass(frozen=True)
class Meaning:
    """What is done to logits before a softmax, in vLLM's order: a bias, penalties, temperature, min-p, top-k, top-p.

    Each at its default does nothing. bias: added to a token's logit, by id.
    """

    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = 0
    min_p: float = 0.0
    repetition: float = 1.0
    presence: float = 0.0
    frequency: float = 0.0
    bias: tuple[tuple[int, float], ...] = ()

    def logprobs(self, logits_SV: Floats, prompt_SV: NDArray[np.bool_], counts_SV: Integers) -> Floats:
        """Return the logprobs of all tokens; prompt_SV: whether the prompt holds them, counts_SV: the completion."""
        logits_SV = logits_SV.copy()
        for token, size in self.bias:
            logits_SV[:, token] += size
        if self.repetition != 1:
            punished_SV = np.where(logits_SV > 0, logits_SV / self.repetition, logits_SV * self.repetition)
            logits_SV = np.where(prompt_SV | (counts_SV > 0), punished_SV, logits_SV)
        logits_SV -= self.frequency * counts_SV + self.presence * (counts_SV > 0)
        logprobs_SV = log_softmax(logits_SV / self.temperature)
        kept_SV = np.ones(logits_SV.shape, bool)
        if self.min_p:
            kept_SV &= logprobs_SV >= logprobs_SV.max(axis=1, keepdims=True) + np.log(self.min_p)
        if self.top_k:
            kept_SV &= logprobs_SV >= np.partition(logprobs_SV, -self.top_k, axis=1)[:, [-self.top_k]]
        if self.top_p < 1:
            best_first_SV = np.argsort(-logprobs_SV, axis=1, kind="stable")
            mass_SV = np.exp(np.take_along_axis(logprobs_SV, best_first_SV, axis=1))
            within_SV = np.cumsum(mass_SV, axis=1) - mass_SV < self.top_p
            nucleus_SV = np.zeros_like(within_SV)
            np.put_along_axis(nucleus_SV, best_first_SV, within_SV, axis=1)
            kept_SV &= nucleus_SV
        return logprobs_SV if kept_SV.all() else log_softmax(np.where(kept_SV, logprobs_SV, -np.inf))


@dataclass(frozen=True, eq=False)
class Place:
    """Where a side is: at the same position of the A sequences that have not ended.

    position: tokens of the completion before it. prompt_A: tokens of the prompt. memory_AR: what the policy remembers.
    """

    rows_A: Integers
    position: int
    prompt_A: Integers
    memory_AR: Floats


# Changes (A, R) states or (A, V) logits at a place.
Change = Callable[[Floats, Place, np.random.Generator], Floats]


@dataclass(frozen=True, eq=False)
class Side:
    """The engine or the trainer: a policy, how it is computed, and what its logprobs mean.

    memory_bits, state_bits: significant bits that it keeps of either. changes_state, changes_logits: what else it does
    to them. prompts: what it reads, if that is not what the other side does. stale_prompts: another policy, and the
    sequences (S,) whose prompt that one has read.
    """

    policy: Policy
    means: Meaning = Meaning()
    memory_bits: int = FLOAT32
    state_bits: int = FLOAT32
    changes_state: tuple[Change, ...] = ()
    changes_logits: tuple[Change, ...] = ()
    prompts: "Prompts | None" = None
    stale_prompts: tuple[Policy, NDArray[np.bool_]] | None = None


@dataclass(frozen=True, eq=False)
class Walk:
    """What a side says of S sequences of at most L tokens, beyond a sequence's length nothing that counts."""

    length_S: Integers
    token_SL: Integers
    logprob_SL: Floats
    entropy_SL: Floats
    top_ids_SLK: Integers
    top_logprobs_SLK: Floats

    def moved(self, row_SL: Integers, place_SL: Integers) -> "Walk":
        """Return what it says of other rows and places beside these tokens; after its end a row begins again."""
        at = (row_SL, place_SL % self.length_S[row_SL])
        names = ("logprob_SL", "entropy_SL", "top_ids_SLK", "top_logprobs_SLK")
        return replace(self, **{name: getattr(self, name)[at] for name in names})


@dataclass(frozen=True, eq=False)
class Prompts:
    """(S, P) ids from BEGIN to TURN; -1 is no token, and all of a shorter prompt stands at the end."""

    token_SP: Integers

    @property
    def length_S(self) -> Integers:
        """Return the tokens of each."""
        return (self.token_SP >= 0).sum(axis=1)

    @property
    def holds_SV(self) -> NDArray[np.bool_]:
        """Return whether each holds a token."""
        return (self.token_SP[:, :, None] == np.arange(VOCABULARY)).any(axis=1)


def walk(
    side: Side,
    prompts: Prompts,
    longest: int,
    rng: np.random.Generator,
    *,
    reads: tuple[Integers, Integers] | None = None,
    draws_by: Meaning | None = None,
    forced_SL: Integers | None = None,
) -> Walk:
    """Draw completions, or read those that are given, and say the logprobs of their tokens.

    reads: (S, L) tokens and (S,) lengths; None: tokens are drawn. draws_by: what they are drawn by, if that is not what
    the side says. forced_SL: tokens that are put in instead of drawn ones, -1 elsewhere.
    """
    sequences = len(prompts.token_SP)
    length_S = np.full(sequences, longest) if reads is None else reads[1]
    out = _empty(sequences, longest, length_S.copy())
    holds_SV, prompt_S = prompts.holds_SV, prompts.length_S
    counts_SV = np.zeros((sequences, VOCABULARY), np.int64)
    memory_SR = _after_prompts(side, prompts)
    alive_A = np.arange(sequences)
    for position in range(longest):
        alive_A = alive_A[out.length_S[alive_A] > position]
        if not len(alive_A):
            break
        memory_AR = rounded(memory_SR[alive_A], side.memory_bits)
        place = Place(alive_A, position, prompt_S[alive_A], memory_AR)
        state_AR = rounded(side.policy.state(memory_AR), side.state_bits)
        for change in side.changes_state:
            state_AR = change(state_AR, place, rng)
        logits_AV = side.policy.logits(state_AR)
        for change in side.changes_logits:
            logits_AV = change(logits_AV, place, rng)
        said_AV = side.means.logprobs(logits_AV, holds_SV[alive_A], counts_SV[alive_A])
        mass_AV = np.exp(said_AV)
        if reads is not None:
            token_A = reads[0][alive_A, position]
        else:
            by_AV = mass_AV
            if draws_by is not None:
                by_AV = np.exp(draws_by.logprobs(logits_AV, holds_SV[alive_A], counts_SV[alive_A]))
            token_A = _drawn(by_AV, rng.random(len(alive_A)))
            if forced_SL is not None:
                put_A = forced_SL[alive_A, position]
                token_A = np.where(put_A >= 0, put_A, token_A)
            out.length_S[alive_A[token_A == END]] = position + 1
        _write(out, alive_A, position, token_A, said_AV, mass_AV)
        counts_SV[alive_A, token_A] += 1
        memory_SR[alive_A] = side.policy.remembers(memory_SR[alive_A], token_A)
    return out


def log_softmax(logits_SV: Floats) -> Floats:
    """Return the logprobs of logits; -inf stays."""
    shifted_SV = logits_SV - logits_SV.max(axis=1, keepdims=True)
    return shifted_SV - np.log(np.exp(shifted_SV).sum(axis=1, keepdims=True))


def rounded(values: Floats, bits: int) -> Floats:
    """Return values with so many significant bits."""
    fraction, power = np.frexp(values)
    return np.ldexp(np.round(np.ldexp(fraction, bits)), power - bits)


def _after_prompts(side: Side, prompts: Prompts) -> Floats:
    memory_SR = _read(side.policy, side.prompts or prompts)
    if side.stale_prompts is not None:
        policy, stale_S = side.stale_prompts
        memory_SR[stale_S] = _read(policy, prompts)[stale_S]
    return memory_SR


def _read(policy: Policy, prompts: Prompts) -> Floats:
    memory_SR = np.zeros((len(prompts.token_SP), STATE))
    for token_S in prompts.token_SP.T:
        read_S = token_S >= 0
        memory_SR[read_S] = policy.remembers(memory_SR[read_S], token_S[read_S])
    return memory_SR


def _drawn(mass_AV: Floats, uniform_A: Floats) -> Integers:
    through_AV = np.cumsum(mass_AV, axis=1)
    return (uniform_A[:, None] * through_AV[:, -1:] > through_AV).sum(axis=1)


def _empty(sequences: int, longest: int, length_S: Integers) -> Walk:
    shape = (sequences, longest)
    return Walk(
        length_S,
        np.full(shape, -1),
        np.full(shape, np.nan),
        np.full(shape, np.nan),
        np.full((*shape, TOPS), -1),
        np.full((*shape, TOPS), np.nan),
    )


def _write(out: Walk, alive_A: Integers, position: int, token_A: Integers, said_AV: Floats, mass_AV: Floats) -> None:
    out.token_SL[alive_A, position] = token_A
    out.logprob_SL[alive_A, position] = said_AV[np.arange(len(token_A)), token_A]
    out.entropy_SL[alive_A, position] = -(mass_AV * np.where(mass_AV > 0, said_AV, 0.0)).sum(axis=1)
    best_AK = np.argpartition(-said_AV, TOPS, axis=1)[:, :TOPS]
    best_AK = np.take_along_axis(
        best_AK, np.argsort(-np.take_along_axis(said_AV, best_AK, 1), axis=1, kind="stable"), 1
    )
    out.top_ids_SLK[alive_A, position] = best_AK
    out.top_logprobs_SLK[alive_A, position] = np.take_along_axis(said_AV, best_AK, axis=1)
