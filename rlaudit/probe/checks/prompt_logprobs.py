"""Are the logprobs of a prompt those with which the same tokens were generated? Trainers that take the former for the
latter depend on it.
"""

from rlaudit.probe.answer import id_of
from rlaudit.probe.checked import Check, Checked, differing, unanswered
from rlaudit.probe.observed import Observations
from rlaudit.probe.server import Server

TOKENS = 16
PROMPTS = 2


def ask(server: Server, seen: Observations) -> Checked:
    """Generate some tokens, then ask for them as a prompt."""
    differences: list[float] = []
    for observed in seen.open[:PROMPTS]:
        ids = None if server.chat else server.ids_of(observed.place.prompt)
        if ids is None:
            return unanswered("the server does not say which token ids a prompt has")
        choice = server.ask(ids, tokens=TOKENS).choices[0]
        drawn = [token for position in choice if (token := id_of(position.token)) is not None]
        if len(drawn) < len(choice):
            return unanswered("the server names no token ids")
        read = server.ask([*ids, *drawn], prompt_logprobs=0).prompt[len(ids) :]
        differences += [
            abs(again - position.logprob) for again, position in zip(read, choice, strict=False) if again is not None
        ]
    if not differences:
        return unanswered("the server returns no logprobs of a prompt")
    return differing(
        "logprobs of a prompt and of generation", max(differences), seen.tolerance, f" ({len(differences)} tokens)"
    )


CHECK = Check("prompt-logprobs", "Are the logprobs of a prompt those of generation?", ask)
