"""What the prompt of a turn has otherwise than it was sent and sampled in the turns before it.

A history that is passed on as token ids begins the next prompt as it was. Rendered anew from messages it may lose the
reasoning of earlier answers, be encoded with other tokens, get another end of turn or a second one.
Covered: where the two differ, and what kind of difference that is, by place and length alone.
Not covered: what the tokens say. A template that changes a word of a tool's result looks like any other difference.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from rlaudit.arrays import Integers
from rlaudit.tokens.conversations.matched_runs import Run, matched_runs

# Of an answer whose first tokens are missing: a template leaves out more than a few, and may put an empty block there.
FEWEST_LEFT_OUT, MOST_PUT_IN = 6, 8
# An end of turn and what follows it: `<|im_end|>` and a line break.
END_TOKENS = 2
NOT_SAMPLED = -1


class Change(StrEnum):
    """A kind of difference between a prompt and what was sent and sampled before."""

    # As templates do with reasoning.
    BEGINNING_LEFT_OUT = "beginning-left-out"
    END_LOST = "end-token-lost"
    ANSWER_CUT = "answer-cut"
    # Other tokens in places of an answer.
    ENCODED_AGAIN = "encoded-again"
    # Between an answer and what follows.
    DOUBLED = "tokens-doubled"
    # The template, a message or the result of a tool.
    NOT_AN_ANSWER = "not-an-answer"


@dataclass(frozen=True)
class Difference:
    """A stretch in which a prompt differs. at: its place in what was sent and sampled. was, now: the ids."""

    change: Change
    at: int
    was: tuple[int, ...]
    now: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class History:
    """A prompt of M tokens held against what was sent and sampled before it, N tokens."""

    runs: Sequence[Run]
    differences: tuple[Difference, ...]
    # (M,) the answer that each id of the prompt is of, as far as they are the same ids.
    sampled_by_M: Integers
    # Tokens of the prompt before `end` that are in no run, as a share.
    unknown: float


def history(whole_N: Integers, sampled_by_N: Integers, prompt_M: Integers) -> History:
    """Compare a prompt with what was sent and sampled. sampled_by_N: the answer that each id is of, or NOT_SAMPLED."""
    runs = _with_end(matched_runs(whole_N, prompt_M), whole_N, prompt_M)
    sampled_by_M = np.full(len(prompt_M), NOT_SAMPLED)
    for run in runs:
        sampled_by_M[run.theirs : run.theirs + run.length] = sampled_by_N[run.ours : run.ours + run.length]
    end = runs[-1].theirs + runs[-1].length if runs else 0
    known = sum(run.length for run in runs)
    differences = tuple(_differences(runs, whole_N, sampled_by_N, prompt_M))
    return History(runs, differences, sampled_by_M, 1.0 - known / max(end, 1))


def _with_end(runs: list[Run], whole_N: Integers, prompt_M: Integers) -> list[Run]:
    """Return the runs, and the end token behind other last tokens of an answer, which is in no window of its own."""
    end, end_there = (runs[-1].ours + runs[-1].length, runs[-1].theirs + runs[-1].length) if runs else (0, 0)
    lost = len(whole_N) - end
    if lost < END_TOKENS:
        return runs
    places = np.flatnonzero(prompt_M[end_there : end_there + lost + END_TOKENS] == whole_N[-1])
    return [*runs, Run(len(whole_N) - 1, end_there + int(places[0]), 1)] if places.size else runs


def _differences(
    runs: Sequence[Run], whole_N: Integers, sampled_by_N: Integers, prompt_M: Integers
) -> Iterator[Difference]:
    begin = begin_there = 0
    for run in [*runs, None]:
        # What follows the last run in the prompt is new.
        end, end_there = (len(whole_N), begin_there) if run is None else (run.ours, run.theirs)
        was, now = slice(begin, end), slice(begin_there, end_there)
        if end > begin or end_there > begin_there:
            change = _change(was, now, sampled_by_N, prompt_M)
            yield Difference(change, begin, tuple(whole_N[was].tolist()), tuple(prompt_M[now].tolist()))
        if run is not None:
            begin, begin_there = run.ours + run.length, run.theirs + run.length


def _change(was: slice, now: slice, sampled_by_N: Integers, prompt_M: Integers) -> Change:
    """Return what kind of difference it is that `now` of a prompt stands for `was`."""
    lost, put_in = was.stop - was.start, now.stop - now.start
    if not lost and _is_doubled(now, prompt_M):
        return Change.DOUBLED
    answers = sampled_by_N[was][sampled_by_N[was] != NOT_SAMPLED]
    if not answers.size:
        return Change.NOT_AN_ANSWER
    (places,) = np.nonzero(sampled_by_N == answers[0])
    first, last = int(places[0]), int(places[-1])
    if was.stop > last and lost <= END_TOKENS:
        return Change.END_LOST
    if was.start <= first + 1 and lost >= FEWEST_LEFT_OUT and put_in <= MOST_PUT_IN and was.stop <= last:
        return Change.BEGINNING_LEFT_OUT
    if was.stop >= last and lost > END_TOKENS and put_in <= END_TOKENS:
        return Change.ANSWER_CUT
    return Change.ENCODED_AGAIN


def _is_doubled(now: slice, prompt_M: Integers) -> bool:
    """Return whether what was put in stands before or behind it once more."""
    count = now.stop - now.start
    put_in = prompt_M[now]
    before, behind = prompt_M[max(now.start - count, 0) : now.start], prompt_M[now.stop : now.stop + count]
    return np.array_equal(put_in, before) or np.array_equal(put_in, behind)
