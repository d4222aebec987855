"""Does a logprob depend on what the server holds in its cache, or on what it does at the same time?

A new, long prompt is read whole the first time, and from the prefix cache after that; then it is asked with others in
flight. Equal requests, asked one after another, say how much of a difference is noise.
"""

import re
import secrets

from rlaudit.probe.answer import Position
from rlaudit.probe.checked import Check, Checked
from rlaudit.probe.observed import LEAST_TOLERANCE, Observations
from rlaudit.probe.server import Server

PROMPTS = 3
WORDS = 120
NOISES = 3.0
HITS = re.compile(
    r"^vllm:(?:gpu_)?prefix_cache_hits(?:_total)?(?:\{[^}]*\})?\s+(\d{1,18}(?:\.\d{1,18})?(?:e\+?\d\d)?)", re.MULTILINE
)


def ask(server: Server, seen: Observations) -> Checked:
    """Ask new prompts cold, warm, warm again, and in a crowd."""
    del seen
    before = _hits(server)
    cached, crowded, noise = [], [], []
    for _ in range(PROMPTS):
        prompt = f"{' '.join(secrets.token_hex(2) for _ in range(WORDS))} The name of the dog was"
        cold, warm, again = (server.ask(prompt).next for _ in range(3))
        others = [{"prompt": f"{number} {prompt}"} for number in range(server.at_once - 1)]
        crowd = server.ask_all([{"prompt": prompt}, *others])[0].next
        noise.append(_apart(warm, again))
        cached.append(_apart(cold, warm))
        crowded.append(_apart(warm, crowd))
    figures = {
        "cold to warm, nats": max(cached),
        "alone to crowd, nats": max(crowded),
        "equal requests, nats": max(noise),
    }
    after = _hits(server)
    hits = "" if before is None or after is None else f"; the prefix cache gave {after - before:.0f} tokens"
    depends = max(*cached, *crowded) > max(LEAST_TOLERANCE, NOISES * max(noise))
    return Checked(
        found=depends,
        answer=f"with a cold and a warm cache logprobs differ by at most {max(cached):.2g} nats, alone and among "
        f"other requests by {max(crowded):.2g}, and equal requests by "
        f"{max(noise):.2g}{': more than noise' if depends else ''}{hits}",
        figures=figures,
    )


def _apart(one: Position, other: Position) -> float:
    return max((abs(one.top[token] - other.top[token]) for token in one.top.keys() & other.top.keys()), default=0.0)


def _hits(server: Server) -> float | None:
    """Return how many tokens the prefix cache has served, by the server's metrics; None without them."""
    metrics = server.get("metrics")
    values = HITS.findall(metrics) if isinstance(metrics, str) else []
    return sum(map(float, values)) if values else None


CHECK = Check("cache-and-crowd", "Does a logprob depend on the cache or on other requests?", ask)
