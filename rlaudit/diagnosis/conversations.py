"""The conversations of a log: whether each turn begins with what was sent and sampled before, and what it costs if not.

A framework that renders the history of a conversation anew at each turn sends other tokens than were sampled. If its
trainer scores each turn behind the prompt that was sent, nothing is lost. If it scores the whole conversation at once,
every token behind such a place has another context on either side: k3 of these turns and of the others shows which.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from rlaudit.causes.history_rendered_anew import COLUMN
from rlaudit.diagnosis.compare_settings import CompareSettings
from rlaudit.statistics.measurement.measure import Measurement, all_metrics, measure
from rlaudit.tokens.alignment import alignment_report
from rlaudit.tokens.conversations.history import Change
from rlaudit.tokens.conversations.join import Conversations, Joined
from rlaudit.tokens.conversations.turn import names_of
from rlaudit.tokens.token_batch import TokenBatch

IDS_SHOWN = 4
METRIC = "k3"
# Times: what longer contexts alone do to later turns stays below it; another context makes it tens to thousands.
MUCH_FARTHER = 2.0


WORDS: Mapping[Change, str] = {
    Change.BEGINNING_LEFT_OUT: "the beginning of an answer is left out, as templates do with reasoning",
    Change.END_LOST: "the end token of an answer is lost or another one",
    Change.ANSWER_CUT: "an answer is cut at its end",
    Change.ENCODED_AGAIN: "an answer has other tokens in places, as if it was encoded again",
    Change.DOUBLED: "tokens between an answer and what follows are doubled",
    Change.NOT_AN_ANSWER: "what was not sampled differs: the template, a message or the result of a tool",
}


@dataclass(frozen=True, kw_only=True)
class ChangedHistory:
    """A kind of difference: how many turns have it, and the first of them.

    turn: its number in the conversation, from 1 on. place: of the first difference, in tokens of what was sent and
    sampled before. was, now: the first ids there.
    """

    change: Change
    turns: int
    prompt: str
    sample: str
    turn: int
    place: int
    was: Sequence[int]
    now: Sequence[int]

    @property
    def words(self) -> str:
        """The kind in a clause."""
        return WORDS[Change(self.change)]


@dataclass(frozen=True, kw_only=True)
class JudgedConversations:
    """The turns of a log that continue others.

    changed: those whose prompt does not begin with what was sent and sampled. after_a_change: these, and all turns that
    follow them. unjoined: turns with an earlier prompt and an answer behind it that the log lacks. untrained: turns
    without a trained token beside trained ones of the same conversation. beyond: turns that were not looked at.
    k3_after, k3_others: in nats, of turns after a change and of all others, in the tokens that are searched for causes.
    """

    conversations: int
    turns: int
    changed: int
    after_a_change: int
    changes: Sequence[ChangedHistory]
    unjoined: int
    untrained: int
    beyond: int
    k3_after: Measurement | None = None
    k3_others: Measurement | None = None

    @property
    def costs_nothing(self) -> bool:
        """Whether turns after a change are surely not much farther from the trainer than the others are."""
        after, others = self.k3_after, self.k3_others
        if after is None or others is None or after.high is None or others.low is None:
            return False
        return after.high <= MUCH_FARTHER * others.low


def judge_conversations(
    conversations: Conversations, sample: TokenBatch | None, settings: CompareSettings
) -> JudgedConversations | None:
    """Count the turns of a log; None if no turn continues another. sample: sequences that the trainer scored."""
    if not conversations.joined:
        return None
    after = [joined for joined in conversations.joined if joined.after_a_change]
    costs = None if sample is None or not after else _costs(sample, after_a_change(conversations, sample), settings)
    return JudgedConversations(
        conversations=len(conversations.first),
        turns=len(conversations.first) + len(conversations.joined),
        changed=len(conversations.changed),
        after_a_change=len(after),
        changes=_changes(conversations.changed),
        unjoined=conversations.unjoined,
        untrained=conversations.untrained,
        beyond=conversations.beyond,
        k3_after=None if costs is None else costs[0],
        k3_others=None if costs is None else costs[1],
    )


def with_changes(sample: TokenBatch, conversations: Conversations) -> TokenBatch:
    """Return the sample with a column that says of each token whether its turn comes after a change."""
    if not conversations.changed:
        return sample
    after_T = after_a_change(conversations, sample)[sample.sequence_T]
    return replace(sample, token_columns={**sample.token_columns, COLUMN: after_T})


def after_a_change(conversations: Conversations, sample: TokenBatch) -> NDArray[np.bool_]:
    """Return (S,) which sequences come after a change."""
    names = {joined.turn.name for joined in conversations.joined if joined.after_a_change}
    return np.array([name in names for name in names_of(sample)], dtype=np.bool_)


def _changes(changed: Sequence[Joined]) -> list[ChangedHistory]:
    turns = Counter(change for joined in changed for change in {differs.change for differs in joined.differences})
    first = {
        differs.change: (joined, differs) for joined in reversed(changed) for differs in reversed(joined.differences)
    }
    return [
        ChangedHistory(
            change=change,
            turns=count,
            prompt=first[change][0].turn.name[0],
            sample=first[change][0].turn.name[1],
            turn=first[change][0].number + 1,
            place=first[change][1].at,
            was=first[change][1].was[:IDS_SHOWN],
            now=first[change][1].now[:IDS_SHOWN],
        )
        for change, count in turns.most_common()
    ]


def _costs(
    sample: TokenBatch, after_S: NDArray[np.bool_], settings: CompareSettings
) -> tuple[Measurement, Measurement] | None:
    """Return the k3 of sequences after a change and of the others; None if one of them has no token to compare."""
    shifted = {sequence.sequence for sequence in alignment_report(sample).misaligned}
    aligned_S = np.array([place not in shifted for place in range(sample.sequences)], dtype=np.bool_)
    measured = []
    for chosen_S in (after_S, ~after_S):
        chosen = np.flatnonzero(chosen_S & aligned_S)
        if not chosen.size:
            return None
        pairs = sample.take(chosen).pairs()
        pairs = pairs.keep(np.isfinite(pairs.trainer_logprobs_T) & np.isfinite(pairs.rollout_logprobs_T))
        if not pairs.tokens:
            return None
        measured.append(measure(pairs, settings.objective, [all_metrics()[METRIC]], seed=settings.seed)[METRIC])
    return measured[0], measured[1]
