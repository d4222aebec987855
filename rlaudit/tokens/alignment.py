"""Do both sides speak of the same tokens, all the way to the end of every sequence?

Covered, per sequence: an offset (labels sliced [1:] on one side and [:-1] on the other), a token lost on the way (from
a resume on everything is one further: vLLM 42043), another tokenisation (agreement that is lost and no shift restores),
a row of another sequence (row_fits.py), a row that has nothing in common with its counterpart from the first token on.
Tables that have the ids of both sides are joined by them.
Not covered: last tokens alone (`checks/strange_ends.py`); prompts that differ while the completions agree: that fades
with position and is a cause (`causes/bos.py`).

Shifted data look like a huge mismatch of the engines and would explain everything else, so they are looked for before
anything is measured, in every sequence of a log, and nothing is measured on them. What is refused is named sequence by
sequence: leaving them out without a word would hide the ones a broken engine hits hardest.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

import numpy as np
from scipy.special import bdtrc

from rlaudit.arrays import Floats
from rlaudit.tokens.far_lags import with_far_lags
from rlaudit.tokens.far_tokens import FarTokens, far_tokens
from rlaudit.tokens.lag_path import (
    BEGINNING_NATS,
    BY_CHANCE,
    CAP_NATS,
    MOST_SURPRISE,
    NEAR,
    Stretch,
    agreement_of,
    lag_fit,
    lag_paths,
    lost_agreement,
    unrelated_cost,
)
from rlaudit.tokens.row_fits import NO_ROWS, RowFits, rows_of_others
from rlaudit.tokens.token_batch import TokenBatch

# A difference below this is a mismatch of engines; sequences whose tokens exceed it by less than WORTH_A_LOOK nats in
# all cannot pay for a change of lag.
ORDINARY_NATS = 0.3
WORTH_A_LOOK = 3.0
# On top of the price of the change (`lag_path.py`): together e^-9, one in eight thousand suspects.
SAVED_NATS = 4.0
# Of the suspects about so many are called misaligned by chance at most. Measured in 2026-11: 2 of 160,000 of other
# weights, dropout and noise up to 1 nat on the logits, and 1.1e-3 of 30,000 whose positions are off from a length on.
BY_CHANCE_OF_SUSPECTS = 1e-3
# What counts as more than chance; one sequence alone may be its log's fault.
SURELY_NOT_CHANCE = 5e-3
FEWEST_SEQUENCES = 2
# Of a sequence's tokens at one lag: its first tokens may agree at any.
WHOLE = 0.9
# Tokens: where a shift begins is known to the token that differs first, which may be one after.
NEAR_A_RESUME = 2
SHOWN = 2


class Misalignment(StrEnum):
    """How the two sides of a sequence fail to meet. All but the last are names of causes as well."""

    OFF_BY_ONE = "off-by-one"
    TOKEN_DROPPED = "token-dropped-after-resume"
    RETOKENISED = "retokenised"
    SWAPPED = "swapped-rows"
    # Of a row that is not in the log, or of other tokens from the first one on.
    UNRELATED = "unrelated-rows"


_LIKE_EACH_OTHER = (Misalignment.OFF_BY_ONE, Misalignment.TOKEN_DROPPED, Misalignment.RETOKENISED)
# Of the sequences that lose agreement on the way: so many have to lose it at a resume.
MOST = 0.7


@dataclass(frozen=True)
class MisalignedSequence:
    """One sequence: `first` is the first completion token that does not meet its counterpart, `lag` its shift."""

    sequence: int
    name: str
    kind: Misalignment
    first: int
    lag: int | None
    at_a_resume: bool | None
    # Whether the tokens before `first` fit the same lag, so that it may hold from the first token on.
    may_be_whole: bool = False


@dataclass(frozen=True)
class AlignmentReport:
    """What was looked at, and every sequence that is not aligned."""

    sequences: int
    misaligned: tuple[MisalignedSequence, ...] = ()
    # How many more there are, by the kind of failure, whose names were not kept.
    unnamed: Mapping[Misalignment, int] = field(default_factory=dict)
    rows: RowFits = NO_ROWS
    not_tested: tuple[str, ...] = ()
    # Sequences whose two sides differ by more than most engines do.
    suspects: int = 0
    far: FarTokens = field(default_factory=FarTokens)
    # Of those that seem to have lost a token, the ones whose trainer's side is ahead.
    ahead: int = 0
    # Of those that seem to be shifted from a place on, the ones that may be shifted from the first token on.
    may_be_whole: int = 0

    @property
    def refused(self) -> bool:
        """Whether more sequences are not aligned, in one way, than chance makes so."""
        return any(self.more_than_chance(kind) for kind in Misalignment)

    def more_than_chance(self, kind: Misalignment) -> bool:
        """Return whether so many fail in one way that they decide."""
        return self.count_of(kind) >= FEWEST_SEQUENCES and self.chance_of(kind) < SURELY_NOT_CHANCE

    def chance_of(self, kind: Misalignment) -> float:
        """Return how probable so many are if those of a healthy pair fail by chance alone."""
        count = self.count_of(kind)
        trials = max(self.suspects, sum(self.counts.values()))
        return float(bdtrc(count - 1, trials, BY_CHANCE_OF_SUSPECTS)) if count else 1.0

    @property
    def counts(self) -> dict[Misalignment, int]:
        """How many sequences fail in each way."""
        return {kind: count for kind in Misalignment if (count := self.count_of(kind))}

    def of_kind(self, kind: Misalignment) -> tuple[MisalignedSequence, ...]:
        """Return the sequences that fail in one way, as far as their names were kept."""
        settled = self._settled()
        return tuple(sequence for sequence in self.misaligned if settled[sequence.kind] is kind)

    def count_of(self, kind: Misalignment) -> int:
        """Return how many sequences fail in one way."""
        return sum(self._count(failure) for failure, settled in self._settled().items() if settled is kind)

    def _settled(self) -> dict[Misalignment, Misalignment]:
        """Return what each failure is taken for.

        Text that differs just at a resume, or from the first token on, looks like another failure in that one sequence;
        what most of them show decides for all. A lost token moves one side, always the same.
        """
        alone = (Misalignment.OFF_BY_ONE, Misalignment.SWAPPED)
        settled = {failure: failure for failure in alone}
        whole, lost, other = (self._count(failure) for failure in _LIKE_EACH_OTHER)
        one_way = max(self.ahead, lost - self.ahead)
        within = Misalignment.TOKEN_DROPPED if one_way >= MOST * (lost + other) else Misalignment.RETOKENISED
        late = lost + other - self.may_be_whole
        if late < BY_CHANCE * whole:
            within = Misalignment.OFF_BY_ONE
        settled |= dict.fromkeys((Misalignment.TOKEN_DROPPED, Misalignment.RETOKENISED), within)
        # What begins on the way begins at the first tokens, too; what is off from the first one on begins nowhere else.
        if whole <= late:
            settled[Misalignment.OFF_BY_ONE] = within
        settled |= self._settled_rows(settled[Misalignment.RETOKENISED])
        if whole + lost + other < BY_CHANCE * self._count(Misalignment.SWAPPED):
            settled |= dict.fromkeys(_LIKE_EACH_OTHER, Misalignment.SWAPPED)
        return settled

    def _settled_rows(self, other_tokens: Misalignment) -> dict[Misalignment, Misalignment]:
        """Return what rows with nothing in common, and with little, are taken for.

        Text that differs from one of its first tokens on has no beginning that agrees, and rows of others may begin
        with the same few tokens. Rows that are too short to be found elsewhere, or at a far lag, are as those found.
        """
        unrelated, other = self._count(Misalignment.UNRELATED), self._count(Misalignment.RETOKENISED)
        placed = max((Misalignment.SWAPPED, Misalignment.OFF_BY_ONE), key=self._count)
        rows = placed if self._count(placed) > BY_CHANCE * (self._count(placed) + unrelated) else Misalignment.UNRELATED
        if other_tokens is not Misalignment.RETOKENISED:
            return {Misalignment.UNRELATED: rows}
        if other > BY_CHANCE * (other + unrelated):
            return {Misalignment.UNRELATED: Misalignment.RETOKENISED}
        return dict.fromkeys((Misalignment.UNRELATED, Misalignment.RETOKENISED), rows)

    def _count(self, kind: Misalignment) -> int:
        return sum(sequence.kind is kind for sequence in self.misaligned) + self.unnamed.get(kind, 0)

    @property
    def messages(self) -> tuple[str, ...]:
        """One sentence for each kind of failure, with the first sequences by name."""
        return tuple(message for kind in Misalignment if (message := self.message_of(kind)))

    def message_of(self, kind: Misalignment) -> str:
        """Return the sentence on one kind of failure, "" if no sequence fails in this way."""
        count = self.count_of(kind)
        return _message(kind, self.of_kind(kind), count, self.sequences) if count else ""

    def named(self, most: int) -> "AlignmentReport":
        """Return the same with the names of the first sequences only: names of millions would fill the memory."""
        unnamed = Counter(sequence.kind for sequence in self.misaligned[most:])
        return replace(self, misaligned=self.misaligned[:most], unnamed=Counter(self.unnamed) + unnamed)

    def met(self) -> "AlignmentReport":
        """Return the report of a whole log: rows that fit none of their batch may fit those of another."""
        rows = self.rows.met()
        fitting = rows.fitting - self.rows.fitting
        unnamed = Counter(self.unnamed)
        # Where no sequence of a batch met its counterpart, its rows were not taken for misaligned.
        unnamed[Misalignment.UNRELATED] -= min(fitting, self._count(Misalignment.UNRELATED))
        unnamed[Misalignment.SWAPPED] += fitting
        return replace(self, rows=rows, unnamed=unnamed)

    def __add__(self, other: "AlignmentReport") -> "AlignmentReport":
        """The report of two parts of one stream."""
        return AlignmentReport(
            sequences=self.sequences + other.sequences,
            misaligned=self.misaligned + other.misaligned,
            unnamed=Counter(self.unnamed) + Counter(other.unnamed),
            rows=self.rows + other.rows,
            not_tested=tuple(dict.fromkeys(self.not_tested + other.not_tested)),
            suspects=self.suspects + other.suspects,
            far=self.far + other.far,
            ahead=self.ahead + other.ahead,
            may_be_whole=self.may_be_whole + other.may_be_whole,
        )


def alignment_report(batch: TokenBatch) -> AlignmentReport:
    """Search the sequences of a batch for shifts. Sequences keep the numbers they have in the batch."""
    counted = _counted(batch)
    apart_T = np.abs(counted.rollout_logprobs_T - counted.trainer_logprobs_T)
    suspects = _suspects(counted, apart_T)
    misaligned = _shifted(counted, suspects)
    rows, swapped = rows_of_others(counted, suspects)
    misaligned |= {
        sequence: MisalignedSequence(sequence, batch.name_of(sequence), Misalignment.SWAPPED, 0, None, None)
        for sequence in swapped
    }
    not_tested = []
    if "rollout_version" not in batch.token_columns:
        not_tested.append("it was not tested whether a shift begins at a resume: the column rollout_version is missing")
    return AlignmentReport(
        sequences=batch.sequences,
        misaligned=tuple(misaligned[s] for s in sorted(misaligned)),
        rows=rows,
        not_tested=tuple(not_tested),
        suspects=len(suspects),
        far=far_tokens(counted, apart_T),
        ahead=sum(s.kind is Misalignment.TOKEN_DROPPED and s.lag == 1 for s in misaligned.values()),
        may_be_whole=sum(s.may_be_whole for s in misaligned.values()),
    )


def _counted(batch: TokenBatch) -> TokenBatch:
    """Return the batch without logprobs that the loss does not count: engines write 0 or anything for tools' tokens."""
    if batch.counts_T.all():
        return batch
    return replace(
        batch,
        rollout_logprobs_T=np.where(batch.counts_T, batch.rollout_logprobs_T, np.nan),
        trainer_logprobs_T=np.where(batch.counts_T, batch.trainer_logprobs_T, np.nan),
    )


def _suspects(batch: TokenBatch, apart_T: Floats) -> list[int]:
    # Few tokens are: the sums per sequence are of them alone. A token without a score is not beyond anything.
    beyond = np.flatnonzero(apart_T > ORDINARY_NATS)
    nats = np.minimum(apart_T[beyond], CAP_NATS) - ORDINARY_NATS
    beyond_S = np.bincount(batch.sequence_T[beyond], nats, minlength=batch.sequences)
    return np.flatnonzero(beyond_S > WORTH_A_LOOK).tolist()


def _shifted(batch: TokenBatch, suspects: Sequence[int]) -> dict[int, MisalignedSequence]:
    if not suspects:
        return {}
    unrelated = unrelated_cost(batch.rollout_logprobs_T, batch.trainer_logprobs_T)
    part = batch.take(suspects)
    paths = lag_paths(part.rollout_logprobs_T, part.trainer_logprobs_T, part.offsets, unrelated)
    paths = with_far_lags(paths, part, unrelated)
    lost = lost_agreement(paths, batch, suspects, unrelated)
    shifted = {}
    for place, (sequence, path) in enumerate(zip(suspects, paths, strict=True)):
        shifts = [stretch for stretch in path if _shifts(part, place, stretch)]
        shifts = shifts if shifts and _near(path, shifts) else []
        real = sorted([*shifts, *(s for s in path if (place, s.first) in lost)], key=lambda stretch: stretch.first)
        if real:
            shifted[sequence] = _judge(batch, sequence, path, real, unrelated)
    rows = [sequence for sequence, failure in shifted.items() if failure.kind is Misalignment.UNRELATED]
    return shifted if _as_likely(batch, rows) else {s: failure for s, failure in shifted.items() if s not in rows}


def _as_likely(batch: TokenBatch, rows: Sequence[int]) -> bool:
    """Return whether the trainer finds these rows about as likely as the others.

    It does if they are rows of others. What an engine with other weights sampled is unlikely.
    """
    is_row_S = np.isin(np.arange(batch.sequences), rows)
    is_row_T = is_row_S[batch.sequence_T]
    scored_T = np.isfinite(batch.trainer_logprobs_T)
    of_rows_T, of_others_T = (batch.trainer_logprobs_T[scored_T & part_T] for part_T in (is_row_T, ~is_row_T))
    if not of_rows_T.size or not of_others_T.size:
        return True
    return float(of_rows_T.mean()) >= MOST_SURPRISE * float(of_others_T.mean())


def _shifts(part: TokenBatch, sequence: int, stretch: Stretch) -> bool:
    if stretch.lag is None or stretch.lag == 0:
        return False
    return lag_fit(*_sides(part, sequence), stretch.first, stretch.end, stretch.lag).saved(SAVED_NATS)


def _sides(batch: TokenBatch, sequence: int) -> tuple[Floats, Floats]:
    """Return the logprobs of one sequence, the rollout's and the trainer's."""
    inside = slice(batch.offsets[sequence], batch.offsets[sequence + 1])
    return batch.rollout_logprobs_T[inside], batch.trainer_logprobs_T[inside]


def _near(path: Sequence[Stretch], shifts: Sequence[Stretch]) -> bool:
    """Return whether the two sides are near wherever they agree, before a shift and after it.

    Repeated text agrees with itself a period later, and so do two sides that differ much everywhere.
    """
    if _whole(path, shifts):
        return True
    agreeing = [stretch for stretch in path if stretch.lag is not None or stretch.first < shifts[0].first]
    cost = sum(s.tokens * (s.cost_unshifted if s.lag is None else s.cost) for s in agreeing)
    cost /= sum(s.tokens for s in agreeing)
    unshifted = sum(s.tokens * s.cost_unshifted for s in shifts) / sum(s.tokens for s in shifts)
    return cost <= 2 * NEAR * unshifted


def _whole(path: Sequence[Stretch], shifts: Sequence[Stretch]) -> bool:
    """Return whether one lag holds for the whole sequence, but for a few of its tokens."""
    lags = {stretch.lag for stretch in shifts}
    tokens, shifted = (sum(stretch.tokens for stretch in part) for part in (path, shifts))
    return len(lags) == 1 and None not in lags and shifted >= WHOLE * tokens


def _judge(
    batch: TokenBatch, sequence: int, path: Sequence[Stretch], real: Sequence[Stretch], unrelated: float
) -> MisalignedSequence:
    first = real[0].first
    at_a_resume = _at_a_resume(batch, sequence, first)
    lags = {stretch.lag for stretch in real}
    start = _start_of(batch, sequence, real[0])
    if _whole(path, real) and start.at_the_lag and not (start.tokens and at_a_resume):
        kind = Misalignment.OFF_BY_ONE
    elif lags in ({1}, {-1}) and at_a_resume is not False:
        kind = Misalignment.TOKEN_DROPPED
    elif lags == {None} and agreement_of(path, unrelated) < BEGINNING_NATS:
        kind = Misalignment.UNRELATED
    else:
        kind = Misalignment.RETOKENISED
    lag = real[0].lag
    may_be_whole = kind is not Misalignment.OFF_BY_ONE and len(lags) == 1 and start.may_be_at_the_lag
    return MisalignedSequence(sequence, batch.name_of(sequence), kind, first, lag, at_a_resume, may_be_whole)


@dataclass(frozen=True)
class _Start:
    """The tokens before a shift: how many have a counterpart at its lag, and whether the shift may hold for them."""

    tokens: int
    # Whether they fit the lag as well as the tokens after them do.
    at_the_lag: bool
    # Whether they fit it nearly as well as none, as tokens do that are all certain.
    may_be_at_the_lag: bool


def _start_of(batch: TokenBatch, sequence: int, shifted: Stretch) -> _Start:
    """Return what the tokens before a shift say of where it begins.

    A shift from a place on may begin at any token: that costs the logarithm of their number. It is surely of the whole
    sequence only if its start is no farther off at the lag than the rest is, by more than engines are from each other.
    """
    if shifted.lag is None:
        return _Start(shifted.first, at_the_lag=False, may_be_at_the_lag=False)
    before = lag_fit(*_sides(batch, sequence), 0, shifted.first, shifted.lag)
    length = int(batch.lengths_S[sequence])
    return _Start(
        before.tokens,
        at_the_lag=before.tokens * (before.cost - shifted.cost) <= ORDINARY_NATS,
        may_be_at_the_lag=before.tokens * (before.cost - before.cost_unshifted) <= math.log(length),
    )


def _at_a_resume(batch: TokenBatch, sequence: int, first: int) -> bool | None:
    """Return whether the weights changed within NEAR_A_RESUME tokens of `first`; None if no versions were recorded."""
    version_T = batch.token_columns.get("rollout_version")
    if version_T is None:
        return None
    versions = np.asarray(version_T[batch.offsets[sequence] : batch.offsets[sequence + 1]])
    changes = np.flatnonzero(np.diff(versions) != 0) + 1
    return bool(np.any(np.abs(changes - first) <= NEAR_A_RESUME))


def _message(kind: Misalignment, misaligned: Sequence[MisalignedSequence], count: int, sequences: int) -> str:
    lags = sorted({sequence.lag for sequence in misaligned if sequence.lag is not None})
    shift = " or ".join(map(_places, lags)) or "off by no fixed number of tokens"
    failure = {
        Misalignment.OFF_BY_ONE: f"the trainer's logprobs are {shift}",
        Misalignment.TOKEN_DROPPED: f"the trainer's logprobs are aligned at first, and then "
        f"{shift}{_resumes(misaligned)}",
        Misalignment.RETOKENISED: "the token ids of rollout and trainer agree at first, and then differ"
        f"{f', then the trainer is {shift}' if lags else ''}",
        Misalignment.SWAPPED: "the trainer's logprobs are those of another sequence",
        Misalignment.UNRELATED: "rollout and trainer differ from the first token on, as if from different sequences",
    }[kind]
    shown = "; ".join(f"{sequence.name} at token {sequence.first}" for sequence in misaligned[:SHOWN])
    hidden = count - len(misaligned[:SHOWN])
    more = [f"{'and ' if shown else ''}{hidden} more"] if hidden else []
    return f"in {count} of {sequences} sequences, {failure} ({'; '.join([*filter(None, [shown]), *more])})"


def _places(lag: int) -> str:
    """Return where the trainer's value of a token stands, seen from the rollout's: lag = its place - the rollout's."""
    places = abs(lag)
    return f"{places} {'token' if places == 1 else 'tokens'} too {'early' if lag < 0 else 'late'}"


def _resumes(misaligned: Iterable[MisalignedSequence]) -> str:
    at_a_resume = [sequence.at_a_resume for sequence in misaligned if sequence.at_a_resume is not None]
    return f", at a change of the weights' version in {sum(at_a_resume)} of {len(at_a_resume)}" if at_a_resume else ""
