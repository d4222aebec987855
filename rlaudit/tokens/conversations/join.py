"""Which earlier turn a prompt continues, and what it has otherwise than that turn had it.

A prompt that begins with all that a turn was sent and sampled continues the longest such turn. Of a history that was
rendered anew, windows of ids are found that only the answer of an earlier turn holds, and not its own prompt: what is
common to many prompts (a system prompt, a question, a few examples) joins nothing. The turn must fill most of the
history, and its answer must stand where its prompt ended. A prompt that several turns fit equally well stays alone.
Not covered: histories in which no window of an answer is left (all of it encoded again, or summed up).
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import numpy as np

from rlaudit.arrays import Integers
from rlaudit.tokens.conversations.history import END_TOKENS, NOT_SAMPLED, Change, Difference, History, history
from rlaudit.tokens.conversations.matched_runs import Run
from rlaudit.tokens.conversations.turn import Turn
from rlaudit.tokens.hashed_ids import Hashes, KnownHashes, are_among, prefix_sums, windows_between

# Ids in a row by which an answer is looked for in a prompt.
WIDTH = 8
# Turns that share most windows with a prompt are compared id by id.
TRIED = 4
# Answers that have one window in common: a phrase that all of them use.
MOST_ALIKE = 32
# Of a history: more of other tokens is another conversation.
MOST_UNKNOWN = 0.5
# Ids of an answer that are other ids in a prompt: more, on both sides, is another answer.
MOST_REPLACED = 16
# Up to so many, one side may have twice as many.
MOST_UNALIKE = 3
# The last ids of a prompt, of which the answer's header remains where the answer stands.
HEADER = 4
# Of all completions: so many that end with an id make it an end token.
USUAL_END = 0.3


@dataclass(frozen=True, eq=False)
class Joined:
    """A turn that continues another. differences: none if its prompt begins with what was sent and sampled."""

    turn: Turn
    before: Turn
    # 1 for the second turn of a conversation.
    number: int
    differences: tuple[Difference, ...]
    # Whether its prompt, or that of a turn between the first and it, differs.
    after_a_change: bool


@dataclass(frozen=True)
class Conversations:
    """The turns of a log, joined. first: those that continue none, though others continue them."""

    joined: tuple[Joined, ...] = ()
    first: tuple[Turn, ...] = ()
    # Turns whose prompt begins with an earlier one, and holds behind it no answer that was sampled for that.
    unjoined: int = 0
    # Turns without a token that is trained, beside trained ones of the same conversation.
    untrained: int = 0
    # Turns that were not looked at, for their number.
    beyond: int = 0

    @property
    def changed(self) -> tuple[Joined, ...]:
        """The turns whose prompt does not begin with what was sent and sampled."""
        return tuple(joined for joined in self.joined if joined.differences)


@dataclass(eq=False)
class _Request:
    """All turns of one prompt, and which turn it continues."""

    prompt: Integers
    # Of each id of the prompt the answer that it is of, by its number, or NOT_SAMPLED.
    sampled_by_M: Integers
    answers: "list[_Answer]" = field(default_factory=list)
    before: "_Answer | None" = None
    differences: tuple[Difference, ...] = ()


@dataclass(frozen=True, eq=False)
class _Answer:
    """What was sampled for a request; turns with the same tokens are one answer."""

    number: int
    request: _Request
    turns: list[Turn]

    @property
    def sampled(self) -> Integers:
        """Its ids."""
        return self.turns[0].sampled

    @property
    def whole(self) -> Integers:
        """What was sent and sampled."""
        return self.turns[0].whole

    @property
    def sampled_by_N(self) -> Integers:
        """Of each id of `whole` the answer that it is of."""
        return np.append(self.request.sampled_by_M, np.full(len(self.sampled), self.number))


Beginning = TypeVar("Beginning", _Request, _Answer)


def joined(turns: Sequence[Turn], beyond: int = 0) -> Conversations:
    """Join turns into conversations. beyond: how many more the log has."""
    requests, answers = _by_prompt(turns)
    if not answers:
        return Conversations(beyond=beyond)
    known_turns, ends = _KnownTurns(answers), _end_tokens(answers)
    unjoined = 0
    for request in sorted(requests, key=lambda request: len(request.prompt)):
        sums = prefix_sums(request.prompt)
        before = known_turns.sampled.longest(sums)
        known = 0 if before is None else len(before.whole)
        # Behind an earlier turn that is there as it was, a later one may be rendered anew.
        candidates = known_turns.most_alike(request, sums, known)
        asked = known_turns.sent.longest(sums[:-1])
        is_asked_again = asked is not None and len(asked.prompt) >= known
        if asked is not None and is_asked_again:
            candidates = list(dict.fromkeys([*candidates, *asked.answers[:MOST_ALIKE]]))
        fits = [fit for answer in candidates if (fit := _fit(answer, request.prompt)) is not None]
        best = max((fit.known for fit in fits), default=0)
        fits = [fit for fit in fits if fit.known == best > known]
        if len(fits) == 1:
            request.before, request.differences = fits[0].answer, fits[0].history.differences
            request.sampled_by_M = fits[0].history.sampled_by_M
            continue
        unjoined += len(request.answers) if is_asked_again else 0
        if before is not None:
            request.before, request.differences = before, _doubled_end(before, request.prompt, ends)
            request.sampled_by_M[:known] = before.sampled_by_N
    chains = _chains(requests)
    untrained = _untrained(requests, chains)
    return Conversations(tuple(_joined(requests, chains)), tuple(_first(requests)), unjoined, untrained, beyond)


def _by_prompt(turns: Sequence[Turn]) -> tuple[list[_Request], list[_Answer]]:
    requests: dict[bytes, _Request] = {}
    answers: dict[tuple[bytes, bytes], _Answer] = {}
    for turn in turns:
        prompt, sampled = turn.prompt.tobytes(), turn.sampled.tobytes()
        request = requests.setdefault(prompt, _Request(turn.prompt, np.full(len(turn.prompt), NOT_SAMPLED)))
        answer = answers.get((prompt, sampled))
        if answer is None:
            answer = answers[prompt, sampled] = _Answer(len(answers), request, [])
            request.answers.append(answer)
        answer.turns.append(turn)
    return list(requests.values()), list(answers.values())


class _Beginnings(Generic[Beginning]):
    """Requests by the hash of their prompts, or answers by that of all that was sent and sampled."""

    def __init__(self, by_hash: Mapping[tuple[int, int], Beginning]) -> None:
        self._by_hash: Mapping[tuple[int, int], Beginning] = by_hash
        self._hashes = KnownHashes(np.array([key[0] for key in by_hash], dtype=np.uint64))

    def longest(self, sums: Hashes) -> Beginning | None:
        """Return the longest one with which a prompt begins; None if there is none. sums: the prefix sums of it."""
        places = self._hashes.places_in(sums)[::-1].tolist()
        keys = ((int(sums[place]), place) for place in places)
        return next((self._by_hash[key] for key in keys if key in self._by_hash), None)


class _KnownTurns:
    """What prompts may begin with, and windows of ids that end in an answer and that its own prompt does not hold."""

    def __init__(self, answers: Sequence[_Answer]) -> None:
        sent: dict[tuple[int, int], _Request] = {}
        sampled: dict[tuple[int, int], _Answer] = {}
        hashes, numbers = [], []
        for answer in answers:
            end, sums = len(answer.request.prompt), prefix_sums(answer.whole)
            sent[int(sums[end]), end] = answer.request
            sampled[int(sums[-1]), len(sums) - 1] = answer
            windows = windows_between(sums, WIDTH)
            begin = max(end - WIDTH + 1, 0)
            own = windows[begin:][~are_among(np.sort(windows[:begin]), windows[begin:])]
            hashes.append(own)
            numbers.append(np.full(len(own), answer.number))
        self.sent, self.sampled = _Beginnings(sent), _Beginnings(sampled)
        every, number = np.concatenate(hashes), np.concatenate(numbers)
        order = np.argsort(every, kind="stable")
        self._answers, self._known = answers, KnownHashes(every)
        self._hashes, self._numbers = every[order], number[order]

    def most_alike(self, request: _Request, sums: Hashes, begin: int) -> list[_Answer]:
        """Return the answers that share most windows with a prompt from a place on, and those that share the last."""
        sought = windows_between(sums, WIDTH)[max(begin - WIDTH + 1, 0) :]
        places = self._known.places_in(sought)
        first, behind = (np.searchsorted(self._hashes, sought[places], side=side) for side in ("left", "right"))
        shared: Counter[int] = Counter()
        last: dict[int, int] = {}
        for place, at, until in zip(places.tolist(), first.tolist(), behind.tolist(), strict=True):
            for number in self._numbers[at : min(until, at + MOST_ALIKE)].tolist():
                shared[number] += 1
                last[number] = place
        by_count = [number for number, _ in shared.most_common(TRIED)]
        by_place = sorted(last, key=lambda number: (-last[number], -shared[number]))[:TRIED]
        numbers = dict.fromkeys([*by_count, *by_place])
        return [answer for number in numbers if (answer := self._answers[number]).request is not request]


@dataclass(frozen=True, eq=False)
class _Fit:
    """An answer that a prompt may continue. known: ids that prompt and history have in common."""

    answer: _Answer
    history: History
    known: int


def _fit(answer: _Answer, prompt: Integers) -> _Fit | None:
    """Return how well a prompt continues an answer; None if it does not."""
    compared = history(answer.whole, answer.sampled_by_N, prompt)
    begin = len(answer.request.prompt)
    of_answer = [run for run in compared.runs if run.ours + run.length > begin]
    if not of_answer or compared.unknown > MOST_UNKNOWN:
        return None
    of_answer_too = [differs for differs in compared.differences if differs.at + len(differs.was) > begin]
    if any(_is_other_text(differs, len(answer.whole)) for differs in of_answer_too) or not _stands_behind_its_prompt(
        compared.runs, of_answer[0], begin
    ):
        return None
    return _Fit(answer, compared, sum(run.length for run in compared.runs))


def _is_other_text(differs: Difference, end: int) -> bool:
    """Return whether a difference is another answer.

    Encoding a text again changes few ids, and their number less. Of an answer that is cut the end token is left.
    """
    if differs.at + len(differs.was) == end and not differs.now:
        return len(differs.was) > END_TOKENS
    fewer, more = sorted((len(differs.was), len(differs.now)))
    return fewer > MOST_REPLACED or (fewer > MOST_UNALIKE and more > 2 * fewer)


def _stands_behind_its_prompt(runs: Sequence[Run], first: Run, begin: int) -> bool:
    """Return whether the first run of an answer comes close behind the last ids of its prompt."""
    if first.ours < begin:
        return True
    before = [run for run in runs if run.ours < first.ours]
    if not before:
        return False
    end = before[-1].ours + before[-1].length
    return end > begin - HEADER and first.theirs - before[-1].theirs - before[-1].length <= MOST_REPLACED


def _end_tokens(answers: Sequence[_Answer]) -> frozenset[int]:
    """Return the ids with which many answers end."""
    last = Counter(int(answer.sampled[-1]) for answer in answers)
    return frozenset(token for token, count in last.items() if count > max(1, USUAL_END * len(answers)))


def _doubled_end(before: _Answer, prompt: Integers, ends: frozenset[int]) -> tuple[Difference, ...]:
    """Return the end token that a prompt has once more behind an answer that has it already."""
    end, token = len(before.whole), int(before.sampled[-1])
    if token in ends and end < len(prompt) and int(prompt[end]) == token:
        return (Difference(Change.DOUBLED, end, (), (token,)),)
    return ()


@dataclass(frozen=True)
class _Chain:
    """How far a request is from the first answer of its conversation, and whether a history on the way differs."""

    first: _Answer
    number: int
    changed: bool


def _chains(requests: Sequence[_Request]) -> dict[int, _Chain]:
    """Return the chain of each request that continues another, by its id. None of them is walked twice."""
    chains: dict[int, _Chain] = {}
    for request in requests:
        path: dict[int, tuple[_Request, _Answer]] = {}
        at = request
        while at.before is not None and id(at) not in chains and id(at) not in path:
            path[id(at)] = at, at.before
            at = at.before.request
        behind = chains.get(id(at))
        for link, before in reversed(path.values()):
            changed = bool(link.differences)
            if behind is None:
                behind = _Chain(before, 1, changed)
            else:
                behind = _Chain(behind.first, behind.number + 1, changed or behind.changed)
            chains[id(link)] = behind
    return chains


def _joined(requests: Sequence[_Request], chains: Mapping[int, _Chain]) -> Iterator[Joined]:
    for request in requests:
        if request.before is None:
            continue
        chain = chains[id(request)]
        for answer in request.answers:
            for turn in answer.turns:
                yield Joined(turn, request.before.turns[0], chain.number, request.differences, chain.changed)


def _first(requests: Sequence[_Request]) -> Iterator[Turn]:
    continued = {id(request.before) for request in requests if request.before is not None}
    for request in requests:
        if request.before is None:
            yield from (turn for answer in request.answers if id(answer) in continued for turn in answer.turns)


def _untrained(requests: Sequence[_Request], chains: Mapping[int, _Chain]) -> int:
    """Count the turns without a trained token in conversations that have turns with one."""
    turns: defaultdict[int, list[bool]] = defaultdict(list)
    for request in requests:
        chain = chains.get(id(request))
        for answer in request.answers:
            # A first answer stands for its conversation.
            turns[answer.number if chain is None else chain.first.number] += [turn.trained for turn in answer.turns]
    return sum(trained.count(False) for trained in turns.values() if any(trained))
