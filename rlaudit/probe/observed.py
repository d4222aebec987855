"""What a server answers to one prompt: the report of the next token, and the tokens that were drawn from it."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rlaudit.probe.answer import ID_PREFIX, Answer, NotAnAnswer, Position, id_of
from rlaudit.probe.change import Change, Context, context_of
from rlaudit.probe.contexts import OPEN, REPEATING
from rlaudit.probe.server import Refused, Server

# A prompt is of use if its next token is open: neither sure, nor without alternatives.
MOST_SURE = 0.9
FEWEST_LISTED = 4
# Two equal requests may differ by this on any hardware (0.02 nats: 2 % of a ratio); a larger difference is noise that
# was measured here.
LEAST_TOLERANCE = 0.02
# Of a token that was generated before, else a penalty of it hardly shows.
LEAST_SHARE = 0.01
NOISES = 2.0


@dataclass(frozen=True)
class Place:
    """A place in the completions of a prompt: the next token, or the one after a first token."""

    prompt: str
    first: str | None = None

    def request(self, choices: int, **asked: Any) -> dict[str, Any]:
        """Return the request that asks for this place."""
        return {"prompt": self.prompt, "tokens": 1 if self.first is None else 2, "choices": choices, **asked}

    def positions(self, answer: Answer) -> list[Position]:
        """Return what an answer has at this place."""
        if self.first is None:
            return [choice[0] for choice in answer.choices if choice]
        return [choice[1] for choice in answer.choices if len(choice) > 1 and choice[0].token == self.first]


@dataclass(frozen=True, eq=False)
class Observed:
    """A place with every parameter neutral."""

    place: Place
    context: Context
    # One report of each repeat.
    reports: Sequence[Position]
    drawn: Sequence[str]


@dataclass(frozen=True, eq=False)
class Observations:
    """All prompts that are of use with this model."""

    open: Sequence[Observed]
    # The next token of repeating prompts, and the one after it.
    repeating: Sequence[Observed]
    repeated: Sequence[Observed]
    # Root mean square difference between the reports of equal requests, of the noisiest prompt, nats.
    noise: float
    # Parameters that the report was observed to have.
    reported: frozenset[str] = frozenset()

    def of(self, change: Change) -> Sequence[Observed]:
        """Return the prompts in which a parameter shows."""
        if change.looks_back == "prompt" and self.repeating:
            return self.repeating
        return self.repeated if change.looks_back else self.open

    @property
    def tolerance(self) -> float:
        """By how much a report may miss what it is, nats."""
        return max(LEAST_TOLERANCE, NOISES * self.noise)


def observe(server: Server) -> Observations:
    """Ask every prompt twice with every parameter neutral."""
    opened = [_open(server, Place(prompt), _twice(server, prompt, 1)) for prompt in OPEN]
    answers = {prompt: _twice(server, prompt, 2) for prompt in REPEATING}
    repeating = [_repeating(server, Place(prompt), twice) for prompt, twice in answers.items()]
    repeated = [_repeating(server, Place(prompt, _commonest(twice)), twice) for prompt, twice in answers.items()]
    of_use = [[observed for observed in each if observed is not None] for each in (opened, repeating, repeated)]
    noise = max((_noise(observed.reports) for each in of_use for observed in each), default=0.0)
    return Observations(of_use[0], of_use[1], of_use[2], noise)


def _twice(server: Server, prompt: str, tokens: int) -> list[Answer]:
    answers = []
    for _ in range(2):
        try:
            answers.append(server.ask(prompt, tokens, server.most_choices))
        except (Refused, NotAnAnswer):
            continue
    return answers


def _commonest(answers: Sequence[Answer]) -> str:
    """Return the commonest first token, "" if there is none."""
    firsts = Counter(position.token for answer in answers for position in answer.drawn())
    return next((token for token, _ in firsts.most_common(1)), "")


def _observed(server: Server, place: Place, answers: Sequence[Answer], **marked: Any) -> Observed | None:
    """Return what was answered at a place; None if too little is listed there. marked: tokens, as `context_of`."""
    per_answer = [positions for answer in answers if (positions := place.positions(answer))]
    if not per_answer or len(per_answer[0][0].top) < FEWEST_LISTED:
        return None
    context = context_of(per_answer[0][0], server.most_logprobs, **marked)
    drawn = [position.token for positions in per_answer for position in positions]
    return Observed(place, context, [positions[0] for positions in per_answer], drawn)


def _open(server: Server, place: Place, answers: Sequence[Answer]) -> Observed | None:
    observed = _observed(server, place, answers)
    if observed is None or observed.context.likeliest > MOST_SURE:
        return None
    # Neither the likeliest, which a bias hardly moves, nor a rare one.
    return _observed(server, place, answers, biased=observed.context.tokens[2])


def _repeating(server: Server, place: Place, answers: Sequence[Answer]) -> Observed | None:
    """Return a place if one of the tokens listed stands before it: a generated one, if one was generated."""
    listed = [token for answer in answers for position in place.positions(answer) for token in position.top]
    generated = [] if place.first is None else [place.first]
    in_prompt = _tokens_of(server, place.prompt, listed)
    observed = _observed(server, place, answers, generated=generated, in_prompt=in_prompt)
    if observed is None:
        return None
    context = observed.context
    if generated:
        return observed if np.exp(context.logprobs_K[context.generated_K]).sum() > LEAST_SHARE else None
    return observed if context.before_K.any() and not context.before_K.all() else None


def _tokens_of(server: Server, prompt: str, listed: Sequence[str]) -> list[str]:
    """Return the names of the prompt's tokens, as the server writes them; by their text if it shows no ids."""
    if any(id_of(token) is not None for token in listed):
        return [f"{ID_PREFIX}{token}" for token in server.ids_of(prompt) or ()]
    return [token for token in dict.fromkeys(listed) if token.strip() and token.strip() in prompt]


def _noise(reports: Sequence[Position]) -> float:
    """Return the root mean square difference between the reports of equal requests, of tokens that both list."""
    first, *others = reports
    differences = [first.top[token] - other.top[token] for other in others for token in first.top if token in other.top]
    return float(np.sqrt(np.mean(np.square(differences)))) if differences else 0.0
