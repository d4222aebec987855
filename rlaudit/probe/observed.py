"""What a server answers to one prompt: the report of the next token, and the tokens that were drawn from it."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rlaudit.probe.answer import ID_PREFIX, Answer, NotAnAnswer, Position
from rlaudit.probe.change import Change, Context, context_of
from rlaudit.probe.contexts import OPEN, REPEATING
from rlaudit.probe.server import Refused, Server

# A prompt is of use if its next token is open: neither sure, nor without alternatives.
MOST_SURE = 0.9
FEWEST_LISTED = 4
# Two equal requests may differ by this on any hardware (0.02 nats: 2 % of a ratio); a larger difference is noise that
# was measured here.
LEAST_TOLERANCE = 0.02
NOISES = 2.0


@dataclass(frozen=True, eq=False)
class Observed:
    """A prompt with every parameter neutral. place: 0 for the next token, 1 for the one after `first`."""

    prompt: str
    place: int
    context: Context
    # One report of each repeat.
    reports: Sequence[Position]
    drawn: Sequence[str]
    first: str | None = None

    def positions(self, answer: Answer) -> list[Position]:
        """Return the positions of an answer that stand in this context."""
        return [
            choice[self.place]
            for choice in answer.choices
            if len(choice) > self.place and (self.first is None or choice[0].token == self.first)
        ]

    def request(self, choices: int, **asked: Any) -> dict[str, Any]:
        """Return the request that asks for this place again."""
        return {"prompt": self.prompt, "tokens": self.place + 1, "choices": choices, **asked}


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
    opened = [observed for prompt in OPEN if (observed := _open(server, prompt, _twice(server, prompt, 1)))]
    answers = {prompt: _twice(server, prompt, 2) for prompt in REPEATING}
    repeating = [observed for prompt, twice in answers.items() if (observed := _next(server, prompt, twice))]
    repeated = [observed for prompt, twice in answers.items() if (observed := _second(server, prompt, twice))]
    noise = max((_noise(observed.reports) for observed in (*opened, *repeating, *repeated)), default=0.0)
    return Observations(opened, repeating, repeated, noise)


def _twice(server: Server, prompt: str, tokens: int) -> list[Answer]:
    answers = []
    for _ in range(2):
        try:
            answers.append(server.ask(prompt, tokens, server.most_choices))
        except (Refused, NotAnAnswer):
            continue
    return answers


def _open(server: Server, prompt: str, answers: Sequence[Answer]) -> Observed | None:
    reports = [position for answer in answers for position in list(answer.drawn())[:1]]
    if not reports or len(reports[0].top) < FEWEST_LISTED:
        return None
    first = context_of(reports[0], server.most_logprobs)
    if first.likeliest > MOST_SURE:
        return None
    # Neither the likeliest, which a bias hardly moves, nor a rare one.
    biased = context_of(reports[0], server.most_logprobs, biased=first.tokens[2])
    return Observed(prompt, 0, biased, reports, [position.token for answer in answers for position in answer.drawn()])


def _next(server: Server, prompt: str, answers: Sequence[Answer]) -> Observed | None:
    """Return the next token of a prompt, if one of those listed stands in it."""
    reports = [position for answer in answers for position in list(answer.drawn())[:1]]
    if not reports or len(reports[0].top) < FEWEST_LISTED:
        return None
    context = context_of(reports[0], server.most_logprobs, (), _tokens_of(server, prompt, reports[0].top))
    if not context.before_K.any() or context.before_K.all():
        return None
    return Observed(prompt, 0, context, reports, [position.token for answer in answers for position in answer.drawn()])


def _second(server: Server, prompt: str, answers: Sequence[Answer]) -> Observed | None:
    """Return the place after the commonest first token, if that token may come again there."""
    firsts = Counter(choice[0].token for answer in answers for choice in answer.choices if len(choice) > 1)
    for first, _ in firsts.most_common(1):
        per_answer = [[choice[1] for choice in answer.choices if len(choice) > 1 and choice[0].token == first]
                      for answer in answers]  # fmt: skip
        reports = [positions[0] for positions in per_answer if positions]
        if not reports or len(reports[0].top) < FEWEST_LISTED or first not in reports[0].top:
            continue
        context = context_of(reports[0], server.most_logprobs, [first], _tokens_of(server, prompt, reports[0].top))
        if np.exp(context.logprobs_K[context.generated_K]).sum() > 0.01:
            drawn = [position.token for positions in per_answer for position in positions]
            return Observed(prompt, 1, context, reports, drawn, first)
    return None


def _tokens_of(server: Server, prompt: str, listed: Iterable[str]) -> list[str]:
    """Return the names of the prompt's tokens, as the server writes them; by their text if it shows no ids."""
    if any(token.startswith(ID_PREFIX) for token in listed):
        return [f"{ID_PREFIX}{token}" for token in server.ids_of(prompt) or ()]
    return [token for token in listed if token.strip() and token.strip() in prompt]


def _noise(reports: Sequence[Position]) -> float:
    """Return the root mean square difference between the reports of equal requests, of tokens that both list."""
    first, *others = reports
    differences = [first.top[token] - other.top[token] for other in others for token in first.top if token in other.top]
    return float(np.sqrt(np.mean(np.square(differences)))) if differences else 0.0
