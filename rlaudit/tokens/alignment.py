"""Do both sides speak of the same tokens, all the way to the end of every sequence?

Covered, per sequence: an offset (labels sliced [1:] on one side and [:-1] on the other), a token lost on the way (from
a resume on everything is one further: vLLM 42043), another tokenisation (agreement that is lost and no shift restores),
a row of another sequence (row_fits.py). Tables that have the ids of both sides are joined by them.
Not covered: last tokens alone (`checks/strange_ends.py`); prompts that differ while the completions agree: that fades
with position and is a cause (`causes/bos.py`).

Shifted data look like a huge mismatch of the engines and would explain everything else, so they are looked for before
anything is measured, and nothing is measured on them. What is refused is named sequence by sequence: leaving them out
without a word would hide the ones a broken engine hits hardest.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

import numpy as np

from rlaudit.tokens.lag_path import (
    BY_CHANCE,
    CAP_NATS,
    COST_LEFT,
    Stretch,
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
# On top of the price of the change (`lag_path.py`): together e^-9, one in eight thousand sequences.
SAVED_NATS = 4.0
# Of a sequence's tokens at one lag: its first tokens may agree at any.
WHOLE = 0.9
# Tokens: where a shift begins is known to the token that differs first, which may be one after.
NEAR_A_RESUME = 2
SHOWN = 5


class Misalignment(StrEnum):
    """How the two sides of a sequence fail to meet: names of causes as well."""

    OFF_BY_ONE = "off-by-one"
    TOKEN_DROPPED = "token-dropped-after-resume"
    RETOKENISED = "retokenised"
    SWAPPED = "swapped-rows"


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


@dataclass(frozen=True)
class AlignmentReport:
    """What was looked at, and every sequence that is not aligned."""

    sequences: int
    misaligned: tuple[MisalignedSequence, ...] = ()
    # How many more there are, by the kind of failure, whose names were not kept.
    unnamed: Mapping[Misalignment, int] = field(default_factory=dict)
    rows: RowFits = NO_ROWS
    not_tested: tuple[str, ...] = ()

    @property
    def refused(self) -> bool:
        """Whether figures of these data would be figures of a shift."""
        return bool(self.misaligned)

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
        what most of them show decides for all.
        """
        alone = (Misalignment.OFF_BY_ONE, Misalignment.SWAPPED)
        settled = {failure: failure for failure in alone}
        whole, lost, other = (self._count(failure) for failure in _LIKE_EACH_OTHER)
        within = Misalignment.TOKEN_DROPPED if lost >= MOST * (lost + other) else Misalignment.RETOKENISED
        settled |= dict.fromkeys((Misalignment.TOKEN_DROPPED, Misalignment.RETOKENISED), within)
        if whole < BY_CHANCE * (lost + other):
            settled[Misalignment.OFF_BY_ONE] = within
        elif lost + other < BY_CHANCE * whole:
            settled |= dict.fromkeys((Misalignment.TOKEN_DROPPED, Misalignment.RETOKENISED), Misalignment.OFF_BY_ONE)
        return settled

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

    def __add__(self, other: "AlignmentReport") -> "AlignmentReport":
        """The report of two parts of one stream."""
        return AlignmentReport(
            sequences=self.sequences + other.sequences,
            misaligned=self.misaligned + other.misaligned,
            unnamed=Counter(self.unnamed) + Counter(other.unnamed),
            rows=self.rows + other.rows,
            not_tested=tuple(dict.fromkeys(self.not_tested + other.not_tested)),
        )


def alignment_report(batch: TokenBatch) -> AlignmentReport:
    """Search the sequences of a batch for shifts. Sequences keep the numbers they have in the batch."""
    counted = _counted(batch)
    suspects = _suspects(counted)
    misaligned = _shifted(counted, suspects)
    rows, swapped = rows_of_others(counted, suspects)
    misaligned |= {
        sequence: MisalignedSequence(sequence, batch.name_of(sequence), Misalignment.SWAPPED, 0, None, None)
        for sequence in swapped
    }
    not_tested = []
    if "rollout_version" not in batch.token_columns:
        not_tested.append("whether a shift begins at a resume: column rollout_version is missing")
    return AlignmentReport(
        sequences=batch.sequences,
        misaligned=tuple(misaligned[s] for s in sorted(misaligned)),
        rows=rows,
        not_tested=tuple(not_tested),
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


def _suspects(batch: TokenBatch) -> list[int]:
    apart_T = np.abs(batch.rollout_logprobs_T - batch.trainer_logprobs_T)
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
    lost = lost_agreement(paths, part, unrelated)
    shifted = {}
    for place, (sequence, path) in enumerate(zip(suspects, paths, strict=True)):
        real = [stretch for stretch in path if _shifts(stretch) or (place, stretch.first) in lost]
        if real:
            shifted[sequence] = _judge(batch, sequence, path, real)
    return shifted


def _shifts(stretch: Stretch) -> bool:
    if stretch.lag in (None, 0):
        return False
    return stretch.saved >= SAVED_NATS and stretch.cost <= COST_LEFT * stretch.cost_unshifted


def _judge(batch: TokenBatch, sequence: int, path: Sequence[Stretch], real: Sequence[Stretch]) -> MisalignedSequence:
    first = real[0].first
    tokens = sum(stretch.tokens for stretch in real)
    at_a_resume = _at_a_resume(batch, sequence, first)
    lags = {stretch.lag for stretch in real}
    if len(lags) == 1 and None not in lags and tokens >= WHOLE * sum(stretch.tokens for stretch in path):
        kind = Misalignment.OFF_BY_ONE
    elif lags in ({1}, {-1}) and at_a_resume is not False:
        kind = Misalignment.TOKEN_DROPPED
    else:
        kind = Misalignment.RETOKENISED
    lag = real[0].lag
    return MisalignedSequence(sequence, batch.name_of(sequence), kind, first, lag, at_a_resume)


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
    shift = f"by {' or '.join(f'{lag:+d}' for lag in lags)}" if lags else "by no fixed number of tokens"
    failure = {
        Misalignment.OFF_BY_ONE: f"the trainer's logprobs are shifted against the rollout's {shift}",
        Misalignment.TOKEN_DROPPED: f"aligned up to a token, shifted {shift} from there on{_resumes(misaligned)}",
        Misalignment.RETOKENISED: f"the two sides hold other tokens from some place on (shifted {shift})",
        Misalignment.SWAPPED: "the trainer's logprobs are those of another sequence",
    }[kind]
    shown = "; ".join(f"{sequence.name} from token {sequence.first}" for sequence in misaligned[:SHOWN])
    hidden = count - len(misaligned[:SHOWN])
    more = [f"{'and ' if shown else ''}{hidden} more"] if hidden else []
    return f"{count} of {sequences} sequences: {failure} ({'; '.join([*filter(None, [shown]), *more])})"


def _resumes(misaligned: Iterable[MisalignedSequence]) -> str:
    at_a_resume = [sequence.at_a_resume for sequence in misaligned if sequence.at_a_resume is not None]
    return f", at a change of the weights' version in {sum(at_a_resume)} of {len(at_a_resume)}" if at_a_resume else ""
