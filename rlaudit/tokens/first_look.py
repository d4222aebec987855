"""What some sequences of a log show before it is read: columns that are not what they claim, and tokens no policy drew.

Judged once for the whole log, so that no chunk of it decides for itself, by every file of `rlaudit/tokens/checks`. What
is found says in one sentence what a column is and what to log instead. A column that does not fit is not used; a token
that was not drawn counts as one that the loss does not count. Everything else of the log stays.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rlaudit.discover import discover
from rlaudit.tokens.token_batch import TokenBatch, concatenate

# The trade: a marker at every fifth sequence of 2,000 tokens is seen ten times, and reading them takes a second.
LOOKED_AT = 100_000
SIDES = {"rollout_logprob": "rollout_logprobs_T", "trainer_logprob": "trainer_logprobs_T"}


@dataclass(frozen=True)
class Places:
    """Tokens of a log, by all of these that are given."""

    # column, value: the one number (NaN: none) that this side's logprob has there.
    column: str = ""
    value: float = np.nan
    # Of a sequence's counted tokens.
    last: bool = False
    token_id: int | None = None
    # Of at least so many such tokens, one after the other.
    runs: int = 1
    # In the completion.
    positions: tuple[int, ...] = ()

    def of(self, batch: TokenBatch) -> NDArray[np.bool_]:
        """Return (T,) the tokens of a batch that are among them."""
        here_T = batch.counts_T.copy()
        if self.column:
            here_T &= has_value(getattr(batch, SIDES[self.column]), self.value)
        if self.last:
            here_T &= last_counted(batch)
        if self.token_id is not None:
            here_T &= batch.token_id_T == self.token_id
        if self.positions:
            here_T &= np.isin(batch.position_T, self.positions)
        if self.runs > 1:
            here_T &= run_lengths(here_T, batch) >= self.runs
        if self.column == "trainer_logprob" and np.isnan(self.value):
            here_T &= ~unscored(batch)[batch.sequence_T]
        return here_T


@dataclass(frozen=True)
class Finding:
    """What a check found, in a sentence, and what follows from it."""

    because: str
    # The columns that are not used.
    unused: tuple[str, ...] = ()
    # The tokens that are left out.
    not_drawn: Places | None = None
    # Whether a number was put in for their logprobs.
    placed: bool = False
    # Whether these are missing.
    missing: bool = False
    # Whether the loss mask counts tokens that were not sampled.
    mask_off: bool = False
    # The share of all draws that was not logged because ends of sequence are left out.
    ends_missing: float = 0.0
    # The logprobs of which none may be above 0.
    capped: tuple[str, ...] = ()


@dataclass(frozen=True)
class Check:
    """One thing that a column or a token may be instead of what it claims."""

    name: str
    look: Callable[[TokenBatch], Iterable[Finding]]


@dataclass(frozen=True)
class FirstLook:
    """All that the checks found."""

    findings: tuple[Finding, ...] = ()

    @property
    def unused(self) -> dict[str, str]:
        """The columns that are not used, each with the reason."""
        return {column: finding.because for finding in self.findings for column in finding.unused}

    @property
    def placed(self) -> tuple[str, ...]:
        """What is said of tokens with a number in place of a logprob."""
        return tuple(finding.because for finding in self.findings if finding.placed)

    @property
    def mask_off(self) -> tuple[str, ...]:
        """What is said of a loss mask that counts tokens that were not sampled."""
        return tuple(finding.because for finding in self.findings if finding.mask_off)

    @property
    def missing(self) -> dict[str, str]:
        """What is said of tokens whose logprob is missing, by the column."""
        marked = {finding.because: finding.not_drawn for finding in self.findings if finding.missing}
        return {places.column: because for because, places in marked.items() if places is not None}

    @property
    def ends_missing(self) -> float:
        """The share of draws that was not logged because the end of sequence is left out."""
        return max((finding.ends_missing for finding in self.findings), default=0.0)

    @property
    def said(self) -> tuple[str, ...]:
        """All sentences but those of missing logprobs, which are faults of the log."""
        return tuple(finding.because for finding in self.findings if not finding.missing)

    def applied(self, batch: TokenBatch) -> TokenBatch:
        """Return a batch of the same log without the columns, and without counting the tokens, that are left out."""
        for finding in self.findings:
            batch = applied(finding, batch)
        return batch


def applied(finding: Finding, batch: TokenBatch) -> TokenBatch:
    """Return the batch as one finding leaves it."""
    columns = {name: values for name, values in batch.token_columns.items() if name not in finding.unused}
    sides: dict[str, Any] = {}
    for column, field in SIDES.items():
        if column in finding.unused:
            sides[field] = np.full(batch.tokens, np.nan)
        elif column in finding.capped:
            sides[field] = np.minimum(getattr(batch, field), 0.0)
    if finding.not_drawn is not None:
        left_out_T = finding.not_drawn.of(batch)
        if left_out_T.any():
            columns["loss_mask"] = batch.counts_T & ~left_out_T
    return replace(batch, token_columns=columns, **sides)


def all_checks() -> dict[str, Check]:
    """Return every check that a file of `rlaudit/tokens/checks` offers, by name."""
    from rlaudit.tokens import checks

    return discover(checks, "CHECK", Check)


def first_look(batches: Iterable[TokenBatch]) -> FirstLook:
    """Look at the first batches of a log, LOOKED_AT tokens or a little more of them, with every check.

    A check sees what the ones before it, by name, left.
    """
    parts = list(_enough(batches))
    findings: list[Finding] = []
    if not parts:
        return FirstLook()
    batch = concatenate(parts)
    for check in all_checks().values():
        for finding in check.look(batch):
            batch = applied(finding, batch)
            findings.append(finding)
    return FirstLook(tuple(findings))


def _enough(batches: Iterable[TokenBatch]) -> Iterator[TokenBatch]:
    tokens = 0
    for batch in batches:
        if not batch.sequences:
            continue
        kept = int(np.searchsorted(batch.offsets[1:], LOOKED_AT - tokens)) + 1
        yield batch if kept >= batch.sequences else batch.take(np.arange(kept))
        tokens += batch.tokens
        if tokens >= LOOKED_AT:
            return


def has_value(logprobs_T: "NDArray[np.floating]", value: float) -> NDArray[np.bool_]:
    """Return which logprobs are this number, or missing if it is NaN."""
    return np.isnan(logprobs_T) if np.isnan(value) else np.asarray(logprobs_T == value)


def last_counted(batch: TokenBatch) -> NDArray[np.bool_]:
    """Return (T,) the last token of each sequence that the loss counts."""
    places = np.flatnonzero(batch.counts_T)
    last_T = np.zeros(batch.tokens, dtype=np.bool_)
    if places.size:
        ends = np.append(np.diff(batch.sequence_T[places]) != 0, True)
        last_T[places[ends]] = True
    return last_T


def unscored(batch: TokenBatch) -> NDArray[np.bool_]:
    """Return (S,) the sequences that no trainer has scored."""
    return np.asarray(np.add.reduceat(batch.comparable_T, batch.offsets[:-1], dtype=np.int64) == 0)


def run_lengths(chosen_T: NDArray[np.bool_], batch: TokenBatch) -> "NDArray[np.int64]":
    """Return (T,) how many chosen tokens of one sequence follow one another around each of them, 0 for the others."""
    new_T = np.ones(batch.tokens, dtype=np.bool_)
    new_T[1:] = (chosen_T[1:] != chosen_T[:-1]) | (np.diff(batch.sequence_T) != 0)
    run_T = np.cumsum(new_T) - 1
    return np.where(chosen_T, np.bincount(run_T)[run_T], 0)
