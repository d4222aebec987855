"""Is a request with a seed repeatable, to the byte?"""

from rlaudit.probe.checked import Check, Checked, unanswered
from rlaudit.probe.observed import Observations
from rlaudit.probe.server import Server

TOKENS = 16
PROMPTS = 3
SEED = 7


def ask(server: Server, seen: Observations) -> Checked:
    """Ask the same with the same seed twice."""
    pairs = []
    for observed in seen.open[:PROMPTS]:
        one, two = (server.ask(observed.place.prompt, tokens=TOKENS, seed=SEED).choices[0] for _ in range(2))
        pairs.append(list(zip(one, two, strict=False)))
    tokens = sum(map(len, pairs))
    if not tokens:
        return unanswered("the server returns no tokens")
    other = sum(any(mine.token != its.token for mine, its in pair) for pair in pairs)
    if other:
        return Checked(found=True, answer=f"in {other} of {len(pairs)} prompts the same seed draws another token")
    apart = sum(mine.logprob != its.logprob for pair in pairs for mine, its in pair)
    return Checked(
        found=apart > 0,
        answer=f"the tokens repeat, and {100 * apart / tokens:.0f} % of {tokens} logprobs have other bytes",
        figures={"share of other bytes": apart / tokens, "tokens": float(tokens)},
    )


CHECK = Check("seeds", "Is a request with a seed repeatable?", ask)
