"""Are the logprobs of a prompt those with which the same tokens were generated? Trainers that take the former for the
latter depend on it.
"""

import math

from rlaudit.probe.answer import NotAnAnswer, id_of
from rlaudit.probe.checked import Check, Checked, untold
from rlaudit.probe.observed import Observations
from rlaudit.probe.server import Refused, Server

TOKENS = 16
PROMPTS = 2


def ask(server: Server, seen: Observations) -> Checked:
    """Generate some tokens, then ask for them as a prompt."""
    differences: list[float] = []
    for observed in seen.open[:PROMPTS]:
        ids = None if server.chat else server.ids_of(observed.prompt)
        if ids is None:
            return untold("the server does not say which token ids a prompt has")
        try:
            choice = server.ask(ids, tokens=TOKENS).choices[0]
            drawn = [token for position in choice if (token := id_of(position.token)) is not None]
            read = server.ask([*ids, *drawn], prompt_logprobs=0).prompt
        except (Refused, NotAnAnswer) as error:
            return untold(f"the server returns no logprobs of a prompt: {error}")
        if len(drawn) != len(choice):
            return untold("the server names no token ids")
        if len(read) != len(ids) + len(drawn):
            continue
        pairs = zip(read[len(ids) :], choice, strict=True)
        differences += [abs(again - position.logprob) for again, position in pairs if again is not None]
    if not differences or not all(map(math.isfinite, differences)):
        return untold("the server returns no logprobs of a prompt, or no numbers")
    largest = max(differences)
    figures = {"largest difference, nats": largest, "tokens": float(len(differences))}
    if largest > seen.tolerance:
        return Checked(
            found=True, answer=f"prompt logprobs differ from generated ones by {largest:.3f}", figures=figures
        )
    return Checked(
        found=False,
        answer=f"prompt logprobs are those of generation to {largest:.1g} nats ({len(differences)} tokens)",
        figures=figures,
    )


CHECK = Check("prompt-logprobs", "Are the logprobs of a prompt those of generation?", ask)
