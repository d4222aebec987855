"""Does a logprob depend on what the server holds in its cache, or on what it does at the same time?

A new, long prompt is read whole the first time, and from the prefix cache after that; then it
is asked with others in flight. Equal requests, asked one after another, say how much of a difference is noise.
"""

import re
import secrets
from collections.abc import Sequence

from rlaudit.probe.answer import NotAnAnswer, Position
from rlaudit.probe.checked import Check, Checked, untold
from rlaudit.probe.observed import LEAST_TOLERANCE, Observations
from rlaudit.probe.server import Refused, Server

PROMPTS = 3
WORDS = 120
HITS = re.compile(r"^vllm:(?:gpu_)?prefix_cache_hits(?:_total)?(?:\{[^}]*\})?\s+([0-9.eE+]+)", re.MULTILINE)


def ask(server: Server, seen: Observations) -> Checked:
    """Ask new prompts cold, warm, warm again, and in a crowd."""
    del seen
    before = _hits(server)
    cached, crowded, noise = [], [], []
    for _ in range(PROMPTS):
        prompt = f"{' '.join(secrets.token_hex(2) for _ in range(WORDS))} The name of the dog was"
        try:
            cold, warm, again = (server.ask(prompt).choices[0][0] for _ in range(3))
            others = [{"prompt": f"{number} {prompt}"} for number in range(server.at_once - 1)]
            crowd = server.ask_all([{"prompt": prompt}, *others])[0].choices[0][0]
        except (Refused, NotAnAnswer, IndexError) as error:
            return untold(f"the server does not answer a prompt of {WORDS} words: {error}")
        noise.append(_apart(warm, again))
        cached.append(_apart(cold, warm))
        crowded.append(_apart(warm, crowd))
    figures = {
        "cold to warm, nats": max(cached),
        "alone to crowd, nats": max(crowded),
        "equal requests, nats": max(noise),
    }
    after = _hits(server)
    hits = "" if before is None or after is None else f"; the prefix cache was hit {after - before:.0f} times"
    limit = max(LEAST_TOLERANCE, 3.0 * max(noise))
    named = [
        f"{what} ({value:.3f} nats)"
        for what, value in (("the prefix cache", max(cached)), ("requests beside it", max(crowded)))
        if value > limit
    ]
    if named:
        return Checked(
            found=True,
            answer=f"logprobs depend on {' and '.join(named)}; equal requests differ by {max(noise):.1g}{hits}",
            figures=figures,
        )
    return Checked(
        found=False,
        answer=f"cold, warm and in a crowd they differ by at most {max(*cached, *crowded):.1g} nats, equal requests by "
        f"{max(noise):.1g}{hits}",
        figures=figures,
    )


def _apart(one: Position, other: Position) -> float:
    common: Sequence[str] = [token for token in one.top if token in other.top]
    return max((abs(one.top[token] - other.top[token]) for token in common), default=0.0)


def _hits(server: Server) -> float | None:
    """Return how many tokens the prefix cache has served, by the server's metrics; None without them."""
    metrics = server.get("metrics")
    values = HITS.findall(metrics) if isinstance(metrics, str) else []
    return sum(map(float, values)) if values else None


CHECK = Check("cache-and-crowd", "Does a logprob depend on the cache or on other requests?", ask)
