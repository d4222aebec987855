"""Is a request with a seed repeatable, to the byte?"""

from rlaudit.probe.answer import NotAnAnswer
from rlaudit.probe.checked import Check, Checked, untold
from rlaudit.probe.observed import Observations
from rlaudit.probe.server import Refused, Server

TOKENS = 16
PROMPTS = 3
SEED = 7


def ask(server: Server, seen: Observations) -> Checked:
    """Ask the same with the same seed twice."""
    tokens, other, bytes_apart = 0, 0, 0
    for observed in seen.open[:PROMPTS]:
        try:
            one, two = (server.ask(observed.prompt, tokens=TOKENS, seed=SEED).choices[0] for _ in range(2))
        except (Refused, NotAnAnswer) as error:
            return untold(f"the server takes no seed: {error}")
        for mine, its in zip(one, two, strict=False):
            tokens += 1
            if mine.token != its.token:
                other += 1
                break
            bytes_apart += mine.logprob != its.logprob
    if not tokens:
        return untold("the server returns no tokens")
    figures = {"tokens": float(tokens), "other tokens": float(other), "other bytes": float(bytes_apart)}
    if other:
        return Checked(
            found=True,
            answer=f"in {other} of {PROMPTS} prompts another token is drawn with the same seed",
            figures=figures,
        )
    if bytes_apart:
        share = 100 * bytes_apart / tokens
        return Checked(
            found=True,
            answer=f"the tokens repeat, and {share:.0f} % of {tokens} logprobs have other bytes",
            figures=figures,
        )
    return Checked(found=False, answer=f"tokens and logprobs repeat to the byte ({tokens} tokens)", figures=figures)


CHECK = Check("seeds", "Is a request with a seed repeatable?", ask)
