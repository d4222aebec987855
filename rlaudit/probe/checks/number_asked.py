"""Does a logprob depend on how many are requested? It did in some releases (vllm#44319)."""

from rlaudit.probe.checked import Check, Checked, differing, unanswered
from rlaudit.probe.observed import Observations
from rlaudit.probe.server import Server

NUMBERS = (1, 2, 5)
PROMPTS = 3


def ask(server: Server, seen: Observations) -> Checked:
    """Ask for fewer logprobs, and hold what is listed against what was listed with the most."""
    numbers = [number for number in NUMBERS if number < server.most_logprobs]
    differences: list[float] = []
    for observed in seen.open[:PROMPTS]:
        before = dict(zip(observed.context.tokens, observed.context.logprobs_K, strict=True))
        for number in numbers:
            top = server.ask(observed.place.prompt, logprobs=number).next.top
            differences += [abs(top[token] - before[token]) for token in top.keys() & before.keys()]
    if not differences:
        return unanswered("the server takes only one number of logprobs")
    return differing(
        f"if {numbers[0]} to {server.most_logprobs} logprobs are requested, the logprobs",
        max(differences),
        seen.tolerance,
    )


CHECK = Check("number-asked", "Does a logprob depend on how many are requested?", ask)
