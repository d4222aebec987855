"""The course of a probe: who is there, the prompts, each sampling parameter, then every other question.

A server that stops answering, or a budget that is spent, ends it with what is known so far.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from rlaudit.errors import NotFinished
from rlaudit.probe.answer import NotAnAnswer
from rlaudit.probe.budget import Spent
from rlaudit.probe.change import changes
from rlaudit.probe.checked import Checked, checks, unanswered
from rlaudit.probe.meet import Who, meet
from rlaudit.probe.observed import Observations, observe
from rlaudit.probe.parameter import Parameter, observed_parameter, unknown
from rlaudit.probe.server import Refused, Server, Stopped


@dataclass(frozen=True, kw_only=True)
class Answered:
    """A question that is not about one parameter, and what came of it."""

    name: str
    question: str
    checked: Checked
    requests: int
    seconds: float


@dataclass(frozen=True, kw_only=True)
class Probed:
    """What the answers of one server show."""

    who: Who
    parameters: Sequence[Parameter]
    checks: Sequence[Answered]
    # Root mean square difference between the reports of equal requests, of the noisiest prompt, nats.
    noise: float
    requests: int
    tokens: int
    seconds: float
    # Why the course ended early.
    stopped: str | None = None

    def parameter(self, name: str) -> Parameter:
        """Return what is known of a parameter; nothing if the course ended before it."""
        named = (parameter for parameter in self.parameters if parameter.name == name)
        return next(named, unknown(name, "the probe ended before it"))


def probe(server: Server, model: str | None, say_now: Callable[[str], None]) -> Probed:
    """Ask a server everything. say_now: is given what is asked next.

    Raises NotFinished if the server cannot be asked at all.
    """
    parameters: list[Parameter] = []
    answered: list[Answered] = []
    noise, stopped = 0.0, None
    try:
        who = meet(server, model)
    except (Stopped, Spent) as error:
        raise NotFinished(f"{server.address}: {error}", "is the server up, and reached from this machine?") from error
    try:
        say_now(f"{server.address}: the same prompts twice")
        seen = observe(server)
        noise = seen.noise
        for change in changes():
            say_now(f"{server.address}: {change.name}")
            parameters.append(observed_parameter(server, change, seen))
        seen = replace(seen, reported=frozenset(parameter.name for parameter in parameters if parameter.in_report))
        for check in checks():
            say_now(f"{server.address}: {check.question}")
            before, since = server.budget.asked, time.monotonic()
            checked = _asked(check.ask, server, seen)
            answered.append(
                Answered(
                    name=check.name,
                    question=check.question,
                    checked=checked,
                    requests=server.budget.asked - before,
                    seconds=time.monotonic() - since,
                )
            )
    except (Stopped, Spent) as error:
        stopped = str(error)
    return Probed(
        who=who,
        parameters=parameters,
        checks=answered,
        noise=noise,
        requests=server.budget.asked,
        tokens=server.budget.generated,
        seconds=server.budget.seconds,
        stopped=stopped,
    )


def _asked(ask: Callable[[Server, Observations], Checked], server: Server, seen: Observations) -> Checked:
    try:
        return ask(server, seen)
    except (Refused, NotAnAnswer) as error:
        return unanswered(f"the server does not answer as asked: {error}")
