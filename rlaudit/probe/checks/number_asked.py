"""Does a logprob depend on how many are requested? It did in some releases (vllm#44319)."""

from rlaudit.probe.answer import NotAnAnswer
from rlaudit.probe.checked import Check, Checked, untold
from rlaudit.probe.observed import Observations
from rlaudit.probe.server import Refused, Server

NUMBERS = (1, 2, 5)
PROMPTS = 3


def ask(server: Server, seen: Observations) -> Checked:
    """Ask for fewer logprobs, and hold what is listed against what was listed with the most."""
    largest, compared = 0.0, 0
    for observed in seen.open[:PROMPTS]:
        before = dict(zip(observed.context.tokens, observed.context.logprobs_K, strict=True))
        for number in NUMBERS:
            if number >= server.most_logprobs:
                continue
            try:
                position = server.ask(observed.prompt, logprobs=number).choices[0][0]
            except (Refused, NotAnAnswer, IndexError):
                continue
            for token in position.top.keys() & before.keys():
                compared += 1
                largest = max(largest, abs(position.top[token] - before[token]))
    if not compared:
        return untold("the server takes only one number of logprobs")
    figures = {"largest difference, nats": largest, "logprobs": float(compared)}
    if largest > seen.tolerance:
        return Checked(
            found=True,
            answer=f"logprobs differ by up to {largest:.3f} nats with how many are requested",
            figures=figures,
        )
    return Checked(
        found=False,
        answer=f"with 1, 2, 5 or more requested, they differ by at most {largest:.1g} nats",
        figures=figures,
    )


CHECK = Check("number-asked", "Does a logprob depend on how many are requested?", ask)
