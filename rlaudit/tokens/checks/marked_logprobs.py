"""Tokens whose logprob is one number, or missing, where the other side has logprobs of all sizes: it was put in.

Covered: whole numbers that no logprob can be (1.0, -9999, -inf), missing ones (null, NaN), and whole numbers that could
be (0, -1, -100), of either side, if the tokens have one more thing in common: always the last token, one token id, the
first tokens, or stretches. Agent loops write 0 for the tokens of a tool (verl's
`response_logprobs += [0.0] * len(response_ids)`), others
1.0 for an end token that they append (open-instruct's INVALID_LOGPROB), and a loss that ignores pad = eos leaves 0 for
the end of sequence.
Not covered: numbers with noise on them, and single tokens without a pattern: their sequences are left out (`sound.py`).

A probability of 1 is rounded to a logprob of 0 where both sides are sure, and a filter that keeps one token alone makes
it 0 on one side for many ids: neither has the other side far away in one kind of token only.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rlaudit.arrays import Floats
from rlaudit.tokens.column_range import RANGES
from rlaudit.tokens.first_look import SIDES, Check, Finding, Places, last_counted, run_lengths, unscored
from rlaudit.tokens.token_batch import NO_TOKEN, TokenBatch

# Of tokens with the number: few may be a fault of their own. Of them so many differ from the other side.
FEWEST, FEWEST_SEQUENCES, FEWEST_APART = 8, 2, 5
# Nats by which a number that was put in is off; rounding to bfloat16 moves a logprob near 0 by less.
APART = 0.1
# Nats. A token that top-p of 0.4 or more keeps alone is nearer.
FAR = 1.0
# A pattern holds for nearly all tokens: a log has a few odd rows.
NEARLY_ALL = 0.95
# Of the tokens that have the number so many differ from the other side, where it was put in; elsewhere hardly one does.
SHARE_APART, SHARE_ELSEWHERE = 0.2, 0.02
# Of tokens of a kind that are far apart, where part of the log has the number: a shift, a penalty or other weights put
# a few of many at it by chance, as rounding makes the same number of several.
MOST_BEYOND = 0.5
# The output of a tool has more tokens than this.
STRETCH = 3
# Different impossible numbers that are looked at.
MOST_NUMBERS = 4
OTHERS = {"rollout_logprob": "trainer_logprob", "trainer_logprob": "rollout_logprob"}


def look(batch: TokenBatch) -> Iterator[Finding]:
    """Yield the tokens of either side whose logprob was put in."""
    for column, field in SIDES.items():
        ours_T = np.where(unscored(batch)[batch.sequence_T], 0.0, batch.trainer_logprobs_T)
        logprobs_T = batch.rollout_logprobs_T if field == "rollout_logprobs_T" else ours_T
        yield from _impossible(column, logprobs_T, batch)
        yield from _possible(column, batch)


def _impossible(column: str, logprobs_T: Floats, batch: TokenBatch) -> Iterator[Finding]:
    broken_T = RANGES[column].broken(logprobs_T)
    broken_T = np.zeros(batch.tokens, dtype=np.bool_) if broken_T is None else broken_T
    broken_T &= (logprobs_T == np.round(logprobs_T)) & batch.counts_T
    numbers, counts = np.unique(logprobs_T[broken_T], return_counts=True)
    for number in [np.nan, *numbers[np.argsort(-counts)][:MOST_NUMBERS].tolist()]:
        marked_T = (np.isnan(logprobs_T) if np.isnan(number) else logprobs_T == number) & batch.counts_T
        marked = _Marked(column, float(number), marked_T, batch)
        if marked.tokens < FEWEST or marked.sequences < FEWEST_SEQUENCES:
            continue
        shared = marked.in_common()
        if shared is not None:
            yield marked.finding(*shared)


def _possible(column: str, batch: TokenBatch) -> Iterator[Finding]:
    logprobs_T, others_T = (getattr(batch, SIDES[name]) for name in (column, OTHERS[column]))
    usable_T = batch.comparable_T & np.isfinite(logprobs_T) & np.isfinite(others_T)
    broken_T = RANGES[column].broken(logprobs_T)
    usable_T &= True if broken_T is None else ~broken_T
    far_T = usable_T & (np.abs(logprobs_T - others_T) > APART)
    if far_T.sum() < FEWEST_APART:
        return
    # People put in whole numbers; a model may give the end of sequence one and the same probability everywhere.
    numbers, counts = np.unique(logprobs_T[far_T & (logprobs_T == np.round(logprobs_T))], return_counts=True)
    if not counts.size:
        return
    number = float(numbers[counts.argmax()])
    same_T = usable_T & (logprobs_T == number)
    for places, words in _kinds(column, number, same_T, far_T, batch):
        kind_T = places.of(batch) & usable_T
        marked = _Marked(column, number, kind_T, batch)
        apart = int((kind_T & far_T).sum())
        if marked.tokens < FEWEST or marked.sequences < FEWEST_SEQUENCES or apart < FEWEST_APART:
            continue
        elsewhere_T = far_T & ~kind_T
        if apart >= SHARE_APART * marked.tokens and (elsewhere_T & same_T).sum() <= SHARE_ELSEWHERE * max(apart, 1):
            yield marked.finding(places, words)
            return


def _kinds(
    column: str, number: float, same_T: NDArray[np.bool_], far_T: NDArray[np.bool_], batch: TokenBatch
) -> Iterator[tuple[Places, str]]:
    """Yield the kinds of tokens that have the number."""
    beyond_T = far_T & (np.abs(batch.rollout_logprobs_T - batch.trainer_logprobs_T) > FAR)
    last_T = last_counted(batch)
    ids, counts = np.unique(batch.token_id_T[same_T & far_T], return_counts=True)
    token_id = int(ids[counts.argmax()]) if counts.size else NO_TOKEN
    for is_kind_T, places, words in (
        (
            last_T & (batch.token_id_T == token_id),
            Places(column, number, last=True, token_id=token_id),
            f"always the last token, one token id ({token_id})",
        ),
        (batch.token_id_T == token_id, Places(column, number, token_id=token_id), f"one token id ({token_id})"),
        (last_T, Places(column, number, last=True), "always the last token"),
    ):
        kind_T = is_kind_T & batch.comparable_T
        named = places.token_id is None or token_id != NO_TOKEN
        # If part of the log alone has it, as of one worker of many, far ones have to say so.
        beyond = int((kind_T & same_T & beyond_T).sum())
        surely = (kind_T & same_T).sum() >= NEARLY_ALL * kind_T.sum() or (
            beyond >= max(FEWEST_APART, MOST_BEYOND * (kind_T & beyond_T).sum())
        )
        if named and surely:
            yield places, words
    run_T = run_lengths(same_T, batch)
    if (same_T & beyond_T).sum() >= FEWEST_APART:
        apart_in_runs_T = same_T & far_T & (run_T >= STRETCH)
        if apart_in_runs_T.sum() >= NEARLY_ALL * (same_T & far_T).sum():
            mean = run_T[apart_in_runs_T].mean()
            yield Places(column, number, runs=STRETCH), f"in stretches, of {mean:.0f} tokens on average"


@dataclass(frozen=True, eq=False)
class _Marked:
    """Tokens that have one number in a column."""

    column: str
    number: float
    marked_T: NDArray[np.bool_]
    batch: TokenBatch

    @property
    def tokens(self) -> int:
        return int(self.marked_T.sum())

    @property
    def sequences(self) -> int:
        return len(np.unique(self.batch.sequence_T[self.marked_T]))

    def in_common(self) -> tuple[Places, str] | None:
        """Return what the tokens have in common besides the number, which they have alone; None if nothing."""
        batch, column, number = self.batch, self.column, self.number
        ids, counts = np.unique(batch.token_id_T[self.marked_T], return_counts=True)
        token_id = int(ids[counts.argmax()])
        one_id = token_id != NO_TOKEN and counts.max() >= NEARLY_ALL * self.tokens
        last = (self.marked_T & last_counted(batch)).sum() >= NEARLY_ALL * self.tokens
        if last and one_id:
            return Places(column, number, True, token_id), f"always the last token, one token id ({token_id})"
        if last:
            return Places(column, number, True), "always the last token"
        if one_id:
            return Places(column, number, token_id=token_id), f"one token id ({token_id})"
        run_T = run_lengths(self.marked_T, batch)
        if (run_T[self.marked_T] >= STRETCH).mean() >= NEARLY_ALL:
            mean = run_T[self.marked_T].mean()
            return Places(column, number, runs=STRETCH), f"in stretches, of {mean:.0f} tokens on average"
        first_T = batch.position_T < run_T
        if (first_T & self.marked_T).sum() >= NEARLY_ALL * self.tokens:
            positions = tuple(np.unique(batch.position_T[self.marked_T]).tolist())
            return Places(column, number, positions=positions), "always the first tokens"
        return None

    def finding(self, places: Places, words: str) -> Finding:
        """Return the finding: what the tokens are, and what to log instead."""
        missing = bool(np.isnan(self.number))
        has = f"no {self.column}" if missing else f"the {self.column} {self.number:g}"
        who = f"{self.tokens} tokens in {self.sequences} of {self.batch.sequences} sequences have {has}, {words}"
        if places.last and self.column == "trainer_logprob":
            what = "the trainer left the end token out, as a loss that ignores pad = eos does"
            instead = "the policy sampled the end token, so log the trainer's logprob of it"
        elif places.last:
            what = "this number stands for a missing logprob, as of an end token that the framework appends"
            instead = "log the sampler's logprob of it, or loss_mask 0 if the sampler did not draw it"
        elif self.column == "trainer_logprob":
            what = "the trainer computed no logprob of these tokens"
            instead = (
                "log the trainer's logprobs of these tokens, or loss_mask 0 for those that the policy did not sample"
            )
        else:
            what = "no sampler reported this number, as for the tokens of a tool, a template or padding"
            instead = "log loss_mask 0 for these tokens"
        return Finding(
            f"{who}: {what}. {instead[0].upper()}{instead[1:]}", not_drawn=places, placed=not missing, missing=missing
        )


CHECK = Check("marked-logprobs", look)
