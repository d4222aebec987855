"""Are two parameters of one request reported as each of them is by itself? Temperature and top-k, in vLLM's order.

Of the k likeliest tokens every log probability is known then: log p / T less the log of what is kept.
"""

from dataclasses import replace

from rlaudit.arrays import Floats
from rlaudit.probe.change import Context, report_fit
from rlaudit.probe.changes import temperature, top_k
from rlaudit.probe.checked import Check, Checked, differing, unanswered
from rlaudit.probe.observed import Observations
from rlaudit.probe.server import Server

T, K = 0.5, 3
PROMPTS = 3


def ask(server: Server, seen: Observations) -> Checked:
    """Ask for both, and hold the report against what each parameter was observed to be."""
    has_temperature, has_top_k = ("temperature" in seen.reported, "top_k" in seen.reported)
    weighed = [(each, _expected(each.context, has_temperature, has_top_k)) for each in seen.open]
    far = [
        report_fit(
            observed.context, server.ask(observed.place.prompt, temperature=T, top_k=K).next, weights_K, has_top_k
        )
        for observed, weights_K in [pair for pair in weighed if pair[1] is not None][:PROMPTS]
        if weights_K is not None
    ]
    if not far:
        return unanswered("in no prompt do three tokens stand apart from the others")
    return differing(
        "with temperature and top_k, the report and what each does by itself",
        max(fit.applied for fit in far),
        seen.tolerance,
    )


def _expected(context: Context, has_temperature: bool, has_top_k: bool) -> Floats | None:
    """Return the log weights of a report that has these of the two; None if noise decides what is kept."""
    if top_k.applied(context, K) is None:
        return None
    heated = replace(context, logprobs_K=temperature.applied(context, T)) if has_temperature else context
    return top_k.applied(heated, K) if has_top_k else heated.logprobs_K


CHECK = Check("together", "Are two parameters of one request reported as each by itself?", ask)
