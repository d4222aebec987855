"""One sampling parameter of a server: whether the report has it, and whether the draws have it."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

import numpy as np

from rlaudit.arrays import Floats
from rlaudit.probe.answer import NotAnAnswer, id_of
from rlaudit.probe.change import DECIDES, Change, Context, Fit, draws_ratio, report_fit
from rlaudit.probe.observed import Observations, Observed
from rlaudit.probe.server import Refused, Server

# Prompts and values of one parameter: all of them only if draws leave it open, as those under penalties do.
MOST_REQUESTS = 8
FEWEST_REQUESTS = 4
CLEAR = 2.0 * DECIDES


@dataclass(frozen=True, kw_only=True)
class Parameter:
    """What is known of one parameter. None: not known, and `because` says why."""

    name: str
    because: str
    in_report: bool | None
    in_draws: bool | None
    # Values that were requested.
    values: Sequence[float] = ()
    # Prompts and draws that this rests on.
    prompts: int = 0
    draws: int = 0
    # Whether some answers have it and others not, as of several servers behind one address.
    mixed: bool = False


def unknown(name: str, because: str) -> Parameter:
    """Return a parameter of which nothing is known."""
    return Parameter(name=name, because=because, in_report=None, in_draws=None)


def observed_parameter(server: Server, change: Change, seen: Observations) -> Parameter:
    """Request a parameter in several prompts, and return what the answers show. Raises Stopped and Spent."""
    if change.name in server.refuses:
        return unknown(change.name, f"the server refuses it: {server.refuses[change.name]}".rstrip(": "))
    fits: list[Fit] = []
    values: set[float] = set()
    ratio, draws, refusal = 0.0, 0, ""
    for observed, value, weights_K in _usable(change, seen.of(change)):
        requested = _as_requested(change, value, observed.context)
        if requested is None:
            # A text by itself may be another token than where it was listed.
            return unknown(change.name, "the server names no token ids, which a bias is given by")
        try:
            answer = server.ask(**observed.place.request(server.most_choices, **{change.name: requested}))
        except (Refused, NotAnAnswer) as error:
            refusal = str(error)
            continue
        positions = observed.place.positions(answer)
        if positions:
            values.add(float(value))
            draws += len(positions)
            fits.append(report_fit(observed.context, positions[0], weights_K, change.cuts))
            drawn = [position.token for position in positions]
            ratio += draws_ratio(observed.context, drawn, weights_K, change.cuts)
        if len(fits) >= FEWEST_REQUESTS and abs(ratio) > CLEAR:
            break
    if not fits:
        return unknown(change.name, refusal or "in no prompt does it change what this model would say next")
    by_prompt = [fit.shows(seen.tolerance) for fit in fits]
    in_draws = True if ratio > DECIDES else False if ratio < -DECIDES else None
    in_report = _agreed(by_prompt)
    because = _because(by_prompt, min(fits, key=_decisive), in_draws, draws, seen.tolerance)
    return Parameter(
        name=change.name,
        values=sorted(values),
        in_report=in_report,
        in_draws=in_draws,
        prompts=len(fits),
        draws=draws,
        mixed={True, False} <= set(by_prompt),
        because=because,
    )


def _usable(change: Change, prompts: Sequence[Observed]) -> list[tuple[Observed, Any, Floats]]:
    """Return the prompts and values in which the parameter would show, and what it would do there."""
    usable = []
    for place, observed in enumerate(prompts):
        weighed = ((value, change.applied(observed.context, value)) for value in change.values(observed.context))
        row = [(observed, value, weights_K) for value, weights_K in weighed if weights_K is not None]
        # Another value first in each prompt.
        first = place % max(1, len(row))
        usable.append([*row[first:], *row[:first]])
    # One value of each prompt before a second one of any.
    in_turn = (tried for row in zip_longest(*usable) for tried in row if tried is not None)
    return list(in_turn)[:MOST_REQUESTS]


def _as_requested(change: Change, value: Any, context: Context) -> Any:
    """Return the value as a request holds it: a bias is a mapping from ids. None if the server names none."""
    if not change.by_id:
        return value
    place = int(np.argmax(context.biased_K))
    token = id_of(context.tokens[place])
    return None if token is None else {str(token): value}


def _agreed(by_prompt: Sequence[bool | None]) -> bool | None:
    """Return what the prompts say that say something, None if they contradict each other or none does."""
    answers = {value for value in by_prompt if value is not None}
    return answers.pop() if len(answers) == 1 else None


def _decisive(fit: Fit) -> float:
    """Return what sorts the fit first that is nearest to one of the two and farthest from the other."""
    near, far = sorted((fit.without, fit.applied))
    return near - min(far, 100.0)


def _because(
    by_prompt: Sequence[bool | None], clearest: Fit, in_draws: bool | None, draws: int, tolerance: float
) -> str:
    figures = f"{_nats(clearest.without)} from a report without it, {_nats(clearest.applied)} from one with it"
    have, lack = by_prompt.count(True), by_prompt.count(False)
    if have and lack:
        reported = f"{have} of {have + lack} prompts have it, {lack} not"
    elif have or lack:
        reported = f"{'in' if have else 'not in'} the report ({figures})"
    elif clearest.is_neither(tolerance):
        reported = f"the report changes in a way that is neither ({figures})"
    else:
        reported = f"the report may have it or not ({figures}; equal requests differ too much)"
    drawn = {True: "follow it", False: "do not follow it", None: "leave it open"}
    return f"{reported}; {draws} draws {drawn[in_draws]}"


def _nats(distance: float) -> str:
    return "a cut token" if distance == float("inf") else f"{distance:.3f} nats"
