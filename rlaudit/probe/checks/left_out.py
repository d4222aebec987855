"""What is a parameter if a request leaves it out? Servers put in that of the model's generation_config.json, or theirs.

Each is left out by itself. The values that servers put in are tried for the nearest; with a report that leaves the
parameter out only the draws tell, and a mild value (top-p .95) may stay open.
"""

from collections.abc import Iterator

import numpy as np

from rlaudit.probe.answer import NotAnAnswer, Position
from rlaudit.probe.change import DECIDES, Change, changes, draws_ratio, report_fit
from rlaudit.probe.checked import Check, Checked, unanswered
from rlaudit.probe.observed import Observations, Observed
from rlaudit.probe.server import Refused, Server
from rlaudit.text.enumerated import enumerated

# A usual top-p of .95 shows in one draw of twenty, and in every logprob of a report that has it.
MOST_PROMPTS, PROMPTS_IF_REPORTED = 8, 3
# Tolerances beyond which a report is no farther off.
FAR = 10.0


def ask(server: Server, seen: Observations) -> Checked:
    """Ask with each parameter left out by itself."""
    if not seen.open:
        return unanswered("no prompt of those tried has an open next token with this model")
    put_in, hidden = [], []
    for change in changes():
        if change.name not in server.refuses and change.usual:
            value, would_hide = _put_in(server, change, seen)
            put_in += [value] if value else []
            hidden += [f"{change.name} {'/'.join(map(str, would_hide))}"] if would_hide else []
    unseen = f" ({enumerated(hidden)} would not have shown)" if hidden else ""
    if put_in:
        return Checked(
            found=True,
            answer=f"for parameters that a request leaves out, the server puts in {enumerated(put_in)}: write every "
            "parameter "
            f"out{unseen}",
        )
    return Checked(found=False, answer=f"the server puts in nothing for a parameter that a request leaves out{unseen}")


def _put_in(server: Server, change: Change, seen: Observations) -> tuple[str, list[object]]:
    """Return the parameter with the value that fits best, "" if none does, and the values that would not show."""
    reported = change.name in seen.reported
    prompts = seen.of(change)[: PROMPTS_IF_REPORTED if reported else MOST_PROMPTS]
    asked = [(observed, positions) for observed in prompts if (positions := _asked(server, change, observed))]
    scores = {value: _scores(change, value, asked, seen.tolerance, reported) for value in change.usual}
    # The value that fits best in a prompt, of those that are sure in all: not every value can be tried in every prompt.
    sure = {value: sum(each) / len(each) for value, each in scores.items() if sum(each) > DECIDES}
    if sure and change.sized:
        return f"{change.name} about {max(sure, key=lambda value: sure[value])}", []
    if sure or any(_reported_apart(observed, positions[0]) > seen.tolerance for observed, positions in asked):
        return f"another {change.name}", []
    if asked and reported:
        # A filter or penalty moves every logprob of such a report.
        return "", []
    return "", [value for value, each in scores.items() if sum(each) > -DECIDES]


def _asked(server: Server, change: Change, observed: Observed) -> list[Position]:
    try:
        return observed.place.positions(
            server.ask(**observed.place.request(server.most_choices, **{change.name: None}))
        )
    except (Refused, NotAnAnswer):
        return []


def _reported_apart(observed: Observed, position: Position) -> float:
    """Return by how much a report differs from that with the parameter written out, nats; inf if a token is cut."""
    if position.cut & set(observed.context.tokens):
        return float("inf")
    both = list(_both(observed, position))
    return float(np.sqrt(np.mean(np.square(both)))) if both else 0.0


def _both(observed: Observed, position: Position) -> Iterator[float]:
    for token, logprob in zip(observed.context.tokens, observed.context.logprobs_K, strict=True):
        if token in position.top:
            yield position.top[token] - logprob


def _scores(
    change: Change, value: object, asked: list[tuple[Observed, list[Position]]], tolerance: float, reported: bool
) -> list[float]:
    """Return for each prompt how much likelier draws and report are with the value: log likelihood ratio, nats.

    reported: whether the report is known to have the parameter; else one without it says nothing.
    """
    scores = []
    for observed, positions in asked:
        weights_K = change.applied(observed.context, value)
        if weights_K is None:
            continue
        score = draws_ratio(observed.context, [position.token for position in positions], weights_K, change.cuts)
        fit = report_fit(observed.context, positions[0], weights_K, change.cuts)
        if reported or fit.without > tolerance:
            near, far = (min(distance, FAR * tolerance) / tolerance for distance in (fit.applied, fit.without))
            score += 0.5 * (far**2 - near**2)
        scores.append(score)
    return scores


CHECK = Check("left-out", "What are the parameters that a request leaves out?", ask)
